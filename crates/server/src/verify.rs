//! `flatwater verify`: reads a storage folder and reports each damage on the standard output.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use flatwater_engine::verify;

use crate::args::Arguments;
use crate::options;

/// Verifies `storage`, or the configured folder. Exit code 0: nothing wrong; 1: damage, or the folder
/// could not be read.
pub(crate) fn run(storage: Option<PathBuf>, arguments: &Arguments) -> ExitCode {
    let path = match storage {
        Some(path) => path,
        None => match options::load(arguments.config_path.as_deref()) {
            Ok(loaded) => loaded.options.storage_path,
            Err(fault) => return fail(&format!("error: {fault}")),
        },
    };
    let mut out = std::io::stdout().lock();
    let outcome = verify::verify(&path, &mut |damage| {
        // Nobody is left to tell when stdout is closed; the exit code still says it.
        let _ = writeln!(out, "damaged: {damage}");
    });
    match outcome {
        Ok(verified) => {
            let _ = writeln!(
                out,
                "{}: {} collections, {} segments, {} records in the log, {} damages",
                path.display(),
                verified.collections,
                verified.segments,
                verified.log_records,
                verified.damages
            );
            if verified.damages == 0 {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => fail(&format!(
            "error: {} cannot be verified: {error}",
            path.display()
        )),
    }
}

fn fail(message: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{message}");
    ExitCode::FAILURE
}
