//! The numbers of one block, sorted, with the rows of each.
//!
//! Integers of 64 bits with sign are the values proper: they are matched and ranged over. Floats and
//! larger integers never match an integer, but ranges see them, so they are kept beside.

use std::ops::Range as Span;

use flatwater_index::Row;

use super::postings::{Postings, PostingsBuilder};
use super::rows::RowBits;
use crate::payload::filter::{FieldTest, MatchValue, Range};

/// Whether an integer index decides `test`.
pub(crate) fn answers(test: &FieldTest) -> bool {
    let integer = |value: &MatchValue| matches!(value, MatchValue::Integer(_));
    match test {
        FieldTest::Value(value) => integer(value),
        FieldTest::Any(values) | FieldTest::Except(values) => values.iter().all(integer),
        FieldTest::Range(_) | FieldTest::IsEmpty(_) | FieldTest::IsNull(_) => true,
    }
}

/// The numbers of a block that is being collected, in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) integers: Vec<(i64, u16)>,
    pub(crate) wide: Vec<(u64, u16)>,
    pub(crate) floats: Vec<(f64, u16)>,
}

/// Sorted, distinct integers and their rows; other numbers beside.
#[derive(Debug)]
pub(crate) struct IntegerColumn {
    keys: Box<[i64]>,
    pub(crate) postings: Postings,
    /// Integers above `i64::MAX`.
    wide: Box<[(u64, u16)]>,
    /// Numbers that were written as floats; never NaN, which JSON cannot spell.
    floats: Box<[(f64, u16)]>,
}

impl IntegerColumn {
    pub(crate) fn new(mut numbers: Numbers, block_len: Row) -> Self {
        numbers.integers.sort_unstable();
        numbers.wide.sort_unstable();
        numbers
            .floats
            .sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut keys = Vec::new();
        let mut postings = PostingsBuilder::new(block_len);
        for same in numbers.integers.chunk_by(|a, b| a.0 == b.0) {
            keys.push(same[0].0);
            same.iter().for_each(|(_, row)| postings.push(*row));
            postings.end_value();
        }
        Self {
            keys: keys.into(),
            postings: postings.finish(),
            wide: numbers.wide.into(),
            floats: numbers.floats.into(),
        }
    }

    /// The column of consecutive blocks put together; `parts` gives each with its first row.
    pub(crate) fn merged(parts: &[(u16, &Self)], block_len: Row) -> Self {
        let mut numbers = Numbers::default();
        for (first_row, part) in parts {
            for (value, key) in part.keys.iter().enumerate() {
                part.postings
                    .for_each_row(value, |row| numbers.integers.push((*key, row + first_row)));
            }
            numbers
                .wide
                .extend(part.wide.iter().map(|(n, row)| (*n, row + first_row)));
            numbers
                .floats
                .extend(part.floats.iter().map(|(n, row)| (*n, row + first_row)));
        }
        Self::new(numbers, block_len)
    }

    /// Number of `integer` among the block's values.
    pub(crate) fn find(&self, integer: i64) -> Option<usize> {
        self.keys.binary_search(&integer).ok()
    }

    /// Adds the rows with a number in `range` to `out`.
    pub(crate) fn add_range(&self, range: &Range, out: &mut RowBits) {
        let spans = self.spans(range);
        self.postings.add_rows(spans.keys, out);
        self.wide[spans.wide]
            .iter()
            .for_each(|(_, row)| out.insert(Row::from(*row)));
        self.floats[spans.floats]
            .iter()
            .for_each(|(_, row)| out.insert(Row::from(*row)));
    }

    /// How many (number, row) pairs are in `range`.
    pub(crate) fn pairs_in(&self, range: &Range) -> usize {
        let spans = self.spans(range);
        self.postings.pairs(spans.keys) + spans.wide.len() + spans.floats.len()
    }

    fn spans(&self, range: &Range) -> Spans {
        Spans {
            keys: span(&self.keys, range, |range, key| {
                range.holds_integer(i128::from(*key))
            }),
            wide: span(&self.wide, range, |range, (n, _)| {
                range.holds_integer(i128::from(*n))
            }),
            floats: span(&self.floats, range, |range, (n, _)| range.holds_float(*n)),
        }
    }
}

/// What of each sorted list lies in a range.
struct Spans {
    keys: Span<usize>,
    wide: Span<usize>,
    floats: Span<usize>,
}

/// The part of a sorted list that lies in `range`: each bound alone cuts off one end.
fn span<T>(sorted: &[T], range: &Range, holds: impl Fn(&Range, &T) -> bool) -> Span<usize> {
    let (lower, upper) = (range.lower_bounds(), range.upper_bounds());
    let from = sorted.partition_point(|item| !holds(&lower, item));
    let to = sorted.partition_point(|item| holds(&upper, item));
    from..to.max(from)
}
