//! The index of a run of rows: immutable but for the marks of rows that changed since.

use std::ops::{ControlFlow, Range as Span};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use flatwater_index::Row;

use super::FieldType;
use super::order::{Order, Visit};
use super::rows::{RowBits, words_for};
use super::values::{DraftValues, Taken, Values};
use crate::payload::Payload;
use crate::payload::filter::{FieldTest, MatchValue};
use crate::payload::path::JsonPath;
use crate::payload::scalar::{any_element, is_nothing};

/// The index of a run of at most 65,536 rows.
#[derive(Debug)]
pub struct Block {
    rows: Span<Row>,
    field_type: FieldType,
    facts: Facts,
    /// Rows with more than one distinct value that can be matched, and how many; ascending.
    several: Box<[(u16, u32)]>,
    values: Values,
    changed: Changed,
}

/// What is known of each row besides its values.
#[derive(Debug)]
struct Facts {
    /// Has a value of the indexed kind.
    own: RowBits,
    /// Has a value that is not null and that no match by the indexed kind finds.
    foreign: RowBits,
    /// `is_empty` holds.
    empty: RowBits,
    /// `is_null` holds.
    null: RowBits,
}

/// Rows whose payload changed after the block was built. Set by the one writer, read by all.
#[derive(Debug)]
struct Changed {
    words: Box<[AtomicU64]>,
    count: AtomicU32,
}

impl Block {
    /// The rows that the block is about.
    #[must_use]
    pub fn rows(&self) -> Span<Row> {
        self.rows.clone()
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        let Facts {
            own,
            foreign,
            empty,
            null,
        } = &self.facts;
        let facts = [own, foreign, empty, null].map(RowBits::heap_bytes);
        let marks = size_of_val::<[AtomicU64]>(&self.changed.words);
        let several = size_of_val::<[(u16, u32)]>(&self.several);
        let own = size_of::<Self>() + marks + several;
        own as u64 + facts.iter().sum::<u64>() + self.values.heap_bytes()
    }

    /// How many rows are marked as changed.
    #[must_use]
    pub fn changed_count(&self) -> u32 {
        self.changed.count.load(Ordering::Relaxed)
    }

    /// Marks a row whose payload is about to change; false if the block is not about it.
    ///
    /// Order: by the one writer, before the view with the change is published.
    pub fn mark_changed(&self, row: Row) -> bool {
        let inside = self.rows.contains(&row);
        if inside {
            self.changed.mark(row - self.rows.start);
        }
        inside
    }

    pub(crate) fn field_type(&self) -> FieldType {
        self.field_type
    }

    /// Adds the marked rows to `out`, a set over the whole segment.
    pub(crate) fn changed_rows(&self, out: &mut RowBits) {
        if self.changed_count() > 0 {
            out.or_words_at(self.rows.start, self.changed.load());
        }
    }

    /// Takes the marked rows out of `rows`, a set over this block.
    pub(crate) fn clear_changed(&self, rows: &mut RowBits) {
        if self.changed_count() > 0 {
            let mut changed = RowBits::new(self.len());
            changed.or_words_at(0, self.changed.load());
            rows.and_not(&changed);
        }
    }

    /// Adds to `out`, a set over this block, the rows that passed `test` when the block was built.
    /// The index's type answers the test (see [`super::FieldIndex::rows_matching`]).
    pub(crate) fn rows_matching(&self, test: &FieldTest, out: &mut RowBits) {
        match test {
            FieldTest::Value(value) => self.add_listed(std::slice::from_ref(value), out),
            FieldTest::Any(values) => self.add_listed(values, out),
            FieldTest::Except(values) => self.add_others(values, out),
            FieldTest::Range(_) | FieldTest::DatetimeRange(_) => self.values.add_range(test, out),
            // No index answers it.
            FieldTest::ValuesCount(_) => {}
            FieldTest::IsEmpty(wanted) => out.or(&wanted_or_opposite(&self.facts.empty, *wanted)),
            FieldTest::IsNull(wanted) => out.or(&wanted_or_opposite(&self.facts.null, *wanted)),
        }
    }

