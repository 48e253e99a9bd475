//! What one read sees of a segment: its first `len` rows as they were at `watermark`.

use std::sync::Arc;

use flatwater_index::Row;

use crate::chunk::BlobPos;
use crate::error::SegmentError;
use crate::field::rows::RowBits;
use crate::ids::{PointId, SeqNo};
use crate::mask::{Mask, RowSource};
use crate::parts::Segment;
use crate::parts::column::{ABSENT, VectorColumn};
use crate::parts::fields::FieldIndexes;
use crate::payload::Payload;
use crate::payload::eval::CompiledFilter;
use crate::payload::filter::{Condition, Filter};

/// An immutable view of a segment. Cloning it copies two pointers.
#[derive(Clone, Debug)]
pub struct SegmentView {
    pub(crate) segment: Arc<Segment>,
    pub(crate) len: Row,
    pub(crate) live: u64,
    pub(crate) watermark: SeqNo,
    pub(crate) versions_len: u32,
    pub(crate) blobs_end: BlobPos,
    pub(crate) fields: Arc<FieldIndexes>,
}

impl SegmentView {
    /// The segment behind the view.
    #[must_use]
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Rows in the view, dead ones too.
    #[must_use]
    pub fn rows_len(&self) -> Row {
        self.len
    }

    /// Live points in the view, exact.
    #[must_use]
    pub fn live_count(&self) -> u64 {
        self.live
    }

    /// Every operation up to this `seq` is in the view, none after it.
    #[must_use]
    pub fn watermark(&self) -> SeqNo {
        self.watermark
    }

    /// Payload versions in the view.
    #[must_use]
    pub fn versions_len(&self) -> u32 {
        self.versions_len
    }

    /// Field indexes by payload path.
    #[must_use]
    pub fn fields(&self) -> &FieldIndexes {
        &self.fields
    }

    /// Whether a row is a point of this view.
    #[inline]
    #[must_use]
    pub fn is_live(&self, row: Row) -> bool {
        row < self.len && self.segment.deleted.get(row) > self.watermark
    }

    /// The row of a point in this view.
    #[must_use]
    pub fn row_of_point(&self, id: PointId) -> Option<Row> {
        self.row_behind(self.segment.points.newest(id)?)
    }

    /// The live row of the view that `newest`, the newest row of an id, leads back to.
    fn row_behind(&self, newest: Row) -> Option<Row> {
        let mut row = newest;
        while row >= self.len {
            row = self.segment.head(row).previous?;
        }
        self.is_live(row).then_some(row)
    }

    /// Calls `visit` with the points of the view from id `start` on, ascending by id, until it
    /// returns false.
    pub fn walk_points(&self, start: Option<PointId>, mut visit: impl FnMut(PointId, Row) -> bool) {
        self.segment.points.walk(start, |id, newest| {
            self.row_behind(newest).is_none_or(|row| visit(id, row))
        });
    }

    /// The payload of a row in this view.
    ///
    /// # Errors
    /// [`SegmentError::Corrupt`] if the stored bytes do not check.
    pub fn payload_of(&self, row: Row) -> Result<Payload, SegmentError> {
        self.segment.payload.payload_at(row, self.watermark)
    }

    /// `seq` of the last change of a row in this view, its payload included.
    #[must_use]
    pub fn version_of(&self, row: Row) -> SeqNo {
        self.segment
            .head(row)
            .seq
            .max(self.segment.payload.seq_at(row, self.watermark))
    }

    /// The vectors of a row by name, in the order of names.
    pub fn vectors_of(&self, row: Row) -> impl Iterator<Item = (&str, &[f32])> {
        self.segment
            .columns
            .iter()
            .filter(move |column| column.has(row, self.watermark))
            .map(move |column| (column.spec().name.as_str(), column.originals().row(row)))
    }

    /// One vector of a row.
    #[must_use]
    pub fn vector_of(&self, row: Row, column: usize) -> Option<&[f32]> {
        let column = self.segment.columns.get(column)?;
        column
            .has(row, self.watermark)
            .then(|| column.originals().row(row))
    }

