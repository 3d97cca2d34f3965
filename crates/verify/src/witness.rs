//! Decides whether the test of an objection is a witness, and what to find out for that. Pure.

use crate::gate::GateRun;
use crate::lone_test::{failed_by_assertion, status_of_test};
use crate::objections::{ObjectionOutcome, ObjectionTest};
use crate::results::TestStatus;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::GateEnd;
    use crate::judge::tests::run_of;
    use crate::objections::tests::test;

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
}
