//! Byte strings of any length: shared readers and their one writer.
//!
//! A blob is `crc32c (4) | bytes` inside one chunk; the checksum covers its address as well, so an
//! address that leads elsewhere is found out. A blob that does not fit into what is left of the
//! current chunk goes to the next one, and one that is larger than that gets a chunk of its own size.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::{Pod, Zeroable};

use super::memory::{Chunk, PAGE_BYTES, Table};
use super::schedule::{CHUNK_BYTES_MIN, doublings_at};
use crate::dir::{Directory, Result};
use crate::file::Damage;

/// Longest blob, in bytes. Requests are limited far below.
pub const BLOB_BYTES_MAX: u32 = 1 << 30;

/// Bytes before a blob's own: its checksum.
const HEADER_BYTES: u32 = 4;

/// Chunks grow to 1 GiB and no further: offsets are u32.
const DOUBLINGS_MAX: u32 = 12;

/// Where a blob lies. As a value of 12 bytes it may stand in a row of a [`super::ChunkArray`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct BlobAddr {
    /// Number of the chunk.
    pub chunk: u32,
    /// Byte offset in it.
    pub offset: u32,
    /// Length in bytes, without the checksum.
    pub len: u32,
}

/// An end of a [`BlobLog`]: everything before it is stored. Later ends are greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobPos {
    /// Number of the chunk.
    pub chunk: u32,
    /// Byte offset in it.
    pub offset: u32,
}

impl BlobPos {
    fn pack(self) -> u64 {
        u64::from(self.chunk) << 32 | u64::from(self.offset)
    }

    fn unpack(packed: u64) -> Self {
        // Two halves of a u64.
        Self {
            chunk: (packed >> 32) as u32,
            offset: packed as u32,
        }
    }
}

/// Blobs, append-only, readable from any thread.
pub struct BlobLog {
    table: Table,
    published: AtomicU64,
}

impl fmt::Debug for BlobLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobLog")
            .field("end", &self.end())
            .finish_non_exhaustive()
    }
}

impl BlobLog {
    /// Bytes of the blobs, and of the room behind them, that are in memory now.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.table.resident_bytes()
    }

    /// The end of what is published.
    #[must_use]
    pub fn end(&self) -> BlobPos {
        BlobPos::unpack(self.published.load(Ordering::Acquire))
    }

    /// The blob at `addr`, its checksum verified.
    ///
    /// Cost: one pass over the blob.
    ///
    /// # Errors
    /// `Damage` when no blob is published there or its bytes do not check.
    pub fn get(&self, addr: BlobAddr) -> std::result::Result<&[u8], Damage> {
        let published = self.end();
        let start = u64::from(addr.offset) + u64::from(HEADER_BYTES);
        let end = start + u64::from(addr.len);
        let chunk = self.table.get(addr.chunk as usize).filter(|chunk| {
            let bound = if addr.chunk < published.chunk {
                chunk.len() as u64
            } else if addr.chunk == published.chunk {
                published.offset.into()
            } else {
                0
            };
            end <= bound
        });
        let damage = |check, expected: u64, found: u64| Damage {
            check,
            offset: addr.offset.into(),
            expected,
            found,
        };
        let Some(chunk) = chunk else {
            return Err(damage("blob address", published.pack(), end));
        };
        // SAFETY: the range lies before an end loaded with Acquire; the writer stores only past it. (In an
        // earlier chunk than the end's, all bytes do: nothing is written there any more.)
        let bytes: &[u8] = unsafe {
            chunk.slice(
                addr.offset as usize,
                HEADER_BYTES as usize + addr.len as usize,
            )
        };
        let (header, blob) = bytes.split_at(HEADER_BYTES as usize);
        let stored = u32::from_le_bytes(header.try_into().expect("the header has four bytes"));
        let computed = checksum(addr, blob);
        if stored == computed {
            Ok(blob)
        } else {
            Err(damage("blob checksum", stored.into(), computed.into()))
        }
    }

    /// Makes what is published between two ends durable, with the entries of its files.
    ///
    /// Blocks: one `msync` a chunk touched, one directory sync if chunks were added.
    ///
    /// # Errors
    /// `Io`: it is not known what is durable.
    pub fn sync(&self, from: BlobPos, to: BlobPos) -> Result<()> {
        let to = to.min(self.end());
        for index in from.chunk..=to.chunk {
            let Some(chunk) = self.table.get(index as usize) else {
                continue;
            };
            let start = if index == from.chunk {
                from.offset.into()
            } else {
                0
            };
            let end = if index == to.chunk {
                to.offset.into()
            } else {
                chunk.region().len()
            };
            chunk.region().sync(start..end)?;
        }
        self.table.sync_entries()
    }
}

/// crc32c of a blob and of where it is.
fn checksum(addr: BlobAddr, blob: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(bytemuck::bytes_of(&addr)), blob)
}

/// The one writer of a [`BlobLog`].
#[derive(Debug)]
pub struct BlobWriter {
    log: Arc<BlobLog>,
    /// End of what is stored; from the published end on it is not visible yet.
    end: BlobPos,
}

