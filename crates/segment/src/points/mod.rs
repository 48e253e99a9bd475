//! Which points a segment holds: ids, rows and the moments they were stored and deleted.

pub mod heads;
pub mod ids;
