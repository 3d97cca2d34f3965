//! Tests of JavaScript and TypeScript: calls of `test` and `it` with a title, in calls of `describe`.

use crucible_model::RepoPath;
use tree_sitter::Node;

use super::reach::{find_descendant, find_identifier, walk, writes_outside};
use super::{Checked, Rules, UnitKind};

pub(super) const RULES: Rules = Rules {
    unit,
    inside,
    check,
    file,
};

/// Names with which code reaches other tests of its file or of its process, or skips a test.
const FORBIDDEN: [&str; 24] = [
    "Function",
    "Reflect",
    "__proto__",
    "assign",
    "defineProperties",
    "defineProperty",
    "doMock",
    "eval",
    "extend",
    "global",
    "globalThis",
    "mock",
    "mockImplementation",
    "prototype",
    "requireMock",
    "resetModules",
    "setMock",
    "setPrototypeOf",
    "spyOn",
    "stub",
    "stubEnv",
    "stubGlobal",
    "unmock",
    "useFakeTimers",
];

/// Functions that run code for other tests; as members of a test they switch tests off.
const HOOKS: [&str; 14] = [
    "after",
    "afterAll",
    "afterEach",
    "before",
    "beforeAll",
    "beforeEach",
    "only",
    "setup",
    "skip",
    "skipIf",
    "suiteSetup",
    "suiteTeardown",
    "teardown",
    "todo",
];

/// The call of a statement, its callee and its title: of `it("adds", …)` and of `test.each([…])("adds", …)`.
fn called<'t, 'a>(node: Node<'t>, text: &'a str) -> Option<(&'a str, &'a str, Node<'t>)> {
    let call = node
        .named_child(0)
        .filter(|call| node.kind() == "expression_statement" && call.kind() == "call_expression")?;
    let callee = call.child_by_field_name("function")?;
    let written = text.get(callee.byte_range())?;
    let name = match callee.kind() {
        "identifier" => written,
        "call_expression" => {
            let each = text.get(callee.child_by_field_name("function")?.byte_range())?;
            each.strip_suffix(".each")?
        }
        _ => return None,
    };
    let arguments = call.child_by_field_name("arguments")?;
    let title = arguments
        .named_child(0)
        .filter(|title| title.kind() == "string")?;
    let body = arguments
        .named_child(u32::try_from(arguments.named_child_count().checked_sub(1)?).ok()?)?;
    let is_function = matches!(
        body.kind(),
        "arrow_function" | "function_expression" | "function"
    );
    let title = text.get(title.byte_range())?.trim_matches(['"', '\'']);
    is_function.then_some((name, title, body))
}

fn unit(node: Node<'_>, text: &str) -> UnitKind {
    match called(node, text) {
        Some(("test" | "it", title, _)) => return UnitKind::Test(title.to_owned()),
        Some(("describe" | "suite" | "context", title, _)) => {
            return UnitKind::Group(title.to_owned());
        }
        _ => {}
    }
    match node.kind() {
        "import_statement"
            if node.child_by_field_name("source").is_some() && node.named_child_count() > 1 =>
        {
            UnitKind::Import
        }
        "function_declaration" | "interface_declaration" | "type_alias_declaration" => {
            UnitKind::Helper
        }
        "lexical_declaration" if is_constant(node, text) => UnitKind::Helper,
        "expression_statement"
            if node
                .named_child(0)
                .is_some_and(|inner| inner.kind() == "string") =>
        {
            UnitKind::Helper
        }
        _ => UnitKind::Other,
    }
}

/// `const` of a function, of a value, or of what `require` brings.
fn is_constant(node: Node<'_>, text: &str) -> bool {
    let mut cursor = node.walk();
    let plain = |value: Node<'_>| match value.kind() {
        "arrow_function"
        | "function_expression"
        | "string"
        | "number"
        | "true"
        | "false"
        | "null"
        | "object"
        | "array" => {
            find_descendant(value, &["call_expression", "new_expression"]).is_none()
                || matches!(value.kind(), "arrow_function" | "function_expression")
        }
        "call_expression" => value
            .child_by_field_name("function")
            .and_then(|name| text.get(name.byte_range()))
            .is_some_and(|name| name == "require"),
        _ => false,
    };
    text.get(node.byte_range())
        .is_some_and(|written| written.starts_with("const"))
        && node
            .named_children(&mut cursor)
            .all(|part| part.child_by_field_name("value").is_some_and(plain))
}

fn inside<'t>(node: Node<'t>, text: &str) -> Vec<Node<'t>> {
    let Some(("describe" | "suite" | "context", _, function)) = called(node, text) else {
        return Vec::new();
    };
    let body = function
        .child_by_field_name("body")
        .filter(|body| body.kind() == "statement_block");
    body.map(|body| {
        body.named_children(&mut body.walk())
            .filter(|inner| inner.kind() != "comment")
            .collect()
    })
    .unwrap_or_default()
}

fn check(node: Node<'_>, text: &str) -> Checked {
    let mut hook = None;
    walk(node, &mut |inner| {
        let callee = inner
            .child_by_field_name("function")
            .filter(|_| inner.kind() == "call_expression");
        let callee =
            callee.and_then(|callee| callee.child_by_field_name("property").or(Some(callee)));
        let is_hook = callee
            .and_then(|callee| text.get(callee.byte_range()))
            .is_some_and(|name| HOOKS.contains(&name));
        if is_hook && hook.is_none() {
            hook = Some(inner.start_byte());
        }
    });
    if let Some(at) = hook {
        return Err((at, "this runs for other tests, or skips one"));
    }
    if let Some(at) = find_identifier(node, text, &FORBIDDEN) {
        return Err((at, "this name reaches other tests, or skips one"));
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
    match node.kind() {
        "assignment_expression" | "augmented_assignment_expression" => {
            node.child_by_field_name("left")
        }
        "update_expression" => node.child_by_field_name("argument"),
        "unary_expression" if node.child(0).is_some_and(|first| first.kind() == "delete") => {
            node.child_by_field_name("argument")
        }
        _ => None,
    }
    .into_iter()
    .collect()
}

fn binds(node: Node<'_>) -> Vec<(Node<'_>, Option<Node<'_>>)> {
    let (name, value) = match node.kind() {
        "variable_declarator" => (
            node.child_by_field_name("name"),
            node.child_by_field_name("value"),
        ),
        "arrow_function" => (node.child_by_field_name("parameter"), None),
        "for_in_statement" => (
            node.child_by_field_name("left"),
            node.child_by_field_name("right"),
        ),
        "catch_clause" => (node.child_by_field_name("parameter"), None),
        "required_parameter" | "optional_parameter" => (node.child_by_field_name("pattern"), None),
        "formal_parameters" => {
            let names = node
                .named_children(&mut node.walk())
                .filter(|name| name.kind() == "identifier")
                .collect::<Vec<_>>();
            return names.into_iter().map(|name| (name, None)).collect();
        }
        _ => (None, None),
    };
    name.filter(|name| name.kind() == "identifier")
        .map(|name| (name, value))
        .into_iter()
        .collect()
}

fn file(path: &RepoPath) -> bool {
    // Which files a runner takes depends on its settings; one that is marked as a test is meant to be one.
    let name = path.file_name();
    [".test.", ".spec.", "-test.", "_test."]
        .iter()
        .any(|mark| name.contains(mark))
        || path
            .segments()
            .any(|part| matches!(part, "__tests__" | "test" | "tests" | "spec"))
}
