//! Field indexes: which rows hold which values under one payload path.
//!
//! How an index of a growing segment lives:
//! 1. The writer pushes each new row's payload into the [`builder::FieldIndexBuilder`]. Every 256
//!    rows become an immutable [`block::Block`]; 16 blocks of a size become one of the next.
//! 2. With each view the writer takes a [`FieldIndex`]: the list of blocks at that moment. Rows past
//!    them, the tail, are evaluated plainly by who reads the index.
//! 3. A payload change of a row that is in a block marks the row as changed there, before the view
//!    that shows the change is published. The block's answer for it no longer counts; the row is
//!    evaluated plainly too.
//! 4. A block with many changed rows is built anew from the current payloads and put in the place
//!    of the old one.
//!
//! A reader keeps the `FieldIndex` of its own view. What it says about rows that are not marked is
//! true in that view: a change that the view shows was marked in the very blocks that it holds, and
//! a mark that came later only makes the reader look at the payload, which its view supplies.
//! For this each view must carry the index as it is after the last `mark_changed` or `replace_block`
//! before it, never an older one.
//!
//! A sealed segment has one `FieldIndex` over all of its rows ([`builder::FieldIndexBuilder::finish`]).

pub mod rows;

pub mod order;

pub(crate) mod postings;

pub(crate) mod keyword;

pub(crate) mod sorted;

pub(crate) mod number;

pub(crate) mod uuid;

mod values;

pub mod block;

pub mod builder;

use std::sync::Arc;

use flatwater_index::Row;

use crate::payload::Payload;
use crate::payload::filter::FieldTest;
use crate::payload::path::JsonPath;
use block::Block;
use order::{Order, Visit};
use rows::RowBits;

/// What kind of values an index holds. Values of other kinds are known to it only as being there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldType {
    /// Strings, matched as a whole.
    Keyword,
    /// Integers of 64 bits, matched and ranged over. Floats are of another kind, ranges see them too.
    Integer,
    /// Numbers, ranged over; integers among them are matched too.
    Float,
    /// True and false, matched.
    Bool,
    /// Texts that spell a moment, ranged over.
    Datetime,
    /// Texts that spell a UUID, matched as texts.
    Uuid,
}

impl FieldType {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Keyword,
        Self::Integer,
        Self::Float,
        Self::Bool,
        Self::Datetime,
        Self::Uuid,
    ];
}

/// An index at one moment: immutable blocks over the rows [0, covered), each with its marks.
#[derive(Clone, Debug)]
pub struct FieldIndex {
    path: Arc<JsonPath>,
    field_type: FieldType,
    /// Side by side, from row 0 on.
    blocks: Vec<Arc<Block>>,
}

impl FieldIndex {
    /// The path whose values are indexed.
    #[must_use]
    pub fn path(&self) -> &JsonPath {
        &self.path
    }

    /// The kind of values that are indexed.
    #[must_use]
    pub fn field_type(&self) -> FieldType {
        self.field_type
    }

    /// The blocks, in the order of their rows.
    #[must_use]
    pub fn blocks(&self) -> &[Arc<Block>] {
        &self.blocks
    }

    /// Rows below this are in blocks; the others are to be evaluated plainly.
    #[must_use]
    pub fn covered(&self) -> Row {
        self.blocks.last().map_or(0, |block| block.rows().end)
    }

    /// Marks a row whose payload is about to change; false if no block holds it.
    ///
    /// Order: called by the segment's one writer, before the view with the change is published. In a
    /// growing segment use [`builder::FieldIndexBuilder::mark_changed`], which also knows the rows that
    /// are not in a block yet.
    pub fn mark_changed(&self, row: Row) -> bool {
        match block_of(&self.blocks, row) {
            Some(at) => self.blocks[at].mark_changed(row),
            None => false,
        }
    }

    /// Adds the rows that are marked as changed to `out`.
    pub fn changed_rows(&self, out: &mut RowBits) {
        for block in &self.blocks {
            block.changed_rows(out);
        }
    }

