//! For each of a block's values, the rows that hold it.
//!
//! Values are known by their number in the block's sorted order. Rows are counted from the block's
//! first row and fit in 16 bits. A value of few rows lists them; one of many has a bitmap.

use super::rows::{RowBits, ones, words_for};
use flatwater_index::Row;
use std::ops::Range;

/// A value gets a bitmap if its list of 16-bit rows would be larger than one bit for every row.
const DENSE_SHARE: usize = 16;

/// The rows of each value of one block.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    /// Value v is listed in `rows[starts[v]..starts[v + 1]]`, ascending.
    starts: Box<[usize]>,
    rows: Box<[u16]>,
    /// Values that have a bitmap, ascending; their lists are empty.
    dense: Box<[(usize, Dense)]>,
}

#[derive(Debug)]
struct Dense {
    words: Box<[u64]>,
    count: u32,
}

/// Collects postings value by value.
#[derive(Debug)]
pub(crate) struct PostingsBuilder {
    block_len: Row,
    starts: Vec<usize>,
    rows: Vec<u16>,
    dense: Vec<(usize, Dense)>,
}

impl PostingsBuilder {
    /// For a block of `block_len` rows.
    pub(crate) fn new(block_len: Row) -> Self {
        Self {
            block_len,
            starts: vec![0],
            rows: Vec::new(),
            dense: Vec::new(),
        }
    }

    /// Adds a row to the value that is being collected; rows come ascending, repeats are dropped.
    pub(crate) fn push(&mut self, row: u16) {
        let start = self.starts.last().copied().unwrap_or(0);
        if self.rows[start..].last() != Some(&row) {
            self.rows.push(row);
        }
    }

    /// Ends the value that is being collected and begins the next.
    pub(crate) fn end_value(&mut self) {
        let start = self.starts.last().copied().unwrap_or(0);
        let count = self.rows.len() - start;
        if count * DENSE_SHARE > self.block_len as usize && count > DENSE_SHARE {
            let mut words = vec![0; words_for(self.block_len)].into_boxed_slice();
            for row in self.rows.drain(start..) {
                words[usize::from(row) / 64] |= 1_u64 << (row % 64);
            }
            self.dense.push((
                self.starts.len() - 1,
                Dense {
                    words,
                    count: count as u32,
                },
            ));
        }
        self.starts.push(self.rows.len());
    }

    pub(crate) fn finish(self) -> Postings {
        Postings {
            starts: self.starts.into(),
            rows: self.rows.into(),
            dense: self.dense.into(),
        }
    }
}

impl Postings {
    /// Bytes of memory that they take.
    pub(crate) fn heap_bytes(&self) -> u64 {
        let starts = size_of_val::<[usize]>(&self.starts);
        let rows = size_of_val::<[u16]>(&self.rows);
        let bitmaps = self.dense.iter();
        let bitmaps = bitmaps.map(|(_, dense)| size_of_val::<[u64]>(&dense.words));
        let dense = size_of_val::<[(usize, Dense)]>(&self.dense) + bitmaps.sum::<usize>();
        (starts + rows + dense) as u64
    }

    /// Adds the rows of the values `values` to `out`, whose row 0 is the block's first row.
    pub(crate) fn add_rows(&self, values: Range<usize>, out: &mut RowBits) {
        if values.is_empty() {
            return;
        }
        for row in self.listed(&values) {
            out.insert(Row::from(*row));
        }
        for (_, dense) in self.dense(&values) {
            out.or_words_at(0, dense.words.iter().copied());
        }
    }

    /// Calls `visit` with each row of one value, ascending.
    pub(crate) fn for_each_row(&self, value: usize, mut visit: impl FnMut(u16)) {
        let values = value..value + 1;
        self.listed(&values).iter().for_each(|row| visit(*row));
        for (_, dense) in self.dense(&values) {
            for (at, word) in dense.words.iter().enumerate() {
                // Rows of a block fit in 16 bits, see the module's head.
                ones(*word, at as Row * 64).for_each(|row| visit(row as u16));
            }
        }
    }

    /// How many (value, row) pairs these values have.
    pub(crate) fn pairs(&self, values: Range<usize>) -> usize {
        if values.is_empty() {
            return 0;
        }
        let dense: usize = self
            .dense(&values)
            .iter()
            .map(|(_, dense)| dense.count as usize)
            .sum();
        self.listed(&values).len() + dense
    }

    fn listed(&self, values: &Range<usize>) -> &[u16] {
        match (self.starts.get(values.start), self.starts.get(values.end)) {
            (Some(from), Some(to)) => &self.rows[*from..*to],
            _ => &[],
        }
    }

    fn dense(&self, values: &Range<usize>) -> &[(usize, Dense)] {
        let from = self
            .dense
            .partition_point(|(value, _)| *value < values.start);
        let to = self.dense.partition_point(|(value, _)| *value < values.end);
        &self.dense[from..to]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_bitmaps_give_the_same_rows_back() {
        let mut builder = PostingsBuilder::new(4096);
        let values: Vec<Vec<u16>> = vec![
            vec![4095],
            (0..4096).collect(),
            vec![],
            (0..4096).step_by(3).collect(),
            vec![0, 7, 4000],
        ];
        for rows in &values {
            rows.iter().for_each(|row| {
                builder.push(*row);
                builder.push(*row);
            });
            builder.end_value();
        }
        let postings = builder.finish();
        assert_eq!(
            postings.dense.len(),
            2,
            "two values are frequent enough for a bitmap"
        );
        for (value, rows) in values.iter().enumerate() {
            let mut found = Vec::new();
            postings.for_each_row(value, |row| found.push(row));
            assert_eq!(&found, rows);
            assert_eq!(postings.pairs(value..value + 1), rows.len());
            let mut bits = RowBits::new(4096);
            postings.add_rows(value..value + 1, &mut bits);
            assert_eq!(bits.iter().map(|row| row as u16).collect::<Vec<_>>(), *rows);
        }
        let mut bits = RowBits::new(4096);
        postings.add_rows(2..5, &mut bits);
        assert_eq!(
            bits.count(),
            1366 + 2,
            "row 0 stands in two of the values, 7 and 4000 in one"
        );
        postings.add_rows(7..9, &mut bits);
        assert_eq!(postings.pairs(5..5), 0);
    }
}
