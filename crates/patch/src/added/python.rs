//! Tests of Python: functions and methods `test_*`, classes `Test*` and subclasses of `TestCase`.

use crucible_model::RepoPath;
use tree_sitter::Node;

use super::reach::{find_descendant, find_identifier, writes_outside};
use super::{Checked, Rules, UnitKind};

pub(super) const RULES: Rules = Rules {
    unit,
    inside,
    check,
    file,
};

/// Names with which code reaches other tests, the runner or the interpreter.
const FORBIDDEN: [&str; 38] = [
    "MonkeyPatch",
    "__builtins__",
    "__class__",
    "__dict__",
    "__import__",
    "_pytest",
    "addinivalue_line",
    "atexit",
    "autouse",
    "builtins",
    "collect_ignore",
    "ctypes",
    "delattr",
    "environ",
    "eval",
    "exec",
    "gc",
    "globals",
    "hookimpl",
    "hookspec",
    "locals",
    "modules",
    "pluginmanager",
    "putenv",
    "pytest_plugins",
    "pytestconfig",
    "pytestmark",
    "reload",
    "setattr",
    "setprofile",
    "settrace",
    "skip",
    "skipTest",
    "skipif",
    "unsetenv",
    "usefixtures",
    "vars",
    "xfail",
];

/// Decorators that leave everything outside of their test alone.
const DECORATORS: [&str; 9] = [
    "pytest.mark.",
    "mock.patch",
    "patch",
    "unittest.mock.patch",
    "given",
    "hypothesis.given",
    "settings",
    "example",
    "parameterized.expand",
];

fn is_test_name(name: &str) -> bool {
    name.starts_with("test")
}

fn definition(node: Node<'_>) -> Node<'_> {
    node.child_by_field_name("definition")
        .filter(|_| node.kind() == "decorated_definition")
        .unwrap_or(node)
}

fn name<'a>(node: Node<'_>, text: &'a str) -> &'a str {
    let name = definition(node).child_by_field_name("name");
    name.and_then(|name| text.get(name.byte_range()))
        .unwrap_or_default()
}

fn unit(node: Node<'_>, text: &str) -> UnitKind {
    let inner = definition(node);
    match inner.kind() {
        "function_definition" if is_test_name(name(node, text)) => {
            UnitKind::Test(name(node, text).to_owned())
        }
        "class_definition" if is_group(inner, text) => UnitKind::Group(name(node, text).to_owned()),
        "function_definition" if is_helper(node, text) => UnitKind::Helper,
        "import_statement" | "import_from_statement" | "future_import_statement" => {
            UnitKind::Import
        }
        "expression_statement"
            if node
                .named_child(0)
                .is_some_and(|inner| inner.kind() == "string") =>
        {
            UnitKind::Helper
        }
        "expression_statement" if is_constant(node, text) => UnitKind::Helper,
        _ => UnitKind::Other,
    }
}

/// A class of tests: undecorated, and derived from unittest's own, or called `Test…` and derived from nothing else.
fn is_group(class: Node<'_>, text: &str) -> bool {
    let bases = class.child_by_field_name("superclasses");
    let bases = bases
        .and_then(|bases| text.get(bases.byte_range()))
        .unwrap_or("()");
    let is_decorated = class
        .parent()
        .is_some_and(|parent| parent.kind() == "decorated_definition");
    let is_of_unittest = ["(unittest.TestCase)", "(TestCase)"].contains(&bases);
    let is_plain = ["()", "(object)"].contains(&bases) && name(class, text).starts_with("Test");
    !is_decorated && (is_of_unittest || is_plain)
}

/// A function beside the tests of a new file; no hook, no setup.
fn is_helper(node: Node<'_>, text: &str) -> bool {
    let name = name(node, text).to_ascii_lowercase();
    !["pytest", "setup", "teardown", "load_tests"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// `NAME = value`, where nothing is called.
fn is_constant(node: Node<'_>, text: &str) -> bool {
    let Some(assignment) = node
        .named_child(0)
        .filter(|inner| inner.kind() == "assignment")
    else {
        return false;
    };
    let left = assignment
        .child_by_field_name("left")
        .filter(|left| left.kind() == "identifier");
    let left = left
        .and_then(|left| text.get(left.byte_range()))
        .unwrap_or("pytest");
    !left.starts_with("pytest")
        && !left.starts_with("collect_ignore")
        && !left.starts_with("__")
        && find_descendant(node, &["call", "lambda", "await"]).is_none()
}

fn inside<'t>(node: Node<'t>, _text: &str) -> Vec<Node<'t>> {
    let class = definition(node);
    let Some(body) = class
        .child_by_field_name("body")
        .filter(|_| class.kind() == "class_definition")
    else {
        return Vec::new();
    };
    let is_prose = |inner: &Node<'t>| {
        inner.kind() == "comment"
            || inner.kind() == "pass_statement"
            || (inner.kind() == "expression_statement"
                && inner
                    .named_child(0)
                    .is_some_and(|inner| inner.kind() == "string"))
    };
    body.named_children(&mut body.walk())
        .filter(|inner| !is_prose(inner))
        .collect()
}

