//! Threads of the engine: searches at normal priority, background work at the lowest.

pub mod background;
pub mod bell;
pub mod priority;
pub mod search;
