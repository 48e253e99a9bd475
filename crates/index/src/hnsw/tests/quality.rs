//! Recall on made-up clusters, against an exact scan.

use super::*;
use crate::hnsw::{Scratch, SearchStats};

const QUERIES: u64 = 500;

/// Mean recall@10 and mean effort of `search` for queries near the rows.
fn measure(
    points: &Points,
    search: impl Fn(&[f32], &mut Scratch) -> Vec<Scored>,
    keep: impl Fn(Row) -> bool,
) -> (f64, SearchStats) {
    let mut random = Random(77);
    let mut scratch = Scratch::new();
    let mut sum = 0.0;
    let mut stats = SearchStats::default();
    for _ in 0..QUERIES {
        let near = points.row(random.below(points.len() as usize) as Row);
        let query: Vec<f32> = near.iter().map(|v| v + 0.1 * random.bell()).collect();
        let truth = points.exact(&query, 10, &keep);
        let found = search(&query, &mut scratch);
        sum += recall(&found, &truth);
        stats.distances += scratch.stats().distances;
        stats.hops += scratch.stats().hops;
    }
    stats.distances /= QUERIES;
    stats.hops /= QUERIES;
    (sum / QUERIES as f64, stats)
}

fn plain(graph: &Hnsw, points: &Points) -> (f64, SearchStats) {
    let search = |query: &[f32], scratch: &mut Scratch| {
        graph.search(&points.query(query), 64, &|_| true, scratch)
    };
    measure(points, search, |_| true)
}

#[test]
fn batches_lose_no_recall_against_insertion_one_by_one() {
    for (n, dim) in [(10_000, 64), (5000, 128)] {
        let points = Points::clustered(n, dim, 20, 1.0, 21);
        let params = Params {
            seed: 5,
            ..Params::default()
        };
        let batches = built(&points, params);
        let single = Hnsw::new(params, points.len());
        for end in 1..=points.len() {
            single
                .insert_batch(&points, end, &|_| false, &Inline, &|| false)
                .unwrap();
        }
        let ((batched, effort), (one_by_one, _)) =
            (plain(&batches, &points), plain(&single, &points));
        println!("{n} x {dim}: batches {batched}, one by one {one_by_one}, {effort:?}");
        assert!(
            batched > 0.95 && batched > one_by_one - 0.005,
            "{batched} vs {one_by_one}"
        );
    }
}

#[test]
fn filtered_walks_find_the_best_matching_rows_whatever_the_correlation() {
    let points = Points::clustered(10_000, 32, 20, 1.0, 22);
    let graph = built(&points, Params::default());
    let random_part = |percent: u64| move |row: Row| mix(u64::from(row)) % 100 < percent;
    for percent in [2, 5, 10, 20, 40, 60] {
        let keep = random_part(percent);
        let search = |query: &[f32], scratch: &mut Scratch| {
            graph.search_filtered(&points.query(query), 64, &keep, &|_| true, scratch)
        };
        let (recall, effort) = measure(&points, search, keep);
        println!("random {percent} %: {recall} {effort:?}");
        assert!(recall > 0.95, "random {percent} %: {recall}");
    }
    // One side of a plane: the filter goes by place, so some queries are amid matching rows and
    // the others have none near.
    for (name, bound) in [("half", 0.0), ("edge", 1.3)] {
        let keep = |row: Row| points.row(row)[0] > bound;
        let matching = (0..points.len()).filter(|&row| keep(row)).count();
        let search = |query: &[f32], scratch: &mut Scratch| {
            graph.search_filtered(&points.query(query), 64, &keep, &|_| true, scratch)
        };
        let (recall, effort) = measure(&points, search, keep);
        println!("{name}, {matching} rows: {recall} {effort:?}");
        assert!(recall > 0.95, "{name}: {recall}");
    }
}
