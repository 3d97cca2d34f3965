//! The entries of Go.

use tree_sitter::Node;

use super::entry::{Definition, LeadKind, NodeClass, SpecPlace};
use super::import::collapse_whitespace;

pub(super) fn classify<'t>(node: Node<'t>, text: &str) -> NodeClass<'t> {
    match node.kind() {
        "package_clause" => NodeClass::Prose,
        "import_declaration" => NodeClass::Import,
        "comment" => NodeClass::Lead(LeadKind::Doc),
        "function_declaration" => match name(node, text) {
            Some(name) => plain(Definition::new("func", "names", name)),
            None => NodeClass::Other,
        },
        "method_declaration" => match (receiver(node, text), name(node, text)) {
            (Some(on), Some(name)) => {
                plain(Definition::new("method", "methods", format!("{on}.{name}")))
            }
            _ => NodeClass::Other,
        },
        "type_declaration" => specs(node, text, "type"),
        "var_declaration" => specs(node, text, "var"),
        "const_declaration" => specs(node, text, "const"),
        _ if !node.is_named() => NodeClass::Nothing,
        _ => NodeClass::Other,
    }
}

fn plain<'t>(definition: Definition) -> NodeClass<'t> {
    NodeClass::Definition {
        definition,
        body: None,
        lead: Vec::new(),
    }
}

fn name<'a>(node: Node<'_>, text: &'a str) -> Option<&'a str> {
    node.child_by_field_name("name")
        .and_then(|name| text.get(name.byte_range()))
}

/// The type that a method belongs to, without pointer and parameters.
fn receiver(node: Node<'_>, text: &str) -> Option<String> {
    let parameter = node.child_by_field_name("receiver")?.named_child(0)?;
    let written = text.get(parameter.child_by_field_name("type")?.byte_range())?;
    let bare = written
        .split('[')
        .next()?
        .trim_start_matches(['*', '(', ' ']);
    Some(collapse_whitespace(bare))
}

fn specs<'t>(node: Node<'t>, text: &str, keyword: &'static str) -> NodeClass<'t> {
    let mut place = SpecPlace::Alone;
    let mut specs = Vec::new();
    let mut rest: Vec<Node<'t>> = vec![node];
    while let Some(part) = rest.pop() {
        for child in part.children(&mut part.walk()) {
            match child.kind() {
                "(" => place = SpecPlace::Grouped,
                "var_spec_list" => rest.push(child),
                "type_spec" | "type_alias" | "const_spec" | "var_spec" => {
                    let mut cursor = child.walk();
                    let names = child
                        .children_by_field_name("name", &mut cursor)
                        .filter(Node::is_named);
                    let names: Vec<String> = names
                        .filter_map(|name| text.get(name.byte_range()).map(str::to_owned))
                        .collect();
                    if names.iter().any(|name| name != "_") {
                        specs.push((child, names));
                    }
                }
                _ => {}
            }
        }
    }
    if specs.is_empty() {
        NodeClass::Other
    } else {
        NodeClass::Specs {
            keyword,
            specs,
            place,
        }
    }
}
