//! Sets of rows as bits.

use flatwater_index::Row;

/// A set of rows below a fixed length, one bit a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowBits {
    /// Bits at and past `len` are 0.
    words: Vec<u64>,
    len: Row,
}

impl RowBits {
    /// Bytes of memory that the set takes.
    pub(crate) fn heap_bytes(&self) -> u64 {
        size_of_val::<[u64]>(&self.words) as u64
    }

    /// No row of [0, len).
    #[must_use]
    pub fn new(len: Row) -> Self {
        Self {
            words: vec![0; words_for(len)],
            len,
        }
    }

    /// Every row of [0, len).
    #[must_use]
    pub fn full(len: Row) -> Self {
        let mut bits = Self {
            words: vec![u64::MAX; words_for(len)],
            len,
        };
        bits.trim();
        bits
    }

    /// The length that rows are below.
    #[must_use]
    pub fn len(&self) -> Row {
        self.len
    }

    /// Whether no row is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// How many rows are in the set.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.words
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }

    /// Whether a row is in the set; a row past the length is not.
    #[must_use]
    pub fn contains(&self, row: Row) -> bool {
        self.words
            .get(row as usize / 64)
            .is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Adds a row; one past the length is left out.
    pub fn insert(&mut self, row: Row) {
        if row < self.len {
            self.words[row as usize / 64] |= 1 << (row % 64);
        }
    }

    /// Takes a row out.
    pub fn remove(&mut self, row: Row) {
        if row < self.len {
            self.words[row as usize / 64] &= !(1 << (row % 64));
        }
    }

    /// Adds the rows from `from` on.
    pub fn insert_from(&mut self, from: Row) {
        if from >= self.len {
            return;
        }
        let at = from as usize / 64;
        self.words[at] |= u64::MAX << (from % 64);
        self.words[at + 1..].fill(u64::MAX);
        self.trim();
    }

    /// Union with a set of the same length.
    pub fn or(&mut self, other: &Self) {
        self.combine(other, |a, b| a | b);
    }

    /// Intersection with a set of the same length.
    pub fn and(&mut self, other: &Self) {
        self.combine(other, |a, b| a & b);
    }

    /// Takes the rows of a set of the same length out.
    pub fn and_not(&mut self, other: &Self) {
        self.combine(other, |a, b| a & !b);
    }

    /// Turns the set into the rows that were not in it.
    pub fn invert(&mut self) {
        for word in &mut self.words {
            *word = !*word;
        }
        self.trim();
    }

    /// Union with a set whose row 0 is row `start` here; `start` is a multiple of 64.
    pub(crate) fn or_at(&mut self, start: Row, other: &Self) {
        self.or_words_at(start, other.words.iter().copied());
    }

    /// Union with words whose first bit is row `start` here; `start` is a multiple of 64.
    pub(crate) fn or_words_at(&mut self, start: Row, other: impl IntoIterator<Item = u64>) {
        debug_assert!(start.is_multiple_of(64), "words are united as wholes");
        let from = (start as usize / 64).min(self.words.len());
        for (word, other) in self.words[from..].iter_mut().zip(other) {
            *word |= other;
        }
        self.trim();
    }

    /// The bits, 64 rows a word.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// The rows of the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Row> + '_ {
        self.words
            .iter()
            .enumerate()
            .flat_map(|(at, word)| ones(*word, at as Row * 64))
    }

    fn combine(&mut self, other: &Self, f: impl Fn(u64, u64) -> u64) {
        assert_eq!(self.len, other.len, "sets of one segment have one length");
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word = f(*word, *other);
        }
    }

    fn trim(&mut self) {
        if let (Some(last), used @ 1..) = (self.words.last_mut(), self.len % 64) {
            *last &= u64::MAX >> (64 - used);
        }
    }
}

/// Words that `len` rows need.
pub(crate) fn words_for(len: Row) -> usize {
    len.div_ceil(64) as usize
}

