//! Tests that expect other values: a result that is right fails them, one that is forged does not.
//!
//! Only literals that an assertion compares with are changed, not those that it passes to the tested code.

use crucible_model::RepoPath;
use tree_sitter::Node;

use super::changed::code_tokens;
use super::functions::is_in_test;
use super::rules::wrong_literal;
use super::{TextEdit, with_edits};
use crate::class::is_test_path;
use crate::syntax::{Grammar, Parsed};

/// Which expected values are altered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlteredExpectations {
    /// All: each test fails by itself.
    All,
    /// The last one of each file: without tests that fail by themselves, an earlier one would hide it.
    Last,
}

/// The text with other expected values in its tests; nothing if it has no test that expects a literal.
#[must_use]
pub fn alter_expectations(
    path: &RepoPath,
    source: &[u8],
    which: AlteredExpectations,
) -> Option<String> {
    let grammar = Grammar::of_tested(path)?;
    let is_test_file = is_test_path(path);
    if !is_test_file && grammar != Grammar::Rust {
        return None;
    }
    let text = std::str::from_utf8(source).ok()?;
    let parsed = Parsed::parse(grammar, text).ok()?;
    let mut edits: Vec<TextEdit> = code_tokens(&parsed)
        .into_iter()
        .filter(|leaf| is_test_file || is_in_test(&parsed, *leaf))
        .filter(|leaf| is_expected(&parsed, *leaf))
        .filter_map(|leaf| wrong_literal(&parsed, leaf))
        .collect();
    if which == AlteredExpectations::Last {
        edits.drain(..edits.len().saturating_sub(1));
    }
    (!edits.is_empty()).then(|| with_edits(text, edits))
}

/// Whether an assertion compares with this token: the way up to it leads through no other call.
fn is_expected(parsed: &Parsed<'_>, leaf: Node<'_>) -> bool {
    let mut node = leaf;
    while let Some(parent) = node.parent() {
        match parent.kind() {
            "assert_statement" => return true,
            "call" | "call_expression" => {
                let callee = parent.child_by_field_name("function");
                let is_argument = callee.is_some_and(|callee| callee.id() != node.id());
                if !callee.is_some_and(|callee| is_constructor(parsed, callee)) {
                    return is_argument
                        && callee.is_some_and(|callee| is_assertion(parsed, callee));
                }
            }
            // The tokens of a macro: those in parentheses behind a name belong to a call.
            "token_tree" => {
                if let Some(before) = parent.prev_sibling()
                    && before.kind() == "identifier"
                    && !is_constructor(parsed, before)
                {
                    return false;
                }
            }
            "macro_invocation" => {
                let name = parent.child_by_field_name("macro");
                if name.is_some_and(|name| is_assertion(parsed, name)) {
                    return true;
                }
            }
            // `if got != 5 {`
            "binary_expression" if parsed.grammar == Grammar::Go => {
                let operator = parent.child_by_field_name("operator");
                let operator = operator.and_then(|operator| parsed.text.get(operator.byte_range()));
                if matches!(operator, Some("!=" | "==")) {
                    return true;
                }
            }
            // A row of a table: its last value is the expected one.
            "literal_value" if parsed.grammar == Grammar::Go => {
                let last = parent.named_child(parent.named_child_count().saturating_sub(1) as u32);
                return last.is_some_and(|last| last.byte_range().contains(&leaf.start_byte()));
            }
            "lambda"
            | "arrow_function"
            | "function_expression"
            | "closure_expression"
            | "func_literal"
            | "subscript"
            | "index_expression" => return false,
            _ => {}
        }
        node = parent;
    }
    false
}

/// Whether a name is one of an assertion: `assertEqual`, `expect(x).toBe`, `t.is`, `assert_eq`, `require.Equal`.
fn is_assertion(parsed: &Parsed<'_>, callee: Node<'_>) -> bool {
    let text = parsed.text.get(callee.byte_range()).unwrap_or_default();
    let name = text.rsplit(['.', ':']).next().unwrap_or_default();
    let lower = name.to_ascii_lowercase();
    let begins = [
        "assert",
        "expect",
        "tobe",
        "toequal",
        "tostrictequal",
        "tomatch",
        "tohave",
        "tocontain",
        "check",
    ];
    let is_whole = [
        "equal",
        "equals",
        "deepequal",
        "strictequal",
        "deepstrictequal",
        "notequal",
        "eql",
        "is",
        "same",
        "eq",
        "be",
        "include",
        "deep",
        "ok",
        "like",
    ];
    begins.iter().any(|begin| lower.starts_with(begin)) || is_whole.contains(&lower.as_str())
}

/// Whether a name is one of a type, whose values an assertion compares with.
fn is_constructor(parsed: &Parsed<'_>, callee: Node<'_>) -> bool {
    let text = parsed.text.get(callee.byte_range()).unwrap_or_default();
    let name = text.rsplit(['.', ':']).next().unwrap_or_default();
    // In Go, functions of other packages begin like this.
    parsed.grammar != Grammar::Go && name.starts_with(char::is_uppercase)
}
