//! Field indexes over what is stored already.
//!
//! 1. The writer logs the wish and lists the schema; reads use the plain filter for now.
//! 2. The background thread builds the index of each segment that lacks it, from views: neither reads nor
//!    writes wait for it. What is written meanwhile is taken in from later views.
//! 3. When little is left the writer takes the index over, adds the last rows, and publishes a view with it.
//!    Who asked with `wait` is answered when no segment lacks the index any more.
//!
//! A schema that is dropped meanwhile ends the build. After a kill the schema is in the log or the
//! manifest, and the index is built when the shard opens.

use crossbeam_channel::Sender;
use flatwater_segment::field::FieldType;
use flatwater_segment::growing::field_build::FieldBuild;
use flatwater_segment::growing::write::SegmentWriter;
use uuid::Uuid;

use super::Shard;
use super::apply::{Segments, parse_path};
use super::schema::FieldSchemas;
use super::view::ShardView;
use super::writer::Command;
use crate::error::Result;

/// Rows and payload changes that are left to the writer: a few milliseconds.
const HANDOVER_MAX: u64 = 1024;

/// Rounds after which the rest is left to the writer however much it is: each round takes in what was
/// written in the one before, so that there is less each time, unless writes outrun the build for good.
const ROUNDS_MAX: usize = 16;

/// An index that a segment lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MissingIndex {
    pub(crate) segment: Uuid,
    pub(crate) field: String,
    pub(crate) field_type: FieldType,
}

/// A built index on its way to the writer.
pub(super) struct Adoption {
    pub(super) segment: Uuid,
    pub(super) build: FieldBuild,
    /// Told how it went.
    pub(super) done: Sender<Result<()>>,
}

/// The first index that a segment of the view lacks.
pub(crate) fn missing_index(view: &ShardView) -> Option<MissingIndex> {
    view.segments.iter().find_map(|segment| {
        let mut schemas = view.schemas.iter();
        schemas.find_map(|(field, schema)| {
            let index = segment.fields().get(field);
            let is_there = index.is_some_and(|index| index.field_type() == schema.field_type);
            (!is_there).then(|| MissingIndex {
                segment: segment.segment().id(),
                field: field.clone(),
                field_type: schema.field_type,
            })
        })
    })
}

/// Builds the listed indexes that a segment lacks, on this thread: it is empty, or nobody writes to it yet.
pub(super) fn build_missing(writer: &mut SegmentWriter, schemas: &FieldSchemas) -> Result<()> {
    for (field, schema) in schemas {
        if lacks(writer, field, schema.field_type) {
            writer.add_field_index(field, parse_path(field)?, schema.field_type)?;
        }
    }
    Ok(())
}

fn lacks(writer: &SegmentWriter, field: &str, field_type: FieldType) -> bool {
    let wanted = (field, field_type);
    !writer.indexed_fields().any(|known| known == wanted)
}

fn is_wanted(schemas: &FieldSchemas, field: &str, field_type: FieldType) -> bool {
    schemas
        .get(field)
        .is_some_and(|schema| schema.field_type == field_type)
}

impl Shard {
    /// Builds an index and puts it in place; false if it was cancelled or is not wanted any more.
    ///
    /// # Errors
    /// `Corrupt`: those who wait for the index are told. `Stopping`.
    ///
    /// Blocks: for a read of the segment's payloads.
    pub(crate) fn build_index(
        &self,
        missing: &MissingIndex,
        cancel: &dyn Fn() -> bool,
    ) -> Result<bool> {
        let outcome = self.build_aside(missing, cancel);
        if let Err(error) = &outcome {
            let failed = Command::IndexFailed {
                field: missing.field.clone(),
                reason: error.to_string(),
            };
            // A writer that is gone has answered them.
            drop(self.queue.send(failed));
        }
        outcome
    }

    fn build_aside(&self, missing: &MissingIndex, cancel: &dyn Fn() -> bool) -> Result<bool> {
        let MissingIndex {
            segment,
            field,
            field_type,
        } = missing;
        let mut build = FieldBuild::new(field, parse_path(field)?, *field_type);
        let is_over = || cancel() || !is_wanted(&self.view().schemas, field, *field_type);
        for _ in 0..ROUNDS_MAX {
            let view = self.view();
            let Some(now) = view.segment(*segment) else {
                return Ok(false);
            };
            if !build.follow(now, &is_over)? {
                return Ok(false);
            }
            let view = self.view();
            if view
                .segment(*segment)
                .is_none_or(|now| build.behind(now) <= HANDOVER_MAX)
            {
                break;
            }
        }
        self.ask(|done| {
            Command::Adopt(Box::new(Adoption {
                segment: *segment,
                build,
                done,
            }))
        })?;
        Ok(true)
    }
}

impl Segments {
    /// Puts a built index in place, if its segment is still there and its schema as it was.
    pub(super) fn adopt(&mut self, id: Uuid, build: FieldBuild) -> Result<()> {
        if !is_wanted(&self.schemas, build.field(), build.field_type()) {
            return Ok(());
        }
        let mut writers = self.writers.iter_mut();
        match writers.find(|writer| writer.segment().id() == id) {
            Some(writer) => Ok(writer.adopt(build)?),
            None => Ok(()),
        }
    }

    /// Whether a segment lacks the index of a field that is to have one.
    pub(super) fn lacks_index(&self, field: &str) -> bool {
        let Some(schema) = self.schemas.get(field) else {
            return false;
        };
        let mut writers = self.writers.iter();
        writers.any(|writer| lacks(writer, field, schema.field_type))
    }
}
