//! Directories: the only way to files, for segments, checkpoints and the log.
//!
//! Everything that becomes durable goes through [`Directory`], so that an implementation that keeps
//! a live and a durable image apart can lose any page that was not synced:
//!
//! 1. **Regions** are files of a fixed length, mapped. Their blocks are allocated when they are
//!    created, so a full disk is an error there and never a fault at a store. Bytes are durable
//!    after [`Region::sync`] of their range.
//! 2. **Append files** grow by `write(2)` at the end, with no buffer here. Bytes are durable after
//!    [`Fsync::sync`], which another thread may call while appends go on.
//! 3. **Small files** are replaced as a whole: [`Directory::write_atomic`] is durable when it returns.
//! 4. **Entries** (names of created and removed files) are durable after [`Directory::sync`]; until
//!    then a crash may keep or undo each of them.
//!
//! A call that says "durable" and fails may have changed the live files: then a crash keeps or undoes it.
//!
//! A name is one path component, see [`check_name`].

pub mod fault;
mod fs;
mod mem;
mod resident;

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::file::Damage;

pub use fs::FsDirectory;
pub use mem::MemDirectory;

/// Name of the lock file; not a name for others.
pub const LOCK_NAME: &str = "LOCK";

/// Ending of files and subdirectories that count as gone: unfinished writes and removals.
pub const TEMP_SUFFIX: &str = ".tmp";

/// Longest name, in bytes; leaves room for [`TEMP_SUFFIX`] in the 255 of Linux file systems.
pub const NAME_BYTES_MAX: usize = 240;

/// What an operation on files can fail with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirError {
    /// The operating system refused.
    #[error("{operation} of {path} failed: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A sync failed: it is not known what is durable, and no later sync will tell (Rebello et al., "Can
    /// Applications Recover from fsync Failures?", ATC 2020).
    #[error("syncing of {path} failed: {source}")]
    SyncFailed {
        /// Which file or directory.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// No room on the disk (or in the quota). Nothing was changed.
    #[error("not enough disk space for {path}: {needed_bytes} bytes were needed")]
    DiskFull {
        /// For which file.
        path: PathBuf,
        /// How many bytes were asked for.
        needed_bytes: u64,
    },
    /// Another process has the directory open.
    #[error("{path} is in use by another process{}", match .holder_pid {
        Some(pid) => format!(" (pid {pid})"),
        None => String::new(),
    })]
    Locked {
        /// The directory.
        path: PathBuf,
        /// The process that wrote its number into the lock file.
        holder_pid: Option<u32>,
    },
    /// Not a name that this directory takes.
    #[error(
        "'{name}' is not a file name: 1 to {NAME_BYTES_MAX} bytes without separators or control characters"
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// The file is there but its bytes do not check.
    #[error("{path} is damaged: {damage}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not check.
        damage: Damage,
    },
}

impl DirError {
    /// Whether the file or directory is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether the file or directory is there already.
    #[must_use]
    pub fn is_exists(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
    }

    /// An [`io::Error`] with its facts; no space and no quota become [`Self::DiskFull`].
    #[must_use]
    pub fn from_io(
        operation: &'static str,
        path: &Path,
        needed_bytes: u64,
        source: io::Error,
    ) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { path, needed_bytes }
            }
            _ => Self::Io {
                operation,
                path,
                source,
            },
        }
    }
}

/// Result of an operation on files.
pub type Result<T> = std::result::Result<T, DirError>;

/// A directory of regions, append files, small files and subdirectories.
///
/// Blocks: every call but [`Self::path`] may wait for the disk; those that say "durable" wait for a
/// sync.
pub trait Directory: Send + Sync + Debug {
    /// Where it is, for messages.
    fn path(&self) -> &Path;

    /// Creates a region of `len_bytes` (at least 1) zero bytes, its blocks allocated.
    ///
    /// # Errors
    /// `DiskFull`, or `Io` also when the name is taken; no file is left then.
    fn create_region(&self, name: &str, len_bytes: u64) -> Result<Arc<dyn Region>>;

    /// Maps an existing region with the length that it has.
    ///
    /// # Errors
    /// `Io` when there is none; `Damaged` when it is empty.
    fn open_region(&self, name: &str) -> Result<Arc<dyn Region>>;

    /// Creates an empty append file.
    ///
    /// # Errors
    /// `Io` also when the name is taken.
    fn create_append(&self, name: &str) -> Result<Box<dyn AppendFile>>;

    /// Opens an append file at its end.
    ///
    /// # Errors
    /// `Io` also when there is none.
    fn open_append(&self, name: &str) -> Result<Box<dyn AppendFile>>;

    /// All bytes of a file.
    ///
    /// # Errors
    /// `Io` also when there is none.
    fn read(&self, name: &str) -> Result<Vec<u8>>;

