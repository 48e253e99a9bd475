//! What the engine should hold: plain maps and exact search.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flatwater_engine::config::collection::FieldType;
use flatwater_engine::query::request::OrderValue;
use flatwater_segment::PointId;
use flatwater_segment::payload::Payload;
use flatwater_segment::payload::datetime::Datetime;
use flatwater_segment::payload::eval::CompiledFilter;
use flatwater_segment::payload::filter::Filter;
use serde_json::Value;

use crate::step::{Which, Write, names};

/// A point as it should be stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) vectors: BTreeMap<String, Vec<f32>>,
    pub(crate) payload: Payload,
}

/// A collection. Clones share the points.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plain {
    pub(crate) points: BTreeMap<PointId, Arc<Stored>>,
    pub(crate) indexes: BTreeMap<String, FieldType>,
}

/// A storage folder: with a collection or without.
pub(crate) type World = Option<Plain>;

impl Plain {
    pub(crate) fn matching(&self, filter: &Filter) -> BTreeSet<PointId> {
        let compiled = CompiledFilter::new(filter).unwrap();
        let passes = |(id, point): &(&PointId, &Arc<Stored>)| {
            let has_vector = |name: &str| point.vectors.contains_key(name);
            compiled.matches(**id, &point.payload, &has_vector)
        };
        self.points
            .iter()
            .filter(passes)
            .map(|(id, _)| *id)
            .collect()
    }

    fn chosen(&self, which: &Which) -> BTreeSet<PointId> {
        match which {
            Which::Ids(ids) => ids
                .iter()
                .map(|id| id.point_id())
                .filter(|id| self.points.contains_key(id))
                .collect(),
            Which::Filter(clauses) => self.matching(&clauses.filter()),
        }
    }

    /// Whether the engine is to refuse the write, whole.
    pub(crate) fn refuses(&self, write: &Write) -> bool {
        match write {
            Write::UpdateVectors(points) => {
                let mut ids = points.iter().map(|point| point.id.point_id());
                ids.any(|id| !self.points.contains_key(&id))
            }
            _ => false,
        }
    }

    fn change(&mut self, which: &Which, mut change: impl FnMut(&mut Stored)) {
        for id in self.chosen(which) {
            if let Some(point) = self.points.get_mut(&id) {
                change(Arc::make_mut(point));
            }
        }
    }

    pub(crate) fn apply(&mut self, write: &Write) {
        match write {
            Write::Upsert(points) => {
                for point in points {
                    let stored = Stored {
                        vectors: point.vectors(),
                        payload: point.payload().unwrap_or_default(),
                    };
                    self.points.insert(point.id.point_id(), Arc::new(stored));
                }
            }
            Write::Delete(which) => {
                for id in self.chosen(which) {
                    self.points.remove(&id);
                }
            }
            Write::SetPayload {
                which,
                payload,
                key,
            } => {
                for id in self.chosen(which) {
                    if let Some(point) = self.points.get_mut(&id) {
                        merge(&mut Arc::make_mut(point).payload, payload, key.as_deref());
                    }
                }
            }
            Write::OverwritePayload { which, payload } => {
                self.change(which, |point| point.payload = payload.clone());
            }
            Write::DeleteKeys { which, keys } => self.change(which, |point| {
                for key in keys {
                    point.payload.remove(key);
                }
            }),
            Write::ClearPayload(which) => self.change(which, |point| point.payload.clear()),
            Write::UpdateVectors(points) => {
                for new in points {
                    if let Some(point) = self.points.get_mut(&new.id.point_id()) {
                        Arc::make_mut(point).vectors.extend(new.vectors());
                    }
                }
            }
            Write::DeleteVectors { which, vectors } => {
                let names = names(*vectors);
                self.change(which, |point| {
                    point.vectors.retain(|name, _| !names.contains(name));
                });
            }
            Write::CreateIndex { field, kind } => {
                self.indexes.insert(field.clone(), kind.field_type());
            }
            Write::DropIndex { field } => {
                self.indexes.remove(field);
            }
        }
    }

    /// Points and the values of `field` that they are ordered by, ascending; equal values by id.
    pub(crate) fn ordered(&self, field: &str, filter: &Filter) -> Vec<(OrderValue, PointId)> {
        let kind = self.indexes[field];
        let mut pairs = Vec::new();
        for id in self.matching(filter) {
            let values = match self.points[&id].payload.get(field) {
                Some(Value::Array(values)) => values.as_slice(),
                Some(value) => std::slice::from_ref(value),
                None => &[],
            };
            let value = |value: &Value| match kind {
                FieldType::Integer => value.as_i64().map(OrderValue::Integer),
                FieldType::Float => value.as_f64().map(OrderValue::Float),
                _ => {
                    let moment = Datetime::parse(value.as_str()?)?;
                    Some(OrderValue::Integer(moment.micros()))
                }
            };
            pairs.extend(values.iter().filter_map(value).map(|value| (value, id)));
        }
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// The exact answer of a search, best first, ties by id.
    pub(crate) fn search(
        &self,
        name: &str,
        query: &[f32],
        filter: &Filter,
        k: usize,
    ) -> Vec<(PointId, f32)> {
        let matching = self.matching(filter);
        let mut scored: Vec<(PointId, f32)> = matching
            .iter()
            .filter_map(|id| {
                let vector = self.points[id].vectors.get(name)?;
                Some((*id, distance(vector, query)))
            })
            .collect();
        scored.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        scored.truncate(k);
        scored
    }
}

/// Sets the keys of `patch`, at the top or in the object at `key`.
fn merge(payload: &mut Payload, patch: &Payload, key: Option<&str>) {
    match key {
        None => payload.extend(patch.clone()),
        Some(key) => {
            let object = payload
                .entry(key)
                .or_insert_with(|| Value::Object(Payload::new()));
            object.as_object_mut().unwrap().extend(patch.clone());
        }
    }
}

pub(crate) fn distance(a: &[f32], b: &[f32]) -> f32 {
    let squared: f64 = a
        .iter()
        .zip(b)
        .map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2))
        .sum();
    squared.sqrt() as f32
}
