//! Files that grow by appending, and small files.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::faults::{Faults, Operation, full};
use super::image::Choice;
use crate::dir::{AppendError, AppendFile, Fsync, Result};

/// Bytes of a file, live and durable.
#[derive(Debug)]
pub(super) struct FaultFile {
    faults: Arc<Faults>,
    path: PathBuf,
    bytes: Mutex<Bytes>,
}

#[derive(Clone, Debug, Default)]
struct Bytes {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// How many bytes from the start are the same in both.
    same: usize,
    /// Ranges of `live` that a failed sync should have written.
    lost: Vec<Range<usize>>,
    /// Length up to which blocks are reserved.
    reserved: usize,
}

impl FaultFile {
    /// A file with these bytes, all durable.
    pub(super) fn new(faults: &Arc<Faults>, path: PathBuf, bytes: Vec<u8>) -> Self {
        let bytes = Bytes {
            same: bytes.len(),
            durable: bytes.clone(),
            live: bytes,
            ..Bytes::default()
        };
        Self {
            faults: Arc::clone(faults),
            path,
            bytes: Mutex::new(bytes),
        }
    }

    /// Bytes of the disk that it takes.
    pub(super) fn size(&self) -> u64 {
        self.bytes.lock().allocated() as u64
    }

    pub(super) fn read(&self, range: Range<u64>) -> Vec<u8> {
        let bytes = self.bytes.lock();
        let len = bytes.live.len();
        let clamp = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(len);
        let range = clamp(range.start)..clamp(range.end);
        bytes.live.get(range).unwrap_or_default().to_vec()
    }

    pub(super) fn after_kill(&self, faults: &Arc<Faults>) -> Self {
        Self {
            faults: Arc::clone(faults),
            path: self.path.clone(),
            bytes: Mutex::new(self.bytes.lock().clone()),
        }
    }

    pub(super) fn after_power_loss(&self, faults: &Arc<Faults>, choice: &mut Choice) -> Self {
        let bytes = self.bytes.lock().after_power_loss(choice);
        Self::new(faults, self.path.clone(), bytes)
    }
}

impl Bytes {
    fn append(&mut self, bytes: &[u8]) {
        self.live.extend_from_slice(bytes);
    }

    /// Bytes of the disk that it takes.
    fn allocated(&self) -> usize {
        self.reserved.max(self.live.len())
    }

    fn truncate(&mut self, len: usize) {
        self.live.truncate(len);
        self.same = self.same.min(len);
        for lost in &mut self.lost {
            lost.end = lost.end.min(len);
        }
        self.lost.retain(|lost| !lost.is_empty());
        self.reserved = 0;
    }

    /// `live` with zeros where a failed sync left nothing on the disk.
    fn written(&self) -> Vec<u8> {
        let mut bytes = self.live.clone();
        for lost in &self.lost {
            if let Some(hole) = bytes.get_mut(lost.clone()) {
                hole.fill(0);
            }
        }
        bytes
    }

    fn sync(&mut self) {
        self.durable.truncate(self.same);
        if self.lost.is_empty() {
            let new = self.live.get(self.same..).unwrap_or_default();
            self.durable.extend_from_slice(new);
        } else {
            self.durable = self.written();
        }
        self.same = self.live.len();
    }

    fn after_power_loss(&self, choice: &mut Choice) -> Vec<u8> {
        let dice = match choice {
            Choice::Lost => return self.durable.clone(),
            Choice::Kept => return self.written(),
            Choice::Seeded(dice) => dice,
        };
        let was_cut = self.same < self.durable.len();
        if was_cut && dice.roll(2) == 0 {
            return self.durable.clone();
        }
        let mut bytes = self.written();
        bytes.truncate(self.same + dice.roll_usize(bytes.len() - self.same + 1));
        // The length may have reached the disk before a page did: zeros then.
        if bytes.len() > self.same && dice.roll(4) == 0 {
            let from = self.same + dice.roll_usize(bytes.len() - self.same);
            let to = from + 1 + dice.roll_usize(bytes.len() - from);
            if let Some(hole) = bytes.get_mut(from..to) {
                hole.fill(0);
            }
        }
        bytes
    }
}

/// A handle that appends.
#[derive(Debug)]
pub(super) struct FaultAppend(pub(super) Arc<FaultFile>);

impl AppendFile for FaultAppend {
    fn len(&self) -> u64 {
        self.0.bytes.lock().live.len() as u64
    }

    fn append(&mut self, bytes: &[u8]) -> std::result::Result<(), AppendError> {
        let file = &self.0;
        let needed = bytes.len() as u64;
        let outcome = file.faults.change(Operation::Append, &file.path, needed);
        let mut stored = file.bytes.lock();
        let (written, source) = match outcome {
            Err(failure) => {
                let (error, written) = failure.written(bytes.len());
                (written, error)
            }
            Ok(()) => {
                let room = stored.allocated() - stored.live.len();
                if file
                    .faults
                    .take_room(bytes.len().saturating_sub(room) as u64)
                {
                    stored.append(bytes);
                    return Ok(());
                }
                (room, full(Operation::Append, &file.path, needed))
            }
        };
        stored.append(bytes.get(..written).unwrap_or_default());
        let written = written as u64;
        Err(AppendError { written, source })
    }

    fn truncate(&mut self, len: u64) -> Result<()> {
        let file = &self.0;
        file.faults.change(Operation::Truncate, &file.path, 0)?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let mut stored = file.bytes.lock();
        let before = stored.allocated();
        stored.truncate(len);
        file.faults.give_room((before - stored.allocated()) as u64);
        Ok(())
    }

    fn reserve(&mut self, bytes: u64) -> Result<()> {
        let file = &self.0;
        file.faults.change(Operation::Reserve, &file.path, bytes)?;
        let mut stored = file.bytes.lock();
        let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
        let end = stored.live.len().saturating_add(wanted);
        let more = end.saturating_sub(stored.allocated()) as u64;
        if !file.faults.take_room(more) {
            return Err(full(Operation::Reserve, &file.path, bytes));
        }
        stored.reserved = stored.reserved.max(end);
        Ok(())
    }

    fn syncer(&self) -> Arc<dyn Fsync> {
        self.0.clone()
    }
}

impl Fsync for FaultFile {
    fn sync(&self) -> Result<()> {
        let outcome = self.faults.sync(Operation::SyncFile, &self.path);
        let mut bytes = self.bytes.lock();
        match outcome {
            Ok(()) => bytes.sync(),
            Err(failure) => {
                let unwritten = bytes.same..bytes.live.len();
                if failure.loses() && !unwritten.is_empty() {
                    bytes.lost.push(unwritten);
                }
                return Err(failure.error);
            }
        }
        Ok(())
    }
}
