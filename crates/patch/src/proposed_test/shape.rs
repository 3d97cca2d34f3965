//! The shape of a proposed test: its statements, its names and its one assertion.

use std::collections::BTreeSet;

use crucible_model::RepoPath;
use tree_sitter::Node;

use super::imports::imports;
use super::{EXPECTED_BLANK, ProposedTest, TestFault, normal_literal};
use crate::mutation::{TextEdit, with_edits};
use crate::syntax::{Grammar, Parsed};

/// The largest proposed test, in bytes.
const MAX_TEST: usize = 8 << 10;

/// Names that reach beyond the tested code, or change what it is.
const REACHING: [&str; 31] = [
    "open",
    "exec",
    "eval",
    "compile",
    "globals",
    "locals",
    "vars",
    "setattr",
    "getattr",
    "delattr",
    "input",
    "exit",
    "quit",
    "breakpoint",
    "sys",
    "os",
    "subprocess",
    "inspect",
    "mock",
    "patch",
    "monkeypatch",
    "importlib",
    "builtins",
    "Function",
    "globalThis",
    "process",
    "constructor",
    "prototype",
    "skip",
    "fail",
    "todo",
];

/// Whether a token of this kind is a name.
pub(super) fn is_name(kind: &str) -> bool {
    matches!(
        kind,
        "identifier"
            | "property_identifier"
            | "shorthand_property_identifier"
            | "shorthand_property_identifier_pattern"
    )
}

/// Reads a proposed test. `name` is that of the test, and `expected` the literal that its assertion compares with.
///
/// # Errors
///
/// Fails if code cannot judge the test.
pub fn proposed_test(
    path: &RepoPath,
    text: &str,
    name: &str,
    expected: &str,
) -> Result<ProposedTest, TestFault> {
    let grammar = match Grammar::from_path(path) {
        Some(grammar @ (Grammar::Python | Grammar::JavaScript)) => grammar,
        _ => return Err(TestFault::NoGrammar),
    };
    if text.len() > MAX_TEST {
        return Err(TestFault::Unparsed);
    }
    let parsed = Parsed::parse(grammar, text).map_err(|_| TestFault::Unparsed)?;
    let nodes = nodes(&parsed);
    let names_of_tests = statements(&parsed, &nodes, name)?;
    let imports = imports(&parsed, &nodes)?;
    assignments(&parsed, &nodes, &imports.names)?;
    let names = names(&parsed, &nodes)?;
    if imports.modules.is_empty() {
        return Err(TestFault::NoModule);
    }
    let assertions: Vec<Node<'_>> = nodes
        .iter()
        .copied()
        .filter(|node| is_assertion(&parsed, *node))
        .collect();
    let [assertion] = assertions.as_slice() else {
        return Err(TestFault::Assertions(assertions.len()));
    };
    let value = expectation(&parsed, *assertion, expected)?;
    normal_literal(path, expected).ok_or(TestFault::NoExpectation)?;
    let mut edits: Vec<TextEdit> = vec![(value.byte_range(), EXPECTED_BLANK.to_owned())];
    for node in &nodes {
        let new = if node.kind() == "comment" || is_lone_text(*node) {
            String::new()
        } else if names_of_tests.contains(&node.id()) {
            if node.kind() == "identifier" {
                "test_it"
            } else {
                "'test'"
            }
            .to_owned()
        } else {
            continue;
        };
        edits.push((node.byte_range(), new));
    }
    Ok(ProposedTest {
        blanked: with_edits(text, edits),
        names,
        modules: imports.modules,
    })
}

/// Every node of a tree, outer ones first.
fn nodes<'t>(parsed: &'t Parsed<'_>) -> Vec<Node<'t>> {
    let mut found = Vec::new();
    let mut open = vec![parsed.root()];
    while let Some(node) = open.pop() {
        found.push(node);
        let mut cursor = node.walk();
        let children: Vec<Node<'t>> = node.children(&mut cursor).collect();
        open.extend(children.into_iter().rev());
    }
    found
}

pub(super) fn text<'t>(parsed: &'t Parsed<'_>, node: Node<'_>) -> &'t str {
    parsed.text.get(node.byte_range()).unwrap_or_default()
}

fn line(node: Node<'_>) -> u64 {
    node.start_position().row as u64 + 1
}

/// Whether a statement is only a text, such as a docstring.
fn is_lone_text(node: Node<'_>) -> bool {
    let is_lone = node.kind() == "string" && node.named_child_count() <= 3;
    is_lone
        && node
            .parent()
            .is_some_and(|parent| parent.kind() == "expression_statement")
}