    /// At least as many rows as [`Block::rows_matching`] finds, in most cases exactly.
    pub(crate) fn estimate(&self, test: &FieldTest) -> u32 {
        let pairs = match test {
            FieldTest::Value(value) => self.pairs(std::slice::from_ref(value)),
            FieldTest::Any(values) => self.pairs(values),
            FieldTest::Range(_) | FieldTest::DatetimeRange(_) => self.values.pairs_in_range(test),
            FieldTest::Except(_)
            | FieldTest::ValuesCount(_)
            | FieldTest::IsEmpty(_)
            | FieldTest::IsNull(_) => {
                let mut rows = RowBits::new(self.len());
                self.rows_matching(test, &mut rows);
                return rows.count() as u32;
            }
        };
        u32::try_from(pairs).unwrap_or(u32::MAX).min(self.len())
    }

    /// See [`super::FieldIndex::walk`].
    pub(crate) fn walk(&self, order: &Order, visit: Visit<'_>) {
        self.values.walk(order, self.field_type, &mut |value, row| {
            if self.changed.is_marked(row) {
                return ControlFlow::Continue(());
            }
            visit(value, self.rows.start + row)
        });
    }

    pub(crate) fn points_with_field(&self) -> u32 {
        self.facts.own.count() as u32
    }

    /// One block over the rows of several that lie side by side; marks are kept.
    pub(crate) fn merged(parts: &[Arc<Self>]) -> Option<Self> {
        let (first, last) = (parts.first()?, parts.last()?);
        let rows = first.rows.start..last.rows.end;
        let len = rows.end - rows.start;
        // Fits: a block has at most 65,536 rows, so no part of it begins at row 65,536.
        let offset = |part: &Arc<Self>| (part.rows.start - rows.start) as u16;
        let values: Vec<_> = parts
            .iter()
            .map(|part| (offset(part), &part.values))
            .collect();
        let values = Values::merged(&values, len)?;
        let mut several = Vec::new();
        for part in parts {
            several.extend(
                part.several
                    .iter()
                    .map(|(row, count)| (row + offset(part), *count)),
            );
        }
        let changed = Changed::new(len);
        for part in parts {
            let mut marked = RowBits::new(part.len());
            marked.or_words_at(0, part.changed.load());
            marked
                .iter()
                .for_each(|row| changed.mark(row + part.rows.start - rows.start));
        }
        Some(Self {
            field_type: first.field_type,
            facts: Facts::merged(parts, &rows),
            several: several.into(),
            values,
            changed,
            rows,
        })
    }

    pub(crate) fn len(&self) -> u32 {
        self.rows.end - self.rows.start
    }

    /// The numbers of those listed values that the block has, each once.
    fn found(&self, listed: &[MatchValue]) -> Vec<usize> {
        let find = |value| self.values.find(value);
        let mut found: Vec<usize> = listed.iter().filter_map(find).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn pairs(&self, listed: &[MatchValue]) -> usize {
        self.found(listed)
            .into_iter()
            .map(|value| self.values.postings().pairs(value..value + 1))
            .sum()
    }

    fn add_listed(&self, listed: &[MatchValue], out: &mut RowBits) {
        for value in self.found(listed) {
            self.values.postings().add_rows(value..value + 1, out);
        }
    }

    /// Adds the rows with a value that is not listed: those with a value of another kind, and those
    /// whose distinct values are not all listed.
    fn add_others(&self, listed: &[MatchValue], out: &mut RowBits) {
        let mut others = self.facts.own.clone();
        let mut not_seen: Vec<u32> = self.several.iter().map(|(_, count)| *count).collect();
        for value in self.found(listed) {
            self.values.postings().for_each_row(value, |row| {
                let all_seen = match self.several.binary_search_by_key(&row, |(row, _)| *row) {
                    Ok(at) => {
                        not_seen[at] -= 1;
                        not_seen[at] == 0
                    }
                    Err(_) => true,
                };
                if all_seen {
                    others.remove(Row::from(row));
                }
            });
        }
        others.or(&self.facts.foreign);
        out.or(&others);
    }
}

fn wanted_or_opposite(rows: &RowBits, wanted: bool) -> RowBits {
    let mut rows = rows.clone();
    if !wanted {
        rows.invert();
    }
    rows
}

impl Facts {
    fn new(len: Row) -> Self {
        let none = RowBits::new(len);
        Self {
            own: none.clone(),
            foreign: none.clone(),
            empty: none.clone(),
            null: none,
        }
    }

