//! Tests of Go: functions `TestX(t *testing.T)`.

use crucible_model::RepoPath;
use tree_sitter::Node;

use super::reach::{find_identifier, writes_outside};
use super::{Checked, Rules, UnitKind};

pub(super) const RULES: Rules = Rules {
    unit,
    inside,
    check,
    file,
};

/// Names with which code reaches the process that other tests run in, or skips a test.
const FORBIDDEN: [&str; 9] = [
    "Chdir", "Clearenv", "Exit", "Goexit", "Skip", "SkipNow", "Skipf", "Unsetenv", "unsafe",
];

fn unit(node: Node<'_>, text: &str) -> UnitKind {
    match node.kind() {
        "function_declaration" => {
            let child = |field| {
                node.child_by_field_name(field)
                    .and_then(|part| text.get(part.byte_range()))
            };
            let (name, parameters) = (
                child("name").unwrap_or_default(),
                child("parameters").unwrap_or_default(),
            );
            let rest = name.strip_prefix("Test");
            let is_test = rest
                .is_some_and(|rest| !rest.starts_with(char::is_lowercase) && rest != "Main")
                && parameters.ends_with("*testing.T)");
            match name {
                _ if is_test => UnitKind::Test(name.to_owned()),
                "init" | "main" | "TestMain" => UnitKind::Other,
                _ if name.starts_with("Test") => UnitKind::Other,
                _ => UnitKind::Helper,
            }
        }
        "import_declaration" => UnitKind::Import,
        "const_declaration" | "type_declaration" => UnitKind::Helper,
        _ => UnitKind::Other,
    }
}

fn inside<'t>(_node: Node<'t>, _text: &str) -> Vec<Node<'t>> {
    Vec::new()
}

fn check(node: Node<'_>, text: &str) -> Checked {
    if let Some(at) = find_identifier(node, text, &FORBIDDEN) {
        return Err((
            at,
            "this name reaches the process of other tests, or skips one",
        ));
    }
    if text
        .get(node.byte_range())
        .is_some_and(|body| body.contains("os.Setenv"))
    {
        return Err((
            node.start_byte(),
            "os.Setenv stays for other tests; t.Setenv ends with its own",
        ));
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
    let target = match node.kind() {
        "assignment_statement" => node.child_by_field_name("left"),
        "inc_statement" | "dec_statement" => node.named_child(0),
        _ => None,
    };
    let mut found = match target {
        Some(list) if list.kind() == "expression_list" => {
            list.named_children(&mut list.walk()).collect()
        }
        Some(target) => vec![target],
        None => Vec::new(),
    };
    // `_ = x` keeps nothing.
    found.retain(|target| target.kind() != "blank_identifier" && !target.byte_range().is_empty());
    found
}

fn binds(node: Node<'_>) -> Vec<(Node<'_>, Option<Node<'_>>)> {
    let (names, value) = match node.kind() {
        "short_var_declaration" => (
            node.child_by_field_name("left"),
            node.child_by_field_name("right"),
        ),
        "range_clause" => (
            node.child_by_field_name("left"),
            node.child_by_field_name("right"),
        ),
        "var_spec" | "parameter_declaration" => {
            let mut cursor = node.walk();
            let names = node.children_by_field_name("name", &mut cursor);
            let value = node.child_by_field_name("value");
            return names.map(|name| (name, value)).collect();
        }
        _ => (None, None),
    };
    let Some(names) = names else {
        return Vec::new();
    };
    names
        .named_children(&mut names.walk())
        .filter(|name| name.kind() == "identifier")
        .map(|name| (name, value))
        .collect()
}

fn file(path: &RepoPath) -> bool {
    path.file_name().ends_with("_test.go")
}
