//! Real files. The one place that calls `std::fs` for data.
//!
//! A mapped region keeps no file descriptor (the mapping holds the file), so open files are the log's
//! few and nothing else grows with the data. Only Linux is served: `fallocate`, and `msync` that
//! writes the file's metadata as far as it is needed to find the data (as `fdatasync` does).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

use memmap2::MmapRaw;
use rustix::fs::{FallocateFlags, fallocate};

use super::resident::resident_bytes;
use super::{
    AppendError, AppendFile, DirError, DirLock, Directory, Fsync, LOCK_NAME, Region, Result,
    TEMP_SUFFIX, check_name,
};
use crate::file::Damage;

/// A directory of the file system.
#[derive(Debug)]
pub struct FsDirectory {
    path: PathBuf,
}

impl FsDirectory {
    /// Opens `path`; it and its parents are created when missing, each durable in its parent.
    ///
    /// # Errors
    /// `Io`.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        create_dir_durably(&path)?;
        Ok(Self { path })
    }

    /// The path of a checked name.
    fn file(&self, name: &str) -> Result<PathBuf> {
        check_name(name)?;
        Ok(self.path.join(name))
    }

    /// The path that `name` has while it is being written or removed.
    fn temp(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{TEMP_SUFFIX}"))
    }

    /// Names here that are `dirs` or files, with those that count as gone last.
    fn entries(&self, dirs: bool) -> Result<(Vec<String>, Vec<PathBuf>)> {
        let failed = |e| DirError::from_io("listing", &self.path, 0, e);
        let (mut names, mut gone) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_type().map_err(failed)?.is_dir() != dirs {
                continue;
            }
            // A name that is not UTF-8 is not one of ours.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if name.ends_with(TEMP_SUFFIX) {
                gone.push(entry.path());
            } else if name != LOCK_NAME {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok((names, gone))
    }
}

