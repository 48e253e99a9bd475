//! The virtual environment of the Python suite, under the target folder.
//!
//! 1. Use the one that is there if its interpreter starts and it was made from the same
//!    `tests/requirements.txt`.
//! 2. Else make a new one with the system's `python3 -m venv` and install the pinned packages.
//!
//! Nothing outside the target folder is changed.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::step::{Failure, Step};
use crate::workspace::Workspace;

const NO_PYTHON: &str =
    "python3 was not found; on Debian or Ubuntu: apt-get install python3 python3-venv";
const NO_VENV: &str =
    "python3 has no `venv` or no `ensurepip`; on Debian or Ubuntu: apt-get install python3-venv";

/// The interpreter of the environment, made or renewed if need be.
pub(crate) fn environment(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let folder = workspace.target.join("venv");
    let interpreter = folder.join("bin").join("python");
    let wanted = workspace.root.join("tests").join("requirements.txt");
    // Written last, so that an interrupted installation is not taken for a finished one.
    let installed = folder.join("installed-requirements.txt");
    let requirements = fs::read(&wanted)?;
    if fs::read(&installed).is_ok_and(|made_from| made_from == requirements)
        && succeeds(&interpreter, "pass")
    {
        return Ok(interpreter);
    }
    if !succeeds("python3", "pass") {
        return Err(Failure(String::from(NO_PYTHON)));
    }
    if !succeeds("python3", "import venv, ensurepip") {
        return Err(Failure(String::from(NO_VENV)));
    }
    Step::new("python3", &workspace.root)
        .arguments(["-m", "venv", "--clear"])
        .arguments([&folder])
        .run("virtual environment")?;
    Step::new(&interpreter, &workspace.root)
        .arguments([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-input",
            "--disable-pip-version-check",
        ])
        .arguments(["--only-binary", ":all:", "--requirement"])
        .arguments([&wanted])
        .run("Python packages")?;
    fs::write(installed, requirements)?;
    Ok(interpreter)
}

/// Whether `interpreter` runs this program without an error.
fn succeeds(interpreter: impl AsRef<std::ffi::OsStr>, program: &str) -> bool {
    Command::new(interpreter)
        .args(["-c", program])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_that_is_not_there_or_fails_is_not_used() {
        assert!(!succeeds("/no/such/python3", "pass"));
        assert!(!succeeds("sh", "exit 1"));
        assert!(succeeds("sh", "exit 0"));
    }
}
