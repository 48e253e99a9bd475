//! What becomes of segments under writes and reads: sealed when they are full, written anew by the
//! optimizers.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod fixture;
mod optimizing;
mod reports;
mod sealing;
