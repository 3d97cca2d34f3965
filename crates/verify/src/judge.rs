//! Judges the outcomes of gates. Pure: from outcomes to findings.

mod changed_tests;
mod environment;
mod per_test;
mod progress;

use std::collections::BTreeSet;
use std::time::Duration;

use crucible_model::{Code, Finding, Verdict};
use crucible_sandbox::{Captured, Extent, IsolationLevel, RequestedConfinement};

use crate::broken_change::{BrokenChange, judge_broken_change};
use crate::canary::CanaryOutcome;
use crate::classify::{FailureClass, classify};
use crate::gate::{GateEnd, GateId, GateOutcome, GateRun, NotStarted, builtin_gates};
use crate::results::TestResults;
use crate::results_from::{ResultsPolicy, judge_results_from};
use crate::runner::{cannot_compile, could_not_run, no_tests_ran, runner_of};
use crate::second_world::{SecondWorld, judge_second_world};
use crate::sinks::{NewSink, judge_sinks};
use crate::strength::{Strength, judge_strength};
use crate::tally::{self, TestTally};
use crate::text::FailureEvidence;

pub use changed_tests::changed_tests;
pub use environment::failed_by_environment;
pub(crate) use per_test::is_edited_example;
pub use per_test::{GateTests, TestList};
pub(crate) use progress::title;
pub use progress::{ACCEPTABLE, may_show_progress};
use progress::{accept, judge_progress};

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
    /// The gates before any change; other gates have no baseline.
    pub gates: &'a [GateBefore],
    /// Whether the change may edit tests.
    pub tests: TestFilePolicy,
    /// The goal's words and the files that the plan names: tests that they name have to turn green.
    pub goal: &'a str,
    /// Failing tests that one commit added or changed, without a source: one cause may be behind all of a set.
    pub changed_together: &'a [BTreeSet<String>],
    /// Failing tests that a recent commit of tests added or changed: they wait for a change.
    pub waiting: &'a [String],
    /// The paths that the change touches.
    pub changed: &'a [String],
    /// Files in whose documentation the change edits examples that run as tests. Their current results were
    /// not shown to fail before.
    pub edited_examples: &'a [String],
    /// Second runs of gates on the same files, to detect flaky tests.
    pub reruns: &'a [GateRun],
    /// What the gates showed with the changed code broken on purpose, once that is known.
    pub broken: Option<&'a BrokenChange>,
    /// What the gates showed in a second world, once that is known.
    pub second_world: Option<&'a SecondWorld>,
    /// How many mistakes in the changed lines the gates notice, once that is known.
    pub strength: Option<&'a Strength>,
    /// Whether a gate must take its results from a process without tested code.
    pub results_outside: ResultsPolicy,
    /// What the changed lines newly reach.
    pub sinks: &'a [NewSink],
    /// The kinds of sinks that need an approval.
    pub sinks_need_approval: &'a [String],
    /// The codes of refusals that a person accepted for the run, out of [`ACCEPTABLE`].
    pub accepted: &'a [String],
}

/// What a gate came to before any change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateBefore {
    /// Which gate.
    pub id: String,
    /// Whether it passed.
    pub passed: bool,
    /// The tests it ran.
    pub tally: TestTally,
    /// Its results per test, if it reports them.
    pub results: Option<TestResults>,
    /// Whether its verdict counts, by its run on broken sources.
    pub canary: CanaryOutcome,
    /// Where its failing tests failed, if all failed for lack of something in the sandbox.
    pub environment: Option<FailureEvidence>,
    /// Why it could not run or did not compile, if that is unrelated to the goal.
    pub set_aside: Option<String>,
    /// Files that it consists of, that the change touches and that the plan names.
    pub touched: Vec<String>,
}

impl GateBefore {
    /// Returns whether it could not run or compile both before and now, so that it proves nothing about the
    /// change.
    fn is_set_aside(&self, run: &GateRun) -> bool {
        self.set_aside.is_some() && (cannot_compile(run).is_some() || could_not_run(run).is_some())
    }
}

