//! Reading options: file, then environment, over the built-in defaults.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Options;
use super::defs::{OPTIONS, OptionDef};
use super::unserved::{Consequence, consequence};

/// First part of the names of our variables; `__` stands between the parts.
const ENV_PREFIX: &str = "FLATWATER__";

/// First part of the names of Qdrant's variables, which are not read.
const QDRANT_ENV_PREFIX: &str = "QDRANT__";

/// Where a file of options is looked for, without its extension.
const FILE_DEFAULT: &str = "config/config";

/// Extensions of files of options, in the order they are tried.
const FILE_EXTENSIONS: [&str; 4] = ["yaml", "yml", "toml", "json"];

/// Options that stop the start.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// The file cannot be read.
    #[error("the file of options {path} cannot be read: {detail}")]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        detail: String,
    },
    /// A value that is not of its kind.
    #[error("{origin}: invalid value `{value}` of `{key}`, expected: {range}")]
    Invalid {
        /// File or variable.
        origin: String,
        /// Option.
        key: String,
        /// What was given.
        value: String,
        /// What is allowed.
        range: String,
    },
    /// A security setting that would not protect anything.
    #[error(
        "{origin}: `{key}` is not served yet by this version of Flatwater, and starting without it \
         would leave the server open; remove it and protect the port by other means"
    )]
    Security {
        /// File or variable.
        origin: String,
        /// Option.
        key: String,
    },
}

/// Options and what should be said about them once the log is open.
#[derive(Debug)]
pub struct Loaded {
    /// The options.
    pub options: Options,
    /// One line for each key that was accepted without effect.
    pub warnings: Vec<String>,
}

/// Reads the file at `path` (or the first of ./config/config.* that is there) and the environment.
///
/// # Errors
/// A named file that is missing, a file that is not what its extension says, invalid values,
/// security settings that are not served.
pub fn load(path: Option<&Path>) -> Result<Loaded, OptionsError> {
    let found = || {
        let candidates = FILE_EXTENSIONS
            .iter()
            .map(|ext| PathBuf::from(format!("{FILE_DEFAULT}.{ext}")));
        candidates.into_iter().find(|candidate| candidate.is_file())
    };
    let file = match path.map(Path::to_path_buf).or_else(found) {
        None => None,
        Some(path) => Some((path.display().to_string(), read_file(&path)?)),
    };
    // Variables whose names or values are not text are none of ours.
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    from_layers(file, env)
}

fn read_file(path: &Path) -> Result<Value, OptionsError> {
    let fault = |detail: String| OptionsError::File {
        path: path.to_path_buf(),
        detail,
    };
    let source = config::File::from(path).required(true);
    let built = config::Config::builder().add_source(source).build();
    let tree = built.map_err(|error| fault(error.to_string()))?;
    tree.try_deserialize()
        .map_err(|error| fault(error.to_string()))
}

/// Lays a file (its name and tree) and variables over the built-in defaults.
///
/// # Errors
/// As [`load`].
pub fn from_layers(
    file: Option<(String, Value)>,
    env: impl Iterator<Item = (String, String)>,
) -> Result<Loaded, OptionsError> {
    let mut loaded = Loaded {
        options: Options::built_in(),
        warnings: Vec::new(),
    };
    if let Some((name, tree)) = file {
        let mut leaves = BTreeMap::new();
        flatten(&tree, String::new(), &mut leaves);
        for (key, value) in leaves {
            loaded.set(&name, &key, &value)?;
        }
    }
    let sorted: BTreeMap<String, String> = env.collect();
    for (name, value) in sorted {
        if let Some(path) = name.strip_prefix(ENV_PREFIX) {
            loaded.set(&name, &path.to_lowercase().replace("__", "."), &value)?;
        } else if let Some(path) = name.strip_prefix(QDRANT_ENV_PREFIX) {
            loaded.qdrant_variable(&name, path, &value)?;
        }
    }
    Ok(loaded)
}

impl Loaded {
    /// Applies one value; an empty one counts as not given.
    fn set(&mut self, origin: &str, key: &str, value: &str) -> Result<(), OptionsError> {
        if value.is_empty() {
            return Ok(());
        }
        if let Some(def) = find(key) {
            // In files of Qdrant's, null stands for "as it is".
            let setting = def.kind.parse(value);
            let Some(setting) = setting else {
                if value == "null" {
                    return Ok(());
                }
                return Err(OptionsError::Invalid {
                    origin: origin.to_owned(),
                    key: def.key.to_owned(),
                    value: value.to_owned(),
                    range: def.kind.range(),
                });
            };
            (def.set)(&mut self.options, setting);
            return Ok(());
        }
        let is_off = matches!(value, "null" | "false");
        match consequence(key) {
            Some(_) if is_off => {}
            Some(Consequence::Stop) => {
                return Err(OptionsError::Security {
                    origin: origin.to_owned(),
                    key: key.to_owned(),
                });
            }
            Some(Consequence::Warn) => self.warnings.push(format!(
                "{origin}: `{key}` is not served yet by this version of Flatwater; it has no effect"
            )),
            None => self.warnings.push(format!(
                "{origin}: unknown option `{key}`; it has no effect"
            )),
        }
        Ok(())
    }

    /// A variable meant for Qdrant: said aloud, and a security setting stops the start.
    fn qdrant_variable(&mut self, name: &str, path: &str, value: &str) -> Result<(), OptionsError> {
        let key = path.to_lowercase().replace("__", ".");
        if consequence(&key) == Some(Consequence::Stop) {
            return self.set(name, &key, value);
        }
        self.warnings.push(format!(
            "{name} is not read; the name here is {ENV_PREFIX}{path}"
        ));
        Ok(())
    }
}

/// The option of this name. Qdrant takes sizes with and without `_kb`.
fn find(key: &str) -> Option<&'static OptionDef> {
    let named = |def: &&OptionDef| {
        def.key == key
            || def
                .key
                .strip_suffix("_kb")
                .is_some_and(|short| short == key)
    };
    OPTIONS.iter().find(named)
}

/// Leaves of a tree by their dotted path, as text.
fn flatten(tree: &Value, path: String, leaves: &mut BTreeMap<String, String>) {
    match tree {
        Value::Object(map) => {
            for (key, value) in map {
                let inner = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                flatten(value, inner, leaves);
            }
        }
        Value::String(text) => {
            leaves.insert(path, text.clone());
        }
        other => {
            leaves.insert(path, other.to_string());
        }
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
