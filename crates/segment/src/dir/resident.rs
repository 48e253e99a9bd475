//! How much of a mapping is in memory.

use std::ptr::NonNull;

/// Pages asked about at a time: 64 MB of a mapping, for 16 KB of answers.
const PAGES_PER_LOOK: usize = 1 << 14;

/// Size of a page where the kernel does not tell.
const PAGE_BYTES: usize = 4096;

/// Bytes of the mapping at `base`, `len` bytes long, that are in memory. What the kernel does not tell counts
/// as not there.
///
/// # Safety
/// `base` is the start of a mapping of at least `len` bytes, which stays mapped during the call.
pub(super) unsafe fn resident_bytes(base: NonNull<u8>, len: usize) -> u64 {
    let page = page_bytes();
    let mut marks = vec![0_u8; PAGES_PER_LOOK];
    let mut pages = 0_usize;
    for start in (0..len).step_by(PAGES_PER_LOOK * page) {
        let bytes = (len - start).min(PAGES_PER_LOOK * page);
        let asked = bytes.div_ceil(page);
        let from = base.as_ptr().wrapping_add(start);
        // SAFETY: the caller promises that the range is mapped; `from` is at a page, since the mapping's start
        // is and whole pages were passed. The kernel reads and writes none of its memory: it writes one byte
        // for each page of the range to `marks`, which has room for `PAGES_PER_LOOK` of them.
        let outcome = unsafe { libc::mincore(from.cast(), bytes, marks.as_mut_ptr()) };
        if outcome == 0 {
            let marked = marks.iter().take(asked);
            pages += marked.filter(|&&mark| mark & 1 == 1).count();
        }
    }
    (pages * page).min(len) as u64
}

fn page_bytes() -> usize {
    // SAFETY: no memory is handed over.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes)
        .ok()
        .filter(|&bytes| bytes > 0)
        .unwrap_or(PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use memmap2::MmapMut;

    use super::*;

    #[test]
    fn pages_that_were_touched_are_in_memory_and_the_others_are_not() {
        let (page, pages) = (page_bytes(), 3 * PAGES_PER_LOOK);
        let mut map = MmapMut::map_anon(pages * page).unwrap();
        let base = NonNull::new(map.as_mut_ptr()).unwrap();
        // SAFETY: the mapping lives to the end of the test.
        let resident = || unsafe { resident_bytes(base, pages * page) };
        let before = resident();
        for touched in [0, 1, PAGES_PER_LOOK, pages - 1] {
            // SAFETY: the page lies inside the mapping, which nobody else uses.
            unsafe { base.add(touched * page).write(1) };
        }
        let after = resident();
        // Kernels with huge pages bring more than was touched, never less.
        assert!(after >= before + 4 * page as u64, "{before} {after}");
        assert!(after <= (pages * page) as u64);
    }
}
