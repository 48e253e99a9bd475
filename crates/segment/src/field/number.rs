//! The numbers of one block, sorted, with the rows of each.
//!
//! Integers of 64 bits with sign are matched and ranged over. Floats and larger integers never match
//! an integer, but ranges see them, so they are kept beside. The indexes of integers and of floats
//! hold the same numbers; they differ in what counts as a value of their own kind.

use std::ops::Range as Span;

use flatwater_index::Row;
use serde_json::Number;

use super::order::{Order, OrderValue, Visit};
use super::rows::RowBits;
use super::sorted::{SortedColumn, span};
use crate::payload::filter::Range;

/// The numbers of a block that is being collected, in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) integers: Vec<(i64, u16)>,
    pub(crate) wide: Vec<(u64, u16)>,
    pub(crate) floats: Vec<(f64, u16)>,
}

impl Numbers {
    /// Takes a number in; false if it is no integer of 64 bits with sign.
    pub(crate) fn take(&mut self, number: &Number, row: u16) -> bool {
        let integer = number.as_i64();
        if let Some(integer) = integer {
            self.integers.push((integer, row));
        } else if let Some(wide) = number.as_u64() {
            self.wide.push((wide, row));
        } else if let Some(float) = number.as_f64() {
            self.floats.push((float, row));
        }
        integer.is_some()
    }
}

/// Sorted, distinct integers and their rows; other numbers beside.
#[derive(Debug)]
pub(crate) struct NumberColumn {
    pub(crate) integers: SortedColumn<i64>,
    /// Integers above `i64::MAX`.
    wide: Box<[(u64, u16)]>,
    /// Numbers that were written as floats; never NaN, which JSON cannot spell.
    floats: Box<[(f64, u16)]>,
}

impl NumberColumn {
    /// Bytes of memory that it takes.
    pub(crate) fn heap_bytes(&self) -> u64 {
        let wide = size_of_val::<[(u64, u16)]>(&self.wide);
        let floats = size_of_val::<[(f64, u16)]>(&self.floats);
        (wide + floats) as u64 + self.integers.heap_bytes()
    }

    pub(crate) fn new(numbers: Numbers, block_len: Row) -> Self {
        let integers = SortedColumn::new(numbers.integers, block_len);
        Self::beside(integers, numbers.wide, numbers.floats)
    }

    fn beside(
        integers: SortedColumn<i64>,
        mut wide: Vec<(u64, u16)>,
        mut floats: Vec<(f64, u16)>,
    ) -> Self {
        wide.sort_unstable();
        floats.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        Self {
            integers,
            wide: wide.into(),
            floats: floats.into(),
        }
    }

    /// The column of consecutive blocks put together; `parts` gives each with its first row.
    pub(crate) fn merged(parts: &[(u16, &Self)], block_len: Row) -> Self {
        let integers: Vec<_> = parts
            .iter()
            .map(|(first_row, part)| (*first_row, &part.integers))
            .collect();
        let (mut wide, mut floats) = (Vec::new(), Vec::new());
        for (first_row, part) in parts {
            wide.extend(part.wide.iter().map(|(n, row)| (*n, row + first_row)));
            floats.extend(part.floats.iter().map(|(n, row)| (*n, row + first_row)));
        }
        Self::beside(SortedColumn::merged(&integers, block_len), wide, floats)
    }

    /// Adds the rows with a number in `range` to `out`.
    pub(crate) fn add_range(&self, range: &Range, out: &mut RowBits) {
        let spans = self.spans(range);
        self.integers.postings.add_rows(spans.integers, out);
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
        self.integers.postings.pairs(spans.integers) + spans.wide.len() + spans.floats.len()
    }

    /// Visits all numbers as floats.
    pub(super) fn walk_floats(&self, order: &Order, visit: Visit<'_>) {
        let of_integer = |key: &i64| OrderValue::float(*key as f64);
        self.integers.walk(order, of_integer, &mut *visit);
        order.walk(
            &self.wide,
            |(number, _)| OrderValue::float(*number as f64),
            |at, value| visit(value, Row::from(self.wide[at].1)),
        );
        order.walk(
            &self.floats,
            |(number, _)| OrderValue::float(*number),
            |at, value| visit(value, Row::from(self.floats[at].1)),
        );
    }

    fn spans(&self, range: &Range) -> Spans {
        Spans {
            integers: span(self.integers.keys(), range, |range, key| {
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
    integers: Span<usize>,
    wide: Span<usize>,
    floats: Span<usize>,
}
