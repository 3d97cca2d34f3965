//! Pages, help and messages are plain English: short sentences, short lines, no private idioms.
//!
//! Pages are the Markdown files outside of tests. Help and messages are the documentation and the strings of
//! product code; only their idioms are checked, as a string may be a query or a pattern. A placeholder such as
//! `{name}` is code. Code spans, links, tables, headings and fenced code of a page are not sentences.

use super::super::rule::{Report, Rule};
use super::super::source::Kind;
use super::super::workspace::Workspace;

/// The most words of a sentence.
const MAX_WORDS: usize = 25;
/// The most characters of a line that holds no address.
const MAX_LINE: usize = 120;

/// Words that stand for a common term, and that term.
const IDIOMS: &[(&str, &str)] = &[
    ("anew", "again"),
    ("are none", "are not"),
    ("answers for", "approves"),
    ("comes to nothing", "fails"),
    ("counts for nothing", "is ignored"),
    ("hand over", "pass"),
    ("hold together", "are consistent"),
    ("holds together", "is consistent"),
    ("is none", "is not"),
    ("is said", "is reported"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("no word of", "nothing of"),
    ("somebody", "a person"),
    ("speaks of", "mentions"),
    ("spoken of", "mentioned"),
    ("stands before", "comes before"),
    ("stands there", "exists"),
    ("tells of", "reports"),
    ("those there are", "those that exist"),
    ("told", "reported"),
    ("where it lies", "its path"),
    ("whoever", "anyone who"),
];

/// Files whose strings are kept as they are: the list above, and prompts whose bytes recordings and the
/// `prompt_hash` of a plan depend on.
const KEPT: &[&str] = &[
    "crates/council/src/synthesis.rs",
    "crates/crawl/src/debate/prompts.rs",
    "crates/forge/src/packet.rs",
    "crates/forge/src/research/advice.rs",
    "crates/run/src/dispatch/evidence.rs",
    "crates/spec/src/phase/review.rs",
    "xtask/src/tidy/rules/prose.rs",
];

/// No page, help or message is hard to read.
pub(in super::super) struct Prose;

impl Rule for Prose {
    fn name(&self) -> &'static str {
        "prose"
    }

    fn check(&self, workspace: &Workspace, report: &mut Report<'_>) {
        for file in workspace.files().filter(|file| is_page(&file.path)) {
            check_page(&file.path, &file.text, report);
        }
        for (_, file, parsed) in workspace.product_code() {
            if KEPT.contains(&file.path.as_str()) {
                continue;
            }
            let strings = parsed
                .product
                .iter()
                .filter(|token| token.kind == Kind::Literal && token.text.contains(' '));
            for token in strings {
                report_idioms(&file.path, token.line, &token.text, report);
            }
        }
    }
}

/// Whether a person reads the file as a page of the project.
fn is_page(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_at_top = !path.contains('/');
    let is_of_crate =
        path.starts_with("crates/") && name == "README.md" && path.matches('/').count() == 2;
    path.ends_with(".md") && (is_at_top || path.starts_with("docs/") || is_of_crate)
}

fn check_page(path: &str, text: &str, report: &mut Report<'_>) {
    let mut paragraph = String::new();
    let mut first = 1;
    let mut is_code = false;
    for (line, number) in text.lines().zip(1..) {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") {
            is_code = !is_code;
        }
        let is_apart =
            is_code || trimmed.starts_with("```") || trimmed.starts_with(['|', '#', '<']);
        if is_apart || trimmed.is_empty() || begins_item(trimmed) {
            report_sentences(path, first, &std::mem::take(&mut paragraph), report);
            first = number;
        }
        if is_code {
            continue;
        }
        let length = line.chars().count();
        if length > MAX_LINE
            && !trimmed.starts_with('|')
            && !line.contains("](")
            && !line.contains("://")
        {
            let message = format!("{length} characters; wrap the line at {MAX_LINE}");
            report(path, number, message);
        }
        report_idioms(path, number, &without_code(line), report);
        if !is_apart {
            paragraph.push_str(trimmed);
            paragraph.push(' ');
        }
    }
    report_sentences(path, first, &paragraph, report);
}

/// Whether a line begins an item of a list or a quotation.
fn begins_item(line: &str) -> bool {
    let after_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ")
        || line.starts_with("* ")
        || line.starts_with('>')
        || (after_number.len() < line.len() && after_number.starts_with(". "))
}