/// The verdict on a gate's run on a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedRun {
    /// The findings.
    pub verdict: Verdict,
    /// Its tests compared with those before the change, if both reports are complete.
    pub tests: Option<GateTests>,
}

impl JudgedRun {
    /// Returns whether all its objections are tests that passed before and fail now, or tests below an
    /// aborted file or group. Another run may show that they are flaky.
    #[must_use]
    pub fn may_be_flaky(&self) -> bool {
        let is_of_break = |finding: &Finding| {
            let list = self
                .tests
                .as_ref()
                .and_then(|tests| tests.list(&finding.code));
            list.is_some_and(|list| {
                self.tests
                    .as_ref()
                    .is_some_and(|tests| tests.is_below_broken(list))
            })
        };
        let may_pass = |finding: &Finding| finding.code == per_test::BROKEN || is_of_break(finding);
        !self.verdict.passes() && self.verdict.errors().all(may_pass)
    }
}

/// Whether a change may edit tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TestFilePolicy {
    /// It may not: as many tests as before have to run.
    #[default]
    Fixed,
    /// The plan names some: fewer tests are only a warning.
    Editable,
}

/// Returns the findings on all outcomes in one list: in the order of the built-in gates, then other verdicts,
/// then declared or required gates that are missing.
#[must_use]
pub fn judge(outcomes: &[GateOutcome], requirements: &Requirements<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    for (_, judged) in by_gate(outcomes, requirements) {
        verdict.merge(judged.verdict);
    }
    verdict
}

/// Returns the findings of each gate with its name; `None` is the set of gates as a whole.
pub(crate) fn by_gate(
    outcomes: &[GateOutcome],
    requirements: &Requirements<'_>,
) -> Vec<(Option<GateId>, JudgedRun)> {
    let mut groups = Vec::new();
    for outcome in outcomes {
        groups.push((
            Some(outcome.id().clone()),
            judge_outcome(outcome, &requirements.baseline),
        ));
    }
    let runs = outcomes
        .iter()
        .zip(&groups)
        .filter_map(|(outcome, (_, judged))| match outcome {
            GateOutcome::Ran(run) => Some((run.as_ref(), judged)),
            GateOutcome::Judged { .. } => None,
        });
    let mut full_verdict = judge_set(runs, &requirements.baseline);
    if outcomes.is_empty() {
        full_verdict.push(Finding::error(
            Code::new("verify-no-gates"),
            "gates",
            "no gate was checked, so the change does not pass; configure gates in `.crucible/config.toml`",
        ));
    } else if !outcomes
        .iter()
        .any(|outcome| matches!(outcome, GateOutcome::Ran(_)))
    {
        // A change without any executed gate is not tested.
        full_verdict.push(Finding::error(
            Code::new("verify-no-command-gate"),
            "gates",
            "no command of the repository ran on the change; configure one in `.crucible/config.toml`",
        ));
    }
    let mut seen = BTreeSet::new();
    for outcome in outcomes {
        if !seen.insert(outcome.id()) {
            full_verdict.push(Finding::error(
                Code::new("verify-gate-duplicate"),
                outcome.id().as_str(),
                "two gates have this name; give each its own",
            ));
        }
    }
    for declared in requirements.declared {
        let builtin = builtin_gates()
            .iter()
            .find(|gate| gate.id() == declared.as_str());
        let executed = match builtin {
            Some(gate) => gate.judge(outcomes).is_some(),
            None => seen.contains(declared),
        };
        if !executed {
            full_verdict.push(Finding::error(
                Code::new("verify-gate-not-executed"),
                declared.as_str(),
                "the plan declares this gate, but it did not run",
            ));
        }
    }
    groups.push((
        None,
        JudgedRun {
            verdict: full_verdict,
            tests: None,
        },
    ));
    groups
}

fn judge_outcome(outcome: &GateOutcome, baseline: &Baseline<'_>) -> JudgedRun {
    match outcome {
        GateOutcome::Judged { verdict, .. } => JudgedRun {
            verdict: verdict.clone(),
            tests: None,
        },
        GateOutcome::Ran(run) => judge_run_after(run, baseline),
    }
}