impl Directory for FsDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn create_region(&self, name: &str, len_bytes: u64) -> Result<Arc<dyn Region>> {
        assert!(len_bytes > 0, "a region has at least one byte");
        let path = self.file(name)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(|e| DirError::from_io("creating", &path, len_bytes, e))?;
        let made = allocate(&file, 0, len_bytes, &path)
            .and_then(|()| FsRegion::map(&file, path.clone(), len_bytes));
        if made.is_err() {
            // Best effort: the error to tell is the first one.
            drop(fs::remove_file(&path));
        }
        Ok(Arc::new(made?))
    }

    fn open_region(&self, name: &str) -> Result<Arc<dyn Region>> {
        let path = self.file(name)?;
        let failed = |e| DirError::from_io("opening", &path, 0, e);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        if len == 0 {
            let damage = Damage {
                check: "region length",
                offset: 0,
                expected: 1,
                found: 0,
            };
            return Err(DirError::Damaged { path, damage });
        }
        // A copy of the directory may have become sparse: a store into a hole must not meet a full
        // disk either. Blocks that are there are left as they are.
        allocate(&file, 0, len, &path)?;
        Ok(Arc::new(FsRegion::map(&file, path, len)?))
    }

    fn create_append(&self, name: &str) -> Result<Box<dyn AppendFile>> {
        let path = self.file(name)?;
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(&path)
            .map_err(|e| DirError::from_io("creating", &path, 0, e))?;
        Ok(Box::new(FsAppend {
            file: Arc::new(FsSync { file, path }),
            len: 0,
        }))
    }

    fn open_append(&self, name: &str) -> Result<Box<dyn AppendFile>> {
        let path = self.file(name)?;
        let failed = |e| DirError::from_io("opening", &path, 0, e);
        let file = OpenOptions::new()
            .append(true)
            .open(&path)
            .map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        Ok(Box::new(FsAppend {
            file: Arc::new(FsSync { file, path }),
            len,
        }))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.file(name)?;
        fs::read(&path).map_err(|e| DirError::from_io("reading", &path, 0, e))
    }

    fn read_range(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>> {
        let path = self.file(name)?;
        let mut bytes = Vec::new();
        File::open(&path)
            .and_then(|mut file| {
                file.seek(SeekFrom::Start(range.start))?;
                file.take(range.end.saturating_sub(range.start))
                    .read_to_end(&mut bytes)
            })
            .map_err(|e| DirError::from_io("reading", &path, 0, e))?;
        Ok(bytes)
    }

    fn write_atomic(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let (path, temp) = (self.file(name)?, self.temp(name));
        let written = File::create(&temp).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        if let Err(e) = written.and_then(|()| fs::rename(&temp, &path)) {
            drop(fs::remove_file(&temp));
            return Err(DirError::from_io("writing", &path, bytes.len() as u64, e));
        }
        self.sync()
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.file(name)?;
        fs::remove_file(&path).map_err(|e| DirError::from_io("removing", &path, 0, e))
    }

    fn list(&self) -> Result<Vec<String>> {
        Ok(self.entries(false)?.0)
    }

    fn sizes(&self) -> Result<Vec<(String, u64)>> {
        let mut sizes = Vec::new();
        for name in self.list()? {
            let path = self.path.join(&name);
            match fs::metadata(&path) {
                Ok(facts) => sizes.push((name, facts.len())),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(DirError::from_io("looking at", &path, 0, e)),
            }
        }
        Ok(sizes)
    }

    fn exists(&self, name: &str) -> Result<bool> {
        let path = self.file(name)?;
        path.try_exists()
            .map_err(|e| DirError::from_io("looking for", &path, 0, e))
    }

    fn subdir(&self, name: &str) -> Result<Arc<dyn Directory>> {
        Ok(Arc::new(Self::open(self.file(name)?)?))
    }

    fn subdirs(&self) -> Result<Vec<String>> {
        Ok(self.entries(true)?.0)
    }

    fn rename_subdir(&self, from: &str, to: &str) -> Result<()> {
        let (source, target) = (self.file(from)?, self.file(to)?);
        // A plain rename would replace an empty directory. The lock's holder is the only one here, so
        // looking first is enough.
        if self.exists(to)? {
            let taken = io::Error::from(io::ErrorKind::AlreadyExists);
            return Err(DirError::from_io("renaming to", &target, 0, taken));
        }
        fs::rename(&source, &target).map_err(|e| DirError::from_io("renaming", &source, 0, e))?;
        self.sync()
    }

    fn remove_subdir(&self, name: &str) -> Result<()> {
        let (path, temp) = (self.file(name)?, self.temp(name));
        if temp.try_exists().unwrap_or(true) {
            fs::remove_dir_all(&temp).map_err(|e| DirError::from_io("removing", &temp, 0, e))?;
        }
        fs::rename(&path, &temp).map_err(|e| DirError::from_io("removing", &path, 0, e))?;
        self.sync()?;
        fs::remove_dir_all(&temp).map_err(|e| DirError::from_io("removing", &temp, 0, e))
    }

    fn sweep(&self) -> Result<()> {
        for path in self.entries(false)?.1 {
            fs::remove_file(&path).map_err(|e| DirError::from_io("removing", &path, 0, e))?;
        }
        for path in self.entries(true)?.1 {
            fs::remove_dir_all(&path).map_err(|e| DirError::from_io("removing", &path, 0, e))?;
        }
        Ok(())
    }

    fn free_bytes(&self) -> Result<u64> {
        let stat = rustix::fs::statvfs(&self.path).map_err(|errno| {
            DirError::from_io("asking for the free space of", &self.path, 0, errno.into())
        })?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn sync(&self) -> Result<()> {
        sync_dir(&self.path)
    }

    fn lock(&self) -> Result<Box<dyn DirLock>> {
        let path = self.path.join(LOCK_NAME);
        let failed = |e| DirError::from_io("locking", &path, 0, e);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(e)) => return Err(failed(e)),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let holder_pid = file
                    .read_to_string(&mut text)
                    .ok()
                    .and_then(|_| text.trim().parse().ok());
                return Err(DirError::Locked {
                    path: self.path.clone(),
                    holder_pid,
                });
            }
        }
        // The number is for the message alone: on a full disk the lock still holds.
        let noted = file
            .set_len(0)
            .and_then(|()| write!(file, "{}", std::process::id()));
        drop(noted);
        Ok(Box::new(FsLock { _file: file }))
    }
}

/// Creates a directory and what is missing above it, each entry durable.
fn create_dir_durably(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if parent != path {
        create_dir_durably(parent)?;
    }
    match fs::create_dir(path) {
        Ok(()) => sync_dir(parent),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(e) => Err(DirError::from_io("creating directory", path, 0, e)),
    }
}

fn sync_dir(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|dir| dir.sync_all())
        .map_err(|source| sync_failed(path, source))
}

fn sync_failed(path: &Path, source: io::Error) -> DirError {
    let path = path.to_path_buf();
    DirError::SyncFailed { path, source }
}

/// Gives the range of `file` blocks and length; holes read as zeros.
fn allocate(file: &File, offset: u64, len: u64, path: &Path) -> Result<()> {
    match fallocate_retrying(file, FallocateFlags::empty(), offset, len) {
        Err(e) if e.kind() == io::ErrorKind::Unsupported => write_zeros(file, offset + len),
        other => other,
    }
    .map_err(|e| DirError::from_io("allocating", path, len, e))
}

fn fallocate_retrying(file: &File, mode: FallocateFlags, offset: u64, len: u64) -> io::Result<()> {
    loop {
        match fallocate(file, mode, offset, len) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map_err(io::Error::from),
        }
    }
}

