//! A collection: what users create, fill and search.

pub mod info;
pub mod update;
