//! What is counted, and what fails when.

use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::dice::Dice;
use crate::dir::{DirError, Result};

/// A change of the storage or a sync: one call of the operating system, as
/// [`FsDirectory`](crate::dir::FsDirectory) makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A region is created and its blocks are allocated.
    CreateRegion,
    /// An append file is created.
    CreateFile,
    /// Bytes are written at the end of a file.
    Append,
    /// A file is cut.
    Truncate,
    /// Blocks are allocated for bytes to come.
    Reserve,
    /// Pages of a region are synced.
    SyncRegion,
    /// An append file is synced.
    SyncFile,
    /// The entries of a directory are synced.
    SyncDirectory,
    /// The temporary file of a small file is written.
    WriteTemporary,
    /// It is synced.
    SyncTemporary,
    /// It takes its name.
    RenameFile,
    /// A file is removed.
    Remove,
    /// A subdirectory is created.
    CreateFolder,
    /// A subdirectory takes another name.
    RenameFolder,
    /// A subdirectory takes the name of one that is gone.
    RemoveFolder,
    /// What it held is removed.
    FreeFolder,
}

impl Operation {
    /// Whether a full disk refuses it.
    fn takes_room(self) -> bool {
        matches!(
            self,
            Self::CreateRegion | Self::CreateFile | Self::WriteTemporary | Self::CreateFolder
        )
    }

    fn name(self) -> &'static str {
        match self {
            Self::CreateRegion | Self::CreateFile => "creating",
            Self::Append => "appending to",
            Self::Truncate => "truncating",
            Self::Reserve => "allocating",
            Self::SyncRegion | Self::SyncFile | Self::SyncDirectory => "syncing",
            Self::WriteTemporary | Self::SyncTemporary | Self::RenameFile => "writing",
            Self::Remove | Self::RemoveFolder | Self::FreeFolder => "removing",
            Self::CreateFolder => "creating directory",
            Self::RenameFolder => "renaming",
        }
    }
}

/// What happens at an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails with an I/O error. An append has written a part of its bytes then (a seeded choice); what a sync
    /// should have written is lost at the next power loss; anything else has changed nothing.
    Fail,
    /// The disk is full from here on, until [`Faults::set_full`]; what is removed makes room.
    Full,
    /// The process is over: an append has written a part of its bytes (or none, or all), anything else is not
    /// done, and every later call fails.
    Stop,
}

/// An operation that was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which.
    pub operation: Operation,
    /// On what.
    pub path: PathBuf,
}

/// Counts the operations on a disk and makes them fail.
#[derive(Debug, Default)]
pub struct Faults {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    changes: Vec<Record>,
    reads: u64,
    scheduled: Vec<(u64, Fault, u64)>,
    failing_reads: Vec<u64>,
    is_stopped: bool,
    /// Bytes that are free; `None` when nobody counts.
    room: Option<u64>,
}

impl State {
    /// Takes `bytes`, if they are free. A file without bytes needs one free.
    fn take_room(&mut self, bytes: u64) -> bool {
        match &mut self.room {
            Some(room) if *room < bytes.max(1) => false,
            Some(room) => {
                *room -= bytes;
                true
            }
            None => true,
        }
    }
}

/// An operation that failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: DirError,
    /// The fault that hit this very operation, and what chooses how much of an append was written.
    hit: Option<(Fault, Dice)>,
}

impl Failure {
    /// Whether the process lives on after a sync that did not write what it should have.
    pub(super) fn loses(&self) -> bool {
        matches!(self.hit, Some((Fault::Fail, _)))
    }

    /// The error, and how many of `len` appended bytes were written: fewer than all when the process lives to hear of it.
    pub(super) fn written(self, len: usize) -> (DirError, usize) {
        let written = match self.hit {
            Some((Fault::Stop, mut dice)) => dice.roll_usize(len + 1),
            Some((_, mut dice)) if len > 0 => dice.roll_usize(len),
            _ => 0,
        };
        (self.error, written)
    }
}