    /// The bytes `range` of a file, fewer where it ends before.
    ///
    /// # Errors
    /// `Io` also when there is none.
    fn read_range(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>>;

    /// Replaces or creates a small file; durable when it returns, and whole at any crash.
    ///
    /// # Errors
    /// `DiskFull` and `Io`: the old file stands, unless the sync after the rename failed; then either
    /// may.
    fn write_atomic(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// `Io` also when there is none.
    fn remove(&self, name: &str) -> Result<()>;

    /// Names of the files, sorted; without the lock and unfinished ones.
    ///
    /// # Errors
    /// `Io`.
    fn list(&self) -> Result<Vec<String>>;

    /// Names of the files with their lengths in bytes, sorted; without the lock and unfinished ones, and
    /// without those that are removed meanwhile.
    ///
    /// # Errors
    /// `Io`.
    fn sizes(&self) -> Result<Vec<(String, u64)>>;

    /// Whether there is a file or subdirectory of this name.
    ///
    /// # Errors
    /// `Io` when that cannot be found out.
    fn exists(&self, name: &str) -> Result<bool>;

    /// A subdirectory; created when missing, its entry durable then.
    ///
    /// # Errors
    /// `Io`.
    fn subdir(&self, name: &str) -> Result<Arc<dyn Directory>>;

    /// Names of the subdirectories, sorted; without those on their way out.
    ///
    /// # Errors
    /// `Io`.
    fn subdirs(&self) -> Result<Vec<String>>;

    /// Renames a subdirectory to a name that is not taken; durable when it returns.
    ///
    /// # Errors
    /// `Io` also when there is none of the one name or one of the other.
    fn rename_subdir(&self, from: &str, to: &str) -> Result<()>;

    /// Removes a subdirectory with all it holds. It is gone, durably, in one step; a crash may leave
    /// its bytes for [`Self::sweep`].
    ///
    /// # Errors
    /// `Io` also when there is none.
    fn remove_subdir(&self, name: &str) -> Result<()>;

    /// Removes what a crash left here: unfinished small files and removed subdirectories. Only for
    /// the holder of the lock.
    ///
    /// # Errors
    /// `Io`.
    fn sweep(&self) -> Result<()>;

    /// Bytes that may still be written here; `u64::MAX` where nothing limits them.
    ///
    /// # Errors
    /// `Io`.
    fn free_bytes(&self) -> Result<u64> {
        Ok(u64::MAX)
    }

    /// Makes the entries durable: every file created or removed before this call.
    ///
    /// # Errors
    /// `SyncFailed`.
    fn sync(&self) -> Result<()>;

    /// Keeps other processes out until the guard is dropped (an advisory lock).
    ///
    /// # Errors
    /// `Locked` when one holds it.
    fn lock(&self) -> Result<Box<dyn DirLock>>;
}

/// Holds a directory until it is dropped.
pub trait DirLock: Send + Sync + Debug {}

/// A mapped file of fixed length.
///
/// The memory at [`Self::as_ptr`] is readable and writable for [`Self::len`] bytes, at the same address
/// for as long as the region lives, and its start is aligned to a page (4,096 bytes). Who may
/// touch which byte when is the business of [`crate::chunk`].
#[expect(
    clippy::len_without_is_empty,
    reason = "a region has at least one byte"
)]
pub trait Region: Send + Sync + Debug {
    /// Length in bytes, at least 1.
    fn len(&self) -> u64;

    /// Its first byte.
    fn as_ptr(&self) -> *mut u8;

    /// Bytes of it that are in memory now; memory that is no file's always is.
    ///
    /// Cost: one byte for each page, asked of the kernel in slices.
    fn resident_bytes(&self) -> u64 {
        self.len()
    }

    /// Makes the bytes of the range durable (whole pages are written). The file's entry is made
    /// durable by [`Directory::sync`].
    ///
    /// # Errors
    /// `SyncFailed`: it is not known which of the range's bytes are durable, and later calls will not tell.
    fn sync(&self, range: Range<u64>) -> Result<()>;
}

/// An append that failed: `written` bytes of it stand at the end of the file.
#[derive(Debug, thiserror::Error)]
#[error("{source} ({written} bytes were written)")]
pub struct AppendError {
    /// How many bytes were written before the failure.
    pub written: u64,
    /// Why it failed.
    pub source: DirError,
}

/// A file that grows at its end. One owner appends; [`Self::syncer`] is for others.
#[expect(clippy::len_without_is_empty, reason = "nobody asks")]
pub trait AppendFile: Send + Debug {
    /// Length in bytes.
    fn len(&self) -> u64;

    /// Writes `bytes` at the end: one `write(2)`, more only if that wrote less without an error.
    ///
    /// # Errors
    /// [`AppendError`]; what it wrote is left for the caller to truncate.
    fn append(&mut self, bytes: &[u8]) -> std::result::Result<(), AppendError>;

    /// Cuts the file to `len` bytes, and gives back what [`Self::reserve`] took.
    ///
    /// # Errors
    /// `Io`; the length is unchanged or `len`.
    fn truncate(&mut self, len: u64) -> Result<()>;

    /// Allocates blocks for the next `bytes` appended bytes without changing the length. Does nothing
    /// where the file system cannot.
    ///
    /// # Errors
    /// `DiskFull`.
    fn reserve(&mut self, bytes: u64) -> Result<()>;

    /// What makes this file's bytes durable, for any thread.
    fn syncer(&self) -> Arc<dyn Fsync>;
}

/// Makes the bytes of one append file durable.
pub trait Fsync: Send + Sync + Debug {
    /// Makes durable what was appended and truncated before the call.
    ///
    /// # Errors
    /// `SyncFailed`: it is not known what is durable, and a later success does not tell either.
    fn sync(&self) -> Result<()>;
}

/// Whether `name` may name a file or subdirectory: 1 to [`NAME_BYTES_MAX`] bytes, no separator, no
/// control character, not `.` or `..`, not the lock's name, not ending in [`TEMP_SUFFIX`].
///
/// # Errors
/// `BadName`.
pub fn check_name(name: &str) -> Result<()> {
    let bad = name.is_empty()
        || name.len() > NAME_BYTES_MAX
        || matches!(name, "." | ".." | LOCK_NAME)
        || name.ends_with(TEMP_SUFFIX)
        || name
            .chars()
            .any(|c| c == '/' || c == '\\' || c.is_control());
    if bad {
        Err(DirError::BadName {
            name: name.to_owned(),
        })
    } else {
        Ok(())
    }
}