/// Checks the statements; returns the ids of the nodes that name the test and its class.
fn statements(
    parsed: &Parsed<'_>,
    nodes: &[Node<'_>],
    name: &str,
) -> Result<BTreeSet<usize>, TestFault> {
    let is_python = parsed.grammar == Grammar::Python;
    let mut named = BTreeSet::new();
    let (mut tests, mut classes, mut blocks) = (0, 0, 0);
    for node in nodes.iter().filter(|node| node.is_named()) {
        let kind = node.kind();
        let is_allowed = match kind {
            "import_statement" | "expression_statement" => true,
            "import_from_statement" | "assert_statement" | "pass_statement" | "with_statement" => {
                is_python
            }
            "lexical_declaration" | "variable_declaration" => !is_python,
            "function_definition" => {
                tests += 1;
                let own = node.child_by_field_name("name");
                let own = own.filter(|own| text(parsed, *own) == name);
                named.extend(own.map(|own| own.id()));
                is_python && own.is_some()
            }
            "class_definition" => {
                classes += 1;
                let bases = node.child_by_field_name("superclasses");
                named.extend(node.child_by_field_name("name").map(|own| own.id()));
                bases.is_some_and(|bases| text(parsed, bases).ends_with("TestCase)"))
            }
            // The body of the test of a script.
            "statement_block" => {
                blocks += 1;
                !is_python
            }
            "augmented_assignment"
            | "named_expression"
            | "assignment_expression"
            | "augmented_assignment_expression"
            | "update_expression"
            | "decorator"
            | "yield"
            | "yield_expression"
            | "class_declaration"
            | "function_declaration"
            | "generator_function"
            | "generator_function_declaration"
            | "method_definition"
            | "class" => false,
            kind => !kind.ends_with("_statement"),
        };
        if !is_allowed {
            return Err(TestFault::Statement {
                line: line(*node),
                kind: kind.to_owned(),
            });
        }
    }
    if is_python {
        let is_one = tests == 1 && classes <= 1;
        return if is_one {
            Ok(named)
        } else {
            Err(TestFault::NotOneTest)
        };
    }
    // `test('name', () => { … })`
    let title = nodes.iter().filter(|node| {
        let is_title =
            node.kind() == "string" && text(parsed, **node).trim_matches(['\'', '"']) == name;
        let call = node.parent().and_then(|arguments| arguments.parent());
        let callee = call.and_then(|call| call.child_by_field_name("function"));
        is_title && callee.is_some_and(|callee| matches!(text(parsed, callee), "test" | "it"))
    });
    named.extend(title.map(|node| node.id()));
    let calls = nodes.iter().filter(|node| {
        let callee = node.child_by_field_name("function");
        node.kind() == "call_expression"
            && callee.is_some_and(|callee| matches!(text(parsed, callee), "test" | "it"))
    });
    if named.len() == 1 && blocks == 1 && calls.count() == 1 {
        Ok(named)
    } else {
        Err(TestFault::NotOneTest)
    }
}

/// Checks that a test assigns only to names of its own.
fn assignments(
    parsed: &Parsed<'_>,
    nodes: &[Node<'_>],
    imported: &BTreeSet<String>,
) -> Result<(), TestFault> {
    for node in nodes.iter().filter(|node| node.kind() == "assignment") {
        let left = node.child_by_field_name("left");
        let is_own = left.is_some_and(|left| {
            left.kind() == "identifier" && !imported.contains(text(parsed, left))
        });
        if !is_own {
            return Err(TestFault::Assignment(line(*node)));
        }
    }
    Ok(())
}

/// The names that a test uses; an error if one is private or reaches beyond the tested code.
fn names(parsed: &Parsed<'_>, nodes: &[Node<'_>]) -> Result<BTreeSet<String>, TestFault> {
    let mut found = BTreeSet::new();
    for node in nodes.iter().filter(|node| is_name(node.kind())) {
        let name = text(parsed, *node);
        if name.starts_with('_') || REACHING.contains(&name) {
            return Err(TestFault::Name(name.to_owned()));
        }
        found.insert(name.to_owned());
    }
    Ok(found)
}

fn is_assertion(parsed: &Parsed<'_>, node: Node<'_>) -> bool {
    match node.kind() {
        "assert_statement" => true,
        "call" => {
            let callee = node.child_by_field_name("function");
            let name = callee.map_or("", |callee| text(parsed, callee));
            let name = name.rsplit('.').next().unwrap_or_default();
            name.starts_with("assert") || name == "raises"
        }
        "call_expression" => {
            let callee = node.child_by_field_name("function");
            let name = callee.map_or("", |callee| text(parsed, callee));
            name == "assert" || name.starts_with("assert.")
        }
        _ => false,
    }
}

/// The node of the expected value: an argument of the assertion, or a side of its comparison.
fn expectation<'t>(
    parsed: &'t Parsed<'_>,
    assertion: Node<'t>,
    expected: &str,
) -> Result<Node<'t>, TestFault> {
    let mut sides: Vec<Node<'t>> = Vec::new();
    let arguments = assertion.child_by_field_name("arguments");
    let mut cursor = assertion.walk();
    for child in assertion.named_children(&mut cursor) {
        let is_compared = child.kind() == "comparison_operator" && child.named_child_count() == 2;
        if is_compared {
            let mut cursor = child.walk();
            sides.extend(child.named_children(&mut cursor));
        }
    }
    if let Some(arguments) = arguments {
        let mut cursor = arguments.walk();
        sides.extend(arguments.named_children(&mut cursor).take(2));
    }
    let mut same = sides
        .into_iter()
        .filter(|side| text(parsed, *side) == expected.trim());
    match (same.next(), same.next()) {
        (Some(side), None) => Ok(side),
        _ => Err(TestFault::NoExpectation),
    }
}
