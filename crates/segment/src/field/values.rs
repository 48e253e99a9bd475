//! The values of one block, by the kind of its index: which tests they answer, and how.

use flatwater_index::Row;
use serde_json::Value;

use super::FieldType;
use super::keyword::KeywordColumn;
use super::number::{NumberColumn, Numbers};
use super::order::{Order, OrderValue, Visit};
use super::postings::Postings;
use super::rows::RowBits;
use super::sorted::{SortedColumn, span};
use super::uuid::UuidKey;
use crate::payload::datetime::Datetime;
use crate::payload::filter::{FieldTest, MatchValue};

/// Whether an index of this kind decides `test`.
pub(super) fn answers(field_type: FieldType, test: &FieldTest) -> bool {
    let is_known = |value: &MatchValue| is_of_kind(field_type, value);
    match test {
        FieldTest::Value(value) => is_known(value),
        FieldTest::Any(values) | FieldTest::Except(values) => values.iter().all(is_known),
        FieldTest::Range(_) => matches!(field_type, FieldType::Integer | FieldType::Float),
        FieldTest::DatetimeRange(_) => field_type == FieldType::Datetime,
        FieldTest::ValuesCount(_) => false,
        FieldTest::IsEmpty(_) | FieldTest::IsNull(_) => true,
    }
}

/// Whether the index finds all rows with this value.
fn is_of_kind(field_type: FieldType, value: &MatchValue) -> bool {
    match (field_type, value) {
        (FieldType::Keyword, MatchValue::Keyword(_))
        | (FieldType::Integer | FieldType::Float, MatchValue::Integer(_))
        | (FieldType::Bool, MatchValue::Bool(_)) => true,
        (FieldType::Uuid, MatchValue::Keyword(text)) => UuidKey::of(text).is_some(),
        _ => false,
    }
}

/// Sorted values and their rows.
#[derive(Debug)]
pub(super) enum Values {
    Keyword(KeywordColumn),
    /// Of an index of integers or of floats.
    Number(NumberColumn),
    Bool(SortedColumn<bool>),
    Datetime(SortedColumn<Datetime>),
    Uuid(SortedColumn<UuidKey>),
}

impl Values {
    /// Bytes of memory that they take.
    pub(super) fn heap_bytes(&self) -> u64 {
        match self {
            Self::Keyword(column) => column.heap_bytes(),
            Self::Number(column) => column.heap_bytes(),
            Self::Bool(column) => column.heap_bytes(),
            Self::Datetime(column) => column.heap_bytes(),
            Self::Uuid(column) => column.heap_bytes(),
        }
    }

    /// The values of consecutive blocks put together, each with its first row; all are of one kind.
    pub(super) fn merged(parts: &[(u16, &Self)], len: Row) -> Option<Self> {
        /// The columns behind the values, which are all of the kind of the first.
        macro_rules! merged {
            ($kind:ident, $column:ident) => {{
                let columns: Vec<_> = parts
                    .iter()
                    .filter_map(|(row, values)| match values {
                        Self::$kind(column) => Some((*row, column)),
                        _ => None,
                    })
                    .collect();
                Self::$kind($column::merged(&columns, len))
            }};
        }
        Some(match parts.first()?.1 {
            Self::Keyword(_) => merged!(Keyword, KeywordColumn),
            Self::Number(_) => merged!(Number, NumberColumn),
            Self::Bool(_) => merged!(Bool, SortedColumn),
            Self::Datetime(_) => merged!(Datetime, SortedColumn),
            Self::Uuid(_) => merged!(Uuid, SortedColumn),
        })
    }

    /// Rows of the values that can be matched.
    pub(super) fn postings(&self) -> &Postings {
        match self {
            Self::Keyword(column) => &column.postings,
            Self::Number(column) => &column.integers.postings,
            Self::Bool(column) => &column.postings,
            Self::Datetime(column) => &column.postings,
            Self::Uuid(column) => &column.postings,
        }
    }

    /// Number of a value among the values that can be matched.
    pub(super) fn find(&self, value: &MatchValue) -> Option<usize> {
        match (self, value) {
            (Self::Keyword(column), MatchValue::Keyword(text)) => column.find(text),
            (Self::Number(column), MatchValue::Integer(integer)) => column.integers.find(integer),
            (Self::Bool(column), MatchValue::Bool(flag)) => column.find(flag),
            (Self::Uuid(column), MatchValue::Keyword(text)) => column.find(&UuidKey::of(text)?),
            _ => None,
        }
    }

    /// Adds the rows with a value inside the bounds of `test` to `out`; none for other tests.
    pub(super) fn add_range(&self, test: &FieldTest, out: &mut RowBits) {
        match (self, test) {
            (Self::Number(column), FieldTest::Range(range)) => column.add_range(range, out),
            (Self::Datetime(column), FieldTest::DatetimeRange(bounds)) => {
                let inside = span(column.keys(), bounds, |bounds, key| bounds.contains(*key));
                column.postings.add_rows(inside, out);
            }
            _ => {}
        }
    }

