//! The prompts of the objector and the second author, and the parsing of their answers. Pure.
//!
//! The objector sees goal, base and change and writes tests. The second author sees one sentence, the public functions
//! that a
//! test names, and the test without its expected value; never the change. Both only write: `crucible_verify` decides
//! what an
//! objection is.

use crucible_llm::Message;
use crucible_model::{PromptBuilder, RepoPath, Untrusted, unfenced};
use crucible_pack::ContextPack;
use crucible_patch::EXPECTED_BLANK;
use crucible_secrets::Scanner;
use crucible_verify::{GateSpec, ObjectionTest, Sentence};
use serde::Deserialize;

use crate::dispatch::evidence::{EXPECTATION_FORM, OBJECTIONS_FORM, add_pack_files};

/// The most objections against one change that are judged.
const MAX_OBJECTIONS: usize = 3;

/// An objection as it was raised.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RaisedObjection {
    pub(crate) test: ObjectionTest,
    pub(crate) expected: String,
    pub(crate) rests_on: Sentence,
}

/// The answer of an objector.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectorAnswer {
    objections: Vec<RaisedObjection>,
}

/// Asks for objections against a change.
pub(crate) fn objections_question(
    goal: &str,
    pack: &ContextPack,
    gates: &[GateSpec],
    patch: &str,
) -> Vec<Message> {
    let mut prompt = PromptBuilder::new()
        .fixed_text("Goal of a change of source code: ")
        .operator(goal)
        .fixed_text("\n\nThe change below passed its checks. Look for a case in which it contradicts the goal or the documentation, and write a test that \
               fails on the change for this reason. A program reads your answer, runs the test and judges it. Raise no objection that you \
               cannot support with a sentence.\n\nThe checks:\n");
    for gate in gates {
        prompt = prompt.operator(&gate.command_line()).fixed_text("\n");
    }
    prompt = add_pack_files(prompt.fixed_text("\nThe files before the change:\n"), pack);
    let prompt = prompt
        .fixed_text("\nThe change:\n")
        .untrusted("the change", &Untrusted::new(patch))
        .fixed_text("\nAnswer:\n")
        .fixed_text(OBJECTIONS_FORM);
    vec![Message::user(prompt.build())]
}

/// Parses the objections; also returns how many exceed the limit.
///
/// # Errors
///
/// Fails with the reason if the answer cannot be used.
pub(crate) fn read_objections(answer: &Untrusted) -> Result<(Vec<RaisedObjection>, u64), String> {
    let answer: ObjectorAnswer = serde_json::from_str(unfenced(answer.as_str()))
        .map_err(|error| format!("the answer is not a list of objections: {error}"))?;
    let mut raised = answer.objections;
    // A scan of the raw answer does not see secrets that JSON escapes.
    let texts = raised.iter().flat_map(|one| {
        [
            &one.test.text,
            &one.test.name,
            &one.expected,
            &one.rests_on.sentence,
            &one.rests_on.source,
        ]
    });
    let texts: Vec<&str> = texts.map(String::as_str).collect();
    if !Scanner::builtin()
        .scan(texts.join("\n").as_bytes())
        .is_empty()
    {
        return Err("the answer holds what looks like a secret".to_owned());
    }
    let left = raised.len().saturating_sub(MAX_OBJECTIONS) as u64;
    raised.truncate(MAX_OBJECTIONS);
    Ok((raised, left))
}

/// What the second author sees.
pub(crate) struct ExpectationPrompt<'d> {
    /// The sentence that a test rests on.
    pub(crate) sentence: &'d str,
    /// The heads of the public functions that it names, as they were before the change.
    pub(crate) signatures: &'d [String],
    /// The path of the test, which tells its language.
    pub(crate) path: &'d RepoPath,
    /// The test without its expected value.
    pub(crate) blanked: &'d str,
}

/// Asks the second author for the expected value.
pub(crate) fn expectation_question(derivation: &ExpectationPrompt<'_>) -> Vec<Message> {
    let signatures = Untrusted::new(derivation.signatures.join("\n"));
    let prompt = PromptBuilder::new()
        .fixed_text("One sentence describes a program, and one test of it lacks its expected value. Derive the value from the sentence alone; do not guess \
               how the program is written. A program compares your answer with that of another author.\n\n")
        .untrusted("the sentence", &Untrusted::new(derivation.sentence))
        .fixed_text("\nPublic functions:\n")
        .untrusted("functions", &signatures)
        .fixed_text("\nThe test, with ")
        .fixed_text(EXPECTED_BLANK)
        .fixed_text(" in the place of the value:\n")
        .untrusted(derivation.path.extension().unwrap_or_default(), &Untrusted::new(derivation.blanked))
        .fixed_text("\nAnswer:\n")
        .fixed_text(EXPECTATION_FORM)
        .build();
    vec![Message::user(prompt)]
}

/// Reads the value that the second author derives; `None` if the sentence does not determine it, or the answer is
/// malformed.
pub(crate) fn read_expectation(answer: &Untrusted) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Expectation {
        expected: Option<String>,
    }
    let answer: Expectation = serde_json::from_str(unfenced(answer.as_str())).ok()?;
    let is_secret = |value: &String| !Scanner::builtin().scan(value.as_bytes()).is_empty();
    answer.expected.filter(|value| !is_secret(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raised(path: &str) -> String {
        format!(
            r#"{{"test": {{"path": "{path}", "name": "test_a", "text": "x"}}, "expected": "[]", "rests_on": {{"source": "goal", "sentence": "s"}}}}"#
        )
    }

    fn read(text: &str) -> Result<(Vec<RaisedObjection>, u64), String> {
        read_objections(&Untrusted::new(text))
    }

    #[test]
    fn objections_are_read_strictly() {
        let one = raised("tests/test_a.py");
        let answer = format!("```json\n{{\"objections\": [{one}]}}\n```");
        assert_eq!(
            read(&answer).map(|(raised, left)| (raised.len(), left)),
            Ok((1, 0))
        );
        let many = [one.as_str(); 5].join(",");
        let (raised_ones, left) = read(&format!("{{\"objections\": [{many}]}}")).unwrap();
        assert_eq!((raised_ones.len(), left), (3, 2));
        let outside = format!("{{\"objections\": [{}]}}", raised("../a.py"));
        for wrong in [
            "",
            "No objection.",
            "[]",
            "{}",
            "{\"objections\": [{}]}",
            &outside,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn second_author_never_sees_the_change() {
        let path: RepoPath = "tests/test_a.py".parse().unwrap();
        let question = expectation_question(&ExpectationPrompt {
            sentence: "no items give one empty page",
            signatures: &["def pages(items, size)".to_owned()],
            path: &path,
            blanked: "assert pages([], 3) == EXPECTED_VALUE",
        });
        let text = question[0].content.as_str();
        for part in [
            "one empty page",
            "def pages(items, size)",
            "== EXPECTED_VALUE",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let read = |text: &str| read_expectation(&Untrusted::new(text));
        assert_eq!(read("{\"expected\": \"[[]]\"}").as_deref(), Some("[[]]"));
        for none in [
            "{\"expected\": null}",
            "[[]]",
            "{\"expected\": 3}",
            "{}{}",
            "",
        ] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
