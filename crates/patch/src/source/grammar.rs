//! What a grammar says of the literals of a script: where a slash divides and where it begins a regular expression.
//!
//! Only a text that follows its grammar is parsed in this way; the masks stand for every other.

use std::ops::Range;

use super::mask::Masked;
use crate::syntax::{Grammar, Parsed};

/// The text as its tree divides it, or nothing where it has no tree.
pub(super) fn script(source: &[u8]) -> Option<Masked> {
    scripts(source).next()
}

/// The text as each grammar divides it that it follows.
pub(super) fn scripts(source: &[u8]) -> impl Iterator<Item = Masked> + use<'_> {
    let text = std::str::from_utf8(source).ok();
    [Grammar::JavaScript, Grammar::TypeScript, Grammar::Tsx]
        .into_iter()
        .filter_map(move |grammar| {
            let text = text?;
            let parsed = Parsed::parse(grammar, text).ok()?;
            let mut out = source.to_vec();
            let mut literals: Vec<Range<usize>> = Vec::new();
            let mut cursor = parsed.root().walk();
            // A walk without recursion: down, on, or up to what goes on.
            'walk: loop {
                let node = cursor.node();
                let is_literal = matches!(
                    node.kind(),
                    "string" | "regex" | "comment" | "jsx_text" | "html_comment" | "hash_bang_line"
                );
                let is_piece = matches!(
                    node.kind(),
                    "string_fragment" | "escape_sequence" | "`" | "${"
                );
                if is_literal || is_piece {
                    let range = node.byte_range();
                    let bytes = out.get_mut(range.clone()).unwrap_or_default();
                    bytes
                        .iter_mut()
                        .filter(|byte| **byte != b'\n')
                        .for_each(|byte| *byte = b' ');
                    if !node.kind().contains("comment") {
                        literals.push(range);
                    }
                }
                if !is_literal && cursor.goto_first_child() {
                    continue;
                }
                while !cursor.goto_next_sibling() {
                    if !cursor.goto_parent() {
                        break 'walk;
                    }
                }
            }
            Some(Masked::of_tree(out, literals))
        })
}
