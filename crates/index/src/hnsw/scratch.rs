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
    /// Scored rows whose links were not followed yet.
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

/// The best keys so far, at most `ef` of them, sorted best first.
#[derive(Debug, Default)]
pub(super) struct Best {
    keys: Vec<Key>,
    ef: usize,
}

impl Best {
    fn begin(&mut self, ef: usize) {
        self.keys.clear();
        self.ef = ef.max(1);
    }

    /// The key that a newcomer has to beat; 0, the worst of all, while there is room.
    #[inline]
    pub(super) fn bar(&self) -> Key {
        if self.keys.len() < self.ef {
            0
        } else {
            self.keys.last().copied().unwrap_or(0)
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.keys.len() >= self.ef
    }

    /// Adds a key that beats the [`bar`](Self::bar).
    #[inline]
    pub(super) fn insert(&mut self, key: Key) {
        if self.keys.len() == self.ef {
            self.keys.pop();
        }
        let at = self.keys.partition_point(|&other| other > key);
        self.keys.insert(at, key);
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
