//! Qdrant's study of its optimizer settings, without its faults.
//!
//! 1. **Upload** of all rows, no search traffic but a few searches at checkpoints, whose recall is
//!    over the rows acknowledged at that moment. The indexing may be held until the end of it.
//! 2. **Draining**: searches until three polls in a row find the optimizers idle. A drain counts only
//!    with at least half of the points unindexed at the last acknowledgement and at least 20 s or
//!    5,000 searches of it; otherwise the run says why it does not.
//! 3. **Steady**: five passes over the queries.
//! 4. Afterwards, where the configuration says so: a quarter of the points is deleted at once, or the
//!    indexing is switched on late, and searches go on.
//!
//! Each configuration runs once with one search in flight, as published, and once with searches at a
//! fixed rate, whose latency counts from the moment each was due.

use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::configuration::{Afterwards, Configuration, NEVER_KB};
use super::freshness;
use super::phase::Phase;
use super::setup::{Setup, Truths};
use super::trial::{
    Measured, Searches, Trial, add_backlog, add_recall, mean_recall, right_answers,
};
use super::upload::Upload;
use super::watch::{Backlog, Watch, seconds};
use crate::interrupt;
use crate::measure::load::{Arrival, Driven};
use crate::measure::summary::round;
use crate::options::{Flag, Given, flag};
use crate::progress::Progress;
use crate::target::{Failure, Verb};

/// Options of this study alone.
#[rustfmt::skip]
pub(crate) const FLAGS: &[Flag] = &[
    flag("--configurations", "A1,B2", "all", "which of the 13, or of those in --configurations-file"),
    flag("--configurations-file", "FILE", "", "other configurations, as JSON"),
    flag("--loops", "LIST", "closed,open", "one in flight (closed), a fixed rate (open), or both"),
    flag("--rate", "X", "50", "searches a second of the open loop"),
    flag("--clients", "N", "32", "searches that the open loop has in flight at most"),
    flag("--hold", "yes|no", "no", "hold the indexing during the upload"),
    flag("--indexing-threshold-kb", "N", "10000", "what the indexing is switched on with, held or late"),
    flag("--passes", "N", "5", "passes over the queries at rest"),
    flag("--checkpoints", "N", "3", "moments of the upload at which recall is measured"),
    flag("--checkpoint-queries", "N", "100", "searches at each"),
    flag("--freshness-ms", "N", "1000", "from one marker to the next during upload and drain; 0: none"),
    flag("--drain-max-s", "N", "14400", "a drain that is not over by then is reported as unfinished"),
];

/// Least share of points outside the graph at the last acknowledgement.
const UNINDEXED_MIN: f64 = 0.5;
/// Least length of a drain, or else the least number of its searches.
const DRAIN_MIN: Duration = Duration::from_secs(20);
const SEARCHES_MIN: usize = 5_000;
/// One in so many points is deleted by the churn, the first ones.
const CHURNED_PART: usize = 4;

/// What is done to each configuration.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    configurations: Vec<Configuration>,
    loops: Vec<(&'static str, Arrival)>,
    clients: usize,
    hold: bool,
    indexing_threshold_kb: u64,
    passes: usize,
    checkpoints: usize,
    checkpoint_queries: usize,
    freshness: Option<Duration>,
    drain_max: Duration,
}

impl Plan {
    /// Reads the options.
    pub(crate) fn read(given: &Given) -> Result<Self, Box<dyn Error>> {
        let file = given.optional("--configurations-file");
        let text = file.map(std::fs::read_to_string).transpose()?;
        let ids = given.list("--configurations");
        let rate = given.real("--rate")?;
        if rate <= 0.0 {
            return Err("--rate is 0, a number above it is needed".into());
        }
        let kind = |word: String| match word.as_str() {
            "closed" => Ok(("closed", Arrival::Closed)),
            "open" => Ok(("open", Arrival::Open(rate))),
            other => Err(format!("--loops has `{other}`, not closed or open")),
        };
        let loops = given.list("--loops").into_iter().map(kind);
        Ok(Self {
            configurations: Configuration::chosen(text.as_deref(), &ids)?,
            loops: loops.collect::<Result<_, _>>()?,
            clients: given.count("--clients")?,
            hold: given.is("--hold")?,
            indexing_threshold_kb: given.count("--indexing-threshold-kb")? as u64,
            passes: given.count("--passes")?,
            checkpoints: given.count("--checkpoints")?.min(100),
            checkpoint_queries: given.count("--checkpoint-queries")?,
            freshness: match given.count("--freshness-ms")? {
                0 => None,
                ms => Some(Duration::from_millis(ms as u64)),
            },
            drain_max: Duration::from_secs(given.count("--drain-max-s")? as u64),
        })
    }
}

