//! Vectors, in both encodings of the wire: `dense`, and the list of numbers that clients before 1.16
//! send.

use flatwater_engine::config::collection::UNNAMED;
use qdrant_client::qdrant;
use qdrant_client::qdrant::vectors::VectorsOptions;
use qdrant_client::qdrant::{vector, vector_output, vectors_output};

use super::shape::required;
use crate::convert::query::not_finite;
use crate::error::{ApiError, Result};
use crate::fields::short;

/// Reads the vectors of a point by name. `point` names it in the errors, and `id` for the reader.
pub(super) fn decode(
    vectors: Option<qdrant::Vectors>,
    point: &str,
    id: &str,
) -> Result<Vec<(String, Vec<f32>)>> {
    let options = vectors.and_then(|vectors| vectors.vectors_options);
    match required(&format!("{point}.vectors"), options)? {
        VectorsOptions::Vector(vector) => {
            Ok(vec![(UNNAMED.to_owned(), dense(vector, UNNAMED, id)?)])
        }
        VectorsOptions::Vectors(named) => {
            let mut list = named
                .vectors
                .into_iter()
                .map(|(name, vector)| {
                    let vector = dense(vector, &name, id)?;
                    Ok((name, vector))
                })
                .collect::<Result<Vec<_>>>()?;
            // A map of the wire has no order; faults of two vectors are told in the same one always.
            list.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            Ok(list)
        }
    }
}

#[allow(deprecated, reason = "clients before 1.16 send these fields")]
fn dense(vector: qdrant::Vector, name: &str, id: &str) -> Result<Vec<f32>> {
    let at = format!("point {}, vector `{}`", short(id), short(name));
    let not_served = |kind: &str| Err(ApiError::NotServed(format!("{at} as {kind}")));
    let data = match vector.vector {
        Some(vector::Vector::Dense(dense)) => dense.data,
        Some(vector::Vector::Sparse(_)) => return not_served("a sparse vector"),
        Some(vector::Vector::MultiDense(_)) => return not_served("a multivector"),
        Some(vector::Vector::Document(_)) => return not_served("a document (inference)"),
        Some(vector::Vector::Image(_)) => return not_served("an image (inference)"),
        Some(vector::Vector::Object(_)) => return not_served("an object (inference)"),
        None if vector.indices.is_some() => return not_served("a sparse vector"),
        None if vector.vectors_count.is_some_and(|count| count > 1) => {
            return not_served("a multivector");
        }
        None => vector.data,
    };
    check_finite(&data, &at)?;
    Ok(data)
}

/// Refuses the first element that is NaN or infinite; `path` names the vector.
pub(super) fn check_finite(data: &[f32], path: &str) -> Result<()> {
    match data.iter().position(|number| !number.is_finite()) {
        None => Ok(()),
        Some(at) => {
            let found = data.get(at).map(ToString::to_string).unwrap_or_default();
            Err(not_finite(path, at, &found))
        }
    }
}

/// Vectors on their way out: the unnamed one alone is a vector, anything else a map.
pub(super) fn encode(vectors: Vec<(String, Vec<f32>)>) -> qdrant::VectorsOutput {
    use vectors_output::VectorsOptions;
    let is_unnamed = matches!(vectors.as_slice(), [(name, _)] if name == UNNAMED);
    let mut outputs = vectors.into_iter().map(|(name, data)| (name, output(data)));
    let options = if is_unnamed {
        outputs
            .next()
            .map(|(_, vector)| VectorsOptions::Vector(vector))
    } else {
        Some(VectorsOptions::Vectors(qdrant::NamedVectorsOutput {
            vectors: outputs.collect(),
        }))
    };
    qdrant::VectorsOutput {
        vectors_options: options,
    }
}

fn output(data: Vec<f32>) -> qdrant::VectorOutput {
    let dense = qdrant::DenseVector { data };
    qdrant::VectorOutput {
        vector: Some(vector_output::Vector::Dense(dense)),
        ..Default::default()
    }
}
