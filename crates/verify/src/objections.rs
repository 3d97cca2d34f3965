//! Decides whether an objection against a change has a witness. Pure.
//!
//! An objection is a test and the sentence that it rests on. It has a witness if the sentence is in its source, the test uses
//! public names only and fails by assertion on the change, alone and among the others, and if a second author, who has not seen
//! the change, derives the same expected value from the sentence. Anything else is advice. `witness.rs` decides; models only
//! write.

use crucible_model::{Code, Finding, RepoPath, Verdict};
use serde::{Deserialize, Serialize};

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
pub(crate) mod tests {
    use super::*;

    pub(crate) fn test() -> ObjectionTest {
        ObjectionTest {
            path: "tests/test_o.py".parse().unwrap(),
            name: "test_none".to_owned(),
            text: String::new(),
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
