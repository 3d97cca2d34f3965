//! Characters that a reader does not see, or that change the order in which the reader sees others.
//!
//! Such characters let a line be compiled differently from how it is read in a review; what a terminal takes for an order lets it show
//! any other text. What the patch merely moves or
//! keeps is not its doing: only what there is more of in the added lines than in the removed ones counts. What is at home in text and harmless
//! to its language (joiners, form feeds, separators of lines) is reported and not refused.

use std::collections::BTreeMap;

use crucible_model::{Code, Finding, RepoPath};

use crate::patch::{FilePatch, Files, Hunk, LineKind, Patch};
use crate::policy::Policy;

/// What a character does to a reader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// It joins what stands beside it, as in many scripts and emoji.
    Joining,
    /// It divides text into pages, lines or paragraphs, as a form feed does.
    Dividing,
    /// It shows nothing, or orders a terminal about.
    Invisible,
    /// It changes the order in which others are shown.
    Reordering,
}

/// White space to every language, and the end of a line to none.
const FORM_FEED: char = '\u{c}';

/// Endings of files in which a line separator ends a line of code: JavaScript, what is translated to it or holds it, and C#.
const ENDS_LINES: [&str; 17] = [
    "astro", "cjs", "cs", "csx", "cts", "es6", "htm", "html", "js", "jsx", "mjs", "mts", "svelte",
    "ts", "tsx", "vue", "xhtml",
];

/// How often each character comes in, less how often it goes away.
type Balance = BTreeMap<(Kind, char), i64>;

/// Finds what `patch` brings in; `after` holds the files as they would be.
pub(crate) fn hidden_characters(patch: &Patch, policy: &Policy, after: &Files) -> Vec<Finding> {
    let mut total = Balance::new();
    let mut by_file: Vec<(&RepoPath, Balance)> = Vec::new();
    for file in &patch.files {
        let balance = balance(file, after.get(&file.path).map(Vec::as_slice));
        for (hidden, count) in &balance {
            *total.entry(*hidden).or_default() += count;
        }
        by_file.push((&file.path, balance));
    }
    let code = || Code::new("patch-hidden-characters");
    let hint = "write the line with characters that show, or the hidden one as an escape";
    let mut findings = Vec::new();
    for (path, balance) in by_file {
        let more = balance
            .into_iter()
            .filter(|(hidden, count)| *count > 0 && total.get(hidden) > Some(&0));
        findings.extend(more.map(|((kind, hidden), _)| {
            let subject = format!("U+{:04X} in {path}", u32::from(hidden));
            match kind {
                Kind::Joining => Finding::warning(code(), subject, hint),
                // To a language that takes it for the end of a line, it is the end of a comment: what follows is run.
                Kind::Dividing if hidden == FORM_FEED || !ends_lines_anywhere(path) => {
                    Finding::warning(code(), subject, hint)
                }
                Kind::Invisible | Kind::Dividing if policy.names(path) => {
                    Finding::warning(code(), subject, hint)
                }
                Kind::Invisible | Kind::Dividing | Kind::Reordering => {
                    Finding::error(code(), subject, hint)
                }
            }
        }));
    }
    findings
}

fn balance(file: &FilePatch, after: Option<&[u8]>) -> Balance {
    let mut balance = Balance::new();
    for line in file.hunks.iter().flat_map(Hunk::lines) {
        // A carriage return belongs to the end of its line; anywhere else it hides what stands before it.
        let text = line.text.strip_suffix(b"\n").unwrap_or(line.text);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if !text.iter().any(|byte| may_be_hidden(*byte)) {
            continue;
        }
        let step = match line.kind {
            LineKind::Context => continue,
            LineKind::Added => 1,
            LineKind::Removed => -1,
        };
        for chunk in text.utf8_chunks() {
            let mut before = None;
            let mut rest = chunk.valid().chars().peekable();
            while let Some(character) = rest.next() {
                if let Some(kind) = kind(before, character, rest.peek().copied()) {
                    *balance.entry((kind, character)).or_default() += step;
                }
                before = Some(character);
            }
        }
    }
    // At the start of a file it says how the file is encoded.
    if after.is_some_and(|text| text.starts_with("\u{feff}".as_bytes()))
        && let Some(count) = balance.get_mut(&(Kind::Invisible, '\u{feff}'))
    {
        *count -= 1;
    }
    balance
}

/// Whether a line separator may end a line of code there.
fn ends_lines_anywhere(path: &RepoPath) -> bool {
    path.extension().is_some_and(|extension| {
        ENDS_LINES
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    })
}

/// Whether a character that counts may begin with this byte.
fn may_be_hidden(byte: u8) -> bool {
    !byte.is_ascii() || byte.is_ascii_control() && byte != b'\t'
}

fn kind(before: Option<char>, character: char, after: Option<char>) -> Option<Kind> {
    let is_of_script = |adjacent: Option<char>| {
        adjacent.is_some_and(|adjacent| {
            !adjacent.is_ascii() && !adjacent.is_whitespace() && !adjacent.is_control()
        })
    };
    match character {
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Some(Kind::Reordering),
        '\u{200c}' | '\u{200d}' | '\u{200e}' | '\u{200f}' | '\u{61c}' => {
            let joins = is_of_script(before) && is_of_script(after);
            Some(if joins {
                Kind::Joining
            } else {
                Kind::Invisible
            })
        }
        '\t' => None,
        FORM_FEED | '\u{2028}' | '\u{2029}' => Some(Kind::Dividing),
        control if control.is_control() => Some(Kind::Invisible),
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => Some(Kind::Invisible),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_controls_are_hidden_but_tabs_are_not() {
        for order in [
            '\u{1b}', '\u{7}', '\u{8}', '\0', '\r', '\u{b}', '\u{7f}', '\u{9b}', '\u{85}',
        ] {
            assert!(
                kind(None, order, None) == Some(Kind::Invisible),
                "{order:?}"
            );
        }
        for divider in ['\u{c}', '\u{2028}', '\u{2029}'] {
            assert!(
                kind(None, divider, None) == Some(Kind::Dividing),
                "{divider:?}"
            );
        }
        for shown in ['\t', ' ', '~', 'a'] {
            assert!(kind(None, shown, None).is_none(), "{shown:?}");
        }
    }

    #[test]
    fn joiners_are_allowed_in_scripts_and_emoji() {
        assert!(kind(Some('\u{1f468}'), '\u{200d}', Some('\u{1f469}')) == Some(Kind::Joining));
        assert!(kind(Some('\u{645}'), '\u{200c}', Some('\u{62e}')) == Some(Kind::Joining));
        assert!(kind(Some('a'), '\u{200d}', Some('b')) == Some(Kind::Invisible));
        assert!(kind(None, '\u{200d}', Some('\u{645}')) == Some(Kind::Invisible));
        assert!(kind(Some('a'), '\u{e9}', None).is_none());
        assert!(kind(Some('\u{2764}'), '\u{fe0f}', None).is_none());
    }
}
