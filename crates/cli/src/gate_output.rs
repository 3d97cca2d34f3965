//! Gates and their results, as `crucible gates` and `crucible init` run and print them.

use std::path::Path;

use crucible_model::one_line;
use crucible_run::{GateCheck, GateState, RunError, check_gates};
use crucible_sandbox::Strength;
use crucible_settings::Settings;
use crucible_verify::GateSpec;
use serde::Serialize;

use crate::app::App;
use crate::error::CommandError;
use crate::progress::Progress;

/// Failed tests that are shown of one gate.
const SHOWN_TESTS: usize = 20;

/// One gate, as `--json` prints it.
#[derive(Serialize)]
pub(crate) struct GateShown {
    pub(crate) id: String,
    pub(crate) command: Vec<String>,
    pub(crate) source: String,
    pub(crate) level: &'static str,
    pub(crate) cwd: String,
    pub(crate) setup: Vec<Vec<String>>,
    /// Names alone: values may be long, and stand where they were set.
    pub(crate) env: Vec<String>,
    pub(crate) timeout_s: u64,
    pub(crate) network: &'static str,
    /// Left out where the gate has to notice broken sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) canary: Option<&'static str>,
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

/// Runs these gates on copies of the repository at `top`. The inner error is what stands in the way of a copy.
pub(crate) fn checked(
    app: &App,
    config: &Settings,
    top: &Path,
    gates: &[GateSpec],
    strength: Strength,
) -> Result<Result<Vec<GateCheck>, RunError>, CommandError> {
    let sandbox = app.runtime().sandbox;
    let world = app.world(&sandbox, config)?;
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
