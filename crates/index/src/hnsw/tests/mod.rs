//! Tests of the graph as a whole: its structure, its readers, its recall.

mod concurrency;
mod frozen;
mod join;
mod quality;
mod structure;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::levels::mix;
use super::{Hnsw, Inline, Params, Scorer, Space, Walk, Workers};
use crate::{Row, Scored};

/// Rows of plain floats; the score is the negated squared distance.
#[derive(Clone)]
struct Points {
    dim: usize,
    values: Vec<f32>,
}

/// A vector as the query.
struct Query<'a> {
    points: &'a Points,
    vector: &'a [f32],
}

impl Points {
    fn len(&self) -> Row {
        (self.values.len() / self.dim) as Row
    }

    fn row(&self, row: Row) -> &[f32] {
        &self.values[row as usize * self.dim..][..self.dim]
    }

    /// `n` rows around `clusters` random centres; the same seed gives the same rows. Later
    /// coordinates vary less, as in the principal axes of real embeddings.
    fn clustered(n: usize, dim: usize, clusters: usize, spread: f32, seed: u64) -> Self {
        let mut random = Random(seed);
        let scale = |i: usize| 1.0 / (1.0 + (i % dim) as f32 / 32.0);
        let centres: Vec<f32> = (0..clusters * dim)
            .map(|i| scale(i) * random.bell())
            .collect();
        let mut values = Vec::with_capacity(n * dim);
        for _ in 0..n {
            let centre = random.below(clusters) * dim;
            let around = centres[centre..centre + dim].iter().enumerate();
            values.extend(around.map(|(i, c)| c + spread * scale(i) * random.bell()));
        }
        Self { dim, values }
    }

    fn query<'a>(&'a self, vector: &'a [f32]) -> Query<'a> {
        Query {
            points: self,
            vector,
        }
    }

    /// The best `k` of the rows that `keep` names, by looking at all.
    fn exact(&self, vector: &[f32], k: usize, keep: impl Fn(Row) -> bool) -> Vec<Scored> {
        let query = self.query(vector);
        let mut all: Vec<Scored> = (0..self.len())
            .filter(|&row| keep(row))
            .map(|row| Scored {
                row,
                score: query.score(row),
            })
            .collect();
        all.sort_by(Scored::best_first);
        all.truncate(k);
        all
    }
}

impl Scorer for Query<'_> {
    fn score(&self, row: Row) -> f32 {
        // Lanes, so that the compiler may use wide registers.
        let mut lanes = [0.0_f32; 8];
        for (a, b) in self.vector.chunks(8).zip(self.points.row(row).chunks(8)) {
            for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
                *lane += (a - b) * (a - b);
            }
        }
        -lanes.iter().sum::<f32>()
    }
}

impl Space for Points {
    type RowScorer<'a> = Query<'a>;

    fn scorer_of(&self, row: Row) -> Query<'_> {
        Query {
            points: self,
            vector: self.row(row),
        }
    }

    fn pair(&self, a: Row, b: Row) -> f32 {
        self.scorer_of(a).score(b)
    }
}

/// A small generator whose seed replays.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Uniform in [0, 1).
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32
    }

    /// Near normal: mean 0, deviation 1.
    fn bell(&mut self) -> f32 {
        (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
    }
}

/// Real threads, started for each `run`.
struct Threads(usize);

impl Workers for Threads {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, n: usize, f: &(dyn Fn(usize, usize) + Sync)) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for worker in 0..self.0 {
                let next = &next;
                scope.spawn(move || {
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        if i >= n {
                            break;
                        }
                        f(i, worker);
                    }
                });
            }
        });
    }
}

/// Inserts rows up to `end` in the batches that the graph asks for.
fn insert_all(graph: &Hnsw, points: &Points, end: Row, workers: &dyn Workers) {
    while graph.indexed_len() < end {
        let next = graph.indexed_len() + graph.next_batch_len(end - graph.indexed_len());
        graph
            .insert_batch(points, next, &|_| false, workers, &|| false)
            .unwrap();
    }
}

fn built(points: &Points, params: Params) -> Hnsw {
    let graph = Hnsw::new(params, points.len());
    insert_all(&graph, points, points.len(), &Inline);
    graph
}

/// One number for all links of `0..rows` and the entry point.
fn fingerprint(graph: &Hnsw, rows: Row) -> u64 {
    let mut hash = mix(graph
        .entry()
        .map_or(0, |(row, level)| u64::from(row) << 8 | level as u64));
    for row in 0..rows {
        for level in 0..=graph.level_of(row) {
            hash = mix(hash ^ (u64::from(row) << 8 | level as u64));
            hash = graph
                .links(level, row)
                .fold(hash, |hash, to| mix(hash ^ u64::from(to)));
        }
    }
    hash
}

/// Asserts all that must hold of a graph into which `inserted` were inserted.
fn assert_sound(graph: &Hnsw, inserted: &HashSet<Row>, end: Row) {
    let params = graph.params();
    assert_eq!(graph.indexed_len(), end);
    assert_eq!(graph.linked_rows() as usize, inserted.len());
    for row in 0..end {
        for level in 0..=graph.level_of(row) {
            let list: Vec<Row> = graph.links(level, row).collect();
            assert!(
                list.is_empty() || inserted.contains(&row),
                "{row} was skipped, has links"
            );
            assert!(
                list.len() <= params.links_max(level),
                "{row}: {} links",
                list.len()
            );
            let distinct: HashSet<Row> = list.iter().copied().collect();
            assert_eq!(distinct.len(), list.len(), "{row} links twice to one row");
            assert!(!distinct.contains(&row), "{row} links to itself");
            for to in list {
                assert!(
                    inserted.contains(&to),
                    "{row} links to {to}, which was not inserted"
                );
                assert!(
                    graph.level_of(to) >= level,
                    "{row} links to {to} on level {level}"
                );
            }
        }
    }
    let Some((entry, level)) = graph.entry() else {
        assert!(inserted.is_empty());
        return;
    };
    assert_eq!(
        Some(level),
        inserted.iter().map(|&row| graph.level_of(row)).max()
    );
    assert_eq!(
        &reached_from(graph, entry),
        inserted,
        "level 0 is connected from the entry point"
    );
}

/// Rows that links of level 0 lead to.
fn reached_from(graph: &Hnsw, entry: Row) -> HashSet<Row> {
    let mut reached = HashSet::from([entry]);
    let mut queue = vec![entry];
    while let Some(row) = queue.pop() {
        queue.extend(graph.links(0, row).filter(|&to| reached.insert(to)));
    }
    reached
}

/// Share of the true rows that were found.
fn recall(found: &[Scored], truth: &[Scored]) -> f64 {
    let hits = truth
        .iter()
        .filter(|t| found.iter().any(|f| f.row == t.row))
        .count();
    hits as f64 / truth.len().max(1) as f64
}
