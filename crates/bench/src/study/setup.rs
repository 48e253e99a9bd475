//! What every study needs: a target, data, and where the outcome goes.

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use flatwater_index::Metric;
use serde_json::{Value, json};

use crate::dataset::truth::{self, Answers, Question};
use crate::dataset::{Dataset, Source, wire_name};
use crate::options::{Flag, Given, flag};
use crate::progress::Progress;
use crate::target::{Embedded, Grpc, Place, Rest, Subject, Target, Verb};

/// Options that every study has.
#[rustfmt::skip]
pub(crate) const FLAGS: &[Flag] = &[
    flag("--target", "WHERE", "embedded", "embedded, http://HOST:6333 or grpc://HOST:6334"),
    flag("--rest", "URL", "", "with grpc: the same server's REST (default: the host, port 6333)"),
    flag("--api-key", "KEY", "", "sent with every call"),
    flag("--pid", "N", "", "process of the server (default: who listens on the port, if it is here)"),
    flag("--storage", "FOLDER", "", "with embedded: where it keeps its files (default: a temporary folder)"),
    flag("--timeout-s", "X", "60", "a call without an answer is given up after so long"),
    flag("--data", "WHAT", "", "a folder as tests/data/wordnet-minilm-384, a file, or generated:rows=N,dim=N[,clusters=N][,drift=X]"),
    flag("--queries-file", "FILE", "", "queries (default: those of the folder, else rows are held out)"),
    flag("--metric", "NAME", "cosine", "cosine, dot, euclid or manhattan"),
    flag("--rows", "N", "all", "load only the first so many; 20k and 1M are numbers"),
    flag("--queries", "N", "1000", "different queries"),
    flag("--seed", "N", "1", "of generated data and of everything that is drawn"),
    flag("--collection", "NAME", "flatwater-bench", "is deleted, made and deleted again"),
    flag("--vector", "NAME", "", "name of the vector (the published study: dense)"),
    flag("--batch", "N", "500", "points of one write of the upload"),
    flag("--k", "N", "10", "results of a search"),
    flag("--ef", "N", "", "beam of a search (default: the server's)"),
    flag("--poll-ms", "N", "500", "from one look at the optimizers to the next (published: 2000)"),
    flag("--server-cores", "N", "", "cores of the server (default: of this machine)"),
    flag("--repeat", "N", "1", "runs of each configuration, one after another in turn"),
    flag("--cache", "FOLDER", "", "keeps exact answers from run to run"),
    flag("--out", "FOLDER", "", "where the run goes (default: runs/DATE-STUDY)"),
    flag("--commit", "ID", "", "of what is measured, for the report"),
    flag("--progress", "yes|no", "yes", "tell on stderr how far it is"),
];

/// An opened target with data for it.
pub(crate) struct Setup {
    pub(crate) target: Box<dyn Target>,
    pub(crate) process: Option<u32>,
    pub(crate) subject: Subject,
    pub(crate) data: Dataset,
    pub(crate) batch: usize,
    pub(crate) k: usize,
    pub(crate) ef: Option<usize>,
    pub(crate) seed: u64,
    pub(crate) poll: Duration,
    pub(crate) server_cores: usize,
    pub(crate) repeats: usize,
    pub(crate) is_silent: bool,
    pub(crate) truths: Truths,
    pub(crate) given: Value,
}

