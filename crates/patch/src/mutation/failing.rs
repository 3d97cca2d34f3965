//! Functions that run as they are and then fail.
//!
//! A function fails at its end, not at its beginning: code that ends the process with success, replaces it or rewrites a
//! result then still does so, and a gate that believes it stays green. In Python and JavaScript functions fail only once
//! their file is loaded, so that code which replaces the test runner while it is being loaded still does.

use tree_sitter::Node;

use super::functions::{Function, FunctionKind};
use super::{Breakage, TextEdit};
use crate::syntax::{Grammar, Parsed};

/// What broken functions fail with, in every language but C.
pub const BROKEN_ON_PURPOSE: &str = "this function is broken on purpose";
use BROKEN_ON_PURPOSE as MESSAGE;

/// The edits that make a function fail; none if it cannot be done.
pub(super) fn failing(
    parsed: &Parsed<'_>,
    function: &Function<'_>,
    breakage: Breakage,
    mark: &str,
) -> Vec<TextEdit> {
    let (node, body) = (function.node, function.body);
    let insert = |at: usize, text: String| (at..at, text);
    let opening = body.start_byte() + 1;
    match parsed.grammar {
        Grammar::Python if function.kind == FunctionKind::Expression => vec![
            insert(node.start_byte(), format!("({mark}(")),
            insert(node.end_byte(), "))".to_owned()),
        ],
        Grammar::Python => match indent(parsed.text, node.start_byte()) {
            Some(indent) => vec![insert(node.start_byte(), format!("@{mark}\n{indent}"))],
            None => Vec::new(),
        },
        Grammar::JavaScript | Grammar::TypeScript | Grammar::Tsx => {
            let end = match breakage {
                Breakage::ReturnsNothing => format!("if ({mark}) return undefined as never;"),
                _ => format!("if ({mark}) throw new Error(\"{MESSAGE}\");"),
            };
            let end = match parsed.grammar {
                Grammar::JavaScript => end.replace(" as never", ""),
                _ => end,
            };
            if function.kind == FunctionKind::Expression {
                return vec![
                    insert(body.start_byte(), "{ try { return (".to_owned()),
                    insert(body.end_byte(), format!("); }} finally {{ {end} }} }}")),
                ];
            }
            vec![
                insert(opening, " try {".to_owned()),
                insert(body.end_byte() - 1, format!("\n}} finally {{ {end} }} ")),
            ]
        }
        Grammar::Rust if function.kind == FunctionKind::Constant => {
            vec![insert(opening, format!(" panic!(\"{MESSAGE}\");"))]
        }
        Grammar::Rust => vec![insert(
            opening,
            format!(
                " #[allow(non_camel_case_types)] struct {mark}; impl Drop for {mark} {{ fn drop(&mut self) {{ \
                 panic!(\"{MESSAGE}\") }} }} let _guard{mark} = {mark};"
            ),
        )],
        Grammar::Go => vec![insert(
            opening,
            format!(" defer func() {{ if {mark} {{ panic(\"{MESSAGE}\") }} }}();"),
        )],
        Grammar::C => vec![insert(
            opening,
            format!(" __attribute__((cleanup({mark}))) int guard{mark} = 0;"),
        )],
    }
}

/// The edits that take a function's code away.
pub(super) fn remove_body(parsed: &Parsed<'_>, function: &Function<'_>) -> Vec<TextEdit> {
    let body = function.body;
    let text = match (parsed.grammar, function.kind) {
        (Grammar::Python, FunctionKind::Expression) => "None".to_owned(),
        (Grammar::Python, _) => format!("raise SystemError(\"{MESSAGE}\")"),
        (Grammar::JavaScript | Grammar::TypeScript | Grammar::Tsx, _) => {
            format!("{{ throw new Error(\"{MESSAGE}\"); }}")
        }
        (Grammar::Rust, _) => format!("{{ panic!(\"{MESSAGE}\") }}"),
        (Grammar::Go, _) => format!("{{ panic(\"{MESSAGE}\") }}"),
        (Grammar::C, _) => "{ __builtin_trap(); }".to_owned(),
    };
    vec![(body.byte_range(), text)]
}

