//! Deciding a filter for all rows of a segment at once.
//!
//! 1. For each condition two sets of rows: `sure`, where it holds for certain, and `maybe`, outside of
//!    which it fails for certain. A field index gives both, apart from rows that changed and the
//!    tail, which stay undecided; ids are decided from the id map; what no index answers is undecided
//!    everywhere. Of a nested filter and of a count of values an index only says where they fail.
//! 2. The clauses combine the sets: both intersected for "all", united for "one of", swapped
//!    and inverted for "none of", counted for "at least n". What is certain of the parts makes
//!    certain what is certain of the whole, and nothing more is claimed.
//! 3. Rows in `maybe` but not in `sure` are decided by the plain evaluator when they are asked for.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use flatwater_index::Row;

use crate::field::FieldIndex;
use crate::field::rows::{RowBits, RowCounts, ones};
use crate::ids::PointId;
use crate::payload::Payload;
use crate::payload::eval::{AtLeast, Check, Clauses, CompiledFilter, Elements, FieldCheck};
use crate::payload::filter::FieldTest;
use crate::payload::path::JsonPath;

/// The rows of one segment as one view shows them. Implemented by the segment.
pub trait RowSource: Sync {
    /// Rows are numbered [0, len).
    fn len(&self) -> Row;

    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id of the point that the row is a version of.
    fn id(&self, row: Row) -> PointId;

    /// Calls `visit` once with the row's payload, an empty one if it has none.
    fn payload(&self, row: Row, visit: &mut dyn FnMut(&Payload));

    /// The row that holds the point in this view, if it is here.
    fn row_of(&self, id: PointId) -> Option<Row>;

    /// Whether the row has a vector of this name.
    fn has_vector(&self, row: Row, name: &str) -> bool;

    /// The rows that have a vector of this name.
    fn rows_with_vector(&self, name: &str) -> RowBits;
}

/// A filter decided for the rows [0, len) of a segment, whether they are live or not.
///
/// `has_id` is decided for the row that the view shows for an id; about other versions of the point
/// it says no, so rows that are not live must be left out by the caller.
pub struct Mask<'a> {
    filter: &'a CompiledFilter,
    source: &'a dyn RowSource,
    bounds: Bounds,
    undecided: u64,
}

/// How many rows a filter lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountEstimate {
    /// No fewer than this.
    pub min: u64,
    /// Most likely this.
    pub expected: u64,
    /// No more than this.
    pub max: u64,
}

/// `sure` is part of the rows that pass, which are part of `maybe`.
#[derive(Clone, Debug)]
struct Bounds {
    sure: RowBits,
    maybe: RowBits,
}

impl<'a> Mask<'a> {
    /// Decides `filter` as far as the indexes go. `indexes` are those of the view that `source` is.
    ///
    /// Cost: a few bits per row and condition, plus the indexes' answers; no payload is read.
    #[must_use]
    pub fn build(
        filter: &'a CompiledFilter,
        indexes: &BTreeMap<String, Arc<FieldIndex>>,
        source: &'a dyn RowSource,
    ) -> Self {
        let decider = Decider {
            indexes,
            source,
            len: source.len(),
        };
        let bounds = decider.clauses(filter.root());
        let undecided = bounds.maybe.count() - bounds.sure.count();
        Self {
            filter,
            source,
            bounds,
            undecided,
        }
    }

    /// Whether the row passes. Reads its payload where the indexes left it open.
    #[must_use]
    pub fn accepts(&self, row: Row) -> bool {
        self.bounds.sure.contains(row) || (self.bounds.maybe.contains(row) && self.evaluate(row))
    }

    /// Whether the row may pass: a bit test, no payload is read.
    #[inline]
    #[must_use]
    pub fn may_accept(&self, row: Row) -> bool {
        self.bounds.maybe.contains(row)
    }

