//! What the gates showed of a change.

use crucible_run::{BaselineGate, report_lines};
use crucible_verify::{
    BrokenOutcome, GateIsolation, GateTests, Strength, TestList, VerifyReport, VerifyResult,
};
use serde::{Deserialize, Serialize};

use crate::attempt::FindingView;
use crate::check::{CandidatesView, ObjectionsView, SecondWorldView};
use crate::text::RedactedText;

/// The gates of a change that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerificationView {
    /// Whether every gate passed.
    pub is_passed: bool,
    /// What the gates have shown, in the words of `run status`; empty if they refuse the change.
    pub shown: Vec<RedactedText>,
    /// The commands that ran, in order.
    pub commands: Vec<CommandView>,
    /// The names of the gates that ran.
    pub gates: Vec<RedactedText>,
    /// The gates of them that are commands, with their results.
    #[serde(default)]
    pub results: Vec<GateResultView>,
    /// Why the change may not land.
    pub failures: Vec<RedactedText>,
    /// Findings that do not refuse the change.
    pub warnings: Vec<FindingView>,
    /// The tests of each gate that reports them, compared with those before the change.
    pub tests: Vec<TestsView>,
    /// How much of the isolation each gate had, as `gate: level`.
    pub isolation: Vec<RedactedText>,
    /// The broken-change check, if it was made.
    pub broken_change: Option<BrokenChangeView>,
    /// The strength of the gates, if it was measured.
    pub strength: Option<StrengthView>,
    /// What the gates showed in a second world, if they ran there.
    #[serde(default)]
    pub second_world: Option<SecondWorldView>,
    /// What the changed lines newly reach.
    pub sinks: Vec<SinkView>,
    /// Why the change was chosen, if it was compared with others.
    #[serde(default)]
    pub candidates: Option<CandidatesView>,
    /// The objections against the change, if anybody was asked.
    #[serde(default)]
    pub objections: Option<ObjectionsView>,
    /// The git tree that was verified.
    pub tree: Option<RedactedText>,
}

/// A command that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandView {
    /// The command on one line.
    pub command: RedactedText,
    /// Its exit code, as in shells.
    pub exit_code: i32,
}

/// The result of a gate that is a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateResultView {
    /// The gate.
    pub id: RedactedText,
    /// How much of the isolation it had.
    pub isolation: RedactedText,
    /// The codes of the findings that refuse the change; empty if it passed.
    pub failures: Vec<RedactedText>,
    /// Its tests by result; empty if it reports none.
    pub tests: Vec<(RedactedText, u64)>,
}

/// The tests of a gate, compared with those before the change: how many there are, and the first names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestsView {
    /// The gate.
    pub gate: RedactedText,
    /// Each group that is not empty: its name, the number of tests, and the first names.
    pub groups: Vec<(RedactedText, u64, Vec<RedactedText>)>,
}

/// The broken-change check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenChangeView {
    /// The best outcome of a gate that counts.
    pub outcome: BrokenOutcome,
    /// The functions that were broken.
    pub functions: Vec<RedactedText>,
    /// How many constants were wrong.
    pub constants: u64,
    /// Changed code that was not broken, with the reason.
    pub not_broken: Vec<RedactedText>,
    /// Each gate that counts, with its outcome and the tests that stayed green.
    pub gates: Vec<(RedactedText, BrokenOutcome, Vec<RedactedText>)>,
}

/// How many mistakes in the changed lines the gates notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrengthView {
    /// Mistakes that a gate noticed.
    pub noticed: u64,
    /// Mistakes that were tried.
    pub tried: u64,
    /// Mistakes that there are.
    pub mutants: u64,
    /// The share of the tried mistakes that were noticed, in percent; absent if none was tried.
    pub percent: Option<u64>,
    /// The required share in percent; 0 for none.
    pub required: u64,
    /// Mistakes that no gate noticed.
    pub survivors: Vec<SurvivorView>,
}

/// A mistake that no gate noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurvivorView {
    /// The file and the line.
    pub at: RedactedText,
    /// What was done.
    pub what: RedactedText,
    /// The mistake as a diff.
    pub diff: RedactedText,
}

/// What a changed line newly reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkView {
    /// The file and the line.
    pub at: RedactedText,
    /// The kind, such as `network`.
    pub kind: RedactedText,
    /// The name that shows it.
    pub name: RedactedText,
}

/// A gate before any change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateView {
    /// Its id.
    pub id: RedactedText,
    /// Its command on one line.
    pub command: RedactedText,
    /// Whether it passed before any change.
    pub is_passed: bool,
    /// How it ended then.
    pub end: RedactedText,
    /// Why it does not count, if it does not.
    pub set_aside: Option<RedactedText>,
}

