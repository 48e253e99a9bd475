//! A growing segment: it takes rows from one writer while any number of readers search it.
//!
//! 1. `write` appends rows, stamps deletes and payload changes (the latter two also in sealed segments).
//! 2. `index_step` lets background threads insert rows into the graphs.
//! 3. `field_build` builds the index of a field over rows that are there already.
//! 4. `checkpoint` records a view so that a restart begins there; `links` saves the graphs.

pub mod checkpoint;
pub mod field_build;
pub mod index_step;
pub mod links;
pub mod write;
