//! An answer that declines: the service that proposes changes says that the goal cannot be reached, why, and what it conflicts with.
//!
//! Every form of answer allows it. A run that is declined is over: nothing lands, and no attempt is counted.

use std::collections::BTreeSet;

use crucible_model::{Code, Finding, PathRole, PathRoles, RepoPath};
use crucible_pack::ContextPack;
use crucible_patch::{defined_names, is_test_path};

use crate::analysis::GateResult;

const DECLINED: Code = Code::new("run-declined");

/// The code of an answer that declines without saying which test or sentence conflicts with the goal.
pub(crate) const DECLINE_UNFOUNDED: Code = Code::new("run-decline-unfounded");

/// The file in which an agent declines, at the top of its working copy.
pub(crate) const DECLINED_FILE: &str = "CRUCIBLE_CANNOT.md";

/// The longest shown reason, in characters.
const MAX_SHOWN: usize = 500;

/// How to decline.
pub(crate) const DECLINED_FORM: &str = "If the goal cannot be reached without breaking a rule, a test or another sentence of the goal, do not work around \
     it. Answer instead with these two lines and nothing else:\nCANNOT: the reason\nCONFLICT: the test or the sentence that it \
     conflicts with\n";

/// An answer that declines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decline {
    /// Why.
    pub(crate) reason: String,
    /// The test or the sentence that the goal conflicts with; empty if none is named.
    pub(crate) conflict: String,
}

impl Decline {
    /// Reads an answer; `None` if it does not decline. Its first line of text must, so a change never does. Models
    /// emphasise the word, write it as a heading, or in lower case.
    pub(crate) fn read(answer: &str) -> Option<Self> {
        let mut lines = answer
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("```"));
        let reason = labelled(lines.next()?, "CANNOT")?;
        if reason.is_empty() {
            return None;
        }
        let conflict = lines.find_map(|line| labelled(line, "CONFLICT"));
        let shown = |text: &str| {
            text.chars()
                .filter(|letter| !letter.is_control())
                .take(MAX_SHOWN)
                .collect()
        };
        Some(Self {
            reason: shown(reason),
            conflict: shown(conflict.unwrap_or_default()),
        })
    }

    /// Returns the text of an agent's [`DECLINED_FILE`] as an answer that declines. The file itself says that the agent
    /// does, whatever form its text has.
    pub(crate) fn answer_of_file(text: &str) -> String {
        if Self::read(text).is_some() {
            return text.to_owned();
        }
        let mut lines = text.lines().map(|line| line.trim_matches(DECORATION));
        let is_heading = |line: &&str| {
            line.is_empty() || line.trim_end_matches(':').eq_ignore_ascii_case("cannot")
        };
        let reason = lines.find(|line| !is_heading(line));
        format!("CANNOT: {}", reason.unwrap_or("the agent gives no reason"))
    }

    /// Whether the conflict names a test, or quotes a sentence that is not the reason itself, so that a person can look
    /// it up. Small models decline in place of a change, with the goal as the reason.
    pub(crate) fn cites_conflict(&self, sources: &ConflictSources) -> bool {
        let (conflict, reason) = (words(&self.conflict), words(&self.reason));
        let names = |test: &String| contains(&conflict, &words(test));
        let quotes = |text: &String| {
            let text = words(text);
            let mut quotations = conflict.windows(QUOTED);
            quotations.any(|words| !contains(&reason, words) && contains(&text, words))
        };
        sources.tests.iter().any(names) || sources.texts.iter().any(quotes)
    }

    /// The finding about a decline that is not founded.
    pub(crate) fn unfounded_finding() -> Finding {
        Finding::error(
            DECLINE_UNFOUNDED,
            "answer",
            "it declines, but names no test and quotes no sentence that conflicts with the goal; make the change, or name \
             the test behind `CONFLICT:`",
        )
    }

    /// The finding that ends the run.
    pub(crate) fn finding(&self, by: &str) -> Finding {
        let conflict = if self.conflict.is_empty() {
            String::new()
        } else {
            format!(" It conflicts with: {}", self.conflict)
        };
        let hint = format!("{}{conflict}", self.reason);
        Finding::error(DECLINED, by, hint)
    }
}

/// What a goal can conflict with.
#[derive(Debug, Default)]
pub(crate) struct ConflictSources {
    /// Names and files of tests.
    pub(crate) tests: BTreeSet<String>,
    /// The goal and the documents that the model saw.
    pub(crate) texts: Vec<String>,
}

