//! Frozen graphs answer as the growing one did, and grow on from any prefix.

use super::*;
use crate::hnsw::frozen::EMPTY_SLOT;
use crate::hnsw::{BadGraph, FrozenGraph, GraphParts, Scratch};

const PARAMS: Params = Params {
    m: 6,
    ef_construct: 40,
    seed: 11,
};

fn frozen(parts: &GraphParts) -> Result<FrozenGraph<'_>, BadGraph> {
    FrozenGraph::new(
        parts.m,
        parts.entry,
        &parts.base,
        &parts.upper_start,
        &parts.upper,
    )
}

#[test]
fn a_frozen_graph_answers_as_the_growing_one() {
    let points = Points::clustered(1500, 12, 10, 0.4, 3);
    let graph = built(&points, PARAMS);
    let parts = graph.freeze();
    let frozen = frozen(&parts).unwrap();
    frozen.check_links().unwrap();
    assert_eq!((frozen.rows_len(), frozen.entry()), (1500, graph.entry()));
    let queries = Points::clustered(20, 12, 10, 0.4, 4);
    let (mut a, mut b) = (Scratch::new(), Scratch::new());
    for q in 0..queries.len() {
        let query = points.query(queries.row(q));
        let third = |row: Row| row.is_multiple_of(3);
        assert_eq!(
            graph.search(&query, 30, &third, &mut a),
            frozen.search(&query, 30, &third, &mut b)
        );
        assert_eq!(
            graph.search_filtered(&query, 30, &third, &|_| true, &mut a),
            frozen.search_filtered(&query, 30, &third, &|_| true, &mut b)
        );
    }
}

#[test]
fn a_restored_graph_has_the_same_links_and_grows_on_the_same_way() {
    let points = Points::clustered(900, 8, 6, 0.4, 5);
    let graph = Hnsw::new(PARAMS, points.len());
    insert_all(&graph, &points, 600, &Inline);
    let restored = Hnsw::restore(PARAMS, points.len(), &graph.freeze(), Row::MAX).unwrap();
    assert_eq!(fingerprint(&graph, 600), fingerprint(&restored, 600));
    insert_all(&graph, &points, 900, &Inline);
    insert_all(&restored, &points, 900, &Inline);
    assert_eq!(fingerprint(&graph, 900), fingerprint(&restored, 900));
}

#[test]
fn a_prefix_of_a_graph_is_sound_and_keeps_its_recall() {
    let points = Points::clustered(2000, 12, 10, 0.5, 6);
    let graph = Hnsw::new(PARAMS, points.len());
    let skipped = |row: Row| row % 7 == 3;
    while graph.indexed_len() < 1000 {
        let end = graph.indexed_len() + graph.next_batch_len(1000 - graph.indexed_len());
        graph
            .insert_batch(&points, end, &skipped, &Inline, &|| false)
            .unwrap();
    }
    let parts = graph.freeze();
    for keep in [0, 1, 2, 3, 4, 500, 999, 1000] {
        let restored = Hnsw::restore(PARAMS, points.len(), &parts, keep).unwrap();
        let kept: HashSet<Row> = (0..keep).filter(|&row| !skipped(row)).collect();
        assert_sound(&restored, &kept, keep);
        insert_all(&restored, &points, 2000, &Inline);
        let all: HashSet<Row> = kept.into_iter().chain(keep..2000).collect();
        assert_sound(&restored, &all, 2000);
        let mut scratch = Scratch::new();
        let mut found = 0.0;
        let queries = Points::clustered(30, 12, 10, 0.5, 7);
        for q in 0..queries.len() {
            let vector = queries.row(q);
            let truth = points.exact(vector, 10, |row| all.contains(&row));
            let hits = restored.search(&points.query(vector), 60, &|_| true, &mut scratch);
            found += recall(&hits, &truth);
        }
        assert!(found / 30.0 > 0.95, "keep {keep}: recall {}", found / 30.0);
    }
}

#[test]
fn an_empty_graph_freezes_and_comes_back() {
    let parts = Hnsw::new(PARAMS, 10).freeze();
    assert_eq!((parts.rows, parts.entry), (0, None));
    assert_eq!(frozen(&parts).unwrap().rows_len(), 0);
    let restored = Hnsw::restore(PARAMS, 10, &parts, 10).unwrap();
    assert_eq!((restored.indexed_len(), restored.entry()), (0, None));
}

#[test]
fn arrays_that_do_not_make_a_graph_are_refused() {
    let points = Points::clustered(200, 4, 3, 0.4, 8);
    let parts = built(&points, PARAMS).freeze();
    let restore = |parts: &GraphParts| Hnsw::restore(PARAMS, 200, parts, 200).map(drop);
    assert_eq!(restore(&parts), Ok(()));

    let mut bad = parts.clone();
    bad.base[5] = 200;
    // The walk takes it for the end of the list, the check names it.
    assert!(frozen(&bad).unwrap().links(0, 0).count() <= 5);
    assert!(matches!(
        restore(&bad),
        Err(BadGraph::Link {
            row: 0,
            linked: 200,
            ..
        })
    ));

    let mut bad = parts.clone();
    bad.base.pop();
    assert!(matches!(restore(&bad), Err(BadGraph::Length { .. })));
    let mut bad = parts.clone();
    bad.shapes.push(0);
    assert!(matches!(restore(&bad), Err(BadGraph::Length { .. })));
    let mut bad = parts.clone();
    bad.base[0] = 0;
    assert!(matches!(restore(&bad), Err(BadGraph::Link { row: 0, .. })));
    let mut bad = parts.clone();
    bad.entry = Some((200, 1));
    assert!(matches!(restore(&bad), Err(BadGraph::Entry { .. })));
    let other_seed = Params { seed: 12, ..PARAMS };
    assert!(matches!(
        Hnsw::restore(other_seed, 200, &parts, 200),
        Err(BadGraph::Levels { .. })
    ));
    assert!(parts.base.contains(&EMPTY_SLOT), "some list is not full");
}
