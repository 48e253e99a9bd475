//! One step of a command: a program that is run, timed, and quoted when it fails.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Why a command stopped, with what the user can do about it.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// A program to run, built like `std::process::Command`.
#[derive(Debug)]
pub(crate) struct Step {
    program: String,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    command: Command,
}

impl Step {
    /// A step that runs `program` in the folder `from`.
    pub(crate) fn new(program: impl AsRef<OsStr>, from: &Path) -> Self {
        let mut command = Command::new(&program);
        command.current_dir(from);
        Self {
            program: program.as_ref().to_string_lossy().into_owned(),
            arguments: Vec::new(),
            variables: Vec::new(),
            command,
        }
    }

    /// A step that runs cargo, the same one that runs us.
    pub(crate) fn cargo(from: &Path) -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut step = Self::new(cargo, from);
        step.program = String::from("cargo");
        step
    }

    /// Adds arguments.
    pub(crate) fn arguments<S: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        for word in words {
            self.arguments
                .push(word.as_ref().to_string_lossy().into_owned());
            self.command.arg(word);
        }
        self
    }

    /// Sets an environment variable, which is quoted with the step.
    pub(crate) fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((
            String::from(name),
            value.as_ref().to_string_lossy().into_owned(),
        ));
        self.command.env(name, value);
        self
    }

    /// The step as one could type it into a shell.
    fn typed(&self) -> String {
        let variables = self
            .variables
            .iter()
            .map(|(name, value)| format!("{name}={}", quoted(value)));
        let words = std::iter::once(&self.program)
            .chain(&self.arguments)
            .map(|word| quoted(word));
        variables.chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Runs the program with our own input and output and waits for it.
    pub(crate) fn run(mut self, title: &str) -> Result<(), Failure> {
        let typed = self.typed();
        println!("\n== {title}: {typed}");
        let begin = Instant::now();
        let outcome = self.command.status();
        let seconds = begin.elapsed().as_secs_f64();
        let because = match outcome {
            Ok(status) if status.success() => {
                println!("== {title}: done in {seconds:.1} s");
                return Ok(());
            }
            Ok(status) => format!("{status}, after {seconds:.1} s"),
            Err(error) => format!("could not be started: {error}"),
        };
        Err(Failure(format!(
            "{title} failed ({because}). To run it again:\n  {typed}"
        )))
    }
}

/// A word as the shell needs it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        String::from(word)
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_quotes_the_command_that_repeats_it() {
        let here = Path::new(".");
        let step = Step::new("sh", here)
            .variable("SEED", "4 2")
            .arguments(["-c", "exit 3"]);
        let text = step
            .run("demo")
            .expect_err("exit 3 is a failure")
            .to_string();
        assert!(text.contains("demo failed (exit status: 3"), "{text}");
        assert!(text.contains("SEED='4 2' sh -c 'exit 3'"), "{text}");
    }

    #[test]
    fn a_missing_program_is_a_failure_and_says_so() {
        let step = Step::new("no-such-program-here", Path::new("."));
        let text = step
            .run("demo")
            .expect_err("there is no such program")
            .to_string();
        assert!(text.contains("could not be started"), "{text}");
    }

    #[test]
    fn quotes_inside_a_word_survive_the_shell() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("--flag=a/b.c"), "--flag=a/b.c");
        assert_eq!(quoted(""), "''");
    }
}
