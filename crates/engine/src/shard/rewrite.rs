//! Segments written anew, and their exchange for those they were made of.
//!
//! 1. The caller's thread writes the output from one view of the inputs, opens it, and builds the field
//!    indexes that are listed then (one that is listed later is built like any other, see `index`). Writes
//!    go on; what they do to the inputs' rows is stamped there as before.
//! 2. The writer thread takes over what was stamped since that view, puts the output into the list
//!    in place of the inputs, and publishes one view: a search sees the inputs or the output.
//! 3. The next checkpoint records the output and writes the manifest. Until that is done a
//!    restart finds the inputs and the log, and nothing is lost; then the inputs' files are removed.
//!
//! An input takes no rows: it is sealed, or full, or closed first.

use std::sync::Arc;

use crossbeam_channel::Sender;
use flatwater_index::Row;
use flatwater_index::hnsw::Workers;
use flatwater_segment::dir::Directory;
use flatwater_segment::growing::write::SegmentWriter;
use flatwater_segment::parts::spec::SegmentSpec;
use flatwater_segment::sealed;
use flatwater_segment::sealed::merge::Watch;
use flatwater_segment::sealed::merge::order::RowOrder;
use flatwater_segment::sealed::merge::size::output_bytes;
use flatwater_segment::sealed::seal::SealError;
use flatwater_segment::view::SegmentView;
use uuid::Uuid;

use super::Shard;
use super::apply::Segments;
use super::index::build_missing;
use super::writer::Command;
use crate::clock;
use crate::error::{EngineError, Result};

/// Bytes that background work leaves free for writes: about two log files of the default size.
const ROOM_LEFT_BYTES: u64 = 64 << 20;

/// Where the rows of the inputs went.
pub(super) enum Places {
    /// Rows of the one input have kept their numbers.
    Kept,
    /// The order of a merge.
    Merged(RowOrder),
}

impl Places {
    fn place(&self, input: usize, row: Row) -> Option<Row> {
        match self {
            Self::Kept => Some(row),
            Self::Merged(order) => order.place(input, row),
        }
    }
}