impl<'a> Baseline<'a> {
    pub(crate) fn before(&self, run: &GateRun) -> Option<&'a GateBefore> {
        self.gates
            .iter()
            .find(|before| before.id == run.id.as_str())
    }

    /// Returns whether a gate's verdict on the change counts: it could run, and it noticed broken sources.
    pub(crate) fn counts(&self, run: &GateRun) -> bool {
        self.before(run)
            .is_none_or(|before| !before.is_set_aside(run) && before.canary.counts())
    }

    fn rerun(&self, run: &GateRun) -> Option<&'a GateRun> {
        self.reruns.iter().find(|rerun| rerun.id == run.id)
    }
}

/// Returns the findings on all commands together: one of them must count, and if tests failed before, one
/// must pass now.
#[must_use]
pub fn judge_set<'r>(
    runs: impl Iterator<Item = (&'r GateRun, &'r JudgedRun)> + Clone,
    baseline: &Baseline<'_>,
) -> Verdict {
    let mut verdict = Verdict::default();
    let before = |run: &GateRun| baseline.before(run);
    let is_set_aside = |run: &GateRun| before(run).is_some_and(|before| before.is_set_aside(run));
    let counts = |run: &GateRun| baseline.counts(run);
    if runs.clone().next().is_some() && !runs.clone().any(|(run, _)| counts(run)) {
        verdict.push(Finding::error(
            Code::new("verify-no-gate-counts"),
            "gates",
            "every gate passed on deliberately broken sources or could not run, so no gate tests the change",
        ));
    }
    let languages: Vec<&str> = runs
        .clone()
        .filter(|(run, _)| counts(run))
        .map(|(run, _)| suite_of(run))
        .collect();
    if runs.clone().any(|(run, _)| is_set_aside(run)) && !languages.contains(&"") {
        let is_tested = |path: &&String| {
            suite_of_file(path).is_none_or(|language| languages.contains(&language))
        };
        for path in baseline.changed.iter().filter(|path| !is_tested(path)) {
            verdict.push(Finding::error(
                Code::new("verify-no-gate-counts"),
                path,
                "the gate for this file could not run, and the others test another language",
            ));
        }
    }
    if let Some(finding) = judge_progress(runs.clone(), baseline) {
        verdict.push(finding);
    }
    if let Some(check) = baseline.broken {
        verdict.merge(judge_broken_change(check));
    }
    let counting = runs.clone().map(|(run, _)| run).filter(|run| counts(run));
    verdict.merge(judge_results_from(counting, baseline.results_outside));
    if let Some(check) = baseline.second_world {
        verdict.merge(judge_second_world(check));
    }
    verdict.merge(judge_sinks(baseline.sinks, baseline.sinks_need_approval));
    if let Some(strength) = baseline.strength {
        verdict.merge(judge_strength(strength));
    }
    accept(verdict, baseline.accepted)
}

/// Returns the language whose tests a gate runs; empty if it may be any.
fn suite_of(run: &GateRun) -> &'static str {
    match runner_of(&run.command).map_or("", |runner| runner.suite()) {
        // It runs any command of the project.
        "cmake" => "",
        suite => suite,
    }
}

/// Returns the language whose tests cover a source file.
fn suite_of_file(path: &str) -> Option<&'static str> {
    let ending = path.rsplit('/').next()?.rsplit_once('.')?.1;
    Some(match ending {
        "py" | "pyi" | "pyx" => "python",
        "rs" => "rust",
        "go" => "go",
        "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" | "vue" | "svelte" => {
            "javascript"
        }
        "rb" => "ruby",
        "php" => "php",
        "ex" | "exs" => "elixir",
        "cs" | "fs" | "vb" => "dotnet",
        "java" | "kt" | "scala" | "groovy" => "java",
        "pl" | "pm" => "perl",
        "c" | "h" | "cc" | "hh" | "cpp" | "hpp" | "cxx" | "hxx" | "m" | "mm" | "s" | "S"
        | "swift" | "zig" => "native",
        _ => return None,
    })
}

