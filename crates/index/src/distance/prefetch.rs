//! The hint that a row is needed soon.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Lines that one call asks for. A core has 10 to 24 line-fill buffers; the hardware's own
/// prefetcher follows once a row is being read.
const LINES_MAX: usize = 8;

/// Asks for the first lines of `items`, which never waits and never faults.
#[inline]
pub fn prefetch<T>(items: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..size_of_val(items).div_ceil(LINE).min(LINES_MAX) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = items.as_ptr().wrapping_byte_add(line * LINE);
        // SAFETY: a prefetch reads nothing that the program can see and ignores bad addresses; the
        // instruction (SSE) is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast::<i8>()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, LINE, LINES_MAX);
}
