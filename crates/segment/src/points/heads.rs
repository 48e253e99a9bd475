//! The fixed part of a row: its id, its `seq`, and the previous row of the same id.

use flatwater_index::Row;

use crate::ids::{PointId, SeqNo};

/// `u64` words of a stored head: id (two words), `seq`, then kind and previous row in one word.
pub const HEAD_WORDS: usize = 4;

/// Marks "no previous row".
const NO_ROW: u32 = u32::MAX;

/// What is known of a row besides its vectors and its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHead {
    /// Id of the point.
    pub id: PointId,
    /// Operation that stored this row.
    pub seq: SeqNo,
    /// Row of the same id that was the newest before this one.
    pub previous: Option<Row>,
}

impl RowHead {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> [u64; HEAD_WORDS] {
        let (low, high, kind) = match self.id {
            PointId::Num(n) => (n, 0, 0u64),
            PointId::Uuid(u) => (u as u64, (u >> 64) as u64, 1),
        };
        let previous = u64::from(self.previous.unwrap_or(NO_ROW));
        [low, high, self.seq, kind << 32 | previous]
    }

    /// Reads the stored form back; `None` if the words cannot be a head.
    #[must_use]
    pub fn decode(words: &[u64]) -> Option<Self> {
        let [low, high, seq, tail] = *words else {
            return None;
        };
        let id = match tail >> 32 {
            0 => PointId::Num(low),
            1 => PointId::Uuid(u128::from(high) << 64 | u128::from(low)),
            _ => return None,
        };
        let previous = match tail as u32 {
            NO_ROW => None,
            row => Some(row),
        };
        Some(Self { id, seq, previous })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_reads_back_as_it_was_written() {
        for id in [
            PointId::Num(0),
            PointId::Num(u64::MAX),
            PointId::Uuid(u128::MAX - 5),
        ] {
            for previous in [None, Some(0), Some(u32::MAX - 1)] {
                let head = RowHead {
                    id,
                    seq: 77,
                    previous,
                };
                assert_eq!(RowHead::decode(&head.encode()), Some(head));
            }
        }
        assert_eq!(RowHead::decode(&[0, 0, 1, 2 << 32]), None);
    }
}
