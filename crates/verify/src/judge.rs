//! Decides what the outcomes of gates mean. Pure: from outcomes to findings.

use std::collections::BTreeSet;
use std::time::Duration;

use crucible_model::{Code, Finding, Verdict};
use crucible_sandbox::{Captured, Extent, IsolationLevel, Requested};

use crate::gate::{GateEnd, GateId, GateOutcome, GateRun, NotStarted, builtin_gates};
use crate::runner::no_tests_ran;
use crate::tally::{self, TestTally};

/// What must have been checked.
#[derive(Debug, Clone, Copy)]
pub struct Requirements<'a> {
    /// The gates that the plan declares. Each must have been executed.
    pub declared: &'a [GateId],
    /// What the gates came to before the change.
    pub baseline: Baseline<'a>,
}

/// What a change is compared with.
#[derive(Debug, Clone, Copy, Default)]
pub struct Baseline<'a> {
    /// The gates before any change; a gate that is not among them is compared with nothing.
    pub gates: &'a [GateBefore],
    /// Whether the change may edit tests.
    pub tests: TestFiles,
}

/// What a gate came to before any change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateBefore {
    /// Which gate.
    pub id: String,
    /// Whether it passed.
    pub passed: bool,
    /// The tests it ran.
    pub tally: TestTally,
}

/// Whether a change may edit tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TestFiles {
    /// It may not: as many tests as before have to run.
    #[default]
    Fixed,
    /// The plan names some: fewer tests are worth a look, and no more.
    Editable,
}

/// The findings about all outcomes: one list, in the order of the built-in gates, then other verdicts, then
/// what was declared or required and is not there.
#[must_use]
pub fn judge(outcomes: &[GateOutcome], requirements: &Requirements<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    for (_, findings) in by_gate(outcomes, requirements) {
        verdict.merge(findings);
    }
    verdict
}

/// The findings with the gate that each group is about; `None` stands for the set of gates as a whole.
pub(crate) fn by_gate(
    outcomes: &[GateOutcome],
    requirements: &Requirements<'_>,
) -> Vec<(Option<GateId>, Verdict)> {
    let mut groups = Vec::new();
    for outcome in outcomes {
        groups.push((Some(outcome.id().clone()), judge_outcome(outcome, &requirements.baseline)));
    }
    let mut whole = Verdict::default();
    if outcomes.is_empty() {
        whole.push(Finding::error(
            Code::new("verify-no-gates"),
            "gates",
            "nothing was checked, so nothing passes; name gates in `.crucible/config.toml`",
        ));
    } else if !outcomes.iter().any(|outcome| matches!(outcome, GateOutcome::Ran(_))) {
        // A change that nothing was run on has not been tried.
        whole.push(Finding::error(
            Code::new("verify-no-command-gate"),
            "gates",
            "no command of the repository was run on the change; name one in `.crucible/config.toml`",
        ));
    }
    let mut seen = BTreeSet::new();
    for outcome in outcomes {
        if !seen.insert(outcome.id()) {
            whole.push(Finding::error(
                Code::new("verify-gate-duplicate"),
                outcome.id().as_str(),
                "two gates have this name; give each its own",
            ));
        }
    }
    for declared in requirements.declared {
        let builtin = builtin_gates().iter().find(|gate| gate.id() == declared.as_str());
        let executed = match builtin {
            Some(gate) => gate.judge(outcomes).is_some(),
            None => seen.contains(declared),
        };
        if !executed {
            whole.push(Finding::error(
                Code::new("verify-gate-not-executed"),
                declared.as_str(),
                "the plan declares this gate and nothing was executed for it",
            ));
        }
    }
    groups.push((None, whole));
    groups
}

fn judge_outcome(outcome: &GateOutcome, baseline: &Baseline<'_>) -> Verdict {
    match outcome {
        GateOutcome::Judged { verdict, .. } => verdict.clone(),
        GateOutcome::Ran(run) => judge_run_after(run, baseline),
    }
}

