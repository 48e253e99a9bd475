//! The studies: what is done to a server, in which order, and what of it counts.
//!
//! [`optimizers`] is Qdrant's study of its optimizer settings, [`merge`] Milvus's of its force merge,
//! [`contention`] Qdrant's count of slow requests beside writes. Each runs *trials* (a configuration
//! on a fresh collection) and gives one JSON object for each, which reports are made of. [`wire`] is a
//! measurement of our own: what REST and gRPC add to the engine.

mod configuration;
pub(crate) mod contention;
mod freshness;
pub(crate) mod merge;
pub(crate) mod optimizers;
mod phase;
pub(crate) mod setup;
pub(crate) mod trial;
mod upload;
mod watch;
pub(crate) mod wire;
