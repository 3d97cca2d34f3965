//! What an import brings, one name at a time: so that an import that is there is not brought a second time.

use tree_sitter::Node;

use super::Grammar;

/// How deep a nested list of Rust's imports is taken apart; a deeper one counts as one import.
const MAX_NESTING: usize = 32;

/// One thing that an import brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// By what it is recognised.
    pub(crate) key: String,
    /// The statement that brings it alone.
    pub(crate) statement: String,
}

/// What an import statement brings, in its order.
pub(crate) fn leaves(grammar: Grammar, node: Node<'_>, text: &str) -> Vec<Leaf> {
    let found = match grammar {
        Grammar::Rust => rust(node, text),
        Grammar::Python => python(node, text),
        Grammar::JavaScript | Grammar::TypeScript | Grammar::Tsx => script(node, text),
        Grammar::Go => go(node, text),
        Grammar::C => None,
    };
    found.filter(|found| !found.is_empty()).unwrap_or_else(|| {
        let full_text = text.get(node.byte_range()).unwrap_or_default();
        vec![Leaf {
            key: collapse_whitespace(full_text),
            statement: full_text.to_owned(),
        }]
    })
}

/// A text with as little white space as keeps its words apart.
pub(crate) fn collapse_whitespace(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    for word in text.split_whitespace() {
        if out.ends_with(is_word) && word.starts_with(is_word) {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

fn rust(node: Node<'_>, text: &str) -> Option<Vec<Leaf>> {
    let argument = node.child_by_field_name("argument")?;
    let head = text.get(node.start_byte()..argument.start_byte())?;
    let mut found = Vec::new();
    let mut rest = vec![(String::new(), argument, 0usize)];
    while let Some((prefix, part, depth)) = rest.pop() {
        if depth > MAX_NESTING {
            return None;
        }
        let list = match part.kind() {
            "use_list" => Some((prefix.clone(), part)),
            "scoped_use_list" => {
                let path = part
                    .child_by_field_name("path")
                    .and_then(|path| text.get(path.byte_range()));
                let list = part.child_by_field_name("list")?;
                Some((format!("{prefix}{}::", path.unwrap_or_default()), list))
            }
            _ => None,
        };
        match list {
            Some((prefix, list)) => {
                let inner: Vec<_> = list.named_children(&mut list.walk()).collect();
                rest.extend(
                    inner
                        .into_iter()
                        .rev()
                        .map(|part| (prefix.clone(), part, depth + 1)),
                );
            }
            None => {
                let written = collapse_whitespace(text.get(part.byte_range())?);
                // `a::{self}` brings `a`.
                let path = match written.strip_prefix("self").filter(|_| !prefix.is_empty()) {
                    Some(rename) => format!("{}{rename}", prefix.trim_end_matches("::")),
                    None => format!("{prefix}{written}"),
                };
                found.push(Leaf {
                    key: format!("{}{path}", collapse_whitespace(head)),
                    statement: format!("{head}{path};"),
                });
            }
        }
    }
    Some(found)
}

fn python(node: Node<'_>, text: &str) -> Option<Vec<Leaf>> {
    let from = match node.kind() {
        "future_import_statement" => "from __future__ ".to_owned(),
        "import_from_statement" => {
            format!(
                "from {} ",
                text.get(node.child_by_field_name("module_name")?.byte_range())?
            )
        }
        _ => String::new(),
    };
    let names: Vec<Node<'_>> = node
        .children_by_field_name("name", &mut node.walk())
        .collect();
    let mut names: Vec<&str> = names
        .into_iter()
        .filter(Node::is_named)
        .filter_map(|name| text.get(name.byte_range()))
        .collect();
    if node
        .named_children(&mut node.walk())
        .any(|child| child.kind() == "wildcard_import")
    {
        names.push("*");
    }
    let leaf = |name: &str| {
        let statement = format!(
            "{from}import {}",
            name.split_whitespace().collect::<Vec<_>>().join(" ")
        );
        Leaf {
            key: statement.clone(),
            statement,
        }
    };
    Some(names.into_iter().map(leaf).collect())
}

fn script(node: Node<'_>, text: &str) -> Option<Vec<Leaf>> {
    let source = text.get(node.child_by_field_name("source")?.byte_range())?;
    let module = source.trim_matches(['"', '\'']);
    let end = if text.get(node.byte_range())?.ends_with(';') {
        ";"
    } else {
        ""
    };
    let kind = if node
        .children(&mut node.walk())
        .any(|child| child.kind() == "type")
    {
        "type "
    } else {
        ""
    };
    let clause = node
        .named_children(&mut node.walk())
        .find(|child| child.kind() == "import_clause")?;
    let mut found = Vec::new();
    for part in clause.named_children(&mut clause.walk()) {
        let items: Vec<Node<'_>> = match part.kind() {
            "named_imports" => part
                .named_children(&mut part.walk())
                .filter(|item| item.kind() == "import_specifier")
                .collect(),
            "comment" => continue,
            _ => vec![part],
        };
        for item in items {
            let name = text
                .get(item.byte_range())?
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            let name = if item.kind() == "import_specifier" {
                format!("{{ {name} }}")
            } else {
                name
            };
            found.push(Leaf {
                key: format!("{kind}{name} from {module}"),
                statement: format!("import {kind}{name} from {source}{end}"),
            });
        }
    }
    Some(found)
}

fn go(node: Node<'_>, text: &str) -> Option<Vec<Leaf>> {
    let mut found = Vec::new();
    let mut rest = vec![node];
    while let Some(part) = rest.pop() {
        if part.kind() == "import_spec" {
            let spec = text
                .get(part.byte_range())?
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            found.push(Leaf {
                key: spec.clone(),
                statement: format!("import {spec}"),
            });
        } else {
            let inner: Vec<_> = part.named_children(&mut part.walk()).collect();
            rest.extend(
                inner
                    .into_iter()
                    .rev()
                    .filter(|child| child.kind() != "comment"),
            );
        }
    }
    Some(found)
}
