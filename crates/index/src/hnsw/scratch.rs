//! Memory that a search reuses: visited rows, the frontier, the best rows so far.

use std::collections::BinaryHeap;

use super::key::Key;
use crate::Row;

/// What the last search did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchStats {
    /// Rows scored.
    pub distances: u64,
    /// Rows whose links were followed.
    pub hops: u64,
}

/// Working memory of one search at a time; pool it, it grows to the graph's size and stays.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Rows that need no second look.
    pub(super) visited: Visited,
    /// Rows that fail the filter and were made candidates all the same (filtered search).
    pub(super) bridged: Visited,
    /// Scored rows whose links were not followed yet, and that do not stand in `best` (plain
    /// search); all of them (filtered search).
    pub(super) frontier: BinaryHeap<Key>,
    pub(super) best: Best,
    /// Rows of one expansion that are about to be scored.
    pub(super) fresh: Vec<Row>,
    /// Rows that fail the filter, kept for when the matching ones run out (filtered search).
    pub(super) deferred: Vec<Row>,
    pub(super) stats: SearchStats,
}

impl Scratch {
    /// Empty memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What the last search with this memory did.
    #[must_use]
    pub fn stats(&self) -> SearchStats {
        self.stats
    }

    /// Ready for a walk on one level that keeps the best `ef` rows.
    pub(super) fn begin(&mut self, ef: usize) {
        self.visited.clear();
        self.frontier.clear();
        self.best.begin(ef);
    }
}

/// A set of rows that is cleared in constant time.
///
/// One word for 32 rows: the upper half is the epoch in which the lower half, their bits, was
/// written. At a million rows that is 250 KB, which stays in the second-level cache.
#[derive(Debug)]
pub(super) struct Visited {
    words: Vec<u64>,
    epoch: u32,
}

impl Default for Visited {
    fn default() -> Self {
        // Fresh words carry epoch 0, so the first epoch in use is 1.
        Self {
            words: Vec::new(),
            epoch: 1,
        }
    }
}

impl Visited {
    pub(super) fn clear(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.words.fill(0);
            self.epoch = 1;
        }
    }

    /// Adds `row`; true if it was absent.
    #[inline]
    pub(super) fn insert(&mut self, row: Row) -> bool {
        let at = row as usize / 32;
        if at >= self.words.len() {
            self.grow(at);
        }
        let stamp = u64::from(self.epoch) << 32;
        let bit = 1_u64 << (row % 32);
        let word = self.words[at];
        let word = if word >> 32 == u64::from(self.epoch) {
            word
        } else {
            stamp
        };
        self.words[at] = word | bit;
        word & bit == 0
    }

    /// Adds `rows` and leaves in `new` those that were absent, in their order.
    ///
    /// About half of the rows that a walk meets are new and no branch predictor knows which, so
    /// every row is written and only the count depends on the answer.
    #[inline]
    pub(super) fn insert_all(&mut self, rows: impl Iterator<Item = Row>, new: &mut Vec<Row>) {
        /// A list of the default `m`; a longer one makes room as it goes.
        const ROOM: usize = 32;
        let mut count = 0;
        new.resize(ROOM, 0);
        for row in rows {
            if count == new.len() {
                new.push(0);
            }
            new[count] = row;
            count += usize::from(self.insert(row));
        }
        new.truncate(count);
    }

    /// Whether `row` is in the set.
    #[inline]
    pub(super) fn contains(&self, row: Row) -> bool {
        let word = self.words.get(row as usize / 32).copied().unwrap_or(0);
        word >> 32 == u64::from(self.epoch) && word & (1 << (row % 32)) != 0
    }

    #[cold]
    fn grow(&mut self, at: usize) {
        // By half, so that a growing segment does not resize at each new row.
        let len = (at + 1)
            .max(self.words.len() + self.words.len() / 2)
            .max(128);
        self.words.resize(len, 0);
    }
}

/// The best keys so far, at most `ef` of them, sorted best first; each is open until
/// its links are followed.
#[derive(Debug, Default)]
pub(super) struct Best {
    keys: Vec<Key>,
    /// For each key, whether its links were followed.
    is_followed: Vec<bool>,
    /// Where the best open key stands; past the end if there is none.
    open_from: usize,
    ef: usize,
    /// The key that a newcomer has to beat.
    bar: Key,
}

