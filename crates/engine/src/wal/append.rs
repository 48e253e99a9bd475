//! The writer thread's side: appending, rotation, and what happens when a write fails.

use std::fmt;
use std::sync::Arc;

use flatwater_segment::SeqNo;
use flatwater_segment::dir::{AppendFile, Directory, Fsync};

use super::record::{self, BODY_BYTES_MAX, FILE_HEADER_BYTES, FileHeader, RECORD_HEADER_BYTES};
use super::replay::{Replayed, Visit, replay};
use super::sync::{LogFile, WalSync};
use super::{WalOptions, file_name};
use crate::error::{EngineError, Result};

/// Bytes kept free behind every reserved record, for records that are appended without a reserve: so
/// deletions still go through on a full disk, and free it. A deletion of 10,000 points by id takes 80 to 170
/// KB. Twice as much doubles what an idle log holds on the disk.
pub const RESERVE_MARGIN_BYTES: u64 = 256 << 10;

/// Parts in which less than the whole margin is asked for on a full disk: 16 KB each, so that a restart there
/// costs one of them.
const MARGIN_SHARES: u64 = 16;

/// Bytes reserved at a time, to spare system calls; given back when the file is full or the log closed.
const RESERVE_STEP_BYTES: u64 = 1 << 20;

/// How much further a full file grows with small records before a failed rotation is tried again.
const ROTATE_RETRY_BYTES: u64 = 1 << 20;

/// Encoding buffers up to this size are kept between appends.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

/// A shard's log, its writer thread's handle.
pub struct Wal {
    dir: Arc<dyn Directory>,
    file_bytes: u64,
    current: Option<Current>,
    /// The newest file of the process before. It holds the margin until the first file is begun, so that
    /// deletions work after a restart on a full disk too.
    before: Option<Box<dyn AppendFile>>,
    next_seq: SeqNo,
    next_generation: u64,
    scratch: Vec<u8>,
    sync: Arc<WalSync>,
}

/// The file that takes records.
#[derive(Debug)]
struct Current {
    file: Box<dyn AppendFile>,
    syncer: Arc<dyn Fsync>,
    generation: u64,
    /// Length from which the next file is begun.
    rotate_at: u64,
    /// Length up to which blocks are reserved.
    reserved: u64,
}

impl Current {
    /// Gives reserved blocks back. Best effort: the bytes are all kept either way.
    fn release(&mut self) {
        if self.reserved > self.file.len() {
            release(self.file.as_mut());
            self.reserved = 0;
        }
    }

    /// Reserves the margin alone, as far as there is room.
    fn keep_margin(&mut self) {
        let len = self.file.len();
        if self.reserved < len + RESERVE_MARGIN_BYTES {
            let held = reserve_margin(self.file.as_mut());
            self.reserved = self.reserved.max(len + held);
        }
    }
}

/// Gives the blocks behind a file's end back, best effort.
fn release(file: &mut dyn AppendFile) {
    drop(file.truncate(file.len()));
}

/// Reserves the margin behind a file's end, or as much of it as there is room for: where it moves to another
/// file on a full disk, that file's first block takes some of it. Answers how many bytes are held.
fn reserve_margin(file: &mut dyn AppendFile) -> u64 {
    (1..=MARGIN_SHARES)
        .rev()
        .map(|share| RESERVE_MARGIN_BYTES / MARGIN_SHARES * share)
        .find(|&bytes| file.reserve(bytes).is_ok())
        .unwrap_or(0)
}

/// The newest of the files that were found, with the margin behind its end, best effort: a stop may have
/// given it back, and a replay that wrote the file anew has.
fn hold_margin(dir: &dyn Directory, files: &[LogFile]) -> Option<Box<dyn AppendFile>> {
    let newest = file_name(files.last()?.generation);
    let mut file = dir.open_append(&newest).ok()?;
    let held = reserve_margin(file.as_mut());
    if held < RESERVE_MARGIN_BYTES {
        tracing::warn!(
            held,
            "the disk is full; writes are refused until there is room"
        );
    }
    Some(file)
}