/// Runs all trials, repeats in turn; `keep` is given each one as it ends.
pub(crate) fn run(
    setup: &mut Setup,
    plan: &Plan,
    mut keep: impl FnMut(Measured) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut truths = std::mem::take(&mut setup.truths);
    let progress = setup.progress(setup.repeats * plan.configurations.len() * plan.loops.len());
    let mut at = 0;
    for repeat in 0..setup.repeats {
        for configuration in &plan.configurations {
            for &(name, arrival) in &plan.loops {
                if interrupt::is_asked() {
                    return Ok(());
                }
                progress.trial(at, &format!("{} {name}", configuration.id));
                let head = json!({
                    "configuration": configuration.id,
                    "name": configuration.name,
                    "loop": name,
                    "rate": match arrival { Arrival::Closed => None, Arrival::Open(rate) => Some(rate) },
                    "repeat": repeat,
                    "settings": configuration.create,
                });
                let one = OneTrial {
                    setup,
                    plan,
                    configuration,
                    arrival,
                };
                keep(one.run(head, &progress, &mut truths)?)?;
                at += 1;
            }
        }
    }
    Ok(())
}

struct OneTrial<'a> {
    setup: &'a Setup,
    plan: &'a Plan,
    configuration: &'a Configuration,
    arrival: Arrival,
}

/// Searches at a checkpoint of the upload.
struct Checkpoint {
    acknowledged: usize,
    at: Duration,
    driven: Driven,
}

