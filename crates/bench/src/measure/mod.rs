//! What is measured and how.
//!
//! 1. [`load`] sends calls, one after another or at a fixed rate, and keeps a [`sample`] of each,
//!    answered or not.
//! 2. [`summary`] makes figures of samples: by count, and by time.
//! 3. [`reading`] tells what the server's process and the machine have used.

pub(crate) mod load;
pub(crate) mod reading;
pub(crate) mod sample;
pub(crate) mod summary;
