//! One trial: a collection from its making to its end, cut into phases.

use std::error::Error;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::freshness::MARKERS_FROM;
use super::phase::{Phase, by_second};
use super::setup::{Setup, Truths};
use super::upload::{KeywordOf, Upload};
use super::watch::{Backlog, Watch, seconds};
use crate::dataset::truth::{Answers, Question};
use crate::measure::load::{Answer, Arrival, Driven, Load};
use crate::measure::sample::Sample;
use crate::measure::summary::round;
use crate::progress::Progress;
use crate::target::{Failure, Found, Search, Session};

/// Parts into which the recall of a phase is cut for the chart over time.
const RECALL_PARTS: usize = 10;

/// What a trial measured: JSON for reports, phases for the histogram logs.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) json: Value,
    pub(super) phases: Vec<Phase>,
}

impl Measured {
    /// Name and samples of each phase.
    pub(crate) fn samples(&self) -> impl Iterator<Item = (&str, &[Sample])> {
        let phases = self.phases.iter();
        phases.map(|phase| (phase.name, phase.driven.samples.as_slice()))
    }

    /// A trial that did not run.
    pub(super) fn refused(mut head: Value, reason: &str) -> Self {
        head["not_run"] = json!(reason);
        Self {
            json: head,
            phases: Vec::new(),
        }
    }
}

/// A trial that runs.
pub(super) struct Trial<'a> {
    pub(super) setup: &'a Setup,
    pub(super) watch: &'a Watch,
    pub(super) progress: &'a Progress,
    pub(super) clock: Instant,
    pub(super) phases: Vec<Phase>,
}

/// Searches from some clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Searches {
    pub(super) arrival: Arrival,
    pub(super) clients: usize,
    pub(super) calls_max: u64,
}

