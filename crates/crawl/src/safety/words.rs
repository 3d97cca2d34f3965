//! Splits a command into words at single spaces, or refuses it.
//!
//! Only characters without a meaning in any shell are accepted, so this crate, a POSIX shell and a
//! program that splits at spaces see the same words. Quotes are refused, so nothing needs unquoting.
//! There is one exception: pip's `.[dev]`, which a shell may expand to another name in the same
//! directory.

use super::finding::{BLANKS_REFUSED, CHARACTER_REFUSED, COMMAND_TOO_LONG, FindingSink};
use super::programs;

/// The longest command that is checked, in bytes.
pub(super) const MAX_COMMAND_LEN: usize = 4096;

/// Refuses a command that is too long to be checked.
pub(super) fn refuse_too_long(command: &str, sink: &mut FindingSink<'_>) {
    let hint = format!("a command has at most {MAX_COMMAND_LEN} bytes; split the step");
    sink.refuse(COMMAND_TOO_LONG, command, hint);
}

/// Splits a command of at most [`MAX_COMMAND_LEN`] bytes; problems are reported to `sink`.
pub(super) fn words<'c>(command: &'c str, sink: &mut FindingSink<'_>) -> Option<Vec<&'c str>> {
    let words: Vec<&str> = command.split(' ').collect();
    if let Some(c) = strange(&words) {
        sink.refuse(
            CHARACTER_REFUSED,
            &c.escape_debug().to_string(),
            how_to_say(command, c),
        );
        return None;
    }
    if words.iter().any(|word| word.is_empty()) {
        let hint = "separate words by one space, without spaces at the beginning or the end";
        sink.refuse(BLANKS_REFUSED, command, hint);
        return None;
    }
    Some(words)
}

/// The first character with a meaning in a shell. The brackets of pip's extras are allowed: no name that
/// a shell could expand them to leads out of the directory ([`is_project_with_extras`]).
fn strange(words: &[&str]) -> Option<char> {
    let takes_extras = programs::installs_by_pip(words);
    let mut words = words
        .iter()
        .filter(|word| !(takes_extras && is_project_with_extras(word)));
    words.find_map(|word| word.chars().find(|c| !is_plain(*c)))
}

/// `.[dev,test]`: the project itself with some of its extras. If files with such names exist, a shell
/// expands it to `.` and one of the characters: a letter, a digit, `_` or `,`, so never to `..`. That is
/// why no extra may contain `.` or `-`, and why nothing else may precede the bracket.
pub(super) fn is_project_with_extras(word: &str) -> bool {
    let names = word
        .strip_prefix(".[")
        .and_then(|rest| rest.strip_suffix(']'));
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    names.is_some_and(|names| names.split(',').all(is_name))
}

/// Whether a quoted part has a blank, so that it would be several words without its quotes.
fn has_quoted_blank(command: &str) -> bool {
    let mut quote = None;
    command.chars().any(|c| {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
        quote.is_some() && c == ' '
    })
}

/// The accepted spelling, if removing quotes gives one.
fn how_to_say(command: &str, c: char) -> String {
    let unquoted = command.replace(['\'', '"'], "");
    let words: Vec<&str> = unquoted.split(' ').collect();
    if matches!(c, '\'' | '"')
        && strange(&words).is_none()
        && !words.contains(&"")
        && !has_quoted_blank(command)
    {
        return format!("quoting is not supported; write `{unquoted}`");
    }
    why_not(c).to_owned()
}

/// Whether a character means itself in every shell, anywhere after the first word.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, ' ' | '-' | '_' | '.' | '/' | ',' | ':' | '=' | '+' | '@')
}

fn why_not(c: char) -> &'static str {
    match c {
        '\'' | '"' | '\\' => {
            "quoting is not supported; use words without spaces and special characters, or a script of the repository"
        }
        '$' | '`' => "nothing is expanded; write the value itself",
        '[' | ']' => {
            "no pattern is expanded; name the file or directory itself; extras are written `pip install .[dev,test]`, each with \
             letters, digits and `_` only"
        }
        '*' | '?' | '{' | '}' => "no pattern is expanded; name the file or directory itself",
        '&' | ';' | '|' | '(' | ')' => {
            "a step is one command; write a separate step for each command"
        }
        '<' | '>' => "a step cannot redirect; use an option of the program",
        '\n' | '\r' | '\t' => "a command is one line of words separated by single spaces",
        c if c.is_ascii() => {
            "a command may contain only letters, digits and - _ . / , : = + @; remove this character"
        }
        _ => "a command must be plain ASCII; remove this character",
    }
}

/// Whether `words` begin with `prefix` word by word. A prefix that ends in `/` begins a path, one that
/// ends in a space requires another word, and an option may have a joined value.
pub(super) fn begin_with(words: &[&str], prefix: &str) -> bool {
    let mut parts = prefix.split(' ').enumerate().peekable();
    while let Some((place, part)) = parts.next() {
        let Some(word) = words.get(place) else {
            return false;
        };
        let is_last = parts.peek().is_none();
        let joins = is_last && is_joined(word, part);
        if !(joins || *word == part || (is_last && part.is_empty())) {
            return false;
        }
    }
    true
}

fn is_joined(word: &str, part: &str) -> bool {
    let Some(value) = word.strip_prefix(part).filter(|value| !value.is_empty()) else {
        return false;
    };
    part.ends_with('/')
        || (part.starts_with("--") && value.starts_with('='))
        || (part.len() == 2 && part.starts_with('-') && !part.ends_with('-'))
}