/// For file systems without `fallocate`: zeros from the end of the file to `len`.
fn write_zeros(mut file: &File, len: u64) -> io::Result<()> {
    static BLOCK: [u8; 64 << 10] = [0; 64 << 10];
    let mut at = file.seek(SeekFrom::End(0))?;
    while at < len {
        let block = BLOCK
            .len()
            .min(usize::try_from(len - at).unwrap_or(BLOCK.len()));
        file.write_all(BLOCK.get(..block).unwrap_or_default())?;
        at += block as u64;
    }
    Ok(())
}

#[derive(Debug)]
struct FsLock {
    /// The lock goes with the open file.
    _file: File,
}

impl DirLock for FsLock {}

#[derive(Debug)]
struct FsRegion {
    map: MmapRaw,
    path: PathBuf,
}

impl FsRegion {
    fn map(file: &File, path: PathBuf, len: u64) -> Result<Self> {
        match MmapRaw::map_raw(file) {
            Ok(map) => Ok(Self { map, path }),
            Err(e) => Err(DirError::from_io("mapping", &path, len, e)),
        }
    }
}

impl Region for FsRegion {
    fn len(&self) -> u64 {
        self.map.len() as u64
    }

    fn as_ptr(&self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    fn resident_bytes(&self) -> u64 {
        NonNull::new(self.map.as_mut_ptr()).map_or(0, |base| {
            // SAFETY: the mapping is as long as it says, and lives as long as `self`.
            unsafe { resident_bytes(base, self.map.len()) }
        })
    }

    fn sync(&self, range: Range<u64>) -> Result<()> {
        let end = range.end.min(self.len());
        if range.start >= end {
            return Ok(());
        }
        let fits = "the range lies inside a mapping, whose length is a usize";
        let start = usize::try_from(range.start).expect(fits);
        let len = usize::try_from(end).expect(fits) - start;
        self.map
            .flush_range(start, len)
            .map_err(|source| sync_failed(&self.path, source))
    }
}

#[derive(Debug)]
struct FsAppend {
    file: Arc<FsSync>,
    len: u64,
}

impl AppendFile for FsAppend {
    fn len(&self) -> u64 {
        self.len
    }