    fn merged(parts: &[Arc<Block>], rows: &Span<Row>) -> Self {
        let mut all = Self::new(rows.end - rows.start);
        for part in parts {
            let at = part.rows.start - rows.start;
            all.own.or_at(at, &part.facts.own);
            all.foreign.or_at(at, &part.facts.foreign);
            all.empty.or_at(at, &part.facts.empty);
            all.null.or_at(at, &part.facts.null);
        }
        all
    }
}

impl Changed {
    fn new(len: Row) -> Self {
        let words = std::iter::repeat_with(AtomicU64::default)
            .take(words_for(len))
            .collect();
        Self {
            words,
            count: AtomicU32::new(0),
        }
    }

    fn mark(&self, offset: Row) {
        let bit = 1_u64 << (offset % 64);
        // The view that shows the change is published later, with Release, by the same thread: a
        // reader of that view sees both stores. Release keeps the count from lagging the bit.
        if self.words[offset as usize / 64].fetch_or(bit, Ordering::Release) & bit == 0 {
            self.count.fetch_add(1, Ordering::Release);
        }
    }

    fn is_marked(&self, offset: Row) -> bool {
        let word = self.words.get(offset as usize / 64);
        word.is_some_and(|word| word.load(Ordering::Acquire) >> (offset % 64) & 1 == 1)
    }

    fn load(&self) -> impl Iterator<Item = u64> + '_ {
        self.words.iter().map(|word| word.load(Ordering::Acquire))
    }
}

/// A block that is being filled, row by row.
#[derive(Debug)]
pub(crate) struct Draft {
    start: Row,
    field_type: FieldType,
    /// One entry a row.
    rows: Vec<RowFacts>,
    values: DraftValues,
}

/// What one payload says about its row.
#[derive(Clone, Copy, Debug)]
struct RowFacts {
    /// Distinct values that can be matched.
    distinct: u32,
    own: bool,
    foreign: bool,
    empty: bool,
    null: bool,
}

impl Draft {
    /// An empty draft of a block that begins at row `start`.
    pub(crate) fn new(start: Row, field_type: FieldType) -> Self {
        Self {
            start,
            field_type,
            rows: Vec::new(),
            values: DraftValues::new(field_type),
        }
    }

    /// The row that the next push is about.
    pub(crate) fn next_row(&self) -> Row {
        self.start + self.rows.len() as Row
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Adds the next row. A draft takes at most 65,536 of them.
    pub(crate) fn push(&mut self, path: &JsonPath, payload: &Payload) {
        debug_assert!(
            self.rows.len() <= usize::from(u16::MAX),
            "rows of a block fit in 16 bits"
        );
        let row = self.rows.len() as u16;
        let first = self.values.len();
        let mut facts = RowFacts {
            distinct: 0,
            own: false,
            foreign: false,
            empty: true,
            null: false,
        };
        path.values(payload, |value| {
            facts.empty &= is_nothing(value);
            any_element(value, |scalar| {
                if scalar.is_null() {
                    facts.null = true;
                } else {
                    let taken = self.values.take(scalar, row);
                    facts.own |= taken != Taken::Foreign;
                    facts.foreign |= taken != Taken::Own;
                }
                false
            });
        });
        facts.distinct = self.values.sort_row(first);
        self.rows.push(facts);
    }

    pub(crate) fn freeze(self) -> Block {
        let len = self.rows.len() as Row;
        let mut facts = Facts::new(len);
        let mut several = Vec::new();
        for (row, of_row) in (0..len).zip(&self.rows) {
            let note = |holds: bool, rows: &mut RowBits| {
                if holds {
                    rows.insert(row);
                }
            };
            note(of_row.own, &mut facts.own);
            note(of_row.foreign, &mut facts.foreign);
            note(of_row.empty, &mut facts.empty);
            note(of_row.null, &mut facts.null);
            if of_row.distinct > 1 {
                several.push((row as u16, of_row.distinct));
            }
        }
        let values = self.values.freeze(len);
        Block {
            rows: self.start..self.start + len,
            field_type: self.field_type,
            facts,
            several: several.into(),
            values,
            changed: Changed::new(len),
        }
    }
}
