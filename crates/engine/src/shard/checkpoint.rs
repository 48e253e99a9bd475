//! The checkpoint thread: makes a view durable in the segments, so that the log can be cut.
//!
//! 1. Take the newest view and sync the log up to its watermark: no file ever holds an effect that
//!    the log does not.
//! 2. Let every segment record that view: chunks synced, then the segment's own checkpoint file.
//! 3. Write the manifest: from here on the listed segments count.
//! 4. Remove the log files that are not needed any more, and the segments that are listed no more.
//!
//! At a graceful stop the links of the growing graphs are saved too.
//!
//! This thread alone writes checkpoints and manifests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flatwater_segment::dir::Directory;
use flatwater_segment::durable;
use flatwater_segment::parts::Segment;

use super::ShardShared;
use super::manifest::Manifest;
use super::schema;
use super::view::ShardView;
use crate::error::{EngineError, Result};
use crate::wal::WalSync;

/// How often the thread looks for a stop when nobody rings.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);

/// Set once, when the shard stops.
#[derive(Debug, Default)]
pub(super) struct StopFlag(AtomicBool);

impl StopFlag {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

pub(super) struct Checkpointer {
    pub(super) shared: Arc<ShardShared>,
    pub(super) dir: Arc<dyn Directory>,
    pub(super) wal: Arc<WalSync>,
    pub(super) stop: Arc<StopFlag>,
    /// What the manifest says.
    pub(super) recorded: Manifest,
}

impl Checkpointer {
    /// Runs until the shard stops, and takes a last checkpoint then.
    pub(super) fn run(mut self) {
        loop {
            let rang = self.shared.checkpoint_bell.wait(LOOK_INTERVAL);
            let is_stopping = self.stop.is_set();
            let is_due = rang && (is_stopping || self.shared.wants_checkpoint());
            if is_due {
                self.shared
                    .manifest_is_stale
                    .store(false, Ordering::Release);
            }
            if is_due
                && self.shared.health.check().is_ok()
                && let Err(error) = self.take()
            {
                self.shared.manifest_is_stale.store(true, Ordering::Release);
                tracing::error!(%error, "checkpoint failed; the log keeps everything until one succeeds");
                if matches!(error, EngineError::SyncFailed { .. }) {
                    // The pages may be gone from the page cache as if they had been written: the next
                    // checkpoint would record what is not on the disk, and the log would be cut.
                    self.shared.health.poison(&error.to_string());
                }
            }
            self.reclaim();
            if is_stopping {
                if self.shared.health.check().is_ok() {
                    self.save_links();
                }
                return;
            }
        }
    }

    fn take(&mut self) -> Result<()> {
        // Taken before the view: what is logged in between counts for the next checkpoint too.
        let bytes = self.shared.unrecorded_bytes.load(Ordering::Relaxed);
        let view = self.shared.view.load_full();
        let manifest = self.manifest_of(&view);
        if manifest == self.recorded {
            // A removal that failed is tried again.
            return self.remove_leftovers();
        }
        self.wal.sync()?;
        for segment in &view.segments {
            durable::record(segment)?;
        }
        manifest.write(self.dir.as_ref())?;
        self.recorded = manifest;
        self.shared
            .unrecorded_bytes
            .fetch_sub(bytes, Ordering::Relaxed);
        self.wal.truncate_below(view.watermark)?;
        self.remove_leftovers()
    }

    /// Removes the files of replaced segments that the manifest does not list any more.
    fn remove_leftovers(&self) -> Result<()> {
        let listed = &self.recorded.segments;
        let leftovers = std::mem::take(&mut *self.shared.leftovers.lock());
        for (at, id) in leftovers.iter().enumerate() {
            let removed = if listed.contains(id) {
                // Its successor is in a view that is younger than this checkpoint's.
                self.shared.leftovers.lock().push(*id);
                Ok(())
            } else {
                match self.shared.segments_dir.remove_subdir(&id.to_string()) {
                    Err(error) if error.is_not_found() => Ok(()),
                    outcome => outcome,
                }
            };
            if let Err(error) = removed {
                self.shared.leftovers.lock().extend(&leftovers[at..]);
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Frees replaced segments that no view holds any more.
    fn reclaim(&self) {
        let is_held = |segment: &Arc<Segment>| Arc::strong_count(segment) > 1;
        let (held, free) = {
            let mut retired = self.shared.retired.lock();
            let all = std::mem::take(&mut *retired);
            all.into_iter().partition::<Vec<_>, _>(is_held)
        };
        self.shared.retired.lock().extend(held);
        // Unmapping a large segment takes a while: not under the lock that the writer takes.
        drop(free);
    }

    /// Saves the links of the growing graphs, so that the next start need not build them again.
    fn save_links(&self) {
        for segment in &self.shared.view.load_full().segments {
            let segment = segment.segment();
            for column in 0..segment.columns().len() {
                if let Err(error) = segment.save_links(column) {
                    tracing::warn!(%error, "links were not saved; the next start builds the graph again");
                }
            }
        }
    }

    fn manifest_of(&self, view: &ShardView) -> Manifest {
        let fields = view
            .schemas
            .iter()
            .map(|(field, schema)| schema::to_record(field, schema))
            .collect();
        Manifest {
            seq: view.watermark,
            segments: view
                .segments
                .iter()
                .map(|segment| segment.segment().id())
                .collect(),
            fields,
        }
    }
}
