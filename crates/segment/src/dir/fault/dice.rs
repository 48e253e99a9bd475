//! Choices from a seed.

/// splitmix64: small, and the same on every machine.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `sides` (at least 1).
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }

    /// [`Self::roll`] for sizes in memory.
    pub(super) fn roll_usize(&mut self, sides: usize) -> usize {
        // Below `sides`, which is a usize.
        self.roll(sides as u64) as usize
    }
}
