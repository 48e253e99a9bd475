//! Immutable mapped files: one header, then rows of one width (a byte string is rows of one byte).
//!
//! 1. A [`MappedWriter`] allocates the whole file, stores the rows, then the header with the
//!    checksum of all, and syncs. Nobody opens the file before that.
//! 2. A [`MappedFile`] checks the header when it is opened, which reads one page, and the rows when it
//!    is asked to, which reads all.
//! 3. [`MappedRows`] reads rows where they lie. Nothing is ever written to the file again.
//!
//! Byte map: `docs/on-disk-format.md`.

mod file;
mod rows;

pub use file::{HEADER_BYTES, MAGIC, MappedFile, MappedWriter};
pub use rows::MappedRows;

#[cfg(test)]
mod tests;
