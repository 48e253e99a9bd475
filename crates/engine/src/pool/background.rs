//! Workers of background jobs: threads that live for one step and inherit the lowest priority.
//!
//! All jobs share one budget of threads. A step takes what is free of it, at least one and at most what it
//! asked for, and gives it back at its end, so that there are never more threads at work than the
//! budget has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flatwater_index::hnsw::Workers;
use parking_lot::{Condvar, Mutex};

/// Items that one thread takes at a time: few, so that a thread which lost its core to a search
/// keeps little from the others.
const TAKE: usize = 4;

/// Threads that may be at work.
#[derive(Debug)]
struct Budget {
    free: Mutex<usize>,
    returned: Condvar,
}

impl Budget {
    /// Takes up to `wanted` threads, waiting for the first.
    fn take(&self, wanted: usize) -> Taken<'_> {
        let mut free = self.free.lock();
        while *free == 0 {
            self.returned.wait(&mut free);
        }
        let threads = wanted.clamp(1, *free);
        *free -= threads;
        Taken {
            budget: self,
            threads,
        }
    }
}

/// Threads of a budget, given back when dropped, also by a step that panics.
struct Taken<'a> {
    budget: &'a Budget,
    threads: usize,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.budget.free.lock() += self.threads;
        self.budget.returned.notify_one();
    }
}

/// Runs the items of a step on threads of the budget, the caller's among them.
///
/// The threads are started for each step: they inherit the caller's scheduling class, need no
/// shared state, and cost some tens of microseconds against the milliseconds of a step.
#[derive(Clone, Debug)]
pub struct BackgroundWorkers {
    budget: Arc<Budget>,
    threads: usize,
}

impl BackgroundWorkers {
    /// Workers with a budget of `threads` threads, at least one.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let threads = threads.max(1);
        let budget = Budget {
            free: Mutex::new(threads),
            returned: Condvar::new(),
        };
        Self {
            budget: Arc::new(budget),
            threads,
        }
    }

    /// The same workers for a job that may use only so many of them; 0 = all.
    #[must_use]
    pub fn at_most(&self, threads: usize) -> Self {
        let limit = if threads == 0 { self.threads } else { threads };
        Self {
            budget: Arc::clone(&self.budget),
            threads: self.threads.min(limit),
        }
    }
}

impl Workers for BackgroundWorkers {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, n: usize, f: &(dyn Fn(usize, usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = |worker: usize| {
            loop {
                let start = next.fetch_add(TAKE, Ordering::Relaxed);
                if start >= n {
                    return;
                }
                for item in start..(start + TAKE).min(n) {
                    f(item, worker);
                }
            }
        };
        let useful = self.threads.min(n.div_ceil(TAKE)).max(1);
        let taken = self.budget.take(useful);
        if taken.threads == 1 {
            return work(0);
        }
        std::thread::scope(|scope| {
            for worker in 1..taken.threads {
                let work = &work;
                scope.spawn(move || work(worker));
            }
            work(0);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_runs_once_on_any_number_of_threads() {
        for threads in [1, 2, 5] {
            for n in [0, 1, 3, 4, 5, 1000] {
                let seen: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
                BackgroundWorkers::new(threads).run(n, &|item, worker| {
                    assert!(worker < threads);
                    seen[item].fetch_add(1, Ordering::Relaxed);
                });
                assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn jobs_side_by_side_never_have_more_threads_than_the_budget() {
        let workers = BackgroundWorkers::new(2);
        let (busy, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for limit in [0, 1, 2] {
                let (busy, most) = (&busy, &most);
                let job = workers.at_most(limit);
                scope.spawn(move || {
                    for _ in 0..20 {
                        job.run(40, &|_, _| {
                            let now = busy.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(now, Ordering::SeqCst);
                            std::thread::yield_now();
                            busy.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 2);
        assert_eq!(*workers.budget.free.lock(), 2);
    }
}
