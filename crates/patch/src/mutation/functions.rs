//! The functions of a source, with what of them runs when.

use tree_sitter::Node;

use super::changed::code_tokens;
use crate::syntax::{Grammar, Parsed};

/// A function with a body.
#[derive(Debug)]
pub(crate) struct Function<'t> {
    pub(crate) node: Node<'t>,
    pub(crate) body: Node<'t>,
    /// Its name with the names of what it stands in.
    pub(crate) name: String,
    pub(crate) kind: FunctionKind,
}

/// What can be done to a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FunctionKind {
    /// Its body is a block.
    Block,
    /// Its body is one expression.
    Expression,
    /// Its body may be evaluated by the compiler.
    Constant,
    /// It runs when the program is loaded, by its name or its attributes.
    Loading,
}

impl Function<'_> {
    /// Whether one of these lines belongs to it.
    pub(super) fn has_line(&self, lines: &std::collections::BTreeSet<usize>) -> bool {
        let (first, last) = (self.node.start_position().row, self.node.end_position().row);
        lines.range(first..=last).next().is_some()
    }

    /// Whether a test asks it whether two values are equal, so that it could answer always the same.
    pub(super) fn is_comparison(&self) -> bool {
        let name = self.name.rsplit('.').next().unwrap_or_default();
        COMPARISONS.contains(&name)
    }
}

/// Names of functions that a language or a test library calls to compare values.
const COMPARISONS: [&str; 27] = [
    "__eq__",
    "__ne__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
    "__hash__",
    "__bool__",
    "__len__",
    "__contains__",
    "__instancecheck__",
    "__subclasscheck__",
    "__class__",
    "eq",
    "ne",
    "cmp",
    "partial_cmp",
    "equals",
    "isEqual",
    "valueOf",
    "toJSON",
    "asymmetricMatch",
    "[Symbol.toPrimitive]",
    "[Symbol.hasInstance]",
    "Equal",
    "Compare",
    "Cmp",
];

/// The names of special methods that compare values, on these lines: code can put them into a class as a text.
pub(super) fn comparison_names(
    parsed: &Parsed<'_>,
    lines: &std::collections::BTreeSet<usize>,
) -> Vec<String> {
    let is_named = |node: &Node<'_>| {
        let text = parsed.text.get(node.byte_range()).unwrap_or_default();
        let is_special = text.starts_with("__") || text == "asymmetricMatch";
        lines.contains(&node.start_position().row) && is_special && COMPARISONS.contains(&text)
    };
    let found = code_tokens(parsed).into_iter().filter(is_named);
    found
        .filter_map(|node| parsed.text.get(node.byte_range()).map(str::to_owned))
        .collect()
}

/// Every function of a text, outer ones first, tests left out.
pub(crate) fn functions<'t>(parsed: &'t Parsed<'_>) -> Vec<Function<'t>> {
    let mut found = Vec::new();
    let mut open = vec![(parsed.root(), String::new())];
    while let Some((node, scope)) = open.pop() {
        if is_test(parsed, node) {
            continue;
        }
        let name = name_of(parsed, node);
        let scope = match &name {
            Some(name) if scope.is_empty() => name.clone(),
            Some(name) => format!("{scope}.{name}"),
            None => scope,
        };
        if let Some((body, kind)) = function(parsed, node) {
            let name = if scope.is_empty() {
                "(anonymous)".to_owned()
            } else {
                scope.clone()
            };
            found.push(Function {
                node,
                body,
                name,
                kind,
            });
        }
        let mut cursor = node.walk();
        let children: Vec<Node<'t>> = node.named_children(&mut cursor).collect();
        open.extend(
            children
                .into_iter()
                .rev()
                .map(|child| (child, scope.clone())),
        );
    }
    found
}

