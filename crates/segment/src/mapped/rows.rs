//! Rows of one width in a mapped file.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;

use super::file::{HEADER_BYTES, MappedFile};
use crate::dir::{Directory, Result};
use crate::file::Kind;

/// Rows `[T; width]` of a finished file. Cloning it copies a pointer.
pub struct MappedRows<T> {
    file: Arc<MappedFile>,
    width: usize,
    rows: u64,
    values: PhantomData<T>,
}

impl<T> Clone for MappedRows<T> {
    fn clone(&self) -> Self {
        Self {
            file: Arc::clone(&self.file),
            ..*self
        }
    }
}

impl<T> fmt::Debug for MappedRows<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedRows")
            .field("file", &self.file.path())
            .field("width", &self.width)
            .field("rows", &self.rows)
            .finish()
    }
}

impl<T: Pod> MappedRows<T> {
    /// Opens the rows of a file.
    ///
    /// # Errors
    /// As [`MappedFile::open`].
    pub fn open(dir: &dyn Directory, name: &str, kind: Kind, width: usize) -> Result<Self> {
        let file = MappedFile::open(dir, name, kind, width * size_of::<T>())?;
        Ok(Self {
            rows: file.rows(),
            file: Arc::new(file),
            width,
            values: PhantomData,
        })
    }

    /// The file behind the rows.
    #[must_use]
    pub fn file(&self) -> &MappedFile {
        &self.file
    }

    /// Number of rows.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Values in a row.
    #[inline]
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    #[inline]
    fn start_of(&self, row: u64) -> usize {
        HEADER_BYTES + row as usize * self.width * size_of::<T>()
    }

    /// Row `row`.
    ///
    /// # Panics
    /// Past the last row.
    #[inline]
    #[must_use]
    pub fn row(&self, row: u64) -> &[T] {
        assert!(row < self.rows, "a row of the file");
        self.file.values(self.start_of(row), self.width)
    }

    /// Rows `from..to`, next to each other; cut at the end of the file.
    #[inline]
    #[must_use]
    pub fn slice(&self, from: u64, to: u64) -> &[T] {
        let to = to.min(self.rows);
        let from = from.min(to);
        let count = (to - from) as usize * self.width;
        self.file.values(self.start_of(from), count)
    }

    /// Asks the CPU to fetch a row that will be read soon. Any number will do.
    #[inline]
    pub fn prefetch(&self, row: u64) {
        self.file
            .prefetch(self.start_of(row), self.width * size_of::<T>());
    }
}
