//! What the wire adds: the same work given to the engine in this process, and to a server by REST and by
//! gRPC, one request in flight, in turns.
//!
//! 1. Uploads with the indexing held: points acknowledged a second, by each way in.
//! 2. Both engines index the same rows and come to rest.
//! 3. The same searches by each way, in rounds of a few hundred, the first way changing from round to
//!    round, so that a disturbance of the machine meets all of them.
//!
//! Times are from the call to the answer, without the client's own making and reading of messages.

use std::error::Error;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::setup::{self, Setup};
use super::upload::Upload;
use crate::interrupt;
use crate::measure::sample::{Outcome, Sample};
use crate::measure::summary::Summary;
use crate::options::{Flag, Given, flag};
use crate::target::{Failure, Search, Session, Target, Verb};

/// Options of this study alone.
#[rustfmt::skip]
pub(crate) const FLAGS: &[Flag] = &[
    flag("--server", "URL", "http://127.0.0.1:6333", "REST of the server beside this process"),
    flag("--server-grpc", "URL", "grpc://127.0.0.1:6334", "its gRPC"),
    flag("--calls", "N", "200", "searches of one round by one way"),
    flag("--rounds", "N", "10", "rounds"),
];

/// How long the engines may index.
const REST_MAX: Duration = Duration::from_secs(3600);
/// Looks at the optimizers that must find them idle before they count as that.
const IDLE_LOOKS: usize = 3;
/// Collection settings that hold the indexing.
const HELD: usize = 0;
/// Any number of jobs.
const FREE: &str = "auto";

/// Figures of one way in.
#[derive(Debug)]
struct Way {
    name: &'static str,
    /// Points acknowledged a second, one figure for each upload.
    uploads: Vec<f64>,
    samples: Vec<Sample>,
}

/// Measures and prints.
pub(crate) fn run(given: &Given) -> Result<(), Box<dyn Error>> {
    interrupt::listen()?;
    let mut embedded = Setup::open(given)?;
    let (calls, rounds) = (given.count("--calls")?, given.count("--rounds")?);
    if embedded.target.kind() != "embedded" {
        return Err(
            "--target is not for this study: it always measures the embedded engine".into(),
        );
    }
    let rest = setup::target_at(given, given.text("--server"))?;
    let grpc = setup::target_at(given, given.text("--server-grpc"))?;
    let versions = [embedded.target.version()?, rest.version()?];
    let mut ways = ["embedded", "REST", "gRPC"].map(|name| Way {
        name,
        uploads: Vec::new(),
        samples: Vec::new(),
    });
    // Uploads end with the embedded one and one of the server's, whose rows are searched afterwards.
    let mut servers = [Some(rest), Some(grpc)];
    for repeat in 0..embedded.repeats {
        for turn in 0..ways.len() {
            let at = (turn + repeat) % ways.len();
            let speed = match at {
                0 => upload(&embedded)?,
                at => with_target(&mut embedded, &mut servers[at - 1], upload)?,
            };
            ways[at].uploads.push(speed);
        }
    }
    come_to_rest(&embedded)?;
    with_target(&mut embedded, &mut servers[0], come_to_rest)?;
    let mut sessions = vec![embedded.target.session(&embedded.subject)?];
    for server in servers.iter().flatten() {
        sessions.push(server.session(&embedded.subject)?);
    }
    let clock = Instant::now();
    for round in 0..rounds {
        for turn in 0..ways.len() {
            let at = (turn + round) % ways.len();
            // What the other ways left in the caches is this way's to bring back, outside the figures.
            search(&embedded, sessions[at].as_mut(), calls / 10, clock);
            let samples = search(&embedded, sessions[at].as_mut(), calls, clock);
            ways[at].samples.extend(samples);
        }
        if interrupt::is_asked() {
            break;
        }
    }
    drop(sessions);
    embedded.drop_collection();
    with_target(&mut embedded, &mut servers[0], |setup| {
        setup.drop_collection();
        Ok(())
    })?;
    print(&embedded, &ways, &versions);
    Ok(())
}

