//! Faults below the storage trait, at every operation of a workload that has each kind of step.
//!
//! 1. The workload runs once without a fault; that counts its operations.
//! 2. For each operation it runs again and fails there: the process is killed, the power is cut, the call fails,
//!    or the disk is full from there on.
//! 3. While it runs on, an error must leave everything as it was; afterwards the storage is opened from what a
//!    kill and what a power loss leave, and must hold what was acknowledged and no half of anything.
//! 4. What was opened is written to, the power is cut once more and nothing that was synced may be missing: so a
//!    name that the first process left unsynced is found out.
//!
//! The suite takes every so many operations ([`Effort`]), from a start that differs from run to run;
//! `FLATWATER_FAULTS=all` takes them all.

use std::sync::Arc;

use flatwater_engine::collection::info::Status;
use flatwater_engine::engine::Engine;
use flatwater_engine::error::ErrorKind;
use flatwater_segment::dir::fault::{Fault, FaultDirectory, Unsynced};

use crate::check::{NAME, Outcome, contents, difference, ensure, told};
use crate::plain::{Plain, World};
use crate::step::{Clauses, Id, IndexKind, Point, Setup, Step, Test, Which, Write};
use crate::storage::open_in;

/// How much the suite tries.
#[derive(Clone, Copy)]
struct Effort {
    /// Every so many operations.
    stride: u64,
    /// Power losses after each.
    losses: usize,
}

const SMALL: Effort = Effort {
    stride: 29,
    losses: 4,
};

/// Megabytes go through the log each time, so fewer are tried.
const LARGE: Effort = Effort {
    stride: 67,
    losses: 1,
};

/// 32 rows a segment: some are sealed in every workload, and not so many that their files are all there is.
const SETUP: Setup = Setup {
    segment_kb: 8,
    on_files: false,
};

fn point(id: u64, salt: u64) -> Point {
    let payload = serde_json::json!({ "color": "red", "size": id % 20, "salt": salt });
    Point {
        id: Id::Num(id),
        vectors: [Some(id * 1000 + salt), Some(id * 1000 + salt + 500)],
        payload: payload.as_object().cloned(),
        pad: 0,
    }
}

fn upsert(ids: std::ops::Range<u64>, salt: u64, wait: bool) -> Step {
    let write = Write::Upsert(ids.map(|id| point(id, salt)).collect());
    Step::Write { write, wait }
}

fn delete(which: Which, wait: bool) -> Step {
    let write = Write::Delete(which);
    Step::Write { write, wait }
}

fn set(which: Which, size: u64, wait: bool) -> Step {
    let payload = serde_json::json!({ "size": size, "color": "green" });
    let payload = payload.as_object().cloned().unwrap();
    let write = Write::SetPayload {
        which,
        payload,
        key: None,
    };
    Step::Write { write, wait }
}

fn index(field: &str, kind: IndexKind) -> Step {
    let field = field.to_owned();
    let write = Write::CreateIndex { field, kind };
    Step::Write { write, wait: true }
}

fn drop_index(field: &str) -> Step {
    let field = field.to_owned();
    let write = Write::DropIndex { field };
    Step::Write { write, wait: false }
}

/// Points whose payload is large: a few of them fill a log file, and a few more call for a checkpoint.
fn large(ids: std::ops::Range<u64>, wait: bool) -> Step {
    let pad = 450_000;
    let write = Write::Upsert(
        ids.map(|id| Point {
            pad,
            ..point(id, 9)
        })
        .collect(),
    );
    Step::Write { write, wait }
}

fn ids(ids: std::ops::Range<u64>) -> Which {
    Which::Ids(ids.map(Id::Num).collect())
}

fn sized(from: u64) -> Which {
    Which::Filter(Clauses {
        must: vec![Test::SizeFrom(from)],
        ..Clauses::default()
    })
}

/// Each kind of step; segments take four rows, so most upserts begin one.
fn workload() -> Vec<Step> {
    vec![
        Step::Create,
        upsert(0..3, 1, false),
        upsert(3..6, 1, true),
        index("size", IndexKind::Integer),
        upsert(2..5, 2, false),
        delete(ids(0..2), false),
        set(sized(2), 7, true),
        Step::Stop,
        upsert(6..9, 3, false),
        delete(sized(7), true),
        index("color", IndexKind::Keyword),
        upsert(0..4, 4, false),
        set(ids(0..9), 11, false),
        drop_index("size"),
        Step::Stop,
        upsert(4..6, 5, true),
        delete(ids(3..6), false),
        Step::Stop,
        Step::Drop,
        Step::Create,
        upsert(0..2, 6, true),
        Step::Drop,
    ]
}

