//! What holds of the links after any sequence of batches.

use std::sync::atomic::AtomicI64;

use proptest::prelude::*;

use super::*;
use crate::hnsw::{Cancelled, Scratch};

/// One step of a random history.
#[derive(Clone, Debug)]
struct Step {
    len: Row,
    threads: usize,
    /// Leave out the rows that are 0 modulo this.
    skip_each: Option<Row>,
    /// Cancel at this look.
    cancel_at: Option<i64>,
}

fn step() -> impl Strategy<Value = Step> {
    (
        prop_oneof![1_u32..6, 20_u32..150],
        1_usize..4,
        proptest::option::weighted(0.3, 1_u32..5),
        proptest::option::weighted(0.3, 0_i64..200),
    )
        .prop_map(|(len, threads, skip_each, cancel_at)| Step {
            len,
            threads,
            skip_each,
            cancel_at,
        })
}

/// How random rows are made: far apart, in tight clusters, or equal.
#[derive(Clone, Debug)]
struct Made {
    seed: u64,
    dim: usize,
    clusters: usize,
    spread: f32,
}

fn made() -> impl Strategy<Value = Made> {
    (
        any::<u64>(),
        1_usize..6,
        1_usize..12,
        prop_oneof![Just(0.0_f32), Just(0.05), Just(1.0)],
    )
        .prop_map(|(seed, dim, clusters, spread)| Made {
            seed,
            dim,
            clusters,
            spread,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_inserted_row_is_reachable_after_any_batches(
        made in made(),
        m in 2_usize..9,
        ef_construct in 2_usize..40,
        seed: u64,
        steps in proptest::collection::vec(step(), 1..10),
    ) {
        let points = Points::clustered(1000, made.dim, made.clusters, made.spread, made.seed);
        let graph = Hnsw::new(Params { m, ef_construct, seed }, points.len());
        let mut inserted = HashSet::new();
        for step in steps {
            let start = graph.indexed_len();
            let end = points.len().min(start + step.len);
            let skip = |row: Row| step.skip_each.is_some_and(|each| row.is_multiple_of(each));
            let looks = AtomicI64::new(step.cancel_at.unwrap_or(i64::MAX));
            let cancel = || looks.fetch_sub(1, Ordering::Relaxed) <= 0;
            let before = fingerprint(&graph, end);
            let done = graph.insert_batch(&points, end, &skip, &Threads(step.threads), &cancel);
            if let Ok(report) = done {
                inserted.extend((start..end).filter(|&row| !skip(row)));
                prop_assert_eq!(report.inserted + report.skipped, end - start);
                assert_sound(&graph, &inserted, end);
            } else {
                prop_assert!(step.cancel_at.is_some());
                prop_assert_eq!(fingerprint(&graph, end), before, "a cancelled batch left a trace");
                assert_sound(&graph, &inserted, start);
            }
        }
    }
}

#[test]
fn the_same_batches_give_the_same_graph_with_any_number_of_threads() {
    let points = Points::clustered(4000, 12, 30, 0.3, 3);
    let build = |workers: &dyn Workers| {
        let graph = Hnsw::new(
            Params {
                m: 8,
                ef_construct: 40,
                seed: 9,
            },
            points.len(),
        );
        insert_all(&graph, &points, points.len(), workers);
        fingerprint(&graph, points.len())
    };
    let one = build(&Inline);
    assert_eq!(build(&Threads(2)), one);
    assert_eq!(build(&Threads(5)), one);
}

#[test]
fn a_cancelled_batch_can_be_inserted_again_as_if_nothing_had_been() {
    let points = Points::clustered(1500, 8, 10, 0.3, 4);
    let params = Params {
        m: 6,
        ef_construct: 30,
        seed: 1,
    };
    let (plain, cancelled) = (Hnsw::new(params, 1500), Hnsw::new(params, 1500));
    for end in [200, 700, 1500] {
        plain
            .insert_batch(&points, end, &|_| false, &Inline, &|| false)
            .unwrap();
        // Looks are taken in all steps: each tenth of them cancels somewhere else.
        let (mut looks_max, mut cancels) = (0, 0);
        loop {
            let looks = AtomicI64::new(looks_max);
            let cancel = || looks.fetch_sub(1, Ordering::Relaxed) <= 0;
            match cancelled.insert_batch(&points, end, &|_| false, &Threads(2), &cancel) {
                Err(Cancelled) => {
                    assert_eq!(cancelled.linked_rows(), cancelled.indexed_len());
                    (looks_max, cancels) = (looks_max * 11 / 10 + 50, cancels + 1);
                }
                Ok(_) => break,
            }
        }
        assert!(cancels > 3, "the batch was cancelled in several places");
        assert_eq!(fingerprint(&cancelled, end), fingerprint(&plain, end));
    }
}

#[test]
fn skipped_rows_are_linked_by_nobody_even_when_they_are_the_first_or_all() {
    let points = Points::clustered(600, 4, 3, 0.2, 5);
    let graph = Hnsw::new(
        Params {
            m: 4,
            ef_construct: 20,
            seed: 2,
        },
        600,
    );
    graph
        .insert_batch(&points, 100, &|_| true, &Inline, &|| false)
        .unwrap();
    assert_sound(&graph, &HashSet::new(), 100);
    assert_eq!(
        graph.search(
            &points.query(points.row(0)),
            10,
            &|_| true,
            &mut Scratch::new()
        ),
        []
    );
    graph
        .insert_batch(&points, 300, &|row| row < 250, &Inline, &|| false)
        .unwrap();
    assert_sound(&graph, &(250..300).collect(), 300);
    graph
        .insert_batch(&points, 600, &|row| row % 2 == 0, &Inline, &|| false)
        .unwrap();
    let inserted = (250..300)
        .chain((300..600).filter(|row| row % 2 == 1))
        .collect();
    assert_sound(&graph, &inserted, 600);
}

#[test]
fn thousands_of_equal_rows_stay_reachable_and_do_not_trap_the_walk() {
    let mut points = Points::clustered(6000, 8, 40, 0.3, 6);
    let copy = points.row(0).to_vec();
    for row in 1000..4000 {
        points.values[row * 8..][..8].copy_from_slice(&copy);
    }
    let graph = built(
        &points,
        Params {
            m: 8,
            ef_construct: 40,
            seed: 3,
        },
    );
    assert_sound(&graph, &(0..6000).collect(), 6000);
    let mut scratch = Scratch::new();
    let mut sum = 0.0;
    for row in 4000..4200 {
        let query = points.row(row);
        let found = graph.search(&points.query(query), 64, &|_| true, &mut scratch);
        sum += recall(&found, &points.exact(query, 10, |_| true));
    }
    assert!(
        sum / 200.0 > 0.98,
        "recall beside the copies: {}",
        sum / 200.0
    );
}

#[test]
fn searches_that_ask_for_more_than_there_is_return_every_accepted_row() {
    let points = Points::clustered(700, 6, 5, 0.2, 7);
    let graph = built(
        &points,
        Params {
            m: 4,
            ef_construct: 20,
            seed: 4,
        },
    );
    let mut scratch = Scratch::new();
    for keep_each in [1, 2, 5, 50] {
        let keep = |row: Row| row.is_multiple_of(keep_each);
        let query = points.row(3);
        let truth = points.exact(query, 700, keep);
        let scorer = points.query(query);
        assert_eq!(graph.search(&scorer, 700, &keep, &mut scratch), truth);
        assert_eq!(
            graph.search_filtered(&scorer, 701, &keep, &|_| true, &mut scratch),
            truth
        );
        // The filter and liveness together.
        let live = |row: Row| !row.is_multiple_of(3);
        let truth = points.exact(query, 700, |row| keep(row) && live(row));
        assert_eq!(
            graph.search_filtered(&scorer, 700, &keep, &live, &mut scratch),
            truth
        );
    }
    assert_eq!(
        graph.search(&points.query(points.row(0)), 0, &|_| true, &mut scratch),
        []
    );
}