/// The body of a node that is a function.
fn function<'t>(parsed: &Parsed<'_>, node: Node<'t>) -> Option<(Node<'t>, FunctionKind)> {
    let body = || node.child_by_field_name("body");
    let text = |node: Node<'_>| {
        parsed
            .text
            .get(node.byte_range())
            .unwrap_or_default()
            .to_owned()
    };
    match (parsed.grammar, node.kind()) {
        (Grammar::Python, "function_definition") => Some((body()?, FunctionKind::Block)),
        (Grammar::Python, "lambda") => Some((body()?, FunctionKind::Expression)),
        (
            Grammar::JavaScript | Grammar::TypeScript | Grammar::Tsx,
            "function_declaration"
            | "generator_function_declaration"
            | "function_expression"
            | "generator_function"
            | "method_definition"
            | "arrow_function",
        ) => {
            let body = body()?;
            let is_block = body.kind() == "statement_block";
            Some((
                body,
                if is_block {
                    FunctionKind::Block
                } else {
                    FunctionKind::Expression
                },
            ))
        }
        (Grammar::Rust, "function_item") => {
            let body = body()?;
            let head = parsed
                .text
                .get(node.start_byte()..body.start_byte())
                .unwrap_or_default();
            let attributes = attributes(parsed, node);
            let loads = [
                "ctor",
                "link_section",
                "no_mangle",
                "export_name",
                "global_allocator",
            ];
            let kind = if loads.iter().any(|word| attributes.contains(word)) {
                FunctionKind::Loading
            } else if head.split_whitespace().any(|word| word == "const")
                && !head.contains("*const")
            {
                FunctionKind::Constant
            } else {
                FunctionKind::Block
            };
            Some((body, kind))
        }
        (Grammar::Go, "function_declaration" | "method_declaration") => {
            let is_init = node
                .child_by_field_name("name")
                .is_some_and(|name| text(name) == "init");
            Some((
                body()?,
                if is_init {
                    FunctionKind::Loading
                } else {
                    FunctionKind::Block
                },
            ))
        }
        // A function that a variable of the package holds.
        (Grammar::Go, "func_literal")
            if !is_inside(node, &["function_declaration", "method_declaration"]) =>
        {
            Some((body()?, FunctionKind::Block))
        }
        (Grammar::C, "function_definition") => {
            let body = body().filter(|body| body.kind() == "compound_statement")?;
            let head = parsed
                .text
                .get(node.start_byte()..body.start_byte())
                .unwrap_or_default();
            let loads = head.contains("constructor") || head.contains("section");
            Some((
                body,
                if loads {
                    FunctionKind::Loading
                } else {
                    FunctionKind::Block
                },
            ))
        }
        _ => None,
    }
}

pub(super) fn is_inside(node: Node<'_>, kinds: &[&str]) -> bool {
    let mut next = node.parent();
    while let Some(parent) = next {
        if kinds.contains(&parent.kind()) {
            return true;
        }
        next = parent.parent();
    }
    false
}

/// The name that a node gives to what stands in it.
fn name_of(parsed: &Parsed<'_>, node: Node<'_>) -> Option<String> {
    let text = |node: Node<'_>| parsed.text.get(node.byte_range()).map(str::to_owned);
    match node.kind() {
        "impl_item" => text(node.child_by_field_name("type")?),
        "method_declaration" => {
            let receiver = node
                .child_by_field_name("receiver")
                .and_then(text)
                .unwrap_or_default();
            let receiver_text: String = receiver
                .chars()
                .filter(|c| c.is_alphanumeric() || *c == '_' || *c == ' ')
                .collect();
            let receiver_type = receiver_text
                .rsplit(' ')
                .next()
                .unwrap_or_default()
                .to_owned();
            Some(format!(
                "{receiver_type}.{}",
                text(node.child_by_field_name("name")?)?
            ))
        }
        "function_definition" if parsed.grammar == Grammar::C => {
            let mut declarator = node.child_by_field_name("declarator")?;
            while let Some(inner) = declarator.child_by_field_name("declarator") {
                declarator = inner;
            }
            text(declarator)
        }
        "variable_declarator" | "public_field_definition" | "field_definition" | "pair" => {
            let value = node.child_by_field_name("value")?;
            let is_function = [
                "arrow_function",
                "function_expression",
                "generator_function",
            ]
            .contains(&value.kind());
            let name = ["name", "property", "key"]
                .iter()
                .find_map(|field| node.child_by_field_name(field));
            name.filter(|_| is_function).and_then(text)
        }
        "assignment" if parsed.grammar == Grammar::Python => {
            let value = node.child_by_field_name("right")?;
            node.child_by_field_name("left")
                .filter(|_| value.kind() == "lambda")
                .and_then(text)
        }
        "class_definition"
        | "class_declaration"
        | "class"
        | "mod_item"
        | "trait_item"
        | "function_definition"
        | "function_declaration"
        | "generator_function_declaration"
        | "function_expression"
        | "method_definition"
        | "function_item" => text(node.child_by_field_name("name")?),
        _ => None,
    }
}

/// The attributes above an item of Rust, as they are written.
fn attributes(parsed: &Parsed<'_>, node: Node<'_>) -> String {
    let mut all = String::new();
    let mut next = node.prev_named_sibling();
    while let Some(before) = next {
        match before.kind() {
            "attribute_item" => {
                all.push_str(parsed.text.get(before.byte_range()).unwrap_or_default())
            }
            "line_comment" | "block_comment" => {}
            _ => break,
        }
        next = before.prev_named_sibling();
    }
    all
}

/// Whether an item of Rust is a test or holds some.
pub(super) fn is_test(parsed: &Parsed<'_>, node: Node<'_>) -> bool {
    if parsed.grammar != Grammar::Rust
        || !matches!(node.kind(), "function_item" | "mod_item" | "impl_item")
    {
        return false;
    }
    let attributes = attributes(parsed, node);
    let is_word = |word: &str| word == "test" || word == "rstest" || word == "proptest";
    !attributes.contains("not(test")
        && attributes
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .any(is_word)
}

/// Whether a node stands in a test of Rust.
pub(super) fn is_in_test(parsed: &Parsed<'_>, node: Node<'_>) -> bool {
    let mut next = Some(node);
    while let Some(node) = next {
        if is_test(parsed, node) {
            return true;
        }
        next = node.parent();
    }
    false
}
