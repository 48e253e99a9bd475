//! `flatwater-bench`: measures Flatwater, and any server that speaks Qdrant's API.
//!
//! `flatwater-bench optimizers` runs a published study, `compare` and `gate` set runs side by side.
//! `flatwater-bench load FOLDER [ROWS]` loads the rows, searches while they are indexed and after,
//! and prints what it measured. `flatwater-bench join FOLDER [ROWS]` joins and heals graphs beside
//! building them anew. `flatwater-bench peers` compares the index with other libraries.

mod commands;
mod data;
mod dataset;
mod interrupt;
mod join;
mod load;
mod measure;
mod options;
mod peers;
mod progress;
mod report;
#[cfg(test)]
mod smoke_tests;
mod study;
mod target;

use std::process::ExitCode;

const USAGE: &str = "usage: flatwater-bench load FOLDER [ROWS]
       flatwater-bench join FOLDER [ROWS]
       flatwater-bench peers [OPTION VALUE]...

FOLDER holds base.i8.npy and query.f16.npy as tests/data/wordnet-minilm-384 does.
ROWS   loads only the first so many rows (default: all).";

#[allow(
    clippy::print_stderr,
    reason = "a program without a log says on stderr why it stops"
)]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["load", folder] => load::run(folder, None),
        ["load", folder, rows] => match rows.parse() {
            Ok(rows) => load::run(folder, Some(rows)),
            Err(_) => Err(format!("ROWS is `{rows}`, not a whole number\n\n{USAGE}").into()),
        },
        ["join", folder] => join::run(folder, None),
        ["join", folder, rows] => match rows.parse() {
            Ok(rows) => join::run(folder, Some(rows)),
            Err(_) => Err(format!("ROWS is `{rows}`, not a whole number\n\n{USAGE}").into()),
        },
        ["peers", "--help"] => Err(peers::USAGE.into()),
        ["peers", ref rest @ ..] => {
            peers::Options::parse(rest).and_then(|options| peers::run(&options))
        }
        [name, ref rest @ ..] if commands::is_one(name) => commands::run(name, rest),
        _ => Err(commands::usage(USAGE).into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
