//! Which code of a source a change touches: by line, without comments, documentation and layout.

use std::collections::BTreeSet;

use similar::{Algorithm, DiffOp, capture_diff_slices};
use tree_sitter::Node;

use crate::syntax::{Grammar, Parsed};

/// The lines of a change that hold code, counted from 0.
#[derive(Debug, Default)]
pub(super) struct ChangedLines {
    /// Lines of the text afterwards that are new or different.
    pub(super) after: BTreeSet<usize>,
    /// Lines of the text before that are gone or different.
    pub(super) before: BTreeSet<usize>,
}

/// Compares two texts; without an earlier text every line is new.
pub(super) fn changed_lines(before: Option<&Parsed<'_>>, after: &Parsed<'_>) -> ChangedLines {
    let old = before.map(code_lines).unwrap_or_default();
    let new = code_lines(after);
    let texts = |lines: &[(usize, String)]| -> Vec<String> {
        lines.iter().map(|(_, text)| text.clone()).collect()
    };
    let mut changed = ChangedLines::default();
    for op in capture_diff_slices(Algorithm::Myers, &texts(&old), &texts(&new)) {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let rows = |lines: &[(usize, String)], range: std::ops::Range<usize>| -> Vec<usize> {
            let lines = lines.get(range).unwrap_or_default();
            lines.iter().map(|(row, _)| *row).collect()
        };
        changed.before.extend(rows(&old, op.old_range()));
        changed.after.extend(rows(&new, op.new_range()));
    }
    changed
}

/// The code of each line that has some: its tokens, separated by spaces.
fn code_lines(parsed: &Parsed<'_>) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for leaf in code_tokens(parsed) {
        let row = leaf.start_position().row;
        let text = parsed.text.get(leaf.byte_range()).unwrap_or_default();
        match lines.last_mut().filter(|(last, _)| *last == row) {
            Some((_, line)) => {
                line.push(' ');
                line.push_str(text);
            }
            None => lines.push((row, text.to_owned())),
        }
    }
    lines
}

/// The tokens of a text that matter to a program that runs, in order.
pub(crate) fn code_tokens<'t>(parsed: &'t Parsed<'_>) -> Vec<Node<'t>> {
    let mut found = Vec::new();
    let mut cursor = parsed.root().walk();
    loop {
        let node = cursor.node();
        let is_left_out = is_prose(parsed.grammar, node);
        if !is_left_out && node.child_count() == 0 {
            found.push(node);
        }
        if !is_left_out && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

/// Whether a program that runs cannot tell that this node is there: comments, docstrings, annotations of types that are not
/// read.
fn is_prose(grammar: Grammar, node: Node<'_>) -> bool {
    if node.kind().contains("comment") {
        return true;
    }
    let parent = node.parent().map_or("", |parent| parent.kind());
    match grammar {
        Grammar::Python => {
            let is_annotated = ["typed_parameter", "typed_default_parameter"].contains(&parent);
            node.kind() == "type"
                || node.kind() == "->"
                || node.kind() == ":" && is_annotated
                || is_docstring(node)
        }
        Grammar::TypeScript | Grammar::Tsx => matches!(
            node.kind(),
            "type_annotation" | "interface_declaration" | "type_alias_declaration"
        ),
        Grammar::Rust | Grammar::JavaScript | Grammar::Go | Grammar::C => false,
    }
}

/// Whether this is the text at the beginning of a module, a class or a function of Python.
fn is_docstring(node: Node<'_>) -> bool {
    let is_text = node.kind() == "expression_statement"
        && node
            .named_child(0)
            .is_some_and(|child| child.kind() == "string");
    is_text
        && node.named_child_count() == 1
        && node.parent().is_some_and(|parent| {
            let first = parent.named_child(0);
            ["module", "block"].contains(&parent.kind())
                && first.is_some_and(|first| first.id() == node.id())
        })
}
