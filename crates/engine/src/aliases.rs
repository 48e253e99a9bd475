//! Other names of collections: one small file, replaced atomically.

use std::collections::BTreeMap;

use flatwater_segment::dir::Directory;
use serde::{Deserialize, Serialize};

use crate::error::{EngineError, Result};

const FILE: &str = "aliases.json";

/// Version of the file's shape.
const VERSION: u32 = 1;

/// Collections by alias.
pub type Aliases = BTreeMap<String, String>;

/// One change of the aliases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AliasAction {
    /// Let `alias` mean `collection`, whatever it meant before.
    Create {
        /// Name of the collection.
        collection: String,
        /// The alias.
        alias: String,
    },
    /// Forget `alias`.
    Delete {
        /// The alias.
        alias: String,
    },
    /// Give an alias another name.
    Rename {
        /// The name it has.
        old: String,
        /// The name it gets.
        new: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct AliasFile {
    version: u32,
    aliases: Aliases,
}

/// Reads the aliases; none if there is no file.
///
/// # Errors
/// `Corrupt` if the file cannot be read as what it should be.
pub(crate) fn read(dir: &dyn Directory) -> Result<Aliases> {
    if !dir.exists(FILE)? {
        return Ok(Aliases::new());
    }
    let corrupt = |offset: usize, detail: String| EngineError::Corrupt {
        file: dir.path().join(FILE).display().to_string(),
        offset: offset as u64,
        detail,
    };
    let file: AliasFile = serde_json::from_slice(&dir.read(FILE)?)
        .map_err(|error| corrupt(error.column(), error.to_string()))?;
    if file.version != VERSION {
        let detail = format!("version {}; this program reads {VERSION}", file.version);
        return Err(corrupt(0, detail));
    }
    Ok(file.aliases)
}

/// Replaces the file, durably.
///
/// # Errors
/// `Io`, `DiskFull`: the file before stands.
pub(crate) fn write(dir: &dyn Directory, aliases: &Aliases) -> Result<()> {
    let file = AliasFile {
        version: VERSION,
        aliases: aliases.clone(),
    };
    let bytes = serde_json::to_vec_pretty(&file)
        .map_err(|error| EngineError::Bug(format!("aliases to JSON: {error}")))?;
    Ok(dir.write_atomic(FILE, &bytes)?)
}

/// The aliases after `actions`, in order; all of them or none.
///
/// # Errors
/// `CollectionNotFound` for a target or an alias that is not there, `CollectionExists` for an alias that
/// is the name of a collection.
pub(crate) fn apply(
    aliases: &Aliases,
    actions: &[AliasAction],
    is_collection: impl Fn(&str) -> bool,
) -> Result<Aliases> {
    let mut aliases = aliases.clone();
    let refuse_taken = |alias: &str| {
        if is_collection(alias) {
            return Err(EngineError::CollectionExists(alias.to_owned()));
        }
        Ok(())
    };
    let missing = |alias: &str| EngineError::CollectionNotFound(alias.to_owned());
    for action in actions {
        match action {
            AliasAction::Create { collection, alias } => {
                if !is_collection(collection) {
                    return Err(missing(collection));
                }
                refuse_taken(alias)?;
                aliases.insert(alias.clone(), collection.clone());
            }
            AliasAction::Delete { alias } => {
                // Qdrant answers `true` whether there was one or not.
                aliases.remove(alias);
            }
            AliasAction::Rename { old, new } => {
                refuse_taken(new)?;
                let collection = aliases.remove(old).ok_or_else(|| missing(old))?;
                aliases.insert(new.clone(), collection);
            }
        }
    }
    Ok(aliases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatwater_segment::dir::MemDirectory;

    fn create(collection: &str, alias: &str) -> AliasAction {
        AliasAction::Create {
            collection: collection.to_owned(),
            alias: alias.to_owned(),
        }
    }

    #[test]
    fn actions_apply_in_order_or_not_at_all() {
        let is_collection = |name: &str| name == "c" || name == "d";
        let apply =
            |aliases: &Aliases, actions: &[AliasAction]| apply(aliases, actions, is_collection);
        let rename = |old: &str, new: &str| AliasAction::Rename {
            old: old.to_owned(),
            new: new.to_owned(),
        };
        let swap = [create("c", "now"), create("d", "next"), create("d", "now")];
        let aliases = apply(&Aliases::new(), &swap).unwrap();
        assert_eq!(
            (aliases["now"].as_str(), aliases["next"].as_str()),
            ("d", "d")
        );
        let aliases = apply(&aliases, &[rename("now", "then")]).unwrap();
        assert_eq!(aliases.keys().collect::<Vec<_>>(), ["next", "then"]);
        let delete = AliasAction::Delete {
            alias: "then".to_owned(),
        };
        assert_eq!(apply(&aliases, &[delete.clone(), delete]).unwrap().len(), 1);
        assert!(matches!(
            apply(&aliases, &[create("e", "x")]),
            Err(EngineError::CollectionNotFound(name)) if name == "e"
        ));
        assert!(matches!(
            apply(&aliases, &[create("c", "d")]),
            Err(EngineError::CollectionExists(name)) if name == "d"
        ));
        assert!(apply(&aliases, &[rename("none", "x")]).is_err());
    }

    #[test]
    fn the_file_reads_back_and_damage_is_reported() {
        let dir = MemDirectory::new();
        assert_eq!(read(&dir).unwrap(), Aliases::new());
        let aliases = Aliases::from([("a".to_owned(), "c".to_owned())]);
        write(&dir, &aliases).unwrap();
        assert_eq!(read(&dir).unwrap(), aliases);
        dir.write_atomic(FILE, b"{").unwrap();
        assert!(matches!(read(&dir), Err(EngineError::Corrupt { .. })));
    }
}
