//! `crucible gates`: which gates a run would use, and how they fare.
//!
//! There are three outcomes, shown here and by the exit code: a gate passes, it fails, or it could not run and so says nothing.

use std::path::PathBuf;

use clap::Args;
use crucible_llm::configured::strength;
use crucible_model::{ExitStatus, Finding, Outcome, VerdictReport, one_line};
use crucible_run::configured::{GateChoice, no_repository};
use crucible_run::{GateCheck, GateState, judge_checks};
use crucible_verify::GateSpec;
use serde::Serialize;

use crate::app::App;
use crate::arguments::strengths;
use crate::error::CommandError;
use crate::gate_output::{GateShown, checked, show_results, shown};

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

/// What `--json` prints.
#[derive(Serialize)]
struct GatesShown {
    schema_version: &'static str,
    gates: Vec<GateShown>,
}

/// What `--run --json` prints.
#[derive(Serialize)]
struct RunShown {
    schema_version: String,
    verdict: Outcome,
    findings: Vec<Finding>,
    gates: Vec<GateShown>,
}

impl Gates {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let start = app.absolute(&self.repo);
        let flags: Vec<(&str, String)> = self
            .sandbox
            .iter()
            .map(|strength| ("sandbox.strength", strength.clone()))
            .collect();
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
    fn chosen(&self, gates: Vec<GateSpec>) -> Result<Vec<GateSpec>, CommandError> {
        if let Some(unknown) = self
            .names
            .iter()
            .find(|name| gates.iter().all(|gate| gate.id.as_str() != *name))
        {
            let known: Vec<&str> = gates.iter().map(|gate| gate.id.as_str()).collect();
            return Err(CommandError::usage(format!("no gate {unknown:?}"))
                .hint(format!("There are: {}", known.join(", "))));
        }
        let is_named = |gate: &GateSpec| self.names.iter().any(|name| name == gate.id.as_str());
        Ok(gates
            .into_iter()
            .filter(|gate| self.names.is_empty() || is_named(gate))
            .collect())
    }
}

fn show(app: &App, gates: &[GateSpec]) -> Result<(), CommandError> {
    if app.output.is_json() {
        let gates: Vec<GateShown> = gates.iter().map(|gate| shown(gate, None)).collect();
        return app.output.json(&GatesShown {
            schema_version: "crucible-gates-v1",
            gates,
        });
    }
    for (index, gate) in gates.iter().enumerate() {
        if index > 0 {
            app.output.line("");
        }
        lines(gate)
            .iter()
            .for_each(|line| app.output.line(&one_line(line)));
    }
    Ok(())
}

/// A gate for people.
fn lines(gate: &GateSpec) -> Vec<String> {
    let shown = shown(gate, None);
    let mut lines = vec![
        shown.id,
        format!("  command  {}", gate.command_line()),
        format!("  from     {}", shown.source),
        format!(
            "  in       {}",
            if shown.cwd.is_empty() {
                "the repository's top"
            } else {
                &shown.cwd
            }
        ),
    ];
    lines.extend(
        gate.setup
            .iter()
            .map(|words| format!("  setup    {}", command_line(words))),
    );
    if !shown.env.is_empty() {
        lines.push(format!("  env      {}", shown.env.join(", ")));
    }
    if shown.canary.is_some() {
        lines.push("  canary   off: it counts without a canary run".to_owned());
    }
    lines.push(format!(
        "  limits   {} s, network {}, level {}",
        shown.timeout_s, shown.network, shown.level
    ));
    lines
}

/// Prints how the gates fare, and turns it into the way the process ends.
fn report(app: &App, gates: &[GateSpec], checks: &[GateCheck]) -> Result<ExitStatus, CommandError> {
    if app.output.is_json() {
        let VerdictReport {
            schema_version,
            verdict,
            findings,
        } = judge_checks(checks).report("crucible-gates-run-v1");
        let gates = gates
            .iter()
            .zip(checks)
            .map(|(gate, check)| shown(gate, Some(check)))
            .collect();
        app.output.json(&RunShown {
            schema_version,
            verdict,
            findings,
            gates,
        })?;
    } else {
        show_results(app, checks);
    }
    let is_any = |wanted: fn(&GateState) -> bool| checks.iter().any(|check| wanted(&check.state));
    Ok(
        if is_any(|state| matches!(state, GateState::CouldNotRun { .. })) {
            ExitStatus::Usage
        } else if is_any(|state| matches!(state, GateState::Fails { .. })) {
            ExitStatus::Refused
        } else {
            ExitStatus::Success
        },
    )
}

fn command_line(words: &[String]) -> String {
    words
        .iter()
        .map(|word| crucible_host::words::shell_word(word))
        .collect::<Vec<_>>()
        .join(" ")
}
