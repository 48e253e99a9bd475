//! Reads: what can be asked and what comes back.

pub mod request;
