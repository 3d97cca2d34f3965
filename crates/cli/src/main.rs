//! The `crucible` program: arguments in, text and exit codes out. All else is in the libraries.

mod app;
mod arguments;
mod blocked_write;
mod commands;
mod event_loop;
mod gate_output;
mod input;
mod names;
mod output;
mod program;
mod progress;
mod run_council;
mod run_start;
mod spec_project;
mod spinner;
mod table;
mod usage;

use std::process::ExitCode;

fn main() -> ExitCode {
    program::main()
}