    /// Whether the indexes decided every row.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.undecided == 0
    }

    /// How many rows are left to the plain evaluator.
    #[must_use]
    pub fn undecided(&self) -> u64 {
        self.undecided
    }

    /// No more rows than this pass.
    #[must_use]
    pub fn upper_count(&self) -> u64 {
        self.bounds.maybe.count()
    }

    /// The rows that may pass, ascending; all that do are among them.
    pub fn candidates(&self) -> impl Iterator<Item = Row> + '_ {
        self.bounds.maybe.iter()
    }

    /// The rows that pass, ascending.
    pub fn accepted(&self) -> impl Iterator<Item = Row> + '_ {
        self.candidates().filter(|row| self.accepts(*row))
    }

    /// How many rows pass, exactly. Reads the payload of every undecided row.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.bounds.sure.count()
            + self
                .undecided_rows()
                .filter(|row| self.evaluate(*row))
                .count() as u64
    }

    /// How many rows that are live pass, exactly.
    pub fn count_live(&self, live: impl Fn(Row) -> bool) -> u64 {
        self.candidates()
            .filter(|row| live(*row) && self.accepts(*row))
            .count() as u64
    }

    /// How many rows pass, for planning: undecided rows are judged by `sample` of them, spread evenly.
    #[must_use]
    pub fn estimate(&self, sample: usize) -> CountEstimate {
        let (min, max) = (self.bounds.sure.count(), self.upper_count());
        let looked_at = self.undecided.min(sample as u64);
        if looked_at == 0 {
            return CountEstimate {
                min,
                expected: min + self.undecided.div_ceil(2),
                max,
            };
        }
        let passed = self
            .sampled(looked_at)
            .filter(|row| self.evaluate(*row))
            .count() as u64;
        if looked_at == self.undecided {
            let exact = min + passed;
            return CountEstimate {
                min: exact,
                expected: exact,
                max: exact,
            };
        }
        // No overflow: rows are 32-bit numbers, so both factors are below 2^32.
        let rest = passed * self.undecided / looked_at;
        CountEstimate {
            min: min + passed,
            expected: min + rest,
            max: max - (looked_at - passed),
        }
    }

    fn undecided_rows(&self) -> impl Iterator<Item = Row> + '_ {
        self.candidates()
            .filter(|row| !self.bounds.sure.contains(*row))
    }

    /// `count` of the undecided rows, spread evenly; words of bits are skipped by their count.
    fn sampled(&self, count: u64) -> impl Iterator<Item = Row> + '_ {
        let words = self
            .bounds
            .maybe
            .words()
            .iter()
            .zip(self.bounds.sure.words());
        let (mut at, mut before) = (0, 0);
        words.enumerate().flat_map(move |(word_at, (maybe, sure))| {
            let word = maybe & !sure;
            let mut rows = Vec::new();
            let end = before + u64::from(word.count_ones());
            while at < count && sample_place(at, count, self.undecided) < end {
                let place = sample_place(at, count, self.undecided) - before;
                rows.extend(ones(word, word_at as Row * 64).nth(place as usize));
                at += 1;
            }
            before = end;
            rows
        })
    }

    fn evaluate(&self, row: Row) -> bool {
        let id = self.source.id(row);
        let mut passes = false;
        self.source.payload(row, &mut |payload| {
            let has_vector = |name: &str| self.source.has_vector(row, name);
            passes = self.filter.matches(id, payload, &has_vector);
        });
        passes
    }
}

/// Which of `total` rows the sample's member `at` of `count` is: one in each of `count` equal
/// stretches, at a place in it that varies, so that payloads with a period do not fool the sample.
fn sample_place(at: u64, count: u64, total: u64) -> u64 {
    let (from, to) = (at * total / count, (at + 1) * total / count);
    // Fibonacci hashing of the member's number: deterministic, without pattern over a stretch.
    from + ((at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % (to - from))
}

impl fmt::Debug for Mask<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mask")
            .field("filter", self.filter)
            .field("sure", &self.bounds.sure.count())
            .field("undecided", &self.undecided)
            .finish_non_exhaustive()
    }
}

/// Works out the bounds of conditions.
struct Decider<'d> {
    indexes: &'d BTreeMap<String, Arc<FieldIndex>>,
    source: &'d dyn RowSource,
    len: Row,
}

