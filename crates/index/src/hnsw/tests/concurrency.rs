//! Searches while batches are written.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::hnsw::Scratch;

#[test]
fn searches_during_the_build_find_indexed_rows_and_no_others() {
    let points = Points::clustered(12_000, 16, 60, 0.3, 11);
    let graph = Hnsw::new(
        Params {
            m: 8,
            ef_construct: 40,
            seed: 6,
        },
        points.len(),
    );
    let done = AtomicBool::new(false);
    let (mut asked, mut found_self) = (0, 0);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|reader| {
                let (graph, points, done) = (&graph, &points, &done);
                scope.spawn(move || read_until(done, graph, points, reader))
            })
            .collect();
        insert_all(&graph, &points, points.len(), &Threads(2));
        done.store(true, Ordering::Release);
        for reader in readers {
            let (a, f) = reader.join().unwrap();
            (asked, found_self) = (asked + a, found_self + f);
        }
    });
    assert!(asked > 100, "the readers searched during the build");
    // A walk may miss its own row now and then, as on a finished graph; not more often.
    assert!(
        found_self * 1000 >= asked * 995,
        "{found_self} of {asked} rows found themselves"
    );
}

/// Searches for rows of the graph by their own vectors; how many, and how many found themselves.
fn read_until(done: &AtomicBool, graph: &Hnsw, points: &Points, seed: u64) -> (u64, u64) {
    let mut random = Random(seed << 32);
    let mut scratch = Scratch::new();
    let (mut asked, mut found_self) = (0, 0);
    while !done.load(Ordering::Acquire) {
        let indexed = graph.indexed_len();
        if indexed == 0 {
            continue;
        }
        let row = random.below(indexed as usize) as Row;
        let scorer = points.scorer_of(row);
        let below = |other: Row| other < indexed;
        let found = graph.search(&scorer, 48, &below, &mut scratch);
        assert!(
            found.iter().all(|s| s.row < indexed),
            "rows past indexed_len were returned"
        );
        assert!(
            found.is_sorted_by(|a, b| a.best_first(b).is_lt()),
            "best first, no row twice"
        );
        let all = 48.min(indexed as usize);
        assert_eq!(found.len(), all, "fewer rows than there are");
        asked += 1;
        found_self += u64::from(found.iter().any(|s| s.row == row));
        let even = |other: Row| other.is_multiple_of(2);
        let found = graph.search_filtered(&scorer, 20, &even, &below, &mut scratch);
        assert!(found.iter().all(|s| s.row < indexed && even(s.row)));
    }
    (asked, found_self)
}