impl BlobWriter {
    /// Starts an empty log in the files `<prefix>-<nnnnn>.chunk`. Creates no file before the first
    /// [`Self::reserve`].
    #[must_use]
    pub fn create(dir: Arc<dyn Directory>, prefix: &str) -> Self {
        let log = BlobLog {
            table: Table::new(dir, prefix),
            published: AtomicU64::new(0),
        };
        Self {
            log: Arc::new(log),
            end: BlobPos::default(),
        }
    }

    /// Opens a log that ends at `end`; what lies beyond is written anew. At most one writer may exist for
    /// the files.
    ///
    /// # Errors
    /// `Io` when a chunk is missing, `Damaged` when the last one is shorter than `end` says.
    pub fn open(dir: Arc<dyn Directory>, prefix: &str, end: BlobPos) -> Result<Self> {
        let table = Table::new(dir, prefix);
        for index in 0..end.chunk as usize {
            table.open(index, 1)?;
        }
        if end.offset > 0 {
            table.open(end.chunk as usize, end.offset.into())?;
        }
        let log = BlobLog {
            table,
            published: AtomicU64::new(end.pack()),
        };
        Ok(Self {
            log: Arc::new(log),
            end,
        })
    }

    /// The readers' side.
    #[must_use]
    pub fn log(&self) -> Arc<BlobLog> {
        Arc::clone(&self.log)
    }

    /// End of what is stored, published or not.
    #[must_use]
    pub fn end(&self) -> BlobPos {
        self.end
    }

    /// Makes sure that pushes of blobs of these lengths, in this order, cannot fail.
    ///
    /// Blocks: creates files; no sync.
    ///
    /// # Errors
    /// `DiskFull`, `Io`: nothing has changed then.
    ///
    /// # Panics
    /// When a blob is longer than [`BLOB_BYTES_MAX`].
    pub fn reserve(&mut self, lens: impl IntoIterator<Item = usize>) -> Result<()> {
        let mut wanted: Vec<(usize, u64)> = Vec::new();
        let mut end = self.end;
        for len in lens {
            let need = stored_len(len);
            let capacity = |chunk: u32| match self.log.table.get(chunk as usize) {
                Some(mapped) => Some(mapped.len() as u64),
                // Numbers rise, so a chunk wanted before is the last of the list.
                None => wanted.last().filter(|w| w.0 == chunk as usize).map(|w| w.1),
            };
            let (place, fresh) = place(end, need, capacity);
            if let Some(len) = fresh {
                wanted.push((place.chunk as usize, len));
            }
            end = BlobPos {
                chunk: place.chunk,
                offset: place.offset + need,
            };
        }
        if wanted.is_empty() {
            Ok(())
        } else {
            self.log.table.create(&wanted)
        }
    }

    /// Stores a blob; readers may ask for it after [`Self::publish`].
    ///
    /// # Panics
    /// When there is no reserved room.
    pub fn push(&mut self, blob: &[u8]) -> BlobAddr {
        let need = stored_len(blob.len());
        let mapped = |chunk: u32| self.log.table.get(chunk as usize).map(|c| c.len() as u64);
        let (at, fresh) = place(self.end, need, mapped);
        assert!(fresh.is_none(), "room was reserved before the push");
        let addr = BlobAddr {
            chunk: at.chunk,
            offset: at.offset,
            len: need - HEADER_BYTES,
        };
        let chunk: &Chunk = self
            .log
            .table
            .get(at.chunk as usize)
            .expect("a place that is not fresh is mapped");
        let header = checksum(addr, blob).to_le_bytes();
        let start = at.offset as usize;
        // SAFETY: the range is past the published end, which only this handle moves, so nobody else reads
        // or writes it.
        unsafe { chunk.write(start, &header) };
        // SAFETY: as above.
        unsafe { chunk.write(start + header.len(), blob) };
        self.end = BlobPos {
            chunk: at.chunk,
            offset: at.offset + need,
        };
        addr
    }

    /// Makes all pushed blobs visible to readers.
    pub fn publish(&mut self) {
        self.log.published.store(self.end.pack(), Ordering::Release);
    }

    /// Forgets the blobs pushed since the last publish; their room stays reserved.
    pub fn discard(&mut self) {
        self.end = self.log.end();
    }
}

/// Bytes that a blob of `len` bytes takes.
fn stored_len(len: usize) -> u32 {
    let len = u32::try_from(len).ok().filter(|&len| len <= BLOB_BYTES_MAX);
    len.expect("requests are limited below BLOB_BYTES_MAX") + HEADER_BYTES
}

/// Where `need` bytes go after `end`, given the length of each chunk that is there; and the length of
/// the chunk when it has to be created.
fn place(end: BlobPos, need: u32, capacity: impl Fn(u32) -> Option<u64>) -> (BlobPos, Option<u64>) {
    let mut at = end;
    loop {
        match capacity(at.chunk) {
            Some(len) if u64::from(at.offset) + u64::from(need) <= len => return (at, None),
            Some(_) => {
                at = BlobPos {
                    chunk: at.chunk + 1,
                    offset: 0,
                }
            }
            None => {
                let regular = CHUNK_BYTES_MIN << doublings_at(at.chunk as usize).min(DOUBLINGS_MAX);
                let whole_pages = u64::from(need).next_multiple_of(PAGE_BYTES as u64);
                return (at, Some(regular.max(whole_pages)));
            }
        }
    }
}
