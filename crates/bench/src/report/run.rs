//! A run: a folder that has everything.
//!
//! | file | what is in it |
//! |---|---|
//! | `run.json` | all figures, with settings, machine, versions, commit and seed |
//! | `series.json` | what went on over time, one entry for each trial of `run.json` |
//! | `report.html` | the charts, in one page that needs no network |
//! | `NAME.hlog` | latencies of a trial, as an HDR histogram log |
//!
//! It is written again after each trial: what is measured stays, whatever comes next.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{histogram_log, html, machine};
use crate::dataset::wire_name;
use crate::interrupt;
use crate::measure::load;
use crate::options::Given;
use crate::study::setup::Setup;
use crate::study::trial::Measured;

/// Version of `run.json`; it changes when a reader of the old ones would misread the new.
pub(crate) const FORMAT: u64 = 1;

/// A run that is being written.
#[derive(Debug)]
pub(crate) struct Run {
    folder: PathBuf,
    json: Value,
    series: Vec<Value>,
}

impl Run {
    /// Makes the folder.
    pub(crate) fn begin(study: &str, given: &Given, setup: &Setup) -> Result<Self, Box<dyn Error>> {
        let started = machine::now();
        let folder = match given.optional("--out") {
            Some(folder) => PathBuf::from(folder),
            None => free_folder(&format!("runs/{}-{study}", &started[..10])),
        };
        let data = &setup.data;
        let json = json!({
            "format": FORMAT,
            "study": study,
            "started": started,
            "commit": given.text("--commit"),
            "seed": setup.seed,
            "settings": setup.given,
            "machine": machine::facts(),
            "target": {
                "kind": setup.target.kind(),
                "place": setup.target.place(),
                "version": setup.target.version()?,
                "process": setup.process,
            },
            "data": {
                "name": data.name,
                "rows": data.count(),
                "dim": data.dim(),
                "queries": data.query_count(),
                "metric": wire_name(data.metric),
            },
            "harness": {
                "version": env!("CARGO_PKG_VERSION"),
                "is_optimised": !cfg!(debug_assertions),
                "overhead_us": load::overhead().as_nanos() as f64 / 1e3,
            },
            "trials": [],
        });
        fs::create_dir_all(&folder)?;
        let run = Self {
            folder,
            json,
            series: Vec::new(),
        };
        run.write()?;
        Ok(run)
    }

    /// Adds a trial and writes what there is.
    pub(crate) fn add(&mut self, measured: &Measured) -> Result<(), Box<dyn Error>> {
        let mut trial = measured.json.clone();
        let series = trial
            .as_object_mut()
            .and_then(|trial| trial.remove("series"));
        let name = format!("{:02}-{}", self.series.len(), file_name(&trial));
        self.series.push(series.unwrap_or_default());
        if let Some(trials) = self.json["trials"].as_array_mut() {
            trials.push(trial);
        }
        let mut log = fs::File::create(self.folder.join(format!("{name}.hlog")))?;
        histogram_log::write(&mut log, measured.samples())?;
        self.write()
    }

    /// The last word.
    pub(crate) fn finish(&mut self) -> Result<(), Box<dyn Error>> {
        self.json["ended"] = json!(machine::now());
        self.json["interrupted"] = json!(interrupt::is_asked());
        self.write()
    }

    /// Everything but the series.
    pub(crate) fn json(&self) -> &Value {
        &self.json
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn write(&self) -> Result<(), Box<dyn Error>> {
        write_whole(
            &self.folder.join("run.json"),
            &serde_json::to_string_pretty(&self.json)?,
        )?;
        write_whole(
            &self.folder.join("series.json"),
            &serde_json::to_string(&self.series)?,
        )?;
        let page = html::page(&self.json, &self.series);
        write_whole(&self.folder.join("report.html"), &page)
    }
}

/// Replaces a file: it is never seen half written.
fn write_whole(path: &Path, text: &str) -> Result<(), Box<dyn Error>> {
    let new = path.with_extension("new");
    fs::write(&new, text)?;
    Ok(fs::rename(&new, path)?)
}

/// `base`, or with a number behind it if that is taken.
fn free_folder(base: &str) -> PathBuf {
    let numbered = (2..).map(|n| PathBuf::from(format!("{base}-{n}")));
    let mut names = std::iter::once(PathBuf::from(base)).chain(numbered);
    names
        .find(|name| !name.exists())
        .unwrap_or_else(|| PathBuf::from(base))
}

fn file_name(trial: &Value) -> String {
    let words = ["configuration", "loop"].map(|key| trial[key].as_str().unwrap_or_default());
    let name = words.join("-").to_lowercase();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    name.chars().filter(|&c| is_plain(c)).collect()
}

/// Reads `run.json` of a folder, or the file itself.
pub(crate) fn read(path: &Path) -> Result<Value, Box<dyn Error>> {
    let file = if path.is_dir() {
        path.join("run.json")
    } else {
        path.to_owned()
    };
    let at = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let bytes = fs::read(&file).map_err(|error| at(&error))?;
    let run: Value = serde_json::from_slice(&bytes).map_err(|error| at(&error))?;
    match run["format"].as_u64() {
        Some(FORMAT) => Ok(run),
        other => Err(at(&format!("format is {other:?}, this program reads {FORMAT}")).into()),
    }
}
