//! Payload of points: JSON objects, the paths into them, the filters over them and their changes.
//!
//! In reading order: [`path`] names values inside a payload; [`filter`] is the syntax tree of a
//! filter; [`datetime`] reads moments in time; [`scalar`] compares one JSON value with what a filter asks for; [`eval`] decides a filter
//! on one payload and is the reference for every faster way; [`crate::mask`] decides it for all rows of a
//! segment with the help of field indexes; [`edit`] and [`select`] change a payload and cut parts out of it.

pub mod path;

pub mod datetime;

pub mod filter;

pub mod scalar;

pub mod eval;

pub mod edit;

pub mod select;

/// A point's payload: a JSON object.
pub type Payload = serde_json::Map<String, serde_json::Value>;