impl fmt::Debug for Wal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wal")
            .field("dir", &self.dir.path())
            .field("next_seq", &self.next_seq)
            .field("current", &self.current)
            .finish_non_exhaustive()
    }
}

impl Wal {
    /// Opens the log of a directory (empty for a new one), replaying each record past `options.floor` to
    /// `visit` in order. No file is created before the first append.
    ///
    /// Blocks: reads every file, in blocks; then a sync of each.
    ///
    /// # Errors
    /// `Corrupt`, with file and offset, when records that were synced do not check or are missing, or when
    /// numbers do not rise by one; nothing on disk has changed then. `Io`. What `visit` returns.
    ///
    /// # Panics
    /// When `options.synced` is below `options.floor`.
    pub fn open(
        dir: Arc<dyn Directory>,
        options: WalOptions,
        visit: &mut Visit<'_>,
    ) -> Result<(Self, Replayed)> {
        assert!(
            options.floor <= options.synced,
            "checkpoints hold what is below the floor"
        );
        let (found, replayed) = replay(&*dir, options, visit)?;
        let before = hold_margin(&*dir, &found.files);
        let sync = Arc::new(WalSync::new(
            Arc::clone(&dir),
            found.files,
            found.next_seq - 1,
        ));
        let wal = Self {
            dir,
            file_bytes: options.file_bytes,
            current: None,
            before,
            next_seq: found.next_seq,
            next_generation: found.next_generation,
            scratch: Vec::new(),
            sync,
        };
        Ok((wal, replayed))
    }

    /// Reads the log of a directory as [`Wal::open`] would, and changes nothing. `visit` gets each
    /// record past `options.floor`. Answers how many there were.
    ///
    /// Blocks: reads every file, in blocks.
    ///
    /// # Errors
    /// As [`Wal::open`]. A torn tail that an opening would cut off is no error.
    pub fn check(dir: &dyn Directory, options: WalOptions, visit: &mut Visit<'_>) -> Result<u64> {
        super::replay::check(dir, options, visit)
    }

    /// The number that the next record must have.
    #[must_use]
    pub fn next_seq(&self) -> SeqNo {
        self.next_seq
    }

    /// The log thread's handle.
    #[must_use]
    pub fn syncer(&self) -> Arc<WalSync> {
        Arc::clone(&self.sync)
    }

    /// Makes room for a record with a body of `body_bytes`, and [`RESERVE_MARGIN_BYTES`] behind it. Writers
    /// of anything but deletions call this before [`Self::append`].
    ///
    /// Blocks: now and then an `fallocate`; no sync.
    ///
    /// # Errors
    /// `DiskFull`: nothing has changed. `Io`, `Poisoned`.
    pub fn reserve(&mut self, body_bytes: usize) -> Result<()> {
        self.sync.check()?;
        let record_bytes = (RECORD_HEADER_BYTES + body_bytes) as u64;
        let current = self.make_ready(record_bytes)?;
        let needed = current.file.len() + record_bytes + RESERVE_MARGIN_BYTES;
        if current.reserved < needed {
            let more = needed - current.file.len();
            // A disk that has not the room of a step may still have that of this record.
            let step = current.file.reserve(more + RESERVE_STEP_BYTES);
            current.reserved = if step.is_ok() {
                needed + RESERVE_STEP_BYTES
            } else {
                current.file.reserve(more)?;
                needed
            };
        }
        Ok(())
    }

