//! The developer commands: `cargo xtask NAME`. They print what they run and how long it took, and
//! stop at the first failure with the command that repeats it.
//!
//! Reading order: `commands` (the table of names), `step` (runs one program), `python`
//! (virtual environments), `bench` (measurements), `layers` and `tidy` (the rules that no compiler
//! checks), `docs` (Markdown), `source` (Rust source without comments and strings), `workspace`
//! (paths).
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks to its user on the terminal"
)]

mod bench;
mod commands;
mod docs;
mod layers;
mod python;
mod source;
mod step;
mod tidy;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let name = words.next();
    let rest: Vec<String> = words.collect();
    match commands::run(name.as_deref(), &rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nxtask: {failure}");
            ExitCode::FAILURE
        }
    }
}
