//! A peer library as a participant: `crates/bench/peers/peer.py` in a process of its own.
//!
//! Rows and queries lie in files that the process reads before it is timed; commands and times go
//! through its standard input and output, a line each, found rows through a file.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use flatwater_index::Row;
use serde::Deserialize;

use super::case::{Case, metric_name};
use super::participant::{Participant, Searched, Settings};
use super::timing::Seconds;

/// What the process runs; part of this program, so that the two always fit.
const SCRIPT: &str = include_str!("../../peers/peer.py");

/// A running peer; it ends when this is dropped.
pub(super) struct Library {
    name: String,
    version: String,
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    found: PathBuf,
}

#[derive(Deserialize)]
struct Hello {
    version: String,
}

#[derive(Deserialize)]
struct Times {
    /// Wall and processor seconds of each pass.
    passes: Vec<[f64; 2]>,
}

impl Library {
    /// Starts the peer `name` on `case`; its files go into `folder`.
    pub(super) fn start(
        name: &str,
        python: &Path,
        case: &Case,
        settings: &Settings,
        folder: &Path,
    ) -> Result<Self, Box<dyn Error>> {
        let file = |what: &str| folder.join(what);
        write_floats(&file("rows.f32"), &case.rows)?;
        write_floats(&file("queries.f32"), &case.queries)?;
        let found = file(&format!("found-{name}.u32"));
        let numbers = [
            ("--dim", case.dim),
            ("--m", settings.m),
            ("--ef-construct", settings.ef_construct),
            ("--threads", settings.threads),
            ("--k", settings.k),
        ];
        let mut process = Command::new(python)
            .args(["-c", SCRIPT, name])
            .args(["--metric", metric_name(case.metric)])
            .arg("--rows")
            .arg(file("rows.f32"))
            .arg("--queries")
            .arg(file("queries.f32"))
            .arg("--found")
            .arg(&found)
            .args(["--pass-seconds", &settings.pass_seconds.to_string()])
            .args(numbers.map(|(option, n)| format!("{option}={n}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take().ok_or("the peer has no input")?;
        let output = process.stdout.take().ok_or("the peer has no output")?;
        let mut library = Self {
            name: String::from(name),
            version: String::new(),
            process,
            input,
            output: BufReader::new(output),
            found,
        };
        let hello: Hello = serde_json::from_str(&library.line()?)?;
        library.version = hello.version;
        Ok(library)
    }

    fn ask(&mut self, command: &str) -> Result<Vec<Seconds>, Box<dyn Error>> {
        writeln!(self.input, "{command}")?;
        self.input.flush()?;
        let times: Times = serde_json::from_str(&self.line()?)?;
        let seconds = |&[wall, cpu]: &[f64; 2]| Seconds { wall, cpu };
        Ok(times.passes.iter().map(seconds).collect())
    }

    fn line(&mut self) -> Result<String, Box<dyn Error>> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            let name = &self.name;
            return Err(format!("{name} ended early; what it said stands above").into());
        }
        Ok(line)
    }
}

impl Participant for Library {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn build(&mut self) -> Result<Seconds, Box<dyn Error>> {
        Ok(Seconds::fastest(&self.ask("build")?))
    }

    fn search(&mut self, ef: usize) -> Result<Searched, Box<dyn Error>> {
        let times = self.ask(&format!("search {ef}"))?;
        let bytes = fs::read(&self.found)?;
        let rows = bytes.as_chunks::<4>().0.iter();
        Ok(Searched {
            seconds: Seconds::fastest(&times),
            found: rows.map(|b| Row::from_le_bytes(*b)).collect(),
        })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // It may have ended by itself, and then there is nothing to do.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn write_floats(path: &Path, floats: &[f32]) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::with_capacity(1 << 20, fs::File::create(path)?);
    for x in floats {
        file.write_all(&x.to_le_bytes())?;
    }
    file.flush()
}
