//! The log thread's side: what is durable, and which files are still needed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use flatwater_segment::SeqNo;
use flatwater_segment::dir::{Directory, Fsync};
use parking_lot::Mutex;

use super::file_name;
use super::record::FileHeader;
use crate::error::{EngineError, Result};

/// Makes appended records durable and removes files that are no longer needed. Shared between the
/// writer, which reports what it appended, and the log thread.
#[derive(Debug)]
pub struct WalSync {
    dir: Arc<dyn Directory>,
    state: Mutex<State>,
    /// Held for a whole sync or truncation, so that one that finds nothing to do does not answer before the one
    /// that took the work. Never held together with a wait for `state` by the writer.
    working: Mutex<()>,
    synced: AtomicU64,
    poison: OnceLock<String>,
}

#[derive(Debug)]
struct State {
    /// The files on disk, oldest first.
    files: VecDeque<LogFile>,
    /// Files with appended bytes that no sync has taken, with their generations; the current one last.
    unsynced: Vec<(u64, Arc<dyn Fsync>)>,
    /// Whether files were created since a sync took the directory.
    entries_unsynced: bool,
    /// The last record appended.
    appended: SeqNo,
}

impl State {
    /// The oldest file, if no record past `floor` is in it and a newer file claims it as synced.
    fn removable(&self, floor: SeqNo) -> Option<LogFile> {
        let (oldest, next) = (self.files.front()?, self.files.get(1)?);
        let last = next.first_seq - 1;
        let is_claimed = self
            .files
            .iter()
            .skip(1)
            .any(|file| file.synced_seq >= last);
        (last <= floor && is_claimed).then_some(*oldest)
    }
}

/// One file on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogFile {
    pub(super) generation: u64,
    pub(super) first_seq: SeqNo,
    /// What its header says was synced when it was begun.
    pub(super) synced_seq: SeqNo,
}

impl From<FileHeader> for LogFile {
    fn from(header: FileHeader) -> Self {
        let FileHeader {
            generation,
            first_seq,
            synced_seq,
        } = header;
        Self {
            generation,
            first_seq,
            synced_seq,
        }
    }
}

impl WalSync {
    /// `files` are on disk, and all up to `synced` is durable.
    pub(super) fn new(dir: Arc<dyn Directory>, files: Vec<LogFile>, synced: SeqNo) -> Self {
        let state = State {
            files: files.into(),
            unsynced: Vec::new(),
            entries_unsynced: false,
            appended: synced,
        };
        Self {
            dir,
            state: Mutex::new(state),
            working: Mutex::new(()),
            synced: AtomicU64::new(synced),
            poison: OnceLock::new(),
        }
    }

    /// The highest operation known to be durable. Never goes back.
    #[must_use]
    pub fn synced_seq(&self) -> SeqNo {
        self.synced.load(Ordering::Acquire)
    }

    /// Makes durable what was appended before the call; returns the highest durable operation.
    ///
    /// Blocks: an fsync of each file with new bytes (one, but around a rotation) and of the directory if one
    /// was begun. Appends go on meanwhile.
    ///
    /// # Errors
    /// `Io` when a sync fails, `Poisoned` from then on and after a failed append that could not be cut back.
    pub fn sync(&self) -> Result<SeqNo> {
        let _working = self.working.lock();
        self.check()?;
        let (unsynced, entries_unsynced, target) = {
            let mut state = self.state.lock();
            let entries = std::mem::take(&mut state.entries_unsynced);
            (std::mem::take(&mut state.unsynced), entries, state.appended)
        };
        let synced = unsynced.iter().try_for_each(|(_, file)| file.sync());
        let synced = synced.and_then(|()| {
            if entries_unsynced {
                self.dir.sync()
            } else {
                Ok(())
            }
        });
        if let Err(error) = synced {
            self.poison(format!("a sync of the log failed: {error}"));
            return Err(error.into());
        }
        let before = self.synced.swap(target, Ordering::AcqRel);
        assert!(before <= target, "what is synced never goes back");
        Ok(target)
    }

    /// Removes files whose records are all at or below `floor` (and synced), oldest first. Returns how many.
    ///
    /// The newest file stays, since it knows the next number. So does one whose records no newer file's
    /// header claims as synced: with that claim, a start that is missing without reason is found out at open
    /// instead of passing for a tail that was never synced. The next file begun brings it.
    ///
    /// Blocks: a directory sync for each, so that a crash leaves no gap.
    ///
    /// # Errors
    /// `Io`: the files that are left are tried again by the next call. `Poisoned`.
    pub fn truncate_below(&self, floor: SeqNo) -> Result<usize> {
        let _working = self.working.lock();
        self.check()?;
        let floor = floor.min(self.synced_seq());
        let mut removed = 0;
        loop {
            let Some(oldest) = self.state.lock().removable(floor) else {
                return Ok(removed);
            };
            match self.dir.remove(&file_name(oldest.generation)) {
                // Removed by a call whose directory sync failed.
                Err(error) if error.is_not_found() => {}
                other => other?,
            }
            self.dir.sync()?;
            let gone = self.state.lock().files.pop_front();
            assert_eq!(
                gone,
                Some(oldest),
                "only truncation removes files from the front"
            );
            removed += 1;
        }
    }

    /// How many files the log has.
    #[must_use]
    pub fn file_count(&self) -> usize {
        self.state.lock().files.len()
    }

    /// Whether the log refuses records.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.poison.get().is_some()
    }

    /// Refuses when the log is poisoned.
    pub(super) fn check(&self) -> Result<()> {
        match self.poison.get() {
            Some(cause) => Err(EngineError::Poisoned(cause.clone())),
            None => Ok(()),
        }
    }

    /// Refuses everything from now on. The first cause stays.
    pub(super) fn poison(&self, cause: String) {
        self.poison.get_or_init(|| cause);
    }

    /// The writer began a file.
    pub(super) fn begun(&self, file: LogFile, syncer: Arc<dyn Fsync>) {
        let mut state = self.state.lock();
        state.files.push_back(file);
        state.unsynced.push((file.generation, syncer));
        state.entries_unsynced = true;
    }

    /// The writer appended a record to the file of `generation`, its newest.
    pub(super) fn appended(&self, seq: SeqNo, generation: u64, syncer: &Arc<dyn Fsync>) {
        let mut state = self.state.lock();
        assert_eq!(
            seq,
            state.appended + 1,
            "records are appended in their order"
        );
        state.appended = seq;
        if state
            .unsynced
            .last()
            .is_none_or(|(last, _)| *last != generation)
        {
            state.unsynced.push((generation, Arc::clone(syncer)));
        }
    }
}