    fn append(&mut self, bytes: &[u8]) -> std::result::Result<(), AppendError> {
        let mut left = bytes;
        while !left.is_empty() {
            let source = match (&self.file.file).write(left) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(n) => {
                    self.len += n as u64;
                    left = left.get(n..).unwrap_or_default();
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => e,
            };
            let written = (bytes.len() - left.len()) as u64;
            let needed = bytes.len() as u64;
            let source = DirError::from_io("appending to", &self.file.path, needed, source);
            return Err(AppendError { written, source });
        }
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> Result<()> {
        self.file
            .file
            .set_len(len)
            .map_err(|e| DirError::from_io("truncating", &self.file.path, 0, e))?;
        self.len = len;
        Ok(())
    }

    fn reserve(&mut self, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        match fallocate_retrying(&self.file.file, FallocateFlags::KEEP_SIZE, self.len, bytes) {
            Err(e) if e.kind() == io::ErrorKind::Unsupported => Ok(()),
            other => other.map_err(|e| DirError::from_io("allocating", &self.file.path, bytes, e)),
        }
    }

    fn syncer(&self) -> Arc<dyn Fsync> {
        self.file.clone()
    }
}

#[derive(Debug)]
struct FsSync {
    file: File,
    path: PathBuf,
}

impl Fsync for FsSync {
    fn sync(&self) -> Result<()> {
        self.file
            .sync_data()
            .map_err(|source| sync_failed(&self.path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir() -> (tempfile::TempDir, FsDirectory) {
        let temp = tempfile::tempdir().unwrap();
        let dir = FsDirectory::open(temp.path().join("a/b")).unwrap();
        (temp, dir)
    }

    /// Copies bytes into a region that the test alone uses.
    fn store(region: &dyn Region, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= region.len() as usize);
        let (target, source) = (region.as_ptr().wrapping_add(at), bytes.as_ptr());
        // SAFETY: the range lies inside the region, and no other reference to it exists.
        unsafe { target.copy_from_nonoverlapping(source, bytes.len()) };
    }

    #[test]
    fn a_region_starts_with_zeros_on_allocated_blocks_and_keeps_what_is_stored() {
        let (_temp, dir) = dir();
        let region = dir.create_region("r", 10_000).unwrap();
        assert_eq!(dir.read("r").unwrap(), vec![0; 10_000]);
        let blocks =
            std::os::unix::fs::MetadataExt::blocks(&fs::metadata(dir.path().join("r")).unwrap());
        assert!(blocks * 512 >= 10_000, "blocks are allocated at creation");
        store(&*region, 9_000, b"here");
        region.sync(9_000..9_004).unwrap();
        region.sync(9_999..20_000).unwrap();
        drop(region);
        let again = dir.open_region("r").unwrap();
        assert_eq!(again.len(), 10_000);
        assert_eq!(&dir.read_range("r", 9_000..9_004).unwrap(), b"here");
        assert_eq!(dir.read_range("r", 9_998..10_500).unwrap(), [0, 0]);
        assert!(dir.create_region("r", 1).unwrap_err().is_exists());
    }

    #[test]
    fn a_region_that_cannot_fit_is_an_error_and_leaves_no_file() {
        let (_temp, dir) = dir();
        // More than any disk of today: ENOSPC or EFBIG, before anything is mapped.
        let error = dir.create_region("r", 1 << 50).unwrap_err();
        assert!(
            matches!(error, DirError::DiskFull { .. } | DirError::Io { .. }),
            "{error}"
        );
        assert!(!dir.exists("r").unwrap());
    }

    #[test]
    fn an_empty_region_is_damage_and_a_missing_one_is_not_found() {
        let (_temp, dir) = dir();
        dir.create_append("empty").unwrap();
        assert!(matches!(
            dir.open_region("empty"),
            Err(DirError::Damaged { .. })
        ));
        assert!(dir.open_region("none").unwrap_err().is_not_found());
    }

    #[test]
    fn an_append_file_grows_is_cut_and_reopens_at_its_end() {
        let (_temp, dir) = dir();
        let mut file = dir.create_append("log").unwrap();
        file.reserve(1 << 20).unwrap();
        file.append(b"hello ").unwrap();
        file.append(b"world").unwrap();
        assert_eq!(
            (file.len(), dir.read("log").unwrap()),
            (11, b"hello world".to_vec())
        );
        file.truncate(6).unwrap();
        file.append(b"you").unwrap();
        let syncer = file.syncer();
        drop(file);
        syncer.sync().unwrap();
        let mut file = dir.open_append("log").unwrap();
        assert_eq!(file.len(), 9);
        file.append(b"!").unwrap();
        assert_eq!(dir.read("log").unwrap(), b"hello you!");
    }

    #[test]
    fn a_small_file_is_replaced_as_a_whole_and_leftovers_are_swept() {
        let (_temp, dir) = dir();
        dir.write_atomic("m", b"one").unwrap();
        dir.write_atomic("m", b"two").unwrap();
        fs::write(dir.path().join("m.tmp"), b"half").unwrap();
        fs::create_dir(dir.path().join("d.tmp")).unwrap();
        assert_eq!(dir.read("m").unwrap(), b"two");
        assert_eq!(dir.list().unwrap(), ["m"]);
        assert!(dir.subdirs().unwrap().is_empty());
        dir.sweep().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn subdirectories_are_made_renamed_and_removed_with_all_they_hold() {
        let (_temp, dir) = dir();
        let sub = dir.subdir("one").unwrap();
        sub.subdir("inner")
            .unwrap()
            .write_atomic("f", b"x")
            .unwrap();
        dir.subdir("two").unwrap();
        assert_eq!(dir.subdirs().unwrap(), ["one", "two"]);
        assert!(dir.rename_subdir("one", "two").unwrap_err().is_exists());
        dir.rename_subdir("one", "three").unwrap();
        dir.remove_subdir("three").unwrap();
        assert_eq!(dir.subdirs().unwrap(), ["two"]);
        assert!(dir.remove_subdir("three").unwrap_err().is_not_found());
    }

    #[test]
    fn a_second_lock_is_refused_with_the_holder_until_the_first_is_dropped() {
        let (_temp, dir) = dir();
        let lock = dir.lock().unwrap();
        match dir.lock().unwrap_err() {
            DirError::Locked { holder_pid, .. } => assert_eq!(holder_pid, Some(std::process::id())),
            other => panic!("{other}"),
        }
        assert!(
            dir.list().unwrap().is_empty(),
            "the lock is not a file for others"
        );
        drop(lock);
        dir.lock().unwrap();
    }

    #[test]
    fn names_that_would_leave_the_directory_are_refused() {
        let (_temp, dir) = dir();
        let long = "x".repeat(300);
        for name in [
            "", ".", "..", "a/b", "/etc", "a\\b", "a\0", "a\n", "LOCK", "a.tmp", &long,
        ] {
            assert!(
                matches!(dir.read(name), Err(DirError::BadName { .. })),
                "{name:?}"
            );
            assert!(
                matches!(dir.subdir(name), Err(DirError::BadName { .. })),
                "{name:?}"
            );
        }
        dir.write_atomic("a name with spaces", b"").unwrap();
    }
}
