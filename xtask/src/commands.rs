//! The table of commands and what each one runs, in order.

use crate::bench;
use crate::layers;
use crate::python::{Environment, environment};
use crate::step::{Failure, Step};
use crate::tidy;
use crate::workspace::Workspace;

type Run = fn(&Workspace, &[String]) -> Result<(), Failure>;

/// Name, what it does, the function that does it.
const COMMANDS: [(&str, &str, Run); 7] = [
    (
        "test",
        "everything: check, unit, then client (what CI runs)",
        test,
    ),
    ("check", "format and lints", check),
    (
        "bench",
        "measurements: `bench peers` compares the index with hnswlib and usearch",
        bench::run,
    ),
    (
        "unit",
        "all Rust tests, the rules of `layers` and `tidy` among them",
        unit,
    ),
    (
        "client",
        "the Python suite against the real binary; extra words go to pytest",
        client,
    ),
    (
        "layers",
        "the module order that each Cargo.toml declares",
        show_layers,
    ),
    (
        "tidy",
        "ASCII, open ends, names, links, invariants",
        show_tidy,
    ),
];

/// Runs the command of this name; without one, lists them.
pub(crate) fn run(name: Option<&str>, rest: &[String]) -> Result<(), Failure> {
    let Some(name) = name else {
        println!("cargo xtask NAME, one of:");
        for (name, purpose, _) in COMMANDS {
            println!("  {name:8} {purpose}");
        }
        return Ok(());
    };
    let Some((_, _, action)) = COMMANDS.iter().find(|(known, _, _)| *known == name) else {
        return Err(Failure(format!(
            "no command `{name}`; `cargo xtask` lists them"
        )));
    };
    action(&Workspace::find(), rest)
}

fn test(workspace: &Workspace, rest: &[String]) -> Result<(), Failure> {
    check(workspace, &[])?;
    unit(workspace, &[])?;
    // With all targets the features are those of the tests just built: nothing is compiled again.
    run_client(workspace, &["--workspace", "--all-targets"], rest)
}

fn check(workspace: &Workspace, _rest: &[String]) -> Result<(), Failure> {
    let root = &workspace.root;
    Step::cargo(root)
        .arguments(["fmt", "--all", "--check"])
        .run("format")?;
    Step::cargo(root)
        .arguments([
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ])
        .run("lints")
}

fn unit(workspace: &Workspace, rest: &[String]) -> Result<(), Failure> {
    Step::cargo(&workspace.root)
        .arguments(["test", "--locked", "--workspace"])
        .arguments(rest)
        .run("Rust tests")
}

fn client(workspace: &Workspace, rest: &[String]) -> Result<(), Failure> {
    let programs = [
        "--package",
        "flatwater-server",
        "--bin",
        "flatwater",
        "--package",
        "flatwater-bench",
        "--bin",
        "flatwater-bench",
    ];
    run_client(workspace, &programs, rest)
}

/// Builds server and benchmark in the profile of the tests (a second profile would compile everything again)
/// and runs the Python suite on copies, so that a build in the meantime does not change them.
fn run_client(workspace: &Workspace, targets: &[&str], rest: &[String]) -> Result<(), Failure> {
    Step::cargo(&workspace.root)
        .arguments(["build", "--locked"])
        .arguments(targets)
        .run("server")?;
    let interpreter = environment(
        workspace,
        &Environment {
            folder: "venv",
            requirements: workspace.root.join("tests").join("requirements.txt"),
            may_compile: false,
        },
    )?;
    let folder = workspace.target.join("client-suite");
    std::fs::create_dir_all(&folder)?;
    for program in ["flatwater", "flatwater-bench"] {
        let copy = folder.join(program);
        // Removed first: a copy onto a running program is refused ("text file busy").
        drop(std::fs::remove_file(&copy));
        std::fs::copy(workspace.target.join("debug").join(program), &copy)?;
    }
    let binary = folder.join("flatwater");
    Step::new(interpreter, &workspace.root.join("tests"))
        .variable("FLATWATER_BIN", &binary)
        .arguments(["-m", "pytest"])
        .arguments(rest)
        .run("Python tests")
}

fn show_layers(workspace: &Workspace, _rest: &[String]) -> Result<(), Failure> {
    report("layers", &layers::problems(workspace)?)
}

fn show_tidy(workspace: &Workspace, _rest: &[String]) -> Result<(), Failure> {
    report("tidy", &tidy::problems(workspace)?)
}

fn report(title: &str, problems: &[String]) -> Result<(), Failure> {
    for problem in problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => {
            println!("{title}: nothing to complain about");
            Ok(())
        }
        count => Err(Failure(format!("{title}: {count} to mend"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_command_is_refused_by_name() {
        let text = run(Some("polish"), &[])
            .expect_err("there is no such command")
            .to_string();
        assert!(text.contains("`polish`"), "{text}");
    }

    #[test]
    fn a_report_with_problems_is_a_failure() {
        assert!(report("demo", &[]).is_ok());
        assert!(report("demo", &[String::from("a.rs:1: bad")]).is_err());
    }
}
