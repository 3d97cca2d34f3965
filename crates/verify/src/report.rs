//! `artifacts/verify_report.json`, a pure function of the gates' outcomes.
//!
//! The seed's fields have its form. Additional fields are optional and have no time, so that verifying the
//! same change twice gives the same bytes.

use std::collections::BTreeSet;

use crucible_model::{CanonicalError, Code, Digest, Finding, Level, Verdict, to_canonical_json};
use crucible_sandbox::{IsolationLevel, Layer};
use serde::{Deserialize, Serialize};

use crate::broken_change::BrokenChange;
use crate::candidates::CandidateChoice;
use crate::gate::{GateId, GateLevel, GateOutcome, GateRun, builtin_gates};
use crate::judge::{GateTests, Requirements, by_gate};
use crate::named_tests::{NamedTestResult, named_results};
use crate::objections::{Objections, judge_objections};
use crate::results_from::{GateResultsFrom, results_from};
use crate::second_world::SecondWorld;
use crate::sinks::NewSink;
use crate::strength::Strength;

/// The report on one attempt at a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyReport {
    /// The schema of this document.
    #[serde(default)]
    pub schema_version: ReportVersion,
    /// Whether the change may land.
    pub result: VerifyResult,
    /// Which set of gates was checked.
    pub gate: GateLevel,
    /// Which attempt this is, from 1.
    pub iteration: u64,
    /// How many attempts there may be.
    pub max_iterations: u64,
    /// The commands that were run, in their order.
    pub commands: Vec<CommandRow>,
    /// Why the change may not land; empty exactly when the result is PASS.
    pub failures: Vec<Failure>,
    /// Paths of the evidence, relative to the run directory.
    pub paths: ReportPaths,
    /// Findings that deserve a look but do not refuse the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Finding>,
    /// The gates that ran, by name; `lite` means the repository's commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub executed_gates: Vec<GateId>,
    /// The isolation of each command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolation: Vec<GateIsolation>,
    /// The tests of each gate whose results could be compared by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<GateTests>,
    /// The results of tests that the requirements of the run's task name; a test without a row did not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_tests: Vec<NamedTestResult>,
    /// Which process decides the results of each gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results_from: Vec<GateResultsFrom>,
    /// What the gates showed with the changed code broken on purpose; absent if the change was refused before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_change: Option<BrokenChange>,
    /// What the gates showed in a second world; absent if the change was refused before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_world: Option<SecondWorld>,
    /// How many mistakes in the changed lines the gates notice. How many are tried depends on a time budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strength: Option<Strength>,
    /// What the changed lines newly reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<NewSink>,
    /// Why this change was chosen among others that passed; absent if it was not compared with any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<CandidateChoice>,
    /// Tests that an objector wrote against the change; absent if nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objections: Option<Objections>,
    /// The digest of the plan that the change was judged by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_digest: Option<Digest>,
    /// The digest of the patch that was verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch_digest: Option<Digest>,
    /// The id of the git tree that was verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// The schema id of a verify report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReportVersion {
    /// The only version.
    #[default]
    #[serde(rename = "crucible-verify-report-v1")]
    V1,
}

/// The result in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum VerifyResult {
    /// The change may land.
    Pass,
    /// It may not.
    Fail,
}

/// One command that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandRow {
    /// The command on one line.
    pub cmd: String,
    /// How it ended, as [`crate::GateRun::exit_code`] spells it.
    pub exit_code: i32,
}

/// One reason why a change may not land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The code of the finding.
    pub kind: String,
    /// The gate's name, or what was missing.
    pub id: String,
    /// What happened, one sentence.
    pub message: String,
}

/// The isolation of one gate's command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateIsolation {
    /// Which gate.
    pub gate: GateId,
    /// How much of the isolation stood.
    pub level: IsolationLevel,
    /// The layers that stood.
    pub reached: Vec<Layer>,
    /// The layers that did not.
    pub missing: Vec<Layer>,
}

/// Paths of the evidence, relative to the run directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportPaths {
    /// The story of the run.
    pub trace: String,
    /// This report.
    pub verify_report: String,
    /// The failure bundle, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// What the commands printed.
    pub stdout_log: String,
    /// What the commands printed as errors.
    pub stderr_log: String,
    /// The plan, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The patch, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
}

impl Default for ReportPaths {
    /// The seed's places, without the optional ones.
    fn default() -> Self {
        Self {
            trace: "TRACE.md".to_owned(),
            verify_report: "artifacts/verify_report.json".to_owned(),
            bundle: None,
            stdout_log: "logs/verify.stdout.log".to_owned(),
            stderr_log: "logs/verify.stderr.log".to_owned(),
            plan: None,
            patch: None,
        }
    }
}

/// Everything a report is made of.
#[derive(Debug, Clone)]
pub struct ReportInput<'a> {
    /// Which set of gates was checked.
    pub gate: GateLevel,
    /// Which attempt this is, from 1.
    pub iteration: u64,
    /// How many attempts there may be.
    pub max_iterations: u64,
    /// What came of the gates.
    pub outcomes: &'a [GateOutcome],
    /// What must have been checked.
    pub requirements: Requirements<'a>,
    /// Tests whose results the report lists, by the names that their runners report.
    pub named_tests: &'a BTreeSet<String>,
    /// Where the evidence lies.
    pub paths: ReportPaths,
    /// The digest of the plan.
    pub plan_digest: Option<Digest>,
    /// The digest of the patch.
    pub patch_digest: Option<Digest>,
    /// The id of the git tree.
    pub tree: Option<String>,
}

