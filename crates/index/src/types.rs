//! The few types that every algorithm here shares.

use std::cmp::Ordering;

/// Position of a row inside one segment; rows are numbered from 0 in the order of arrival.
pub type Row = u32;

/// How two vectors are compared.
///
/// Inside the engine a score is always "larger is better": the dot product for `Cosine` (vectors
/// are normalised when they are stored) and `Dot`, the negated squared distance for `Euclid`, the
/// negated sum of absolute differences for `Manhattan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Dot product of vectors that were normalised at ingest.
    Cosine,
    /// Plain dot product.
    Dot,
    /// Euclidean distance.
    Euclid,
    /// Sum of absolute differences.
    Manhattan,
}

impl Metric {
    /// The number a user sees: similarity for `Cosine` and `Dot`, distance for the others.
    #[must_use]
    pub fn wire_score(self, score: f32) -> f32 {
        match self {
            Self::Cosine | Self::Dot => score,
            Self::Euclid => (-score).max(0.0).sqrt(),
            Self::Manhattan => (-score).max(0.0),
        }
    }

    /// Whether the number a user sees grows with similarity.
    #[must_use]
    pub fn wire_larger_is_better(self) -> bool {
        matches!(self, Self::Cosine | Self::Dot)
    }
}

/// A row and its score; larger scores are better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The row.
    pub row: Row,
    /// Its score, larger is better.
    pub score: f32,
}

impl Scored {
    /// Best first: by score descending (NaN last), then by row ascending.
    #[must_use]
    pub fn best_first(&self, other: &Self) -> Ordering {
        let (a, b) = (rank(self.score), rank(other.score));
        b.total_cmp(&a).then(self.row.cmp(&other.row))
    }
}

/// NaN ranks below every number, whatever its sign bit.
fn rank(score: f32) -> f32 {
    if score.is_nan() {
        f32::NEG_INFINITY
    } else {
        score
    }
}
