//! What every side of the comparison does.

use std::error::Error;
use std::time::{Duration, Instant};

use flatwater_index::Row;

use super::timing::Seconds;

/// What is the same for all.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) m: usize,
    pub(crate) ef_construct: usize,
    /// Threads of a build; searches take one.
    pub(crate) threads: usize,
    pub(crate) k: usize,
    /// All queries are searched again and again for so long, at least [`PASSES_MIN`] times.
    pub(crate) pass_seconds: f64,
}

const PASSES_MIN: usize = 3;

/// Answers of one search width.
#[derive(Debug)]
pub(crate) struct Searched {
    /// All queries once: the fastest of the passes.
    pub(crate) seconds: Seconds,
    /// `k` rows a query; missing ones are `Row::MAX`.
    pub(crate) found: Vec<Row>,
}

/// One side of the comparison.
pub(crate) trait Participant {
    /// As reports call it.
    fn name(&self) -> &str;

    /// Of the library.
    fn version(&self) -> &str;

    /// Builds anew, from rows in memory to a graph that can be searched.
    fn build(&mut self) -> Result<Seconds, Box<dyn Error>>;

    /// Searches all queries on one thread.
    fn search(&mut self, ef: usize) -> Result<Searched, Box<dyn Error>>;
}

/// Times of one pass after another; `crates/bench/peers/peer.py` does the same.
pub(crate) fn passes(settings: &Settings, mut pass: impl FnMut()) -> Vec<Seconds> {
    let wanted = Duration::from_secs_f64(settings.pass_seconds);
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < PASSES_MIN || begin.elapsed() < wanted {
        times.push(Seconds::of(&mut pass).0);
    }
    times
}