impl OneTrial<'_> {
    fn run(
        &self,
        head: Value,
        progress: &Progress,
        truths: &mut Truths,
    ) -> Result<Measured, Box<dyn Error>> {
        let setup = self.setup;
        let settings = match self.is_held() {
            true => self.configuration.held(setup.server_cores)?,
            false => self.configuration.settings(setup.server_cores)?,
        };
        if let Err(failure) = setup.create(&settings) {
            return Ok(Measured::refused(head, &failure.to_string()));
        }
        let clock = Instant::now();
        let watch = Watch::new(clock, setup.process);
        let is_stored = AtomicBool::new(false);
        let mut trial = Trial {
            setup,
            watch: &watch,
            progress,
            clock,
            phases: Vec::new(),
        };
        let (outcome, markers) = std::thread::scope(|scope| {
            let collection = &setup.subject.collection;
            scope.spawn(|| watch.run(setup.target.as_ref(), collection, setup.poll));
            let is_possible = freshness::is_possible(setup.data.metric);
            let every = self.plan.freshness.filter(|_| is_possible);
            let stored = &is_stored;
            let prober = every
                .map(|every| scope.spawn(move || freshness::probe(setup, clock, every, stored)));
            let outcome = self.phases(&mut trial, stored);
            stored.store(true, Ordering::Release);
            watch.end();
            let markers = prober.and_then(|prober| prober.join().ok()).transpose();
            (outcome, markers)
        });
        setup.drop_collection();
        let checkpoints = match outcome {
            Ok(checkpoints) => checkpoints,
            // What was measured before it failed is kept.
            Err(failure) => {
                let mut measured = trial.into_measured(head);
                measured.json["failed"] = json!(failure.to_string());
                return Ok(measured);
            }
        };
        let recall = self.recall(&mut trial.phases, &checkpoints, truths)?;
        let mut measured = trial.into_measured(head);
        measured.json["series"]["recall"] = Value::Array(recall);
        if let Ok(Some(markers)) = markers {
            measured.json["freshness"] = freshness::json(&markers);
        }
        Ok(measured)
    }

    /// Whether the indexing waits for the end of the upload, though the configuration wants it.
    fn is_held(&self) -> bool {
        self.plan.hold && self.threshold() < NEVER_KB
    }

    /// Threshold of the indexing under this configuration.
    fn threshold(&self) -> u64 {
        let own = self.configuration.indexing_threshold();
        own.unwrap_or(self.plan.indexing_threshold_kb)
    }

    fn searches(&self, calls_max: u64) -> Searches {
        Searches {
            arrival: self.arrival,
            clients: match self.arrival {
                Arrival::Closed => 1,
                Arrival::Open(_) => self.plan.clients,
            },
            calls_max,
        }
    }

    fn phases(
        &self,
        trial: &mut Trial<'_>,
        is_stored: &AtomicBool,
    ) -> Result<Vec<Checkpoint>, Failure> {
        let checkpoints = self.upload(trial)?;
        if interrupt::is_asked() {
            return Ok(checkpoints);
        }
        let at_last = trial.backlog();
        if self.is_held() {
            self.set_threshold(self.threshold())?;
        }
        let all = self.searches(u64::MAX);
        let drain = trial.drain("draining", all, self.plan.drain_max)?;
        judge(drain, at_last);
        is_stored.store(true, Ordering::Release);
        if interrupt::is_asked() {
            return Ok(checkpoints);
        }
        let passes = self.searches((self.plan.passes * self.setup.data.query_count()) as u64);
        trial.steady("steady", passes)?;
        match self.configuration.afterwards {
            Afterwards::Nothing => {}
            Afterwards::Churn => self.churn(trial, passes)?,
            Afterwards::LateIndexing => {
                let at_last = trial.backlog();
                self.set_threshold(self.plan.indexing_threshold_kb)?;
                let drain = trial.drain("late indexing", all, self.plan.drain_max)?;
                judge(drain, at_last);
                trial.steady("steady after it", passes)?;
            }
        }
        Ok(checkpoints)
    }

    fn set_threshold(&self, kb: u64) -> Result<(), Failure> {
        let body = json!({ "optimizers_config": { "indexing_threshold": kb } });
        let path = self.setup.path("");
        self.setup.target.manage(Verb::Patch, &path, Some(&body))?;
        Ok(())
    }

    /// Numbers of rows at which recall is measured: ends of writes.
    fn cuts(&self) -> Vec<usize> {
        let (rows, parts) = (self.setup.data.count(), self.plan.checkpoints + 1);
        let cut = |part: usize| {
            (rows * part / parts)
                .next_multiple_of(self.setup.batch)
                .min(rows)
        };
        // At the last acknowledgement the draining begins, and nothing may delay that.
        let mut cuts: Vec<usize> = (1..parts).map(cut).filter(|&cut| cut < rows).collect();
        cuts.dedup();
        cuts
    }

    fn upload(&self, trial: &mut Trial<'_>) -> Result<Vec<Checkpoint>, Failure> {
        let (setup, rows, cuts) = (self.setup, self.setup.data.count(), self.cuts());
        let (sender, reached) = channel();
        let sender = Mutex::new(Some(sender));
        let is_loaded = &AtomicBool::new(false);
        let progress = trial.progress;
        let on_ack = |count: usize| {
            progress.step("upload", Some(count as f64 / rows as f64));
            if cuts.contains(&count)
                && let Ok(sender) = sender.lock()
                && let Some(sender) = sender.as_ref()
            {
                // A prober that is gone has failed, and says so at the end.
                let _ = sender.send(count);
            }
        };
        let (_, checkpoints) = trial.phase("upload", |trial| {
            let trial = &*trial;
            std::thread::scope(|scope| {
                let prober = scope.spawn(move || {
                    let at_checkpoint = |count| self.checkpoint(trial, count, is_loaded);
                    reached
                        .iter()
                        .map(at_checkpoint)
                        .collect::<Result<Vec<_>, _>>()
                });
                let upload = Upload {
                    setup,
                    clock: trial.clock,
                    keyword: None,
                    on_ack: &on_ack,
                };
                let samples = upload.run(rows);
                // The prober ends: searches of the draining are not to wait for its own.
                is_loaded.store(true, Ordering::Release);
                if let Ok(mut sender) = sender.lock() {
                    *sender = None;
                }
                let checkpoints = prober.join();
                let checkpoints =
                    checkpoints.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                let driven = Driven {
                    samples: samples?,
                    ..Driven::default()
                };
                Ok((driven, checkpoints?))
            })
        })?;
        Ok(checkpoints)
    }

    fn checkpoint(
        &self,
        trial: &Trial<'_>,
        acknowledged: usize,
        is_loaded: &AtomicBool,
    ) -> Result<Checkpoint, Failure> {
        let at = trial.clock.elapsed();
        let searches = Searches {
            arrival: Arrival::Closed,
            clients: 1,
            calls_max: self.plan.checkpoint_queries as u64,
        };
        let driven = trial.search(searches, &|| is_loaded.load(Ordering::Acquire))?;
        Ok(Checkpoint {
            acknowledged,
            at,
            driven,
        })
    }

    fn churned(&self) -> usize {
        self.setup.data.count() / CHURNED_PART
    }

    fn churn(&self, trial: &mut Trial<'_>, passes: Searches) -> Result<(), Failure> {
        let ids: Vec<u64> = (0..self.churned() as u64).collect();
        let setup = self.setup;
        trial.phase("deletion", |_| {
            let mut session = setup.target.session(&setup.subject)?;
            session.delete(&ids, true)?;
            Ok((Driven::default(), ()))
        })?;
        trial.watch.begin_phase();
        trial.steady("churn", passes)?;
        // How long the clean-up takes, without counting its searches twice.
        let nothing = Searches {
            calls_max: 0,
            ..passes
        };
        trial.drain("cleaning up", nothing, self.plan.drain_max)?;
        Ok(())
    }

    /// Recall of every phase, and over time.
    fn recall(
        &self,
        phases: &mut [Phase],
        checkpoints: &[Checkpoint],
        truths: &mut Truths,
    ) -> Result<Vec<Value>, Box<dyn Error>> {
        let (setup, rows) = (self.setup, self.setup.data.count());
        let mut cuts = self.cuts();
        cuts.push(rows);
        let answers = right_answers(truths, setup, &cuts, "", &|_, _| true)?.to_vec();
        let mut series = Vec::new();
        for checkpoint in checkpoints {
            let acknowledged = checkpoint.acknowledged;
            let found = &checkpoint.driven.answers;
            let cut = cuts.iter().position(|&cut| cut == acknowledged);
            let Some(right) = cut
                .and_then(|at| answers.get(at))
                .filter(|_| !found.is_empty())
            else {
                continue;
            };
            let recall = mean_recall(found, right, |id| id < acknowledged as u64);
            series.push(json!({
                "t": seconds(checkpoint.at),
                "phase": "upload",
                "acknowledged": acknowledged,
                "searches": found.len(),
                "recall": round(recall),
            }));
        }
        let churned = self.churned() as u64;
        let is_churned = self.configuration.afterwards == Afterwards::Churn;
        let left = match is_churned {
            true => right_answers(
                truths,
                setup,
                &[rows],
                "without the first quarter",
                &move |_, id| id >= churned,
            )?,
            false => &[],
        };
        let whole = answers.last();
        series.extend(add_recall(phases, |name| match name {
            "churn" => left.first(),
            _ => whole,
        }));
        Ok(series)
    }
}

/// Says whether a drain counts, and why not.
fn judge(drain: &mut Phase, at_last: Option<Backlog>) {
    let share = at_last.as_ref().map_or(0.0, Backlog::unindexed_share);
    let took = drain.length();
    let searches = drain.driven.samples.len();
    let mut why_not = Vec::new();
    if share < UNINDEXED_MIN {
        why_not.push(format!(
            "{:.0} % of the points were unindexed at the last acknowledgement, at least 50 % are needed (--hold yes, or more rows)",
            share * 100.0
        ));
    }
    if took < DRAIN_MIN && searches < SEARCHES_MIN {
        why_not.push(format!(
            "it lasted {:.1} s with {searches} searches, at least 20 s or 5000 are needed (more rows)",
            took.as_secs_f64()
        ));
    }
    if drain.facts.get("is_finished") == Some(&Value::Bool(false)) {
        why_not.push(String::from("it was not over when it was ended"));
    }
    drain
        .facts
        .insert(String::from("unindexed_share"), json!(round(share)));
    drain
        .facts
        .insert(String::from("counts"), json!(why_not.is_empty()));
    drain.facts.insert(String::from("why_not"), json!(why_not));
    add_backlog(drain, "at_start", at_last);
}
