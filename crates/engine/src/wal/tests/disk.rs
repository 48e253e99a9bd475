//! A disk that fails on demand and loses what was not synced.
//!
//! Each file has live and durable bytes, and the directory live and durable entries. A killed process leaves the
//! live ones; a power loss leaves the durable ones and, of the rest, whatever a chooser picks.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use flatwater_segment::dir::{
    AppendError, AppendFile, DirError, DirLock, Directory, Fsync, Region, Result,
};
use parking_lot::Mutex;

/// Handle of a disk with one directory; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct TestDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    live: BTreeMap<String, Arc<Mutex<Bytes>>>,
    durable: BTreeMap<String, Arc<Mutex<Bytes>>>,
    faults: Faults,
}

#[derive(Clone, Debug, Default)]
struct Bytes {
    live: Vec<u8>,
    durable: Vec<u8>,
}

/// What fails from now on.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    /// The next append writes so many bytes and fails.
    pub(super) append_after: Option<usize>,
    /// Truncation fails.
    pub(super) truncate: bool,
    /// Syncs fail.
    pub(super) sync: bool,
    /// There is no room for new files and reserves.
    pub(super) full: bool,
    /// After so many changes everything fails.
    pub(super) changes_left: Option<usize>,
}

fn failure(operation: &'static str) -> DirError {
    DirError::from_io(
        operation,
        Path::new("test"),
        0,
        io::Error::other("a fault of the test"),
    )
}

fn full() -> DirError {
    DirError::from_io(
        "creating",
        Path::new("test"),
        1,
        io::ErrorKind::StorageFull.into(),
    )
}

impl TestDisk {
    pub(super) fn dir(&self) -> Arc<dyn Directory> {
        Arc::new(self.clone())
    }

    pub(super) fn set_faults(&self, faults: Faults) {
        self.state.lock().faults = faults;
    }

    /// Replaces the bytes of a file, durably.
    pub(super) fn put(&self, name: &str, bytes: Vec<u8>) {
        let file = Arc::new(Mutex::new(Bytes {
            live: bytes.clone(),
            durable: bytes,
        }));
        let mut state = self.state.lock();
        state.live.insert(name.to_owned(), Arc::clone(&file));
        state.durable.insert(name.to_owned(), file);
    }

    /// The disk after a power loss. `choose(n)` picks one of n outcomes.
    pub(super) fn after_power_loss(&self, choose: &mut dyn FnMut(usize) -> usize) -> Self {
        let state = self.state.lock();
        let after = Self::default();
        let names: BTreeSet<&String> = state.live.keys().chain(state.durable.keys()).collect();
        for name in names {
            let file = match (state.live.get(name), state.durable.get(name)) {
                (Some(live), Some(_)) => live,
                (Some(file), None) | (None, Some(file)) if choose(2) == 0 => file,
                _ => continue,
            };
            after.put(name, file.lock().after_power_loss(choose));
        }
        after
    }

