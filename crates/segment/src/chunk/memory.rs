//! Mapped chunks by number, and access to their bytes.
//!
//! The rule that makes shared access sound, kept by the two writers of this module: a byte is written only
//! by the one writer handle of its table and only before it is published; it is read through a slice
//! only after an Acquire load that saw it published.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytemuck::Pod;

use super::schedule::CHUNKS_MAX;
use crate::dir::{DirError, Directory, Region, Result};
use crate::file::Damage;

/// What every region's start is aligned to; row types may ask for no more.
pub(super) const PAGE_BYTES: usize = 4096;

/// Bytes in a cache line of the CPUs served.
const CACHE_LINE_BYTES: usize = 64;

/// Lines that one prefetch asks for. More would evict each other in the line-fill buffers (10 to 16 on
/// today's cores), and the hardware's own prefetcher follows once a row is being read.
const PREFETCH_LINES_MAX: usize = 8;

/// One mapped chunk, or a whole mapped file (see [`crate::mapped`]).
#[derive(Debug)]
pub(crate) struct Chunk {
    base: NonNull<u8>,
    len: usize,
    region: Arc<dyn Region>,
}

// SAFETY: `base` points into `region`, which is Send + Sync, keeps the memory mapped at one address, and
// lives as long as this value. Which bytes may be touched from which thread is the contract of
// `slice` and `write`, the only functions that touch them.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    pub(crate) fn new(region: Arc<dyn Region>) -> Self {
        let base = NonNull::new(region.as_ptr()).expect("a mapped region is not at address 0");
        assert_eq!(
            base.as_ptr().addr() % PAGE_BYTES,
            0,
            "a region starts at a page"
        );
        let len = usize::try_from(region.len()).expect("a mapping's length is a usize");
        Self { base, len, region }
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of it that are in memory now.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.region.resident_bytes()
    }

    /// What makes it durable.
    pub(crate) fn region(&self) -> &dyn Region {
        &*self.region
    }

    /// The `count` values that start `at` bytes into the chunk.
    ///
    /// # Safety
    /// Those bytes have been published (the caller's Acquire load saw it) or no writer exists: nobody writes
    /// them while `self` lives.
    #[inline]
    pub(crate) unsafe fn slice<T: Pod>(&self, at: usize, count: usize) -> &[T] {
        self.check_range::<T>(at, count);
        // SAFETY: the range lies inside the chunk (checked above).
        let start = unsafe { self.base.add(at) };
        // SAFETY: the range is mapped and lives as long as `self`; it is aligned for T (checked above);
        // any bits are a T (Pod); the caller promises that nobody writes it.
        unsafe { std::slice::from_raw_parts(start.cast::<T>().as_ptr(), count) }
    }

    /// Stores values `at` bytes into the chunk.
    ///
    /// # Safety
    /// Those bytes are not published, and the caller is the only writer of this chunk.
    #[inline]
    pub(crate) unsafe fn write<T: Pod>(&self, at: usize, values: &[T]) {
        self.check_range::<T>(at, values.len());
        // SAFETY: the range lies inside the chunk (checked above).
        let start = unsafe { self.base.add(at) };
        // SAFETY: the target is mapped, writable and aligned for T; no slice of it exists since only
        // published bytes are sliced; `values` is a live slice elsewhere.
        unsafe {
            start
                .cast::<T>()
                .as_ptr()
                .copy_from_nonoverlapping(values.as_ptr(), values.len());
        }
    }

    /// Asserts that `count` values at byte `at` lie inside and are aligned.
    #[inline]
    fn check_range<T>(&self, at: usize, count: usize) {
        const {
            assert!(
                align_of::<T>() <= PAGE_BYTES,
                "a page holds no such alignment"
            );
        }
        assert!(
            at <= self.len && count <= (self.len - at) / size_of::<T>().max(1),
            "a row lies inside its chunk"
        );
        assert!(at.is_multiple_of(align_of::<T>()), "a row is aligned");
    }

    /// Asks the CPU to fetch `bytes` bytes from `at`. Any numbers will do.
    #[inline]
    pub(crate) fn prefetch(&self, at: usize, bytes: usize) {
        let lines = bytes.div_ceil(CACHE_LINE_BYTES).min(PREFETCH_LINES_MAX);
        for line in 0..lines {
            prefetch_line(
                self.base
                    .as_ptr()
                    .wrapping_add(at + line * CACHE_LINE_BYTES),
            );
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn prefetch_line(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing that the program could see and never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn prefetch_line(_address: *const u8) {}

/// The chunks `<prefix>-<nnnnn>.chunk` of one directory.
#[derive(Debug)]
pub(super) struct Table {
    chunks: Box<[OnceLock<Chunk>]>,
    dir: Arc<dyn Directory>,
    prefix: String,
    /// Whether files were created since their entries were last synced.
    entries_unsynced: AtomicBool,
}

impl Table {
    pub(super) fn new(dir: Arc<dyn Directory>, prefix: &str) -> Self {
        let chunks = std::iter::repeat_with(OnceLock::new)
            .take(CHUNKS_MAX)
            .collect();
        Self {
            chunks,
            dir,
            prefix: prefix.to_owned(),
            entries_unsynced: AtomicBool::new(false),
        }
    }

    /// Chunk `index`, if it is mapped.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Chunk> {
        self.chunks.get(index)?.get()
    }

    /// Bytes of the mapped chunks that are in memory now.
    pub(super) fn resident_bytes(&self) -> u64 {
        let mapped = self.chunks.iter().filter_map(OnceLock::get);
        mapped.map(Chunk::resident_bytes).sum()
    }

    fn name(&self, index: usize) -> String {
        format!("{}-{index:05}.chunk", self.prefix)
    }

    /// Maps an existing chunk of at least `len_min` bytes.
    pub(super) fn open(&self, index: usize, len_min: u64) -> Result<&Chunk> {
        let name = self.name(index);
        let region = self.dir.open_region(&name)?;
        if region.len() < len_min {
            let path = self.dir.path().join(name);
            let (expected, found) = (len_min, region.len());
            let damage = Damage {
                check: "chunk length",
                offset: found,
                expected,
                found,
            };
            return Err(DirError::Damaged { path, damage });
        }
        Ok(self.install(index, region))
    }

    /// Creates the chunks of the given numbers and lengths: all of them or none.
    pub(super) fn create(&self, wanted: &[(usize, u64)]) -> Result<()> {
        let mut made = Vec::with_capacity(wanted.len());
        for &(index, len) in wanted {
            match self.create_region(index, len) {
                Ok(region) => made.push((index, region)),
                Err(error) => {
                    for (index, _) in made {
                        // Best effort: a leftover is replaced by the next reserve.
                        drop(self.dir.remove(&self.name(index)));
                    }
                    return Err(error);
                }
            }
        }
        for (index, region) in made {
            self.install(index, region);
        }
        self.entries_unsynced.store(true, Ordering::Release);
        Ok(())
    }

    /// A new region; a file that a crash left in its place held nothing that counts and goes.
    fn create_region(&self, index: usize, len: u64) -> Result<Arc<dyn Region>> {
        let name = self.name(index);
        match self.dir.create_region(&name, len) {
            Err(e) if e.is_exists() => {
                self.dir.remove(&name)?;
                self.dir.create_region(&name, len)
            }
            other => other,
        }
    }

    fn install(&self, index: usize, region: Arc<dyn Region>) -> &Chunk {
        let slot = self
            .chunks
            .get(index)
            .expect("the schedule numbers chunks below CHUNKS_MAX");
        assert!(slot.get().is_none(), "a chunk is mapped once");
        slot.get_or_init(|| Chunk::new(region))
    }

    /// Makes the entries of created chunks durable.
    pub(super) fn sync_entries(&self) -> Result<()> {
        if self.entries_unsynced.swap(false, Ordering::AcqRel) {
            self.dir
                .sync()
                .inspect_err(|_| self.entries_unsynced.store(true, Ordering::Release))?;
        }
        Ok(())
    }

    /// `damage` of chunk `index`, for a caller that has to name the file.
    pub(super) fn damaged(&self, index: usize, damage: Damage) -> DirError {
        DirError::Damaged {
            path: self.dir.path().join(self.name(index)),
            damage,
        }
    }
}