/// What the broken functions of a file need besides.
pub(super) fn helper_edits(parsed: &Parsed<'_>, breakage: Breakage, mark: &str) -> Vec<TextEdit> {
    let end = parsed.text.len();
    let at_end = |text: String| (end..end, text);
    let is_at_once = breakage == Breakage::FailsWhileLoading;
    match parsed.grammar {
        Grammar::Python => {
            let start = python_start(parsed);
            let (loaded, then) = match breakage {
                Breakage::ReturnsNothing => (
                    "False",
                    format!(
                        "        try:\n            return function(*args, **kwargs)\n        except BaseException:\n\
                         \x20           if not {mark}_loaded:\n                raise\n        finally:\n\
                         \x20           if {mark}_loaded:\n                return None\n"
                    ),
                ),
                _ => (
                    if is_at_once { "True" } else { "False" },
                    format!(
                        "        try:\n            return function(*args, **kwargs)\n        finally:\n\
                         \x20           if {mark}_loaded:\n                raise {mark}_error(\"{MESSAGE}\")\n"
                    ),
                ),
            };
            let text = format!(
                "{mark}_loaded = {loaded}\n\n\nclass {mark}_error(BaseException):\n    pass\n\n\ndef {mark}(function):\n\
                 \x20   import functools\n\n    @functools.wraps(function)\n    def broken(*args, **kwargs):\n{then}\n\
                 \x20   return broken\n\n\n"
            );
            let loaded = match main_guard(parsed) {
                Some(at) => (at..at, format!("{mark}_loaded = True\n")),
                None => at_end(format!("\n{mark}_loaded = True\n")),
            };
            vec![(start..start, text), loaded]
        }
        Grammar::JavaScript | Grammar::TypeScript | Grammar::Tsx => {
            let declared = format!("var {mark} = true;");
            if is_at_once {
                // A function can run before any statement.
                vec![at_end(format!("\n{};\n", declared.replace(" = true", "")))]
                    .into_iter()
                    .chain([js_start(parsed, &format!("{mark} = true;"))])
                    .collect()
            } else {
                vec![at_end(format!("\n{declared}\n"))]
            }
        }
        Grammar::Go if is_at_once => vec![at_end(format!("\nvar {mark} = true\n"))],
        Grammar::Go => vec![at_end(format!(
            "\nvar {mark} = false\n\nfunc init() {{ {mark} = true }}\n"
        ))],
        Grammar::C => vec![(
            0..0,
            format!("static void {mark}(int *guard) {{ (void)guard; __builtin_trap(); }}\n"),
        )],
        Grammar::Rust => Vec::new(),
    }
}

/// Text before the first statement of a script, behind its directives and the line that names its interpreter.
fn js_start(parsed: &Parsed<'_>, text: &str) -> TextEdit {
    let mut cursor = parsed.root().walk();
    let is_head = |node: &Node<'_>| {
        let is_directive = node.kind() == "expression_statement"
            && node
                .named_child(0)
                .is_some_and(|child| child.kind() == "string");
        node.kind() == "hash_bang_line" || node.kind() == "comment" || is_directive
    };
    let first = parsed
        .root()
        .named_children(&mut cursor)
        .find(|node| !is_head(node));
    let at = first.map_or(parsed.text.len(), |node| node.start_byte());
    (at..at, format!("{text}\n"))
}

/// Where statements may begin in a module of Python: behind its docstring and imports from the future.
fn python_start(parsed: &Parsed<'_>) -> usize {
    let mut cursor = parsed.root().walk();
    let is_head = |node: &Node<'_>| {
        let is_text = node.kind() == "expression_statement"
            && node
                .named_child(0)
                .is_some_and(|child| child.kind() == "string");
        is_text || matches!(node.kind(), "future_import_statement" | "comment")
    };
    let first = parsed
        .root()
        .named_children(&mut cursor)
        .find(|node| !is_head(node));
    let at = first.map_or(parsed.text.len(), |node| node.start_byte());
    // A decorator or a statement begins its line here.
    parsed
        .text
        .get(..at)
        .map_or(0, |head| head.rfind('\n').map_or(0, |end| end + 1))
}

/// Where `if __name__ == "__main__":` begins.
fn main_guard(parsed: &Parsed<'_>) -> Option<usize> {
    let mut cursor = parsed.root().walk();
    let guard = parsed.root().named_children(&mut cursor).find(|node| {
        let condition = node.child_by_field_name("condition");
        let text = condition.and_then(|condition| parsed.text.get(condition.byte_range()));
        node.kind() == "if_statement" && text.is_some_and(|text| text.contains("__name__"))
    });
    guard.map(|guard| guard.start_byte())
}

/// The indentation of the line that something begins, or nothing if something else comes before it.
fn indent(text: &str, at: usize) -> Option<&str> {
    let head = text.get(..at)?;
    let line = head.rfind('\n').map_or(0, |end| end + 1);
    head.get(line..).filter(|indent| indent.trim().is_empty())
}
