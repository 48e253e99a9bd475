//! Identifiers: points and the order of accepted operations.

use std::fmt;

/// Order of an accepted operation in its shard; the first one is 1.
pub type SeqNo = u64;

/// Id of a point: an unsigned integer or a UUID. Integers order before UUIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PointId {
    /// Unsigned 64-bit integer.
    Num(u64),
    /// UUID as its 128-bit number.
    Uuid(u128),
}

impl fmt::Display for PointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Num(n) => write!(f, "{n}"),
            Self::Uuid(u) => write!(f, "{}", uuid::Uuid::from_u128(*u)),
        }
    }
}