impl GateView {
    pub(crate) fn from_gate(gate: &BaselineGate) -> Self {
        Self {
            id: RedactedText::new(&gate.id),
            command: RedactedText::new(&gate.command),
            is_passed: gate.is_passed,
            end: RedactedText::new(&gate.end),
            set_aside: gate.set_aside.as_deref().map(RedactedText::new),
        }
    }
}

impl VerificationView {
    pub(crate) fn from_report(report: &VerifyReport) -> Self {
        let text = RedactedText::new;
        let is_passed = report.result == VerifyResult::Pass;
        let redacted_texts = if is_passed {
            RedactedText::all(&report_lines(report))
        } else {
            Vec::new()
        };
        Self {
            is_passed,
            shown: redacted_texts,
            commands: report
                .commands
                .iter()
                .map(|row| CommandView {
                    command: text(&row.cmd),
                    exit_code: row.exit_code,
                })
                .collect(),
            gates: report
                .executed_gates
                .iter()
                .map(|gate| text(gate.as_str()))
                .collect(),
            results: report
                .isolation
                .iter()
                .map(|row| GateResultView::new(row, report))
                .collect(),
            failures: report
                .failures
                .iter()
                .map(|failure| {
                    text(&format!(
                        "{} {}: {}",
                        failure.kind, failure.id, failure.message
                    ))
                })
                .collect(),
            warnings: report
                .warnings
                .iter()
                .map(FindingView::from_finding)
                .collect(),
            tests: report.tests.iter().map(TestsView::from_tests).collect(),
            isolation: report
                .isolation
                .iter()
                .map(|row| text(&format!("{}: {}", row.gate, row.level.name())))
                .collect(),
            broken_change: report.broken_change.as_ref().map(|check| BrokenChangeView {
                outcome: check.outcome,
                functions: RedactedText::all(&check.functions),
                constants: check.constants,
                not_broken: RedactedText::all(&check.not_broken),
                gates: check
                    .gates
                    .iter()
                    .map(|gate| {
                        (
                            text(&gate.id),
                            gate.outcome,
                            RedactedText::all(&gate.unaffected),
                        )
                    })
                    .collect(),
            }),
            strength: report.strength.as_ref().map(StrengthView::from_strength),
            second_world: report
                .second_world
                .as_ref()
                .map(SecondWorldView::from_world),
            candidates: report.candidates.as_ref().map(CandidatesView::from_choice),
            objections: report.objections.as_ref().map(ObjectionsView::from_check),
            sinks: report
                .sinks
                .iter()
                .map(|sink| SinkView {
                    at: text(&sink.at),
                    kind: text(&sink.kind),
                    name: text(&sink.name),
                })
                .collect(),
            tree: report.tree.as_deref().map(text),
        }
    }
}

impl GateResultView {
    fn new(row: &GateIsolation, report: &VerifyReport) -> Self {
        let gate = row.gate.as_str();
        let refused = report.failures.iter().filter(|failure| failure.id == gate);
        let tests = report.tests.iter().find(|tests| tests.gate == row.gate);
        let groups = tests.map(|tests| TestsView::from_tests(tests).groups);
        Self {
            id: RedactedText::new(gate),
            isolation: RedactedText::new(row.level.name()),
            failures: refused
                .map(|failure| RedactedText::new(&failure.kind))
                .collect(),
            tests: groups
                .into_iter()
                .flatten()
                .map(|(name, count, _)| (name, count))
                .collect(),
        }
    }
}

impl StrengthView {
    fn from_strength(strength: &Strength) -> Self {
        let survivors = strength.survivors.iter().map(|survivor| SurvivorView {
            at: RedactedText::new(&survivor.at),
            what: RedactedText::new(&survivor.what),
            diff: RedactedText::new(&survivor.diff),
        });
        Self {
            noticed: strength.noticed,
            tried: strength.tried,
            mutants: strength.mutants,
            percent: strength.percent(),
            required: strength.required,
            survivors: survivors.collect(),
        }
    }
}

impl TestsView {
    fn from_tests(tests: &GateTests) -> Self {
        let groups: [(&str, &TestList); 8] = [
            ("fixed", &tests.fixed),
            ("still failing", &tests.still_failing),
            ("broken", &tests.broken),
            ("new and failing", &tests.new_failing),
            ("added", &tests.added),
            ("gone", &tests.gone),
            ("skipped", &tests.skipped),
            ("flaky", &tests.flaky),
        ];
        Self {
            gate: RedactedText::new(tests.gate.as_str()),
            groups: groups
                .into_iter()
                .filter(|(_, list)| !list.is_empty())
                .map(|(name, list)| {
                    (
                        RedactedText::new(name),
                        list.count,
                        RedactedText::all(&list.names),
                    )
                })
                .collect(),
        }
    }
}
