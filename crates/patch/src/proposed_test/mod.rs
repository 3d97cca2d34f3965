//! A test that a model proposes as an objection: what it may consist of, and what it expects.
//!
//! Such a test must be simple enough to be judged by code: one test with one assertion that compares a result with a literal. It
//! only imports, assigns and calls. So it can neither fail for a reason of its own nor replace what it tests. Everything goes by
//! the syntax tree and is a pure function of its arguments.

mod imports;
mod shape;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crucible_model::RepoPath;

use crate::mutation::{code_tokens, functions};
use crate::syntax::{Grammar, Parsed};

pub use shape::proposed_test;

/// What stands in the place of the expected value for an author who is asked for it.
pub const EXPECTED_BLANK: &str = "EXPECTED_VALUE";

/// A proposed test that code can judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedTest {
    /// The test without its expected value, its comments and its names.
    pub blanked: String,
    /// The names that it uses and does not define.
    pub names: BTreeSet<String>,
    /// The modules that it imports, other than those of tests and of the language.
    pub modules: Vec<String>,
}

/// Why code cannot judge a proposed test.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TestFault {
    /// Its path is in no language whose tests are judged.
    #[error("tests of this kind of file are not judged")]
    NoGrammar,
    /// The text does not follow its grammar.
    #[error("it does not follow its grammar")]
    Unparsed,
    /// It has a statement of another kind.
    #[error("line {line}: a `{kind}` is not allowed; a test imports, assigns, calls and asserts")]
    Statement {
        /// The line, from 1.
        line: u64,
        /// The kind of the statement in its grammar.
        kind: String,
    },
    /// It has no test of this name, or more than one test.
    #[error("it must contain one test, with the given name")]
    NotOneTest,
    /// It has no assertion, or more than one.
    #[error("it has {0} assertions; one is required")]
    Assertions(usize),
    /// Its assertion does not compare with the expected value as a literal.
    #[error("its assertion must compare with the given expected value, a literal")]
    NoExpectation,
    /// It uses a name that is private or reaches beyond the tested code.
    #[error("it uses `{0}`, which is private or reaches beyond public code")]
    Name(String),
    /// It changes something that it does not own.
    #[error("line {0}: it may assign only to new names")]
    Assignment(u64),
    /// It imports nothing of the repository.
    #[error("it imports no module of the repository")]
    NoModule,
}

/// Returns the files that a module's name may mean, for a test at `test`.
#[must_use]
pub fn module_files(test: &RepoPath, module: &str) -> Vec<RepoPath> {
    let names: Vec<String> = if test.extension() == Some("py") {
        let path = module.replace('.', "/");
        ["", "src/"]
            .iter()
            .flat_map(|root| {
                [
                    format!("{root}{path}.py"),
                    format!("{root}{path}/__init__.py"),
                ]
            })
            .collect()
    } else {
        let mut parts: Vec<&str> = test.as_str().split('/').collect();
        parts.pop();
        for part in module.split('/') {
            match part {
                "." | "" => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let path = parts.join("/");
        ["", ".js", ".mjs", ".cjs", ".ts", "/index.js"]
            .iter()
            .map(|ending| format!("{path}{ending}"))
            .collect()
    };
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// Returns the names of a source that it has after a change and not before. `before` is absent in a new file.
#[must_use]
pub fn new_names(path: &RepoPath, before: Option<&[u8]>, after: &[u8]) -> BTreeSet<String> {
    let before = before.map(|before| names(path, before)).unwrap_or_default();
    names(path, after).difference(&before).cloned().collect()
}

/// The names in a source; nothing if it does not follow its grammar.
fn names(path: &RepoPath, source: &[u8]) -> BTreeSet<String> {
    let text = std::str::from_utf8(source).unwrap_or_default();
    let Some(parsed) =
        Grammar::from_path(path).and_then(|grammar| Parsed::parse(grammar, text).ok())
    else {
        return BTreeSet::new();
    };
    let found = code_tokens(&parsed)
        .into_iter()
        .filter(|leaf| shape::is_name(leaf.kind()));
    found
        .filter_map(|leaf| text.get(leaf.byte_range()).map(str::to_owned))
        .collect()
}

/// Returns the heads of the functions with these names, without their bodies.
#[must_use]
pub fn signatures(path: &RepoPath, source: &[u8], names: &BTreeSet<String>) -> Vec<String> {
    let text = std::str::from_utf8(source).unwrap_or_default();
    let Some(parsed) =
        Grammar::from_path(path).and_then(|grammar| Parsed::parse(grammar, text).ok())
    else {
        return Vec::new();
    };
    let is_used = |name: &str| names.contains(name.rsplit('.').next().unwrap_or(name));
    functions(&parsed)
        .into_iter()
        .filter(|function| is_used(&function.name))
        .filter_map(|function| text.get(function.node.start_byte()..function.body.start_byte()))
        .map(|head| {
            head.trim()
                .trim_end_matches(['{', ':', '=', '>'])
                .trim()
                .to_owned()
        })
        .collect()
}

/// Returns a literal in one spelling, so that equal literals are equal texts; nothing if it is not a literal.
#[must_use]
pub fn normal_literal(path: &RepoPath, literal: &str) -> Option<String> {
    let grammar = Grammar::from_path(path)?;
    let text = format!("x = {}\n", literal.trim());
    let parsed = Parsed::parse(grammar, &text).ok()?;
    if parsed.root().named_child_count() != 1 {
        return None;
    }
    let mut spelled: Vec<String> = Vec::new();
    for leaf in code_tokens(&parsed).into_iter().skip(2) {
        let word = text.get(leaf.byte_range())?;
        // The name of a property is part of a literal.
        let is_variable = shape::is_name(leaf.kind()) && leaf.kind() != "property_identifier";
        if is_variable && !word.starts_with(char::is_uppercase) {
            return None;
        }
        let word = match leaf.kind() {
            "string_start" | "string_end" | "'" => "\"".to_owned(),
            "integer" | "float" | "number" => word
                .parse::<f64>()
                .map_or(word.to_owned(), |n| n.to_string()),
            _ => word.to_owned(),
        };
        // A comma before the end of a list says nothing; in parentheses it makes a tuple.
        if ["]", "}"].contains(&word.as_str()) && spelled.last().is_some_and(|last| last == ",") {
            spelled.pop();
        }
        if word != ";" {
            spelled.push(word);
        }
    }
    (!spelled.is_empty()).then(|| spelled.join(" "))
}
