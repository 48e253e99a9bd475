//! The commands that studies and their runs have, one line each.

use std::error::Error;

use crate::options::{Flag, Given, help};
use crate::report::run::Run;
use crate::study::setup::{self, Setup};
use crate::study::{contention, merge, optimizers, wire};
use crate::{interrupt, report};

/// A command: its name, what it does, its tables of options.
struct Command {
    name: &'static str,
    text: &'static str,
    flags: &'static [&'static [Flag]],
    run: fn(&Given) -> Result<(), Box<dyn Error>>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "optimizers",
        text: "Qdrant's study: upload, draining, steady, for 13 settings of the optimizers",
        flags: &[setup::FLAGS, optimizers::FLAGS],
        run: optimizer_study,
    },
    Command {
        name: "merge",
        text: "Milvus's study: searches from 1 to many clients before and after a merge of segments",
        flags: &[setup::FLAGS, merge::FLAGS],
        run: merge_study,
    },
    Command {
        name: "contention",
        text: "Qdrant's count of slow requests: searches beside writes, each at a fixed rate",
        flags: &[setup::FLAGS, contention::FLAGS],
        run: contention_study,
    },
    Command {
        name: "wire",
        text: "what REST and gRPC add: uploads and searches by each, beside the embedded engine",
        flags: &[setup::FLAGS, wire::FLAGS],
        run: wire::run,
    },
    Command {
        name: "compare",
        text: "runs side by side: compare RUN RUN...",
        flags: &[],
        run: |given| report::compare::print(&given.words),
    },
    Command {
        name: "gate",
        text: "fails where a ratio is worse than asked: gate RUN BASE, or gate RUN --to PHASE",
        flags: &[report::gate::FLAGS],
        run: report::gate::check,
    },
];

/// Whether there is a command of this name.
pub(crate) fn is_one(name: &str) -> bool {
    COMMANDS.iter().any(|command| command.name == name)
}

/// Runs it.
pub(crate) fn run(name: &str, words: &[&str]) -> Result<(), Box<dyn Error>> {
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        return Err(format!("no command `{name}`").into());
    };
    if words.contains(&"--help") {
        let head = format!(
            "flatwater-bench {name} [--OPTION VALUE]...: {}",
            command.text
        );
        return Err(help(&head, command.flags).into());
    }
    let given = Given::parse(command.flags, words).map_err(|error| format!("{name}: {error}"))?;
    (command.run)(&given)
}

/// The usage of the older commands with these behind it.
pub(crate) fn usage(text: &str) -> String {
    let line = |command: &Command| format!("\n  {:12}{}", command.name, command.text);
    let lines: String = COMMANDS.iter().map(line).collect();
    format!("{text}\n\nflatwater-bench COMMAND --help tells more of:{lines}")
}

fn optimizer_study(given: &Given) -> Result<(), Box<dyn Error>> {
    let plan = optimizers::Plan::read(given)?;
    study("optimizers", given, |setup, run| {
        optimizers::run(setup, &plan, |measured| run.add(&measured))
    })
}

fn merge_study(given: &Given) -> Result<(), Box<dyn Error>> {
    let plan = merge::Plan::read(given)?;
    study("merge", given, |setup, run| {
        merge::run(setup, &plan, |measured| run.add(&measured))
    })
}

fn contention_study(given: &Given) -> Result<(), Box<dyn Error>> {
    let plan = contention::Plan::read(given)?;
    study("contention", given, |setup, run| {
        contention::run(setup, &plan, |measured| run.add(&measured))
    })
}

/// Opens what is needed, runs the study, writes the run.
fn study(
    name: &str,
    given: &Given,
    run: impl FnOnce(&mut Setup, &mut Run) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    interrupt::listen()?;
    let mut setup = Setup::open(given)?;
    let mut folder = Run::begin(name, given, &setup)?;
    let outcome = run(&mut setup, &mut folder);
    folder.finish()?;
    report::text::print(folder.json(), folder.folder());
    outcome
}
