//! Checks beside the gates: the second world, objections, candidates and held-out tests.

use crucible_model::Digest;
use crucible_verify::{
    CandidateChoice, HeldOutOutcome, HeldOutReport, Objection, ObjectionOutcome, ObjectionPolicy,
    Objections, SecondWorld, WorldGate, WorldOutcome, WorldPolicy,
};
use serde::{Deserialize, Serialize};

use crate::text::RedactedText;

/// What the gates showed in a second world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondWorldView {
    /// The policy in force.
    pub policy: WorldPolicy,
    /// What was different there.
    pub differences: Vec<RedactedText>,
    /// Each gate that counts.
    pub gates: Vec<WorldGateView>,
}

/// A gate in the second world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorldGateView {
    /// The gate.
    pub id: RedactedText,
    /// What it showed.
    pub outcome: WorldOutcome,
    /// Tests that pass in the first world only, and nothing else explains it.
    pub differing: Vec<RedactedText>,
    /// Tests that also fail in the first world with the settings of the second.
    pub by_settings: Vec<RedactedText>,
    /// Tests that fail in the second world without the change, too.
    pub without_change: Vec<RedactedText>,
    /// Tests that failed in one of two runs in the second world.
    pub flaky: Vec<RedactedText>,
}

/// Why a change was chosen among others that passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CandidatesView {
    /// The attempt that proposed the chosen change.
    pub chosen: u64,
    /// What decided.
    pub reason: RedactedText,
    /// Every change that passed.
    pub compared: Vec<CandidateView>,
}

/// A change that passed, as it was compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CandidateView {
    /// The attempt that proposed it.
    pub attempt: u64,
    /// Objections against it that have a witness.
    pub witnesses: u64,
    /// The share of mistakes in its lines that the gates notice, in percent; absent if it was not measured.
    pub strength: Option<u64>,
    /// Lines that it adds and removes.
    pub lines: u64,
}

/// The objections against a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectionsView {
    /// The policy in force.
    pub policy: ObjectionPolicy,
    /// Why the answer of the objector could not be used, if it could not.
    pub unusable: Option<RedactedText>,
    /// How many of them have a witness.
    pub witnesses: u64,
    /// How many more there are than were judged.
    pub not_judged: u64,
    /// Each objection that was judged.
    pub objections: Vec<ObjectionView>,
}

/// One objection: a test, and the sentence that it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectionView {
    /// What it is.
    pub outcome: ObjectionOutcome,
    /// Why.
    pub reason: RedactedText,
    /// The path and the name of the test.
    pub test: RedactedText,
    /// The content of the test's file.
    pub text: RedactedText,
    /// Where the sentence is from: `goal`, or a path of the repository.
    pub source: RedactedText,
    /// The sentence.
    pub sentence: RedactedText,
    /// The value that the test expects.
    pub expected: RedactedText,
    /// What the second author derives, if one does.
    pub second: Option<RedactedText>,
    /// The attempt that it was first raised against, if that is an earlier one.
    pub raised_against: Option<u64>,
}

/// The held-out tests of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldOutView {
    /// How many files the run was started with.
    pub files: u64,
    /// What they showed before the landing; absent if they did not run.
    pub result: Option<HeldOutResultView>,
}

/// What held-out tests showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldOutResultView {
    /// Whether the gates ran them, and how they ended.
    pub outcome: HeldOutOutcome,
    /// Tests of them that passed.
    pub passed: u64,
    /// Tests and commands that fail with these files only.
    pub failed: u64,
    /// The digests of the files.
    pub digests: Vec<Digest>,
}

impl SecondWorldView {
    pub(crate) fn from_world(world: &SecondWorld) -> Self {
        let gate = |gate: &WorldGate| WorldGateView {
            id: RedactedText::new(&gate.id),
            outcome: gate.outcome,
            differing: RedactedText::all(&gate.differing),
            by_settings: RedactedText::all(&gate.by_settings),
            without_change: RedactedText::all(&gate.without_change),
            flaky: RedactedText::all(&gate.flaky),
        };
        Self {
            policy: world.policy,
            differences: RedactedText::all(&world.differences),
            gates: world.gates.iter().map(gate).collect(),
        }
    }
}

impl CandidatesView {
    pub(crate) fn from_choice(choice: &CandidateChoice) -> Self {
        let rows = choice.compared.iter().map(|row| CandidateView {
            attempt: row.attempt,
            witnesses: row.witnesses,
            strength: row.strength,
            lines: row.lines,
        });
        Self {
            chosen: choice.chosen,
            reason: RedactedText::new(&choice.reason),
            compared: rows.collect(),
        }
    }
}

