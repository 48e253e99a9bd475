//! Field indexes of a segment: the writer's builders and the snapshot that views hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use flatwater_index::Row;

use crate::field::builder::FieldIndexBuilder;
use crate::field::{FieldIndex, FieldType};
use crate::payload::Payload;
use crate::payload::path::JsonPath;

/// Field indexes by payload path, as one view sees them.
pub type FieldIndexes = BTreeMap<String, Arc<FieldIndex>>;

/// The writer's field indexes.
#[derive(Debug, Default)]
pub struct FieldBuilders {
    builders: BTreeMap<String, FieldIndexBuilder>,
    snapshot: Arc<FieldIndexes>,
}

impl FieldBuilders {
    /// Whether there is nothing to maintain.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.builders.is_empty()
    }

    /// Fields that are indexed, with their kinds.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, FieldType)> {
        self.snapshot
            .iter()
            .map(|(field, index)| (field.as_str(), index.field_type()))
    }

    /// Starts to index `field`; `rows` are the payloads of the rows stored so far, in order.
    pub fn add(
        &mut self,
        field: &str,
        path: JsonPath,
        field_type: FieldType,
        rows: impl Iterator<Item = Payload>,
    ) {
        let mut builder = FieldIndexBuilder::new(path, field_type);
        for (row, payload) in (0..).zip(rows) {
            builder.push(row, &payload);
        }
        self.insert(field, builder);
    }

    /// Maintains an index that has all rows stored so far.
    pub fn insert(&mut self, field: &str, builder: FieldIndexBuilder) {
        self.builders.insert(field.to_owned(), builder);
        self.refresh();
    }

    /// Drops an index.
    pub fn remove(&mut self, field: &str) {
        self.builders.remove(field);
        self.refresh();
    }

    /// Takes the payload of the next row.
    pub fn push(&mut self, row: Row, payload: &Payload) {
        for builder in self.builders.values_mut() {
            builder.push(row, payload);
        }
    }

    /// Notes that a row's payload changed after it was pushed. Call it before the change is in any
    /// view: a view of before then evaluates the row plainly, which is right too.
    pub fn mark_changed(&mut self, row: Row) {
        for builder in self.builders.values_mut() {
            builder.mark_changed(row);
        }
    }

    /// Makes what was pushed available to the next view.
    pub fn refresh(&mut self) {
        let snapshot: FieldIndexes = self
            .builders
            .iter()
            .map(|(field, b)| (field.clone(), b.snapshot()))
            .collect();
        self.snapshot = Arc::new(snapshot);
    }

    /// The indexes that the next view holds.
    #[must_use]
    pub fn snapshot(&self) -> Arc<FieldIndexes> {
        Arc::clone(&self.snapshot)
    }
}
