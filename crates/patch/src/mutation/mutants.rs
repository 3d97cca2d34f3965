//! Small mistakes in changed lines: a suite that tests the lines notices them.

use crucible_model::RepoPath;
use serde::{Deserialize, Serialize};
use tree_sitter::Node;

use super::changed::{changed_lines, code_tokens};
use super::functions::{functions, is_in_test};
use super::rules::{other_number, other_operators, wrong_literal};
use super::{TextEdit, touched, with_edits};
use crate::class::is_test_path;
use crate::diff::make_diff;
use crate::syntax::{Grammar, Parsed};

/// The most mutants of one file.
pub const MAX_MUTANTS: usize = 200;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mutant {
    /// The file.
    pub path: RepoPath,
    /// The line of the mistake, counted from 1.
    pub line: u64,
    /// What was done, such as `+ became -`.
    pub what: String,
    /// The text with the mistake.
    pub text: String,
}

/// Returns the mutants of the lines that a change touches in one file, in the order of the text; `before` is absent in a
/// new file. Tests, and files without a grammar, have none.
#[must_use]
pub fn mutants(path: &RepoPath, before: Option<&[u8]>, after: &[u8]) -> Vec<Mutant> {
    mutants_of(path, before, after).unwrap_or_default()
}

fn mutants_of(path: &RepoPath, before: Option<&[u8]>, after: &[u8]) -> Option<Vec<Mutant>> {
    if is_test_path(path) {
        return None;
    }
    let grammar = Grammar::of_tested(path)?;
    let text = std::str::from_utf8(after).ok()?;
    let parsed = Parsed::parse(grammar, text).ok()?;
    let old = before.map(std::str::from_utf8).transpose().ok()?;
    let old = old.and_then(|old| Parsed::parse(grammar, old).ok());
    let changed = changed_lines(old.as_ref(), &parsed);
    let all = functions(&parsed);
    let touched = touched(old.as_ref(), &all, &changed);
    let has_line = |node: Node<'_>| {
        let rows = node.start_position().row..=node.end_position().row;
        changed.after.range(rows).next().is_some()
    };
    let mut found: Vec<(TextEdit, String)> = Vec::new();
    for leaf in code_tokens(&parsed) {
        if changed.after.contains(&leaf.start_position().row) && is_computed(&parsed, leaf) {
            of_leaf(&parsed, leaf, &mut found);
        }
    }
    for function in touched {
        let mut open = vec![function.body];
        while let Some(node) = open.pop() {
            if has_line(node) {
                of_node(&parsed, node, &mut found);
            }
            let mut cursor = node.walk();
            open.extend(
                node.named_children(&mut cursor)
                    .filter(|child| has_line(*child)),
            );
        }
    }
    found.sort_by_key(|((range, _), what)| (range.start, range.end, what.clone()));
    found.dedup();
    let line = |at: usize| 1 + text.get(..at).map_or(0, |head| head.matches('\n').count()) as u64;
    let mutants = found
        .into_iter()
        .take(MAX_MUTANTS)
        .map(|(edit, what)| Mutant {
            path: path.clone(),
            line: line(edit.0.start),
            what,
            text: with_edits(text, vec![edit]),
        });
    Some(
        mutants
            .filter(|mutant| Parsed::parse(grammar, &mutant.text).is_ok())
            .collect(),
    )
}

impl Mutant {
    /// Returns the mistake as a unified diff against the changed file.
    #[must_use]
    pub fn diff(&self, after: &[u8]) -> String {
        let change = |bytes: &[u8]| [(self.path.clone(), bytes.to_vec())].into_iter().collect();
        let diff = make_diff(&change(after), &change(self.text.as_bytes()));
        diff.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }
}

/// Whether a token is computed with: not a part of an import, a type, an attribute or a call's name.
fn is_computed(parsed: &Parsed<'_>, leaf: Node<'_>) -> bool {
    let mut next = Some(leaf);
    while let Some(node) = next {
        let kind = node.kind();
        let is_apart = kind.contains("import")
            || kind.contains("use_declaration")
            || kind.contains("attribute_item")
            || matches!(
                kind,
                "type"
                    | "type_annotation"
                    | "type_arguments"
                    | "type_parameters"
                    | "preproc_include"
                    | "field_declaration_list"
                    | "generic_type"
                    | "reference_type"
                    | "pointer_type"
                    | "abstract_declarator"
                    | "type_identifier"
            );
        if is_apart {
            return false;
        }
        next = node.parent();
    }
    // Tests among the sources have no mutants.
    parsed.grammar != Grammar::Rust || !is_in_test(parsed, leaf)
}

