//! The checkpoint thread: makes a view durable in the segments, so that the log can be cut.
//!
//! 1. Take the newest view and sync the log up to its watermark: no file ever holds an effect that
//!    the log does not.
//! 2. Let every segment record that view: chunks synced, then the segment's own checkpoint file.
//! 3. Write the manifest: from here on the listed segments count.
//! 4. Remove the log files that are not needed any more.
//!
//! This thread alone writes checkpoints and manifests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flatwater_segment::SeqNo;
use flatwater_segment::dir::Directory;

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
    /// Watermark of the last checkpoint.
    pub(super) recorded: SeqNo,
}

impl Checkpointer {
    /// Runs until the shard stops, and takes a last checkpoint then.
    pub(super) fn run(mut self) {
        loop {
            let rang = self.shared.checkpoint_bell.wait(LOOK_INTERVAL);
            let is_stopping = self.stop.is_set();
            let is_due = rang && (is_stopping || self.shared.wants_checkpoint());
            if is_due
                && self.shared.health.check().is_ok()
                && let Err(error) = self.take()
            {
                tracing::error!(%error, "checkpoint failed; the log keeps everything until one succeeds");
                if matches!(error, EngineError::SyncFailed { .. }) {
                    // The pages may be gone from the page cache as if they had been written: the next
                    // checkpoint would record what is not on the disk, and the log would be cut.
                    self.shared.health.poison(&error.to_string());
                }
            }
            if is_stopping {
                return;
            }
        }
    }

    fn take(&mut self) -> Result<()> {
        // Taken before the view: what is logged in between counts for the next checkpoint too.
        let bytes = self.shared.unrecorded_bytes.load(Ordering::Relaxed);
        let view = self.shared.view.load_full();
        if view.watermark == self.recorded {
            return Ok(());
        }
        self.wal.sync()?;
        for segment in &view.segments {
            segment.checkpoint()?;
        }
        self.manifest_of(&view).write(self.dir.as_ref())?;
        self.recorded = view.watermark;
        self.shared
            .unrecorded_bytes
            .fetch_sub(bytes, Ordering::Relaxed);
        self.wal.truncate_below(view.watermark)?;
        Ok(())
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
