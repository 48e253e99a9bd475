//! The study of a merge: a ladder of concurrent clients before and after, as Milvus showed its force
//! merge, with recall and with what the merge itself costs.
//!
//! 1. The rows are loaded under settings that leave several segments, and the optimizers come to rest.
//! 2. **Before**: for each number of clients, searches one after another from each, for some time.
//! 3. The settings are changed so that fewer segments are aimed at; searches from one client go on
//!    until the optimizers are idle.
//! 4. **After**: the same ladder.

use std::error::Error;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::phase::Phase;
use super::setup::{Setup, Truths};
use super::trial::{Measured, Searches, Trial, add_backlog, add_recall, right_answers};
use super::watch::{Watch, with_watch};
use crate::interrupt;
use crate::measure::load::Arrival;
use crate::options::{Flag, Given, flag};
use crate::progress::Progress;
use crate::target::{Failure, Verb};

/// Options of this study alone.
#[rustfmt::skip]
pub(crate) const FLAGS: &[Flag] = &[
    flag("--ladder", "LIST", "1,2,4,8,16", "numbers of clients (published: 80,120,160,200,240)"),
    flag("--seconds", "X", "30", "length of each step of the ladder"),
    flag("--segments-before", "N", "8", "segments that the rows are spread over"),
    flag("--segments-after", "N", "1", "segments that are aimed at by the merge"),
    flag("--merge-max-s", "N", "14400", "a merge that is not over by then is reported as unfinished"),
];

/// A size that no segment reaches (KB).
const UNLIMITED_KB: u64 = 1 << 40;

/// What is done.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    ladder: Vec<usize>,
    step: Duration,
    before: usize,
    after: usize,
    longest: Duration,
}

impl Plan {
    /// Reads the options.
    pub(crate) fn read(given: &Given) -> Result<Self, Box<dyn Error>> {
        let clients = |word: String| match word.parse::<usize>() {
            Ok(clients @ 1..=10_000) => Ok(clients),
            _ => Err(format!(
                "--ladder has `{word}`, not a number from 1 to 10000"
            )),
        };
        let ladder = given.list("--ladder").into_iter().map(clients);
        Ok(Self {
            ladder: ladder.collect::<Result<_, _>>()?,
            step: Duration::from_secs_f64(given.real("--seconds")?.clamp(0.01, 1e6)),
            before: given.count("--segments-before")?.max(1),
            after: given.count("--segments-after")?.max(1),
            longest: Duration::from_secs(given.count("--merge-max-s")? as u64),
        })
    }
}

/// Runs the study as often as asked.
pub(crate) fn run(
    setup: &mut Setup,
    plan: &Plan,
    mut keep: impl FnMut(Measured) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut truths = std::mem::take(&mut setup.truths);
    let progress = setup.progress(setup.repeats);
    for repeat in 0..setup.repeats {
        if interrupt::is_asked() {
            break;
        }
        progress.trial(repeat, "merge");
        let head = json!({
            "configuration": "merge",
            "name": format!("{} to {} segments", plan.before, plan.after),
            "repeat": repeat,
        });
        keep(trial(setup, plan, head, &progress, &mut truths)?)?;
    }
    Ok(())
}

fn trial(
    setup: &Setup,
    plan: &Plan,
    head: Value,
    progress: &Progress,
    truths: &mut Truths,
) -> Result<Measured, Box<dyn Error>> {
    let kb = setup.data.count() * setup.data.dim() * size_of::<f32>() / 1024;
    let settings = json!({ "optimizers_config": {
        "default_segment_number": plan.before,
        "max_segment_size": kb.div_ceil(plan.before).max(1),
    }});
    if let Err(failure) = setup.create(&settings) {
        return Ok(Measured::refused(head, &failure.to_string()));
    }
    let clock = Instant::now();
    let watch = Watch::new(clock, setup.process);
    let mut trial = Trial {
        setup,
        watch: &watch,
        progress,
        clock,
        phases: Vec::new(),
    };
    let outcome = with_watch(&watch, setup, || phases(&mut trial, plan));
    setup.drop_collection();
    let rows = setup.data.count();
    let right = right_answers(truths, setup, &[rows], "", &|_, _| true)?;
    let recall = add_recall(&mut trial.phases, |_| right.first());
    let mut measured = trial.into_measured(head);
    measured.json["series"]["recall"] = Value::Array(recall);
    if let Err(failure) = outcome {
        measured.json["failed"] = json!(failure.to_string());
    }
    Ok(measured)
}

fn phases(trial: &mut Trial<'_>, plan: &Plan) -> Result<(), Failure> {
    let setup = trial.setup;
    trial.upload(setup.data.count(), None)?;
    let one = |calls_max| Searches {
        arrival: Arrival::Closed,
        clients: 1,
        calls_max,
    };
    trial.drain("indexing", one(0), plan.longest)?;
    ladder(trial, plan, "before")?;
    if interrupt::is_asked() {
        return Ok(());
    }
    let at_start = trial.backlog();
    let body = json!({ "optimizers_config": {
        "default_segment_number": plan.after,
        "max_segment_size": UNLIMITED_KB,
    }});
    setup
        .target
        .manage(Verb::Patch, &setup.path(""), Some(&body))?;
    let segments = |backlog: &Option<super::watch::Backlog>| backlog.as_ref().map(|b| b.segments);
    let before = segments(&at_start);
    let merge = trial.drain("merge", one(u64::MAX), plan.longest)?;
    let after = merge
        .facts
        .get("at_end")
        .and_then(|end| end["segments"].as_u64());
    if before.is_some() && before == after {
        let text = format!(
            "segments before and after: {}; nothing was merged",
            before.unwrap_or(0)
        );
        merge.facts.insert(String::from("why_not"), json!([text]));
        merge.facts.insert(String::from("counts"), json!(false));
    }
    add_backlog(merge, "at_start", at_start);
    ladder(trial, plan, "after")
}

fn ladder(trial: &mut Trial<'_>, plan: &Plan, side: &'static str) -> Result<(), Failure> {
    let progress = trial.progress;
    // What a cold cache costs is not the subject.
    let warm = Searches {
        arrival: Arrival::Closed,
        clients: 1,
        calls_max: trial.setup.data.query_count() as u64,
    };
    let until = Instant::now() + plan.step;
    trial.search(warm, &|| Instant::now() >= until)?;
    for &clients in &plan.ladder {
        if interrupt::is_asked() {
            break;
        }
        let until = Instant::now() + plan.step;
        let searches = Searches {
            arrival: Arrival::Closed,
            clients,
            calls_max: u64::MAX,
        };
        let (phase, ()) = trial.phase(side, |trial| {
            let driven = trial.search(searches, &|| {
                progress.step(side, None);
                Instant::now() >= until
            })?;
            Ok((driven, ()))
        })?;
        of_ladder(phase, side, clients);
    }
    Ok(())
}

fn of_ladder(phase: &mut Phase, side: &str, clients: usize) {
    phase.facts.insert(String::from("side"), json!(side));
    phase.facts.insert(String::from("clients"), json!(clients));
}
