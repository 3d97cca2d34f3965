//! The rules of mutation: what becomes of literals and operators.

use tree_sitter::Node;

use super::TextEdit;
use crate::syntax::{Grammar, Parsed};

/// The longest literal that is changed, in bytes.
const MAX_LITERAL: usize = 4096;

/// A literal with another value of its type; nothing if the token is not a literal.
pub(super) fn wrong_literal(parsed: &Parsed<'_>, leaf: Node<'_>) -> Option<TextEdit> {
    let text = parsed.text.get(leaf.byte_range())?;
    if text.len() > MAX_LITERAL {
        return None;
    }
    let replaced = |new: String| Some((leaf.byte_range(), new));
    match leaf.kind() {
        "integer" | "float" | "number" | "integer_literal" | "float_literal" | "int_literal"
        | "number_literal" => replaced(other_number(text)?),
        "true" | "True" => replaced(match_case(text, "false")),
        "false" | "False" => replaced(match_case(text, "true")),
        // The text of a string, between its quotes.
        "string_content" | "string_fragment" | "interpreted_string_literal_content"
            if !is_inside_formatted(parsed, leaf) =>
        {
            replaced(format!("~{text}"))
        }
        "interpreted_string_literal" | "raw_string_literal" if parsed.grammar == Grammar::Go => {
            let (quote, rest) = text.split_at_checked(1)?;
            replaced(format!("{quote}~{rest}"))
        }
        _ => None,
    }
}

fn is_inside_formatted(parsed: &Parsed<'_>, leaf: Node<'_>) -> bool {
    parsed.grammar == Grammar::Rust
        && leaf
            .parent()
            .is_some_and(|string| string.kind() == "raw_string_literal")
}

fn match_case(text: &str, word: &str) -> String {
    if text.starts_with(char::is_uppercase) {
        let mut letters = word.chars();
        let first = letters.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(letters).collect()
    } else {
        word.to_owned()
    }
}

/// Another number in the same notation: the last digit before a point or an end is another one.
pub(super) fn other_number(text: &str) -> Option<String> {
    let is_decimal = !text.starts_with("0x") && !text.starts_with("0b") && !text.starts_with("0o");
    if !is_decimal {
        return None;
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '_')
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let value: u64 = digits.replace('_', "").parse().ok()?;
    // One more would not fit into the type of a largest value.
    let new = if value == u64::MAX
        || [
            255,
            127,
            65_535,
            32_767,
            i32::MAX as u64,
            u64::from(u32::MAX),
            i64::MAX as u64,
        ]
        .contains(&value)
    {
        value - 1
    } else {
        value + 1
    };
    Some(format!("{new}{rest}"))
}

/// What an operator is replaced by, the most telling one first.
pub(super) fn other_operators(operator: &str) -> &'static [&'static str] {
    match operator {
        "+" => &["-"],
        "-" => &["+"],
        "*" => &["/"],
        "/" => &["*"],
        "//" => &["*"],
        "%" => &["*"],
        "**" => &["*"],
        "==" => &["!="],
        "!=" => &["=="],
        "===" => &["!=="],
        "!==" => &["==="],
        "<" => &["<=", ">="],
        "<=" => &["<", ">"],
        ">" => &[">=", "<="],
        ">=" => &[">", "<"],
        "&&" => &["||"],
        "||" => &["&&"],
        "and" => &["or"],
        "or" => &["and"],
        "&" => &["|"],
        "|" => &["&"],
        "^" => &["&"],
        "<<" => &[">>"],
        ">>" => &["<<"],
        "+=" => &["-="],
        "-=" => &["+="],
        "*=" => &["/="],
        "/=" => &["*="],
        "??" => &["&&"],
        "is" => &["is not"],
        "in" => &["not in"],
        "++" => &["--"],
        "--" => &["++"],
        _ => &[],
    }
}
