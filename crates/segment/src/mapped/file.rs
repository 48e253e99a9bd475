//! The file: its header, how it is written once, how it is checked.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::Pod;

use crate::chunk::Chunk;
use crate::dir::{DirError, Directory, Result};
use crate::file::codec::{Decoder, Encoder};
use crate::file::{Damage, Kind, check};

/// First eight bytes of every mapped file.
pub const MAGIC: [u8; 8] = *b"FLATWMAP";

/// Bytes before the rows: a cache line, so that rows keep the alignment of their size.
pub const HEADER_BYTES: usize = 64;

/// Version of the header.
const VERSION: u32 = 1;

/// Bytes of the header that its own checksum covers.
const HEADER_CRC_AT: usize = 36;

/// Bytes of a file that are synced at a time: bounds how much dirty memory a finished file leaves to
/// one sync, behind which others would wait.
const SYNC_BYTES: u64 = 32 << 20;

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    kind: Kind,
    row_bytes: u32,
    rows: u64,
    crc: u32,
}

impl Header {
    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = Encoder::with_capacity(HEADER_BYTES);
        out.raw(&MAGIC);
        out.raw(&self.kind);
        out.u32(VERSION);
        out.u64(self.rows);
        out.u32(self.row_bytes);
        out.u32(0);
        out.u32(self.crc);
        let crc = crc32c::crc32c(out.as_bytes());
        out.u32(crc);
        let mut bytes = [0; HEADER_BYTES];
        let (filled, _) = bytes.split_at_mut(out.as_bytes().len());
        filled.copy_from_slice(out.as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> std::result::Result<Self, Damage> {
        let mut input = Decoder::new(bytes);
        let magic = input.u64()?;
        let kind = input.u32()?.to_le_bytes();
        let version = input.u32()?;
        let rows = input.u64()?;
        let row_bytes = input.u32()?;
        let reserved = input.u32()?;
        let crc = input.u32()?;
        let covered = bytes.get(..HEADER_CRC_AT).unwrap_or_default();
        let header_crc = input.u32()?;
        check("magic", 0, u64::from_le_bytes(MAGIC), magic)?;
        let computed = crc32c::crc32c(covered).into();
        check(
            "header checksum",
            HEADER_CRC_AT as u64,
            computed,
            header_crc.into(),
        )?;
        check("version", 12, VERSION.into(), version.into())?;
        check("reserved field", 28, 0, reserved.into())?;
        let padding = bytes
            .get(HEADER_CRC_AT + 4..HEADER_BYTES)
            .unwrap_or_default();
        let stray = padding.iter().position(|&byte| byte != 0);
        check(
            "padding",
            HEADER_CRC_AT as u64 + 4,
            0,
            stray.map_or(0, |at| at as u64 + 1),
        )?;
        Ok(Self {
            kind,
            row_bytes,
            rows,
            crc,
        })
    }

    /// Length of the whole file, if it can exist.
    fn file_bytes(&self) -> Option<u64> {
        self.rows
            .checked_mul(self.row_bytes.into())?
            .checked_add(HEADER_BYTES as u64)
    }
}

/// A finished mapped file.
#[derive(Debug)]
pub struct MappedFile {
    chunk: Chunk,
    header: Header,
    path: PathBuf,
}

impl MappedFile {
    /// Maps a file of `kind` whose rows have `row_bytes` bytes.
    ///
    /// # Errors
    /// `Damaged` where the header or the length does not check; `Io` when there is no such file.
    ///
    /// Cost: one page is read.
    pub fn open(dir: &dyn Directory, name: &str, kind: Kind, row_bytes: usize) -> Result<Self> {
        let path = dir.path().join(name);
        let region = dir.open_region(name)?;
        let damaged = |damage| DirError::Damaged {
            path: path.clone(),
            damage,
        };
        let len = region.len();
        check(
            "file length",
            0,
            HEADER_BYTES as u64,
            len.min(HEADER_BYTES as u64),
        )
        .map_err(damaged)?;
        let chunk = Chunk::new(region);
        // SAFETY: the file was finished before it got this name in a listed segment; nobody writes it.
        let bytes: &[u8] = unsafe { chunk.slice(0, HEADER_BYTES) };
        let header = Header::decode(bytes).map_err(damaged)?;
        let as_number = |kind: Kind| u64::from(u32::from_le_bytes(kind));
        check("file kind", 8, as_number(kind), as_number(header.kind)).map_err(damaged)?;
        check("row bytes", 24, row_bytes as u64, header.row_bytes.into()).map_err(damaged)?;
        let expected = header.file_bytes().unwrap_or(u64::MAX);
        check("file length", 16, expected, len).map_err(damaged)?;
        Ok(Self {
            chunk,
            header,
            path,
        })
    }

