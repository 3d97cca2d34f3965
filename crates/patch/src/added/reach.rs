//! What code reaches beyond itself: the words and the assignments that another test would notice.

use std::collections::BTreeSet;

use tree_sitter::Node;

/// How many names may be bound before none of them is taken for the code's own.
const MAX_BOUND: usize = 2000;

/// Calls `look` for a node and everything in it, the outer ones first. Does not recurse.
pub(super) fn walk<'t>(node: Node<'t>, look: &mut dyn FnMut(Node<'t>)) {
    let mut cursor = node.walk();
    let mut depth = 0usize;
    loop {
        look(cursor.node());
        if cursor.goto_first_child() {
            depth += 1;
            continue;
        }
        loop {
            if depth == 0 {
                return;
            }
            if cursor.goto_next_sibling() {
                break;
            }
            cursor.goto_parent();
            depth -= 1;
        }
    }
}

/// The first identifier of these in a node.
pub(super) fn find_identifier(node: Node<'_>, text: &str, words: &[&str]) -> Option<usize> {
    let mut found = None;
    walk(node, &mut |node| {
        let is_name = node.child_count() == 0 && node.kind().ends_with("identifier");
        if found.is_none()
            && is_name
            && text
                .get(node.byte_range())
                .is_some_and(|word| words.contains(&word))
        {
            found = Some(node.start_byte());
        }
    });
    found
}

/// The first node of these kinds in a node, itself aside.
pub(super) fn find_descendant(node: Node<'_>, kinds: &[&str]) -> Option<usize> {
    let mut found = None;
    walk(node, &mut |inner| {
        if found.is_none() && inner.id() != node.id() && kinds.contains(&inner.kind()) {
            found = Some(inner.start_byte());
        }
    });
    found
}

/// The first place that is written and belongs to nothing that the code made: `written` gives the target of an assignment.
/// `binds` gives the name that a node binds, with what it is bound to.
pub(super) fn writes_outside<'t>(
    node: Node<'t>,
    text: &str,
    written: fn(Node<'t>) -> Vec<Node<'t>>,
    binds: fn(Node<'t>) -> Vec<(Node<'t>, Option<Node<'t>>)>,
) -> Option<usize> {
    let name = |node: Node<'t>| text.get(node.byte_range()).unwrap_or_default();
    let mut bound: Vec<(&str, Option<&str>)> = vec![("self", None), ("this", None)];
    walk(node, &mut |node| {
        let with_root = |(bound, value): (Node<'t>, Option<Node<'t>>)| {
            (name(bound), value.and_then(root).map(name))
        };
        bound.extend(binds(node).into_iter().map(with_root));
    });
    if bound.len() > MAX_BOUND {
        bound.clear();
    }
    let mut own: BTreeSet<&str> = bound.iter().map(|(name, _)| *name).collect();
    // Another name for what is outside is outside, too.
    loop {
        let aliases: Vec<&str> = bound
            .iter()
            .filter(|(name, of)| own.contains(name) && of.is_some_and(|of| !own.contains(of)))
            .map(|(name, _)| *name)
            .collect();
        if aliases.is_empty() {
            break;
        }
        aliases.iter().for_each(|name| {
            own.remove(name);
        });
    }
    let mut found = None;
    walk(node, &mut |node| {
        for target in written(node) {
            let is_own = root(target).is_some_and(|root| own.contains(name(root)));
            let escapes = name(target).contains("__");
            if found.is_none() && (!is_own || escapes) {
                found = Some(target.start_byte());
            }
        }
    });
    found
}

/// The name that a chain of members and indexes begins with; nothing where it begins with a call or a value.
fn root(node: Node<'_>) -> Option<Node<'_>> {
    let mut node = node;
    loop {
        let next = match node.kind() {
            "identifier" | "this" => return Some(node),
            "attribute" | "member_expression" | "subscript_expression" => {
                node.child_by_field_name("object")
            }
            "subscript" => node.child_by_field_name("value"),
            "selector_expression" | "index_expression" | "unary_expression" => {
                node.child_by_field_name("operand")
            }
            "parenthesized_expression"
            | "non_null_expression"
            | "as_expression"
            | "expression_list"
            | "tuple" => node.named_child(0),
            _ => None,
        };
        node = next?;
    }
}
