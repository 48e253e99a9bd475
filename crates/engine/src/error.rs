//! What can go wrong, with the facts that a message needs.

use std::path::PathBuf;

use flatwater_segment::dir::DirError;

/// An error of the engine. [`EngineError::kind`] groups them for callers that map codes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Input that can never be served; the text names field, value and limit.
    #[error("{0}")]
    Invalid(String),
    /// No such collection.
    #[error("Collection `{0}` doesn't exist!")]
    CollectionNotFound(String),
    /// The collection is there already.
    #[error("Collection `{0}` already exists!")]
    CollectionExists(String),
    /// No such point.
    #[error("No point with id {0} found")]
    PointNotFound(String),
    /// No such job, or one that cannot be stopped.
    #[error("No job with id {0} that can be cancelled")]
    JobNotFound(uuid::Uuid),
    /// Too much is waiting; try again later.
    #[error("{what}: limit {limit} reached, retry after {retry_after_s} s")]
    Refused {
        /// What is full.
        what: &'static str,
        /// Its limit.
        limit: usize,
        /// When to try again, seconds.
        retry_after_s: u64,
    },
    /// The caller's time limit passed.
    #[error("Operation '{operation}' timed out after {after_s}s")]
    Timeout {
        /// What was running.
        operation: &'static str,
        /// The limit in seconds.
        after_s: u64,
    },
    /// Bytes on disk do not check.
    #[error("{file} is damaged at byte {offset}: {detail}")]
    Corrupt {
        /// The file.
        file: String,
        /// Where.
        offset: u64,
        /// What was expected and found.
        detail: String,
    },
    /// An operation of the file system failed.
    #[error("{operation} of {path} failed: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A sync failed: what is durable is unknown from then on.
    #[error("syncing of {path} failed: {source}")]
    SyncFailed {
        /// Which file or directory.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// Not enough room on the disk for a write.
    #[error("not enough disk space at {path}: needed {needed_bytes} bytes")]
    DiskFull {
        /// Where.
        path: PathBuf,
        /// How much was asked for.
        needed_bytes: u64,
    },
    /// Another process has the storage open.
    #[error("{path} is in use by another process{}; stop it or choose another storage path", match .holder_pid {
        Some(pid) => format!(" (pid {pid})"),
        None => String::new(),
    })]
    Locked {
        /// The directory.
        path: PathBuf,
        /// The process that holds it, if it is known.
        holder_pid: Option<u32>,
    },
    /// A failed fsync or a panic stopped writes; reads go on; restart to recover.
    #[error("writes are refused since an earlier failure: {0}; restart to recover from the log")]
    Poisoned(String),
    /// The engine is stopping.
    #[error("the server is stopping")]
    Stopping,
    /// The index of a field could not be built.
    #[error("the index of `{field}` could not be built: {reason}; filters on it work without")]
    IndexFailed {
        /// The field.
        field: String,
        /// Why.
        reason: String,
    },
    /// A bug of ours.
    #[error("internal error: {0}")]
    Bug(String),
}

/// Groups of errors that callers treat alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is wrong.
    Invalid,
    /// It names what is not there.
    NotFound,
    /// It would create what is there.
    Exists,
    /// A limit was reached; retry later.
    Refused,
    /// Out of time.
    Timeout,
    /// Our side failed.
    Internal,
    /// No room on the disk.
    DiskFull,
    /// Stopping.
    Unavailable,
}

impl EngineError {
    /// The group this error belongs to.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::CollectionNotFound(_) | Self::PointNotFound(_) | Self::JobNotFound(_) => {
                ErrorKind::NotFound
            }
            Self::CollectionExists(_) => ErrorKind::Exists,
            Self::Refused { .. } => ErrorKind::Refused,
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::DiskFull { .. } => ErrorKind::DiskFull,
            Self::Stopping => ErrorKind::Unavailable,
            Self::Corrupt { .. }
            | Self::Io { .. }
            | Self::SyncFailed { .. }
            | Self::Locked { .. }
            | Self::Poisoned(_)
            | Self::IndexFailed { .. }
            | Self::Bug(_) => ErrorKind::Internal,
        }
    }
}

impl From<DirError> for EngineError {
    fn from(error: DirError) -> Self {
        match error {
            DirError::Io {
                operation,
                path,
                source,
            } => Self::Io {
                operation,
                path,
                source,
            },
            DirError::SyncFailed { path, source } => Self::SyncFailed { path, source },
            DirError::DiskFull { path, needed_bytes } => Self::DiskFull { path, needed_bytes },
            DirError::Locked { path, holder_pid } => Self::Locked { path, holder_pid },
            DirError::Damaged { path, damage } => Self::Corrupt {
                file: path.display().to_string(),
                offset: damage.offset,
                detail: damage.to_string(),
            },
            // Names from outside are checked before they become names of files.
            other => Self::Bug(other.to_string()),
        }
    }
}

/// Result of an engine call.
pub type Result<T> = std::result::Result<T, EngineError>;

impl From<flatwater_segment::error::SegmentError> for EngineError {
    fn from(error: flatwater_segment::error::SegmentError) -> Self {
        use flatwater_segment::error::SegmentError;
        match error {
            SegmentError::Dir(error) => error.into(),
            SegmentError::Corrupt {
                file,
                offset,
                detail,
            } => Self::Corrupt {
                file,
                offset,
                detail,
            },
            SegmentError::Full { rows } => Self::Invalid(format!(
                "the operation has more points than a segment takes: it holds {rows} rows; send fewer"
            )),
            SegmentError::Filter(error) => Self::Invalid(error.to_string()),
            other => Self::Bug(other.to_string()),
        }
    }
}
