//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

/// Text of `--help`.
pub(crate) const HELP: &str = "\
Flatwater, a vector search engine that speaks Qdrant's API

Usage: flatwater [OPTIONS]
       flatwater verify [--storage <PATH>] [--config-path <PATH>]

  verify reads every file of the storage folder and the log, prints each damage
  with its file and place, and ends with 1 if there is one. It changes nothing.
  The server must not be running on that folder.

Options:
      --storage <PATH>       (verify) Read this folder instead of the configured
                             storage_path
      --config-path <PATH>   Read this file of options (yaml, toml or json) too,
                             after those in ./config
      --disable-telemetry    Accepted and without effect: nothing is ever reported
  -h, --help                 Print this text
  -V, --version              Print the version

Every option can be set in the environment: FLATWATER__SECTION__KEY,
e.g. FLATWATER__SERVICE__HTTP_PORT=7333; Qdrant's names, QDRANT__SECTION__KEY,
are read too. docs/config.md lists them all.";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Run the server.
    Serve(Arguments),
    /// Read a storage folder: this one, or the configured one.
    Verify {
        /// Folder, if one was named.
        storage: Option<PathBuf>,
        /// Options of the server.
        arguments: Arguments,
    },
    /// Print this and end.
    Print(String),
}

/// Arguments of the server.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// File of options.
    pub(crate) config_path: Option<PathBuf>,
}

/// Reads the arguments behind the program's name; the error is for the user.
pub(crate) fn parse(mut words: impl Iterator<Item = OsString>) -> Result<Command, ArgumentFault> {
    let mut arguments = Arguments::default();
    let (mut is_verify, mut storage) = (false, None);
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        match text.split_once('=').unwrap_or((&text, "")) {
            ("-h" | "--help", "") => return Ok(Command::Print(HELP.to_owned())),
            ("-V" | "--version", "") => return Ok(Command::Print(version())),
            ("--disable-telemetry", "") => {}
            ("verify", "") => is_verify = true,
            ("--storage", value) if is_verify => {
                storage = Some(match value {
                    "" => words
                        .next()
                        .ok_or(ArgumentFault::NoValue("--storage"))?
                        .into(),
                    path => PathBuf::from(path),
                });
            }
            ("--config-path", "") => {
                let path = words
                    .next()
                    .ok_or(ArgumentFault::NoValue("--config-path"))?;
                arguments.config_path = Some(PathBuf::from(path));
            }
            ("--config-path", path) => arguments.config_path = Some(PathBuf::from(path)),
            _ => return Err(ArgumentFault::Unknown(text)),
        }
    }
    Ok(if is_verify {
        Command::Verify { storage, arguments }
    } else {
        Command::Serve(arguments)
    })
}

/// A command line that cannot be followed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArgumentFault {
    /// Not one of ours.
    #[error("error: unknown argument `{0}`")]
    Unknown(String),
    /// It needs a value.
    #[error("error: `{0}` needs a value")]
    NoValue(&'static str),
}

/// Own version and the one that is spoken.
pub(crate) fn version() -> String {
    let (own, spoken) = (env!("CARGO_PKG_VERSION"), flatwater_api::QDRANT_VERSION);
    format!("flatwater {own} (API of Qdrant {spoken})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Command, ArgumentFault> {
        parse(words.iter().map(OsString::from))
    }

    #[test]
    fn config_path_is_taken_in_both_spellings() {
        let expected = Command::Serve(Arguments {
            config_path: Some(PathBuf::from("a/b.yaml")),
        });
        assert_eq!(parsed(&["--config-path", "a/b.yaml"]), Ok(expected));
        let expected = Command::Serve(Arguments {
            config_path: Some(PathBuf::from("x")),
        });
        assert_eq!(
            parsed(&["--disable-telemetry", "--config-path=x"]),
            Ok(expected)
        );
    }

    #[test]
    fn unknown_and_incomplete_arguments_are_named() {
        assert_eq!(
            parsed(&["--nope"]),
            Err(ArgumentFault::Unknown("--nope".to_owned()))
        );
        assert_eq!(
            parsed(&["--config-path"]),
            Err(ArgumentFault::NoValue("--config-path"))
        );
    }

    #[test]
    fn version_names_both_versions() {
        let Ok(Command::Print(text)) = parsed(&["--version"]) else {
            panic!("nothing to print")
        };
        assert!(
            text.contains("1.19.0") && text.contains(env!("CARGO_PKG_VERSION")),
            "{text}"
        );
    }
}