impl Decider<'_> {
    fn clauses(&self, clauses: &Clauses) -> Bounds {
        let mut bounds = Bounds::exactly(RowBits::full(self.len));
        for check in &clauses.must {
            if bounds.maybe.is_empty() {
                return bounds;
            }
            bounds.and(&self.check(check));
        }
        for check in &clauses.must_not {
            if bounds.maybe.is_empty() {
                return bounds;
            }
            bounds.and(&self.check(check).inverted());
        }
        if !clauses.should.is_empty() {
            bounds.and(&self.one_of(&clauses.should));
        }
        if let Some(at_least) = &clauses.min_should {
            bounds.and(&self.at_least(at_least));
        }
        bounds
    }

    fn one_of(&self, checks: &[Check]) -> Bounds {
        let mut bounds = Bounds::exactly(RowBits::new(self.len));
        for check in checks {
            bounds.or(&self.check(check));
        }
        bounds
    }

    fn at_least(&self, at_least: &AtLeast) -> Bounds {
        if at_least.checks.is_empty() || at_least.count > at_least.checks.len() {
            return Bounds::exactly(RowBits::new(self.len));
        }
        let (mut sure, mut maybe) = (RowCounts::new(self.len), RowCounts::new(self.len));
        for check in &at_least.checks {
            let bounds = self.check(check);
            sure.add(&bounds.sure);
            maybe.add(&bounds.maybe);
        }
        Bounds {
            sure: sure.at_least(at_least.count),
            maybe: maybe.at_least(at_least.count),
        }
    }

    fn check(&self, check: &Check) -> Bounds {
        match check {
            Check::Field(field) => self.field(field),
            Check::HasId(ids) => self.has_id(ids),
            Check::HasVector(name) => Bounds::exactly(self.source.rows_with_vector(name)),
            Check::Elements(elements) => self.elements(elements),
            Check::Filter(clauses) => self.clauses(clauses),
        }
    }

    fn elements(&self, elements: &Elements) -> Bounds {
        let mut maybe = RowBits::full(self.len);
        for field in &elements.necessary {
            maybe.and(&self.field(field).maybe);
        }
        self.at_most(maybe)
    }

    /// Nothing is certain but that rows outside `maybe` fail.
    fn at_most(&self, maybe: RowBits) -> Bounds {
        Bounds {
            sure: RowBits::new(self.len),
            maybe,
        }
    }

    fn has_id(&self, ids: &HashSet<PointId>) -> Bounds {
        let mut rows = RowBits::new(self.len);
        for id in ids {
            if let Some(row) = self.source.row_of(*id) {
                rows.insert(row);
            }
        }
        Bounds::exactly(rows)
    }

    fn field(&self, field: &FieldCheck) -> Bounds {
        match &field.test {
            // A row without values has the count 0 alone.
            FieldTest::ValuesCount(counts) if !counts.contains(0) => {
                let filled = self.test(&field.path, &FieldTest::IsEmpty(false));
                self.at_most(filled.maybe)
            }
            test => self.test(&field.path, test),
        }
    }

    fn test(&self, path: &JsonPath, test: &FieldTest) -> Bounds {
        let mut sure = RowBits::new(self.len);
        let answers = |index: &&Arc<FieldIndex>| {
            index.path() == path && index.rows_matching(test, &mut sure).is_some()
        };
        let Some(index) = self.indexes.values().find(answers) else {
            return self.at_most(RowBits::full(self.len));
        };
        let mut maybe = sure.clone();
        index.changed_rows(&mut maybe);
        maybe.insert_from(index.covered());
        Bounds { sure, maybe }
    }
}

impl Bounds {
    fn exactly(rows: RowBits) -> Self {
        Self {
            maybe: rows.clone(),
            sure: rows,
        }
    }

    fn and(&mut self, other: &Self) {
        self.sure.and(&other.sure);
        self.maybe.and(&other.maybe);
    }

    fn or(&mut self, other: &Self) {
        self.sure.or(&other.sure);
        self.maybe.or(&other.maybe);
    }

    /// The bounds of the opposite: what surely fails is what may not hold.
    fn inverted(mut self) -> Self {
        self.sure.invert();
        self.maybe.invert();
        Self {
            sure: self.maybe,
            maybe: self.sure,
        }
    }
}

#[cfg(test)]
#[path = "mask_tests.rs"]
mod tests;
