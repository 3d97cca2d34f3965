//! The `crucible` program: arguments in, text and exit codes out. All else is in the libraries.

mod app;
mod blocked_write;
mod commands;
mod error;
mod event_loop;
mod input;
mod output;
mod program;
mod progress;
mod spinner;
mod table;
mod text;
mod usage;

use std::process::ExitCode;

fn main() -> ExitCode {
    program::main()
}