impl Best {
    fn begin(&mut self, ef: usize) {
        self.keys.clear();
        self.is_followed.clear();
        self.open_from = 0;
        self.ef = ef.max(1);
        self.bar = 0;
    }

    /// The key that a newcomer has to beat; 0, the worst of all, while there is room.
    #[inline]
    pub(super) fn bar(&self) -> Key {
        self.bar
    }

    pub(super) fn is_full(&self) -> bool {
        self.keys.len() >= self.ef
    }

    /// Adds a key that beats the [`bar`](Self::bar), open. Returns whether it is the best open one.
    #[inline]
    pub(super) fn insert(&mut self, key: Key) -> bool {
        if self.keys.len() == self.ef {
            self.keys.pop();
            self.is_followed.pop();
        }
        let at = self.keys.partition_point(|&other| other > key);
        self.keys.insert(at, key);
        self.is_followed.insert(at, false);
        if self.keys.len() == self.ef {
            self.bar = self.keys.last().copied().unwrap_or(0);
        }
        let is_first = at <= self.open_from;
        self.open_from = self.open_from.min(at);
        is_first
    }

    /// The best open key.
    #[inline]
    pub(super) fn peek_open(&self) -> Option<Key> {
        self.keys.get(self.open_from).copied()
    }

    /// Takes note that the links of the best open key are followed.
    #[inline]
    pub(super) fn follow_open(&mut self) {
        if let Some(is_followed) = self.is_followed.get_mut(self.open_from) {
            *is_followed = true;
        }
        while self.is_followed.get(self.open_from) == Some(&true) {
            self.open_from += 1;
        }
    }

    pub(super) fn keys(&self) -> &[Key] {
        &self.keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn visited_agrees_with_a_hash_set_over_many_epochs(
            rounds in proptest::collection::vec(proptest::collection::vec(0_u32..9000, 0..80), 1..6),
            start in prop_oneof![Just(1_u32), Just(u32::MAX - 2)],
        ) {
            let mut visited = Visited { words: Vec::new(), epoch: start };
            for rows in rounds {
                let mut model = HashSet::new();
                for row in rows {
                    prop_assert_eq!(visited.contains(row), model.contains(&row));
                    prop_assert_eq!(visited.insert(row), model.insert(row));
                }
                visited.clear();
            }
        }

        #[test]
        fn of_many_rows_those_that_are_new_come_out_in_order(
            rows in proptest::collection::vec(0_u32..200, 0..80),
        ) {
            let (mut one_by_one, mut at_once) = (Visited::default(), Visited::default());
            let expected: Vec<Row> =
                rows.iter().copied().filter(|&row| one_by_one.insert(row)).collect();
            let mut new = vec![7; 3];
            at_once.insert_all(rows.iter().copied(), &mut new);
            prop_assert_eq!(&new, &expected);
            at_once.insert_all(rows.iter().copied(), &mut new);
            prop_assert!(new.is_empty());
        }

        #[test]
        fn open_keys_come_out_best_first_each_once(
            keys in proptest::collection::vec(1_u64..1000, 0..60), ef in 1_usize..20, every in 1_usize..4,
        ) {
            let (mut best, mut followed) = (Best::default(), std::collections::HashSet::new());
            best.begin(ef);
            let open = |best: &Best, followed: &HashSet<Key>| {
                best.keys().iter().copied().find(|key| !followed.contains(key))
            };
            let mut seen = HashSet::new();
            for (i, &key) in keys.iter().enumerate() {
                if key > best.bar() && seen.insert(key) {
                    let is_first = best.insert(key);
                    prop_assert_eq!(is_first, open(&best, &followed) == Some(key));
                }
                if i % every == 0 {
                    prop_assert_eq!(best.peek_open(), open(&best, &followed));
                    followed.extend(best.peek_open());
                    best.follow_open();
                }
            }
        }

        #[test]
        fn best_keeps_the_largest_keys_in_order(
            keys in proptest::collection::vec(1_u64.., 0..60), ef in 1_usize..20,
        ) {
            let mut best = Best::default();
            best.begin(ef);
            for &key in &keys {
                if key > best.bar() {
                    best.insert(key);
                }
            }
            let mut sorted = keys;
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            sorted.truncate(ef);
            prop_assert_eq!(best.keys(), &sorted[..]);
        }
    }
}
