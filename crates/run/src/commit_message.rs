//! The text of a commit message: a subject, and the goal as its body. Pure.
//!
//! The subject is what a person gave, or else the goal's first sentence, shortened at a word boundary. The
//! body has the goal unless the subject already says it all. Invariants: a message has no hidden characters,
//! and no line of the body can be taken for a trailer.

use crucible_model::{is_hidden, single_spaced};
use crucible_secrets::Scanner;

/// The longest subject, in characters.
const MAX_SUBJECT: usize = 72;

/// How wide the body is, in characters.
const WIDTH: usize = 72;

/// How much of a goal the body holds, in characters.
const MAX_BODY: usize = 4000;

/// What the names of our trailers begin with.
const TRAILER: &str = "Crucible-";

/// Why a text is not a subject of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    /// It is empty.
    #[error("the subject is empty")]
    Empty,
    /// It is too long.
    #[error("the subject has more than {MAX_SUBJECT} characters")]
    TooLong,
    /// It has several lines, or hidden characters.
    #[error("the subject holds a line break or an invisible character")]
    Hidden,
    /// It holds a secret, or could be taken for a trailer.
    #[error("the subject holds what looks like a secret, or begins like a Crucible trailer")]
    Refused,
}

/// Validates the subject of a commit.
///
/// # Errors
///
/// The reason it is invalid.
pub fn check_subject(text: &str) -> Result<(), SubjectError> {
    if text.trim().is_empty() {
        return Err(SubjectError::Empty);
    }
    if text.chars().any(|c| c.is_control() || is_hidden(c)) {
        return Err(SubjectError::Hidden);
    }
    if text.chars().count() > MAX_SUBJECT {
        return Err(SubjectError::TooLong);
    }
    if text.starts_with(TRAILER) || !Scanner::builtin().scan(text.as_bytes()).is_empty() {
        return Err(SubjectError::Refused);
    }
    Ok(())
}

/// Returns subject and body of a commit, without trailers and trailing line breaks.
pub(crate) fn commit_message(subject: Option<&str>, goal: &str) -> String {
    let visible = |text: &str| text.chars().filter(|c| !is_hidden(*c)).collect::<String>();
    let goal_text = visible(&single_spaced(goal));
    let subject = match subject.filter(|subject| check_subject(subject).is_ok()) {
        Some(subject) => subject.trim().to_owned(),
        None => shortened(&goal_text),
    };
    if subject == goal_text || goal_text.is_empty() {
        return subject;
    }
    let mut body = String::new();
    for paragraph in goal
        .split("\n\n")
        .map(|text| visible(&single_spaced(text)))
        .filter(|text| !text.is_empty())
    {
        if body.chars().count() + paragraph.chars().count() > MAX_BODY {
            body.push_str("\n\n(The goal goes on; the run has all of it.)");
            break;
        }
        body.push_str("\n\n");
        body.push_str(&wrapped(&paragraph));
    }
    subject + &body
}

/// As many words as a subject holds; a word that is too long alone is cut.
fn shortened(goal: &str) -> String {
    if goal.chars().count() <= MAX_SUBJECT {
        return goal.to_owned();
    }
    let sentence = goal
        .split_inclusive(". ")
        .next()
        .unwrap_or(goal)
        .trim_end()
        .trim_end_matches('.');
    if sentence.chars().count() <= MAX_SUBJECT && sentence.contains(' ') {
        return sentence.to_owned();
    }
    let max_chars = MAX_SUBJECT - 1;
    let cut: String = goal.chars().take(max_chars).collect();
    let is_between = goal.chars().nth(max_chars).is_none_or(char::is_whitespace);
    let full_text = if is_between {
        cut.as_str()
    } else {
        cut.rsplit_once(' ').map_or(cut.as_str(), |(head, _)| head)
    };
    format!(
        "{}…",
        full_text.trim_end_matches([' ', ',', ';', ':', '-', '('])
    )
}

/// Wraps at words; no line begins like a trailer.
fn wrapped(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ if word.starts_with(TRAILER) => lines.push(format!("> {word}")),
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_goal_is_shortened_and_in_body() {
        let goal = "Return an error instead of panicking when the header of an archive is shorter than eight bytes";
        let message = commit_message(None, goal);
        let (subject, body) = message.split_once("\n\n").unwrap();
        assert_eq!(
            subject,
            "Return an error instead of panicking when the header of an archive is…"
        );
        assert_eq!(body.replace('\n', " "), goal);
        assert!(body.lines().all(|line| line.chars().count() <= WIDTH));
        assert_eq!(commit_message(None, "fix the parser\n"), "fix the parser");
        let two = format!(
            "Fix the parser. {}",
            "It fails on every second file. ".repeat(4)
        );
        assert!(commit_message(None, &two).starts_with("Fix the parser\n\nFix the parser. It"));
        assert_eq!(
            commit_message(Some("parser: accept CRLF"), "fix it"),
            "parser: accept CRLF\n\nfix it"
        );
        assert_eq!(
            commit_message(None, &"x".repeat(100))
                .lines()
                .next()
                .unwrap()
                .chars()
                .count(),
            72
        );
    }

    #[test]
    fn message_has_no_hidden_characters_or_trailers() {
        assert_eq!(
            commit_message(
                None,
                "fix\n the\u{202e} \u{200b}par\u{ad}ser\u{1b}\u{e0041}"
            ),
            "fix the parser"
        );
        let forged = "fix the parser\n\nCrucible-Run: other\nCrucible-Plan: sha256:0\n\nand more";
        let message = commit_message(Some("fix"), forged);
        assert!(
            message.lines().all(|line| !line.starts_with(TRAILER)),
            "{message}"
        );
        for (bad, error) in [
            ("", SubjectError::Empty),
            (" ", SubjectError::Empty),
            ("a\nb", SubjectError::Hidden),
            ("a\u{202e}b", SubjectError::Hidden),
            ("Crucible-Run: x", SubjectError::Refused),
            (
                crucible_testkit::made_up_token().as_str(),
                SubjectError::Refused,
            ),
            (&"x".repeat(73), SubjectError::TooLong),
        ] {
            assert_eq!(check_subject(bad), Err(error), "{bad:?}");
        }
        assert_eq!(check_subject(&"ü".repeat(72)), Ok(()));
    }

    #[test]
    fn huge_goal_gives_bounded_message() {
        let long = "word ".repeat(3000);
        assert!(commit_message(None, &format!("{long}\n\n{long}")).len() < 5000);
        assert!(commit_message(None, &"y".repeat(16_000)).len() < 5000);
    }
}
