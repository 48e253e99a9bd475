//! What the workers of one step share, and what each has for itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::Hnsw;
use super::super::batch::{Plan, Writes};
use super::super::insert::Cancelled;
use super::super::key::Key;
use super::super::links::Links;
use super::super::params::Params;
use super::super::scratch::Scratch;
use super::super::select::{Candidate, Standing};
use super::super::space::Workers;
use super::near::Near;
use super::seek::Landed;
use crate::Row;

/// Memory of one worker.
#[derive(Debug, Default)]
pub(super) struct Worker {
    pub(super) scratch: Scratch,
    pub(super) near: Near,
    pub(super) current: Vec<(Row, Standing)>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) kept: Vec<Candidate>,
    pub(super) own: Vec<(Key, Standing)>,
    /// Lists to be written.
    pub(super) writes: Writes,
    /// Rows that lost a tree link.
    pub(super) broken: Vec<Row>,
    /// Neighbours chosen, by place in the chunk.
    pub(super) plan: Plan,
    pub(super) landed: Vec<(Row, Landed)>,
    pub(super) distances: u64,
}

impl Worker {
    fn clear(&mut self) {
        self.writes.clear();
        self.broken.clear();
        self.plan.clear();
        self.landed.clear();
        self.distances = 0;
    }
}

/// What the caller lends to one step.
pub(super) struct Loan<'a, S> {
    pub(super) space: &'a S,
    pub(super) workers: &'a dyn Workers,
    pub(super) states: &'a [Mutex<Worker>],
    pub(super) cancel: &'a (dyn Fn() -> bool + Sync),
}

/// Everything that a worker reads in one step.
pub(super) struct Context<'a, S> {
    pub(super) space: &'a S,
    pub(super) links: &'a Links,
    pub(super) params: Params,
    pub(super) entry: Option<(Row, usize)>,
    loan: &'a Loan<'a, S>,
    cancelled: AtomicBool,
}

impl<'a, S: Sync> Context<'a, S> {
    pub(super) fn new(loan: &'a Loan<'a, S>, graph: &'a Hnsw) -> Self {
        Self {
            space: loan.space,
            links: &graph.links,
            params: graph.params,
            entry: graph.entry(),
            loan,
            cancelled: AtomicBool::new(false),
        }
    }

    /// Calls `f` for `0..n` with the worker's own memory, unless the step is cancelled; what the
    /// workers left from earlier steps is gone first.
    pub(super) fn each(
        &self,
        n: usize,
        f: &(dyn Fn(usize, &mut Worker) + Sync),
    ) -> Result<(), Cancelled> {
        let states = self.loan.states;
        for state in states {
            lock(state).clear();
        }
        self.loan.workers.run(n, &|i, worker| {
            if !self.stop() {
                f(i, &mut lock(&states[worker % states.len()]));
            }
        });
        if self.cancelled.load(Ordering::Relaxed) {
            Err(Cancelled)
        } else {
            Ok(())
        }
    }

    pub(super) fn stop(&self) -> bool {
        // Relaxed: the flag carries no data, and `run` orders it before the check above.
        if self.cancelled.load(Ordering::Relaxed) {
            return true;
        }
        let stop = (self.loan.cancel)();
        if stop {
            self.cancelled.store(true, Ordering::Relaxed);
        }
        stop
    }

    /// Writes the lists that the workers left.
    pub(super) fn write(&self) {
        for state in self.loan.states {
            for (at, list) in lock(state).writes.iter() {
                self.links.write(at.level, at.row, at.note, list);
            }
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of another worker is raised by `run`; the memory here is cleared before use.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