    /// Appends a record. It survives a killed process when this returns, and a power loss after
    /// [`WalSync::sync`].
    ///
    /// Blocks: one `write(2)`; no sync.
    ///
    /// # Errors
    /// `Invalid` for a body past [`BODY_BYTES_MAX`]. `DiskFull` and `Io`: the record is not in the log, and the same
    /// number may be tried again. `Poisoned` after a failure that leaves open what is in the log.
    ///
    /// # Panics
    /// When `seq` is not [`Self::next_seq`].
    pub fn append(&mut self, seq: SeqNo, body: &[u8]) -> Result<()> {
        assert_eq!(seq, self.next_seq, "sequence numbers rise by one");
        self.sync.check()?;
        if body.len() > BODY_BYTES_MAX as usize {
            let len = body.len();
            let text = format!("operation of {len} bytes: the log takes at most {BODY_BYTES_MAX}");
            return Err(EngineError::Invalid(text));
        }
        let synced_seq = self.sync.synced_seq();
        let mut scratch = std::mem::take(&mut self.scratch);
        let current = self.make_ready((RECORD_HEADER_BYTES + body.len()) as u64)?;
        record::encode(&mut scratch, current.generation, seq, synced_seq, body);
        let start = current.file.len();
        let (generation, syncer) = (current.generation, Arc::clone(&current.syncer));
        if let Err(failed) = current.file.append(&scratch) {
            // Giving back the reserve with the cut, so it has to be asked for again.
            current.reserved = 0;
            if let Err(stuck) = current.file.truncate(start) {
                self.sync
                    .poison(format!("a failed append could not be cut back: {stuck}"));
            }
            return Err(failed.source.into());
        }
        self.sync.appended(seq, generation, &syncer);
        self.next_seq += 1;
        scratch.clear();
        scratch.shrink_to(SCRATCH_BYTES_MAX);
        self.scratch = scratch;
        Ok(())
    }

    /// The file that takes a record of `record_bytes` next: the current one, or a new one when there is none or
    /// it is full. A full one goes on when no new one can be begun, so that a full disk does not keep out
    /// deletions.
    fn make_ready(&mut self, record_bytes: u64) -> Result<&mut Current> {
        let full = self.current.as_ref().map(|current| {
            let len = current.file.len();
            len > FILE_HEADER_BYTES as u64 && len + record_bytes > current.rotate_at
        });
        match full {
            Some(false) => {}
            None => self.current = Some(self.begin_first()?),
            Some(true) => {
                let begun = self.begin_file();
                let current = self.current.as_mut().expect("a file that is full is there");
                match begun {
                    Ok(next) => {
                        current.release();
                        *current = next;
                        current.keep_margin();
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the log goes on in a full file");
                        current.rotate_at = current.file.len() + ROTATE_RETRY_BYTES;
                    }
                }
            }
        }
        Ok(self.current.as_mut().expect("a file was begun above"))
    }

    /// The first file of this process. On a full disk it takes the place of the margin that the one before
    /// holds.
    fn begin_first(&mut self) -> Result<Current> {
        let mut begun = self.begin_file();
        if let Some(mut before) = self.before.take() {
            release(before.as_mut());
            if matches!(begun, Err(EngineError::DiskFull { .. })) {
                begun = self.begin_file();
            }
        }
        let mut current = begun?;
        current.keep_margin();
        Ok(current)
    }

    /// A new file of a new generation, with its header.
    fn begin_file(&mut self) -> Result<Current> {
        let generation = self.next_generation;
        // A number is used once, even when the file cannot be made: what is left of it must not be met again.
        self.next_generation += 1;
        let name = file_name(generation);
        let mut file = self.dir.create_append(&name)?;
        let (first_seq, synced_seq) = (self.next_seq, self.sync.synced_seq());
        let header = FileHeader {
            generation,
            first_seq,
            synced_seq,
        };
        if let Err(failed) = file.append(&header.encode()) {
            drop(file);
            // A file with half a header is passed over at replay, should this fail too.
            drop(self.dir.remove(&name));
            return Err(failed.source.into());
        }
        let syncer = file.syncer();
        self.sync.begun(LogFile::from(header), Arc::clone(&syncer));
        Ok(Current {
            file,
            syncer,
            generation,
            rotate_at: self.file_bytes,
            reserved: 0,
        })
    }
}

impl Drop for Wal {
    fn drop(&mut self) {
        // A poisoned log's file is left as it is, for the replay to judge.
        let poisoned = self.sync.is_poisoned();
        if let Some(current) = self.current.as_mut().filter(|_| !poisoned) {
            current.release();
            // What the stop still writes must not take the room that deletions need after the next start.
            current.keep_margin();
        }
    }
}
