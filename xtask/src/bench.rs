//! `cargo xtask bench NAME`: measurements, which no test waits for.
//!
//! 1. Look for what is needed, before anything is built: the data, a C++ compiler, Python's headers.
//! 2. Build the harness with optimisation, and the environment of the peers.
//! 3. Run it with the folder, the interpreter and the commit; extra words go to the harness.

use std::path::PathBuf;
use std::process::Command;

use crate::python::{Environment, environment};
use crate::step::{Failure, Step};
use crate::workspace::Workspace;

const NO_NAME: &str = "which one? cargo xtask bench peers [OPTION VALUE]...";
const NO_DATA: &str = "FLATWATER_DATA_DIR is not set: name the folder that holds wordnet-minilm-384 and wordnet-wide-1024";
const NO_COMPILER: &str = "g++ was not found, and hnswlib comes as source; on Debian or Ubuntu: apt-get install g++ python3-dev";

/// Runs the benchmark of this name.
pub(crate) fn run(workspace: &Workspace, words: &[String]) -> Result<(), Failure> {
    match words.split_first() {
        Some((name, rest)) if name == "peers" => peers(workspace, rest),
        Some((name, _)) => Err(Failure(format!("no benchmark `{name}`; {NO_NAME}"))),
        None => Err(Failure(String::from(NO_NAME))),
    }
}

/// The index beside hnswlib and usearch, in one process each, taking turns.
fn peers(workspace: &Workspace, rest: &[String]) -> Result<(), Failure> {
    if std::env::var_os("FLATWATER_DATA_DIR").is_none() && !rest.iter().any(|w| w == "--data") {
        return Err(Failure(String::from(NO_DATA)));
    }
    if !starts("g++") {
        return Err(Failure(String::from(NO_COMPILER)));
    }
    let interpreter = environment(
        workspace,
        &Environment {
            folder: "venv-peers",
            requirements: workspace.root.join("crates/bench/peers/requirements.txt"),
            may_compile: true,
        },
    )?;
    Step::cargo(&workspace.root)
        .arguments(["build", "--locked", "--release"])
        .arguments(["--package", "flatwater-bench"])
        .run("harness")?;
    let harness = workspace.target.join("release").join("flatwater-bench");
    let cache = workspace.target.join("bench-peers");
    Step::new(harness, &workspace.root)
        .arguments(["peers", "--commit", &commit(workspace)])
        .arguments([PathBuf::from("--cache"), cache])
        .arguments([PathBuf::from("--python"), interpreter])
        .arguments(rest)
        .run("peers")
}

/// The commit of the working tree, marked where files differ from it.
fn commit(workspace: &Workspace) -> String {
    let git = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12"])
        .current_dir(&workspace.root)
        .output();
    match git {
        Ok(said) if said.status.success() => {
            String::from_utf8_lossy(&said.stdout).trim().to_owned()
        }
        _ => String::from("unknown"),
    }
}

fn starts(program: &str) -> bool {
    let outcome = Command::new(program).arg("--version").output();
    outcome.is_ok_and(|said| said.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_benchmark_that_does_not_exist_is_refused_by_name() {
        let workspace = Workspace::find();
        for (words, fault) in [
            (vec![], "which one?"),
            (vec![String::from("moon")], "`moon`"),
        ] {
            let text = run(&workspace, &words).expect_err("no such benchmark");
            assert!(text.to_string().contains(fault), "{text}");
        }
    }
}
