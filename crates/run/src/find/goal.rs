//! The stemmed words of a goal, and the kind of goal they state. Pure.
//!
//! The librarian defines the stems ([`WordStem`]), so files and workflows are found by the same rules.

use std::collections::BTreeMap;

use crucible_pack::{WordStem, is_little_word};

use super::workflow::GoalKind;

/// Maximum bytes and words of a goal that are read.
const MAX_BYTES: usize = 16 * 1024;
const MAX_WORDS: usize = 512;

/// Verbs, by the kind of goal that they state. The first one in a goal decides.
const VERBS: [(GoalKind, &[&str]); 8] = [
    (
        GoalKind::Fix,
        &[
            "fix", "repair", "mend", "correct", "resolve", "solve", "prevent",
        ],
    ),
    (GoalKind::Rename, &["rename"]),
    (
        GoalKind::Add,
        &[
            "add",
            "implement",
            "support",
            "introduce",
            "create",
            "allow",
            "accept",
            "write",
        ],
    ),
    (GoalKind::Update, &["update", "upgrade", "bump", "pin"]),
    (
        GoalKind::Document,
        &["document", "describe", "explain", "clarify"],
    ),
    (GoalKind::Remove, &["remove", "delete", "drop"]),
    (
        GoalKind::Refactor,
        &[
            "refactor",
            "simplify",
            "extract",
            "split",
            "move",
            "inline",
            "deduplicate",
        ],
    ),
    (GoalKind::Test, &["cover"]),
];

/// A goal, ready to be compared.
#[derive(Debug)]
pub(super) struct GoalWords {
    /// The first form of each word in the goal, by its stem.
    words: BTreeMap<String, String>,
    kind: Option<GoalKind>,
}

impl GoalWords {
    /// Takes a goal apart.
    pub(super) fn parse(goal: &str) -> Self {
        let goal = goal
            .get(..goal.floor_char_boundary(MAX_BYTES))
            .unwrap_or(goal);
        let mut words = BTreeMap::new();
        let mut kind = None;
        let split = goal
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty());
        for word in split.take(MAX_WORDS) {
            let word = word.to_lowercase();
            if is_little_word(&word) {
                continue;
            }
            let stem = WordStem::from_word(&word);
            let is_test = words.is_empty() && stem == WordStem::from_word("test");
            kind = kind.or_else(|| {
                if is_test {
                    Some(GoalKind::Test)
                } else {
                    stated_by(stem)
                }
            });
            let key = stem.to_string();
            words.entry(key).or_insert(word);
        }
        Self { words, kind }
    }

    /// Returns the kind of change, if a verb states it.
    pub(super) fn kind(&self) -> Option<GoalKind> {
        self.kind
    }

    /// Returns the goal's form of this word, if it has the word.
    pub(super) fn form_of(&self, word: &str) -> Option<&str> {
        self.words
            .get(&WordStem::from_word(&word.to_lowercase()).to_string())
            .map(String::as_str)
    }

    /// How much two goals have in common: the words of both in percent of the words of either.
    pub(super) fn similarity_percent(&self, other: &Self) -> u32 {
        let both = self
            .words
            .keys()
            .filter(|word| other.words.contains_key(*word))
            .count();
        let either = self.words.len() + other.words.len() - both;
        u32::try_from((both * 100).checked_div(either).unwrap_or_default()).unwrap_or_default()
    }
}

fn stated_by(stem: WordStem<'_>) -> Option<GoalKind> {
    let states = |(kind, verbs): &(GoalKind, &[&str])| {
        verbs
            .iter()
            .any(|verb| WordStem::from_word(verb) == stem)
            .then_some(*kind)
    };
    VERBS.iter().find_map(states)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_verb_decides_goal_kind() {
        let kind = |goal: &str| GoalWords::parse(goal).kind();
        assert_eq!(
            kind("Please fix the test that was renamed"),
            Some(GoalKind::Fix)
        );
        assert_eq!(kind("test the parser"), Some(GoalKind::Test));
        assert_eq!(kind("the tests should cover errors"), Some(GoalKind::Test));
        assert_eq!(kind("make area multiply"), None);
        assert_eq!(kind(""), None);
    }

    #[test]
    fn similarity_ignores_little_words() {
        let alike = |a: &str, b: &str| GoalWords::parse(a).similarity_percent(&GoalWords::parse(b));
        assert_eq!(alike("fix the parser", "Fix parsers"), 100);
        assert_eq!(alike("fix the parser", "draw the table"), 0);
        assert_eq!(alike("fix parser", "fix lexer"), 33);
        assert_eq!(alike("", ""), 0);
        assert_eq!(alike("the of", "the of"), 0);
    }

    #[test]
    fn goal_is_read_up_to_limit() {
        let long = "fix ".repeat(100_000) + "rename";
        assert!(GoalWords::parse(&long).form_of("rename").is_none());
        let wide = "é".repeat(MAX_BYTES);
        assert_eq!(GoalWords::parse(&wide).words.len(), 1);
    }
}