/// A log file that fills up, and a checkpoint that is taken while writes go on.
fn large_workload() -> Vec<Step> {
    vec![
        Step::Create,
        upsert(0..3, 1, false),
        large(3..8, false),
        delete(ids(0..2), false),
        set(ids(0..9), 3, false),
        upsert(1..4, 2, true),
        delete(ids(2..6), true),
        Step::Stop,
        delete(ids(6..8), true),
    ]
}

/// The workload under a fault, and what the storage may hold.
struct Trial {
    dir: Arc<FaultDirectory>,
    engine: Option<Arc<Engine>>,
    world: World,
    /// What a power loss may leave: `world` at every moment since the last that was durable.
    durable: Vec<World>,
    /// What a kill may leave.
    killed: Vec<World>,
    /// How often there was no room to open.
    refused_to_open: usize,
}

impl Trial {
    fn begin(fault: Option<(u64, Fault)>) -> Self {
        let dir = Arc::new(FaultDirectory::new());
        if let Some((at, fault)) = fault {
            dir.faults().schedule(at, fault, at);
        }
        Self {
            dir,
            engine: None,
            world: None,
            durable: vec![None],
            killed: vec![None],
            refused_to_open: 0,
        }
    }

    /// Takes all steps, or those before the process is stopped.
    fn take_all(&mut self, steps: &[Step]) -> Outcome {
        if !self.open()? {
            return Ok(());
        }
        for (number, step) in steps.iter().enumerate() {
            if !self
                .take(step)
                .map_err(|what| format!("at step {number}: {what}"))?
            {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Opens the storage; once more after a failure, and with space where there was none. False when the process
    /// is over.
    fn open(&mut self) -> Outcome<bool> {
        let opened = match open_in(&self.dir) {
            Err(error) if !self.dir.faults().is_stopped() => {
                if error.kind() == ErrorKind::DiskFull {
                    self.refused_to_open += 1;
                    self.dir.faults().set_full(false);
                }
                open_in(&self.dir)
            }
            other => other,
        };
        if self.dir.faults().is_stopped() {
            return Ok(false);
        }
        let engine = told("opening", opened)?;
        let found = contents(&engine)?;
        ensure!(found == self.world, "{}", difference(&found, &self.world));
        self.engine = Some(engine);
        self.settle(true);
        Ok(true)
    }

    fn engine(&self) -> &Engine {
        self.engine
            .as_ref()
            .expect("an engine is open between steps")
    }

    /// `world` is what the process now shows.
    fn settle(&mut self, is_durable: bool) {
        if is_durable {
            self.durable.clear();
        }
        self.durable.push(self.world.clone());
        self.killed = vec![self.world.clone()];
    }

    /// False when the process is over.
    fn take(&mut self, step: &Step) -> Outcome<bool> {
        match step {
            Step::Create => {
                let result = self.engine().create_collection(NAME, SETUP.config());
                self.told_or_undone(result, true, vec![Some(Plain::default())])
            }
            Step::Drop => {
                let result = self.engine().delete_collection(NAME).map(drop);
                self.told_or_undone(result, true, vec![None])
            }
            Step::Write { write, wait } => self.write(write, *wait),
            Step::Stop => {
                let engine = self.engine.take().expect("an engine is open");
                told("stopping", engine.shutdown())?;
                drop(engine);
                self.open()
            }
            // The next process finds the same disk, as full as it was.
            Step::Kill => {
                let engine = self.engine.take().expect("an engine is open");
                self.dir.faults().stop();
                drop(engine);
                self.dir = Arc::new(self.dir.after_kill().map_err(|error| error.to_string())?);
                self.open()
            }
            other => Err(format!("{other:?} has no place in a workload")),
        }
    }

    fn write(&mut self, write: &Write, wait: bool) -> Outcome<bool> {
        let Some(mut after) = self.world.clone() else {
            // Creating failed.
            return Ok(true);
        };
        after.apply(write);
        let collection = told("collection", self.engine().collection(NAME))?;
        let result = collection.update_blocking(write.update(), wait).map(drop);
        self.told_or_undone(result, wait, vec![Some(after)])
    }

    /// After a success the last of `outcomes` is shown. After an error what was before is shown, unless it was a
    /// sync that failed: then an outcome may be, and no further write is taken.
    fn told_or_undone(
        &mut self,
        result: flatwater_engine::error::Result<()>,
        is_durable: bool,
        outcomes: Vec<World>,
    ) -> Outcome<bool> {
        if self.dir.faults().is_stopped() {
            if result.is_ok() {
                // The very last operation was not needed for the acknowledgement.
                self.world = outcomes.last().cloned().flatten();
                self.settle(is_durable);
            } else {
                self.durable.extend(outcomes.clone());
                self.killed.extend(outcomes);
            }
            return Ok(false);
        }
        let found = contents(self.engine())?;
        match result {
            Ok(()) => {
                self.world = outcomes.last().cloned().flatten();
                ensure!(found == self.world, "{}", difference(&found, &self.world));
                self.settle(is_durable);
            }
            Err(error) => {
                let is_open =
                    self.world == found || (self.is_unsure() && outcomes.contains(&found));
                ensure!(
                    is_open,
                    "after the error '{error}': {}",
                    difference(&found, &self.world)
                );
                self.durable.extend(outcomes);
                self.world = found;
                self.settle(false);
            }
        }
        Ok(true)
    }

    /// Whether an earlier failure has left open what is durable: writes are refused then.
    fn is_unsure(&self) -> bool {
        match self.engine().collection(NAME) {
            Ok(collection) => collection.info().status == Status::Red,
            Err(_) => true,
        }
    }

    /// Ends the process. Its storage can be opened as a kill leaves it.
    fn end(&mut self) {
        self.dir.faults().stop();
        self.engine = None;
    }

    /// After the end: what a kill leaves, and what so many power losses leave.
    fn check_what_is_left(&self, seed: u64, losses: usize) -> Outcome {
        let killed = Arc::new(told_dir(self.dir.after_kill())?);
        check_image(&killed, &self.killed, seed).map_err(|what| format!("killed: {what}"))?;
        let unsynced = [
            Unsynced::Seeded(seed),
            Unsynced::Seeded(!seed),
            Unsynced::Lost,
            Unsynced::Kept,
        ];
        for unsynced in unsynced.into_iter().take(losses) {
            let left = Arc::new(told_dir(self.dir.after_power_loss(unsynced))?);
            check_image(&left, &self.durable, seed)
                .map_err(|what| format!("power lost ({unsynced:?}): {what}"))?;
        }
        Ok(())
    }
}

fn told_dir<T>(result: flatwater_segment::dir::Result<T>) -> Outcome<T> {
    result.map_err(|error| error.to_string())
}

/// Opens an image, which must hold one of the worlds; writes to it; and after another power loss that must be there.
fn check_image(dir: &Arc<FaultDirectory>, allowed: &[World], seed: u64) -> Outcome {
    dir.faults().set_full(false);
    // Half of the time the process ends while it opens, and another one opens what is left.
    let mut dir = Arc::clone(dir);
    if seed.is_multiple_of(2) {
        dir.faults().schedule(seed / 2 % 12, Fault::Stop, seed);
        if let Ok(engine) = open_in(&dir) {
            dir.faults().stop();
            drop(engine);
        }
        dir = Arc::new(told_dir(dir.after_kill())?);
    }
    let engine = told("opening", open_in(&dir))?;
    let found = contents(&engine)?;
    let nearest = allowed.last().unwrap_or(&None);
    ensure!(
        allowed.contains(&found),
        "none of {} moments; from the last: {}",
        allowed.len(),
        difference(&found, nearest)
    );
    let mut world = found;
    if world.is_none() {
        told("creating", engine.create_collection(NAME, SETUP.config()))?;
        world = Some(Plain::default());
    }
    let collection = told("collection", engine.collection(NAME))?;
    for step in [upsert(100..103, 7, true), delete(ids(1..4), true)] {
        if let (Step::Write { write, wait }, Some(plain)) = (step, &mut world) {
            told("writing", collection.update_blocking(write.update(), wait))?;
            plain.apply(&write);
        }
    }
    drop(collection);
    if seed % 4 < 2 {
        told("stopping", engine.shutdown())?;
    }
    dir.faults().stop();
    drop(engine);
    let last = Arc::new(told_dir(dir.after_power_loss(Unsynced::Lost))?);
    let engine = told("opening at last", open_in(&last))?;
    let found = contents(&engine)?;
    ensure!(found == world, "at last: {}", difference(&found, &world));
    Ok(())
}

/// The operations of a workload that are tried.
fn tried(steps: &[Step], stride: u64) -> Vec<u64> {
    let mut trial = Trial::begin(None);
    trial.take_all(steps).unwrap();
    trial.end();
    let count = trial.dir.faults().operations();
    let all = std::env::var("FLATWATER_FAULTS").is_ok_and(|text| text == "all");
    if all {
        (0..count).collect()
    } else {
        let start = u64::from(std::process::id()) % stride;
        (start..count).step_by(stride as usize).collect()
    }
}

/// Runs the workload with a fault at one operation after the other.
fn run_through(steps: &[Step], effort: Effort, fault: Fault) {
    for at in tried(steps, effort.stride) {
        let mut trial = Trial::begin(Some((at, fault)));
        let outcome = trial.take_all(steps).and_then(|()| {
            trial.end();
            trial.check_what_is_left(at, effort.losses)
        });
        if let Err(what) = outcome {
            let journal = trial.dir.faults().journal();
            panic!(
                "{fault:?} at operation {at}, {:?}: {what}",
                journal.get(at as usize)
            );
        }
    }
}

#[test]
fn every_operation_may_be_the_last_one() {
    run_through(&workload(), SMALL, Fault::Stop);
}

#[test]
fn every_operation_may_fail() {
    run_through(&workload(), SMALL, Fault::Fail);
}

#[test]
fn the_disk_may_be_full_from_any_operation_on() {
    run_through(&workload(), SMALL, Fault::Full);
}

#[test]
fn every_operation_may_be_the_last_one_while_a_checkpoint_is_taken() {
    run_through(&large_workload(), LARGE, Fault::Stop);
}

#[test]
fn every_operation_may_fail_while_a_checkpoint_is_taken() {
    run_through(&large_workload(), LARGE, Fault::Fail);
}

/// How a write is refused, straight at the engine: the model does not hear of it.
fn kind_of(trial: &Trial, step: &Step) -> Option<ErrorKind> {
    let Step::Write { write, wait } = step else {
        unreachable!("only writes are tried")
    };
    let collection = trial.engine().collection(NAME).unwrap();
    let result = collection.update_blocking(write.update(), *wait);
    result.err().map(|error| error.kind())
}

/// Upserts points of 60 KB, with ids from `first` on, until the full disk refuses one.
fn fill(trial: &mut Trial, first: u64) {
    for at in 0..1000 {
        let write = Write::Upsert(vec![Point {
            pad: 60_000,
            ..point(first + at, 1)
        }]);
        let step = Step::Write {
            write: write.clone(),
            wait: at.is_multiple_of(2),
        };
        match kind_of(trial, &step) {
            None => trial.world.as_mut().unwrap().apply(&write),
            Some(kind) => return assert_eq!(kind, ErrorKind::DiskFull),
        }
    }
    panic!("a full disk takes no more");
}

#[test]
fn on_a_full_disk_reads_and_deletes_go_on_and_writes_come_back_with_the_space() {
    let mut trial = Trial::begin(None);
    let steps = [
        Step::Create,
        upsert(0..30, 1, true),
        upsert(20..40, 2, false),
    ];
    trial.take_all(&steps).unwrap();
    trial.dir.faults().set_full(true);
    // What was reserved is used up first.
    fill(&mut trial, 1000);
    assert_eq!(
        kind_of(&trial, &large(2000..2001, true)),
        Some(ErrorKind::DiskFull)
    );
    let other = trial.engine().create_collection("other", SETUP.config());
    assert_eq!(other.unwrap_err().kind(), ErrorKind::DiskFull);
    for step in [
        delete(ids(0..5), true),
        delete(sized(7), false),
        delete(ids(1000..1001), true),
    ] {
        assert!(trial.take(&step).unwrap());
    }
    // A segment that filled up cannot be sealed now, and says so; nothing else is wrong.
    let info = trial.engine().collection(NAME).unwrap().info();
    let reason = info.optimizer_error.unwrap_or_default();
    assert!(
        info.status != Status::Red || reason.contains("not enough disk space"),
        "{reason}"
    );
    // A restart on the full disk reads everything, and the space brings the writes back.
    assert!(trial.take(&Step::Stop).unwrap());
    assert_eq!(trial.refused_to_open, 0);
    // The stop may have given some room back.
    fill(&mut trial, 3000);
    // Deletions work after it as before it, whether the process was stopped or killed.
    for step in [
        delete(ids(5..7), true),
        Step::Kill,
        delete(ids(7..9), true),
        Step::Stop,
        delete(ids(9..10), false),
    ] {
        assert!(trial.take(&step).unwrap());
    }
    assert_eq!(trial.refused_to_open, 0);
    trial.dir.faults().set_full(false);
    for step in [upsert(0..3, 5, true), set(ids(0..20), 3, true), Step::Stop] {
        assert!(trial.take(&step).unwrap());
    }
    trial.end();
    trial.check_what_is_left(1, 4).unwrap();
}
