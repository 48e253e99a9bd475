//! The upload: all rows in their order, one write after another, as fast as the server takes them.

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use super::setup::Setup;
use crate::dataset::Dataset;
use crate::interrupt;
use crate::measure::sample::{Outcome, Sample};
use crate::target::{Batch, Failure, Keyword};

/// Writes that wait read and ready.
const READY_MAX: usize = 4;
/// A write that failed is sent again so often: an upload without all of its points measures nothing.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(500);

/// Keyword of each point, if points have one.
pub(super) type KeywordOf<'a> = Option<&'a (dyn Fn(u64) -> Keyword + Sync)>;

/// What an upload needs beside the setup.
pub(super) struct Upload<'a> {
    pub(super) setup: &'a Setup,
    pub(super) clock: Instant,
    pub(super) keyword: KeywordOf<'a>,
    /// Called after each acknowledgement with the number of rows acknowledged so far.
    pub(super) on_ack: &'a (dyn Fn(usize) + Sync),
}

/// Rows `first` to `first + count` as a write.
pub(super) fn batch(
    data: &Dataset,
    first: usize,
    count: usize,
    keyword: KeywordOf<'_>,
) -> std::io::Result<Batch> {
    let mut vectors = vec![0.0; count * data.dim()];
    data.read(first, &mut vectors)?;
    let ids: Vec<u64> = (first as u64..(first + count) as u64).collect();
    Ok(Batch {
        dim: data.dim(),
        keywords: keyword.map_or(Vec::new(), |of| ids.iter().map(|&id| of(id)).collect()),
        ids,
        vectors,
    })
}

impl Upload<'_> {
    /// Writes rows up to `rows`; returns a sample of every write.
    pub(super) fn run(&self, rows: usize) -> Result<Vec<Sample>, Failure> {
        let (setup, data) = (self.setup, &self.setup.data);
        let mut session = setup.target.session(&setup.subject)?;
        let (sender, ready) = sync_channel(READY_MAX);
        std::thread::scope(|scope| {
            // Reading and generating rows goes on while the server works on those before.
            scope.spawn(move || {
                for first in (0..rows).step_by(setup.batch) {
                    let count = setup.batch.min(rows - first);
                    let batch = batch(data, first, count, self.keyword);
                    if sender.send(batch).is_err() {
                        break;
                    }
                }
            });
            let (mut samples, mut acknowledged) = (Vec::new(), 0);
            for batch in ready {
                if interrupt::is_asked() {
                    break;
                }
                let unreadable = |error: std::io::Error| Failure::Unreadable(error.to_string());
                let batch = batch.map_err(unreadable)?;
                let mut attempt = 1;
                loop {
                    let begun = self.clock.elapsed();
                    let result = session.upsert(&batch, false);
                    samples.push(sample(begun, self.clock.elapsed(), result.is_ok()));
                    match result {
                        Ok(()) => break,
                        Err(failure) if attempt == ATTEMPTS => return Err(failure),
                        Err(_) => std::thread::sleep(PAUSE * attempt),
                    }
                    attempt += 1;
                }
                acknowledged += batch.ids.len();
                (self.on_ack)(acknowledged);
            }
            Ok(samples)
        })
    }
}

fn sample(begun: Duration, ended: Duration, is_ok: bool) -> Sample {
    Sample {
        due: begun,
        begun,
        ended,
        outcome: if is_ok {
            Outcome::Answered
        } else {
            Outcome::Failed
        },
        server: None,
        own: Duration::ZERO,
        query: 0,
    }
}
