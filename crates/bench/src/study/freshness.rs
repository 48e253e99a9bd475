//! Is a point found from its acknowledgement on? Every now and then a *marker* is written, a point in a
//! direction of its own, and searched for the moment it is acknowledged, then again until it is found.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flatwater_index::Metric;
use serde_json::{Value, json};

use super::setup::Setup;
use super::watch::seconds;
use crate::dataset::generator::Stream;
use crate::measure::summary::round;
use crate::target::{Batch, Failure, Search};

/// Ids of markers begin here, above all rows.
pub(super) const MARKERS_FROM: u64 = 1 << 40;
/// A marker that is not found for so long is missing.
const MISSING_AFTER: Duration = Duration::from_secs(60);
const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// One marker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marker {
    at: Duration,
    acknowledged_after: Duration,
    /// From the acknowledgement; `None`: never.
    found_after: Option<Duration>,
    /// Whether the first search found it.
    is_found_at_once: bool,
}

/// Whether markers can be told from rows: with a product as the score, a point need not be nearest to
/// itself.
pub(super) fn is_possible(metric: Metric) -> bool {
    matches!(metric, Metric::Cosine | Metric::Euclid)
}

/// Writes and seeks markers until `is_over`.
pub(super) fn probe(
    setup: &Setup,
    clock: Instant,
    every: Duration,
    is_over: &AtomicBool,
) -> Result<Vec<Marker>, Failure> {
    let mut session = setup.target.session(&setup.subject)?;
    let mut markers = Vec::new();
    let mut id = MARKERS_FROM;
    while !is_over.load(Ordering::Acquire) {
        let begun = Instant::now();
        let vector = marker_vector(setup.data.dim(), setup.seed, id);
        let mut batch = Batch::default();
        batch.push(id, &vector);
        let at = clock.elapsed();
        if session.upsert(&batch, false).is_ok() {
            let acknowledged = Instant::now();
            let search = Search {
                vector: &vector,
                limit: setup.k,
                ef: setup.ef,
                keyword: None,
            };
            let mut first = None;
            let found_after = loop {
                let found = session.search(&search);
                let is_found = found.is_ok_and(|found| found.ids.contains(&id));
                first.get_or_insert(is_found);
                if is_found {
                    break Some(acknowledged.elapsed());
                }
                if acknowledged.elapsed() > MISSING_AFTER || is_over.load(Ordering::Acquire) {
                    break None;
                }
                std::thread::sleep(AGAIN_AFTER);
            };
            markers.push(Marker {
                at,
                acknowledged_after: acknowledged - begun,
                found_after,
                is_found_at_once: first == Some(true),
            });
        }
        id += 1;
        let next = begun + every;
        while Instant::now() < next && !is_over.load(Ordering::Acquire) {
            std::thread::sleep(AGAIN_AFTER.min(next.saturating_duration_since(Instant::now())));
        }
    }
    Ok(markers)
}

/// A direction that no row has.
fn marker_vector(dim: usize, seed: u64, id: u64) -> Vec<f32> {
    let mut stream = Stream::new(seed ^ 0xF5, id);
    let mut vector: Vec<f32> = (0..dim).map(|_| stream.normal()).collect();
    flatwater_index::distance::normalize(&mut vector);
    vector
}

/// Figures of all markers.
pub(super) fn json(markers: &[Marker]) -> Value {
    let at_once = markers
        .iter()
        .filter(|marker| marker.is_found_at_once)
        .count();
    let later: Vec<Value> = markers
        .iter()
        .filter(|marker| !marker.is_found_at_once)
        .map(|marker| {
            json!({
                "at": seconds(marker.at),
                "found_after_s": marker.found_after.map(seconds),
            })
        })
        .collect();
    let ms = |time: Duration| round(time.as_secs_f64() * 1e3);
    json!({
        "markers": markers.len(),
        "found_at_once": at_once,
        "later": later,
        "longest_write_ms": markers.iter().map(|m| m.acknowledged_after).max().map(ms),
    })
}