impl Setup {
    /// Opens what the options name.
    pub(crate) fn open(given: &Given) -> Result<Self, Box<dyn Error>> {
        if given.text("--data").is_empty() {
            return Err("--data is needed: a folder, a file or generated:rows=N,dim=N".into());
        }
        let at_least_1 = |name: &str| match given.count(name)? {
            0 => Err(Box::<dyn Error>::from(format!("{name} is 0, at least 1"))),
            n => Ok(n),
        };
        let optional = |name: &str| given.optional(name).map(|_| at_least_1(name)).transpose();
        let seed = given.count("--seed")? as u64;
        let data = Dataset::open(&Source {
            data: given.text("--data").to_owned(),
            queries: given.optional("--queries-file").map(str::to_owned),
            metric: metric(given.text("--metric"))?,
            rows_max: at_least_1("--rows")?,
            queries_max: at_least_1("--queries")?,
            seed,
        })?;
        let target = target_at(given, given.text("--target"))?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            process: match optional("--pid")? {
                Some(id) => Some(u32::try_from(id)?),
                None => target.process(),
            },
            target,
            subject: Subject {
                collection: given.text("--collection").to_owned(),
                vector: given.text("--vector").to_owned(),
            },
            data,
            batch: at_least_1("--batch")?,
            k: at_least_1("--k")?,
            ef: optional("--ef")?,
            seed,
            poll: Duration::from_millis(at_least_1("--poll-ms")? as u64),
            server_cores: optional("--server-cores")?.unwrap_or(cores),
            repeats: at_least_1("--repeat")?,
            is_silent: !given.is("--progress")?,
            truths: Truths {
                cache: given.optional("--cache").map(PathBuf::from),
                known: HashMap::new(),
            },
            given: given.json(),
        })
    }

    /// Path of the collection, with `rest` behind it.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/collections/{}{rest}", self.subject.collection)
    }

    /// Deletes the collection and makes it anew with these settings.
    pub(crate) fn create(&self, settings: &Value) -> Result<(), crate::target::Failure> {
        self.drop_collection();
        let vector = json!({ "size": self.data.dim(), "distance": wire_name(self.data.metric) });
        let mut body = settings.clone();
        body["vectors"] = match self.subject.vector.as_str() {
            "" => vector,
            name => json!({ name: vector }),
        };
        self.target.manage(Verb::Put, &self.path(""), Some(&body))?;
        Ok(())
    }

    /// Deletes the collection if it is there.
    pub(crate) fn drop_collection(&self) {
        // One that is not there is what was wanted; another fault shows when it is made anew.
        drop(self.target.manage(Verb::Delete, &self.path(""), None));
    }

    /// Progress of so many trials.
    pub(crate) fn progress(&self, trials: usize) -> Progress {
        Progress::new(trials, self.is_silent)
    }
}

/// Opens the target at `where_`: `embedded`, `http://...` or `grpc://...`.
pub(crate) fn target_at(given: &Given, where_: &str) -> Result<Box<dyn Target>, Box<dyn Error>> {
    let timeout = Duration::from_secs_f64(given.real("--timeout-s")?.clamp(0.001, 1e6));
    let api_key = given.optional("--api-key").map(str::to_owned);
    if where_ == "embedded" {
        let storage = given.optional("--storage").map(PathBuf::from);
        return Ok(Box::new(Embedded::open(storage, timeout)?));
    }
    let rest = |url: &str| -> Result<Rest, Box<dyn Error>> {
        Ok(Rest {
            place: Place::parse(url, 6333)?,
            api_key: api_key.clone(),
            timeout,
        })
    };
    let Some(grpc) = where_.strip_prefix("grpc://") else {
        return Ok(Box::new(rest(where_)?));
    };
    let place = Place::parse(grpc, 6334)?;
    let rest = match given.optional("--rest") {
        Some(url) => rest(url)?,
        None => rest(&place.host)?,
    };
    Ok(Box::new(Grpc { place, rest }))
}

fn metric(name: &str) -> Result<Metric, String> {
    match name {
        "cosine" => Ok(Metric::Cosine),
        "dot" => Ok(Metric::Dot),
        "euclid" => Ok(Metric::Euclid),
        "manhattan" => Ok(Metric::Manhattan),
        other => Err(format!(
            "--metric is `{other}`, not cosine, dot, euclid or manhattan"
        )),
    }
}

/// Exact answers that were asked for before.
#[derive(Debug, Default)]
pub(crate) struct Truths {
    cache: Option<PathBuf>,
    known: HashMap<String, Vec<Answers>>,
}

impl Truths {
    /// Answers of all cuts; computed once for each label and list of cuts.
    pub(crate) fn of(
        &mut self,
        data: &Dataset,
        question: &Question<'_>,
    ) -> Result<&[Answers], Box<dyn Error>> {
        let key = format!(
            "{} {:?} {}",
            question.label, question.cuts, question.queries
        );
        if !self.known.contains_key(&key) {
            let answers = truth::of(data, question, self.cache.as_deref())?;
            self.known.insert(key.clone(), answers);
        }
        Ok(self.known.get(&key).map_or(&[], Vec::as_slice))
    }
}
