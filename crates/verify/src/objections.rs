//! Decides whether an objection against a change has a witness. Pure.
//!
//! An objection is a test and the sentence that it rests on. It has a witness if the sentence is in its source, the test uses
//! public names only and fails by assertion on the change, alone and among the others, and if a second author, who has not seen
//! the change, derives the same expected value from the sentence. Anything else is advice. [`next_witness_step`] says what to
//! find out next; models only write, and no model decides.

use crucible_model::{Code, Finding, RepoPath, Verdict};
use serde::{Deserialize, Serialize};

use crate::gate::GateRun;
use crate::lone_test::{failed_by_assertion, status_of_test};
use crate::results::TestStatus;

/// Which objections refuse a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectionPolicy {
    /// Nobody is asked.
    #[default]
    Off,
    /// They are reported.
    Advisory,
    /// One with a witness refuses the change.
    Blocking,
}

impl ObjectionPolicy {
    /// Every policy, by its name in settings.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("off", Self::Off),
        ("advisory", Self::Advisory),
        ("blocking", Self::Blocking),
    ];

    /// Returns the policy of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, policy)| *policy)
    }

    /// Returns whether this is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The objections against a change, as the report keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objections {
    /// The policy in force.
    pub policy: ObjectionPolicy,
    /// Why the answer of the objector could not be used, if it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
    /// How many more there are than are judged.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_judged: u64,
    /// Each objection that is judged.
    pub objections: Vec<Objection>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One objection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objection {
    /// The test.
    pub test: ObjectionTest,
    /// The sentence that it rests on.
    pub rests_on: Sentence,
    /// The value that the test expects.
    pub expected: String,
    /// What the second author derives; absent if nobody was asked, or if the sentence does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<String>,
    /// What it is.
    pub outcome: ObjectionOutcome,
    /// Why.
    pub reason: String,
    /// The attempt that it was first raised against, if that is an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raised_against: Option<u64>,
}

/// The test of an objection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectionTest {
    /// Its path in the repository, where nothing is yet.
    pub path: RepoPath,
    /// Its name in the file.
    pub name: String,
    /// The content of the file.
    pub text: String,
}

/// A sentence, quoted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sentence {
    /// `goal`, or the path of a documentation or specification file of the repository.
    pub source: String,
    /// Its words.
    pub sentence: String,
}

/// What an objection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectionOutcome {
    /// Its test shows that the change contradicts the sentence.
    Witness,
    /// Something for a person to read.
    Advice,
}

/// What is known about an objection.
#[derive(Debug, Clone, Copy)]
pub struct WitnessFacts<'a> {
    /// The test.
    pub test: &'a ObjectionTest,
    /// Why the test cannot be judged, if it cannot; found without running it.
    pub fault: Option<&'a str>,
    /// The test alone, on the change.
    pub alone: Option<&'a GateRun>,
    /// The test among those of its gate, with another order.
    pub together: Option<&'a GateRun>,
    /// The expected value, in one spelling.
    pub expected: &'a str,
    /// What the second author derives.
    pub second: SecondAuthor<'a>,
}

/// The answer of the second author.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecondAuthor<'a> {
    /// Not asked yet.
    Unasked,
    /// The sentence does not say what to expect, or the answer could not be used.
    Undecided,
    /// This value, in one spelling.
    Expects(&'a str),
}

/// What to do next for an objection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WitnessStep {
    /// Run the test alone.
    RunAlone,
    /// Run it among those of its gate.
    RunTogether,
    /// Ask the second author.
    AskSecondAuthor,
    /// It is decided, for this reason.
    Done(ObjectionOutcome, String),
}

/// Says what to find out next about an objection, or what it is.
#[must_use]
pub fn next_witness_step(facts: &WitnessFacts<'_>) -> WitnessStep {
    let advice = |reason: &str| WitnessStep::Done(ObjectionOutcome::Advice, reason.to_owned());
    if let Some(fault) = facts.fault {
        return advice(fault);
    }
    for (run, step, place) in [
        (facts.alone, WitnessStep::RunAlone, "alone"),
        (
            facts.together,
            WitnessStep::RunTogether,
            "among the other tests",
        ),
    ] {
        let Some(run) = run else { return step };
        match status_of_test(run, facts.test) {
            None => return advice(&format!("the runner does not collect the test {place}")),
            Some(TestStatus::Passed) => {
                return advice(&format!("the test passes on the change {place}"));
            }
            Some(TestStatus::Skipped) => return advice(&format!("the test is skipped {place}")),
            Some(TestStatus::Failed) if !failed_by_assertion(run, facts.test) => {
                return advice(&format!(
                    "the test ends with an error {place}, not by its assertion"
                ));
            }
            Some(TestStatus::Failed) => {}
        }
    }
    match facts.second {
        SecondAuthor::Unasked => WitnessStep::AskSecondAuthor,
        SecondAuthor::Undecided => {
            advice("a second author cannot derive the expected value from the sentence")
        }
        SecondAuthor::Expects(value) if value != facts.expected => advice(
            "a second author derives another expected value from the sentence",
        ),
        SecondAuthor::Expects(_) => WitnessStep::Done(
            ObjectionOutcome::Witness,
            "the test fails by assertion twice, and a second author derives the same expected value".to_owned(),
        ),
    }
}

/// The fewest and the most characters of a quoted sentence.
const SENTENCE: std::ops::RangeInclusive<usize> = 12..=600;

