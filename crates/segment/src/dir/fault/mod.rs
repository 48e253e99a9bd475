//! A directory in memory that fails on demand and loses what was not synced, for tests.
//!
//! It keeps two images apart: the **live** one, which the process sees, and the **durable** one,
//! which a power loss leaves.
//!
//! 1. Bytes become durable by [`Region::sync`] of their range, by [`Fsync::sync`](super::Fsync), and
//!    by [`Directory::write_atomic`]; names by [`Directory::sync`] and where the trait says so.
//! 2. Every change and every sync is an *operation*, counted by [`Faults`]. At the n-th one
//!    [`Fault`] can make it fail, fill the disk, or stop the machine; so a test counts the operations
//!    of a workload once and then runs through all of them.
//! 3. A failed sync leaves the bytes in the live image and out of the durable one for good: a later
//!    sync does not write them again unless they were stored anew, as Linux has it (Rebello et
//!    al., "Can Applications Recover from fsync Failures?", ATC 2020).
//! 4. [`FaultDirectory::after_kill`] is what a new process finds after the old one was killed: the live
//!    image, with the durable one behind it. [`FaultDirectory::after_power_loss`] is what it
//!    finds after the power was cut: the durable image and, of the rest, each 4 KiB page of a region,
//!    each end of an appended suffix and each changed name kept or dropped by a seeded choice.
//!
//! Images are taken when nobody stores to the regions any more. Stores that a process made after the
//! operation at which it was stopped count as made just before it: they are memory, not calls.

mod dice;
mod faults;
mod file;
mod image;
mod region;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{AppendFile, DirError, DirLock, Directory, Region, Result, check_name};
use file::{FaultAppend, FaultFile};
use region::FaultRegion;

pub use faults::{Fault, Faults, Operation, Record};
pub use image::Unsynced;

/// A directory whose storage fails on demand. Its subdirectories share its [`Faults`].
#[derive(Debug)]
pub struct FaultDirectory {
    path: PathBuf,
    faults: Arc<Faults>,
    entries: Mutex<Entries>,
    locked: Arc<AtomicBool>,
}

/// The names of a directory.
#[derive(Debug, Default)]
struct Entries {
    live: BTreeMap<String, Node>,
    durable: BTreeMap<String, Node>,
    /// How `live` came from `durable`, in order.
    unsynced: Vec<Change>,
}

/// What a name stands for.
#[derive(Clone, Debug)]
enum Node {
    Region(Arc<FaultRegion>),
    File(Arc<FaultFile>),
    Folder(Arc<FaultDirectory>),
}

/// A change of names, whole or absent after a power loss.
#[derive(Clone, Debug)]
enum Change {
    /// The name stands for this from now on.
    Set(String, Node),
    /// The name is gone.
    Remove(String),
    /// What was called the first is called the second.
    Rename(String, String, Node),
}

impl Change {
    fn apply(&self, entries: &mut BTreeMap<String, Node>) {
        match self {
            Self::Set(name, node) => drop(entries.insert(name.clone(), node.clone())),
            Self::Remove(name) => drop(entries.remove(name)),
            Self::Rename(from, to, node) => {
                entries.remove(from);
                entries.insert(to.clone(), node.clone());
            }
        }
    }
}

impl Node {
    /// Bytes of the disk that it takes.
    fn size(&self) -> u64 {
        match self {
            Self::Region(region) => region.len(),
            Self::File(file) => file.size(),
            Self::Folder(folder) => folder.entries.lock().live.values().map(Self::size).sum(),
        }
    }
}

impl Entries {
    /// Returns the bytes of what has no name any more.
    fn change(&mut self, change: Change) -> u64 {
        let freed = match &change {
            Change::Set(name, _) | Change::Remove(name) => {
                self.live.get(name).map_or(0, Node::size)
            }
            Change::Rename(..) => 0,
        };
        change.apply(&mut self.live);
        self.unsynced.push(change);
        freed
    }
}

impl Default for FaultDirectory {
    fn default() -> Self {
        Self::at(PathBuf::from("fault:"), Arc::default(), Entries::default())
    }
}