impl ConflictSources {
    /// Lists the tests that the gates reported and those in the pack.
    pub(crate) fn new(goal: &str, pack: &ContextPack, baseline: &[GateResult]) -> Self {
        let mut sources = Self {
            texts: vec![goal.to_owned()],
            ..Self::default()
        };
        let results = baseline.iter().filter_map(|gate| gate.results.as_ref());
        for name in results.flat_map(|results| results.tests.keys()) {
            let last = name.rsplit([':', '.', '/', ' ']).next().unwrap_or_default();
            sources.tests.extend([name.clone(), last.to_owned()]);
        }
        for file in &pack.files {
            let Ok(path) = file.path.parse::<RepoPath>() else {
                continue;
            };
            let roles = PathRoles::from_path(&path);
            if is_test_path(&path) {
                sources.tests.insert(file.path.clone());
                let defined = defined_names(&path, file.content.as_bytes());
                sources.tests.extend(defined);
            } else if roles.has(PathRole::Document) {
                sources.texts.push(file.content.clone());
            }
        }
        sources
    }
}

/// How many words in a row are a quotation.
const QUOTED: usize = 4;

/// The words of a text in lower case; an identifier is one word.
fn words(text: &str) -> Vec<String> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Whether `part` stands in `text`.
fn contains(text: &[String], part: &[String]) -> bool {
    !part.is_empty() && text.windows(part.len()).any(|window| window == part)
}

/// What Markdown puts around a word.
const DECORATION: [char; 5] = ['#', '*', '_', '`', ' '];

/// The text behind `LABEL:` at the beginning of a line.
fn labelled<'l>(line: &'l str, label: &str) -> Option<&'l str> {
    let (word, text) = line.split_once(':')?;
    word.trim_matches(DECORATION)
        .eq_ignore_ascii_case(label)
        .then(|| text.trim_matches(DECORATION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_declines_and_nothing_else() {
        let read =
            |text: &str| Decline::read(text).map(|declined| (declined.reason, declined.conflict));
        let both = Some(("no such API".to_owned(), "test_area".to_owned()));
        assert_eq!(read("CANNOT: no such API\nCONFLICT: test_area\n"), both);
        assert_eq!(
            read("```\n\n CANNOT:  no such API\nbecause\nCONFLICT: test_area\n```\n"),
            both
        );
        assert_eq!(read("CANNOT: why"), Some(("why".to_owned(), String::new())));
        for marked in [
            "**CANNOT:** no such API\n**CONFLICT:** test_area",
            "## Cannot: no such API\n\nConflict: `test_area`",
        ] {
            assert_eq!(read(marked), both, "{marked}");
        }
        for other in [
            "",
            "CANNOT:",
            "I CANNOT: do it",
            "FILE: a.py\n```\nCANNOT: x\n```\n",
            "diff --git a/x b/x\n+CANNOT: x\n",
            "I cannot do this: it is too much",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn founded_decline_names_test_or_second_sentence() {
        let sources = ConflictSources {
            tests: ["TestPopOfEmpty", "tests/stack_test.go"].map(str::to_owned).into(),
            texts: vec![
                "Popping from an empty stack must return false as its second value. It must keep the capacity.".to_owned(),
            ],
        };
        let is_founded = |reason: &str, conflict: &str| {
            let (reason, conflict) = (reason.to_owned(), conflict.to_owned());
            Decline { reason, conflict }.cites_conflict(&sources)
        };
        for (reason, conflict) in [
            ("the test wants a panic", "TestPopOfEmpty"),
            ("the test wants a panic", "`testpopofempty` in line 3"),
            ("the test wants a panic", "see tests/stack_test.go:3"),
            ("the capacity changes", "\"It must keep the capacity.\""),
        ] {
            assert!(is_founded(reason, conflict), "{conflict}");
        }
        for (reason, conflict) in [
            ("it is hard", ""),
            ("it is hard", "the code"),
            (
                "It should return false as its second value.",
                "The function `Pop` should return false as its second value.",
            ),
            ("it is hard", "TestPop"),
        ] {
            assert!(!is_founded(reason, conflict), "{conflict}");
        }
    }

    #[test]
    fn file_of_an_agent_declines_in_every_form() {
        for (text, expected) in [
            (
                "# Cannot\n\nThe goal contradicts `test_a`.\n",
                "The goal contradicts `test_a`.",
            ),
            ("It is impossible.", "It is impossible."),
            ("", "the agent gives no reason"),
            ("CANNOT: no API", "no API"),
        ] {
            let declined = Decline::read(&Decline::answer_of_file(text)).unwrap();
            assert_eq!(declined.reason, expected.trim_matches(DECORATION), "{text}");
        }
    }
}