    fn column_of(&self, name: &str) -> Option<&VectorColumn> {
        let place = self.segment.spec.vector_index(name)?;
        self.segment.columns.get(place).map(|column| &**column)
    }

    /// Live points that have a value under an indexed field; 0 without an index of that name.
    #[must_use]
    pub fn points_with_field(&self, field: &str) -> u64 {
        let has_value = Filter {
            must_not: vec![Condition::IsEmpty(field.to_owned())],
            ..Filter::default()
        };
        match CompiledFilter::new(&has_value) {
            Ok(filter) if self.fields.contains_key(field) => {
                Mask::build(&filter, &self.fields, self).count_live(|row| self.is_live(row))
            }
            _ => 0,
        }
    }

    /// Vectors at place `column` that were deleted from points which live on.
    ///
    /// Cost: the rows without that vector.
    #[must_use]
    pub fn deleted_vectors(&self, column: usize) -> u64 {
        let Some(column) = self.segment.columns.get(column) else {
            return 0;
        };
        let deleted = column.stamped_rows().filter(|&(row, stamp)| {
            stamp != ABSENT && stamp <= self.watermark && self.is_live(row)
        });
        deleted.count() as u64
    }

    /// Live vectors at place `column`, exact.
    ///
    /// Cost: the rows without that vector.
    #[must_use]
    pub fn live_vectors(&self, column: usize) -> u64 {
        let column = self.segment.columns.get(column);
        column.map_or(0, |column| self.live - self.live_without(column, self.len))
    }

    /// Live vectors at place `column` that its graph covers.
    ///
    /// Cost: the dead rows, and the rows without that vector.
    #[must_use]
    pub fn indexed_vectors_of(&self, column: usize) -> u64 {
        let column = self.segment.columns.get(column);
        column.map_or(0, |column| self.covered(column, &self.dead_rows()))
    }

    /// Live vectors that the graphs cover, all names together.
    #[must_use]
    pub fn indexed_vectors(&self) -> u64 {
        let dead = self.dead_rows();
        let columns = self.segment.columns.iter();
        columns.map(|column| self.covered(column, &dead)).sum()
    }

    fn dead_rows(&self) -> Vec<Row> {
        let stamped = self.segment.deleted.iter();
        stamped
            .filter(|&(row, stamp)| row < self.len && stamp <= self.watermark)
            .map(|(row, _)| row)
            .collect()
    }

    fn covered(&self, column: &VectorColumn, dead: &[Row]) -> u64 {
        let end = column.indexed_len().min(self.len);
        let dead_rows = dead.iter().filter(|&&row| row < end).count() as u64;
        u64::from(end) - dead_rows - self.live_without(column, end)
    }

    /// Live rows below `end` that have no vector in this column.
    fn live_without(&self, column: &VectorColumn, end: Row) -> u64 {
        let without = column
            .stamped_rows()
            .filter(|&(row, stamp)| row < end && stamp <= self.watermark && self.is_live(row));
        without.count() as u64
    }
}

impl RowSource for SegmentView {
    fn len(&self) -> Row {
        self.len
    }

    fn id(&self, row: Row) -> PointId {
        self.segment.head(row).id
    }

    fn payload(&self, row: Row, f: &mut dyn FnMut(&Payload)) {
        // A damaged payload matches nothing here; reading the point reports the damage.
        if let Ok(payload) = self.payload_of(row) {
            f(&payload);
        }
    }

    fn row_of(&self, id: PointId) -> Option<Row> {
        self.row_of_point(id)
    }

    fn has_vector(&self, row: Row, name: &str) -> bool {
        self.column_of(name)
            .is_some_and(|column| column.has(row, self.watermark))
    }

    fn rows_with_vector(&self, name: &str) -> RowBits {
        let Some(column) = self.column_of(name) else {
            return RowBits::new(self.len);
        };
        let mut rows = RowBits::full(self.len);
        let without = column
            .stamped_rows()
            .filter(|&(_, stamp)| stamp <= self.watermark);
        without.for_each(|(row, _)| rows.remove(row));
        rows
    }
}