    /// Where it is, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of it that are in memory now.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.chunk.resident_bytes()
    }

    /// Rows in the file.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.header.rows
    }

    /// Reads all rows and compares their checksum.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn verify(&self) -> Result<()> {
        let bytes = self.chunk.len() - HEADER_BYTES;
        let computed = crc32c::crc32c(self.values::<u8>(HEADER_BYTES, bytes));
        let stored = self.header.crc.into();
        check("checksum of the rows", 32, stored, computed.into()).map_err(|damage| {
            DirError::Damaged {
                path: self.path.clone(),
                damage,
            }
        })
    }

    /// The `count` values at byte `at` of the file.
    ///
    /// # Panics
    /// Past the end of the file.
    #[inline]
    pub(super) fn values<T: Pod>(&self, at: usize, count: usize) -> &[T] {
        // SAFETY: a finished file is never written, so no writer exists.
        unsafe { self.chunk.slice(at, count) }
    }

    #[inline]
    pub(super) fn prefetch(&self, at: usize, bytes: usize) {
        self.chunk.prefetch(at, bytes);
    }
}

/// Writes a mapped file, row by row, once.
#[derive(Debug)]
pub struct MappedWriter<T> {
    chunk: Chunk,
    header: Header,
    width: usize,
    pushed: u64,
    values: PhantomData<T>,
}

impl<T: Pod> MappedWriter<T> {
    /// Allocates a file for exactly `rows` rows of `width` values.
    ///
    /// # Errors
    /// `DiskFull`; `Io` also when the name is taken.
    pub fn create(
        dir: &Arc<dyn Directory>,
        name: &str,
        kind: Kind,
        width: usize,
        rows: u64,
    ) -> Result<Self> {
        let header = Header {
            kind,
            row_bytes: (width * size_of::<T>()) as u32,
            rows,
            crc: 0,
        };
        let bytes = header.file_bytes().unwrap_or(u64::MAX);
        let chunk = Chunk::new(dir.create_region(name, bytes)?);
        Ok(Self {
            chunk,
            header,
            width,
            pushed: 0,
            values: PhantomData,
        })
    }

    /// Stores the next rows: any whole number of them.
    ///
    /// # Panics
    /// Past the number of rows that the file was made for.
    pub fn push(&mut self, values: &[T]) {
        let rows = (values.len() / self.width) as u64;
        assert!(
            values.len().is_multiple_of(self.width) && rows <= self.header.rows - self.pushed,
            "a file holds the rows it was made for"
        );
        let at = HEADER_BYTES + (self.pushed * u64::from(self.header.row_bytes)) as usize;
        // SAFETY: nobody maps the file for reading before `finish`, and this is its only writer.
        unsafe { self.chunk.write(at, values) };
        self.header.crc = crc32c::crc32c_append(self.header.crc, bytemuck::cast_slice(values));
        self.pushed += rows;
    }

    /// Writes the header and makes the bytes durable. The entry is made durable by
    /// [`Directory::sync`].
    ///
    /// # Errors
    /// `Io`.
    ///
    /// # Panics
    /// If rows are missing.
    pub fn finish(self) -> Result<()> {
        assert_eq!(self.pushed, self.header.rows, "all rows were stored");
        // SAFETY: as in `push`.
        unsafe { self.chunk.write(0, &self.header.encode()) };
        let len = self.chunk.len() as u64;
        for start in (0..len).step_by(SYNC_BYTES as usize) {
            let end = (start + SYNC_BYTES).min(len);
            self.chunk.region().sync(start..end)?;
        }
        Ok(())
    }
}
