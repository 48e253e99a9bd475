//! The configuration of a collection on disk: `config.json`, replaced atomically.
//!
//! A collection's directory counts only while it holds that file: it is written last when a
//! collection is created and removed first when it is deleted.

use flatwater_segment::dir::Directory;
use serde::{Deserialize, Serialize};

use crate::config::collection::CollectionConfig;
use crate::error::{EngineError, Result};

const FILE: &str = "config.json";

/// Version of the file's shape.
const VERSION: u32 = 1;

/// What stands in the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectionFile {
    /// Version of the file's shape.
    pub version: u32,
    /// Name of the collection; its folder has the same name where that can be the name of a folder.
    pub name: String,
    /// Seed of the rotations of the codes, fixed for the life of the collection.
    pub rotation_seed: u64,
    /// Settings.
    pub config: CollectionConfig,
}

impl CollectionFile {
    /// A new collection's file.
    #[must_use]
    pub fn new(name: &str, config: CollectionConfig, rotation_seed: u64) -> Self {
        Self {
            version: VERSION,
            name: name.to_owned(),
            rotation_seed,
            config,
        }
    }

    /// Reads the file; `None` if the directory has none.
    ///
    /// # Errors
    /// `Corrupt` if it cannot be read as what it should be.
    pub fn read(dir: &dyn Directory) -> Result<Option<Self>> {
        if !dir.exists(FILE)? {
            return Ok(None);
        }
        let corrupt = |offset: usize, detail: String| EngineError::Corrupt {
            file: dir.path().join(FILE).display().to_string(),
            offset: offset as u64,
            detail,
        };
        let bytes = dir.read(FILE)?;
        let file: Self = serde_json::from_slice(&bytes)
            .map_err(|error| corrupt(error.column(), error.to_string()))?;
        if file.version != VERSION {
            let detail = format!(
                "version {} of the file; this program reads {VERSION}",
                file.version
            );
            return Err(corrupt(0, detail));
        }
        Ok(Some(file))
    }

    /// Writes the file, atomically and durably.
    ///
    /// # Errors
    /// `Io`, `DiskFull`.
    pub fn write(&self, dir: &dyn Directory) -> Result<()> {
        let bytes = serde_json::to_vec_pretty(self)
            .map_err(|error| EngineError::Bug(format!("configuration to JSON: {error}")))?;
        Ok(dir.write_atomic(FILE, &bytes)?)
    }

    /// Removes the file: the collection is deleted from here on, durably once the directory is synced.
    ///
    /// # Errors
    /// `Io`: nothing has changed.
    pub fn remove(dir: &dyn Directory) -> Result<()> {
        Ok(dir.remove(FILE)?)
    }
}
