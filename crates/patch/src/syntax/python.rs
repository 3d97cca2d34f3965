//! The entries of Python.

use tree_sitter::Node;

use super::entry::{Definition, LeadKind, NodeClass};
use super::import::collapse_whitespace;

pub(super) fn classify<'t>(node: Node<'t>, text: &str) -> NodeClass<'t> {
    match node.kind() {
        "function_definition" | "class_definition" => definition(node, text, Vec::new()),
        "decorated_definition" => {
            let decorators: Vec<Node<'t>> = node
                .children(&mut node.walk())
                .filter(|child| child.kind() == "decorator")
                .collect();
            match node.child_by_field_name("definition") {
                Some(inner) => definition(inner, text, decorators),
                None => NodeClass::Other,
            }
        }
        "expression_statement" => match node.named_child(0) {
            Some(inner) if inner.kind() == "assignment" => assignment(inner, text),
            Some(inner) if inner.kind() == "string" => NodeClass::Prose,
            Some(inner) if inner.kind() == "ellipsis" => NodeClass::Nothing,
            _ => NodeClass::Other,
        },
        "type_alias_statement" => match node.child_by_field_name("left") {
            Some(left) => {
                let name = text.get(left.byte_range()).unwrap_or_default();
                let name = name.split('[').next().unwrap_or_default().trim();
                let definition = Definition::new("type", "names", name);
                NodeClass::Definition {
                    definition,
                    body: None,
                    lead: Vec::new(),
                }
            }
            None => NodeClass::Other,
        },
        "import_statement" | "import_from_statement" | "future_import_statement" => {
            NodeClass::Import
        }
        "comment" if node.start_byte() == 0 && text.starts_with("#!") => NodeClass::Prose,
        "comment" => NodeClass::Lead(LeadKind::Doc),
        "pass_statement" => NodeClass::Nothing,
        "if_statement" | "try_statement" | "with_statement" | "for_statement"
        | "while_statement" => NodeClass::Branches(blocks(node)),
        ";" => NodeClass::Ends,
        _ if !node.is_named() => NodeClass::Nothing,
        _ => NodeClass::Other,
    }
}

fn definition<'t>(node: Node<'t>, text: &str, lead: Vec<Node<'t>>) -> NodeClass<'t> {
    let Some(name) = node
        .child_by_field_name("name")
        .and_then(|name| text.get(name.byte_range()))
    else {
        return NodeClass::Other;
    };
    if node.kind() == "class_definition" {
        let body = node.child_by_field_name("body");
        return NodeClass::Definition {
            definition: Definition::new("class", "names", name),
            body,
            lead,
        };
    }
    // `@area.setter` above `def area` makes another thing of that name.
    let accessor = lead.iter().find_map(|decorator| {
        let written = text
            .get(decorator.byte_range())?
            .trim_start_matches('@')
            .trim();
        let (on, what) = written.split_once('.')?;
        (on == name && matches!(what, "setter" | "deleter" | "getter"))
            .then(|| format!("{name}.{what}"))
    });
    let name = accessor.unwrap_or_else(|| name.to_owned());
    NodeClass::Definition {
        definition: Definition::new("def", "names", name),
        body: None,
        lead,
    }
}

fn assignment<'t>(node: Node<'t>, text: &str) -> NodeClass<'t> {
    let mut names = Vec::new();
    let mut next = Some(node);
    while let Some(node) = next {
        let Some(left) = node.child_by_field_name("left") else {
            break;
        };
        let written =
            |node: Node<'_>| collapse_whitespace(text.get(node.byte_range()).unwrap_or_default());
        if matches!(
            left.kind(),
            "pattern_list" | "tuple_pattern" | "list_pattern"
        ) {
            names.extend(left.named_children(&mut left.walk()).map(written));
        } else {
            names.push(written(left));
        }
        next = node
            .child_by_field_name("right")
            .filter(|right| right.kind() == "assignment");
    }
    if names.iter().all(|name| name == "_") {
        return NodeClass::Other;
    }
    let definition = Definition {
        names,
        ..Definition::new("variable", "names", "")
    };
    NodeClass::Definition {
        definition,
        body: None,
        lead: Vec::new(),
    }
}

/// The blocks of a statement and of its clauses.
fn blocks<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut blocks = Vec::new();
    for child in node.named_children(&mut node.walk()) {
        if child.kind() == "block" {
            blocks.push(child);
        } else if child.kind().ends_with("_clause") {
            blocks.extend(
                child
                    .named_children(&mut child.walk())
                    .filter(|inner| inner.kind() == "block"),
            );
        }
    }
    blocks
}

/// The function of a definition that may be decorated.
pub(crate) fn function<'t>(node: Node<'t>) -> Option<Node<'t>> {
    let inner = if node.kind() == "decorated_definition" {
        node.child_by_field_name("definition")?
    } else {
        node
    };
    (inner.kind() == "function_definition").then_some(inner)
}

/// Whether a function is written as a method: by its first parameter or by a decorator that only methods have.
pub(crate) fn is_method(node: Node<'_>, text: &str) -> bool {
    let Some(function) = function(node) else {
        return false;
    };
    let first = function
        .child_by_field_name("parameters")
        .and_then(|parameters| parameters.named_child(0));
    let first = first
        .and_then(|first| text.get(first.byte_range()))
        .unwrap_or_default();
    let above = text
        .get(node.start_byte()..function.start_byte())
        .unwrap_or_default();
    let decorated = ["@staticmethod", "@classmethod", "@property"]
        .iter()
        .any(|mark| above.contains(mark));
    matches!(first, "self" | "cls") || decorated
}

/// The docstring of a function: the string that is its first statement.
pub(crate) fn docstring<'t>(node: Node<'t>) -> Option<Node<'t>> {
    let body = function(node)?.child_by_field_name("body")?;
    let first = body
        .named_child(0)
        .filter(|first| first.kind() == "expression_statement")?;
    let string = first
        .named_child(0)
        .filter(|string| string.kind() == "string")?;
    (first.named_child_count() == 1).then_some(string)
}

/// The first statement of a function's body.
pub(crate) fn first_statement<'t>(node: Node<'t>) -> Option<Node<'t>> {
    function(node)?.child_by_field_name("body")?.named_child(0)
}
