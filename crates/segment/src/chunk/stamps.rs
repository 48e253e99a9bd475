//! One number a row, set later and for few rows: pages that exist only where something was set.
//!
//! 512 rows share a page; pages hang in buckets of 1, 2, 4, ... pages, so that 24 pointers reach every
//! row and reading one takes two or three dependent loads. Pages and buckets are created on the first set
//! and never move.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Rows in a page: 4 KB of stamps, the price of one deletion far from all others.
const PAGE_ROWS: u32 = 512;

/// Buckets that reach every page: bucket b starts at page 2^b - 1, and the last page is 2^23 - 1.
const BUCKETS: usize = 24;

/// When a row was deleted: a sequence number, `u64::MAX` until set.
pub type StampPages = Pages<AtomicU64>;

/// The newest entry of a row's chain: its number, `u32::MAX` until set.
pub type HeadPages = Pages<AtomicU32>;

/// An atomic number with a value that means "not set".
pub trait Cell: Sized + Send + Sync {
    /// The number.
    type Value: Copy + PartialEq + fmt::Debug;
    /// What an unset cell reads as.
    const UNSET: Self::Value;
    /// An unset cell.
    fn unset() -> Self;
    /// Acquire load.
    fn load(&self) -> Self::Value;
    /// Release store.
    fn store(&self, value: Self::Value);
}

impl Cell for AtomicU64 {
    type Value = u64;
    const UNSET: u64 = u64::MAX;
    fn unset() -> Self {
        Self::new(Self::UNSET)
    }
    fn load(&self) -> u64 {
        self.load(Ordering::Acquire)
    }
    fn store(&self, value: u64) {
        self.store(value, Ordering::Release);
    }
}

impl Cell for AtomicU32 {
    type Value = u32;
    const UNSET: u32 = u32::MAX;
    fn unset() -> Self {
        Self::new(Self::UNSET)
    }
    fn load(&self) -> u32 {
        self.load(Ordering::Acquire)
    }
    fn store(&self, value: u32) {
        self.store(value, Ordering::Release);
    }
}

type Page<A> = OnceLock<Box<[A]>>;

/// Sparse pages of numbers by row. Lock-free; any thread may read and set.
pub struct Pages<A> {
    buckets: [OnceLock<Box<[Page<A>]>>; BUCKETS],
}

impl<A> fmt::Debug for Pages<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let buckets = self
            .buckets
            .iter()
            .filter(|bucket| bucket.get().is_some())
            .count();
        f.debug_struct("Pages")
            .field("buckets", &buckets)
            .finish_non_exhaustive()
    }
}

impl<A: Cell> Default for Pages<A> {
    fn default() -> Self {
        Self {
            buckets: std::array::from_fn(|_| OnceLock::new()),
        }
    }
}

impl<A: Cell> Pages<A> {
    /// Nothing set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The row's number, or the unset value. What was written before the `set` that is seen here is
    /// seen too.
    #[inline]
    #[must_use]
    pub fn get(&self, row: u32) -> A::Value {
        let (bucket, slot) = locate(row);
        let page = self.buckets[bucket]
            .get()
            .and_then(|pages| pages[slot].get());
        page.map_or(A::UNSET, |page| page[(row % PAGE_ROWS) as usize].load())
    }

    /// Sets the row's number.
    pub fn set(&self, row: u32, value: A::Value) {
        let (bucket, slot) = locate(row);
        let pages = self.buckets[bucket].get_or_init(|| boxed(1 << bucket, OnceLock::new));
        let page = pages[slot].get_or_init(|| boxed(PAGE_ROWS as usize, A::unset));
        page[(row % PAGE_ROWS) as usize].store(value);
    }

    /// Bytes of memory that the pages take.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        let buckets = self.buckets.iter().filter_map(OnceLock::get);
        buckets
            .map(|pages| {
                let made = pages.iter().filter(|page| page.get().is_some()).count();
                size_of_val::<[Page<A>]>(pages) + made * PAGE_ROWS as usize * size_of::<A>()
            })
            .sum::<usize>() as u64
    }

    /// Rows that are set, ascending, with their numbers. Sets that happen meanwhile may be in it or not.
    ///
    /// Cost: the pages that exist.
    pub fn iter(&self) -> impl Iterator<Item = (u32, A::Value)> + '_ {
        self.buckets
            .iter()
            .enumerate()
            .flat_map(|(bucket, pages)| {
                let pages = pages.get().map_or(&[][..], |pages| &**pages);
                pages.iter().enumerate().flat_map(move |(slot, page)| {
                    let page = page.get().map_or(&[][..], |page| &**page);
                    // At most 2^23 pages of 2^9 rows: the number of a row, as `set` was given it.
                    let first = ((1_u32 << bucket) - 1 + slot as u32) * PAGE_ROWS;
                    page.iter()
                        .enumerate()
                        .map(move |(i, cell)| (first + i as u32, cell.load()))
                })
            })
            .filter(|(_, value)| *value != A::UNSET)
    }
}

/// Bucket and slot of the page of a row.
#[inline]
fn locate(row: u32) -> (usize, usize) {
    let page = row / PAGE_ROWS + 1;
    let bucket = page.ilog2();
    (bucket as usize, (page - (1 << bucket)) as usize)
}

fn boxed<T>(len: usize, make: impl FnMut() -> T) -> Box<[T]> {
    std::iter::repeat_with(make).take(len).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn rows_far_apart_keep_their_numbers() {
        let pages = StampPages::new();
        assert_eq!((pages.get(0), pages.get(u32::MAX)), (u64::MAX, u64::MAX));
        pages.set(0, 1);
        pages.set(511, 2);
        pages.set(512, 3);
        pages.set(1 << 22, 4);
        assert_eq!(
            pages.iter().collect::<Vec<_>>(),
            [(0, 1), (511, 2), (512, 3), (1 << 22, 4)]
        );
        assert_eq!(pages.get(513), u64::MAX);
        assert_eq!(locate(u32::MAX), (BUCKETS - 1, 0));
        assert_eq!(
            locate(u32::MAX - PAGE_ROWS),
            (BUCKETS - 2, (1 << (BUCKETS - 2)) - 1)
        );
    }

    #[test]
    fn a_head_is_seen_with_what_was_written_before_it() {
        let (heads, stamps) = (HeadPages::new(), StampPages::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for row in 0..20_000 {
                    stamps.set(row, u64::from(row) + 7);
                    heads.set(row, row);
                }
            });
            for row in 0..20_000 {
                while heads.get(row) != row {
                    std::hint::spin_loop();
                }
                assert_eq!(stamps.get(row), u64::from(row) + 7);
            }
        });
    }

    proptest! {
        #[test]
        fn pages_agree_with_a_map(
            sets in proptest::collection::vec((0_u32..3_000_000, any::<u32>()), 0..60)
        ) {
            let (pages, mut map) = (HeadPages::new(), BTreeMap::new());
            for (row, value) in sets {
                pages.set(row, value);
                map.insert(row, value);
            }
            map.retain(|_, value| *value != u32::MAX);
            for row in map.keys().flat_map(|&row| [row, row + 1, row.saturating_sub(1)]) {
                prop_assert_eq!(pages.get(row), map.get(&row).copied().unwrap_or(u32::MAX));
            }
            prop_assert_eq!(pages.iter().collect::<BTreeMap<_, _>>(), map);
        }
    }
}
