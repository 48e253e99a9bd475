//! A directory in memory, for tests: the same names and errors, no files, every sync done at once.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memmap2::{MmapMut, MmapRaw};
use parking_lot::Mutex;

use super::{
    AppendError, AppendFile, DirError, DirLock, Directory, Fsync, Region, Result, check_name,
};

/// A directory in memory. Its handles stay good after a rename (with the old path in messages) and after
/// a removal, as open files do. [`Directory::read`] does not read regions.
#[derive(Debug)]
pub struct MemDirectory {
    path: PathBuf,
    entries: Mutex<BTreeMap<String, Entry>>,
    locked: Arc<AtomicBool>,
}

#[derive(Clone, Debug)]
enum Entry {
    Region(Arc<MemRegion>),
    Bytes(Arc<Mutex<Vec<u8>>>),
    Subdir(Arc<MemDirectory>),
}

impl Default for MemDirectory {
    fn default() -> Self {
        Self::at(PathBuf::from("mem:"))
    }
}

impl MemDirectory {
    /// An empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn at(path: PathBuf) -> Self {
        Self {
            path,
            entries: Mutex::default(),
            locked: Arc::default(),
        }
    }

    fn error(&self, operation: &'static str, name: &str, kind: io::ErrorKind) -> DirError {
        DirError::from_io(operation, &self.path.join(name), 0, kind.into())
    }

    fn find(&self, name: &str) -> Result<Entry> {
        check_name(name)?;
        let entry = self.entries.lock().get(name).cloned();
        entry.ok_or_else(|| self.error("opening", name, io::ErrorKind::NotFound))
    }

    fn bytes(&self, name: &str) -> Result<Arc<Mutex<Vec<u8>>>> {
        match self.find(name)? {
            Entry::Bytes(bytes) => Ok(bytes),
            _ => Err(self.error("reading", name, io::ErrorKind::Unsupported)),
        }
    }

    fn insert_new(&self, name: &str, entry: Entry) -> Result<()> {
        check_name(name)?;
        let mut entries = self.entries.lock();
        if entries.contains_key(name) {
            return Err(self.error("creating", name, io::ErrorKind::AlreadyExists));
        }
        entries.insert(name.to_owned(), entry);
        Ok(())
    }

    fn take(&self, name: &str, subdir: bool) -> Result<Entry> {
        check_name(name)?;
        let mut entries = self.entries.lock();
        match entries.remove(name) {
            Some(entry) if matches!(entry, Entry::Subdir(_)) == subdir => Ok(entry),
            Some(entry) => {
                entries.insert(name.to_owned(), entry);
                Err(self.error("removing", name, io::ErrorKind::InvalidInput))
            }
            None => Err(self.error("removing", name, io::ErrorKind::NotFound)),
        }
    }

    fn names(&self, subdirs: bool) -> Vec<String> {
        let entries = self.entries.lock();
        let kind = |entry: &Entry| matches!(entry, Entry::Subdir(_)) == subdirs;
        entries
            .iter()
            .filter(|(_, e)| kind(e))
            .map(|(name, _)| name.clone())
            .collect()
    }
}

