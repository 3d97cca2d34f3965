//! The source text of a skill as a syntax tree that means the same to Python as to its judges.
//!
//! Where Python and a reader could see two different programs in the same bytes, the text is refused before it is judged: another encoding,
//! a byte order mark, control characters that end a line for one of them only, marks that turn the direction of writing. A tree has no
//! errors in it and is never deeper than [`MAX_DEPTH`], so walks over it may recurse.

mod fold;
mod names;

use std::ops::ControlFlow;

use crucible_model::{Code, Finding};
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

pub(crate) use names::{AliasLimit, Import, Names, imports, parts};

/// The largest skill, in bytes: 256 KiB.
pub(crate) const MAX_SKILL_BYTES: usize = 256 << 10;

/// The deepest tree that is judged, in nodes.
const MAX_DEPTH: usize = 200;

/// The text of a skill, and its tree.
#[derive(Debug)]
pub struct PythonSource {
    text: String,
    tree: Tree,
}

/// Why bytes are not source text that could be judged. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PythonFault {
    /// More bytes than are read.
    #[error(
        "the skill has {bytes} bytes, at most {MAX_SKILL_BYTES} are read; write less, or move data out of it"
    )]
    TooLarge {
        /// How many.
        bytes: usize,
    },
    /// It is not UTF-8.
    #[error("the skill is not UTF-8 from byte {at} on; write it as UTF-8")]
    NotUtf8 {
        /// The first byte that is not.
        at: usize,
    },
    /// It begins with a byte order mark.
    #[error("the skill begins with a byte order mark; write it without one")]
    ByteOrderMark,
    /// A character that ends a line for one reader only, or turns the direction of the text.
    #[error(
        "line {line} holds the character U+{character:04X}, which hides text from readers; write an escape instead"
    )]
    Hidden {
        /// Where.
        line: usize,
        /// Which.
        character: u32,
    },
    /// A line that names another encoding than UTF-8.
    #[error("line {line} names an encoding; leave it out, a skill is UTF-8")]
    Encoding {
        /// Where.
        line: usize,
    },
    /// It does not follow Python's grammar.
    #[error("line {line} is not Python 3; fix the syntax there")]
    Syntax {
        /// The first line that does not.
        line: usize,
    },
    /// Deeper than is judged.
    #[error("line {line} is nested deeper than {MAX_DEPTH} levels; split it up")]
    TooDeep {
        /// Where.
        line: usize,
    },
    /// Reading it would take too long.
    #[error("the skill takes too long to read; write it simpler")]
    TooMuch,
}

impl PythonFault {
    /// The fault as a finding that refuses the skill.
    #[must_use]
    pub fn finding(&self) -> Finding {
        let subject = match self {
            Self::TooLarge { .. } | Self::ByteOrderMark | Self::TooMuch => {
                "line 1, column 1".to_owned()
            }
            Self::NotUtf8 { at } => format!("byte {at}"),
            Self::Hidden { line, .. }
            | Self::Encoding { line }
            | Self::Syntax { line }
            | Self::TooDeep { line } => format!("line {line}, column 1"),
        };
        Finding::error(Code::new("forge-source"), subject, format!("{self}."))
    }
}