    /// Counts a change against `changes_left`.
    fn change(&self, operation: &'static str) -> Result<()> {
        match &mut self.state.lock().faults.changes_left {
            Some(0) => Err(failure(operation)),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn file(&self, name: &str) -> Result<Arc<Mutex<Bytes>>> {
        let missing = || {
            DirError::from_io(
                "opening",
                Path::new(name),
                0,
                io::ErrorKind::NotFound.into(),
            )
        };
        self.state
            .lock()
            .live
            .get(name)
            .cloned()
            .ok_or_else(missing)
    }
}

impl Bytes {
    fn after_power_loss(&self, choose: &mut dyn FnMut(usize) -> usize) -> Vec<u8> {
        if !self.live.starts_with(&self.durable) {
            return if choose(2) == 0 {
                self.durable.clone()
            } else {
                self.live.clone()
            };
        }
        let synced = self.durable.len();
        let len = synced + choose(self.live.len() - synced + 1);
        let mut bytes = self.live[..len].to_vec();
        // A page that was not written: zeros where the file has its length already.
        if len > synced && choose(2) == 0 {
            let from = synced + choose(len - synced);
            let to = from + 1 + choose(len - from);
            bytes[from..to].fill(0);
        }
        bytes
    }
}

impl Directory for TestDisk {
    fn path(&self) -> &Path {
        Path::new("disk")
    }

    fn create_append(&self, name: &str) -> Result<Box<dyn AppendFile>> {
        self.change("creating")?;
        let mut state = self.state.lock();
        if state.faults.full {
            return Err(full());
        }
        assert!(!state.live.contains_key(name), "{name} is created once");
        let file = Arc::new(Mutex::new(Bytes::default()));
        state.live.insert(name.to_owned(), Arc::clone(&file));
        Ok(Box::new(TestFile {
            disk: self.clone(),
            file,
        }))
    }

    fn open_append(&self, name: &str) -> Result<Box<dyn AppendFile>> {
        Ok(Box::new(TestFile {
            disk: self.clone(),
            file: self.file(name)?,
        }))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        Ok(self.file(name)?.lock().live.clone())
    }

    fn read_range(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>> {
        let bytes = self.read(name)?;
        let clamp = |at: u64| bytes.len().min(at as usize);
        Ok(bytes[clamp(range.start)..clamp(range.end)].to_vec())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.change("removing")?;
        self.file(name)?;
        self.state.lock().live.remove(name);
        Ok(())
    }

    fn list(&self) -> Result<Vec<String>> {
        Ok(self.state.lock().live.keys().cloned().collect())
    }

    fn sync(&self) -> Result<()> {
        self.change("syncing")?;
        let mut state = self.state.lock();
        if state.faults.sync {
            return Err(failure("syncing"));
        }
        state.durable = state.live.clone();
        Ok(())
    }

    fn create_region(&self, _: &str, _: u64) -> Result<Arc<dyn Region>> {
        unreachable!("the log maps nothing")
    }
    fn open_region(&self, _: &str) -> Result<Arc<dyn Region>> {
        unreachable!("the log maps nothing")
    }
    fn write_atomic(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.change("writing")?;
        if self.state.lock().faults.full {
            return Err(full());
        }
        let file = Arc::new(Mutex::new(Bytes {
            live: bytes.to_vec(),
            durable: bytes.to_vec(),
        }));
        self.state.lock().live.insert(name.to_owned(), file);
        self.sync()
    }
    fn sizes(&self) -> Result<Vec<(String, u64)>> {
        unreachable!("nobody asks for the sizes of the log")
    }
    fn exists(&self, _: &str) -> Result<bool> {
        unreachable!("the log lists")
    }
    fn subdir(&self, _: &str) -> Result<Arc<dyn Directory>> {
        unreachable!("the log has no subdirectories")
    }
    fn subdirs(&self) -> Result<Vec<String>> {
        unreachable!("the log has no subdirectories")
    }
    fn rename_subdir(&self, _: &str, _: &str) -> Result<()> {
        unreachable!("the log has no subdirectories")
    }
    fn remove_subdir(&self, _: &str) -> Result<()> {
        unreachable!("the log has no subdirectories")
    }
    fn sweep(&self) -> Result<()> {
        unreachable!("the shard sweeps")
    }
    fn lock(&self) -> Result<Box<dyn DirLock>> {
        unreachable!("the engine locks")
    }
}

#[derive(Clone, Debug)]
struct TestFile {
    disk: TestDisk,
    file: Arc<Mutex<Bytes>>,
}

impl AppendFile for TestFile {
    fn len(&self) -> u64 {
        self.file.lock().live.len() as u64
    }

    fn append(&mut self, bytes: &[u8]) -> std::result::Result<(), AppendError> {
        self.disk
            .change("appending")
            .map_err(|source| AppendError { written: 0, source })?;
        let failing = self.disk.state.lock().faults.append_after.take();
        let written = failing.map_or(bytes.len(), |written| written.min(bytes.len()));
        self.file.lock().live.extend_from_slice(&bytes[..written]);
        match failing {
            Some(_) => Err(AppendError {
                written: written as u64,
                source: full(),
            }),
            None => Ok(()),
        }
    }

    fn truncate(&mut self, len: u64) -> Result<()> {
        self.disk.change("truncating")?;
        if self.disk.state.lock().faults.truncate {
            return Err(failure("truncating"));
        }
        self.file.lock().live.truncate(len as usize);
        Ok(())
    }

    fn reserve(&mut self, _bytes: u64) -> Result<()> {
        if self.disk.state.lock().faults.full {
            Err(full())
        } else {
            Ok(())
        }
    }

    fn syncer(&self) -> Arc<dyn Fsync> {
        Arc::new(self.clone())
    }
}

impl Fsync for TestFile {
    fn sync(&self) -> Result<()> {
        self.disk.change("syncing")?;
        if self.disk.state.lock().faults.sync {
            return Err(failure("syncing"));
        }
        let mut file = self.file.lock();
        file.durable = file.live.clone();
        Ok(())
    }
}
