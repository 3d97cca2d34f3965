//! The project's own tooling: `cargo xtask tidy | test | ci | bench`.
//!
//! This file owns the command line; each task has a module of its own. Tooling is not the product:
//! it may start processes, write files, read the environment and print, which no library crate may.
//!
//! What always holds: a task that fails ends with exit code 1 and says what to do next.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tooling starts processes, writes under target/ and .tools/, and talks to the terminal"
)]

mod bench;
mod ci;
mod error;
mod live;
mod memory;
mod process;
mod root;
mod test;
mod tidy;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::TaskError;
use crate::root::Root;

/// The project's own tooling.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", disable_version_flag = true)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Check the invariants of ARCHITECTURE.md that a program can check.
    Tidy(tidy::TidyArgs),
    /// Install what the tests need, then run every test.
    Test(test::TestArgs),
    /// Run what CI runs: format, lints, tidy, dependency policy, tests and the demo.
    Ci(ci::CiArgs),
    /// Measure the product beside what it is compared with.
    Bench(bench::BenchArgs),
}

fn main() -> ExitCode {
    match run(Args::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<(), TaskError> {
    let root = Root::find()?;
    match task {
        Task::Tidy(args) => tidy::run(&root, &args),
        Task::Test(args) => test::run(&root, &args),
        Task::Ci(args) => ci::run(&root, &args),
        Task::Bench(args) => bench::run(&root, &args),
    }
}
