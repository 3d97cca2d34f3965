//! Words out of names: `parseHeader`, `parse_header` and `parse-header` are all `parse` and `header`.

/// Words that say nothing about where in a repository something is.
const STOP_WORDS: &[&str] = &[
    "add",
    "all",
    "and",
    "are",
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
    "for",
    "from",
    "get",
    "has",
    "have",
    "implement",
    "instead",
    "into",
    "issue",
    "its",
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
    "please",
    "problem",
    "remove",
    "repo",
    "repository",
    "should",
    "so",
    "some",
    "test",
    "tests",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "this",
    "use",
    "uses",
    "using",
    "was",
    "when",
    "where",
    "which",
    "why",
    "will",
    "with",
    "without",
    "work",
    "works",
    "wrong",
    "you",
];

/// Whether a lowercase word says nothing about a place.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// The lowercase words in a name, cut at everything that is no letter or digit and where case changes.
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

/// Whether two lowercase words are forms of one: `parse`, `parser`, `parsing`.
pub(super) fn related(one: &str, other: &str) -> bool {
    stem(one) == stem(other)
}

/// A word without the endings that make forms of it, where at least three letters remain. Crude on purpose: it
/// need not be right about English, only the same for both sides.
fn stem(word: &str) -> &str {
    const ENDINGS: [&str; 9] = ["ings", "ing", "ers", "er", "ed", "es", "or", "s", "e"];
    ENDINGS.iter().find_map(|ending| word.strip_suffix(ending).filter(|rest| rest.len() >= 3)).unwrap_or(word)
}

fn flush(word: &mut String, words: &mut Vec<String>) {
    if !word.is_empty() {
        words.push(std::mem::take(word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_sorted_for_the_search() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn names_fall_into_words() {
        assert_eq!(split("parseHTTPHeader2Fast"), ["parse", "http", "header2", "fast"]);
        assert_eq!(split("parse_header-now.rs"), ["parse", "header", "now", "rs"]);
        assert_eq!(split("___"), Vec::<String>::new());
    }

    #[test]
    fn forms_of_a_word_are_related() {
        assert!(related("parse", "parser") && related("parsing", "parser"));
        assert!(
            !related("past", "part")
                && !related("contest", "context")
                && !related("abc", "abcd")
                && !related("as", "a")
        );
    }
}
