//! The entries of Rust.

use tree_sitter::Node;

use super::entry::{Definition, LeadKind, NodeClass};
use super::import::collapse_whitespace;

pub(super) fn classify<'t>(node: Node<'t>, text: &str) -> NodeClass<'t> {
    let (word, space) = match node.kind() {
        "function_item" | "function_signature_item" => ("fn", "values"),
        "const_item" => ("const", "values"),
        "static_item" => ("static", "values"),
        "struct_item" => ("struct", "types"),
        "enum_item" => ("enum", "types"),
        "union_item" => ("union", "types"),
        "type_item" | "associated_type" => ("type", "types"),
        "trait_item" => ("trait", "types"),
        "mod_item" => ("mod", "types"),
        "macro_definition" => ("macro", "macros"),
        "impl_item" => return implementation(node, text),
        "foreign_mod_item" => {
            let body = node.child_by_field_name("body");
            let end = body.map_or(node.end_byte(), |body| body.start_byte());
            let name = collapse_whitespace(text.get(node.start_byte()..end).unwrap_or_default());
            return NodeClass::Definition {
                definition: Definition::new("block", "externs", name),
                body,
                lead: vec![],
            };
        }
        "use_declaration" | "extern_crate_declaration" => return NodeClass::Import,
        "attribute_item" => return NodeClass::Lead(LeadKind::Attribute),
        "line_comment" | "block_comment" => {
            return match (
                node.child_by_field_name("inner"),
                node.child_by_field_name("outer"),
            ) {
                (Some(_), _) => NodeClass::Nothing,
                (None, Some(_)) => NodeClass::Lead(LeadKind::Doc),
                (None, None) => NodeClass::Lead(LeadKind::Note),
            };
        }
        "empty_statement" => return NodeClass::Nothing,
        _ if !node.is_named() => return NodeClass::Nothing,
        _ => return NodeClass::Other,
    };
    let name = node
        .child_by_field_name("name")
        .and_then(|name| text.get(name.byte_range()));
    match name {
        // `const _` has no name, so it can only be there or not.
        None | Some("_") => NodeClass::Other,
        Some(name) => {
            let body = node
                .child_by_field_name("body")
                .filter(|body| body.kind() == "declaration_list");
            NodeClass::Definition {
                definition: Definition::new(word, space, name),
                body,
                lead: Vec::new(),
            }
        }
    }
}

/// An `impl` is found by its trait and its type, as they are written. Bounds and `where` are not part of its name.
fn implementation<'t>(node: Node<'t>, text: &str) -> NodeClass<'t> {
    let field_text = |field: &str| {
        node.child_by_field_name(field)
            .and_then(|part| text.get(part.byte_range()))
    };
    let Some(on) = field_text("type") else {
        return NodeClass::Other;
    };
    let (name, short) = match field_text("trait") {
        Some(what) => (
            format!(
                "{} for {}",
                collapse_whitespace(what),
                collapse_whitespace(on)
            ),
            format!("{} for {}", bare_type(what), bare_type(on)),
        ),
        None => (collapse_whitespace(on), bare_type(on)),
    };
    let definition = Definition {
        short: Some(short),
        ..Definition::new("impl", "impls", name)
    };
    NodeClass::Definition {
        definition,
        body: node.child_by_field_name("body"),
        lead: Vec::new(),
    }
}

/// `fmt::Display<T>` as `Display`.
fn bare_type(text: &str) -> String {
    let text = collapse_whitespace(text);
    let head = text.split('<').next().unwrap_or_default();
    head.rsplit("::").next().unwrap_or_default().to_owned()
}

/// Whether a function takes `self`.
pub(crate) fn takes_self(node: Node<'_>) -> bool {
    node.child_by_field_name("parameters")
        .is_some_and(|parameters| {
            parameters.named_child(0).is_some_and(|first| {
                first.kind() == "self_parameter"
                    || first
                        .child_by_field_name("pattern")
                        .is_some_and(|name| name.kind() == "self")
            })
        })
}