/// The rows of one word whose first bit is row `base`.
pub(crate) fn ones(mut word: u64, base: Row) -> impl Iterator<Item = Row> {
    std::iter::from_fn(move || {
        if word == 0 {
            return None;
        }
        let bit = word.trailing_zeros();
        word &= word - 1;
        Some(base + bit)
    })
}

/// For each row, in how many of the sets added so far it is; kept as the binary digits of the
/// counts, so that adding a set costs a few word operations per 64 rows.
#[derive(Debug)]
pub(crate) struct RowCounts {
    /// `digits[i]` holds the rows whose count has bit i set.
    digits: Vec<RowBits>,
    len: Row,
}

impl RowCounts {
    pub(crate) fn new(len: Row) -> Self {
        Self {
            digits: Vec::new(),
            len,
        }
    }

    /// Counts the rows of a set once more.
    pub(crate) fn add(&mut self, rows: &RowBits) {
        let mut carry = rows.clone();
        for digit in &mut self.digits {
            for (sum, carry) in digit.words.iter_mut().zip(&mut carry.words) {
                (*sum, *carry) = (*sum ^ *carry, *sum & *carry);
            }
        }
        if !carry.is_empty() {
            self.digits.push(carry);
        }
    }

    /// The rows that were counted at least `count` times.
    pub(crate) fn at_least(&self, count: usize) -> RowBits {
        // From the highest digit down: `above` exceeds the digits of `count` seen so far, `equal`
        // has the same.
        let mut above = RowBits::new(self.len);
        let mut equal = RowBits::full(self.len);
        if usize::BITS - count.leading_zeros() > self.digits.len() as u32 {
            return above;
        }
        for (at, digit) in self.digits.iter().enumerate().rev() {
            if count >> at & 1 == 1 {
                equal.and(digit);
            } else {
                let mut more = equal.clone();
                more.and(digit);
                above.or(&more);
                equal.and_not(digit);
            }
        }
        above.or(&equal);
        above
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(len: Row, rows: &[Row]) -> RowBits {
        let mut bits = RowBits::new(len);
        rows.iter().for_each(|row| bits.insert(*row));
        bits
    }

    #[test]
    fn rows_past_the_length_are_never_in_a_set() {
        for len in [0, 1, 63, 64, 65, 200] {
            let mut bits = RowBits::full(len);
            assert_eq!(bits.count(), u64::from(len));
            bits.invert();
            assert!(bits.is_empty());
            bits.insert(len);
            bits.insert_from(len);
            bits.or_words_at(len / 64 * 64, [u64::MAX; 9]);
            assert!(!bits.contains(len) && !bits.contains(Row::MAX));
            assert_eq!(bits.count(), u64::from(len % 64));
            bits.insert_from(0);
            assert_eq!(bits, RowBits::full(len));
        }
    }

    proptest! {
        #[test]
        fn a_set_gives_back_the_rows_put_in(
            rows in proptest::collection::btree_set(0..300_u32, 0..40),
            from in 0..310_u32,
        ) {
            let mut bits = set(300, &rows.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(bits.iter().collect::<Vec<_>>(), rows.iter().copied().collect::<Vec<_>>());
            bits.insert_from(from);
            for row in 0..300 {
                prop_assert_eq!(bits.contains(row), row >= from || rows.contains(&row));
            }
        }

        #[test]
        fn counting_sets_equals_counting_rows_one_by_one(
            sets in proptest::collection::vec(proptest::collection::vec(0..100_u32, 0..60), 0..12),
        ) {
            let mut counts = RowCounts::new(100);
            let sets: Vec<_> = sets.iter().map(|rows| set(100, rows)).collect();
            sets.iter().for_each(|rows| counts.add(rows));
            for wanted in [0, 1, 2, 3, 5, 8, 13, usize::MAX] {
                let reached = counts.at_least(wanted);
                for row in 0..100 {
                    let count = sets.iter().filter(|rows| rows.contains(row)).count();
                    prop_assert_eq!(reached.contains(row), count >= wanted);
                }
            }
        }
    }
}
