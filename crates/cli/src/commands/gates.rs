//! `crucible gates`: which gates a run would use, and how they fare.
//!
//! There are three outcomes, shown here and by the exit code: a gate passes, it fails, or it could not run and so says nothing.

use std::path::PathBuf;

use clap::Args;
use crucible_llm::configured::strength;
use crucible_model::{ExitStatus, Failure, one_line};
use crucible_run::configured::{GateChoice, no_repository};
use crucible_run::{CheckedGates, GateCheck, GateDocument, ListedGates};
use crucible_verify::GateSpec;

use crate::app::App;
use crate::arguments::{overrides, strengths};
use crate::gate_output::{checked, show_results};

const EXAMPLES: &str = "\
Examples:
  crucible gates                                 what a run started here would use
  crucible gates --run                           run all of them on a copy
  crucible gates --run tests                     run one
  crucible gates --run --test \"npm test\"         try a command before you write it down

Exits 0 when all gates pass, 1 when one fails, 2 when one could not run (a program is missing, its setup failed, no test ran).";

/// List the gates that a run would use, or run them
///
/// Gates are the commands that verify a change. They come from [gates] in the configuration, else from the
/// build files of this directory, else from those of the nearest directory above it. With --run each gate
/// runs in the sandbox on a copy of your files. Your files are not changed and no model is called.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Gates {
    /// Names of the gates [default: all]
    names: Vec<String>,
    /// Run the gates
    #[arg(long)]
    run: bool,
    /// A directory in the repository
    #[arg(long, default_value = ".", value_name = "DIR")]
    repo: PathBuf,
    /// Use this command instead of the gates; it is split into words without a shell. May be given several
    /// times
    #[arg(long = "test", value_name = "CMD")]
    tests: Vec<String>,
    /// Minimum sandbox strength [default: sandbox.strength, required]
    #[arg(long, value_name = "STRENGTH", value_parser = strengths())]
    sandbox: Option<String>,
}

impl Gates {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let start = app.absolute(&self.repo);
        let flags = overrides([("sandbox.strength", self.sandbox.clone())]);
        let config = app.config(&start, &flags)?;
        let top = app
            .repository_of(&start)
            .ok_or_else(|| no_repository(&start))?;
        let choice = GateChoice::new(&self.tests, Some(&top), &start);
        let gates = self.chosen(choice.all(&config, &top)?)?;
        if !self.run {
            show(app, &gates)?;
            return Ok(ExitStatus::Success);
        }
        let checks = checked(app, &config, &top, &gates, strength(&config)?)??;
        report(app, &gates, &checks)
    }

    /// Those of the gates that are named.
    fn chosen(&self, gates: Vec<GateSpec>) -> Result<Vec<GateSpec>, Failure> {
        if let Some(unknown) = self
            .names
            .iter()
            .find(|name| gates.iter().all(|gate| gate.id.as_str() != *name))
        {
            let known: Vec<&str> = gates.iter().map(|gate| gate.id.as_str()).collect();
            return Err(Failure::usage(format!("no gate {unknown:?}"))
                .hint(format!("There are: {}", known.join(", "))));
        }
        let is_named = |gate: &GateSpec| self.names.iter().any(|name| name == gate.id.as_str());
        Ok(gates
            .into_iter()
            .filter(|gate| self.names.is_empty() || is_named(gate))
            .collect())
    }
}

fn show(app: &App, gates: &[GateSpec]) -> Result<(), Failure> {
    if app.output.is_json() {
        return app.output.json(&ListedGates::new(gates));
    }
    for (index, gate) in gates.iter().enumerate() {
        if index > 0 {
            app.output.line("");
        }
        for line in GateDocument::lines(gate) {
            app.output.line(&one_line(&line));
        }
    }
    Ok(())
}

/// Prints how the gates fare, and turns it into the way the process ends.
fn report(app: &App, gates: &[GateSpec], checks: &[GateCheck]) -> Result<ExitStatus, Failure> {
    if app.output.is_json() {
        app.output.json(&CheckedGates::new(gates, checks))?;
    } else {
        show_results(app, checks);
    }
    Ok(CheckedGates::exit_status(checks))
}
