//! Where things are: the root of the workspace, the target folder, the files of a kind.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders that hold nothing of ours: build output, other people's code, data written at run time.
const SKIPPED: [&str; 6] = [
    "target",
    ".git",
    ".venv",
    "node_modules",
    "storage",
    "__pycache__",
];

/// The workspace that this command was built in.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    /// Folder of the root `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// Build output; `CARGO_TARGET_DIR` or `target`.
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Finds the workspace. Cargo says at run time where the manifest of `xtask` is; the value of
    /// compile time would be wrong if several checkouts shared one target folder.
    pub(crate) fn find() -> Self {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .unwrap_or_else(|| OsString::from(env!("CARGO_MANIFEST_DIR")));
        let root = Path::new(&manifest)
            .parent()
            .unwrap_or(Path::new("."))
            .to_path_buf();
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
            || root.join("target"),
            |folder| {
                if Path::new(&folder).is_absolute() {
                    folder.into()
                } else {
                    root.join(folder)
                }
            },
        );
        Self { root, target }
    }

    /// `path` as a user would write it, from the root.
    pub(crate) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root)
            .unwrap_or(path)
            .display()
            .to_string()
    }

    /// Folders of all packages, those under `crates` and `xtask`, sorted.
    pub(crate) fn packages(&self) -> io::Result<Vec<PathBuf>> {
        let mut packages = vec![self.root.join("xtask")];
        for entry in fs::read_dir(self.root.join("crates"))? {
            let folder = entry?.path();
            if folder.join("Cargo.toml").is_file() {
                packages.push(folder);
            }
        }
        packages.sort();
        Ok(packages)
    }

    /// All files below the root that end in one of `extensions`, sorted; build output left out.
    pub(crate) fn files(&self, extensions: &[&str]) -> io::Result<Vec<PathBuf>> {
        files_below(&self.root, extensions)
    }
}

/// All files below `folder` that end in one of `extensions`, sorted; build output left out.
pub(crate) fn files_below(folder: &Path, extensions: &[&str]) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            if entry.file_type()?.is_dir() {
                if !SKIPPED.iter().any(|skipped| name == *skipped) {
                    open.push(path);
                }
            } else if path
                .extension()
                .is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