/// Runs `work` on a server, with the data and settings of the setup.
fn with_target<T>(
    setup: &mut Setup,
    server: &mut Option<Box<dyn Target>>,
    work: impl FnOnce(&Setup) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(target) = server.take() else {
        return Err(Failure::Connection(String::from("the server is in use")));
    };
    let own = std::mem::replace(&mut setup.target, target);
    let outcome = work(setup);
    *server = Some(std::mem::replace(&mut setup.target, own));
    outcome
}

/// Uploads all rows to a collection made anew; answers points acknowledged a second.
fn upload(setup: &Setup) -> Result<f64, Failure> {
    setup.create(&json!({ "optimizers_config": { "max_optimization_threads": HELD } }))?;
    let begin = Instant::now();
    let upload = Upload {
        setup,
        clock: begin,
        keyword: None,
        on_ack: &|_| {},
    };
    upload.run(setup.data.count())?;
    Ok(setup.data.count() as f64 / begin.elapsed().as_secs_f64())
}

/// Lets the optimizers work, and waits until they are idle.
fn come_to_rest(setup: &Setup) -> Result<(), Failure> {
    let free = json!({ "optimizers_config": { "max_optimization_threads": FREE } });
    setup
        .target
        .manage(Verb::Patch, &setup.path(""), Some(&free))?;
    let begin = Instant::now();
    let mut idle_looks = 0;
    while idle_looks < IDLE_LOOKS {
        if begin.elapsed() > REST_MAX || interrupt::is_asked() {
            return Err(Failure::Timeout(begin.elapsed()));
        }
        std::thread::sleep(setup.poll);
        let path = setup.path("/optimizations?with=queued");
        let report = setup.target.manage(Verb::Get, &path, None)?;
        let is_idle = ["running", "queued"]
            .iter()
            .all(|part| report[part].as_array().is_none_or(Vec::is_empty));
        idle_looks = if is_idle { idle_looks + 1 } else { 0 };
    }
    Ok(())
}

fn search(setup: &Setup, session: &mut dyn Session, calls: usize, clock: Instant) -> Vec<Sample> {
    let mut samples = Vec::with_capacity(calls);
    for call in 0..calls {
        let query = call % setup.data.query_count();
        let begun = clock.elapsed();
        let found = session.search(&Search {
            vector: setup.data.query(query),
            limit: setup.k,
            ef: setup.ef,
            keyword: None,
        });
        let ended = clock.elapsed();
        let (outcome, server, own) = match found {
            Ok(found) => (Outcome::Answered, found.server, found.own),
            Err(Failure::Timeout(_)) => (Outcome::TimedOut, None, Duration::ZERO),
            Err(_) => (Outcome::Failed, None, Duration::ZERO),
        };
        samples.push(Sample {
            due: begun,
            begun,
            ended: ended.saturating_sub(own).max(begun),
            outcome,
            server,
            own,
            query: query as u32,
        });
    }
    samples
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[allow(clippy::print_stdout, reason = "a report is what this program is for")]
fn print(setup: &Setup, ways: &[Way], versions: &[String]) {
    let (data, queries) = (&setup.data, setup.data.query_count());
    println!(
        "{}: {} rows of {} dims, {queries} queries, limit {}, one request in flight; {} beside {}",
        data.name,
        data.count(),
        data.dim(),
        setup.k,
        versions[0],
        versions[1]
    );
    println!("way in    upload points/s  ratio   search p50 ms  ratio  more ms   p95 ms  failed");
    let figures: Vec<(f64, Value)> = ways
        .iter()
        .map(|way| (median(&way.uploads), Summary::of(&way.samples).json()))
        .collect();
    let latency = |at: usize, share: &str| {
        let (_, summary) = &figures[at];
        summary["latency_ms"][share].as_f64().unwrap_or(f64::NAN)
    };
    for (at, way) in ways.iter().enumerate() {
        let failed = way
            .samples
            .iter()
            .filter(|s| s.outcome != Outcome::Answered);
        println!(
            "{:9} {:15.0} {:6.2} {:15.3} {:6.2} {:8.3} {:8.3} {:7}",
            way.name,
            figures[at].0,
            figures[at].0 / figures[0].0,
            latency(at, "p50"),
            latency(at, "p50") / latency(0, "p50"),
            latency(at, "p50") - latency(0, "p50"),
            latency(at, "p95"),
            failed.count()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_figure_is_taken() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert!(median(&[]).is_nan());
    }
}