impl FaultDirectory {
    /// An empty directory on a disk of its own, without faults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn at(path: PathBuf, faults: Arc<Faults>, entries: Entries) -> Self {
        Self {
            path,
            faults,
            entries: Mutex::new(entries),
            locked: Arc::default(),
        }
    }

    /// Counts and faults of the disk.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    fn error(&self, operation: &'static str, name: &str, kind: io::ErrorKind) -> DirError {
        DirError::from_io(operation, &self.path.join(name), 0, kind.into())
    }

    fn find(&self, name: &str) -> Result<Node> {
        check_name(name)?;
        self.faults.read(&self.path.join(name))?;
        let node = self.entries.lock().live.get(name).cloned();
        node.ok_or_else(|| self.error("opening", name, io::ErrorKind::NotFound))
    }

    fn file(&self, name: &str) -> Result<Arc<FaultFile>> {
        match self.find(name)? {
            Node::File(file) => Ok(file),
            _ => Err(self.error("opening", name, io::ErrorKind::Unsupported)),
        }
    }

    fn create(&self, name: &str, node: Node) -> Result<()> {
        let size = node.size();
        let mut entries = self.entries.lock();
        if entries.live.contains_key(name) {
            self.faults.give_room(size);
            return Err(self.error("creating", name, io::ErrorKind::AlreadyExists));
        }
        entries.change(Change::Set(name.to_owned(), node));
        Ok(())
    }

    /// Makes a change that frees what had the name.
    fn change(&self, change: Change) {
        let freed = self.entries.lock().change(change);
        self.faults.give_room(freed);
    }

    /// Refuses a name that is not a folder's (or not a file's).
    fn check_kind(&self, name: &str, is_folder: bool) -> Result<()> {
        check_name(name)?;
        match self.entries.lock().live.get(name) {
            None => Err(self.error("opening", name, io::ErrorKind::NotFound)),
            Some(node) if matches!(node, Node::Folder(_)) != is_folder => {
                Err(self.error("opening", name, io::ErrorKind::InvalidInput))
            }
            Some(_) => Ok(()),
        }
    }

    fn names(&self, folders: bool) -> Result<Vec<String>> {
        self.faults.read(&self.path)?;
        let entries = self.entries.lock();
        let wanted = entries
            .live
            .iter()
            .filter(|(_, node)| matches!(node, Node::Folder(_)) == folders);
        Ok(wanted.map(|(name, _)| name.clone()).collect())
    }
}

