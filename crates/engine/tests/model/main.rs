//! The engine beside a model of it: plain maps and exact search, driven with the same operations.
//!
//! 1. `step` is what a run does, `generate` makes steps from a seed, `plain` is the model, `check` compares.
//! 2. `run` drives both through a trace: writes, stops, kills, power losses. `shrink` makes one that fails short.
//! 3. `faults` lets every operation below the storage trait fail in turn.
//!
//! `docs/testing.md` lists the variables that choose seeds and traces.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod check;
mod dice;
mod faults;
mod generate;
mod plain;
mod run;
mod shrink;
mod step;
mod storage;

use std::sync::atomic::{AtomicU64, Ordering};

use shrink::{failure, shrink};
use step::Trace;

/// Seeds of the suite, and steps of each.
const SEEDS: u64 = 24;
const STEPS: u64 = 300;

/// Seeds that run at the same time.
const WORKERS: usize = 2;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

fn number(name: &str) -> Option<u64> {
    variable(name).map(|text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number"))
    })
}

/// Runs a seed; fails with a short trace that replays.
fn check_seed(seed: u64, steps: u64) {
    let trace = generate::trace(seed, steps as usize);
    let Some(what) = failure(&trace) else { return };
    let mut what_last = what.clone();
    let short = shrink(trace, &mut |candidate| match failure(candidate) {
        Some(what) => {
            what_last = what;
            true
        }
        None => false,
    });
    let text = short.to_text();
    let file = std::env::temp_dir().join(format!("flatwater-model-{seed}.trace"));
    std::fs::write(&file, &text).unwrap();
    panic!(
        "seed {seed}: {what}\n\
         shrunk to {} steps: {what_last}\n\
         {text}\
         replay: FLATWATER_MODEL_TRACE={} (or the whole run: FLATWATER_MODEL_SEED={seed} FLATWATER_MODEL_STEPS={steps}) \
         cargo test -p flatwater-engine --test model the_engine_and_the_model",
        short.steps.len(),
        file.display(),
    );
}

#[test]
fn the_engine_and_the_model_agree_after_every_operation() {
    if let Some(file) = variable("FLATWATER_MODEL_TRACE") {
        let trace = Trace::from_text(&std::fs::read_to_string(file).unwrap());
        assert_eq!(failure(&trace), None);
        return;
    }
    let steps = number("FLATWATER_MODEL_STEPS").unwrap_or(STEPS);
    if let Some(seed) = number("FLATWATER_MODEL_SEED") {
        return check_seed(seed, steps);
    }
    let seeds = match variable("FLATWATER_MODEL_SEEDS").as_deref() {
        Some("endless") => u64::MAX,
        _ => number("FLATWATER_MODEL_SEEDS").unwrap_or(SEEDS),
    };
    let next = AtomicU64::new(0);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return;
            }
            check_seed(seed, steps);
            if seeds > SEEDS {
                println!("seed {seed}: {steps} steps agree");
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                // No further seed is begun.
                next.store(seeds, Ordering::Relaxed);
                std::panic::resume_unwind(panic);
            }
        }
    });
}
