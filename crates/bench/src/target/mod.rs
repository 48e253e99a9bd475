//! What is measured: an engine in this process, or any server that speaks Qdrant's API.
//!
//! 1. [`Target::manage`] is for what is done seldom and not timed (collections, settings, what the
//!    optimizers do): Qdrant's REST calls and their JSON, whatever the way in.
//! 2. [`Session`] is one client of its own, without anything shared with the others, for what is
//!    timed: searches and writes, by REST, gRPC or a call.

mod embedded;
mod grpc;
mod place;
mod rest;

use std::time::Duration;

use serde_json::Value;

pub(crate) use embedded::Embedded;
pub(crate) use grpc::Grpc;
pub(crate) use place::Place;
pub(crate) use rest::Rest;

/// Why a call gave no answer. It is a sample all the same.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Failure {
    /// No answer within the limit.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The server said no, and why.
    #[error("refused with {status}: {message}")]
    Refused {
        /// HTTP status, gRPC code or kind of error.
        status: String,
        /// As the server put it.
        message: String,
    },
    /// The connection could not be made, or broke.
    #[error("connection: {0}")]
    Connection(String),
    /// What came back is not what the API says.
    #[error("cannot read the answer: {0}")]
    Unreadable(String),
}

/// Verb of a managing call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Put,
    Patch,
    Delete,
}

/// Collection, and name of its vector (`""`: the unnamed one).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subject {
    pub(crate) collection: String,
    pub(crate) vector: String,
}

/// A keyword that a point has, or must have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Keyword {
    pub(crate) field: String,
    pub(crate) value: String,
}

/// A search.
#[derive(Clone, Debug)]
pub(crate) struct Search<'a> {
    pub(crate) vector: &'a [f32],
    pub(crate) limit: usize,
    pub(crate) ef: Option<usize>,
    pub(crate) keyword: Option<&'a Keyword>,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// Best first.
    pub(crate) ids: Vec<u64>,
    /// As the server measured it, if it tells.
    pub(crate) server: Option<Duration>,
    /// What this process did outside the call: the request made, the answer read.
    pub(crate) own: Duration,
}

/// Points to store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    pub(crate) dim: usize,
    pub(crate) ids: Vec<u64>,
    /// One behind the other.
    pub(crate) vectors: Vec<f32>,
    /// One for each point, or none at all.
    pub(crate) keywords: Vec<Keyword>,
}

/// One client.
pub(crate) trait Session: Send {
    /// Answers one search.
    fn search(&mut self, search: &Search<'_>) -> Result<Found, Failure>;

    /// Stores points; `wait` is Qdrant's.
    fn upsert(&mut self, batch: &Batch, wait: bool) -> Result<(), Failure>;

    /// Deletes points.
    fn delete(&mut self, ids: &[u64], wait: bool) -> Result<(), Failure>;
}

/// Something that can be measured.
pub(crate) trait Target: Send + Sync {
    /// `embedded`, `rest` or `grpc`.
    fn kind(&self) -> &'static str;

    /// Where it is, for reports.
    fn place(&self) -> String;

    /// Name and version as it tells them.
    fn version(&self) -> Result<String, Failure>;

    /// Process that does the work, if it runs on this machine and can be found.
    fn process(&self) -> Option<u32>;

    /// A call of Qdrant's REST API; returns `result` of the answer.
    fn manage(&self, verb: Verb, path: &str, body: Option<&Value>) -> Result<Value, Failure>;

    /// A new client for a collection.
    fn session(&self, subject: &Subject) -> Result<Box<dyn Session>, Failure>;
}

impl Batch {
    /// Vector of the point at `index`.
    pub(crate) fn vector(&self, index: usize) -> &[f32] {
        &self.vectors[index * self.dim..(index + 1) * self.dim]
    }

    /// Adds a point.
    pub(crate) fn push(&mut self, id: u64, vector: &[f32]) {
        self.dim = vector.len();
        self.ids.push(id);
        self.vectors.extend_from_slice(vector);
    }
}
