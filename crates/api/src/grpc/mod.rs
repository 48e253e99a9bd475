//! Messages of gRPC <-> engine, one file a topic, with the types of the crate `qdrant-client`.
//!
//! 1. A request is brought into the shape of the REST body that says the same ([`shape`]), and that
//!    is read by [`crate::convert`]: defaults, ranges, limits, what is not served and the text of each
//!    fault are written once, for both protocols. Vectors and ids go to the engine directly, as there
//!    are many of them.
//! 2. An answer of the engine becomes a message directly; times and usage are the server's to fill in.
//!
//! A field that the proto has and the REST body has not is refused by its name here.

pub mod batch;
pub mod collections;
pub mod edits;
pub mod ids;
pub mod index;
pub mod points;
pub mod query;
pub mod records;
pub mod values;

mod filter;
mod moments;
mod select;
mod settings;
mod shape;
mod vectors;
