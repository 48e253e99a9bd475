//! The keys of one block, sorted, with the rows of each.

use std::ops::{ControlFlow, Range as Span};

use flatwater_index::Row;

use super::order::{Order, OrderValue, Visit};
use super::postings::{Postings, PostingsBuilder};
use crate::payload::filter::Bounds;

/// Sorted, distinct keys of one size and their rows.
#[derive(Debug)]
pub(crate) struct SortedColumn<K> {
    keys: Box<[K]>,
    pub(crate) postings: Postings,
}

impl<K: Copy + Ord> SortedColumn<K> {
    /// Bytes of memory that it takes.
    pub(crate) fn heap_bytes(&self) -> u64 {
        size_of_val::<[K]>(&self.keys) as u64 + self.postings.heap_bytes()
    }

    /// From (key, row) pairs in any order.
    pub(crate) fn new(mut pairs: Vec<(K, u16)>, block_len: Row) -> Self {
        pairs.sort_unstable();
        let mut keys = Vec::new();
        let mut postings = PostingsBuilder::new(block_len);
        for same in pairs.chunk_by(|a, b| a.0 == b.0) {
            keys.push(same[0].0);
            same.iter().for_each(|(_, row)| postings.push(*row));
            postings.end_value();
        }
        Self {
            keys: keys.into(),
            postings: postings.finish(),
        }
    }

    /// The column of consecutive blocks put together; `parts` gives each with its first row.
    pub(crate) fn merged(parts: &[(u16, &Self)], block_len: Row) -> Self {
        let mut pairs = Vec::new();
        for (first_row, part) in parts {
            for (value, key) in part.keys.iter().enumerate() {
                part.postings
                    .for_each_row(value, |row| pairs.push((*key, row + first_row)));
            }
        }
        Self::new(pairs, block_len)
    }

    /// The keys, ascending; their places are the numbers of the values.
    pub(crate) fn keys(&self) -> &[K] {
        &self.keys
    }

    /// Visits the keys, as the values that they are ordered by, with their rows.
    pub(super) fn walk(
        &self,
        order: &Order,
        value_of: impl Fn(&K) -> Option<OrderValue>,
        visit: Visit<'_>,
    ) {
        order.walk(&self.keys, value_of, |at, value| {
            let mut flow = ControlFlow::Continue(());
            self.postings.for_each_row(at, |row| {
                if flow.is_continue() {
                    flow = visit(value, Row::from(row));
                }
            });
            flow
        });
    }

    /// Number of `key` among the block's values.
    pub(crate) fn find(&self, key: &K) -> Option<usize> {
        self.keys.binary_search(key).ok()
    }
}

/// The part of a sorted list that lies inside `bounds`: each bound alone cuts off one end.
pub(super) fn span<T, B: Copy>(
    sorted: &[T],
    bounds: &Bounds<B>,
    holds: impl Fn(&Bounds<B>, &T) -> bool,
) -> Span<usize> {
    let (lower, upper) = (bounds.lower_bounds(), bounds.upper_bounds());
    let from = sorted.partition_point(|item| !holds(&lower, item));
    let to = sorted.partition_point(|item| holds(&upper, item));
    from..to.max(from)
}
