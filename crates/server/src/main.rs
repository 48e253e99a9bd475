//! The `flatwater` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    flatwater_server::main()
}
