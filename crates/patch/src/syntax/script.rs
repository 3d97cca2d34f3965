//! The entries of JavaScript and TypeScript.

use tree_sitter::Node;

use super::entry::{Definition, LeadKind, NodeClass};
use super::import::collapse_whitespace;

pub(super) fn classify<'t>(node: Node<'t>, text: &str) -> NodeClass<'t> {
    match node.kind() {
        "import_statement" => NodeClass::Import,
        "comment"
            if text
                .get(node.byte_range())
                .is_some_and(|text| text.starts_with("/**")) =>
        {
            NodeClass::Lead(LeadKind::Doc)
        }
        "comment" => NodeClass::Lead(LeadKind::Note),
        "decorator" => NodeClass::Lead(LeadKind::Attribute),
        "hash_bang_line" => NodeClass::Prose,
        "export_statement" | "ambient_declaration" => exported(node, text),
        "expression_statement" => expression(node, text),
        "empty_statement" => NodeClass::Nothing,
        ";" => NodeClass::Ends,
        _ if !node.is_named() => NodeClass::Nothing,
        _ => declared(node, text).unwrap_or(NodeClass::Other),
    }
}

fn declared<'t>(node: Node<'t>, text: &str) -> Option<NodeClass<'t>> {
    let (word, space) = match node.kind() {
        "function_declaration" | "generator_function_declaration" | "function_signature" => {
            ("function", "values")
        }
        "class_declaration" | "abstract_class_declaration" => ("class", "values"),
        "enum_declaration" => ("enum", "values"),
        "interface_declaration" => ("interface", "types"),
        "type_alias_declaration" => ("type", "types"),
        "internal_module" | "module" => ("namespace", "namespaces"),
        "lexical_declaration" | "variable_declaration" => return Some(variables(node, text)),
        "method_definition"
        | "method_signature"
        | "abstract_method_signature"
        | "public_field_definition"
        | "field_definition" => return member(node, text),
        _ => return None,
    };
    let name = text.get(node.child_by_field_name("name")?.byte_range())?;
    let holds = |body: &Node<'_>| matches!(body.kind(), "class_body" | "statement_block");
    let body = node
        .child_by_field_name("body")
        .filter(|body| word != "function" && holds(body));
    let definition = Definition::new(word, space, collapse_whitespace(name));
    Some(NodeClass::Definition {
        definition,
        body,
        lead: decorators(node),
    })
}

/// A member is found by its name and by whether it is static, reads or writes: `get v` stands beside `set v`.
fn member<'t>(node: Node<'t>, text: &str) -> Option<NodeClass<'t>> {
    let name_node = node
        .child_by_field_name("name")
        .or_else(|| node.child_by_field_name("property"))?;
    let mut name = String::new();
    for child in node
        .children(&mut node.walk())
        .take_while(|child| child.id() != name_node.id())
    {
        if matches!(child.kind(), "static" | "get" | "set") {
            name.push_str(child.kind());
            name.push(' ');
        }
    }
    name.push_str(text.get(name_node.byte_range())?);
    let definition = Definition::new("member", "members", name);
    Some(NodeClass::Definition {
        definition,
        body: None,
        lead: decorators(node),
    })
}

fn exported<'t>(node: Node<'t>, text: &str) -> NodeClass<'t> {
    let inner = node.child_by_field_name("declaration").or_else(|| {
        let is_declared = node.kind() == "ambient_declaration";
        node.named_child(0).filter(|_| is_declared)
    });
    if let Some(inner) = inner {
        return match declared(inner, text) {
            Some(NodeClass::Definition {
                definition, body, ..
            }) => NodeClass::Definition {
                definition,
                body,
                lead: decorators(node),
            },
            _ => NodeClass::Other,
        };
    }
    match node.child_by_field_name("value") {
        Some(_) => {
            let definition = Definition::new("export", "exports", "default");
            NodeClass::Definition {
                definition,
                body: None,
                lead: decorators(node),
            }
        }
        None => NodeClass::Other,
    }
}

/// `A.prototype.b = …` and `module.exports = …` define what stands on their left.
fn expression<'t>(node: Node<'t>, text: &str) -> NodeClass<'t> {
    let Some(inner) = node.named_child(0) else {
        return NodeClass::Other;
    };
    if inner.kind() == "internal_module" {
        return declared(inner, text).unwrap_or(NodeClass::Other);
    }
    let left = inner
        .child_by_field_name("left")
        .filter(|_| inner.kind() == "assignment_expression");
    match left.filter(|left| left.kind() == "member_expression") {
        Some(left) => {
            let name = collapse_whitespace(text.get(left.byte_range()).unwrap_or_default());
            let definition = Definition::new("assignment", "assignments", name);
            NodeClass::Definition {
                definition,
                body: None,
                lead: Vec::new(),
            }
        }
        None => NodeClass::Other,
    }
}

fn variables<'t>(node: Node<'t>, text: &str) -> NodeClass<'t> {
    let mut names = Vec::new();
    for declarator in node.named_children(&mut node.walk()) {
        let Some(name) = declarator.child_by_field_name("name") else {
            continue;
        };
        if name.kind() == "identifier" {
            names.extend(text.get(name.byte_range()).map(str::to_owned));
            continue;
        }
        let mut rest: Vec<Node<'_>> = vec![name];
        while let Some(part) = rest.pop() {
            match part.kind() {
                "identifier" | "shorthand_property_identifier_pattern" => {
                    names.extend(text.get(part.byte_range()).map(str::to_owned));
                }
                // `{ x: y = default }` binds what stands on the left of the default.
                "assignment_pattern" | "object_assignment_pattern" => {
                    rest.extend(part.child_by_field_name("left"));
                }
                "pair_pattern" => rest.extend(part.child_by_field_name("value")),
                _ => rest.extend(part.named_children(&mut part.walk())),
            }
        }
    }
    if names.is_empty() {
        return NodeClass::Other;
    }
    let definition = Definition {
        names,
        ..Definition::new("variable", "values", "")
    };
    NodeClass::Definition {
        definition,
        body: None,
        lead: Vec::new(),
    }
}

/// The decorators that stand before the first word.
fn decorators<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    node.children(&mut node.walk())
        .take_while(|child| child.kind() == "decorator")
        .collect()
}
