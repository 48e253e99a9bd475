//! Vectors from outside: checked, and brought into the form that is stored and compared.

use flatwater_index::Metric;
use flatwater_index::distance::normalize;
use flatwater_segment::parts::spec::{SegmentSpec, VectorSpec};

use crate::error::{EngineError, Result};

/// Largest squared length of a stored or queried vector: the squared distance of two such vectors
/// still fits an f32, so no score is ever infinite.
const SQUARED_LENGTH_MAX: f64 = f32::MAX as f64 / 4.0;

/// Place of a vector by name.
///
/// # Errors
/// `Invalid`, in Qdrant's words, if the collection has no such vector.
pub(crate) fn vector_place(spec: &SegmentSpec, name: &str) -> Result<usize> {
    spec.vector_index(name)
        .ok_or_else(|| EngineError::Invalid(format!("Not existing vector name error: {name}")))
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
