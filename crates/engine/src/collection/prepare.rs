//! Checks updates before they are accepted, and brings them into the form that is stored.
//!
//! This runs on the submitting thread: vectors are checked, normalised where the metric is cosine,
//! rotated for their codes, and the log record is encoded.

use std::collections::HashMap;

use flatwater_segment::PointId;
use flatwater_segment::growing::write::{NewRow, NewVector};
use flatwater_segment::parts::spec::SegmentSpec;
use flatwater_segment::payload::{Payload, edit};

use super::update::{PointInput, PointVectors, Selection, Update};
use crate::error::{EngineError, Result};
use crate::shard::op::{self, FieldIndexRecord, PayloadEdit};
use crate::shard::{Target, compile, parse_path, schema};
use crate::vectors::{stored_vector, vector_place};

/// An update that was checked and is in the form that is stored.
#[derive(Debug)]
pub struct PreparedUpdate(pub(super) Change);

/// What there is to submit.
#[derive(Debug)]
pub(super) enum Change {
    Upsert { rows: Vec<NewRow>, body: Vec<u8> },
    Delete(Target),
    EditPayload { target: Target, edit: PayloadEdit },
    UpdateVectors(Vec<NewRow>),
    DeleteVectors { target: Target, names: Vec<String> },
    CreateFieldIndex(FieldIndexRecord),
    DeleteFieldIndex(String),
}

/// Everything about an update that can be wrong is found here.
pub(super) fn update(spec: &SegmentSpec, update: Update) -> Result<PreparedUpdate> {
    let change = match update {
        Update::Upsert(points) => {
            let (rows, body) = rows(spec, points)?;
            Change::Upsert { rows, body }
        }
        Update::Delete(selection) => Change::Delete(target(selection)?),
        Update::SetPayload {
            selection,
            payload,
            key,
        } => {
            let payload_json = payload_json(&payload)?;
            edit_payload(selection, PayloadEdit::Set { payload_json, key })?
        }
        Update::OverwritePayload { selection, payload } => {
            let payload_json = payload_json(&payload)?;
            edit_payload(selection, PayloadEdit::Overwrite { payload_json })?
        }
        Update::DeletePayload { selection, keys } => {
            edit_payload(selection, PayloadEdit::DeleteKeys(keys))?
        }
        Update::ClearPayload(selection) => edit_payload(selection, PayloadEdit::Clear)?,
        Update::UpdateVectors(points) => Change::UpdateVectors(partial_rows(spec, points)?),
        Update::DeleteVectors { selection, names } => {
            for name in &names {
                vector_place(spec, name)?;
            }
            let target = target(selection)?;
            Change::DeleteVectors { target, names }
        }
        Update::CreateFieldIndex { field, schema } => {
            parse_path(&field)?;
            Change::CreateFieldIndex(schema::to_record(&field, &schema))
        }
        Update::DeleteFieldIndex { field } => Change::DeleteFieldIndex(field),
    };
    Ok(PreparedUpdate(change))
}

fn edit_payload(selection: Selection, edit: PayloadEdit) -> Result<Change> {
    edit.check()?;
    let target = target(selection)?;
    Ok(Change::EditPayload { target, edit })
}

fn target(selection: Selection) -> Result<Target> {
    Ok(match selection {
        Selection::Ids(ids) => Target::Ids(ids),
        Selection::Filter(filter) => Target::Filter(compile(&filter)?),
    })
}

/// Rows to store, no id twice (the last of equal ids wins), and the body of their log record.
pub(super) fn rows(spec: &SegmentSpec, points: Vec<PointInput>) -> Result<(Vec<NewRow>, Vec<u8>)> {
    let mut rows: Vec<NewRow> = Vec::with_capacity(points.len());
    let mut places: HashMap<PointId, usize> = HashMap::with_capacity(points.len());
    for point in points {
        let row = row(spec, point)?;
        match places.get(&row.id) {
            Some(&place) => rows[place] = row,
            None => {
                places.insert(row.id, rows.len());
                rows.push(row);
            }
        }
    }
    let body = op::encode_rows(&spec.names(), &rows);
    Ok((rows, body))
}

