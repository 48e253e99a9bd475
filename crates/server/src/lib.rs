//! The process: options, start and stop, and the REST and gRPC interfaces over the engine.
//!
//! Reading order: [`options`] (what can be set), `run` (what starts and stops in which order), `app`
//! (what both interfaces do with the engine), `http` (one thin handler an endpoint), `grpc` (one thin
//! method a call), `auth` (the keys of both), `metrics` (what both count, and what is asked when it is read). No call that may block runs on a thread of the reactor:
//! reads go to the engine's search threads, everything else to blocking threads.
#![deny(missing_docs)]

use std::io::Write;
use std::process::ExitCode;

pub mod options;

mod app;
mod args;
mod auth;
mod foreign;
mod grpc;
mod http;
mod limits;
mod logging;
mod metrics;
mod run;
mod verify;

/// Runs the process: arguments, options, server. Returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    match args::parse(std::env::args_os().skip(1)) {
        Ok(args::Command::Serve(arguments)) => run::run(&arguments),
        Ok(args::Command::Verify { storage, arguments }) => verify::run(storage, &arguments),
        Ok(args::Command::Print(text)) => {
            // Nobody is left to tell when stdout is closed.
            let _ = writeln!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(fault) => {
            let _ = writeln!(std::io::stderr(), "{fault}\n\n{}", args::HELP);
            ExitCode::from(2)
        }
    }
}
