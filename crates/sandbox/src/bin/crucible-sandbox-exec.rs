//! The inner stage as a program of its own, for the tests of this crate and for hosts other than `crucible`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    crucible_sandbox::inner_main(&args)
}