/// Returns the findings on one command after a change. If its tests can be compared by name, they decide.
/// Otherwise the command must succeed and run as many tests as before.
#[must_use]
pub fn judge_run_after(run: &GateRun, baseline: &Baseline<'_>) -> JudgedRun {
    let before = baseline.before(run);
    if let Some(before) = before.filter(|before| before.is_set_aside(run)) {
        let cause = before.set_aside.as_deref().unwrap_or_default();
        let hint =
            format!("it cannot run before or after the change, so it does not count: {cause}");
        let warning = Finding::warning(Code::new("verify-gate-set-aside"), run.id.as_str(), hint);
        let mut verdict = Verdict::new(vec![warning]);
        verdict.merge(remarks(run));
        return JudgedRun {
            verdict,
            tests: None,
        };
    }
    let mut judged = per_test(run, before, baseline).unwrap_or_else(|| {
        let mut verdict = judge_run(run);
        if run.end == GateEnd::Exited(0) {
            verdict.merge(tally::compare(run, before, baseline.tests));
        }
        JudgedRun {
            verdict,
            tests: None,
        }
    });
    if before.is_some_and(|before| !before.canary.counts()) {
        judged.verdict.push(Finding::warning(
            Code::new("verify-gate-not-counted"),
            run.id.as_str(),
            "it passed on deliberately broken sources, so it does not count for the change",
        ));
    }
    if let Some(before) = before.filter(|before| !before.touched.is_empty()) {
        judged.verdict.push(Finding::warning(
            Code::new("verify-gate-touched"),
            run.id.as_str(),
            format!(
                "the change modifies files of this gate ({}), as the plan allows; check that the gate still tests the change",
                before.touched.join(", ")
            ),
        ));
    }
    if before.is_some_and(|before| before.canary == CanaryOutcome::Off) {
        judged.verdict.push(Finding::warning(
            Code::new("verify-gate-canary-off"),
            run.id.as_str(),
            "`canary = false` is set for it, so no canary run shows that it tests the change",
        ));
    }
    judged
}

/// Compares its tests by name; `None` if a report is incomplete.
fn per_test(
    run: &GateRun,
    before: Option<&GateBefore>,
    baseline: &Baseline<'_>,
) -> Option<JudgedRun> {
    fn if_complete(results: Option<&TestResults>) -> Option<&TestResults> {
        results.filter(|results| results.is_whole())
    }
    let now = if_complete(run.results.as_ref())?;
    let earlier = if_complete(before?.results.as_ref())?;
    let rerun = baseline.rerun(run);
    // A second run with less information decides nothing.
    let second_test_results = rerun.and_then(|rerun| if_complete(rerun.results.as_ref()));
    let compared = per_test::compare(&run.id, earlier, now, second_test_results, baseline);
    let mut verdict = if run.end == GateEnd::Exited(0) {
        judge_run(run)
    } else {
        remarks(run)
    };
    verdict.merge(compared.verdict);
    // Something that its tests do not show failed.
    let ended_well = |run: &GateRun| run.end == GateEnd::Exited(0);
    let runs = || std::iter::once(run).chain(rerun);
    if before.is_some_and(|before| before.passed) && verdict.passes() && !runs().any(ended_well) {
        verdict.merge(judge_run(run));
    }
    let runs = std::iter::once(run).chain(rerun.filter(|_| second_test_results.is_some()));
    let by_name = [
        "verify-fewer-tests",
        "verify-more-skipped",
        "verify-tally-missing",
    ];
    for finding in runs.flat_map(|run| {
        tally::compare(run, before, baseline.tests)
            .findings()
            .to_vec()
    }) {
        let is_named = !compared.tests.gone.is_empty() || !compared.tests.skipped.is_empty();
        let is_there = verdict.findings().contains(&finding);
        let is_told_by_name = is_named && by_name.contains(&finding.code.as_str());
        if !is_there && !is_told_by_name {
            verdict.push(finding);
        }
    }
    Some(JudgedRun {
        verdict,
        tests: Some(compared.tests),
    })
}

