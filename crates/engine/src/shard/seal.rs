//! Putting the sealed form of a full segment in its place.
//!
//! 1. The caller's thread writes the files from one view of the segment, opens them, and builds the field
//!    indexes that are listed then; one that is listed later is built like any other (see `index`). Writes go on; what they do to the segment's rows is stamped there as before.
//! 2. The writer thread takes over what was stamped since that view, puts the sealed segment into the list
//!    in place of the growing one, and publishes one view: no search sees both, or neither.
//! 3. The next checkpoint records the sealed segment and writes the manifest. Until that is done a
//!    restart finds the growing segment and the log, and nothing is lost; then the growing files
//!    are removed.

use crossbeam_channel::{Sender, bounded};
use flatwater_segment::growing::write::SegmentWriter;
use flatwater_segment::sealed;
use flatwater_segment::sealed::seal::SealError;
use flatwater_segment::view::SegmentView;
use uuid::Uuid;

use super::Shard;
use super::apply::{Segments, parse_path};
use super::writer::Command;
use crate::error::{EngineError, Result};

/// A sealed segment that waits for its place.
pub(super) struct Swap {
    /// The view that was sealed.
    pub(super) since: SegmentView,
    /// Its sealed form, without what happened since.
    pub(super) sealed: SegmentWriter,
    /// Told how it went.
    pub(super) done: Sender<Result<()>>,
}

impl Shard {
    /// Seals segment `id` and puts the result in its place; false if it was cancelled or there is no
    /// such segment any more.
    ///
    /// # Errors
    /// `DiskFull`, `Io`, `Corrupt`: the growing segment stays, and nothing of the attempt is left.
    /// `Stopping`, `Poisoned`.
    ///
    /// Blocks: for a copy of the segment.
    pub(crate) fn seal(&self, id: Uuid, cancel: &dyn Fn() -> bool) -> Result<bool> {
        let view = self.view();
        let Some(since) = view.segments.iter().find(|s| s.segment().id() == id) else {
            return Ok(false);
        };
        let new_id = Uuid::new_v4();
        let name = new_id.to_string();
        let segments_dir = &self.shared.segments_dir;
        let dir = segments_dir.subdir(&name)?;
        let outcome = match sealed::seal::seal(since, &dir, cancel) {
            Ok(()) => sealed::open::open(dir, new_id, self.shared.spec.load_full())
                .map_err(EngineError::from)
                .and_then(|sealed| self.swap(since, sealed)),
            Err(SealError::Cancelled) => Ok(false),
            Err(SealError::Segment(error)) => Err(error.into()),
        };
        if !matches!(outcome, Ok(true)) {
            segments_dir.remove_subdir(&name)?;
        }
        outcome
    }

    fn swap(&self, since: &SegmentView, mut sealed: SegmentWriter) -> Result<bool> {
        for (field, schema) in self.view().schemas.iter() {
            sealed.add_field_index(field, parse_path(field)?, schema.field_type)?;
        }
        let (done, outcome) = bounded(1);
        let swap = Swap {
            since: since.clone(),
            sealed,
            done,
        };
        self.queue
            .send(Command::Swap(Box::new(swap)))
            .map_err(|_| EngineError::Stopping)?;
        outcome.recv().unwrap_or(Err(EngineError::Stopping))?;
        Ok(true)
    }
}

impl Segments {
    /// Puts a sealed segment in the place of the one it was made from. On an error the list is as it was.
    pub(super) fn swap(&mut self, since: &SegmentView, mut sealed: SegmentWriter) -> Result<()> {
        let id = since.segment().id();
        let Some(place) = self.writers.iter().position(|w| w.segment().id() == id) else {
            return Err(EngineError::Bug(format!("segment {id} is not in the list")));
        };
        self.drop_unlisted(&mut sealed);
        sealed.catch_up(since)?;
        self.writers[place] = sealed;
        Ok(())
    }

    /// Drops the indexes of fields that are not listed any more.
    fn drop_unlisted(&self, writer: &mut SegmentWriter) {
        let is_wanted = |field: &str, kind| {
            let schema = self.schemas.get(field);
            schema.is_some_and(|schema| schema.field_type == kind)
        };
        let unwanted: Vec<String> = writer
            .indexed_fields()
            .filter(|&(field, kind)| !is_wanted(field, kind))
            .map(|(field, _)| field.to_owned())
            .collect();
        for field in unwanted {
            writer.remove_field_index(&field);
        }
    }
}