/// Rows with the vectors that are given and nothing else, no id twice: later vectors of an id win.
pub(super) fn partial_rows(spec: &SegmentSpec, points: Vec<PointVectors>) -> Result<Vec<NewRow>> {
    let mut rows: Vec<NewRow> = Vec::with_capacity(points.len());
    let mut places: HashMap<PointId, usize> = HashMap::with_capacity(points.len());
    for PointVectors { id, vectors } in points {
        let point = PointInput {
            id,
            vectors,
            payload: None,
        };
        let row = row(spec, point)?;
        match places.get(&id) {
            Some(&place) => {
                for (vector, later) in rows[place].vectors.iter_mut().zip(row.vectors) {
                    *vector = later.or(vector.take());
                }
            }
            None => {
                places.insert(id, rows.len());
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

/// A payload as it is logged.
pub(super) fn payload_json(payload: &Payload) -> Result<Vec<u8>> {
    serde_json::to_vec(payload).map_err(|error| EngineError::Invalid(format!("payload: {error}")))
}

fn row(spec: &SegmentSpec, point: PointInput) -> Result<NewRow> {
    let mut vectors: Vec<Option<NewVector>> = vec![None; spec.vectors.len()];
    for (name, vector) in point.vectors {
        let place = vector_place(spec, &name)?;
        let original = stored_vector(&spec.vectors[place], vector)
            .map_err(|problem| EngineError::Invalid(format!("{problem} (point {})", point.id)))?;
        let rotated = spec.vectors[place].rotation.as_ref().map(|rotation| {
            let mut rotated = original.clone();
            rotation.rotate(&mut rotated);
            rotated
        });
        vectors[place] = Some(NewVector { original, rotated });
    }
    let payload_json = match point.payload {
        Some(payload) if !payload.is_empty() => Some({
            edit::check_payload(&payload).map_err(|error| {
                EngineError::Invalid(format!("payload of point {}: {error}", point.id))
            })?;
            serde_json::to_vec(&payload)
                .map_err(|error| EngineError::Invalid(format!("payload: {error}")))?
        }),
        _ => None,
    };
    Ok(NewRow {
        id: point.id,
        vectors,
        payload_json,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatwater_index::Metric;
    use flatwater_segment::parts::spec::VectorSpec;

    fn spec(metric: Metric) -> SegmentSpec {
        SegmentSpec {
            vectors: vec![VectorSpec::new("", 2, metric, None, 1)],
            rows_max: 100,
        }
    }

    fn point(id: u64, vector: Vec<f32>) -> PointInput {
        PointInput {
            id: PointId::Num(id),
            vectors: vec![(String::new(), vector)],
            payload: None,
        }
    }

    #[test]
    fn the_last_of_equal_ids_wins_and_keeps_the_first_place() {
        let points = vec![
            point(1, vec![1.0, 0.0]),
            point(2, vec![0.0, 1.0]),
            point(1, vec![0.5, 0.5]),
        ];
        let (rows, _) = rows(&spec(Metric::Dot), points).unwrap();
        let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
        assert_eq!(ids, [PointId::Num(1), PointId::Num(2)]);
        assert_eq!(rows[0].vectors[0].as_ref().unwrap().original, [0.5, 0.5]);
    }

    #[test]
    fn wrong_vectors_are_refused_with_field_value_and_limit() {
        for (metric, vector, text) in [
            (Metric::Dot, vec![1.0], "expected dim: 2, got 1"),
            (Metric::Cosine, vec![f32::NAN, 1.0], "NaN at position 0"),
            (
                Metric::Euclid,
                vec![1.0, f32::INFINITY],
                "inf at position 1",
            ),
            (Metric::Dot, vec![3e38, 3e38], "squared length"),
        ] {
            let error = rows(&spec(metric), vec![point(7, vector)])
                .unwrap_err()
                .to_string();
            assert!(error.contains(text) && error.contains("point 7"), "{error}");
        }
        let unknown = PointInput {
            vectors: vec![("nope".to_owned(), vec![1.0, 2.0])],
            ..point(1, vec![])
        };
        let error = rows(&spec(Metric::Dot), vec![unknown])
            .unwrap_err()
            .to_string();
        assert!(error.contains("nope"), "{error}");
    }
}