/// An output that waits for its place.
pub(super) struct Swap {
    /// The views that were read.
    pub(super) inputs: Vec<SegmentView>,
    /// Where their rows went.
    pub(super) places: Places,
    /// What was made of them, without what happened since; none if no row was alive.
    pub(super) output: Option<SegmentWriter>,
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
        let Some(inputs) = self.inputs(&[id]) else {
            return Ok(false);
        };
        let spec = self.spec();
        self.check_room(&inputs, &spec)?;
        self.replace(inputs, spec, |inputs, dir| {
            sealed::seal::seal(&inputs[0], dir, cancel)?;
            Ok(Places::Kept)
        })
    }

    /// Writes the live rows of `segments` as one sealed segment and puts it in their place; false if it was
    /// cancelled or one of them is not there any more. Graphs are made where `builds_graphs` says
    /// so or an input has one.
    ///
    /// # Errors
    /// As [`Shard::seal`].
    ///
    /// Blocks: for a copy of the segments and the build of the graphs.
    pub(crate) fn rewrite(
        &self,
        segments: &[Uuid],
        builds_graphs: bool,
        workers: &dyn Workers,
        watch: &dyn Watch,
    ) -> Result<bool> {
        for &id in segments {
            self.close(id)?;
        }
        let Some(inputs) = self.inputs(segments) else {
            return Ok(false);
        };
        if inputs.iter().all(|input| input.live_count() == 0) {
            let order = Places::Merged(RowOrder::of(&inputs));
            return self.swap(inputs, order, None);
        }
        let spec = self.spec();
        self.check_room(&inputs, &spec)?;
        self.replace(inputs, Arc::clone(&spec), |inputs, dir| {
            let order = sealed::merge::merge(inputs, &spec, builds_graphs, dir, workers, watch)?;
            Ok(Places::Merged(order))
        })
    }

    /// The disk gate: the output must fit beside its inputs, and leave room for writes.
    fn check_room(&self, inputs: &[SegmentView], spec: &SegmentSpec) -> Result<()> {
        let needed_bytes = output_bytes(inputs, spec).saturating_add(ROOM_LEFT_BYTES);
        let dir = &self.shared.segments_dir;
        if dir.free_bytes()? >= needed_bytes {
            return Ok(());
        }
        Err(EngineError::DiskFull {
            path: dir.path().to_path_buf(),
            needed_bytes,
        })
    }

    /// Views of these segments in one view of the shard; none if one is not there any more.
    fn inputs(&self, segments: &[Uuid]) -> Option<Vec<SegmentView>> {
        let view = self.view();
        let inputs = segments.iter().map(|&id| view.segment(id).cloned());
        inputs.collect()
    }

    /// Lets `write` make the output in a new folder, opens it and swaps it in.
    fn replace(
        &self,
        inputs: Vec<SegmentView>,
        spec: Arc<SegmentSpec>,
        write: impl FnOnce(
            &[SegmentView],
            &Arc<dyn Directory>,
        ) -> std::result::Result<Places, SealError>,
    ) -> Result<bool> {
        let new_id = clock::dated_id();
        let name = new_id.to_string();
        let segments_dir = &self.shared.segments_dir;
        let dir = segments_dir.subdir(&name)?;
        let outcome = match write(&inputs, &dir) {
            Ok(places) => sealed::open::open(dir, new_id, spec)
                .map_err(EngineError::from)
                .and_then(|output| self.swap(inputs, places, Some(output))),
            Err(SealError::Cancelled) => Ok(false),
            Err(SealError::Segment(error)) => Err(error.into()),
        };
        if !matches!(outcome, Ok(true)) {
            segments_dir.remove_subdir(&name)?;
        }
        outcome
    }

    fn swap(
        &self,
        inputs: Vec<SegmentView>,
        places: Places,
        mut output: Option<SegmentWriter>,
    ) -> Result<bool> {
        if let Some(output) = &mut output {
            build_missing(output, &self.view().schemas)?;
        }
        self.ask(|done| {
            Command::Swap(Box::new(Swap {
                inputs,
                places,
                output,
                done,
            }))
        })?;
        Ok(true)
    }

    /// Lets a growing segment take no more rows; they go to the next one.
    fn close(&self, segment: Uuid) -> Result<()> {
        self.ask(|done| Command::Close { segment, done })
    }
}

impl Segments {
    /// Closes a segment, if it is there.
    pub(super) fn close(&mut self, id: Uuid) {
        let mut segments = self.writers.iter().map(SegmentWriter::segment);
        if let Some(segment) = segments.find(|segment| segment.id() == id) {
            segment.close();
        }
    }

    /// Puts an output in the place of its inputs. On an error the list is as it was.
    pub(super) fn swap(
        &mut self,
        inputs: &[SegmentView],
        places: &Places,
        mut output: Option<SegmentWriter>,
    ) -> Result<()> {
        let ids: Vec<Uuid> = inputs.iter().map(|input| input.segment().id()).collect();
        let is_input = |writer: &SegmentWriter| ids.contains(&writer.segment().id());
        if self
            .writers
            .iter()
            .filter(|writer| is_input(writer))
            .count()
            != ids.len()
        {
            return Err(EngineError::Bug(format!(
                "not all of {ids:?} are in the list"
            )));
        }
        if let Some(output) = &mut output {
            self.drop_unlisted(output);
            for (index, input) in inputs.iter().enumerate() {
                output.catch_up(input, &|row| places.place(index, row))?;
            }
        }
        // Where the first of them stood: the list is from old to new.
        let place = self.writers.iter().position(is_input).unwrap_or_default();
        self.writers.retain(|writer| !is_input(writer));
        if let Some(output) = output {
            self.writers.insert(place, output);
        }
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
