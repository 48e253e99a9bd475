//! Searches beside writes, each at a fixed rate, with keywords and tenants: how many requests are slow,
//! and how slow, as Qdrant counted them for its pull request 8056.
//!
//! 1. A part of the rows is loaded, each with one of some thousand keywords (a tenant), and indexed.
//! 2. What the server can do of each kind alone is measured, unless the rates are given.
//! 3. Searches alone at their rate, then searches and writes side by side, all latencies from the
//!    moment a request was due.
//! 4. At rest, the recall of searches for one tenant.

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::setup::{Setup, Truths};
use super::trial::{Measured, Searches, Trial, add_recall, right_answers};
use super::upload::batch;
use super::watch::{Watch, with_watch};
use crate::data::splitmix64;
use crate::interrupt;
use crate::measure::load::{Arrival, Driven, Load};
use crate::measure::sample::Sample;
use crate::measure::summary::{Summary, round};
use crate::options::{Flag, Given, flag};
use crate::progress::Progress;
use crate::target::{Failure, Found, Keyword, Search, Session, Verb};

/// Options of this study alone.
#[rustfmt::skip]
pub(crate) const FLAGS: &[Flag] = &[
    flag("--seconds", "X", "60", "of searches alone, and of searches beside writes"),
    flag("--search-rate", "X", "", "searches a second (default: --share of what the server can do)"),
    flag("--write-rate", "X", "", "writes a second (default: --share of what the server can do)"),
    flag("--share", "X", "0.4", "share of the measured capacity"),
    flag("--capacity-s", "X", "10", "how long each capacity is measured"),
    flag("--clients", "N", "32", "requests of each kind that are in flight at most"),
    flag("--write-batch", "N", "10", "points of a write"),
    flag("--preload", "X", "0.5", "share of the rows that is there at the start"),
    flag("--keywords", "N", "5000", "different tenants"),
    flag("--hnsw-m", "N", "0", "as published: no graph over all tenants"),
    flag("--hnsw-payload-m", "N", "16", "as published: a graph for each tenant"),
    flag("--slow-ms", "X", "100", "a request that takes longer is slow"),
    flag("--shards", "N", "1", "reported, not run: Flatwater has one"),
    flag("--replication-factor", "N", "1", "reported, not run"),
];

/// Payload field of the tenant, as bfb calls it.
const FIELD: &str = "a";
/// Clients that find out what the server can do, for each of its cores.
const CAPACITY_CLIENTS: usize = 2;
/// A server that is not idle after so long goes into the measurement as it is.
const REST_MAX: Duration = Duration::from_secs(3600);

/// What is done.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    length: Duration,
    search_rate: Option<f64>,
    write_rate: Option<f64>,
    share: f64,
    capacity: Duration,
    clients: usize,
    write_batch: usize,
    preload: f64,
    tenants: Tenants,
    hnsw: Value,
    slow: Duration,
    not_run: Vec<String>,
}

/// Which tenant a point or a query belongs to.
#[derive(Clone, Copy, Debug)]
struct Tenants {
    count: u64,
    seed: u64,
}

impl Tenants {
    fn of(self, number: u64) -> u64 {
        splitmix64(number ^ splitmix64(self.seed)) % self.count
    }

    fn keyword(self, number: u64) -> Keyword {
        Keyword {
            field: FIELD.to_owned(),
            value: format!("keyword_{}", self.of(number)),
        }
    }
}

