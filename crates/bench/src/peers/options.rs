//! What the command line asks for.

use std::error::Error;
use std::path::PathBuf;

use super::participant::Settings;

/// The options of `flatwater-bench peers`.
#[derive(Debug)]
pub(crate) struct Options {
    /// Folder of the sets.
    pub(super) data: PathBuf,
    pub(super) sets: Vec<String>,
    /// Interpreter that has the peers; without one flatwater runs alone.
    pub(super) python: Option<PathBuf>,
    pub(super) peers: Vec<String>,
    pub(super) rows_max: usize,
    pub(super) queries_max: usize,
    pub(super) repeats: usize,
    pub(super) parts: Parts,
    /// Search widths of the ladder.
    pub(super) ladder: Vec<usize>,
    pub(super) settings: Settings,
    /// Folder for truth and the peers' files.
    pub(super) cache: PathBuf,
    /// File for the figures.
    pub(super) out: Option<PathBuf>,
    pub(super) commit: String,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parts {
    Speed,
    Recall,
    All,
}

pub(crate) const USAGE: &str = "usage: flatwater-bench peers [OPTION VALUE]...

Compares the index with hnswlib and usearch. `cargo xtask bench peers` installs those and calls this.

--data FOLDER      folder of the sets (default: FLATWATER_DATA_DIR)
--sets LIST        default: wordnet-minilm-384,wordnet-wide-1024
--python PATH      interpreter that has the peers; without it the index runs alone
--peers LIST       default: hnswlib,usearch-i8
--rows N           only the first N rows of a set
--queries N        only the first N queries
--repeats N        builds and ladders of each side, interleaved (default 5)
--parts NAME       speed, recall or all (default)
--ladder LIST      search widths (default 10,16,24,32,48,64,96,128,192,256)
--threads N        of a build (default 2); a search takes one
--pass-seconds S   how long each width is searched (default 0.5)
--cache FOLDER     for exact answers and rows (default: a folder in the system's temporary one)
--out FILE         also writes the figures as JSON
--commit HASH      noted in the figures";

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self, Box<dyn Error>> {
        let mut options = Self {
            data: std::env::var_os("FLATWATER_DATA_DIR")
                .unwrap_or_default()
                .into(),
            sets: list("wordnet-minilm-384,wordnet-wide-1024"),
            python: None,
            peers: list("hnswlib,usearch-i8"),
            rows_max: usize::MAX,
            queries_max: usize::MAX,
            repeats: 5,
            parts: Parts::All,
            ladder: vec![10, 16, 24, 32, 48, 64, 96, 128, 192, 256],
            settings: Settings {
                m: 16,
                ef_construct: 100,
                threads: 2,
                k: 10,
                pass_seconds: 0.5,
            },
            cache: std::env::temp_dir().join("flatwater-bench-peers"),
            out: None,
            commit: String::from("unknown"),
        };
        for pair in words.chunks(2) {
            let [name, value] = pair else {
                return Err(format!("`{}` has no value\n\n{USAGE}", pair[0]).into());
            };
            options.set(name, value)?;
        }
        if options.data.as_os_str().is_empty() {
            return Err("where are the sets? Set FLATWATER_DATA_DIR or give --data".into());
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Box<dyn Error>> {
        match name {
            "--data" => self.data = value.into(),
            "--sets" => self.sets = list(value),
            "--python" => self.python = Some(value.into()),
            "--peers" => self.peers = list(value),
            "--rows" => self.rows_max = number(name, value)?,
            "--queries" => self.queries_max = number(name, value)?,
            "--repeats" => self.repeats = number(name, value)?,
            "--threads" => self.settings.threads = number(name, value)?,
            "--cache" => self.cache = value.into(),
            "--out" => self.out = Some(value.into()),
            "--commit" => self.commit = String::from(value),
            "--ladder" => {
                let widths = list(value);
                self.ladder = widths
                    .iter()
                    .map(|n| number(name, n))
                    .collect::<Result<_, _>>()?;
            }
            "--pass-seconds" => {
                self.settings.pass_seconds = value
                    .parse()
                    .map_err(|_| format!("{name} is `{value}`, not a number"))?;
            }
            "--parts" => {
                self.parts = match value {
                    "speed" => Parts::Speed,
                    "recall" => Parts::Recall,
                    "all" => Parts::All,
                    _ => {
                        return Err(
                            format!("--parts is `{value}`, not speed, recall or all").into()
                        );
                    }
                };
            }
            _ => return Err(format!("no option `{name}`\n\n{USAGE}").into()),
        }
        Ok(())
    }
}

fn list(value: &str) -> Vec<String> {
    let words = value.split(',').map(str::trim);
    words
        .filter(|word| !word.is_empty())
        .map(String::from)
        .collect()
}

fn number(name: &str, value: &str) -> Result<usize, Box<dyn Error>> {
    match value.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(format!("{name} is `{value}`, not a whole number from 1").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_faults_are_named() {
        let words = [
            "--data", "d", "--rows", "5000", "--ladder", "16, 32", "--parts", "speed",
        ];
        let options = Options::parse(&words).unwrap();
        assert_eq!((options.rows_max, options.repeats), (5000, 5));
        assert_eq!(options.ladder, [16, 32]);
        assert_eq!(options.parts, Parts::Speed);
        for (words, fault) in [
            (&["--rows", "0"][..], "--rows is `0`"),
            (&["--rows"][..], "`--rows` has no value"),
            (&["--parts", "some"][..], "--parts is `some`"),
            (&["--speed", "1"][..], "no option `--speed`"),
        ] {
            let text = Options::parse(words).unwrap_err().to_string();
            assert!(text.contains(fault), "{text}");
        }
    }
}