/// Makes the report. The result is PASS exactly when no finding is an error.
#[must_use]
pub fn report(input: &ReportInput<'_>) -> VerifyReport {
    let mut failures = Vec::new();
    let mut warnings = Vec::new();
    let mut tests = Vec::new();
    for (gate, judged) in by_gate(input.outcomes, &input.requirements) {
        tests.extend(judged.tests);
        for finding in judged.verdict.findings() {
            if finding.level == Level::Error {
                failures.push(as_failure(gate.as_ref(), finding));
            } else {
                warnings.push(finding.clone());
            }
        }
    }
    if input.iteration > input.max_iterations {
        let hint = format!(
            "this is attempt {} of {} allowed ones",
            input.iteration, input.max_iterations
        );
        let finding = Finding::error(Code::new("verify-iterations-exceeded"), "iterations", hint);
        failures.push(as_failure(None, &finding));
    }
    let result = if failures.is_empty() {
        VerifyResult::Pass
    } else {
        VerifyResult::Fail
    };
    VerifyReport {
        schema_version: ReportVersion::V1,
        result,
        gate: input.gate,
        iteration: input.iteration,
        max_iterations: input.max_iterations,
        commands: commands(input),
        failures,
        paths: input.paths.clone(),
        warnings,
        executed_gates: executed(input.outcomes),
        isolation: isolation(input.outcomes),
        tests,
        named_tests: named_results(
            input.named_tests,
            input.outcomes,
            &input.requirements.baseline,
        ),
        results_from: results_of(input.outcomes),
        broken_change: input.requirements.baseline.broken.cloned(),
        second_world: input.requirements.baseline.second_world.cloned(),
        strength: input.requirements.baseline.strength.cloned(),
        sinks: input.requirements.baseline.sinks.to_vec(),
        candidates: None,
        objections: None,
        plan_digest: input.plan_digest,
        patch_digest: input.patch_digest,
        tree: input.tree.clone(),
    }
}

impl VerifyReport {
    /// Adds objections, and returns the findings on them.
    pub fn add_objections(&mut self, objections: Objections) -> Verdict {
        let verdict = judge_objections(&objections);
        self.add(&verdict);
        self.objections = Some(objections);
        verdict
    }

    /// Adds the findings of a check that came after the gates.
    fn add(&mut self, verdict: &Verdict) {
        for finding in verdict.findings() {
            if finding.level == Level::Error {
                self.failures.push(as_failure(None, finding));
                self.result = VerifyResult::Fail;
            } else {
                self.warnings.push(finding.clone());
            }
        }
    }

    /// Returns the report as canonical JSON: the bytes of `artifacts/verify_report.json`.
    ///
    /// # Errors
    ///
    /// Fails as [`to_canonical_json`] does, which cannot happen for this type.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CanonicalError> {
        to_canonical_json(self)
    }
}

fn as_failure(gate: Option<&GateId>, finding: &Finding) -> Failure {
    let id = gate
        .map_or(finding.subject.as_str(), GateId::as_str)
        .to_owned();
    let message = if id == finding.subject {
        finding.hint.clone()
    } else {
        format!("{}: {}", finding.subject, finding.hint)
    };
    Failure {
        kind: finding.code.as_str().to_owned(),
        id,
        message,
    }
}

/// Every command that was run, second runs last.
fn commands(input: &ReportInput<'_>) -> Vec<CommandRow> {
    let first = input.outcomes.iter().filter_map(|outcome| match outcome {
        GateOutcome::Ran(run) => Some(run.as_ref()),
        GateOutcome::Judged { .. } => None,
    });
    let row = |run: &GateRun| CommandRow {
        cmd: run.command_line(),
        exit_code: run.exit_code(),
    };
    first
        .chain(input.requirements.baseline.reruns)
        .map(row)
        .collect()
}

/// The built-in gates of which something was executed, then every other name in its order.
fn executed(outcomes: &[GateOutcome]) -> Vec<GateId> {
    let builtin = builtin_gates()
        .iter()
        .filter(|gate| gate.judge(outcomes).is_some());
    let names = builtin.filter_map(|gate| gate.id().parse().ok());
    let mut seen = BTreeSet::new();
    names
        .chain(outcomes.iter().map(|outcome| outcome.id().clone()))
        .filter(|id| seen.insert(id.clone()))
        .collect()
}

fn results_of(outcomes: &[GateOutcome]) -> Vec<GateResultsFrom> {
    let row = |outcome: &GateOutcome| match outcome {
        GateOutcome::Ran(run) => Some(GateResultsFrom {
            gate: run.id.clone(),
            from: results_from(run),
        }),
        GateOutcome::Judged { .. } => None,
    };
    outcomes.iter().filter_map(row).collect()
}

fn isolation(outcomes: &[GateOutcome]) -> Vec<GateIsolation> {
    let row = |outcome: &GateOutcome| {
        let GateOutcome::Ran(run) = outcome else {
            return None;
        };
        let receipt = run.isolation.as_ref()?;
        Some(GateIsolation {
            gate: run.id.clone(),
            level: receipt.level,
            reached: receipt
                .reached
                .iter()
                .map(|reached| reached.layer)
                .collect(),
            missing: receipt
                .missing
                .iter()
                .map(|missing| missing.layer)
                .collect(),
        })
    };
    outcomes.iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests;
