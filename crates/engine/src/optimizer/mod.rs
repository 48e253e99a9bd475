//! Background work: for now the insertion of growing rows into their graphs.

pub mod indexing;
pub mod plan;
