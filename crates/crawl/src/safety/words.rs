//! A command as words: exactly the parts between single blanks, or no words at all.
//!
//! Only characters pass that no shell gives a meaning to, so this crate, a POSIX shell and a program that splits at blanks
//! all see the same words. There is nothing to unquote, because quotes are refused.

use super::finding::{BLANKS_REFUSED, CHARACTER_REFUSED, COMMAND_TOO_LONG, Desk};

/// The longest command that is looked at, in bytes.
pub(super) const LONGEST_COMMAND: usize = 4096;

/// Refuses a command that is not looked at, for its length.
pub(super) fn refuse_too_long(command: &str, desk: &mut Desk<'_>) {
    let hint = format!("a command has at most {LONGEST_COMMAND} bytes; split the step");
    desk.refuse(COMMAND_TOO_LONG, command, hint);
}

/// Splits a command of at most [`LONGEST_COMMAND`] bytes; what keeps it from being split is told to `desk`.
pub(super) fn words<'c>(command: &'c str, desk: &mut Desk<'_>) -> Option<Vec<&'c str>> {
    if let Some(c) = command.chars().find(|c| !is_plain(*c)) {
        desk.refuse(CHARACTER_REFUSED, &c.escape_debug().to_string(), why_not(c));
        return None;
    }
    let words: Vec<&str> = command.split(' ').collect();
    if words.iter().any(|word| word.is_empty()) {
        let hint = "words are separated by one blank, and none stands at the beginning or the end";
        desk.refuse(BLANKS_REFUSED, command, hint);
        return None;
    }
    Some(words)
}

/// Whether a character means itself to every shell, wherever it stands behind the first word.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '/' | ',' | ':' | '=' | '+' | '@')
}

fn why_not(c: char) -> &'static str {
    match c {
        '\'' | '"' | '\\' => {
            "nothing is quoted; use words without blanks and signs, or a script of the repository"
        }
        '$' | '`' => "nothing is expanded; write the value itself",
        '*' | '?' | '[' | ']' | '{' | '}' => "no pattern is expanded; name the file or directory itself",
        '&' | ';' | '|' | '(' | ')' => "a step is one command; make each command a step of its own",
        '<' | '>' => "a step cannot redirect; use an option of the program",
        '\n' | '\r' | '\t' => "a command is one line of words between single blanks",
        c if c.is_ascii() => {
            "a command is made of letters, digits and - _ . / , : = + @; say it without this character"
        }
        _ => "a command is plain ASCII; say it without this character",
    }
}

/// Whether `words` begin with `prefix` word by word. What ends in `/` begins a path, what ends in a blank asks for one more
/// word, and an option may have its value joined to it.
pub(super) fn begin_with(words: &[&str], prefix: &str) -> bool {
    let mut parts = prefix.split(' ').enumerate().peekable();
    while let Some((place, part)) = parts.next() {
        let Some(word) = words.get(place) else { return false };
        let is_last = parts.peek().is_none();
        let joins = is_last && is_joined(word, part);
        if !(joins || *word == part || (is_last && part.is_empty())) {
            return false;
        }
    }
    true
}

fn is_joined(word: &str, part: &str) -> bool {
    let Some(value) = word.strip_prefix(part).filter(|value| !value.is_empty()) else { return false };
    part.ends_with('/')
        || (part.starts_with("--") && value.starts_with('='))
        || (part.len() == 2 && part.starts_with('-') && !part.ends_with('-'))
}