fn check(node: Node<'_>, text: &str) -> Checked {
    for decorator in node
        .children(&mut node.walk())
        .filter(|child| child.kind() == "decorator")
    {
        let written = text
            .get(decorator.byte_range())
            .unwrap_or_default()
            .trim_start_matches('@')
            .trim();
        let is_fixture = !is_test_name(name(node, text)) && written.starts_with("pytest.fixture");
        let called = written.split('(').next().unwrap_or_default();
        let is_known = DECORATORS.iter().any(|known| {
            called == *known
                || called
                    .strip_prefix(known)
                    .is_some_and(|_| known.ends_with('.') || known.ends_with("patch"))
        });
        if !is_known && !is_fixture {
            return Err((
                decorator.start_byte(),
                "a decorator may change how other tests run",
            ));
        }
    }
    if let Some(at) = find_identifier(node, text, &FORBIDDEN) {
        return Err((at, "this name reaches other tests, or skips one"));
    }
    let starts = |word| find_identifier(node, text, &[word]);
    if let (Some(_), Some(at)) = (starts("patch"), starts("start")) {
        return Err((
            at,
            "a patch that is started and not ended stays for other tests",
        ));
    }
    if let Some(at) = find_descendant(
        node,
        &["global_statement", "nonlocal_statement", "wildcard_import"],
    ) {
        return Err((at, "a test keeps its names to itself"));
    }
    match writes_outside(node, text, assigned_nodes, binds) {
        Some(at) => Err((
            at,
            "this changes what the test did not make, for other tests as well",
        )),
        None => Ok(()),
    }
}

fn assigned_nodes(node: Node<'_>) -> Vec<Node<'_>> {
    let targets = match node.kind() {
        "assignment" | "augmented_assignment" | "for_statement" => node.child_by_field_name("left"),
        "delete_statement" => node.named_child(0),
        "as_pattern_target" => node.named_child(0),
        _ => None,
    };
    let mut found = Vec::new();
    let mut rest: Vec<Node<'_>> = targets.into_iter().collect();
    while let Some(target) = rest.pop() {
        match target.kind() {
            "attribute" | "subscript" => found.push(target),
            "pattern_list"
            | "tuple_pattern"
            | "list_pattern"
            | "expression_list"
            | "list_splat_pattern"
            | "tuple"
            | "parenthesized_expression" => {
                rest.extend(target.named_children(&mut target.walk()));
            }
            _ => {}
        }
    }
    found
}

fn binds(node: Node<'_>) -> Vec<(Node<'_>, Option<Node<'_>>)> {
    let (target, value) = match node.kind() {
        "assignment" => (
            node.child_by_field_name("left"),
            node.child_by_field_name("right"),
        ),
        "named_expression" => (
            node.child_by_field_name("name"),
            node.child_by_field_name("value"),
        ),
        "for_statement" | "for_in_clause" => (
            node.child_by_field_name("left"),
            node.child_by_field_name("right"),
        ),
        "as_pattern_target" => (node.named_child(0), None),
        "parameters" => {
            return node
                .named_children(&mut node.walk())
                .filter_map(parameter)
                .map(|name| (name, None))
                .collect();
        }
        "class_definition" | "function_definition" => (node.child_by_field_name("name"), None),
        _ => (None, None),
    };
    let mut found = Vec::new();
    let mut rest: Vec<Node<'_>> = target.into_iter().collect();
    while let Some(target) = rest.pop() {
        match target.kind() {
            "identifier" => found.push((target, value)),
            "pattern_list" | "tuple_pattern" | "list_pattern" => {
                rest.extend(target.named_children(&mut target.walk()))
            }
            _ => {}
        }
    }
    found
}

fn parameter(node: Node<'_>) -> Option<Node<'_>> {
    match node.kind() {
        "identifier" => Some(node),
        "default_parameter" | "typed_default_parameter" => node.child_by_field_name("name"),
        "typed_parameter" => node.named_child(0),
        _ => None,
    }
}

fn file(path: &RepoPath) -> bool {
    let name = path.file_name();
    name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py"))
}
