//! What all calls have in common: time limits, ordering, consistency, and how they are answered.

use std::time::Instant;

use flatwater_api::error::{ApiError, Place, Result};
use flatwater_engine::engine::{Collection, Engine};
use qdrant_client::qdrant;
use qdrant_client::qdrant::read_consistency::Value as Consistency;
use tonic::{Response, Status};

use super::status::status;
use crate::app::reads::Read;
use crate::app::updates::Wishes;
use crate::app::{App, find};

/// An answer as the services give it.
pub(super) type Answer<T> = std::result::Result<Response<T>, Status>;

/// Answers with the message that `message` makes of the result and the seconds that it took.
pub(super) fn answer<T, M>(
    started: Instant,
    result: Result<T>,
    message: impl FnOnce(T, f64) -> M,
) -> Answer<M> {
    match result {
        Ok(result) => Ok(Response::new(message(
            result,
            started.elapsed().as_secs_f64(),
        ))),
        Err(error) => Err(status(&error)),
    }
}

/// A request to change points or indexes.
pub(super) trait Change: Send + 'static {
    /// Takes the name of the collection out of it.
    fn take_name(&mut self) -> String;

    /// `wait`, `timeout` and `ordering`.
    fn wishes(&self) -> Result<Wishes>;
}

/// A request to read points.
pub(super) trait Lookup: Send + Sized + 'static {
    /// As Qdrant's messages name it.
    const OPERATION: &'static str;

    /// Takes the name of the collection out of it.
    fn take_name(&mut self) -> String;

    /// Checks `timeout` and `read_consistency`.
    fn read(&self) -> Result<Read>;

    /// Runs `job` for the collection on a search thread.
    async fn run<T: Send + 'static>(
        mut self,
        app: &App,
        job: impl FnOnce(&Collection, Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (read, name) = (self.read()?, self.take_name());
        let job = move |engine: &Engine| job(&*find(engine, &name)?, self);
        read.run(app, job).await
    }
}

macro_rules! changes {
    ($($message:ident),*) => {$(
        impl Change for qdrant::$message {
            fn take_name(&mut self) -> String {
                std::mem::take(&mut self.collection_name)
            }

            fn wishes(&self) -> Result<Wishes> {
                check_ordering(self.ordering)?;
                Ok(Wishes {
                    wait: self.wait.unwrap_or_default(),
                    timeout_s: timeout_s(self.timeout)?,
                })
            }
        }
    )*};
}

changes!(
    UpsertPoints,
    DeletePoints,
    SetPayloadPoints,
    DeletePayloadPoints,
    ClearPayloadPoints,
    UpdatePointVectors,
    DeletePointVectors,
    UpdateBatchPoints,
    CreateFieldIndexCollection,
    DeleteFieldIndexCollection
);

macro_rules! lookups {
    ($($message:ident: $operation:literal),*) => {$(
        impl Lookup for qdrant::$message {
            const OPERATION: &'static str = $operation;

            fn take_name(&mut self) -> String {
                std::mem::take(&mut self.collection_name)
            }

            fn read(&self) -> Result<Read> {
                check_consistency(self.read_consistency)?;
                Ok(Read {
                    operation: Self::OPERATION,
                    timeout_s: timeout_s(self.timeout)?,
                })
            }
        }
    )*};
}

lookups!(
    GetPoints: "Retrieve",
    ScrollPoints: "Scroll",
    CountPoints: "Count",
    QueryPoints: "Search",
    SearchPoints: "Search",
    QueryBatchPoints: "Search",
    SearchBatchPoints: "Search"
);

/// The time limit in seconds, at least 1.
pub(super) fn timeout_s(timeout: Option<u64>) -> Result<Option<u64>> {
    match timeout {
        Some(0) => {
            let rules = "timeout: value 0 invalid, must be 1 or larger".to_owned();
            let place = Place::Body;
            Err(ApiError::Validation { place, rules })
        }
        timeout => Ok(timeout),
    }
}

/// There is one writer a shard, so every order asked for is the one there is.
fn check_ordering(ordering: Option<qdrant::WriteOrdering>) -> Result<()> {
    match ordering.map(|ordering| qdrant::WriteOrderingType::try_from(ordering.r#type)) {
        None | Some(Ok(_)) => Ok(()),
        Some(Err(_)) => Err(ApiError::Format(
            "ordering.type: invalid value, expected Weak, Medium or Strong".to_owned(),
        )),
    }
}

/// There is one copy of a shard, which agrees with itself.
fn check_consistency(consistency: Option<qdrant::ReadConsistency>) -> Result<()> {
    let is_known = match consistency.and_then(|consistency| consistency.value) {
        None => true,
        Some(Consistency::Factor(factor)) => factor > 0,
        Some(Consistency::Type(number)) => qdrant::ReadConsistencyType::try_from(number).is_ok(),
    };
    if is_known {
        return Ok(());
    }
    Err(ApiError::Format(
        "read_consistency: invalid value, expected All, Majority, Quorum or a factor above 0"
            .to_owned(),
    ))
}