/// Operators and constants.
fn of_leaf(parsed: &Parsed<'_>, leaf: Node<'_>, found: &mut Vec<(TextEdit, String)>) {
    let text = parsed.text.get(leaf.byte_range()).unwrap_or_default();
    let parent = leaf.parent().map_or("", |parent| parent.kind());
    if !leaf.is_named()
        && parent.contains("expression")
            | parent.contains("operator")
            | parent.contains("assignment")
            | parent.contains("statement")
        && is_operator_place(leaf)
    {
        for new in other_operators(text) {
            found.push((
                (leaf.byte_range(), (*new).to_owned()),
                format!("{text} became {new}"),
            ));
        }
        return;
    }
    if let Some((range, new)) = wrong_literal(parsed, leaf) {
        found.push((
            (range, new.clone()),
            format!("{} became {}", short(text), short(&new)),
        ));
        // A boundary: one less, beside one more.
        if let Some(value) = text
            .parse::<u64>()
            .ok()
            .filter(|value| *value > 0 && other_number(text).is_some())
        {
            let less = value - 1;
            if new != less.to_string() {
                found.push((
                    (leaf.byte_range(), less.to_string()),
                    format!("{text} became {less}"),
                ));
            }
        }
    }
}

/// Whether something stands on both sides of an operator, or it changes a variable.
fn is_operator_place(leaf: Node<'_>) -> bool {
    let is_between = leaf.prev_sibling().is_some() && leaf.next_sibling().is_some();
    is_between
        || leaf.parent().is_some_and(|parent| {
            ["update_expression", "inc_statement", "dec_statement"].contains(&parent.kind())
        })
}

/// Conditions, returned values and whole statements.
fn of_node(parsed: &Parsed<'_>, node: Node<'_>, found: &mut Vec<(TextEdit, String)>) {
    let text = |node: Node<'_>| parsed.text.get(node.byte_range()).unwrap_or_default();
    if let Some(condition) = node.child_by_field_name("condition")
        && !condition.kind().contains("let_c")
        && condition.kind() != "let_chain"
        && node.kind() != "for_statement"
    {
        let negated = match parsed.grammar {
            Grammar::Python => format!("not ({})", text(condition)),
            Grammar::JavaScript | Grammar::TypeScript | Grammar::Tsx | Grammar::C
                if condition.kind() == "parenthesized_expression" =>
            {
                format!("(!{})", text(condition))
            }
            _ => format!("!({})", text(condition)),
        };
        found.push((
            (condition.byte_range(), negated),
            format!("the condition `{}` is negated", short(text(condition))),
        ));
    }
    match node.kind() {
        "return_statement" => {
            let value = node.named_child(0);
            let nothing = match parsed.grammar {
                Grammar::Python => Some("None"),
                Grammar::JavaScript => Some("undefined"),
                Grammar::TypeScript | Grammar::Tsx => Some("undefined as never"),
                Grammar::C => Some("0"),
                Grammar::Rust | Grammar::Go => None,
            };
            if let (Some(value), Some(nothing)) = (value, nothing)
                && ![nothing, "null"].contains(&text(value))
            {
                found.push((
                    (value.byte_range(), nothing.to_owned()),
                    format!("it returns {nothing}"),
                ));
            }
        }
        "block" | "function_body" if parsed.grammar == Grammar::Rust => {
            // The value of a block, where its type has a default.
            let last = node.named_child(node.named_child_count().saturating_sub(1) as u32);
            let is_body = node
                .parent()
                .is_some_and(|parent| parent.kind() == "function_item");
            let is_value = |last: &Node<'_>| {
                last.kind().ends_with("expression")
                    || last.kind().ends_with("_literal")
                    || last.kind() == "identifier"
            };
            if let Some(last) = last.filter(|last| is_body && is_value(last))
                && text(last) != "Default::default()"
            {
                found.push((
                    (last.byte_range(), "Default::default()".to_owned()),
                    "it returns the default of its type".to_owned(),
                ));
            }
        }
        _ => {}
    }
    let is_removable = match parsed.grammar {
        Grammar::Python => {
            node.kind() == "expression_statement"
                && node
                    .named_child(0)
                    .is_some_and(|child| child.kind() != "string")
        }
        _ => {
            node.kind() == "expression_statement"
                || matches!(
                    node.kind(),
                    "assignment_statement" | "inc_statement" | "dec_statement" | "throw_statement"
                )
        }
    };
    if is_removable && !text(node).starts_with("super") {
        let empty = if parsed.grammar == Grammar::Python {
            "pass"
        } else {
            ""
        };
        let ends_block = parsed.grammar == Grammar::Rust && !text(node).ends_with(';');
        if !ends_block {
            found.push((
                (node.byte_range(), empty.to_owned()),
                format!("`{}` is removed", short(text(node))),
            ));
        }
    }
}

/// The beginning of a text on one line.
fn short(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().take(40).collect();
    if cut.len() < line.len() {
        format!("{cut}…")
    } else {
        cut
    }
}