impl Directory for MemDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn create_region(&self, name: &str, len_bytes: u64) -> Result<Arc<dyn Region>> {
        assert!(len_bytes > 0, "a region has at least one byte");
        let mapped = usize::try_from(len_bytes)
            .map_err(io::Error::other)
            .and_then(MmapMut::map_anon);
        let map = mapped
            .map_err(|e| DirError::from_io("creating", &self.path.join(name), len_bytes, e))?;
        let region = Arc::new(MemRegion { map: map.into() });
        self.insert_new(name, Entry::Region(Arc::clone(&region)))?;
        Ok(region)
    }

    fn open_region(&self, name: &str) -> Result<Arc<dyn Region>> {
        match self.find(name)? {
            Entry::Region(region) => Ok(region),
            _ => Err(self.error("opening", name, io::ErrorKind::InvalidInput)),
        }
    }

    fn create_append(&self, name: &str) -> Result<Box<dyn AppendFile>> {
        let bytes = Arc::default();
        self.insert_new(name, Entry::Bytes(Arc::clone(&bytes)))?;
        Ok(Box::new(MemAppend { bytes }))
    }

    fn open_append(&self, name: &str) -> Result<Box<dyn AppendFile>> {
        Ok(Box::new(MemAppend {
            bytes: self.bytes(name)?,
        }))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        Ok(self.bytes(name)?.lock().clone())
    }

    fn read_range(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>> {
        let bytes = self.bytes(name)?;
        let bytes = bytes.lock();
        let clamp = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        Ok(bytes
            .get(clamp(range.start)..clamp(range.end))
            .unwrap_or_default()
            .to_vec())
    }

    fn write_atomic(&self, name: &str, bytes: &[u8]) -> Result<()> {
        check_name(name)?;
        let entry = Entry::Bytes(Arc::new(Mutex::new(bytes.to_vec())));
        self.entries.lock().insert(name.to_owned(), entry);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.take(name, false).map(drop)
    }

    fn list(&self) -> Result<Vec<String>> {
        Ok(self.names(false))
    }

    fn sizes(&self) -> Result<Vec<(String, u64)>> {
        let entries = self.entries.lock();
        let files = entries.iter().filter_map(|(name, entry)| match entry {
            Entry::Region(region) => Some((name.clone(), region.len())),
            Entry::Bytes(bytes) => Some((name.clone(), bytes.lock().len() as u64)),
            Entry::Subdir(_) => None,
        });
        Ok(files.collect())
    }

    fn exists(&self, name: &str) -> Result<bool> {
        check_name(name)?;
        Ok(self.entries.lock().contains_key(name))
    }

    fn subdir(&self, name: &str) -> Result<Arc<dyn Directory>> {
        check_name(name)?;
        let mut entries = self.entries.lock();
        let fresh = || Entry::Subdir(Arc::new(Self::at(self.path.join(name))));
        match entries.entry(name.to_owned()).or_insert_with(fresh) {
            Entry::Subdir(subdir) => Ok(Arc::clone(subdir) as Arc<dyn Directory>),
            _ => Err(self.error("opening", name, io::ErrorKind::NotADirectory)),
        }
    }

    fn subdirs(&self) -> Result<Vec<String>> {
        Ok(self.names(true))
    }

    fn rename_subdir(&self, from: &str, to: &str) -> Result<()> {
        if self.exists(to)? {
            return Err(self.error("renaming to", to, io::ErrorKind::AlreadyExists));
        }
        let entry = self.take(from, true)?;
        self.insert_new(to, entry)
    }

    fn remove_subdir(&self, name: &str) -> Result<()> {
        self.take(name, true).map(drop)
    }

    fn sweep(&self) -> Result<()> {
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn lock(&self) -> Result<Box<dyn DirLock>> {
        if self.locked.swap(true, Ordering::AcqRel) {
            return Err(DirError::Locked {
                path: self.path.clone(),
                holder_pid: None,
            });
        }
        Ok(Box::new(MemLock {
            locked: Arc::clone(&self.locked),
        }))
    }
}

#[derive(Debug)]
struct MemLock {
    locked: Arc<AtomicBool>,
}

impl DirLock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.locked.store(false, Ordering::Release);
    }
}

#[derive(Debug)]
struct MemRegion {
    map: MmapRaw,
}

impl Region for MemRegion {
    fn len(&self) -> u64 {
        self.map.len() as u64
    }

    fn as_ptr(&self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    fn sync(&self, _range: Range<u64>) -> Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct MemAppend {
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl AppendFile for MemAppend {
    fn len(&self) -> u64 {
        self.bytes.lock().len() as u64
    }

    fn append(&mut self, bytes: &[u8]) -> std::result::Result<(), AppendError> {
        self.bytes.lock().extend_from_slice(bytes);
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> Result<()> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.bytes.lock().truncate(len);
        Ok(())
    }

    fn reserve(&mut self, _bytes: u64) -> Result<()> {
        Ok(())
    }

    fn syncer(&self) -> Arc<dyn Fsync> {
        Arc::new(MemSync)
    }
}

#[derive(Debug)]
struct MemSync;

impl Fsync for MemSync {
    fn sync(&self) -> Result<()> {
        Ok(())
    }
}
