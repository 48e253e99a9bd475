//! Checks points before they are accepted, and brings them into the form that is stored.
//!
//! This runs on the submitting thread: vectors are checked, normalised where the metric is cosine,
//! rotated for their codes, and the log record is encoded.

use std::collections::HashMap;

use flatwater_index::Metric;
use flatwater_index::distance::normalize;
use flatwater_segment::PointId;
use flatwater_segment::growing::spec::{SegmentSpec, VectorSpec};
use flatwater_segment::growing::write::{NewRow, NewVector};

use super::update::PointInput;
use crate::error::{EngineError, Result};
use crate::shard::op;

/// Largest squared length of a stored or queried vector: the squared distance of two such vectors
/// still fits an f32, so no score is ever infinite.
const SQUARED_LENGTH_MAX: f64 = f32::MAX as f64 / 4.0;

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
    let names: Vec<String> = spec.vectors.iter().map(|vector| vector.name.clone()).collect();
    let body = op::encode_rows(&names, &rows);
    Ok((rows, body))
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
        Some(payload) if !payload.is_empty() => Some(
            serde_json::to_vec(&payload)
                .map_err(|error| EngineError::Invalid(format!("payload: {error}")))?,
        ),
        _ => None,
    };
    Ok(NewRow { id: point.id, vectors, payload_json })
}

/// Place of a vector by name.
///
/// # Errors
/// `Invalid`, in Qdrant's words, if the collection has no such vector.
pub(crate) fn vector_place(spec: &SegmentSpec, name: &str) -> Result<usize> {
    spec.vector_index(name).ok_or_else(|| {
        EngineError::Invalid(format!("Not existing vector name error: {name}"))
    })
}

/// A vector as it is stored and compared: checked, and normalised for cosine. The error is the
/// text of what is wrong.
pub(crate) fn stored_vector(
    spec: &VectorSpec,
    mut vector: Vec<f32>,
) -> std::result::Result<Vec<f32>, String> {
    if vector.len() != spec.dim {
        return Err(format!(
            "Vector dimension error: expected dim: {}, got {}",
            spec.dim,
            vector.len()
        ));
    }
    if let Some(at) = vector.iter().position(|x| !x.is_finite()) {
        return Err(format!(
            "vector `{}` has the value {} at position {at}; every value must be a finite number",
            spec.name, vector[at]
        ));
    }
    if spec.metric == Metric::Cosine {
        normalize(&mut vector);
        return Ok(vector);
    }
    let squared: f64 = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    if squared > SQUARED_LENGTH_MAX {
        return Err(format!(
            "vector `{}` has the squared length {squared:e}; the limit is {SQUARED_LENGTH_MAX:e}",
            spec.name
        ));
    }
    Ok(vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(metric: Metric) -> SegmentSpec {
        SegmentSpec { vectors: vec![VectorSpec::new("", 2, metric, None, 1)], rows_max: 100 }
    }

    fn point(id: u64, vector: Vec<f32>) -> PointInput {
        PointInput { id: PointId::Num(id), vectors: vec![(String::new(), vector)], payload: None }
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
            (Metric::Euclid, vec![1.0, f32::INFINITY], "inf at position 1"),
            (Metric::Dot, vec![3e38, 3e38], "squared length"),
        ] {
            let error = rows(&spec(metric), vec![point(7, vector)]).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("point 7"), "{error}");
        }
        let unknown = PointInput {
            vectors: vec![("nope".to_owned(), vec![1.0, 2.0])],
            ..point(1, vec![])
        };
        let error = rows(&spec(Metric::Dot), vec![unknown]).unwrap_err().to_string();
        assert!(error.contains("nope"), "{error}");
    }
}
