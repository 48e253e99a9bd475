//! Rows of one segment by the values of a field.
//!
//! 1. The field's index gives the values of the rows that it knows, in order and with its lists cut short
//!    by the caller, who knows how many are wanted.
//! 2. Rows that changed, the tail, and all rows where the index is not built yet are read plainly.

use std::ops::ControlFlow;

use flatwater_index::Row;

use crate::error::SegmentError;
use crate::field::FieldType;
use crate::field::order::{Order, OrderValue};
use crate::field::rows::RowBits;
use crate::payload::path::JsonPath;
use crate::view::SegmentView;

/// A field that points are ordered by.
#[derive(Clone, Debug)]
pub struct OrderedField {
    /// Where its values are.
    pub path: JsonPath,
    /// The kind of its values; others do not count.
    pub field_type: FieldType,
    /// Which values, and which way.
    pub order: Order,
}

/// Visits pairs of a value and a row that has it; rows may be dead, and a pair may come twice. `visit`
/// breaks where a value is past all that are wanted.
///
/// # Errors
/// [`SegmentError::Corrupt`] if a payload that is read does not check.
pub fn walk_values(
    view: &SegmentView,
    field: &OrderedField,
    visit: &mut dyn FnMut(OrderValue, Row) -> ControlFlow<()>,
) -> Result<(), SegmentError> {
    let mut plain = RowBits::new(view.rows_len());
    let mut indexes = view.fields().values();
    let index =
        indexes.find(|index| index.field_type() == field.field_type && *index.path() == field.path);
    match index {
        Some(index) => {
            index.walk(&field.order, &mut *visit);
            index.changed_rows(&mut plain);
            plain.insert_from(index.covered());
        }
        None => plain.insert_from(0),
    }
    for row in plain.iter().filter(|row| view.is_live(*row)) {
        let payload = view.payload_of(row)?;
        field
            .order
            .values_in(field.field_type, &field.path, &payload, |value| {
                // A payload's values are in no order: nothing to end.
                let _goes_on = visit(value, row);
            });
    }
    Ok(())
}
