//! Workers of one background job: threads that live for one step and inherit the lowest priority.

use std::sync::atomic::{AtomicUsize, Ordering};

use flatwater_index::hnsw::Workers;

/// Items that one thread takes at a time: few, so that a thread which lost its core to a search
/// keeps little from the others.
const TAKE: usize = 4;

/// Runs the items of a step on up to `threads` threads, the caller's among them.
///
/// The threads are started for each step: they inherit the caller's scheduling class, need no
/// shared state, and cost some tens of microseconds against the milliseconds of a step.
#[derive(Clone, Copy, Debug)]
pub struct ScopedWorkers {
    threads: usize,
}

impl ScopedWorkers {
    /// Workers on `threads` threads, at least one.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self {
            threads: threads.max(1),
        }
    }
}

impl Workers for ScopedWorkers {
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
        let helpers = (self.threads - 1).min(n.saturating_sub(1) / TAKE);
        if helpers == 0 {
            return work(0);
        }
        std::thread::scope(|scope| {
            for worker in 1..=helpers {
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
                ScopedWorkers::new(threads).run(n, &|item, worker| {
                    assert!(worker < threads);
                    seen[item].fetch_add(1, Ordering::Relaxed);
                });
                assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) == 1));
            }
        }
    }
}
