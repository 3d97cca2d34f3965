//! Tests of Rust: functions with an attribute `test`.

use crucible_model::RepoPath;
use tree_sitter::Node;

use super::reach::{find_descendant, find_identifier};
use super::{Checked, Rules, UnitKind};

pub(super) const RULES: Rules = Rules {
    unit,
    inside,
    check,
    file,
};

/// Names with which code reaches the process that other tests run in.
const FORBIDDEN: [&str; 12] = [
    "abort",
    "asm",
    "exit",
    "global_allocator",
    "include",
    "process",
    "remove_var",
    "set_current_dir",
    "set_hook",
    "set_var",
    "take_hook",
    "transmute",
];

/// Attributes of a test that change nothing but the test.
const ATTRIBUTES: [&str; 6] = [
    "should_panic",
    "allow",
    "expect",
    "case",
    "test_case",
    "rstest",
];

fn unit(node: Node<'_>, text: &str) -> UnitKind {
    match node.kind() {
        "function_item" if attributes(node, text).iter().any(|name| is_test(name)) => {
            let name = node
                .child_by_field_name("name")
                .and_then(|name| text.get(name.byte_range()));
            UnitKind::Test(name.unwrap_or_default().to_owned())
        }
        "function_item" | "const_item" | "struct_item" | "enum_item" | "type_item"
            if attributes(node, text)
                .iter()
                .all(|name| matches!(*name, "derive" | "allow" | "expect")) =>
        {
            UnitKind::Helper
        }
        "use_declaration"
            if node
                .named_child(0)
                .is_none_or(|first| first.kind() != "visibility_modifier") =>
        {
            UnitKind::Import
        }
        // `mod common;` brings what lies beside the tests already.
        "mod_item"
            if node.child_by_field_name("body").is_none() && attributes(node, text).is_empty() =>
        {
            UnitKind::Helper
        }
        _ => UnitKind::Other,
    }
}

fn is_test(attribute: &str) -> bool {
    attribute == "test" || attribute == "rstest" || attribute.ends_with("::test")
}

/// The names of the attributes above a node.
fn attributes<'a>(node: Node<'_>, text: &'a str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut before = node.prev_sibling();
    while let Some(node) = before.filter(|node| {
        matches!(
            node.kind(),
            "attribute_item" | "line_comment" | "block_comment"
        )
    }) {
        if node.kind() == "attribute_item" {
            let written = text.get(node.byte_range()).unwrap_or_default();
            let name = written
                .trim_start_matches(['#', '[', ' '])
                .split(['(', ']', '=', ' '])
                .next();
            found.extend(name);
        }
        before = node.prev_sibling();
    }
    found
}

fn inside<'t>(node: Node<'t>, _text: &str) -> Vec<Node<'t>> {
    let body = node
        .child_by_field_name("body")
        .filter(|_| node.kind() == "mod_item");
    body.map(|body| body.named_children(&mut body.walk()).collect())
        .unwrap_or_default()
}

fn check(node: Node<'_>, text: &str) -> Checked {
    let attributes = attributes(node, text);
    let is_plain = |name: &&str| is_test(name) || ATTRIBUTES.contains(name) || *name == "derive";
    if !attributes.iter().all(is_plain) {
        return Err((
            node.start_byte(),
            "an attribute may switch the test off, or change others",
        ));
    }
    if let Some(at) = find_identifier(node, text, &FORBIDDEN) {
        return Err((at, "this name reaches the process of other tests"));
    }
    let kinds = [
        "impl_item",
        "macro_definition",
        "mod_item",
        "unsafe_block",
        "static_item",
        "foreign_mod_item",
        "extern_crate_declaration",
        "use_wildcard",
        "trait_item",
    ];
    match find_descendant(node, &kinds) {
        Some(at) => Err((at, "an item of this kind reaches beyond its test")),
        None => Ok(()),
    }
}

fn file(path: &RepoPath) -> bool {
    path.extension() == Some("rs") && path.file_name() != "main.rs"
}
