//! One call as the client saw it.

use std::time::Duration;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answered,
    TimedOut,
    /// Refused, or the connection broke.
    Failed,
    /// It was due, and nothing sent it before the end: all clients were still waiting.
    Unsent,
}

/// Times are since the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// When it should have begun.
    pub(crate) due: Duration,
    /// When it did.
    pub(crate) begun: Duration,
    pub(crate) ended: Duration,
    pub(crate) outcome: Outcome,
    /// Time inside the server, if it told.
    pub(crate) server: Option<Duration>,
    /// Work of this process for the call.
    pub(crate) own: Duration,
    /// Which query it was.
    pub(crate) query: u32,
}

impl Sample {
    /// From the moment it was due: a call that had to wait for its turn waited.
    pub(crate) fn latency(&self) -> Duration {
        self.ended.saturating_sub(self.due)
    }
}