impl From<Failure> for DirError {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

impl Faults {
    /// On a disk that is as full as this one was, with nothing counted or scheduled.
    pub(super) fn restarted(&self) -> Self {
        let state = State {
            room: self.state.lock().room,
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// Lets `fault` happen at operation `at`, counted from 0 at the directory's creation; `seed` chooses how
    /// much of an append is written.
    pub fn schedule(&self, at: u64, fault: Fault, seed: u64) {
        self.state.lock().scheduled.push((at, fault, seed));
    }

    /// Lets the call number `at` that only reads fail, counted from 0.
    pub fn fail_read(&self, at: u64) {
        self.state.lock().failing_reads.push(at);
    }

    /// From now on every call fails.
    pub fn stop(&self) {
        self.state.lock().is_stopped = true;
    }

    /// Whether the process is over.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.state.lock().is_stopped
    }

    /// Fills the disk, or empties it again. On a full one, what is removed makes room, and bytes that were reserved
    /// can be written.
    pub fn set_full(&self, is_full: bool) {
        self.state.lock().room = is_full.then_some(0);
    }

    /// Takes room for `bytes` more (none is taken for 0), or says that there is not so much.
    pub(super) fn take_room(&self, bytes: u64) -> bool {
        bytes == 0 || self.state.lock().take_room(bytes)
    }

    /// Bytes were freed.
    pub(super) fn give_room(&self, bytes: u64) {
        if let Some(room) = &mut self.state.lock().room {
            *room += bytes;
        }
    }

    /// How many operations were counted.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state.lock().changes.len() as u64
    }

    /// How many calls that only read were counted.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.state.lock().reads
    }

    /// The operations in their order.
    #[must_use]
    pub fn journal(&self) -> Vec<Record> {
        self.state.lock().changes.clone()
    }

    /// A call that only reads.
    pub(super) fn read(&self, path: &Path) -> Result<()> {
        let mut state = self.state.lock();
        if state.is_stopped {
            return Err(stopped("reading", path));
        }
        let number = state.reads;
        state.reads += 1;
        if state.failing_reads.contains(&number) {
            return Err(DirError::from_io("reading", path, 0, io_error()));
        }
        Ok(())
    }

    /// A sync.
    pub(super) fn sync(
        &self,
        operation: Operation,
        path: &Path,
    ) -> std::result::Result<(), Failure> {
        self.change(operation, path, 0).map_err(|failure| Failure {
            error: match failure.error {
                DirError::Io { path, source, .. } => DirError::SyncFailed { path, source },
                other => other,
            },
            hit: failure.hit,
        })
    }

    /// An operation that would take `needed` bytes.
    pub(super) fn change(
        &self,
        operation: Operation,
        path: &Path,
        needed: u64,
    ) -> std::result::Result<(), Failure> {
        let mut state = self.state.lock();
        if state.is_stopped {
            let error = stopped(operation.name(), path);
            return Err(Failure { error, hit: None });
        }
        let at = state.changes.len() as u64;
        state.changes.push(Record {
            operation,
            path: path.to_path_buf(),
        });
        let due = state.scheduled.iter().find(|(due, ..)| *due == at).copied();
        let failed = |source| DirError::from_io(operation.name(), path, needed, source);
        match due {
            Some((_, Fault::Fail, seed)) => {
                return Err(Failure {
                    error: failed(io_error()),
                    hit: Some((Fault::Fail, Dice::new(seed))),
                });
            }
            Some((_, Fault::Stop, seed)) => {
                state.is_stopped = true;
                return Err(Failure {
                    error: stopped(operation.name(), path),
                    hit: Some((Fault::Stop, Dice::new(seed))),
                });
            }
            Some((_, Fault::Full, _)) => state.room = Some(0),
            None => {}
        }
        if operation.takes_room() && !state.take_room(needed) {
            return Err(Failure {
                error: full(operation, path, needed),
                hit: None,
            });
        }
        Ok(())
    }
}

/// The error of an operation on a full disk.
pub(super) fn full(operation: Operation, path: &Path, needed: u64) -> DirError {
    let source = io::ErrorKind::StorageFull.into();
    DirError::from_io(operation.name(), path, needed, source)
}

fn io_error() -> io::Error {
    rustix::io::Errno::IO.into()
}

fn stopped(operation: &'static str, path: &Path) -> DirError {
    DirError::from_io(operation, path, 0, io::Error::other("the machine stopped"))
}
