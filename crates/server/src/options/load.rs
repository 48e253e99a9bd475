//! Reading options: files, then environment, over the built-in defaults.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Options;
use super::defs::{Kind, OPTIONS, OptionDef};
use super::unserved::{Consequence, consequence};

/// First part of the names of our variables; `__` stands between the parts.
const ENV_PREFIX: &str = "FLATWATER__";

/// First part of the names of Qdrant's variables, which are read before ours.
const QDRANT_ENV_PREFIX: &str = "QDRANT__";

/// Folder in which files of options are looked for.
const FOLDER: &str = "config";

/// Variable that names the second of these files, and its name if it is not set, as in Qdrant.
const RUN_MODE: &str = "RUN_MODE";
const RUN_MODE_DEFAULT: &str = "development";

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
         would leave the server less protected than it looks; remove it and protect the port by \
         other means"
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

/// Reads the files of ./config that are there (`config`, then the one that `RUN_MODE` names, then
/// `local`), the file at `path`, and the environment; later wins.
///
/// # Errors
/// A named file that is missing, a file that is not what its extension says, invalid values,
/// security settings that are not served.
pub fn load(path: Option<&Path>) -> Result<Loaded, OptionsError> {
    let run_mode = std::env::var(RUN_MODE).unwrap_or_else(|_| RUN_MODE_DEFAULT.to_owned());
    let names = ["config", run_mode.as_str(), "local"];
    let mut files = Vec::new();
    for path in names
        .into_iter()
        .filter_map(|name| find_file(Path::new(FOLDER), name))
        .chain(path.map(Path::to_path_buf))
    {
        files.push((path.display().to_string(), read_file(&path)?));
    }
    // Variables whose names or values are not text are none of ours.
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    from_layers(files, env)
}

/// The file of this name with the first of the extensions that is there.
fn find_file(folder: &Path, name: &str) -> Option<PathBuf> {
    FILE_EXTENSIONS
        .iter()
        .map(|extension| folder.join(format!("{name}.{extension}")))
        .find(|candidate| candidate.is_file())
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

/// Lays files (their names and trees) and variables over the built-in defaults.
///
/// # Errors
/// As [`load`].
pub fn from_layers(
    files: Vec<(String, Value)>,
    env: impl Iterator<Item = (String, String)>,
) -> Result<Loaded, OptionsError> {
    let mut loaded = Loaded {
        options: Options::built_in(),
        warnings: Vec::new(),
    };
    for (name, tree) in files {
        let mut leaves = BTreeMap::new();
        flatten(&tree, String::new(), &mut leaves);
        for (key, value) in leaves {
            loaded.set(&name, &key, value.as_deref())?;
        }
    }
    let sorted: BTreeMap<String, String> = env.collect();
    for prefix in [QDRANT_ENV_PREFIX, ENV_PREFIX] {
        for (name, value) in &sorted {
            if let Some(path) = name.strip_prefix(prefix) {
                let key = path.to_lowercase().replace("__", ".");
                loaded.set(name, &key, Some(value))?;
            }
        }
    }
    Ok(loaded)
}

impl Loaded {
    /// Applies one value, `None` for a null of a file. An empty one counts as not given, unless it is
    /// a secret: who gives an empty key believes that there is one.
    fn set(&mut self, origin: &str, key: &str, value: Option<&str>) -> Result<(), OptionsError> {
        let text = value.unwrap_or(NULL);
        if let Some(def) = find(key) {
            return self.set_known(origin, def, value);
        }
        let verb = match consequence(key, text) {
            _ if text.is_empty() => return Ok(()),
            Some(Consequence::None) => return Ok(()),
            Some(Consequence::Stop) => {
                return Err(OptionsError::Security {
                    origin: origin.to_owned(),
                    key: key.to_owned(),
                });
            }
            Some(Consequence::Warn) => {
                format!("`{key}` is not served yet by this version of Flatwater")
            }
            None => format!("unknown option `{key}`"),
        };
        self.warnings
            .push(format!("{origin}: {verb}; it has no effect"));
        Ok(())
    }

    fn set_known(
        &mut self,
        origin: &str,
        def: &OptionDef,
        value: Option<&str>,
    ) -> Result<(), OptionsError> {
        let is_secret = def.kind == Kind::Secret;
        let text = value.unwrap_or(NULL);
        let setting = match value {
            None if is_secret => return Ok(()),
            Some("") if !is_secret => return Ok(()),
            // A null that a template left behind is no key.
            Some(NULL) if is_secret => None,
            _ => def.kind.parse(text),
        };
        match setting {
            Some(setting) => (def.set)(&mut self.options, setting),
            // In files of Qdrant's, null stands for "as it is".
            None if text == NULL && !is_secret => {}
            None => {
                let shown = if is_secret { "(not shown)" } else { text };
                return Err(OptionsError::Invalid {
                    origin: origin.to_owned(),
                    key: def.key.to_owned(),
                    value: shown.to_owned(),
                    range: def.kind.range(),
                });
            }
        }
        Ok(())
    }
}

/// A null as text.
const NULL: &str = "null";

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

/// Leaves of a tree by their dotted path, as text; `None` for null.
fn flatten(tree: &Value, path: String, leaves: &mut BTreeMap<String, Option<String>>) {
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
            leaves.insert(path, Some(text.clone()));
        }
        Value::Null => {
            leaves.insert(path, None);
        }
        other => {
            leaves.insert(path, Some(other.to_string()));
        }
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
