//! What a proposed test imports.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::TestFault;
use super::shape::{is_name, text};
use crate::syntax::{Grammar, Parsed};

/// Modules of tests and of the language that a test may import: they compute and reach nothing.
const COMMON_MODULES: [&str; 18] = [
    "unittest",
    "pytest",
    "datetime",
    "decimal",
    "fractions",
    "math",
    "json",
    "re",
    "collections",
    "itertools",
    "functools",
    "string",
    "asyncio",
    "node:test",
    "node:assert",
    "node:assert/strict",
    "assert",
    "assert/strict",
];

/// What a test imports.
#[derive(Default)]
pub(super) struct Imports {
    /// The names that it has from then on.
    pub(super) names: BTreeSet<String>,
    /// The modules, but for common ones.
    pub(super) modules: Vec<String>,
}

/// Reads what a test imports; an error if it is neither common nor of the repository.
pub(super) fn imports(parsed: &Parsed<'_>, nodes: &[Node<'_>]) -> Result<Imports, TestFault> {
    let mut found = Imports::default();
    let mut module = |name: &str| {
        let name = name.trim_matches(['\'', '"']);
        if COMMON_MODULES.contains(&name) {
            return Ok(());
        }
        let is_of_script = parsed.grammar == Grammar::JavaScript;
        if name.starts_with('_') || is_of_script != name.starts_with('.') {
            return Err(TestFault::Name(name.to_owned()));
        }
        found.modules.push(name.to_owned());
        Ok(())
    };
    let mut of_statements = BTreeSet::new();
    for node in nodes {
        match node.kind() {
            "import_from_statement" => {
                let module_node = node.child_by_field_name("module_name");
                module(module_node.map_or("", |of| text(parsed, of)))?;
                of_statements.insert(node.id());
            }
            "import_statement" if parsed.grammar == Grammar::Python => {
                let mut cursor = node.walk();
                for child in node.named_children(&mut cursor) {
                    let name = child.child_by_field_name("name").unwrap_or(child);
                    module(text(parsed, name))?;
                }
                of_statements.insert(node.id());
            }
            "import_statement" => {
                let module_node = node.child_by_field_name("source");
                module(module_node.map_or("", |of| text(parsed, of)))?;
                of_statements.insert(node.id());
            }
            "call_expression" => {
                let callee = node.child_by_field_name("function");
                if callee.is_none_or(|callee| text(parsed, callee) != "require") {
                    continue;
                }
                let argument = node.child_by_field_name("arguments");
                let argument = argument.and_then(|arguments| arguments.named_child(0));
                let literal = argument.filter(|argument| argument.kind() == "string");
                module(literal.map_or("", |literal| text(parsed, literal)))?;
                let mut outer = node.parent();
                while let Some(parent) = outer {
                    if parent.kind() == "variable_declarator" {
                        of_statements.insert(parent.id());
                        break;
                    }
                    outer = parent.parent();
                }
            }
            _ => {}
        }
    }
    let belongs = |node: &Node<'_>| {
        let mut outer = node.parent();
        while let Some(parent) = outer {
            if of_statements.contains(&parent.id()) {
                return true;
            }
            outer = parent.parent();
        }
        false
    };
    let names = nodes
        .iter()
        .filter(|node| is_name(node.kind()) && belongs(node));
    found.names = names.map(|node| text(parsed, *node).to_owned()).collect();
    Ok(found)
}