/// Returns the findings on one command: an error unless it exited with 0; warnings if it ran no test or was
/// only partly isolated; an info if its output was cut.
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
                "`{}` succeeded without running a test, so it proves nothing about the change",
                run.command_line()
            ),
        ));
    }
    verdict.merge(remarks(run));
    verdict
}

/// What deserves a look however the command ended: its isolation, and output that was cut.
fn remarks(run: &GateRun) -> Verdict {
    let mut verdict = Verdict::default();
    let subject = run.id.as_str();
    if let Some(receipt) = &run.isolation
        && (receipt.level != IsolationLevel::Full || receipt.requested == RequestedConfinement::Off)
    {
        let missing: Vec<String> = receipt
            .missing
            .iter()
            .map(|missing_layer| missing_layer.layer.to_string())
            .collect();
        verdict.push(Finding::warning(
            Code::new("verify-isolation-partial"),
            subject,
            format!(
                "it ran without these protections: {}; see `crucible sandbox status`",
                missing.join(", ")
            ),
        ));
    }
    for (name, captured) in [
        ("standard output", &run.stdout),
        ("standard error", &run.stderr),
    ] {
        stream_findings(&mut verdict, subject, name, captured);
    }
    verdict
}

fn failure(run: &GateRun) -> Option<(Code, String)> {
    let command = run.command_line();
    match &run.end {
        GateEnd::Exited(0) => None,
        GateEnd::Exited(code) => {
            let class = match classify(run) {
                FailureClass::Unknown => String::new(),
                class => format!(" ({})", class.as_str()),
            };
            let hint = format!(
                "`{command}` exited with {code}{class}; its output is in the run's `logs/`"
            );
            Some((Code::new("verify-gate-failed"), hint))
        }
        GateEnd::Signalled(signal) => {
            let hint = format!(
                "`{command}` was killed by signal {signal}; check whether it crashed, or give the machine more memory"
            );
            Some((Code::new("verify-gate-killed"), hint))
        }
        GateEnd::TimedOut { after } => Some((
            Code::new("verify-gate-timeout"),
            format!(
                "`{command}` was killed after {}; give it more time or make it faster",
                seconds(*after)
            ),
        )),
        GateEnd::OutputLimit => Some((
            Code::new("verify-gate-output-limit"),
            format!("`{command}` was killed because it printed too much; make it print less"),
        )),
        GateEnd::DiskLimit { most } => Some((
            Code::new("verify-gate-disk-limit"),
            format!(
                "`{command}` was killed because it wrote more than {} to the disk; make it write less",
                size(most.0)
            ),
        )),
        GateEnd::NotStarted {
            why: NotStarted::EmptyCommand | NotStarted::ToolMissing,
            message,
        } => Some((Code::new("verify-tool-missing"), message.clone())),
        GateEnd::NotStarted {
            why: NotStarted::Setup,
            message,
        } => Some((Code::new("verify-gate-setup"), message.clone())),
        GateEnd::NotStarted {
            why: NotStarted::Sandbox,
            message,
        } => Some((Code::new("verify-sandbox-refused"), message.clone())),
    }
}

fn stream_findings(verdict: &mut Verdict, subject: &str, name: &str, captured: &Captured) {
    if captured.extent == Extent::Cut {
        verdict.push(Finding::info(
            Code::new("verify-log-cut"),
            subject,
            format!(
                "only the last {} of its {name}'s bytes were kept",
                captured.bytes.len()
            ),
        ));
    }
}

fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = UNITS
        .into_iter()
        .find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |(unit, name)| format!("{} {name}", bytes / unit),
    )
}

fn seconds(time: Duration) -> String {
    match (time.as_secs(), time.subsec_millis()) {
        (whole, 0) => format!("{whole} s"),
        (whole, millis) => format!("{whole}.{millis:03} s"),
    }
}

#[cfg(test)]
pub(crate) mod tests;
