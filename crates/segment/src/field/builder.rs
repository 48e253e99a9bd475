//! Filling the index of a growing segment.
//!
//! 1. Pushed rows are collected in a draft; 256 of them are frozen into a block.
//! 2. When the last 16 blocks have the same size, they are merged into one, up to 65,536 rows. So a
//!    row is merged twice in its life, and n rows are at most n / 65,536 + 30 blocks.
//! 3. A row that changes while it is in the draft is marked when its block is frozen: the draft
//!    holds its old values.

use std::sync::Arc;

use flatwater_index::Row;

use super::block::{Block, Draft};
use super::{FieldIndex, FieldType, put_block};
use crate::payload::Payload;
use crate::payload::path::JsonPath;

/// Rows of the smallest block. The tail that readers evaluate plainly is shorter than this.
pub const BLOCK_ROWS_MIN: usize = 256;

/// Rows of the largest block: rows inside a block are numbered in 16 bits.
pub const BLOCK_ROWS_MAX: usize = 65_536;

/// How many blocks of one size become one of the next.
const MERGE_COUNT: usize = 16;

const _: () = assert!(BLOCK_ROWS_MIN * MERGE_COUNT * MERGE_COUNT == BLOCK_ROWS_MAX);
const _: () = assert!(
    BLOCK_ROWS_MIN.is_multiple_of(64),
    "blocks begin at whole words of row bits"
);

/// Builds the index of a segment row by row. Owned by the segment's writer.
#[derive(Debug)]
pub struct FieldIndexBuilder {
    draft: Draft,
    /// Rows of the draft that changed after they were pushed.
    draft_changed: Vec<Row>,
    index: Arc<FieldIndex>,
}

impl FieldIndexBuilder {
    /// An index without rows.
    #[must_use]
    pub fn new(path: JsonPath, field_type: FieldType) -> Self {
        let index = FieldIndex {
            path: Arc::new(path),
            field_type,
            blocks: Vec::new(),
        };
        Self {
            draft: Draft::new(0, field_type),
            draft_changed: Vec::new(),
            index: Arc::new(index),
        }
    }

    /// Adds the next row; a row without the field is pushed as well.
    ///
    /// # Panics
    /// If `row` is not the number of rows pushed so far.
    ///
    /// Cost: amortised, about the size of its values times three; the push that fills a block of
    /// 65,536 rows pays for merging it.
    pub fn push(&mut self, row: Row, payload: &Payload) {
        assert_eq!(
            row,
            self.draft.next_row(),
            "rows are pushed in order, without gaps"
        );
        self.draft.push(&self.index.path, payload);
        if self.draft.len() == BLOCK_ROWS_MIN {
            self.freeze();
        }
    }

    /// Marks a row whose payload is about to change after it was pushed.
    ///
    /// Order: before the view with the change is published, which carries a snapshot taken after
    /// this call.
    pub fn mark_changed(&mut self, row: Row) {
        if !self.index.mark_changed(row) && row < self.draft.next_row() {
            self.draft_changed.push(row);
        }
    }

    /// Puts a rebuilt block in the place of the one over the same rows; false if that one has been
    /// merged into a larger block meanwhile. See [`FieldIndex::rebuild_block`] for what to mark first.
    pub fn replace_block(&mut self, block: Arc<Block>) -> bool {
        let mut index = FieldIndex::clone(&self.index);
        let replaced = put_block(&mut index.blocks, block, index.field_type);
        if replaced {
            self.index = Arc::new(index);
        }
        replaced
    }

    /// The index as it is now; a reference count, no copy.
    #[must_use]
    pub fn snapshot(&self) -> Arc<FieldIndex> {
        Arc::clone(&self.index)
    }

    /// The index over all rows pushed, for a segment that takes no more.
    #[must_use]
    pub fn finish(mut self) -> Arc<FieldIndex> {
        if self.draft.len() > 0 {
            self.freeze();
        }
        self.index
    }

    fn freeze(&mut self) {
        let next = Draft::new(self.draft.next_row(), self.index.field_type);
        let block = std::mem::replace(&mut self.draft, next).freeze();
        for row in self.draft_changed.drain(..) {
            block.mark_changed(row);
        }
        // Readers hold the old list; the blocks in it are shared.
        let mut index = FieldIndex::clone(&self.index);
        index.blocks.push(Arc::new(block));
        while let Some(merged) = merge_last(&index.blocks) {
            index.blocks.truncate(index.blocks.len() - MERGE_COUNT);
            index.blocks.push(Arc::new(merged));
        }
        self.index = Arc::new(index);
    }
}

/// The last blocks as one, if enough of them have the same size and it is not the largest.
fn merge_last(blocks: &[Arc<Block>]) -> Option<Block> {
    let last = &blocks[blocks.len().checked_sub(MERGE_COUNT)?..];
    let size = last[0].len();
    let same = last.iter().all(|block| block.len() == size);
    if !same || size as usize * MERGE_COUNT > BLOCK_ROWS_MAX {
        return None;
    }
    Block::merged(last)
}
