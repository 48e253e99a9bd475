//! Ids of a sealed segment: the newest row of each, in the order of ids.

use flatwater_index::Row;

use super::heads::RowHead;
use crate::ids::PointId;
use crate::mapped::MappedRows;

/// Rows sorted by the ids in their heads, one for each id.
#[derive(Debug)]
pub struct SortedIds {
    heads: MappedRows<u64>,
    /// `[ids]`: newest row of each id, ascending by id.
    rows: MappedRows<u32>,
}

impl SortedIds {
    /// The ids of `rows`, whose heads are `heads`. Both were verified.
    #[must_use]
    pub fn new(heads: MappedRows<u64>, rows: MappedRows<u32>) -> Self {
        Self { heads, rows }
    }

    /// The files, for verification.
    #[must_use]
    pub fn files(&self) -> [&crate::mapped::MappedFile; 2] {
        [self.heads.file(), self.rows.file()]
    }

    /// Number of rows.
    #[must_use]
    pub fn rows_len(&self) -> Row {
        self.heads.len() as Row
    }

    /// Head of a row; none where the bytes are no head.
    #[must_use]
    pub fn head(&self, row: Row) -> Option<RowHead> {
        RowHead::decode(self.heads.row(row.into()))
    }

    /// The newest row of `id`. Cost: a binary search, about `log2(ids)` heads are touched.
    #[must_use]
    pub fn newest(&self, id: PointId) -> Option<Row> {
        let at = self.lower_bound(id);
        let row = self.row_at(at)?;
        (self.id_of(row)? == id).then_some(row)
    }

    /// Calls `visit` with every id from `start` on, ascending, until it returns false.
    pub fn walk(&self, start: Option<PointId>, mut visit: impl FnMut(PointId, Row) -> bool) {
        let first = start.map_or(0, |id| self.lower_bound(id));
        for at in first..self.rows.len() {
            let Some(row) = self.row_at(at) else { return };
            if let Some(id) = self.id_of(row)
                && !visit(id, row)
            {
                return;
            }
        }
    }

    /// First place whose id is `id` or more.
    fn lower_bound(&self, id: PointId) -> u64 {
        let (mut low, mut high) = (0, self.rows.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let is_less = self
                .row_at(middle)
                .and_then(|row| self.id_of(row))
                .is_some_and(|found| found < id);
            if is_less {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn row_at(&self, at: u64) -> Option<Row> {
        let rows = self.rows.slice(at, at + 1);
        rows.first()
            .copied()
            .filter(|&row| u64::from(row) < self.heads.len())
    }

    fn id_of(&self, row: Row) -> Option<PointId> {
        self.head(row).map(|head| head.id)
    }
}