/// The findings about one command on a change: those of [`judge_run`], and, where it ended well, what its tests came to beside
/// what they came to before.
#[must_use]
pub fn judge_run_after(run: &GateRun, baseline: &Baseline<'_>) -> Verdict {
    let mut verdict = judge_run(run);
    if run.end == GateEnd::Exited(0) {
        let gate = run.id.as_str();
        let before = baseline.gates.iter().find(|before| before.id == gate);
        verdict.merge(tally::compare(gate, &TestTally::read(run), before, baseline.tests));
    }
    verdict
}

/// The findings about one command: an error unless it exited with 0; warnings where it ran no test, was
/// isolated only in part; an info where it printed more than was kept.
#[must_use]
pub fn judge_run(run: &GateRun) -> Verdict {
    let mut verdict = Verdict::default();
    let subject = run.id.as_str();
    if let Some((code, hint)) = failure(run) {
        verdict.push(Finding::error(code, subject, hint));
    } else if no_tests_ran(run) {
        verdict.push(Finding::warning(
            Code::new("verify-no-tests-ran"),
            subject,
            format!(
                "`{}` ended well without running a test; it says nothing about the change",
                run.command_line()
            ),
        ));
    }
    if let Some(receipt) = &run.isolation
        && (receipt.level != IsolationLevel::Full || receipt.requested == Requested::Off)
    {
        let missing: Vec<String> = receipt.missing.iter().map(|lost| lost.layer.to_string()).collect();
        verdict.push(Finding::warning(
            Code::new("verify-isolation-partial"),
            subject,
            format!("it ran without these walls: {}; see `crucible sandbox status`", missing.join(", ")),
        ));
    }
    for (name, captured) in [("standard output", &run.stdout), ("standard error", &run.stderr)] {
        stream_findings(&mut verdict, subject, name, captured);
    }
    verdict
}

fn failure(run: &GateRun) -> Option<(Code, String)> {
    let command = run.command_line();
    match &run.end {
        GateEnd::Exited(0) => None,
        GateEnd::Exited(code) => Some((
            Code::new("verify-gate-failed"),
            format!(
                "`{command}` exited with {code} ({}); mend what its output in `logs/` names",
                crate::classify::classify(run).as_str()
            ),
        )),
        GateEnd::Signalled(signal) => {
            let hint = format!(
                "`{command}` was ended by signal {signal}; see whether it crashed, or give the machine more memory"
            );
            Some((Code::new("verify-gate-killed"), hint))
        }
        GateEnd::TimedOut { after } => Some((
            Code::new("verify-gate-timeout"),
            format!("`{command}` was ended after {}; give it more time or make it faster", seconds(*after)),
        )),
        GateEnd::OutputLimit => Some((
            Code::new("verify-gate-output-limit"),
            format!("`{command}` was ended because it printed without end; make it print less"),
        )),
        GateEnd::DiskLimit { most } => Some((
            Code::new("verify-gate-disk-limit"),
            format!(
                "`{command}` was ended because it wrote more than {} to the disk; make it write less",
                size(most.0)
            ),
        )),
        GateEnd::NotStarted { why: NotStarted::EmptyCommand | NotStarted::ToolMissing, message } => {
            Some((Code::new("verify-tool-missing"), message.clone()))
        }
        GateEnd::NotStarted { why: NotStarted::Setup, message } => {
            Some((Code::new("verify-gate-setup"), message.clone()))
        }
        GateEnd::NotStarted { why: NotStarted::Sandbox, message } => {
            Some((Code::new("verify-sandbox-refused"), message.clone()))
        }
    }
}

fn stream_findings(verdict: &mut Verdict, subject: &str, name: &str, captured: &Captured) {
    if captured.extent == Extent::Cut {
        verdict.push(Finding::info(
            Code::new("verify-log-cut"),
            subject,
            format!("only the last {} of its {name}'s bytes were kept", captured.bytes.len()),
        ));
    }
}

fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = UNITS.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{bytes} bytes"), |(unit, name)| format!("{} {name}", bytes / unit))
}

fn seconds(time: Duration) -> String {
    match (time.as_secs(), time.subsec_millis()) {
        (whole, 0) => format!("{whole} s"),
        (whole, millis) => format!("{whole}.{millis:03} s"),
    }
}

#[cfg(test)]
pub(crate) mod tests;
