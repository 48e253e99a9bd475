//! Reading a whole storage folder to see whether it is as it was written. Changes nothing.
//!
//! 1. Each collection's configuration and manifest are read.
//! 2. Every segment that the manifest lists is read, every byte that counts.
//! 3. The log is read as an opening would, and each record decoded.

use std::path::Path;
use std::sync::Arc;

use flatwater_segment::dir::{Directory, FsDirectory};
use flatwater_segment::durable;

use crate::collection::files::CollectionFile;
use crate::collection::spec::segment_spec;
use crate::error::{EngineError, Result};
use crate::shard::check_shard_log;
use crate::shard::manifest::Manifest;

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Collections.
    pub collections: usize,
    /// Segments.
    pub segments: usize,
    /// Log records that no segment holds yet.
    pub log_records: u64,
    /// Damages that were found.
    pub damages: usize,
}

/// Reads the storage folder at `path` and calls `visit` with each damage: file, offset, what is wrong.
///
/// # Errors
/// `Io` if there is no such folder or it cannot be read; an error saying so if a process has it open.
///
/// Blocks: for a read of everything.
pub fn verify(path: &Path, visit: &mut dyn FnMut(&EngineError)) -> Result<Verified> {
    if !path.is_dir() {
        return Err(EngineError::Io {
            operation: "opening the storage folder",
            path: path.to_path_buf(),
            source: std::io::ErrorKind::NotFound.into(),
        });
    }
    let root: Arc<dyn Directory> = Arc::new(FsDirectory::open(path)?);
    let _lock = root.lock()?;
    let mut verified = Verified::default();
    let mut visit = |error: EngineError| {
        verified.damages += 1;
        visit(&error);
    };
    if !root.exists("collections")? {
        return Ok(verified);
    }
    let dir = root.subdir("collections")?;
    for folder in dir.subdirs()? {
        let collection = dir.subdir(&folder)?;
        match CollectionFile::read(collection.as_ref()) {
            Ok(Some(file)) => {
                verified.collections += 1;
                let (segments, records) = verify_collection(&collection, &file, &mut visit)?;
                verified.segments += segments;
                verified.log_records += records;
            }
            // A leftover of a creation or deletion that did not finish.
            Ok(None) => {}
            Err(error) => visit(error),
        }
    }
    Ok(verified)
}

/// Segments and log records of a collection.
fn verify_collection(
    dir: &Arc<dyn Directory>,
    file: &CollectionFile,
    visit: &mut dyn FnMut(EngineError),
) -> Result<(usize, u64)> {
    if !dir.exists("shard0")? {
        return Ok((0, 0));
    }
    let shard = dir.subdir("shard0")?;
    let manifest = match Manifest::read(shard.as_ref()) {
        Ok(manifest) => manifest.unwrap_or_default(),
        Err(error) => {
            visit(error);
            return Ok((0, 0));
        }
    };
    let spec = Arc::new(segment_spec(&file.config, file.rotation_seed));
    let segments = shard.path().join("segments");
    for id in &manifest.segments {
        let name = id.to_string();
        let is_there = shard.exists("segments")? && shard.subdir("segments")?.exists(&name)?;
        if !is_there {
            visit(EngineError::Corrupt {
                file: segments.join(&name).display().to_string(),
                offset: 0,
                detail: "the manifest lists this segment, and it is not there".to_owned(),
            });
            continue;
        }
        let segment = shard.subdir("segments")?.subdir(&name)?;
        durable::verify(&segment, *id, &spec, &mut |error| visit(error.into()));
    }
    let records = match check_shard_log(&shard, &manifest) {
        Ok(records) => records,
        Err(error) => {
            visit(error);
            0
        }
    };
    Ok((manifest.segments.len(), records))
}