impl Directory for FaultDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn create_region(&self, name: &str, len_bytes: u64) -> Result<Arc<dyn Region>> {
        assert!(len_bytes > 0, "a region has at least one byte");
        check_name(name)?;
        let path = self.path.join(name);
        self.faults
            .change(Operation::CreateRegion, &path, len_bytes)?;
        let region = FaultRegion::create(&self.faults, path, len_bytes)?;
        let region = Arc::new(region);
        self.create(name, Node::Region(Arc::clone(&region)))?;
        Ok(region)
    }

    fn open_region(&self, name: &str) -> Result<Arc<dyn Region>> {
        match self.find(name)? {
            Node::Region(region) => Ok(region.reopened()),
            _ => Err(self.error("opening", name, io::ErrorKind::InvalidInput)),
        }
    }

    fn create_append(&self, name: &str) -> Result<Box<dyn AppendFile>> {
        check_name(name)?;
        let path = self.path.join(name);
        self.faults.change(Operation::CreateFile, &path, 0)?;
        let file = Arc::new(FaultFile::new(&self.faults, path, Vec::new()));
        self.create(name, Node::File(Arc::clone(&file)))?;
        Ok(Box::new(FaultAppend(file)))
    }

    fn open_append(&self, name: &str) -> Result<Box<dyn AppendFile>> {
        Ok(Box::new(FaultAppend(self.file(name)?)))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        Ok(self.file(name)?.read(0..u64::MAX))
    }

    fn read_range(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>> {
        Ok(self.file(name)?.read(range))
    }

    fn write_atomic(&self, name: &str, bytes: &[u8]) -> Result<()> {
        check_name(name)?;
        let path = self.path.join(name);
        let needed = bytes.len() as u64;
        self.faults
            .change(Operation::WriteTemporary, &path, needed)?;
        for step in [Operation::SyncTemporary, Operation::RenameFile] {
            if let Err(failure) = self.faults.change(step, &path, needed) {
                self.faults.give_room(needed);
                return Err(failure.into());
            }
        }
        let file = FaultFile::new(&self.faults, path, bytes.to_vec());
        let change = Change::Set(name.to_owned(), Node::File(Arc::new(file)));
        self.change(change);
        self.sync()
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.check_kind(name, false)?;
        self.faults
            .change(Operation::Remove, &self.path.join(name), 0)?;
        self.change(Change::Remove(name.to_owned()));
        Ok(())
    }

    fn list(&self) -> Result<Vec<String>> {
        self.names(false)
    }

    fn sizes(&self) -> Result<Vec<(String, u64)>> {
        self.faults.read(&self.path)?;
        let entries = self.entries.lock();
        let files = entries.live.iter();
        let files = files.filter(|(_, node)| !matches!(node, Node::Folder(_)));
        Ok(files
            .map(|(name, node)| (name.clone(), node.size()))
            .collect())
    }

    fn exists(&self, name: &str) -> Result<bool> {
        check_name(name)?;
        self.faults.read(&self.path.join(name))?;
        Ok(self.entries.lock().live.contains_key(name))
    }

    fn subdir(&self, name: &str) -> Result<Arc<dyn Directory>> {
        match self.find(name) {
            Ok(Node::Folder(folder)) => return Ok(folder),
            Ok(_) => return Err(self.error("opening", name, io::ErrorKind::NotADirectory)),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        let path = self.path.join(name);
        self.faults.change(Operation::CreateFolder, &path, 0)?;
        let faults = Arc::clone(&self.faults);
        let folder = Arc::new(Self::at(path, faults, Entries::default()));
        self.create(name, Node::Folder(Arc::clone(&folder)))?;
        self.sync()?;
        Ok(folder)
    }

    fn subdirs(&self) -> Result<Vec<String>> {
        self.names(true)
    }

    fn rename_subdir(&self, from: &str, to: &str) -> Result<()> {
        if self.exists(to)? {
            return Err(self.error("renaming to", to, io::ErrorKind::AlreadyExists));
        }
        self.check_kind(from, true)?;
        let node = self.find(from)?;
        self.faults
            .change(Operation::RenameFolder, &self.path.join(from), 0)?;
        let change = Change::Rename(from.to_owned(), to.to_owned(), node);
        self.change(change);
        self.sync()
    }

    fn remove_subdir(&self, name: &str) -> Result<()> {
        self.check_kind(name, true)?;
        let path = self.path.join(name);
        self.faults.change(Operation::RemoveFolder, &path, 0)?;
        self.change(Change::Remove(name.to_owned()));
        self.sync()?;
        Ok(self.faults.change(Operation::FreeFolder, &path, 0)?)
    }

    /// Unfinished writes and removals have no names here, so there is nothing to sweep.
    fn sweep(&self) -> Result<()> {
        self.faults.read(&self.path)
    }

    fn sync(&self) -> Result<()> {
        self.faults.sync(Operation::SyncDirectory, &self.path)?;
        let mut entries = self.entries.lock();
        entries.durable = entries.live.clone();
        entries.unsynced.clear();
        Ok(())
    }

    fn lock(&self) -> Result<Box<dyn DirLock>> {
        self.faults.read(&self.path)?;
        if self.locked.swap(true, Ordering::AcqRel) {
            return Err(DirError::Locked {
                path: self.path.clone(),
                holder_pid: None,
            });
        }
        Ok(Box::new(FaultLock(Arc::clone(&self.locked))))
    }
}

#[derive(Debug)]
struct FaultLock(Arc<AtomicBool>);

impl DirLock for FaultLock {}

impl Drop for FaultLock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