fn report_sentences(path: &str, line: usize, paragraph: &str, report: &mut Report<'_>) {
    for sentence in sentences(paragraph) {
        let words = sentence.split_whitespace().count();
        if words > MAX_WORDS {
            let opening: Vec<&str> = sentence.split_whitespace().take(8).collect();
            let message = format!(
                "a sentence of {words} words, and at most {MAX_WORDS} are clear: \"{} …\"",
                opening.join(" ")
            );
            report(path, line, message);
        }
    }
}

/// The sentences of a paragraph without its code spans and the targets of its links.
fn sentences(paragraph: &str) -> Vec<String> {
    let without_code = without_code(paragraph);
    let mut plain = String::new();
    let mut rest = without_code.as_str();
    while let Some((before, after)) = rest.split_once("](") {
        plain.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    let mut sentences = vec![String::new()];
    for word in plain.split_whitespace() {
        if let Some(sentence) = sentences.last_mut() {
            sentence.push_str(word);
            sentence.push(' ');
        }
        if word
            .trim_end_matches([')', '"', '*', '_'])
            .ends_with(['.', ':', ';', '?', '!'])
        {
            sentences.push(String::new());
        }
    }
    sentences
}

fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect()
}

fn report_idioms(path: &str, line: usize, text: &str, report: &mut Report<'_>) {
    let words = text.to_ascii_lowercase();
    for (idiom, term) in IDIOMS {
        let is_alone = |at: usize| {
            let is_letter = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
            let is_before = |c: char| is_letter(c) || c == '{';
            !words[..at].ends_with(is_before) && !words[at + idiom.len()..].starts_with(is_letter)
        };
        if words.match_indices(idiom).any(|(at, _)| is_alone(at)) {
            let message = format!("`{idiom}` is an idiom; write `{term}` or another common term");
            report(path, line, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rule_findings;
    use super::super::super::workspace::Package;
    use super::*;

    fn problems(path: &str, text: &str) -> Vec<String> {
        let files = [(path, text)];
        rule_findings(
            &Prose,
            &Workspace::from_files(&files, vec![Package::sample("crucible-a")]),
        )
    }

    #[test]
    fn long_sentence_of_page_is_reported_once() {
        let long = "word ".repeat(MAX_WORDS + 1);
        let page =
            format!("# {long}\n\nShort.\n{long}\n\n- Fine `{long}` here.\n\n```\n{long}\n```\n");
        let found = problems("docs/a.md", &page);
        assert_eq!(
            found
                .iter()
                .filter(|line| line.contains("sentence of 26 words"))
                .count(),
            1
        );
    }

    #[test]
    fn sentences_of_items_are_counted_apart() {
        let half = "word ".repeat(MAX_WORDS / 2 + 1);
        let page = format!("- {half}\n- {half}\n1. {half}\n\n{half}:\n{half}\n");
        assert!(problems("docs/a.md", &page).is_empty());
    }

    #[test]
    fn long_line_without_address_is_reported() {
        let long = format!("{}\n", "word. ".repeat(MAX_LINE / 6 + 1));
        assert_eq!(problems("README.md", &long).len(), 1);
        assert!(problems("README.md", &format!("[a](b) {long}")).is_empty());
        assert!(problems("crates/a/tests/page.md", &long).is_empty());
    }

    #[test]
    fn idiom_is_found_only_as_whole_words() {
        assert_eq!(
            problems("docs/a.md", "It is told.\nIt is untold, mending.\n").len(),
            1
        );
        let code = "//! Owns a.\n/// Mended.\nconst A: &str = \"the ledger is told\"; // told\n";
        let found = problems("crates/a/src/lib.rs", code);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn placeholder_and_kept_prompt_are_not_idioms() {
        let code =
            "//! Owns a.\nconst A: &str = \"{told} of {b}\";\nconst B: &str = \"told {b}\";\n";
        assert_eq!(problems("crates/a/src/lib.rs", code).len(), 1);
        let prompts = "crates/crawl/src/debate/prompts.rs";
        let crawl = |path| {
            let files = [
                ("crates/crawl/src/lib.rs", "//! Owns a.\nmod debate;\n"),
                (
                    "crates/crawl/src/debate/mod.rs",
                    "//! Owns a.\nmod other;\nmod prompts;\n",
                ),
                (path, code),
            ];
            rule_findings(
                &Prose,
                &Workspace::from_files(&files, vec![Package::sample("crucible-crawl")]),
            )
        };
        assert!(crawl(prompts).is_empty());
        assert_eq!(crawl("crates/crawl/src/debate/other.rs").len(), 1);
    }
}
