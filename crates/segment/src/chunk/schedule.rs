//! How large the chunks are: equal small ones first, then 16 for each doubling of the whole.
//!
//! With `unit` the size of chunk 0, chunks 0 to 31 hold one unit each, the next 16 two, the next 16
//! four and so on. So the whole is never more than a sixteenth (or one unit) larger than what it holds, an
//! empty collection costs one unit, 200 MB of vectors lie in chunks of 8 MB, and a few hundred
//! chunks cover every possible row: the table has a fixed size and the files stay few. The chunk of
//! a row is found by a shift, as in a floating-point number with four bits of mantissa.

/// Bytes of the first chunks, about: small enough that a hundred empty collections cost little, large
/// enough that a segment of 200 MB has some 140 chunks an array. Half of it halves the former and adds 16
/// chunks to the latter.
pub const CHUNK_BYTES_MIN: u64 = 256 << 10;

/// Chunks for each doubling, as a power of two.
const STEPS_LOG2: u32 = 4;

/// Chunks for each doubling; the waste at the end is at most one in this many.
pub(super) const STEPS: u32 = 1 << STEPS_LOG2;

/// Enough for 2^32 units: `STEPS * (31 - STEPS_LOG2) + 2 * STEPS` chunks.
pub(super) const CHUNKS_MAX: usize = (STEPS * (31 - STEPS_LOG2) + 2 * STEPS) as usize;

/// Which chunk holds a row, for rows of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    /// log2 of the rows in chunk 0.
    unit_log2: u32,
}

impl Schedule {
    /// For rows of `row_bytes` bytes (at least 1).
    pub(super) fn new(row_bytes: u64) -> Self {
        assert!(row_bytes > 0, "a row has at least one byte");
        // A power of two of rows that takes between half of CHUNK_BYTES_MIN and all of it, or one row.
        let unit_log2 = (CHUNK_BYTES_MIN / row_bytes).max(1).ilog2();
        Self { unit_log2 }
    }

    /// Chunk of a row, and the row's place in it.
    #[inline]
    pub(super) fn locate(self, row: u32) -> (usize, u32) {
        let unit = row >> self.unit_log2;
        let doublings = (unit | STEPS).ilog2() - STEPS_LOG2;
        let chunk = STEPS * doublings + (unit >> doublings);
        let within = row & (((1_u64 << (self.unit_log2 + doublings)) - 1) as u32);
        (chunk as usize, within)
    }

    /// How many rows chunk `chunk` holds.
    #[inline]
    pub(super) fn rows_in(self, chunk: usize) -> u64 {
        (1 << self.unit_log2) << doublings_at(chunk)
    }
}

/// How often the chunk size has doubled at chunk `chunk`.
#[inline]
pub(super) fn doublings_at(chunk: usize) -> u32 {
    ((chunk as u32) >> STEPS_LOG2).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_each_other_through_the_chunks() {
        for row_bytes in [1, 4, 12, 512, 3_072, 6_000, 1 << 20] {
            let schedule = Schedule::new(row_bytes);
            let (mut row, mut chunk) = (0_u64, 0);
            while row <= u64::from(u32::MAX) {
                let rows = schedule.rows_in(chunk);
                assert_eq!(schedule.locate(row as u32), (chunk, 0));
                let last = (row + rows - 1).min(u64::from(u32::MAX));
                assert_eq!(schedule.locate(last as u32), (chunk, (last - row) as u32));
                row += rows;
                chunk += 1;
            }
            assert!(
                chunk <= CHUNKS_MAX,
                "{chunk} chunks of {row_bytes} bytes a row"
            );
        }
    }

    #[test]
    fn the_first_chunk_is_small_and_the_waste_is_at_most_a_sixteenth() {
        let row_bytes = 3_072;
        let schedule = Schedule::new(row_bytes);
        assert!(schedule.rows_in(0) * row_bytes <= CHUNK_BYTES_MIN);
        let mut held = 0;
        for chunk in 0..200 {
            let rows = schedule.rows_in(chunk);
            assert!(rows <= schedule.rows_in(0).max(held / 16), "chunk {chunk}");
            held += rows;
        }
    }
}
