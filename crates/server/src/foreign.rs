//! A storage folder of Qdrant's is refused untouched: its files have another format, and a server
//! that wrote its own beside them would leave a folder that neither of the two can open.

use std::path::{Path, PathBuf};

/// A file that only Qdrant writes, if there is one under `storage`: the state of its consensus, or
/// the segments of a shard, whose folder has a bare number for a name there (`collections/c/0`; ours
/// never has).
pub(crate) fn qdrant_file(storage: &Path) -> Option<PathBuf> {
    let raft_state = storage.join("raft_state.json");
    if raft_state.exists() {
        return Some(raft_state);
    }
    let collections = folders(&storage.join("collections"));
    let shards = collections
        .iter()
        .flat_map(|collection| folders(collection));
    shards
        .filter(|shard| is_number(shard))
        .map(|shard| shard.join("segments"))
        .find(|segments| segments.is_dir())
}

/// Whether the last part of the path is a number.
fn is_number(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()))
}

/// Folders inside `path`; none if it cannot be read.
fn folders(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return Vec::new();
    };
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qdrants_folders_are_recognised_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        assert_eq!(qdrant_file(&at("missing")), None);
        assert_eq!(qdrant_file(folder.path()), None);
        std::fs::create_dir_all(at("collections/c/0")).unwrap();
        std::fs::create_dir_all(at("collections/c/shard0/segments")).unwrap();
        assert_eq!(qdrant_file(folder.path()), None);
        std::fs::create_dir_all(at("collections/c/0/segments")).unwrap();
        assert_eq!(
            qdrant_file(folder.path()),
            Some(at("collections/c/0/segments"))
        );
        std::fs::write(at("raft_state.json"), "{}").unwrap();
        assert_eq!(qdrant_file(folder.path()), Some(at("raft_state.json")));
    }
}
