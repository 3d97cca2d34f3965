//! `crucible gates`: which gates a run would use, and how they fare.
//!
//! There are three outcomes, shown here and by the exit code: a gate passes, it fails, or it could not run and so says nothing.

pub(crate) mod settings;

use std::path::{Path, PathBuf};

use clap::Args;
use crucible_model::{Code, ExitStatus, Finding, Outcome, Verdict, VerdictReport};
use crucible_run::{GateCheck, GateState, RunError, check_gates};
use crucible_sandbox::Strength;
use crucible_settings::Settings;
use crucible_verify::GateSpec;
use serde::Serialize;

use self::settings::{GateChoice, no_repository};
use crate::app::{App, strength, strengths};
use crate::commands::run::{shared_sandbox, world};
use crate::error::CommandError;
use crate::progress::Progress;
use crate::text::one_line;

/// Failed tests that are shown of one gate.
const SHOWN_TESTS: usize = 20;

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

/// One gate, as `--json` prints it.
#[derive(Serialize)]
pub(crate) struct GateShown {
    id: String,
    command: Vec<String>,
    source: String,
    level: &'static str,
    cwd: String,
    setup: Vec<Vec<String>>,
    /// Names alone: values may be long, and stand where they were set.
    env: Vec<String>,
    timeout_s: u64,
    network: &'static str,
    /// Left out where the gate has to notice broken sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    canary: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<ResultShown>,
}

/// What came of a gate.
#[derive(Serialize)]
struct ResultShown {
    outcome: &'static str,
    duration_ms: u64,
    failed_tests: Vec<String>,
    detail: String,
    remedy: String,
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

/// Runs these gates on copies of the repository at `top`. The inner error is what stands in the way of a copy.
pub(crate) fn checked(
    app: &App,
    config: &Settings,
    top: &Path,
    gates: &[GateSpec],
    strength: Strength,
) -> Result<Result<Vec<GateCheck>, RunError>, CommandError> {
    let sandbox = shared_sandbox(app);
    let world = world(app, &sandbox, config)?;
    let mut progress = Progress::new(&app.output);
    let checks = app.block_on(async {
        Ok(match world.repository(top).await {
            Ok(git) => check_gates(&world, git, gates, strength, &mut progress).await,
            Err(error) => Err(error),
        })
    });
    progress.finish();
    checks
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

/// A gate, and what came of it, for programs.
pub(crate) fn shown(gate: &GateSpec, check: Option<&GateCheck>) -> GateShown {
    GateShown {
        id: gate.id.to_string(),
        command: gate.command.clone(),
        source: gate.source.clone(),
        level: if gate.level.is_lite() { "lite" } else { "full" },
        cwd: gate
            .cwd
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        setup: gate.setup.clone(),
        env: gate.env.keys().cloned().collect(),
        timeout_s: gate.timeout.as_secs(),
        network: "loopback",
        canary: (!gate.canary.is_on()).then_some("off"),
        result: check.map(result),
    }
}

fn result(check: &GateCheck) -> ResultShown {
    let duration_ms = u64::try_from(check.duration.as_millis()).unwrap_or(u64::MAX);
    let (outcome, failed_tests, detail, remedy) = match &check.state {
        GateState::Passes => ("passes", Vec::new(), String::new(), String::new()),
        GateState::Fails { end, tests, .. } => ("fails", tests.clone(), end.clone(), String::new()),
        GateState::CouldNotRun { cause, remedy } => {
            ("could-not-run", Vec::new(), cause.clone(), remedy.clone())
        }
    };
    ResultShown {
        outcome,
        duration_ms,
        failed_tests,
        detail,
        remedy,
    }
}

/// Prints how the gates fare, and turns it into the way the process ends.
fn report(app: &App, gates: &[GateSpec], checks: &[GateCheck]) -> Result<ExitStatus, CommandError> {
    if app.output.is_json() {
        let VerdictReport {
            schema_version,
            verdict,
            findings,
        } = verdict(checks).report("crucible-gates-run-v1");
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

/// Prints how gates fare, for people.
pub(crate) fn show_results(app: &App, checks: &[GateCheck]) {
    for check in checks {
        let (id, took) = (&check.id, format!("{:.1} s", check.duration.as_secs_f64()));
        match &check.state {
            GateState::Passes => app.output.line(&format!("{id} passes ({took})")),
            GateState::Fails {
                end,
                tests,
                excerpt,
            } => {
                app.output
                    .line(&one_line(&format!("{id} fails ({took}): {end}")));
                for test in tests.iter().take(SHOWN_TESTS) {
                    app.output.line(&format!("    {}", one_line(test)));
                }
                if tests.len() > SHOWN_TESTS {
                    app.output
                        .line(&format!("    and {} more", tests.len() - SHOWN_TESTS));
                }
                if tests.is_empty() {
                    excerpt
                        .lines()
                        .for_each(|line| app.output.line(&format!("    {line}")));
                }
                let effect =
                    "    A run can still start; it refuses a change that causes other failures.";
                app.output.line(effect);
            }
            GateState::CouldNotRun { cause, remedy } => {
                app.output
                    .line(&one_line(&format!("{id} could not run: {cause}")));
                if !remedy.is_empty() {
                    app.output.line(&one_line(&format!("    to do: {remedy}")));
                }
            }
        }
    }
}

/// The findings about gates that do not pass.
fn verdict(checks: &[GateCheck]) -> Verdict {
    let finding = |check: &GateCheck| match &check.state {
        GateState::Passes => None,
        GateState::Fails { end, .. } => Some(Finding::error(
            Code::new("verify-gate-failed"),
            check.id.as_str(),
            end.clone(),
        )),
        GateState::CouldNotRun { cause, remedy } => {
            let hint = if remedy.is_empty() {
                cause.clone()
            } else {
                format!("{cause}; {remedy}")
            };
            Some(Finding::error(
                Code::new("verify-gate-could-not-run"),
                check.id.as_str(),
                hint,
            ))
        }
    };
    Verdict::new(checks.iter().filter_map(finding).collect())
}

fn command_line(words: &[String]) -> String {
    words
        .iter()
        .map(|word| crucible_host::words::shell_word(word))
        .collect::<Vec<_>>()
        .join(" ")
}
