//! Gates and their results as JSON.

use crucible_host::words::command_line;
use crucible_model::{ExitStatus, Finding, Outcome, VerdictReport, one_line};
use crucible_verify::GateSpec;
use serde::Serialize;

use crate::check_gates::{GateCheck, GateState, judge_checks};

/// Failed tests that are shown of one gate.
const SHOWN_TESTS: usize = 20;

/// The document of `gates`.
#[derive(Serialize)]
pub struct ListedGates {
    schema_version: &'static str,
    gates: Vec<GateDocument>,
}

/// The document of `gates --run`.
#[derive(Serialize)]
pub struct CheckedGates {
    schema_version: String,
    verdict: Outcome,
    findings: Vec<Finding>,
    gates: Vec<GateDocument>,
}

/// A gate with its result.
#[derive(Serialize)]
pub struct GateDocument {
    /// Its name.
    pub id: String,
    command: Vec<String>,
    /// Where it comes from.
    pub source: String,
    /// When it runs.
    pub level: &'static str,
    /// The directory it runs in; empty for the top.
    pub cwd: String,
    setup: Vec<Vec<String>>,
    /// Names only: values may be long.
    pub env: Vec<String>,
    /// Its time limit.
    pub timeout_s: u64,
    /// What it can reach.
    pub network: &'static str,
    /// Omitted if the gate must notice broken sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<GateResult>,
}

/// What came of a gate.
#[derive(Serialize)]
struct GateResult {
    outcome: &'static str,
    duration_ms: u64,
    failed_tests: Vec<String>,
    detail: String,
    remedy: String,
}

impl ListedGates {
    /// Creates the document of these gates.
    #[must_use]
    pub fn new(gates: &[GateSpec]) -> Self {
        Self {
            schema_version: "crucible-gates-v1",
            gates: GateDocument::list(gates, &[]),
        }
    }
}

impl CheckedGates {
    /// Creates the document of gates that ran.
    #[must_use]
    pub fn new(gates: &[GateSpec], checks: &[GateCheck]) -> Self {
        let VerdictReport {
            schema_version,
            verdict,
            findings,
        } = judge_checks(checks).report("crucible-gates-run-v1");
        Self {
            schema_version,
            verdict,
            findings,
            gates: GateDocument::list(gates, checks),
        }
    }

    /// Returns how a command ends that ran these gates.
    #[must_use]
    pub fn exit_status(checks: &[GateCheck]) -> ExitStatus {
        let is_any =
            |requested: fn(&GateState) -> bool| checks.iter().any(|check| requested(&check.state));
        if is_any(|state| matches!(state, GateState::CouldNotRun { .. })) {
            ExitStatus::Usage
        } else if is_any(|state| matches!(state, GateState::Fails { .. })) {
            ExitStatus::Refused
        } else {
            ExitStatus::Success
        }
    }
}

impl GateDocument {
    /// Creates the document of a gate, with its result if it ran.
    #[must_use]
    pub fn new(gate: &GateSpec, check: Option<&GateCheck>) -> Self {
        Self {
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

    /// Creates the documents of gates; the first ones have these results.
    #[must_use]
    pub fn list(gates: &[GateSpec], checks: &[GateCheck]) -> Vec<Self> {
        let one = |(index, gate): (usize, &GateSpec)| Self::new(gate, checks.get(index));
        gates.iter().enumerate().map(one).collect()
    }
}

fn result(check: &GateCheck) -> GateResult {
    let duration_ms = u64::try_from(check.duration.as_millis()).unwrap_or(u64::MAX);
    let (outcome, failed_tests, detail, remedy) = match &check.state {
        GateState::Passes => ("passes", Vec::new(), String::new(), String::new()),
        GateState::Fails { end, tests, .. } => ("fails", tests.clone(), end.clone(), String::new()),
        GateState::CouldNotRun { cause, remedy } => {
            ("could-not-run", Vec::new(), cause.clone(), remedy.clone())
        }
    };
    GateResult {
        outcome,
        duration_ms,
        failed_tests,
        detail,
        remedy,
    }
}

impl GateCheck {
    /// Returns how the gate fares, as lines. Only the lines of an excerpt may hold hidden characters.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let (id, took) = (&self.id, format!("{:.1} s", self.duration.as_secs_f64()));
        match &self.state {
            GateState::Passes => vec![format!("{id} passes ({took})")],
            GateState::Fails {
                end,
                tests,
                excerpt,
            } => {
                let mut lines = vec![one_line(&format!("{id} fails ({took}): {end}"))];
                let shown = tests.iter().take(SHOWN_TESTS);
                lines.extend(shown.map(|test| format!("    {}", one_line(test))));
                if tests.len() > SHOWN_TESTS {
                    lines.push(format!("    and {} more", tests.len() - SHOWN_TESTS));
                }
                if tests.is_empty() {
                    lines.extend(excerpt.lines().map(|line| format!("    {line}")));
                }
                lines.push(
                    "    A run can still start; it refuses a change that causes other failures."
                        .to_owned(),
                );
                lines
            }
            GateState::CouldNotRun { cause, remedy } => {
                let mut lines = vec![one_line(&format!("{id} could not run: {cause}"))];
                if !remedy.is_empty() {
                    lines.push(one_line(&format!("    to do: {remedy}")));
                }
                lines
            }
        }
    }
}

impl GateDocument {
    /// Returns a gate as lines.
    #[must_use]
    pub fn lines(gate: &GateSpec) -> Vec<String> {
        let gate_document = Self::new(gate, None);
        let mut lines = vec![
            gate_document.id,
            format!("  command  {}", gate.command_line()),
            format!("  from     {}", gate_document.source),
            format!(
                "  in       {}",
                if gate_document.cwd.is_empty() {
                    "the repository's top"
                } else {
                    &gate_document.cwd
                }
            ),
        ];
        lines.extend(
            gate.setup
                .iter()
                .map(|words| format!("  setup    {}", command_line(words))),
        );
        if !gate_document.env.is_empty() {
            lines.push(format!("  env      {}", gate_document.env.join(", ")));
        }
        if gate_document.canary.is_some() {
            lines.push("  canary   off: it counts without a canary run".to_owned());
        }
        lines.push(format!(
            "  limits   {} s, network {}, level {}",
            gate_document.timeout_s, gate_document.network, gate_document.level
        ));
        lines
    }
}
