//! The search pool: a fixed number of threads behind a bounded queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Sender, TrySendError, bounded};
use parking_lot::Mutex;

use crate::error::{EngineError, Result};

/// What a search thread runs.
pub type SearchJob = Box<dyn FnOnce() + Send>;

/// Fewest searches that may wait, whatever the settings say.
const QUEUE_MIN: usize = 1024;

/// How busy the search threads are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchLoad {
    /// Searches that wait for a thread.
    pub waiting: usize,
    /// Searches that run.
    pub running: usize,
    /// Threads.
    pub threads: usize,
}

/// Threads that run searches in the order of their arrival.
#[derive(Debug)]
pub struct SearchPool {
    running: Arc<AtomicUsize>,
    queue: Mutex<Option<Sender<SearchJob>>>,
    queue_max: usize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl SearchPool {
    /// Starts `threads` threads (at least one); up to `queue_max` jobs wait (at least 1,024).
    ///
    /// # Errors
    /// [`EngineError::Io`] if a thread cannot be started.
    pub fn start(threads: usize, queue_max: usize) -> Result<Self> {
        let queue_max = queue_max.max(QUEUE_MIN);
        let (sender, receiver) = bounded::<SearchJob>(queue_max);
        let running = Arc::new(AtomicUsize::new(0));
        let mut handles = Vec::new();
        for index in 0..threads.max(1) {
            let (receiver, running) = (receiver.clone(), Arc::clone(&running));
            let handle = std::thread::Builder::new()
                .name(format!("search-{index}"))
                .spawn(move || {
                    for job in receiver {
                        running.fetch_add(1, Ordering::Relaxed);
                        // A job reports its own panic by dropping its answer; the thread lives on.
                        if catch_unwind(AssertUnwindSafe(job)).is_err() {
                            tracing::error!("a search panicked; its caller gets an internal error");
                        }
                        running.fetch_sub(1, Ordering::Relaxed);
                    }
                })
                .map_err(|source| EngineError::Io {
                    operation: "starting a search thread",
                    path: std::path::PathBuf::new(),
                    source,
                })?;
            handles.push(handle);
        }
        Ok(Self {
            running,
            queue: Mutex::new(Some(sender)),
            queue_max,
            threads: Mutex::new(handles),
        })
    }

    /// Hands a job to the pool without blocking.
    ///
    /// # Errors
    /// [`EngineError::Refused`] when the queue is full, [`EngineError::Stopping`] after
    /// [`SearchPool::stop`].
    pub fn spawn(&self, job: SearchJob) -> Result<()> {
        let queue = self.queue.lock();
        let Some(sender) = queue.as_ref() else {
            return Err(EngineError::Stopping);
        };
        sender.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => EngineError::Refused {
                what: "searches waiting for a thread",
                limit: self.queue_max,
                retry_after_s: 1,
            },
            TrySendError::Disconnected(_) => EngineError::Stopping,
        })
    }

    /// How busy the threads are now.
    #[must_use]
    pub fn load(&self) -> SearchLoad {
        let waiting = self.queue.lock().as_ref().map_or(0, Sender::len);
        SearchLoad {
            waiting,
            running: self.running.load(Ordering::Relaxed),
            threads: self.threads.lock().len(),
        }
    }

    /// Takes no more jobs, runs those that wait, joins the threads.
    pub fn stop(&self) {
        drop(self.queue.lock().take());
        for handle in self.threads.lock().drain(..) {
            if handle.join().is_err() {
                tracing::error!("a search thread had panicked");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_counts_what_runs_and_what_waits() {
        let pool = SearchPool::start(1, 0).unwrap();
        let (begun, is_begun) = bounded(0);
        let (end, may_end) = bounded::<()>(0);
        let blocked = move || {
            begun.send(()).unwrap();
            may_end.recv().unwrap();
        };
        pool.spawn(Box::new(blocked)).unwrap();
        is_begun.recv().unwrap();
        for _ in 0..3 {
            pool.spawn(Box::new(|| ())).unwrap();
        }
        let busy = SearchLoad {
            waiting: 3,
            running: 1,
            threads: 1,
        };
        assert_eq!(pool.load(), busy);
        end.send(()).unwrap();
        pool.stop();
        assert_eq!(pool.load(), SearchLoad::default());
    }

    #[test]
    fn every_accepted_job_runs_and_a_panic_stops_no_thread() {
        let pool = SearchPool::start(2, 0).unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let mut accepted = 0;
        for i in 0..500 {
            let ran = Arc::clone(&ran);
            let job = Box::new(move || {
                ran.fetch_add(1, Ordering::SeqCst);
                assert!(i % 100 != 7, "a job that panics on purpose");
            });
            accepted += usize::from(pool.spawn(job).is_ok());
        }
        pool.stop();
        assert_eq!(ran.load(Ordering::SeqCst), accepted);
        assert!(matches!(
            pool.spawn(Box::new(|| ())),
            Err(EngineError::Stopping)
        ));
    }
}
