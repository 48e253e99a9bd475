//! Building the index of a field beside the writer of its segment.
//!
//! 1. Any thread pushes the rows of one view, then what the next view shows more, as often as it likes:
//!    the writer goes on meanwhile and knows nothing of it.
//! 2. When little is left, the writer takes the index over ([`super::write::SegmentWriter::adopt`]), pushes
//!    the last rows itself, and the next view holds it.
//!
//! A row whose payload changed after it was pushed is marked, so the index says nothing about it.

use flatwater_index::Row;

use crate::error::SegmentError;
use crate::field::FieldType;
use crate::field::builder::FieldIndexBuilder;
use crate::ids::SeqNo;
use crate::parts::Segment;
use crate::payload::path::JsonPath;
use crate::view::SegmentView;

/// Rows between two looks at whether the work is still wanted.
const ROWS_PER_LOOK: Row = 256;

/// An index that is being built, and how far it is.
#[derive(Debug)]
pub struct FieldBuild {
    field: String,
    field_type: FieldType,
    builder: FieldIndexBuilder,
    /// Rows that were pushed.
    rows: Row,
    /// Payload versions that the pushed rows show, or are marked for.
    versions: u32,
}

impl FieldBuild {
    /// An index without rows.
    #[must_use]
    pub fn new(field: &str, path: JsonPath, field_type: FieldType) -> Self {
        Self {
            field: field.to_owned(),
            field_type,
            builder: FieldIndexBuilder::new(path, field_type),
            rows: 0,
            versions: 0,
        }
    }

    /// The field.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The kind of values.
    #[must_use]
    pub fn field_type(&self) -> FieldType {
        self.field_type
    }

    /// How many rows and payload changes of `view` are not in it yet.
    #[must_use]
    pub fn behind(&self, view: &SegmentView) -> u64 {
        let rows = view.rows_len().saturating_sub(self.rows);
        let versions = view.versions_len().saturating_sub(self.versions);
        u64::from(rows) + u64::from(versions)
    }

    /// Takes in what `view` shows more than the last one; all views are of one segment, each later than
    /// the one before. False if it was cancelled; the build is to be thrown away then.
    ///
    /// # Errors
    /// [`SegmentError::Corrupt`] if a stored payload does not check.
    pub fn follow(
        &mut self,
        view: &SegmentView,
        cancel: &dyn Fn() -> bool,
    ) -> Result<bool, SegmentError> {
        let to = Reached {
            rows: view.rows_len(),
            versions: view.versions_len(),
            seq: view.watermark(),
        };
        self.advance(view.segment(), to, cancel)
    }

    /// Takes in everything that the segment holds; called by its writer.
    pub(super) fn complete(mut self, segment: &Segment) -> Result<FieldIndexBuilder, SegmentError> {
        let to = Reached {
            rows: segment.rows_len(),
            versions: segment.payload().versions_len(),
            seq: SeqNo::MAX,
        };
        self.advance(segment, to, &|| false)?;
        Ok(self.builder)
    }

    fn advance(
        &mut self,
        segment: &Segment,
        to: Reached,
        cancel: &dyn Fn() -> bool,
    ) -> Result<bool, SegmentError> {
        // First the marks: rows that are pushed below show these changes already.
        for row in segment
            .payload()
            .rows_of_versions(self.versions, to.versions)
        {
            if row < self.rows {
                self.builder.mark_changed(row);
            }
        }
        self.versions = to.versions;
        for row in self.rows..to.rows {
            if row % ROWS_PER_LOOK == 0 && cancel() {
                return Ok(false);
            }
            let payload = segment.payload().payload_at(row, to.seq)?;
            self.builder.push(row, &payload);
            self.rows = row + 1;
        }
        Ok(true)
    }
}

/// A state of the segment.
struct Reached {
    rows: Row,
    versions: u32,
    seq: SeqNo,
}
