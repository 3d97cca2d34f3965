//! Words of goals and of names: `parseHeader`, `parse_header` and `parse-header` are all `parse` and `header`, and `parser`
//! and `parsing` are forms of one word.
//!
//! The rules are those of English and deliberately few. They need not be right about it, only the same for both sides: a text in
//! another language is compared word by word.

use std::fmt;

/// Words that name no place in a repository, in addition to those without any meaning.
const STOP_WORDS: &[&str] = &[
    "add",
    "all",
    "bug",
    "but",
    "can",
    "cannot",
    "change",
    "code",
    "correct",
    "does",
    "doing",
    "done",
    "error",
    "fail",
    "failed",
    "failing",
    "fails",
    "file",
    "files",
    "fix",
    "fixed",
    "fixes",
    "get",
    "has",
    "have",
    "implement",
    "instead",
    "issue",
    "make",
    "makes",
    "must",
    "new",
    "not",
    "off",
    "one",
    "only",
    "out",
    "pass",
    "passes",
    "problem",
    "remove",
    "repo",
    "repository",
    "should",
    "some",
    "test",
    "tests",
    "their",
    "them",
    "then",
    "there",
    "use",
    "uses",
    "using",
    "was",
    "when",
    "where",
    "which",
    "why",
    "will",
    "without",
    "work",
    "works",
    "wrong",
    "you",
];

/// Words that say nothing at all.
const LITTLE_WORDS: [&str; 26] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "into", "is", "it",
    "its", "of", "on", "or", "please", "so", "that", "the", "this", "to", "we", "with",
];

/// Returns whether a lowercase word has no meaning for the search.
#[must_use]
pub fn is_little_word(word: &str) -> bool {
    LITTLE_WORDS.binary_search(&word).is_ok()
}

/// Returns whether a lowercase word names no place.
pub(super) fn is_stop_word(word: &str) -> bool {
    is_little_word(word) || STOP_WORDS.binary_search(&word).is_ok()
}

/// Splits a name into lowercase words at non-alphanumeric characters and case changes.
pub(super) fn split(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before: Option<char> = None;
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        if !c.is_alphanumeric() {
            flush(&mut word, &mut words);
            before = None;
            continue;
        }
        let starts_word = before.is_some_and(|before| {
            let after_lower = c.is_uppercase() && (before.is_lowercase() || before.is_numeric());
            let ends_acronym = c.is_uppercase()
                && before.is_uppercase()
                && rest.peek().is_some_and(|next| next.is_lowercase());
            after_lower || ends_acronym
        });
        if starts_word {
            flush(&mut word, &mut words);
        }
        word.extend(c.to_lowercase());
        before = Some(c);
    }
    flush(&mut word, &mut words);
    words
}

/// What each of these lowercase words has in common with its other forms.
pub(super) fn stems(words: &[String]) -> Vec<WordStem<'_>> {
    words.iter().map(|word| WordStem::from_word(word)).collect()
}

/// What a lowercase word has in common with its other forms; at least three letters of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WordStem<'a> {
    begin: &'a str,
    ends: StemEnd,
}

/// What follows the beginning in some forms and not in others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StemEnd {
    Plain,
    /// A `y` that becomes `ie` in the plural.
    Y,
}

impl<'a> WordStem<'a> {
    /// Removes inflection endings; of a doubled final letter one remains.
    #[must_use]
    pub fn from_word(word: &'a str) -> Self {
        const ENDINGS: [&str; 9] = ["ings", "ing", "ers", "er", "ed", "es", "or", "s", "e"];
        let cut = |word: &'a str, ending: &str| {
            word.strip_suffix(ending)
                .filter(|begin| begin.chars().nth(2).is_some())
        };
        let with_y = |begin| Self {
            begin,
            ends: StemEnd::Y,
        };
        if let Some(begin) = cut(word, "ies") {
            return with_y(begin);
        }
        let begin = ENDINGS
            .iter()
            .find_map(|ending| cut(word, ending))
            .unwrap_or(word);
        if let Some(begin) = cut(begin, "y") {
            return with_y(begin);
        }
        let mut last = begin.chars().rev();
        let doubled = last.next().filter(|letter| last.next() == Some(*letter));
        // Words of three letters stay whole.
        let begin = doubled
            .filter(|_| last.nth(1).is_some())
            .and_then(|letter| begin.strip_suffix(letter))
            .unwrap_or(begin);
        Self {
            begin,
            ends: StemEnd::Plain,
        }
    }
}

impl fmt::Display for WordStem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.begin)?;
        f.write_str(match self.ends {
            StemEnd::Plain => "",
            StemEnd::Y => "y",
        })
    }
}

fn flush(word: &mut String, words: &mut Vec<String>) {
    if !word.is_empty() {
        words.push(std::mem::take(word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn related(one: &str, other: &str) -> bool {
        WordStem::from_word(one) == WordStem::from_word(other)
    }

    #[test]
    fn stop_words_are_sorted_and_unique() {
        assert!(STOP_WORDS.is_sorted() && LITTLE_WORDS.is_sorted());
        assert!(STOP_WORDS.iter().all(|word| !is_little_word(word)));
        assert!(is_stop_word("the") && is_stop_word("fix") && !is_little_word("fix"));
    }

    #[test]
    fn names_fall_into_words() {
        assert_eq!(
            split("parseHTTPHeader2Fast"),
            ["parse", "http", "header2", "fast"]
        );
        assert_eq!(
            split("parse_header-now.rs"),
            ["parse", "header", "now", "rs"]
        );
        assert_eq!(split("___"), Vec::<String>::new());
    }

    #[test]
    fn forms_of_a_word_are_related() {
        for forms in [
            ["parse", "parses", "parser", "parsing"],
            ["fail", "fails", "failed", "failing"],
            ["pass", "passes", "passed", "passing"],
            ["stop", "stops", "stopped", "stopping"],
            ["rename", "renames", "renamed", "renaming"],
            ["install", "installs", "installed", "installing"],
            ["display", "displays", "displayed", "displaying"],
            ["dependency", "dependencies", "dependency", "dependencies"],
            ["string", "strings", "string", "strings"],
        ] {
            assert!(
                forms.iter().all(|form| related(forms[0], form)),
                "{forms:?}"
            );
        }
        for (one, other) in [
            ("past", "part"),
            ("contest", "context"),
            ("abc", "abcd"),
            ("as", "a"),
            ("test", "text"),
            ("add", "ad"),
        ] {
            assert!(!related(one, other), "{one} {other}");
        }
        for unusual_text in [
            "",
            "s",
            "ing",
            "ies",
            "ééé",
            "éééé",
            "ees",
            "日本語",
            "yyyy",
        ] {
            assert_eq!(
                WordStem::from_word(unusual_text).begin.is_empty(),
                unusual_text.is_empty(),
                "{unusual_text}"
            );
        }
    }
}
