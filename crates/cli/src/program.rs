//! From the arguments to the exit code: parses the command line, runs the command and reports its error.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use crucible_host::clock::clock_from;
use crucible_host::env::Environment;
use crucible_model::{ExitStatus, Failure};
use crucible_terminal::Output;

use crate::app::{App, INNER_STAGE};
use crate::commands::{Arguments, Command};
use crate::usage;

pub(crate) fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == INNER_STAGE) {
        return crucible_sandbox::inner_main(arguments.get(2..).unwrap_or_default());
    }
    let env = Environment::capture();
    let parsed = Arguments::try_parse_from(&arguments);
    let mode = parsed
        .as_ref()
        .map_or_else(|_| usage::mode(&arguments), Arguments::mode);
    let output = Output::new(&env, mode);
    let unwritten = match &parsed {
        // Whose 1 is a verdict.
        Ok(Arguments {
            command: Command::Gate(_),
            ..
        }) => ExitStatus::Usage,
        Ok(_) | Err(_) => ExitStatus::Refused,
    };
    let status = match parsed {
        Ok(parsed) => run(&parsed.command, env, &output),
        Err(error) => usage::report(&error, &arguments, &output),
    };
    ExitCode::from(output.conclude(status, unwritten).code())
}

fn run(command: &Command, env: Environment, output: &Output) -> ExitStatus {
    let result = clock_from(&env).map_err(Failure::from).and_then(|clock| {
        let app = App::new(env, clock, output.clone(), Vec::new());
        let result = command.dispatch(&app);
        app.warn_of_variables();
        result
    });
    result.unwrap_or_else(|error| {
        let error = match (error.status, command) {
            (ExitStatus::Interrupted, Command::Run(_)) => error
                .hint("Completed steps are saved; continue the run with `crucible run advance`."),
            (ExitStatus::Interrupted, Command::Eval(_)) => {
                error.hint("Finished tasks are kept; continue with the same command and --resume.")
            }
            _ => error,
        };
        output.error(&error);
        error.status
    })
}
