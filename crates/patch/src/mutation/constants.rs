//! Changed code outside of functions: constants get a wrong value of their type, the rest is named.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::changed::code_tokens;
use super::functions::{Function, is_in_test};
use super::rules::wrong_literal;
use super::{TextEdit, Unbroken};
use crate::syntax::{Grammar, Parsed};

/// What came of the lines outside of functions.
#[derive(Debug, Default)]
pub(super) struct ConstantEdits {
    pub(super) edits: Vec<TextEdit>,
    pub(super) rest: Vec<Unbroken>,
}

/// Gives the literals on these lines and outside of functions a wrong value.
pub(super) fn constants(
    parsed: &Parsed<'_>,
    lines: &BTreeSet<usize>,
    functions: &[Function<'_>],
) -> ConstantEdits {
    let mut found = ConstantEdits::default();
    let mut seen = BTreeSet::new();
    for leaf in code_tokens(parsed) {
        let is_inside =
            |function: &Function<'_>| function.node.byte_range().contains(&leaf.start_byte());
        if !lines.contains(&leaf.start_position().row)
            || functions.iter().any(is_inside)
            || parsed.grammar == Grammar::Rust && is_in_test(parsed, leaf)
        {
            continue;
        }
        let statement = statement(parsed, leaf);
        let nature = nature(parsed, statement);
        if nature != StatementKind::Value {
            if seen.insert(statement.id()) {
                found.rest.push(match nature {
                    StatementKind::Loading => Unbroken::Loading,
                    StatementKind::Value | StatementKind::Declaration => Unbroken::Declaration,
                });
            }
            continue;
        }
        if let Some(edit) = wrong_literal(parsed, leaf).filter(|_| !is_argument(leaf, statement)) {
            found.edits.push(edit);
        }
    }
    found
}

/// What a statement outside of functions does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatementKind {
    /// It names a value.
    Value,
    /// It computes nothing.
    Declaration,
    /// It runs code when the file is loaded.
    Loading,
}

/// The statement of a file, a class or a module that a token stands in.
fn statement<'t>(parsed: &Parsed<'_>, leaf: Node<'t>) -> Node<'t> {
    let containers: &[&str] = match parsed.grammar {
        Grammar::Python => &["module", "block"],
        Grammar::JavaScript | Grammar::TypeScript | Grammar::Tsx => {
            &["program", "class_body", "export_statement"]
        }
        Grammar::Rust => &["source_file", "declaration_list"],
        Grammar::Go => &[
            "source_file",
            "const_declaration",
            "var_declaration",
            "var_spec_list",
        ],
        Grammar::C => &[
            "translation_unit",
            "preproc_ifdef",
            "preproc_if",
            "preproc_else",
        ],
    };
    let mut node = leaf;
    while let Some(parent) = node.parent() {
        if containers.contains(&parent.kind()) {
            break;
        }
        node = parent;
    }
    node
}

fn nature(parsed: &Parsed<'_>, statement: Node<'_>) -> StatementKind {
    let kind = statement.kind();
    let runs = |node: Node<'_>| has_call(parsed, node);
    let value = |node: Node<'_>| {
        if runs(node) {
            StatementKind::Loading
        } else {
            StatementKind::Value
        }
    };
    match parsed.grammar {
        Grammar::Python => match kind {
            "import_statement"
            | "import_from_statement"
            | "future_import_statement"
            | "pass_statement"
            | "class_definition"
            | "decorated_definition"
            | "function_definition"
            | "class"
            | "def" => StatementKind::Declaration,
            "expression_statement" => {
                let assigned = statement
                    .named_child(0)
                    .filter(|child| child.kind() == "assignment");
                let is_name = assigned
                    .and_then(|assignment| assignment.child_by_field_name("left"))
                    .is_some_and(|left| left.kind() == "identifier");
                match assigned {
                    Some(assignment) if is_name => value(assignment),
                    _ if statement
                        .named_child(0)
                        .is_some_and(|child| child.kind() == "string") =>
                    {
                        StatementKind::Declaration
                    }
                    _ => StatementKind::Loading,
                }
            }
            _ => StatementKind::Loading,
        },
        Grammar::JavaScript | Grammar::TypeScript | Grammar::Tsx => match kind {
            "import_statement"
            | "class_declaration"
            | "interface_declaration"
            | "type_alias_declaration"
            | "export_clause"
            | "function_declaration"
            | "ambient_declaration" => StatementKind::Declaration,
            "lexical_declaration"
            | "variable_declaration"
            | "public_field_definition"
            | "field_definition" => value(statement),
            _ if statement.child_count() == 0 => StatementKind::Declaration,
            _ => StatementKind::Loading,
        },
        Grammar::Rust => match kind {
            "const_item" => StatementKind::Value,
            "static_item" => value(statement),
            "macro_definition" | "macro_invocation" | "expression_statement" => {
                StatementKind::Loading
            }
            _ => StatementKind::Declaration,
        },
        Grammar::Go => match kind {
            "const_spec" => StatementKind::Value,
            "var_spec" => value(statement),
            _ => StatementKind::Declaration,
        },
        Grammar::C => match kind {
            "declaration" => value(statement),
            "preproc_def" | "preproc_function_def" => StatementKind::Loading,
            _ => StatementKind::Declaration,
        },
    }
}

/// What runs only when it is called.
const FUNCTIONS: [&str; 6] = [
    "arrow_function",
    "function_expression",
    "generator_function",
    "lambda",
    "closure_expression",
    "func_literal",
];

/// Whether something is called below a node while its file is loaded.
fn has_call(parsed: &Parsed<'_>, node: Node<'_>) -> bool {
    let calls = [
        "call",
        "call_expression",
        "new_expression",
        "macro_invocation",
        "await",
        "await_expression",
    ];
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        if FUNCTIONS.contains(&node.kind()) {
            continue;
        }
        if calls.contains(&node.kind()) {
            // `require` is how a script imports.
            let callee = node
                .child_by_field_name("function")
                .and_then(|name| parsed.text.get(name.byte_range()));
            if callee != Some("require") {
                return true;
            }
        }
        let mut cursor = node.walk();
        open.extend(node.named_children(&mut cursor));
    }
    false
}

/// Whether a token stands in a call of its statement: it says what to load, not what something is.
fn is_argument(leaf: Node<'_>, statement: Node<'_>) -> bool {
    let mut node = leaf;
    while let Some(parent) = node.parent().filter(|_| node.id() != statement.id()) {
        if matches!(parent.kind(), "arguments" | "argument_list" | "token_tree") {
            return true;
        }
        node = parent;
    }
    false
}
