//! What a segment is made of: its vectors and their settings, fixed when it is created.

use std::sync::Arc;

use flatwater_index::codes::{DotPairs, Encoder, Rotation};
use flatwater_index::hnsw::Params;
use flatwater_index::{Metric, Row};

/// One named vector of a segment.
#[derive(Clone, Debug)]
pub struct VectorSpec {
    /// Name, `""` for the unnamed one.
    pub name: String,
    /// Dimensions.
    pub dim: usize,
    /// Metric; `Cosine` rows arrive normalised.
    pub metric: Metric,
    /// Rotation of the codes; one per collection and dimension. `None` where codes do not pay: the
    /// originals are walked and scanned then.
    pub rotation: Option<Arc<Rotation>>,
    /// Graph settings; `None` builds no graph (`m: 0`).
    pub hnsw: Option<Params>,
}

impl VectorSpec {
    /// The encoder of codes around `center`; none where the vector has no codes. Rows are linked by their
    /// distance, also where the metric is the dot product (decision 0004).
    #[must_use]
    pub(crate) fn encoder(&self, center: &[f32]) -> Option<Encoder> {
        let rotation = Arc::clone(self.rotation.as_ref()?);
        Some(Encoder::new(self.metric, rotation, center).with_dot_pairs(DotPairs::Distance))
    }

    /// A vector with the rotation that `seed` gives, where the metric and the dimensions have codes.
    #[must_use]
    pub fn new(name: &str, dim: usize, metric: Metric, hnsw: Option<Params>, seed: u64) -> Self {
        let rotation = Encoder::supports(metric, dim).then(|| Arc::new(Rotation::new(dim, seed)));
        Self {
            name: name.to_owned(),
            dim,
            metric,
            rotation,
            hnsw,
        }
    }
}

/// Everything a segment needs to know to take rows.
#[derive(Clone, Debug)]
pub struct SegmentSpec {
    /// Its vectors, in the order of their names.
    pub vectors: Vec<VectorSpec>,
    /// Rows after which it takes no more.
    pub rows_max: Row,
}

impl SegmentSpec {
    /// Names of the vectors, in their order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let vectors = self.vectors.iter();
        vectors.map(|vector| vector.name.clone()).collect()
    }

    /// Place of a vector by name.
    #[must_use]
    pub fn vector_index(&self, name: &str) -> Option<usize> {
        self.vectors.iter().position(|vector| vector.name == name)
    }
}
