//! Qdrant 1.19's REST and gRPC shapes: what comes in, what goes out, and which code an error gets.
//!
//! Reading order: [`error`] and [`status`] (what a refusal looks like), [`envelope`] (the wrapper of
//! every answer), [`validate`] (limits that need no engine), then [`convert`], one file a topic:
//! bytes of a body to the engine's request, the engine's answer to JSON. [`grpc`] brings messages into
//! the same shapes, so that there is one reading of each field and one text for each fault.
//!
//! Rules that hold everywhere:
//! 1. Keys that Qdrant does not know are ignored, as Qdrant does.
//! 2. A key that Qdrant knows and that would change results, but is not served yet, is a 400 that
//!    names it ([`error::ApiError::NotServed`]); it is never ignored in silence.
//! 3. A value of the wrong type is a 400, a value outside its range a 422.
//! 4. Nothing here panics on bytes from outside, whatever they are.
#![deny(missing_docs)]

pub mod convert;
pub mod envelope;
pub mod error;
pub mod grpc;
pub mod status;
pub mod validate;

mod body;
mod fields;
mod kinds;

/// Version of Qdrant whose protocol is spoken; clients accept one minor version up or down.
pub const QDRANT_VERSION: &str = "1.19.0";

/// Title that Qdrant's clients look for in the answer of `GET /`.
pub const QDRANT_TITLE: &str = "qdrant - vector search engine";