    /// Visits the values that `order` asks for with their rows, list by list; see
    /// [`super::FieldIndex::walk`].
    pub(super) fn walk(&self, order: &Order, field_type: FieldType, visit: Visit<'_>) {
        match (self, field_type) {
            (Self::Number(column), FieldType::Integer) => {
                let value_of = |key: &i64| Some(OrderValue::Integer(*key));
                column.integers.walk(order, value_of, visit);
            }
            (Self::Number(column), _) => column.walk_floats(order, visit),
            (Self::Datetime(column), _) => {
                let value_of = |key: &Datetime| Some(OrderValue::Integer(key.micros()));
                column.walk(order, value_of, visit);
            }
            (Self::Keyword(_) | Self::Bool(_) | Self::Uuid(_), _) => {}
        }
    }

    /// How many (value, row) pairs [`Values::add_range`] looks at.
    pub(super) fn pairs_in_range(&self, test: &FieldTest) -> usize {
        match (self, test) {
            (Self::Number(column), FieldTest::Range(range)) => column.pairs_in(range),
            (Self::Datetime(column), FieldTest::DatetimeRange(bounds)) => {
                let inside = span(column.keys(), bounds, |bounds, key| bounds.contains(*key));
                column.postings.pairs(inside)
            }
            _ => 0,
        }
    }
}

/// What an index makes of a value that is not null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is of the indexed kind, and can be matched.
    Own,
    /// It is of the indexed kind, and no match finds it: to a match it is a value of another kind.
    OwnUnmatched,
    /// It is of another kind.
    Foreign,
}

/// Values of a block that is being filled, in any order.
#[derive(Debug)]
pub(super) enum DraftValues {
    Keyword(Vec<(String, u16)>),
    Integer(Numbers),
    Float(Numbers),
    Bool(Vec<(bool, u16)>),
    Datetime(Vec<(Datetime, u16)>),
    Uuid(Vec<(UuidKey, u16)>),
}

impl DraftValues {
    pub(super) fn new(field_type: FieldType) -> Self {
        match field_type {
            FieldType::Keyword => Self::Keyword(Vec::new()),
            FieldType::Integer => Self::Integer(Numbers::default()),
            FieldType::Float => Self::Float(Numbers::default()),
            FieldType::Bool => Self::Bool(Vec::new()),
            FieldType::Datetime => Self::Datetime(Vec::new()),
            FieldType::Uuid => Self::Uuid(Vec::new()),
        }
    }

    /// Number of values so far that can be matched.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Keyword(pairs) => pairs.len(),
            Self::Integer(numbers) | Self::Float(numbers) => numbers.integers.len(),
            Self::Bool(pairs) => pairs.len(),
            Self::Datetime(pairs) => pairs.len(),
            Self::Uuid(pairs) => pairs.len(),
        }
    }

    /// Takes one value in.
    pub(super) fn take(&mut self, value: &Value, row: u16) -> Taken {
        match (self, value) {
            (Self::Keyword(pairs), Value::String(text)) => pairs.push((text.clone(), row)),
            (Self::Integer(numbers), Value::Number(number)) => {
                if !numbers.take(number, row) {
                    return Taken::Foreign;
                }
            }
            (Self::Float(numbers), Value::Number(number)) => {
                if !numbers.take(number, row) {
                    return Taken::OwnUnmatched;
                }
            }
            (Self::Bool(pairs), Value::Bool(flag)) => pairs.push((*flag, row)),
            (Self::Datetime(pairs), Value::String(text)) => match Datetime::parse(text) {
                Some(moment) => pairs.push((moment, row)),
                None => return Taken::Foreign,
            },
            (Self::Uuid(pairs), Value::String(text)) => match UuidKey::of(text) {
                Some(key) => pairs.push((key, row)),
                None => return Taken::Foreign,
            },
            _ => return Taken::Foreign,
        }
        Taken::Own
    }

    /// Drops repeats among the values from `first` on, all of one row; how many are left.
    pub(super) fn sort_row(&mut self, first: usize) -> u32 {
        let left = match self {
            Self::Keyword(pairs) => drop_repeats(pairs, first),
            Self::Integer(numbers) | Self::Float(numbers) => {
                drop_repeats(&mut numbers.integers, first)
            }
            Self::Bool(pairs) => drop_repeats(pairs, first),
            Self::Datetime(pairs) => drop_repeats(pairs, first),
            Self::Uuid(pairs) => drop_repeats(pairs, first),
        };
        u32::try_from(left).unwrap_or(u32::MAX)
    }

    pub(super) fn freeze(self, len: Row) -> Values {
        match self {
            Self::Keyword(mut pairs) => {
                pairs.sort_unstable();
                Values::Keyword(KeywordColumn::new(&pairs, len))
            }
            Self::Integer(numbers) | Self::Float(numbers) => {
                Values::Number(NumberColumn::new(numbers, len))
            }
            Self::Bool(pairs) => Values::Bool(SortedColumn::new(pairs, len)),
            Self::Datetime(pairs) => Values::Datetime(SortedColumn::new(pairs, len)),
            Self::Uuid(pairs) => Values::Uuid(SortedColumn::new(pairs, len)),
        }
    }
}

fn drop_repeats<T: Ord>(values: &mut Vec<T>, first: usize) -> usize {
    if values.len() - first > 1 {
        values[first..].sort_unstable();
        let mut tail = values.split_off(first);
        tail.dedup();
        values.append(&mut tail);
    }
    values.len() - first
}
