//! Payload of points: JSON objects, the paths into them, and the filters over them.

pub mod filter;

/// A point's payload: a JSON object.
pub type Payload = serde_json::Map<String, serde_json::Value>;
