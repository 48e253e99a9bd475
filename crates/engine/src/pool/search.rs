//! The search pool: a fixed number of threads behind a bounded queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;

use crossbeam_channel::{Sender, TrySendError, bounded};
use parking_lot::Mutex;

use crate::error::{EngineError, Result};

/// What a search thread runs.
pub type SearchJob = Box<dyn FnOnce() + Send>;

/// Fewest searches that may wait, whatever the settings say.
const QUEUE_MIN: usize = 1024;

/// Threads that run searches in the order of their arrival.
#[derive(Debug)]
pub struct SearchPool {
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
        let mut handles = Vec::new();
        for index in 0..threads.max(1) {
            let receiver = receiver.clone();
            let handle = std::thread::Builder::new()
                .name(format!("search-{index}"))
                .spawn(move || {
                    for job in receiver {
                        // A job reports its own panic by dropping its answer; the thread lives on.
                        if catch_unwind(AssertUnwindSafe(job)).is_err() {
                            tracing::error!("a search panicked; its caller gets an internal error");
                        }
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

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
