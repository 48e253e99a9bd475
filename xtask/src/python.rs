//! Virtual environments of Python under the target folder: the client suite's, the benchmarks'.
//!
//! 1. Use the one that is there if its interpreter starts and it was made from the same file of
//!    requirements.
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

/// An environment: where it lies and what is in it.
#[derive(Debug)]
pub(crate) struct Environment<'a> {
    /// Folder below the target folder.
    pub(crate) folder: &'a str,
    /// Pinned packages, as pip reads them.
    pub(crate) requirements: PathBuf,
    /// Whether packages that come as source are compiled, which needs a compiler.
    pub(crate) may_compile: bool,
}

/// The interpreter of an environment, made or renewed if need be.
pub(crate) fn environment(
    workspace: &Workspace,
    wanted: &Environment<'_>,
) -> Result<PathBuf, Failure> {
    let folder = workspace.target.join(wanted.folder);
    let interpreter = folder.join("bin").join("python");
    // Written last, so that an interrupted installation is not taken for a finished one.
    let installed = folder.join("installed-requirements.txt");
    let requirements = fs::read(&wanted.requirements)?;
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
    let binary_only: &[&str] = if wanted.may_compile {
        &[]
    } else {
        &["--only-binary", ":all:"]
    };
    Step::new(&interpreter, &workspace.root)
        .arguments([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-input",
            "--disable-pip-version-check",
        ])
        .arguments(binary_only)
        .arguments(["--requirement".as_ref(), wanted.requirements.as_os_str()])
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