impl PythonSource {
    /// Parses the bytes of a skill.
    ///
    /// # Errors
    ///
    /// [`PythonFault`] where they are not source text that means the same to all its readers.
    pub fn parse(bytes: &[u8]) -> Result<Self, PythonFault> {
        if bytes.len() > MAX_SKILL_BYTES {
            return Err(PythonFault::TooLarge { bytes: bytes.len() });
        }
        let text = std::str::from_utf8(bytes).map_err(|error| PythonFault::NotUtf8 {
            at: error.valid_up_to(),
        })?;
        plain(text)?;
        let mut parser = Parser::new();
        if parser
            .set_language(&tree_sitter_python::LANGUAGE.into())
            .is_err()
        {
            return Err(PythonFault::TooMuch);
        }
        let mut budget = 2_000 + text.len();
        let mut watch = |_: &ParseState| {
            budget = budget.saturating_sub(1);
            if budget == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        // One step may read ahead to the end of the text, so what is read is counted too.
        let mut unread = 30 * text.len() + CHUNK;
        let mut read = |at: usize, _| {
            let chunk = text.as_bytes().get(at..).unwrap_or_default();
            let chunk = chunk.get(..CHUNK).unwrap_or(chunk);
            unread = unread.saturating_sub(chunk.len());
            if unread == 0 { &[][..] } else { chunk }
        };
        let options = ParseOptions::new().progress_callback(&mut watch);
        let tree = parser
            .parse_with_options(&mut read, None, Some(options))
            .ok_or(PythonFault::TooMuch)?;
        if unread == 0 && !text.is_empty() {
            return Err(PythonFault::TooMuch);
        }
        let source = Self {
            text: text.to_owned(),
            tree,
        };
        source.sound()?;
        Ok(source)
    }

    /// The source text, exactly as it was given.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    /// The text of a node.
    pub(crate) fn node_text(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// What a literal text says, where it says it plainly: no bytes, no placeholders, no escapes.
    pub(crate) fn literal(&self, node: Node<'_>) -> Option<String> {
        match node.kind() {
            "parenthesized_expression" => self.literal(*parts(node).first()?),
            "concatenated_string" => node
                .named_children(&mut node.walk())
                .filter(|part| part.kind() != "comment")
                .map(|part| self.literal(part))
                .collect(),
            "string" => {
                let (mut prefix, mut value) = (String::new(), String::new());
                for part in node.children(&mut node.walk()) {
                    match part.kind() {
                        "string_start" => {
                            prefix = self
                                .node_text(part)
                                .trim_end_matches(['"', '\''])
                                .to_ascii_lowercase()
                        }
                        "string_content" => value.push_str(self.node_text(part)),
                        "string_end" => {}
                        _ => return None,
                    }
                }
                let raw = prefix == "r";
                ((raw || prefix.is_empty() || prefix == "u") && (raw || !value.contains('\\')))
                    .then_some(value)
            }
            _ => None,
        }
    }

    /// Refuses errors, what only Python 2 knows, and depth.
    fn sound(&self) -> Result<(), PythonFault> {
        let mut cursor = self.tree.walk();
        let mut depth = 0;
        loop {
            let node = cursor.node();
            let line = node.start_position().row + 1;
            let old = matches!(node.kind(), "print_statement" | "exec_statement");
            if node.is_error() || node.is_missing() || old {
                return Err(PythonFault::Syntax { line });
            }
            if depth > MAX_DEPTH {
                return Err(PythonFault::TooDeep { line });
            }
            if cursor.goto_first_child() {
                depth += 1;
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return Ok(());
                }
                depth -= 1;
            }
        }
    }
}

/// Where a node begins, as findings tell it.
pub(crate) fn place_of(node: Node<'_>) -> String {
    let at = node.start_position();
    format!("line {}, column {}", at.row + 1, at.column + 1)
}

/// How much of a text the parser is given at once, in bytes.
const CHUNK: usize = 1 << 10;

/// Refuses characters and lines that make one text two programs.
fn plain(text: &str) -> Result<(), PythonFault> {
    if text.starts_with('\u{feff}') {
        return Err(PythonFault::ByteOrderMark);
    }
    let mut encodings = 0;
    for (number, line) in text.split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let hides = |c: char| {
            (c.is_control() && c != '\t')
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
        };
        if let Some(character) = line.chars().find(|c| hides(*c)) {
            return Err(PythonFault::Hidden {
                line: number + 1,
                character: character.into(),
            });
        }
        // Every mention counts, not the first alone, and both lines together may have one.
        if number < 2 && line.trim_start().starts_with('#') {
            for (at, word) in line.match_indices("coding") {
                let rest = line.get(at + word.len()..).unwrap_or_default();
                let Some(name) = rest.strip_prefix([':', '=']) else {
                    continue;
                };
                let name = name.trim_start_matches([' ', '\t']);
                let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
                let name = name.get(..end.unwrap_or(name.len())).unwrap_or_default();
                encodings += usize::from(!name.is_empty());
                let plain = ["utf-8", "utf8", "utf_8"]
                    .iter()
                    .any(|known| name.eq_ignore_ascii_case(known));
                if encodings > 1 || (!name.is_empty() && !plain) {
                    return Err(PythonFault::Encoding { line: number + 1 });
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Expected = fn(&PythonFault) -> bool;

    #[test]
    fn bytes_that_two_readers_see_differently_are_refused() {
        let deep = format!("x = {}1{}\n", "(".repeat(5_000), ")".repeat(5_000));
        let chain = format!("x = a{}\n", ".b".repeat(20_000));
        let huge = "#".repeat(MAX_SKILL_BYTES + 1);
        let faults: [(&[u8], Expected); 17] = [
            (b"# coding coding: utf-7\n", |fault| {
                matches!(fault, PythonFault::Encoding { line: 1 })
            }),
            (b"# coding: utf-8 coding: latin-1\n", |fault| {
                matches!(fault, PythonFault::Encoding { line: 1 })
            }),
            (b"# coding: utf-8\n# coding: utf-8\n", |fault| {
                matches!(fault, PythonFault::Encoding { line: 2 })
            }),
            (b"# coding=utf-8-sig\n", |fault| {
                matches!(fault, PythonFault::Encoding { line: 1 })
            }),
            (huge.as_bytes(), |fault| {
                matches!(fault, PythonFault::TooLarge { .. })
            }),
            (b"x = '\xff'\n", |fault| {
                matches!(fault, PythonFault::NotUtf8 { at: 5 })
            }),
            (b"\xef\xbb\xbfx = 1\n", |fault| {
                matches!(fault, PythonFault::ByteOrderMark)
            }),
            (b"x = 1\n\0", |fault| {
                matches!(fault, PythonFault::Hidden { line: 2, .. })
            }),
            (b"# fine\rimport os\n", |fault| {
                matches!(fault, PythonFault::Hidden { line: 1, .. })
            }),
            (b"x = 1\x0c\n", |fault| {
                matches!(fault, PythonFault::Hidden { .. })
            }),
            ("x = 1 # \u{202e}\n".as_bytes(), |fault| {
                matches!(fault, PythonFault::Hidden { .. })
            }),
            (b"# -*- coding: utf-7 -*-\n", |fault| {
                matches!(fault, PythonFault::Encoding { line: 1 })
            }),
            (b"\n#coding=latin-1\n", |fault| {
                matches!(fault, PythonFault::Encoding { line: 2 })
            }),
            (b"def f(:\n", |fault| {
                matches!(fault, PythonFault::Syntax { line: 1 })
            }),
            (b"x = 1\nexec 'import os'\n", |fault| {
                matches!(fault, PythonFault::Syntax { line: 2 })
            }),
            (deep.as_bytes(), |fault| {
                matches!(fault, PythonFault::TooDeep { line: 1 })
            }),
            (chain.as_bytes(), |fault| {
                matches!(fault, PythonFault::TooDeep { line: 1 })
            }),
        ];
        for (bytes, is_expected) in faults {
            let fault = PythonSource::parse(bytes).unwrap_err();
            assert!(
                is_expected(&fault),
                "{fault}: {:?}",
                String::from_utf8_lossy(&bytes[..bytes.len().min(40)])
            );
        }
        assert!(PythonSource::parse(b"# coding: utf-8\r\nx = 'w\xc3\xb6rter'\r\n").is_ok());
        assert!(PythonSource::parse(b"").is_ok());
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn no_bytes_bring_the_parser_down(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
                if let Err(fault) = PythonSource::parse(&bytes) {
                    prop_assert!(!fault.finding().hint.is_empty());
                }
            }
        }
    }
}