impl ObjectionsView {
    pub(crate) fn from_check(check: &Objections) -> Self {
        let has_witness = |one: &&Objection| one.outcome == ObjectionOutcome::Witness;
        let witnesses = check.objections.iter().filter(has_witness).count();
        Self {
            policy: check.policy,
            unusable: check.unusable.as_deref().map(RedactedText::new),
            witnesses: witnesses as u64,
            not_judged: check.not_judged,
            objections: check
                .objections
                .iter()
                .map(ObjectionView::from_objection)
                .collect(),
        }
    }
}

impl ObjectionView {
    fn from_objection(one: &Objection) -> Self {
        let text = RedactedText::new;
        Self {
            outcome: one.outcome,
            reason: text(&one.reason),
            test: text(&format!("{}::{}", one.test.path, one.test.name)),
            text: text(&one.test.text),
            source: text(&one.rests_on.source),
            sentence: text(&one.rests_on.sentence),
            expected: text(&one.expected),
            second: one.second.as_deref().map(text),
            raised_against: one.raised_against,
        }
    }
}

impl HeldOutView {
    /// Returns the held-out tests; `None` if the run has none.
    pub(crate) fn new(files: usize, report: Option<&HeldOutReport>) -> Option<Self> {
        let result = report.map(|report| HeldOutResultView {
            outcome: report.outcome,
            passed: report.passed,
            failed: report.failed,
            digests: report.files.clone(),
        });
        let files = files as u64;
        (files > 0 || result.is_some()).then_some(Self { files, result })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Every number and word of the report is in the view, so pages and `--json` can show it.
    #[test]
    fn views_have_all_of_the_report() {
        let objection = json!({
            "test": { "path": "tests/test_o.py", "name": "test_none", "text": "assert pages([]) == [[]]\n" },
            "rests_on": { "source": "goal", "sentence": "one empty page" }, "expected": "[[]]", "second": "[[]]",
            "outcome": "witness", "reason": "the test fails", "raised_against": 2 });
        let mut advice = objection.clone();
        advice["outcome"] = "advice".into();
        let check = json!({ "policy": "blocking", "unusable": "no answer", "not_judged": 4, "objections": [objection, advice] });
        let check: Objections = serde_json::from_value(check).unwrap();
        let view = serde_json::to_value(ObjectionsView::from_check(&check)).unwrap();
        assert_eq!(
            (&view["witnesses"], &view["not_judged"], &view["policy"]),
            (&json!(1), &json!(4), &json!("blocking"))
        );
        let first = &view["objections"][0];
        assert_eq!(first["test"], "tests/test_o.py::test_none");
        assert_eq!(
            (
                &first["second"],
                &first["raised_against"],
                &first["sentence"]
            ),
            (&json!("[[]]"), &json!(2), &json!("one empty page"))
        );

        let world = json!({ "policy": "required", "differences": ["home"], "gates": [{ "id": "tests", "outcome": "differs",
            "differing": ["a"], "by_settings": ["b"], "without_change": ["c"], "flaky": ["d"] }] });
        let choice = json!({ "chosen": 2, "reason": "it changes 1 lines; the next one 2",
            "compared": [{ "attempt": 2, "witnesses": 0, "strength": 50, "lines": 1 }] });
        let same = |document: &Value, view: Value| assert_eq!(&view, document);
        let read: SecondWorld = serde_json::from_value(world.clone()).unwrap();
        same(
            &world,
            serde_json::to_value(SecondWorldView::from_world(&read)).unwrap(),
        );
        let read: CandidateChoice = serde_json::from_value(choice.clone()).unwrap();
        same(
            &choice,
            serde_json::to_value(CandidatesView::from_choice(&read)).unwrap(),
        );

        let report = json!({ "schema_version": "crucible-held-out-v1", "files": [Digest::compute(b"t")], "passed": 3, "failed": 0,
            "outcome": "passed" });
        let report: HeldOutReport = serde_json::from_value(report).unwrap();
        let view = HeldOutView::new(1, Some(&report)).unwrap();
        let result = view.result.unwrap();
        assert_eq!((view.files, result.passed, result.digests.len()), (1, 3, 1));
        assert_eq!(HeldOutView::new(0, None), None);
    }
}
