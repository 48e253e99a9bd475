//! The log thread: syncs the log and acknowledges those who wait for it.
//!
//! All who wait when a sync begins share it. When nobody waits, the log is synced at most
//! `flush_interval_sec` after the last write.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use flatwater_segment::SeqNo;

use super::ShardShared;
use crate::error::EngineError;
use crate::update::{OnAck, UpdateResult, UpdateStatus};
use crate::wal::WalSync;

/// What the log thread is asked to do.
pub(super) enum LogMessage {
    /// Acknowledge when everything up to `seq` is synced.
    Wait {
        /// Place of the update.
        seq: SeqNo,
        /// Called with the acknowledgement.
        on_ack: OnAck,
    },
    /// Sync what is left and finish.
    Stop,
}

impl LogMessage {
    /// Answers a waiter with an error.
    pub(super) fn refuse(self, error: EngineError) {
        if let Self::Wait { on_ack, .. } = self {
            on_ack(Err(error));
        }
    }
}

pub(super) struct LogThread {
    pub(super) shared: Arc<ShardShared>,
    pub(super) wal: Arc<WalSync>,
    pub(super) queue: Receiver<LogMessage>,
}

impl LogThread {
    /// Runs until [`LogMessage::Stop`] or until the writer is gone.
    pub(super) fn run(self) {
        loop {
            let interval_ms = self.shared.flush_interval_ms.load(Ordering::Relaxed);
            let interval = Duration::from_millis(interval_ms);
            let first = match self.queue.recv_timeout(interval) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(LogMessage::Stop),
            };
            let mut waiters = Vec::new();
            let mut is_stopping = false;
            for message in first.into_iter().chain(self.queue.try_iter()) {
                match message {
                    LogMessage::Wait { .. } => waiters.push(message),
                    LogMessage::Stop => is_stopping = true,
                }
            }
            self.sync_and_acknowledge(waiters);
            if is_stopping {
                return;
            }
        }
    }

    fn sync_and_acknowledge(&self, waiters: Vec<LogMessage>) {
        match self.wal.sync() {
            Ok(synced) => {
                for message in waiters {
                    let LogMessage::Wait { seq, on_ack } = message else {
                        continue;
                    };
                    if seq <= synced {
                        on_ack(Ok(UpdateResult {
                            seq,
                            status: UpdateStatus::Completed,
                        }));
                    } else {
                        on_ack(Err(EngineError::Bug(format!(
                            "operation {seq} was appended before the sync that reached {synced}"
                        ))));
                    }
                }
            }
            Err(error) => {
                // After a failed fsync the page cache may have dropped the bytes (Rebello et al.,
                // ATC 2020): nothing written since can be promised any more.
                self.shared
                    .health
                    .poison(&format!("the log could not be synced: {error}"));
                for message in waiters {
                    message.refuse(EngineError::Poisoned(error.to_string()));
                }
            }
        }
    }
}