impl Plan {
    /// Reads the options.
    pub(crate) fn read(given: &Given) -> Result<Self, Box<dyn Error>> {
        let time = |name| {
            given
                .real(name)
                .map(|x| Duration::from_secs_f64(x.clamp(0.01, 1e6)))
        };
        let rate = |name: &str| match given.optional(name) {
            None => Ok(None),
            Some(_) => match given.real(name)? {
                rate if rate > 0.0 => Ok(Some(rate)),
                _ => Err(Box::<dyn Error>::from(format!(
                    "{name} is 0, a number above it is needed"
                ))),
            },
        };
        let not_run = ["--shards", "--replication-factor"]
            .into_iter()
            .filter_map(|name| {
                let value = given.text(name);
                (value != "1").then(|| format!("{name} {value} was asked for and not run"))
            });
        Ok(Self {
            length: time("--seconds")?,
            search_rate: rate("--search-rate")?,
            write_rate: rate("--write-rate")?,
            share: given.real("--share")?.clamp(0.001, 1.0),
            capacity: time("--capacity-s")?,
            clients: given.count("--clients")?,
            write_batch: given.count("--write-batch")?.clamp(1, 100_000),
            preload: given.real("--preload")?.min(1.0),
            tenants: Tenants {
                count: given.count("--keywords")?.max(1) as u64,
                seed: given.count("--seed")? as u64,
            },
            hnsw: json!({ "m": given.count("--hnsw-m")?, "payload_m": given.count("--hnsw-payload-m")? }),
            slow: Duration::from_secs_f64(given.real("--slow-ms")? / 1e3),
            not_run: not_run.collect(),
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
        progress.trial(repeat, "contention");
        let head = json!({
            "configuration": "contention",
            "name": format!("{} tenants", plan.tenants.count),
            "repeat": repeat,
            "not_run_options": plan.not_run,
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
    if let Err(failure) = setup.create(&json!({ "hnsw_config": plan.hnsw })) {
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
    let preloaded = ((setup.data.count() as f64 * plan.preload) as usize).max(1);
    let load = SideBySide {
        setup,
        plan,
        clock,
        written: AtomicUsize::new(preloaded),
    };
    let outcome = with_watch(&watch, setup, || load.phases(&mut trial, preloaded));
    setup.drop_collection();
    let rows = load.written.load(Ordering::Acquire).min(setup.data.count());
    let tenants = plan.tenants;
    let same_tenant = move |query: usize, id: u64| tenants.of(query as u64) == tenants.of(id);
    let label = format!("same of {} tenants, seed {}", tenants.count, tenants.seed);
    let right = right_answers(truths, setup, &[rows], &label, &same_tenant)?;
    let recall = add_recall(&mut trial.phases, |name| match name {
        "at rest" => right.first(),
        _ => None,
    });
    let mut measured = trial.into_measured(head);
    measured.json["series"]["recall"] = Value::Array(recall);
    if let Err(failure) = outcome {
        measured.json["failed"] = json!(failure.to_string());
    }
    Ok(measured)
}

struct SideBySide<'a> {
    setup: &'a Setup,
    plan: &'a Plan,
    clock: Instant,
    /// Rows that were sent, those of the start among them. Behind the last row it begins anew with the
    /// first: overwrites.
    written: AtomicUsize,
}

impl SideBySide<'_> {
    fn phases(&self, trial: &mut Trial<'_>, preloaded: usize) -> Result<(), Failure> {
        let (setup, plan) = (self.setup, self.plan);
        let schema = json!({ "type": "keyword", "is_tenant": true });
        let field = json!({ "field_name": FIELD, "field_schema": schema });
        setup
            .target
            .manage(Verb::Put, &setup.path("/index?wait=true"), Some(&field))?;
        let keyword = |id: u64| plan.tenants.keyword(id);
        trial.upload(preloaded, Some(&keyword))?;
        self.rest(trial)?;
        let clients = CAPACITY_CLIENTS * setup.server_cores;
        let search_rate = match plan.search_rate {
            Some(rate) => rate,
            None => self.capacity(trial, "search capacity", |until| {
                self.searches(Arrival::Closed, clients, until)
            })?,
        };
        let write_rate = match plan.write_rate {
            Some(rate) => rate,
            None => self.capacity(trial, "write capacity", |until| {
                self.writes(Arrival::Closed, clients, until)
            })?,
        };
        self.rest(trial)?;
        if interrupt::is_asked() {
            return Ok(());
        }
        let progress = trial.progress;
        let (phase, ()) = trial.phase("searches alone", |_| {
            progress.step("searches alone", None);
            let until = Instant::now() + plan.length;
            Ok((
                self.searches(Arrival::Open(search_rate), plan.clients, until)?,
                (),
            ))
        })?;
        add_slow(&mut phase.facts, &phase.driven, plan.slow, search_rate);
        let (phase, written) = trial.phase("searches beside writes", |_| {
            progress.step("searches beside writes", None);
            let until = Instant::now() + plan.length;
            std::thread::scope(|scope| {
                let writer =
                    scope.spawn(|| self.writes(Arrival::Open(write_rate), plan.clients, until));
                let searched = self.searches(Arrival::Open(search_rate), plan.clients, until);
                let written = writer
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                Ok((searched?, written?))
            })
        })?;
        add_slow(&mut phase.facts, &phase.driven, plan.slow, search_rate);
        let (from, to) = (phase.from, phase.to);
        let (phase, ()) = trial.phase("writes beside searches", |_| Ok((written, ())))?;
        (phase.from, phase.to) = (from, to);
        add_slow(&mut phase.facts, &phase.driven, plan.slow, write_rate);
        phase
            .facts
            .insert(String::from("points_per_write"), json!(plan.write_batch));
        self.rest(trial)?;
        let queries = setup.data.query_count() as u64;
        trial.phase("at rest", |_| {
            Ok((
                self.load(Arrival::Closed, 1, queries, &|| false, &|s, n| {
                    self.one_search(s, n)
                })?,
                (),
            ))
        })?;
        Ok(())
    }

    /// Waits until the optimizers are idle.
    fn rest(&self, trial: &mut Trial<'_>) -> Result<(), Failure> {
        let nothing = Searches {
            arrival: Arrival::Closed,
            clients: 1,
            calls_max: 0,
        };
        trial.drain("coming to rest", nothing, REST_MAX).map(drop)
    }

    /// Runs a closed loop and returns the share of its rate that is asked for.
    fn capacity(
        &self,
        trial: &mut Trial<'_>,
        name: &'static str,
        drive: impl FnOnce(Instant) -> Result<Driven, Failure>,
    ) -> Result<f64, Failure> {
        let progress = trial.progress;
        let (phase, ()) = trial.phase(name, |_| {
            progress.step(name, None);
            Ok((drive(Instant::now() + self.plan.capacity)?, ()))
        })?;
        let driven = &phase.driven;
        let rate = driven.answers_count() as f64 / driven.elapsed.as_secs_f64().max(1e-9);
        // A server that answered nothing gets a call a second, and shows it.
        Ok((rate * self.plan.share).max(1.0))
    }

    fn searches(
        &self,
        arrival: Arrival,
        clients: usize,
        until: Instant,
    ) -> Result<Driven, Failure> {
        let is_over = || Instant::now() >= until;
        self.load(arrival, clients, u64::MAX, &is_over, &|session, call| {
            self.one_search(session, call)
        })
    }

    fn one_search(&self, session: &mut dyn Session, call: u64) -> Result<Found, Failure> {
        let (data, tenants) = (&self.setup.data, self.plan.tenants);
        let query = call % data.query_count() as u64;
        session.search(&Search {
            vector: data.query(query as usize),
            limit: self.setup.k,
            ef: self.setup.ef,
            keyword: Some(&tenants.keyword(query)),
        })
    }

    fn writes(&self, arrival: Arrival, clients: usize, until: Instant) -> Result<Driven, Failure> {
        let is_over = || Instant::now() >= until;
        let plan = self.plan;
        let call = |session: &mut dyn Session, _: u64| {
            let data = &self.setup.data;
            let first = self.written.fetch_add(plan.write_batch, Ordering::AcqRel) % data.count();
            let count = plan.write_batch.min(data.count() - first);
            let keyword = |id: u64| plan.tenants.keyword(id);
            let unreadable = |error: std::io::Error| Failure::Unreadable(error.to_string());
            let points = batch(data, first, count, Some(&keyword)).map_err(unreadable)?;
            session.upsert(&points, false)?;
            Ok(Found::default())
        };
        self.load(arrival, clients, u64::MAX, &is_over, &call)
    }

    fn load(
        &self,
        arrival: Arrival,
        clients: usize,
        calls_max: u64,
        is_over: &(dyn Fn() -> bool + Sync),
        call: &(dyn Fn(&mut dyn Session, u64) -> Result<Found, Failure> + Sync),
    ) -> Result<Driven, Failure> {
        let setup = self.setup;
        let load = Load {
            session: &|| setup.target.session(&setup.subject),
            call,
            arrival,
            clients,
            calls_max,
            is_over,
            clock: self.clock,
        };
        load.drive()
    }
}

/// Figures of the requests that took longer than `slow`, and of the rate, as bfb prints them.
fn add_slow(
    facts: &mut serde_json::Map<String, Value>,
    driven: &Driven,
    slow: Duration,
    rate: f64,
) {
    let is_slow = |sample: &&Sample| sample.latency() > slow;
    let samples: Vec<Sample> = driven.samples.iter().filter(is_slow).copied().collect();
    let summary = Summary::of(&samples).json();
    let latency = &summary["latency_ms"];
    let figures = json!({
        "over_ms": slow.as_secs_f64() * 1e3,
        "count": samples.len(),
        "mean": latency["mean"],
        "median": latency["p50"],
        "p95": latency["p95"],
        "p99": latency["p99"],
        "max": latency["max"],
    });
    facts.insert(String::from("slow"), figures);
    facts.insert(String::from("rate"), json!(round(rate)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_requests_are_counted_apart() {
        let sample = |ms: u64| Sample {
            due: Duration::ZERO,
            begun: Duration::ZERO,
            ended: Duration::from_millis(ms),
            outcome: crate::measure::sample::Outcome::Answered,
            server: None,
            own: Duration::ZERO,
            query: 0,
        };
        let driven = Driven {
            samples: [1, 100, 101, 200, 300].map(sample).to_vec(),
            ..Driven::default()
        };
        let mut facts = serde_json::Map::new();
        add_slow(&mut facts, &driven, Duration::from_millis(100), 20.0);
        let slow = &facts["slow"];
        assert_eq!((&slow["count"], &slow["max"]), (&json!(3), &json!(300.0)));
        let median = slow["median"].as_f64().unwrap();
        assert!((median - 200.0).abs() < 0.5, "{median}");
        assert_eq!(facts["rate"], 20.0);
    }

    #[test]
    fn tenants_are_drawn_evenly_and_always_the_same() {
        let tenants = Tenants { count: 10, seed: 3 };
        let mut counts = [0; 10];
        for id in 0..1000 {
            counts[tenants.of(id) as usize] += 1;
            assert_eq!(tenants.keyword(id), tenants.keyword(id));
        }
        assert!(
            counts.iter().all(|count| (60..=150).contains(count)),
            "{counts:?}"
        );
    }
}
