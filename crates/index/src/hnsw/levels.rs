//! The level of a row: a hash of the seed and the row, so it is stored nowhere; or given, where the
//! rows of several graphs were put together.

use crate::Row;

/// Draws levels with the paper's distribution: a row is on level `l` or above with probability
/// `m^-l`. Integers only, so that a graph file reads the same on every machine.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    m: u64,
    seed: u64,
    /// Levels of the first rows; those after them are drawn.
    given: Box<[u8]>,
}

/// Largest level that can be given: a drawn one is at most 63, since `m` is at least 2.
pub(super) const LEVEL_MAX: usize = 63;

impl Levels {
    pub(super) fn new(m: usize, seed: u64) -> Self {
        assert!(m >= 2, "with m below 2 every level would hold every row");
        Self {
            m: m as u64,
            seed,
            given: Box::default(),
        }
    }

    /// The same, except for the first rows, whose levels are these.
    pub(super) fn with_given(self, given: Box<[u8]>) -> Self {
        debug_assert!(
            given.iter().all(|&level| usize::from(level) <= LEVEL_MAX),
            "given levels are within the bound"
        );
        Self { given, ..self }
    }

    /// Highest level of `row`; level 0 holds every row.
    pub(super) fn of(&self, row: Row) -> usize {
        if let Some(&level) = self.given.get(row as usize) {
            return usize::from(level);
        }
        self.draw(row)
    }

    /// What chance gives `row`.
    pub(super) fn draw(&self, row: Row) -> usize {
        let hash = mix(self.seed ^ mix(u64::from(row)));
        let mut bound = u64::MAX / self.m;
        let mut level = 0;
        while hash < bound {
            level += 1;
            bound /= self.m;
        }
        level
    }
}

/// Finalizer of SplitMix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
pub(super) fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_holds_one_in_m_rows_of_the_level_below() {
        for m in [2_usize, 16, 48] {
            let levels = Levels::new(m, 7);
            let rows = 400_000_u32;
            let mut above = [0_f64; 3];
            for row in 0..rows {
                for count in above.iter_mut().take(levels.of(row)) {
                    *count += 1.0;
                }
            }
            for (i, count) in above.iter().enumerate() {
                let expected = f64::from(rows) / (m as f64).powi(i as i32 + 1);
                // Five standard deviations of a binomial count.
                assert!(
                    (count - expected).abs() < 5.0 * expected.sqrt() + 1.0,
                    "m {m}: {above:?}"
                );
            }
        }
    }
}