impl<'a> Trial<'a> {
    /// A phase that is what `work` does.
    pub(super) fn phase<T>(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Self) -> Result<(Driven, T), Failure>,
    ) -> Result<(&mut Phase, T), Failure> {
        let (from, before) = (self.clock.elapsed(), self.watch.reading());
        let (driven, more) = work(self)?;
        let at = self.phases.len();
        self.phases.push(Phase {
            name,
            from,
            to: self.clock.elapsed(),
            before,
            after: self.watch.reading(),
            driven,
            facts: Map::new(),
        });
        Ok((&mut self.phases[at], more))
    }

    /// Searches with all queries in turn until `is_over`.
    pub(super) fn search(
        &self,
        searches: Searches,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<Driven, Failure> {
        let setup = self.setup;
        let call = |session: &mut dyn Session, call: u64| -> Result<Found, Failure> {
            session.search(&Search {
                vector: setup.data.query(call as usize),
                limit: setup.k,
                ef: setup.ef,
                keyword: None,
            })
        };
        let load = Load {
            session: &|| setup.target.session(&setup.subject),
            call: &call,
            arrival: searches.arrival,
            clients: searches.clients,
            calls_max: searches.calls_max,
            is_over,
            clock: self.clock,
        };
        load.drive()
    }

    /// Loads the first `rows` rows, without anything beside it.
    pub(super) fn upload(&mut self, rows: usize, keyword: KeywordOf<'_>) -> Result<(), Failure> {
        let (setup, progress, clock) = (self.setup, self.progress, self.clock);
        let upload = Upload {
            setup,
            clock,
            keyword,
            on_ack: &|count| progress.step("upload", Some(count as f64 / rows as f64)),
        };
        let (phase, ()) = self.phase("upload", |_| {
            let driven = Driven {
                samples: upload.run(rows)?,
                ..Driven::default()
            };
            Ok((driven, ()))
        })?;
        phase.facts.insert(String::from("points"), json!(rows));
        Ok(())
    }

    /// Searches at rest: so many, whatever goes on.
    pub(super) fn steady(
        &mut self,
        name: &'static str,
        searches: Searches,
    ) -> Result<&mut Phase, Failure> {
        let progress = self.progress;
        let begin = self.clock.elapsed();
        let (phase, backlog) = self.phase(name, |trial| {
            let driven = trial.search(searches, &|| {
                progress.step(name, None);
                false
            })?;
            let backlog = trial.backlog();
            Ok((driven, backlog))
        })?;
        phase.from = begin;
        add_backlog(phase, "at_end", backlog);
        Ok(phase)
    }

    /// Searches while there is a backlog, until it is gone or `longest` is over.
    ///
    /// Only searches begun before the last poll that saw work belong to the phase: after it nobody
    /// knows. The phase ends at the first of the three polls that saw none.
    pub(super) fn drain(
        &mut self,
        name: &'static str,
        searches: Searches,
        longest: Duration,
    ) -> Result<&mut Phase, Failure> {
        let (watch, progress, clock) = (self.watch, self.progress, self.clock);
        let begin = clock.elapsed();
        watch.begin_phase();
        let is_over = || {
            progress.step(name, None);
            watch.idle().is_certain() || clock.elapsed() - begin > longest
        };
        let (phase, backlog) = self.phase(name, |trial| {
            let driven = trial.search(searches, &is_over)?;
            // The limit of calls may be reached before the work is done.
            while !is_over() && !crate::interrupt::is_asked() {
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok((driven, trial.backlog()))
        })?;
        let idle = watch.idle();
        let until = idle.last_busy.unwrap_or(begin);
        let all = phase.driven.samples.len();
        phase.driven.samples.retain(|sample| sample.begun < until);
        phase.driven.answers.retain(|answer| answer.begun < until);
        phase.from = begin;
        if let (true, Some(since)) = (idle.is_certain(), idle.since) {
            phase.to = since;
        }
        let left_out = all - phase.driven.samples.len();
        phase
            .facts
            .insert(String::from("is_finished"), json!(idle.is_certain()));
        phase
            .facts
            .insert(String::from("searches_left_out"), json!(left_out));
        add_backlog(phase, "at_end", backlog);
        Ok(phase)
    }

    /// What the optimizers have to do now, if the target tells.
    pub(super) fn backlog(&self) -> Option<Backlog> {
        let collection = &self.setup.subject.collection;
        self.watch.poll(self.setup.target.as_ref(), collection)
    }

    /// Everything as JSON: `head` and what the trial found.
    pub(super) fn into_measured(self, mut head: Value) -> Measured {
        let doubts: Vec<String> = self
            .phases
            .iter()
            .flat_map(|phase| {
                phase
                    .after
                    .doubts_since(&phase.before)
                    .into_iter()
                    .map(|d| format!("{}: {d}", phase.name))
            })
            .collect();
        let mut series = self.watch.series();
        series["seconds"] = Value::Array(by_second(&self.phases));
        head["phases"] = self.phases.iter().map(Phase::json).collect();
        head["series"] = series;
        head["doubts"] = json!(doubts);
        Measured {
            json: head,
            phases: self.phases,
        }
    }
}

/// Segments and points of the graph at one end of a phase.
pub(super) fn add_backlog(phase: &mut Phase, name: &str, backlog: Option<Backlog>) {
    let Some(backlog) = backlog else { return };
    let facts = json!({
        "points": backlog.points,
        "indexed": backlog.indexed,
        "segments": backlog.segments,
        "status": backlog.status,
    });
    phase.facts.insert(name.to_owned(), facts);
}

/// Adds the recall of its answers to every phase that has some, and returns it over time.
///
/// `right` gives the exact answers that a phase's searches should have found.
pub(super) fn add_recall<'a>(
    phases: &mut [Phase],
    right: impl Fn(&str) -> Option<&'a Answers>,
) -> Vec<Value> {
    let is_row = |id: u64| id < MARKERS_FROM;
    let mut series = Vec::new();
    for phase in phases.iter_mut() {
        let Some(right) = right(phase.name) else {
            continue;
        };
        if let Some(recall) = phase.recall(right, is_row) {
            phase
                .facts
                .insert(String::from("recall"), json!(round(recall)));
        }
        let answers = &phase.driven.answers;
        for part in answers.chunks(answers.len().div_ceil(RECALL_PARTS).max(1)) {
            let recall = mean_recall(part, right, is_row);
            series.push(json!({
                "t": seconds(part[0].begun),
                "phase": phase.name,
                "searches": part.len(),
                "recall": round(recall),
            }));
        }
    }
    series
}

/// Mean recall of some answers.
pub(super) fn mean_recall(
    answers: &[Answer],
    right: &Answers,
    is_known: impl Fn(u64) -> bool,
) -> f64 {
    let of = |answer: &Answer| {
        let right = &right[answer.call as usize % right.len()];
        crate::dataset::truth::recall(&answer.ids, right, &is_known)
    };
    answers.iter().map(of).sum::<f64>() / answers.len().max(1) as f64
}

/// Exact answers over the rows that `counts` lets through, at each cut.
pub(super) fn right_answers<'a>(
    truths: &'a mut Truths,
    setup: &Setup,
    cuts: &[usize],
    label: &str,
    counts: &(dyn Fn(usize, u64) -> bool + Sync),
) -> Result<&'a [Answers], Box<dyn Error>> {
    let question = Question {
        k: setup.k,
        queries: setup.data.query_count(),
        cuts,
        counts,
        label,
    };
    truths.of(&setup.data, &question)
}