/// Returns whether the sentence is literally in the text, apart from white space, and long enough to say something.
#[must_use]
pub fn is_quoted(sentence: &str, text: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = words(sentence);
    let is_sentence = SENTENCE.contains(&sentence.chars().count()) && sentence.contains(' ');
    is_sentence && words(text).contains(&sentence)
}

/// Returns the findings on objections: one for each with a witness, and one for all others.
#[must_use]
pub fn judge_objections(check: &Objections) -> Verdict {
    let mut verdict = Verdict::default();
    let is_witness = |objection: &&Objection| objection.outcome == ObjectionOutcome::Witness;
    for objection in check.objections.iter().filter(is_witness) {
        let Objection {
            test,
            rests_on,
            expected,
            ..
        } = objection;
        let subject = format!("{}::{}", test.path, test.name);
        let hint = format!(
            "the test fails on the change; it expects {expected}, because of {:?} ({}); make it pass, or set `[run] objections = \"advisory\"`",
            rests_on.sentence, rests_on.source
        );
        let code = Code::new("verify-objection-witness");
        verdict.push(if check.policy == ObjectionPolicy::Blocking {
            Finding::error(code, subject, hint)
        } else {
            Finding::warning(code, subject, hint)
        });
    }
    let advice = check
        .objections
        .iter()
        .filter(|one| !is_witness(one))
        .count();
    if advice > 0 {
        verdict.push(Finding::info(
            Code::new("verify-objection-advice"),
            "objections",
            format!("{advice} without a witness; read `objections` of the report"),
        ));
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::GateEnd;
    use crate::judge::tests::run_of;

    fn test() -> ObjectionTest {
        ObjectionTest {
            path: "tests/test_o.py".parse().unwrap(),
            name: "test_none".to_owned(),
            text: String::new(),
        }
    }

    /// A run of unittest with this result of the test.
    fn run(status: &str) -> GateRun {
        let output = format!(
            "test_none (tests.test_o.T.test_none) ... {status}\n\n======================================================================\n{status}: test_none (tests.test_o.T.test_none)\n----------------------------------------------------------------------\nTraceback (most recent call last):\n  File \"/copy/tests/test_o.py\", line 7, in test_none\n    self.assertEqual(pages([], 3), [[]])\nAssertionError: [] != [[]]\n\n----------------------------------------------------------------------\nRan 1 test in 0.000s\n\n{}\n",
            if status == "ok" {
                "OK"
            } else {
                "FAILED (failures=1)"
            }
        );
        let code = i32::from(status != "ok");
        run_of("python3 -m unittest", GateEnd::Exited(code), "", &output)
    }

    fn step(fault: Option<&str>, runs: [Option<&str>; 2], second: SecondAuthor<'_>) -> WitnessStep {
        let [alone, together] = runs.map(|status| status.map(run));
        next_witness_step(&WitnessFacts {
            test: &test(),
            fault,
            alone: alone.as_ref(),
            together: together.as_ref(),
            expected: "[ [ ] ]",
            second,
        })
    }

    #[test]
    fn witness_fails_twice_and_convinces_second_author() {
        use SecondAuthor::{Expects, Unasked, Undecided};
        let failed = [Some("FAIL"), Some("FAIL")];
        assert_eq!(step(None, [None, None], Unasked), WitnessStep::RunAlone);
        assert_eq!(
            step(None, [Some("FAIL"), None], Unasked),
            WitnessStep::RunTogether
        );
        assert_eq!(step(None, failed, Unasked), WitnessStep::AskSecondAuthor);
        assert!(matches!(
            step(None, failed, Expects("[ [ ] ]")),
            WitnessStep::Done(ObjectionOutcome::Witness, _)
        ));
        for (fault, runs, second) in [
            (Some("it is not quoted"), failed, Expects("[ [ ] ]")),
            (None, [Some("ok"), None], Unasked),
            (None, [Some("ERROR"), None], Unasked),
            (None, [Some("skipped 'x'"), None], Unasked),
            (None, [Some("FAIL"), Some("ok")], Unasked),
            (None, failed, Undecided),
            (None, failed, Expects("[ ]")),
        ] {
            let step = step(fault, runs, second);
            assert!(
                matches!(step, WitnessStep::Done(ObjectionOutcome::Advice, _)),
                "{step:?}"
            );
        }
    }

    #[test]
    fn sentence_must_be_in_its_source() {
        let goal = "pages must return one empty\n  page for no items";
        assert!(is_quoted("return one empty page for no items", goal));
        for wrong in [
            "",
            "page",
            "one empty",
            "return two empty pages for no items",
        ] {
            assert!(!is_quoted(wrong, goal), "{wrong}");
        }
    }

    #[test]
    fn only_blocking_witness_refuses() {
        let objection = |outcome| Objection {
            test: test(),
            rests_on: Sentence {
                source: "goal".to_owned(),
                sentence: "one empty page".to_owned(),
            },
            expected: "[[]]".to_owned(),
            second: None,
            outcome,
            reason: String::new(),
            raised_against: None,
        };
        for (policy, outcome, passes) in [
            (ObjectionPolicy::Blocking, ObjectionOutcome::Witness, false),
            (ObjectionPolicy::Blocking, ObjectionOutcome::Advice, true),
            (ObjectionPolicy::Advisory, ObjectionOutcome::Witness, true),
        ] {
            let check = Objections {
                policy,
                unusable: None,
                not_judged: 0,
                objections: vec![objection(outcome)],
            };
            let verdict = judge_objections(&check);
            assert_eq!(verdict.passes(), passes, "{policy:?} {outcome:?}");
            assert_eq!(verdict.findings().len(), 1);
        }
    }
}
