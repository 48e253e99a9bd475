//! Wire <-> engine, one file a topic. `decode_*` reads the bytes of a body (or a JSON value) into
//! the engine's type; `encode_*` gives the JSON text that goes into the envelope's `result`.

pub mod aliases;
pub mod batch;
pub mod collections;
pub mod edits;
pub mod filter;
pub mod ids;
pub mod jobs;
pub mod memory;
pub mod optimizations;
pub mod patch;
pub mod payload;
pub mod points;
pub mod query;
pub mod records;
pub mod search;
pub mod segments;
pub mod settings;
pub mod upsert;

mod diagnose;
mod order;
mod time;

/// JSON text of a value that was built here.
pub(crate) fn text(value: &serde_json::Value) -> Vec<u8> {
    value.to_string().into_bytes()
}
