//! Whether the test of a skill asks anything: a test that compares nothing passes whatever the skill does.
//!
//! It reads the text alone, so it knows what is not asked at all, and not whether what is asked is worth asking.

use std::collections::BTreeSet;

use crucible_model::{Code, Finding, Verdict};
use tree_sitter::Node;

use crate::python::{Names, PythonSource};

/// A test that asks nothing.
pub(crate) const EMPTY: Code = Code::new("forge-test-empty");

/// The method by which a skill is run.
pub(super) const EXECUTE: &str = "execute";

/// How many helpers deep a test may compare.
const DEPTH: usize = 4;

/// Calls that fail a test unless something holds.
static CHECKS: [&str; 4] = [
    "pytest.deprecated_call",
    "pytest.fail",
    "pytest.raises",
    "pytest.warns",
];

/// One function of the file.
struct Function<'s> {
    name: &'s str,
    line: usize,
    asks: bool,
    calls: BTreeSet<&'s str>,
}

/// The findings about tests that compare nothing, and about a file that never runs its skill.
pub(super) fn judge(source: &PythonSource) -> Verdict {
    let mut functions: Vec<Function<'_>> = Vec::new();
    let mut executes = false;
    let names = Names::from_source(source);
    // A node with the function that it stands in. The stack keeps deep texts off the machine's own.
    let mut open = vec![(source.root(), None::<usize>)];
    while let Some((node, mut within)) = open.pop() {
        match node.kind() {
            "function_definition" => {
                let name = node
                    .child_by_field_name("name")
                    .map(|name| source.node_text(name))
                    .unwrap_or_default();
                let line = node.start_position().row + 1;
                // What stands in a function inside of another is the outer one's, which alone is called by a name of the file.
                within = within.or_else(|| {
                    functions.push(Function {
                        name,
                        line,
                        asks: false,
                        calls: BTreeSet::new(),
                    });
                    Some(functions.len() - 1)
                });
            }
            "assert_statement" => {
                let compares = node
                    .named_child(0)
                    .is_some_and(|condition| !is_constant(condition));
                if let Some(function) = within.and_then(|at| functions.get_mut(at)) {
                    function.asks |= compares;
                }
            }
            "call" => {
                let callee = node.child_by_field_name("function");
                let word = callee.map(|callee| {
                    source.node_text(callee.child_by_field_name("attribute").unwrap_or(callee))
                });
                let word = word.unwrap_or_default();
                executes |= word == EXECUTE;
                // A function of the file's own that has such a name checks nothing by it.
                let checks = callee.is_some_and(|callee| {
                    names
                        .meanings(callee)
                        .iter()
                        .any(|path| CHECKS.contains(&path.as_str()))
                });
                if let Some(function) = within.and_then(|at| functions.get_mut(at)) {
                    function.asks |= checks;
                    function.calls.insert(word);
                }
            }
            _ => {}
        }
        open.extend(node.children(&mut node.walk()).map(|child| (child, within)));
    }
    for _ in 0..DEPTH {
        let asking: BTreeSet<&str> = functions
            .iter()
            .filter(|function| function.asks)
            .map(|function| function.name)
            .collect();
        for function in functions.iter_mut().filter(|function| !function.asks) {
            function.asks = function.calls.iter().any(|called| asking.contains(called));
        }
    }
    let mut verdict = Verdict::default();
    for function in functions
        .iter()
        .filter(|function| function.name.starts_with("test") && !function.asks)
    {
        verdict.push(Finding::error(
            EMPTY,
            format!("line {}, {}", function.line, function.name),
            "It compares nothing, so it always passes. Assert the expected result.",
        ));
    }
    if !executes {
        verdict.push(Finding::error(
            EMPTY,
            EXECUTE,
            "No test runs the skill. Call its `execute` with an input and compare the result.",
        ));
    }
    verdict
}

/// A condition that is the same whatever the skill does.
fn is_constant(mut condition: Node<'_>) -> bool {
    while matches!(
        condition.kind(),
        "parenthesized_expression" | "not_operator"
    ) {
        let Some(inner) = condition.named_child(0) else {
            return true;
        };
        condition = inner;
    }
    let kinds = [
        "concatenated_string",
        "ellipsis",
        "false",
        "float",
        "integer",
        "none",
        "string",
        "true",
    ];
    kinds.contains(&condition.kind())
}
