//! The log of a shard: every accepted operation in its order, before it is applied.
//!
//! 1. **Open** ([`Wal::open`]): the files `wal-<generation>.log` are read in the order of their
//!    generations and each record is handed to a visitor. Sequence numbers rise by one. The first bytes
//!    that do not check are a torn tail and are cut off, with all that follows, unless something is known
//!    to have been synced there: a later record or file header claims so, or the caller's
//!    checkpoints do. Then it is damage, and the shard is refused rather than shortened in silence.
//! 2. What was replayed is synced. The first append begins a new file of a new generation; the checksum of a
//!    record is seeded by its file's generation, and a file's records count only up to the
//!    first number of the next file, so what stood behind a cut never counts again.
//! 3. **Append** ([`Wal::append`], the writer thread): one `write(2)` a record. A failed or short one is cut back
//!    before the next record; when even that fails the log is poisoned and takes no more.
//! 4. **Sync** ([`WalSync::sync`], the log thread): one fsync of each file with new bytes, while appends go
//!    on. A failed one poisons the log for good: the kernel may have dropped the pages it could not write, so
//!    a later success would tell nothing (Rebello et al., "Can Applications Recover from fsync
//!    Failures?", ATC 2020).
//! 5. **Truncate** ([`WalSync::truncate_below`], the log thread): files whose records are all in checkpoints
//!    are removed, oldest first, never the newest.
//!
//! The byte map stands in `docs/on-disk-format.md`.

mod append;
mod record;
mod replay;
mod sync;

pub use append::{RESERVE_MARGIN_BYTES, Wal};
pub use record::BODY_BYTES_MAX;
pub use replay::{Cut, Replayed, Visit};
pub use sync::WalSync;

use flatwater_segment::SeqNo;

/// What a log has to know when it is opened.
#[derive(Clone, Copy, Debug)]
pub struct WalOptions {
    /// Bytes after which a new file is begun. A larger record gets a file of its own.
    pub file_bytes: u64,
    /// Every operation up to this one is in checkpoints and need not be replayed; 0 when none is. The
    /// records up to here may be missing, and those that are there are not visited.
    pub floor: SeqNo,
    /// The highest operation that any checkpoint holds, so the highest that is known to have been synced; 0
    /// when none. At least `floor`; more only where the log still holds the records between.
    pub synced: SeqNo,
}

/// Name of the file of a generation.
fn file_name(generation: u64) -> String {
    format!("wal-{generation:016x}.log")
}

/// Generation of a log file, `None` for other names.
fn generation_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("wal-")?.strip_suffix(".log")?;
    let generation = u64::from_str_radix(digits, 16).ok()?;
    (file_name(generation) == name).then_some(generation)
}

#[cfg(test)]
mod tests;