    /// Bytes of memory that it takes, its path apart.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        let blocks = self.blocks.iter();
        blocks.map(|block| block.heap_bytes()).sum()
    }

    /// How many rows are marked as changed.
    #[must_use]
    pub fn changed_count(&self) -> u64 {
        self.blocks
            .iter()
            .map(|block| u64::from(block.changed_count()))
            .sum()
    }

    /// Adds to `out` the rows that pass `test` among the unchanged rows of the blocks, exactly; None,
    /// with `out` as it was, if this index cannot answer that test.
    ///
    /// The caller has to decide itself about [`FieldIndex::changed_rows`] and the rows from
    /// [`FieldIndex::covered`] on. Rows past the end of `out` are left out.
    ///
    /// Cost: proportional to the matching values, at 16 bits or less a row.
    pub fn rows_matching(&self, test: &FieldTest, out: &mut RowBits) -> Option<()> {
        if !self.answers(test) {
            return None;
        }
        for block in &self.blocks {
            let mut rows = RowBits::new(block.rows().len() as u32);
            block.rows_matching(test, &mut rows);
            block.clear_changed(&mut rows);
            out.or_at(block.rows().start, &rows);
        }
        Some(())
    }

    /// Visits the values of unchanged rows of the blocks that `order` asks for, with their rows. Each of a
    /// few lists a block is walked in order, until `visit` breaks, then the next: break where a value
    /// is past all that are wanted. Nothing for kinds of values that have no order.
    ///
    /// The caller has to look itself at [`FieldIndex::changed_rows`] and the rows from
    /// [`FieldIndex::covered`] on.
    pub fn walk(&self, order: &Order, visit: Visit<'_>) {
        for block in &self.blocks {
            block.walk(order, &mut *visit);
        }
    }

    /// About how many rows of the blocks pass `test`, changed rows counted as they were; None where
    /// [`FieldIndex::rows_matching`] gives None. Never too low; exact for a single keyword, and for
    /// what every row has at most one value of.
    #[must_use]
    pub fn estimate(&self, test: &FieldTest) -> Option<u64> {
        let in_blocks = || {
            self.blocks
                .iter()
                .map(|block| u64::from(block.estimate(test)))
                .sum()
        };
        self.answers(test).then(in_blocks)
    }

    /// How many rows of the blocks hold a value of the indexed kind, changed rows counted as they
    /// were and dead rows counted too.
    #[must_use]
    pub fn points_with_field(&self) -> u64 {
        self.blocks
            .iter()
            .map(|block| u64::from(block.points_with_field()))
            .sum()
    }

    /// A fresh block for the rows of block `at`, built from the payloads that `payload_of` supplies,
    /// with no row marked; None if there is no such block.
    ///
    /// The old block stays right for those who hold it. The rows changed after the state that
    /// `payload_of` shows must be marked in the new block before it is put in place, by
    /// [`builder::FieldIndexBuilder::replace_block`] or [`FieldIndex::with_block`].
    pub fn rebuild_block(
        &self,
        at: usize,
        mut payload_of: impl FnMut(Row, &mut dyn FnMut(&Payload)),
    ) -> Option<Arc<Block>> {
        let rows = self.blocks.get(at)?.rows();
        let mut draft = block::Draft::new(rows.start, self.field_type);
        for row in rows {
            let mut pushed = false;
            payload_of(row, &mut |payload| {
                if !pushed {
                    draft.push(&self.path, payload);
                }
                pushed = true;
            });
            if !pushed {
                draft.push(&self.path, &Payload::new());
            }
        }
        Some(Arc::new(draft.freeze()))
    }

    /// This index with `block` in the place of the block over the same rows; None if there is none.
    #[must_use]
    pub fn with_block(&self, block: Arc<Block>) -> Option<Arc<Self>> {
        let mut index = self.clone();
        put_block(&mut index.blocks, block, self.field_type).then(|| Arc::new(index))
    }

    fn answers(&self, test: &FieldTest) -> bool {
        values::answers(self.field_type, test)
    }
}

/// Position of the block that holds `row`.
fn block_of(blocks: &[Arc<Block>], row: Row) -> Option<usize> {
    let at = blocks.partition_point(|block| block.rows().end <= row);
    (at < blocks.len()).then_some(at)
}

/// Replaces the block over exactly the same rows; false if there is none.
fn put_block(blocks: &mut [Arc<Block>], block: Arc<Block>, field_type: FieldType) -> bool {
    let same =
        |old: &&mut Arc<Block>| old.rows() == block.rows() && block.field_type() == field_type;
    match blocks.iter_mut().find(same) {
        Some(old) => {
            *old = block;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests;
