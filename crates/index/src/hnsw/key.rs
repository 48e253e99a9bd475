//! A score and a row in one integer whose order is "better first".
//!
//! The upper half holds the score's bits, mapped so that integers compare as the floats do; the
//! lower half holds the row's complement, so that of two equal scores the smaller row is larger.
//! Heaps and sorted lists of keys then need one comparison of integers, ties included.

use crate::{Row, Scored};

/// Larger is better; equal only for the same row and score.
pub(super) type Key = u64;

const SIGN: u32 = 1 << 31;

#[inline]
pub(super) fn key(score: f32, row: Row) -> Key {
    // NaN ranks below every number, as in `Scored::best_first`.
    let score = if score.is_nan() {
        f32::NEG_INFINITY
    } else {
        score
    };
    let bits = score.to_bits();
    let ordered = if bits & SIGN == 0 { bits | SIGN } else { !bits };
    (u64::from(ordered) << 32) | u64::from(!row)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half is the row")]
pub(super) fn row_of(key: Key) -> Row {
    !(key as u32)
}

#[inline]
pub(super) fn score_of(key: Key) -> f32 {
    let ordered = (key >> 32) as u32;
    f32::from_bits(if ordered & SIGN == 0 {
        !ordered
    } else {
        ordered & !SIGN
    })
}

pub(super) fn scored(key: Key) -> Scored {
    Scored {
        row: row_of(key),
        score: score_of(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_order_as_scored_rows_do(
            a in proptest::num::f32::ANY, b in proptest::num::f32::ANY, x: Row, y: Row,
        ) {
            let (left, right) = (Scored { row: x, score: a }, Scored { row: y, score: b });
            prop_assert_eq!(key(b, y).cmp(&key(a, x)), left.best_first(&right));
            prop_assert_eq!(row_of(key(a, x)), x);
            if !a.is_nan() {
                prop_assert_eq!(score_of(key(a, x)).to_bits(), a.to_bits());
            }
        }
    }
}
