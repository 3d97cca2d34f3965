//! The `crucible` program: arguments in, text and exit codes out. All else is in the libraries.

mod app;
mod arguments;
mod board;
mod commands;
mod gate_output;
mod live_trace;
mod names;
mod program;
mod progress;
mod project_documents;
mod requirement_report;
mod run_council;
mod run_start;
mod spec_project;
mod tool_host;
mod usage;

use std::process::ExitCode;

fn main() -> ExitCode {
    program::main()
}
