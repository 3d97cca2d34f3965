//! What an expression of literal texts says, however it is put together.
//!
//! Escapes, bytes, texts beside each other, `+`, `"".join([...])`, paths joined by `/`, `os.path.join` and `Path(...)`, and names that are bound
//! once in the whole file. Whatever else stands in an expression makes it one that says nothing here.

use tree_sitter::Node;

use super::{Names, PythonSource, parts};

/// How far an expression is followed, in steps down, and how long what it says may become.
const MAX_DEPTH: usize = 24;
const MAX_LEN: usize = 16 << 10;

impl PythonSource {
    /// What an expression says, where it is made of literal texts alone.
    pub(crate) fn fold(&self, node: Node<'_>, names: &Names<'_>) -> Option<String> {
        Fold {
            source: self,
            names,
            steps: std::cell::Cell::new(400),
        }
        .text(node, 0)
    }
}

struct Fold<'a, 's> {
    source: &'a PythonSource,
    names: &'a Names<'s>,
    steps: std::cell::Cell<usize>,
}

impl Fold<'_, '_> {
    fn text(&self, node: Node<'_>, depth: usize) -> Option<String> {
        let left = self.steps.get().checked_sub(1)?;
        self.steps.set(left);
        if depth > MAX_DEPTH {
            return None;
        }
        let part = |field| node.child_by_field_name(field);
        let value = match node.kind() {
            "string" => self.string(node, depth)?,
            "concatenated_string" => self.all(&parts(node), depth)?.concat(),
            "parenthesized_expression" => self.text(*parts(node).first()?, depth + 1)?,
            "named_expression" => self.text(part("value")?, depth + 1)?,
            "identifier" => self.text(
                self.names.only_value(self.source.node_text(node))?,
                depth + 1,
            )?,
            "binary_operator" => {
                let operator = self.source.node_text(part("operator")?);
                let both = (
                    self.text(part("left")?, depth + 1)?,
                    self.text(part("right")?, depth + 1)?,
                );
                match operator {
                    "+" => both.0 + &both.1,
                    "/" => join_paths(&[both.0, both.1]),
                    _ => return None,
                }
            }
            "call" => self.call(part("function")?, part("arguments")?, depth)?,
            _ => return None,
        };
        (value.len() <= MAX_LEN).then_some(value)
    }

