//! The links of all rows: fixed slots in pages that never move.
//!
//! A row has `2m` slots on level 0 and `m` on each upper level it is on. Rows come in pages of
//! [`PAGE_ROWS`]; a page is made whole, behind a `OnceLock`, before its first row is linked, and
//! since levels are a hash of the row, the place of its upper slots is known then too.
//!
//! A list is the slots before the first [`EMPTY`]. One writer at a time rewrites a list from the
//! back to the front while readers walk it from the front: each slot they see is a row of the old
//! or of the new list, and an entry that moved to a later slot is never missed. On level 0 the
//! list has three parts, whose lengths are the row's [`Shape`]: tree links (never pruned and never
//! moved), links known to be diverse among one another, and links appended since the last prune.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::levels::Levels;
use super::params::Params;
use super::search::LinkRead;
use super::select::Standing;
use crate::Row;
use crate::distance::prefetch;

/// Marks a free slot; no row has this number.
pub(super) const EMPTY: Row = Row::MAX;

/// Rows of a page: 512 KiB of level-0 slots at m 16. Smaller pages make the table longer, larger
/// ones waste more behind the last row.
const PAGE_ROWS: usize = 4096;

/// Slots in a cache line of 64 bytes; a row's level-0 slots start at a line.
const LINE_SLOTS: usize = 16;

/// Lengths of the three parts of a level-0 list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// Links to the parent and to the children, in front.
    pub(super) tree: usize,
    /// Links after them that the last prune found diverse among one another.
    pub(super) diverse: usize,
}

impl Shape {
    const BITS: u32 = 10;
    const MASK: u32 = (1 << Self::BITS) - 1;

    #[expect(
        clippy::cast_possible_truncation,
        reason = "both are at most 2 * M_MAX, ten bits"
    )]
    pub(super) fn pack(self) -> u32 {
        debug_assert!(
            self.tree.max(self.diverse) <= Self::MASK as usize,
            "fits ten bits"
        );
        self.tree as u32 | ((self.diverse as u32) << Self::BITS)
    }

    /// What the builder knows of the link at `place` of a level-0 list.
    #[inline]
    pub(super) fn standing(self, place: usize) -> Standing {
        match place {
            _ if place < self.tree => Standing::Tree,
            _ if place < self.tree + self.diverse => Standing::Diverse,
            _ => Standing::Open,
        }
    }

    /// The lengths in a list that is sorted by standing.
    pub(super) fn of(list: &[(Row, Standing)]) -> Self {
        let count = |of| list.iter().filter(|&&(_, standing)| standing == of).count();
        Self {
            tree: count(Standing::Tree),
            diverse: count(Standing::Diverse),
        }
    }

    pub(super) fn unpack(bits: u32) -> Self {
        Self {
            tree: (bits & Self::MASK) as usize,
            diverse: (bits >> Self::BITS & Self::MASK) as usize,
        }
    }
}

const _: () = assert!(2 * super::params::M_MAX <= Shape::MASK as usize);

#[derive(Debug)]
pub(super) struct Links {
    params: Params,
    levels: Levels,
    /// Slots from one row's level-0 list to the next: whole cache lines.
    stride: usize,
    rows_max: Row,
    pages: Box<[OnceLock<Page>]>,
}

#[derive(Debug)]
struct Page {
    base: Box<[AtomicU32]>,
    /// First slot of `base` that lies at the start of a cache line.
    base_start: usize,
    shapes: Box<[AtomicU32]>,
    /// For each row, the upper lists of this page's rows before it.
    upper_before: Box<[u32]>,
    upper: Box<[AtomicU32]>,
}

impl Links {
    pub(super) fn new(params: Params, rows_max: Row) -> Self {
        Self::with_levels(params, rows_max, Levels::new(params.m, params.seed))
    }

    /// Empty lists of rows on the given levels.
    pub(super) fn with_levels(params: Params, rows_max: Row, levels: Levels) -> Self {
        let pages = (rows_max as usize).div_ceil(PAGE_ROWS);
        Self {
            params,
            levels,
            stride: params.links_max(0).next_multiple_of(LINE_SLOTS),
            rows_max,
            pages: (0..pages).map(|_| OnceLock::new()).collect(),
        }
    }

    pub(super) fn rows_max(&self) -> Row {
        self.rows_max
    }

    /// Bytes of memory that the pages and their table take.
    pub(super) fn heap_bytes(&self) -> u64 {
        let made = self.pages.iter().filter_map(OnceLock::get);
        let slots: usize = made
            .map(|page| {
                page.base.len() + page.shapes.len() + page.upper_before.len() + page.upper.len()
            })
            .sum();
        (size_of_val::<[OnceLock<Page>]>(&self.pages) + slots * size_of::<u32>()) as u64
    }

    /// Highest level of `row`.
    pub(super) fn level_of(&self, row: Row) -> usize {
        self.levels.of(row)
    }

    /// Makes the pages of `rows`; must come before the first write to any of them.
    pub(super) fn reserve(&self, rows: std::ops::Range<Row>) {
        assert!(
            rows.end <= self.rows_max,
            "rows beyond the capacity given to Hnsw::new"
        );
        let first = rows.start as usize / PAGE_ROWS;
        let last = (rows.end as usize).div_ceil(PAGE_ROWS);
        for page in first..last {
            self.pages[page].get_or_init(|| self.new_page(page));
        }
    }