    fn all(&self, nodes: &[Node<'_>], depth: usize) -> Option<Vec<String>> {
        nodes
            .iter()
            .map(|node| self.text(*node, depth + 1))
            .collect()
    }

    fn call(&self, function: Node<'_>, arguments: Node<'_>, depth: usize) -> Option<String> {
        let given_nodes = parts(arguments);
        let meanings = self.names.meanings(function);
        let is = |path: &str| meanings.contains(path);
        if is("os.path.join") || is("posixpath.join") || meanings.iter().any(|path| is_path(path)) {
            return Some(join_paths(&self.all(&given_nodes, depth)?));
        }
        let (object, word) = (
            function.child_by_field_name("object")?,
            function.child_by_field_name("attribute")?,
        );
        match (self.source.node_text(word), given_nodes.as_slice()) {
            ("joinpath", _) => {
                let mut all = vec![self.text(object, depth + 1)?];
                all.extend(self.all(&given_nodes, depth)?);
                Some(join_paths(&all))
            }
            ("join", [only]) if matches!(only.kind(), "list" | "tuple") => {
                let glue = self.text(object, depth + 1)?;
                Some(self.all(&parts(*only), depth)?.join(&glue))
            }
            ("decode" | "encode" | "expanduser" | "resolve" | "absolute", []) => {
                self.text(object, depth + 1)
            }
            _ => None,
        }
    }

    fn string(&self, node: Node<'_>, depth: usize) -> Option<String> {
        let (mut raw, mut value) = (false, String::new());
        for part in node.children(&mut node.walk()) {
            match part.kind() {
                "string_start" => {
                    raw = self
                        .source
                        .node_text(part)
                        .to_ascii_lowercase()
                        .contains('r')
                }
                "string_content" => {
                    let text = self.source.node_text(part);
                    value.push_str(&if raw {
                        text.to_owned()
                    } else {
                        unescaped(text)
                    });
                }
                // Braces and an expression: nothing that changes how it is shown.
                "interpolation" if part.child_count() == 3 => {
                    value.push_str(&self.text(part.child_by_field_name("expression")?, depth + 1)?);
                }
                "string_end" => {}
                _ => return None,
            }
        }
        Some(value)
    }
}

/// Whether calling this makes a path of the texts that it is given.
fn is_path(path: &str) -> bool {
    matches!(
        path,
        "pathlib.Path" | "pathlib.PurePath" | "pathlib.PosixPath" | "pathlib.PurePosixPath"
    )
}

/// Joins paths; an absolute one replaces those before it.
fn join_paths(all: &[String]) -> String {
    let mut full_text = String::new();
    for part in all {
        if part.starts_with('/') {
            full_text.clear();
        } else if !full_text.is_empty() && !full_text.ends_with('/') {
            full_text.push('/');
        }
        full_text.push_str(part);
    }
    full_text
}

/// What a text with escapes says. Names of characters stay as they are written.
fn unescaped(text: &str) -> String {
    let mut decoded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        decoded.push_str(before);
        let Some(letter) = after.chars().next() else {
            decoded.push('\\');
            return decoded;
        };
        rest = after.get(letter.len_utf8()..).unwrap_or_default();
        let digits = |most: usize, radix: u32, text: &str| {
            text.chars()
                .take(most)
                .take_while(|c| c.is_digit(radix))
                .count()
        };
        let (count, radix, from) = match letter {
            'x' => (digits(2, 16, rest), 16, rest),
            'u' => (digits(4, 16, rest), 16, rest),
            'U' => (digits(8, 16, rest), 16, rest),
            '0'..='7' => (digits(3, 8, after), 8, after),
            _ => (0, 0, rest),
        };
        if count > 0 {
            let number = from
                .get(..count)
                .and_then(|digits| u32::from_str_radix(digits, radix).ok());
            decoded.push(number.and_then(char::from_u32).unwrap_or('\u{fffd}'));
            rest = from.get(count..).unwrap_or_default();
            continue;
        }
        match letter {
            'n' => decoded.push('\n'),
            'r' => decoded.push('\r'),
            't' => decoded.push('\t'),
            '\n' => {}
            '\\' | '\'' | '"' => decoded.push(letter),
            _ => decoded.extend(['\\', letter]),
        }
    }
    decoded.push_str(rest);
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string_literal(text: &str) -> Option<String> {
        let source = PythonSource::parse(text.as_bytes()).unwrap();
        let names = Names::from_source(&source);
        let last = *parts(source.root()).last().unwrap();
        let assignment = parts(last).first().copied().unwrap();
        source.fold(assignment.child_by_field_name("right").unwrap(), &names)
    }

    #[test]
    fn constant_strings_are_folded() {
        for (text, expected) in [
            ("x = 'a\\x62\\143\\u0064'\n", "abcd"),
            ("x = b'\\x61b'\n", "ab"),
            ("x = 'a' 'b' + ('c')\n", "abc"),
            ("A = 'a'\nB = A + 'b'\nx = f'{B}c'\n", "abc"),
            ("x = '.'.join(['a', 'b'])\n", "a.b"),
            ("import os\nx = os.path.join('a', 'b', '/c', 'd')\n", "/c/d"),
            ("from pathlib import Path\nx = Path('a') / 'b'\n", "a/b"),
            ("x = r'a\\x62'\n", "a\\x62"),
        ] {
            assert_eq!(string_literal(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "A = 'a'\nA = 'b'\nx = A\n",
            "x = y\n",
            "x = 'a' + str(1)\n",
            "x = x + 'a'\n",
            "A = 'a'\nx = f'{A!r}'\n",
            "x = 'A'.lower()\n",
        ] {
            assert_eq!(string_literal(text), None, "{text}");
        }
    }
}