    fn new_page(&self, page: usize) -> Page {
        let start = page * PAGE_ROWS;
        let rows = PAGE_ROWS.min(self.rows_max as usize - start);
        let mut lists = 0_u32;
        let upper_before: Box<[u32]> = (start..start + rows)
            .map(|row| {
                let before = lists;
                lists += self.levels.of(row as Row) as u32;
                before
            })
            .collect();
        let base = slots(rows * self.stride + LINE_SLOTS);
        // `align_offset` may refuse by saying `usize::MAX`; lists then straddle lines, no more.
        let base_start = base.as_ptr().align_offset(LINE_SLOTS * size_of::<u32>()) % LINE_SLOTS;
        Page {
            base,
            base_start,
            shapes: (0..rows).map(|_| AtomicU32::new(0)).collect(),
            upper_before,
            upper: slots(lists as usize * self.params.m),
        }
    }

    /// The slots of `row` on `level`; none where the row has no page or is not on that level.
    #[inline]
    pub(super) fn slots(&self, level: usize, row: Row) -> &[AtomicU32] {
        let (page, at) = (row as usize / PAGE_ROWS, row as usize % PAGE_ROWS);
        let Some(page) = self.pages.get(page).and_then(OnceLock::get) else {
            return &[];
        };
        if level == 0 {
            // Counted in whole lists: the slack that aligns the first list may lie behind the
            // last, and is nobody's list.
            if at >= page.shapes.len() {
                return &[];
            }
            let start = page.base_start + at * self.stride;
            page.base
                .get(start..start + 2 * self.params.m)
                .unwrap_or(&[])
        } else {
            self.upper_slots(page, level, row).unwrap_or(&[])
        }
    }

    fn upper_slots<'a>(&self, page: &'a Page, level: usize, row: Row) -> Option<&'a [AtomicU32]> {
        if level > self.levels.of(row) {
            return None;
        }
        let before = *page.upper_before.get(row as usize % PAGE_ROWS)? as usize;
        let start = (before + level - 1) * self.params.m;
        page.upper.get(start..start + self.params.m)
    }

    /// The linked rows of `row` on `level`.
    #[inline]
    pub(super) fn rows(&self, level: usize, row: Row) -> impl Iterator<Item = Row> + '_ {
        // Acquire: whoever sees a link sees the linked row's own links and code.
        self.slots(level, row)
            .iter()
            .map(|slot| slot.load(Ordering::Acquire))
            .take_while(|&linked| linked != EMPTY)
    }

    /// Lengths of the parts of the level-0 list of `row`; for the builder alone.
    pub(super) fn shape(&self, row: Row) -> Shape {
        let (page, at) = (row as usize / PAGE_ROWS, row as usize % PAGE_ROWS);
        let page = self.pages.get(page).and_then(OnceLock::get);
        let bits = page.and_then(|page| page.shapes.get(at));
        Shape::unpack(bits.map_or(0, |bits| bits.load(Ordering::Relaxed)))
    }

    /// Replaces the list of `row` on `level`, back to front. One writer a row at a time.
    pub(super) fn write(&self, level: usize, row: Row, shape: Shape, list: &[Row]) {
        let slots = self.slots(level, row);
        assert!(list.len() <= slots.len(), "a list never exceeds its slots");
        for (i, slot) in slots.iter().enumerate().rev() {
            let linked = list.get(i).copied().unwrap_or(EMPTY);
            // Unchanged slots are left alone: readers keep their cache line.
            if slot.load(Ordering::Relaxed) != linked {
                slot.store(linked, Ordering::Release);
            }
        }
        if level == 0 {
            let (page, at) = (row as usize / PAGE_ROWS, row as usize % PAGE_ROWS);
            if let Some(page) = self.pages[page].get() {
                page.shapes[at].store(shape.pack(), Ordering::Relaxed);
            }
        }
    }
}

impl LinkRead for Links {
    #[inline]
    fn rows(&self, level: usize, row: Row) -> impl Iterator<Item = Row> + '_ {
        Self::rows(self, level, row)
    }

    #[inline]
    fn prefetch(&self, level: usize, row: Row) {
        prefetch(self.slots(level, row));
    }
}

fn slots(n: usize) -> Box<[AtomicU32]> {
    (0..n).map(|_| AtomicU32::new(EMPTY)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_all_rows_and_levels_are_disjoint_and_start_at_a_cache_line() {
        let params = Params {
            m: 3,
            ef_construct: 10,
            seed: 5,
        };
        let links = Links::new(params, 5000);
        links.reserve(0..5000);
        let places = |row| (0..=links.level_of(row)).map(move |level| (level, row));
        for (level, row) in (0..5000).flat_map(places) {
            let n = params.links_max(level) as u32;
            let list: Vec<Row> = (0..n).map(|i| row * 100 + level as u32 * 10 + i).collect();
            links.write(
                level,
                row,
                Shape {
                    tree: 1,
                    diverse: 2,
                },
                &list,
            );
        }
        for (level, row) in (0..5000).flat_map(places) {
            let n = params.links_max(level) as u32;
            let list: Vec<Row> = (0..n).map(|i| row * 100 + level as u32 * 10 + i).collect();
            assert_eq!(links.rows(level, row).collect::<Vec<_>>(), list);
            if level == 0 {
                assert_eq!(links.slots(0, row).as_ptr().addr() % 64, 0);
            }
        }
        assert_eq!(
            links.shape(4999),
            Shape {
                tree: 1,
                diverse: 2
            }
        );
        assert_eq!(
            links.slots(0, 5000).len(),
            0,
            "past the capacity there are no slots"
        );
    }

    #[test]
    fn a_shorter_list_hides_the_longer_one_it_replaces() {
        let links = Links::new(
            Params {
                m: 4,
                ef_construct: 10,
                seed: 0,
            },
            10,
        );
        links.reserve(0..10);
        links.write(0, 3, Shape::default(), &[1, 2, 4, 5, 6]);
        links.write(0, 3, Shape::default(), &[9, 2]);
        assert_eq!(links.rows(0, 3).collect::<Vec<_>>(), [9, 2]);
    }
}
