//! Source text as a syntax tree: the grammars, and a parse that ends whatever the text is.
//!
//! Answers that are spliced into a file are parsed; the judge reads source with the scanners of [`crate::source`], and asks a
//! tree only where a slash of a script may begin a literal. A parse has a budget that is counted in the parser's own steps, so the same text always ends in
//! the same way, and it stops at the first error: half a tree is never used. No walk over a tree recurses.

mod entry;
mod go;
mod import;
mod linkage;
mod python;
mod rust;
mod script;

use std::ops::ControlFlow;

use crucible_model::RepoPath;
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use linkage::without_linkage;

pub(crate) use entry::{Branches, Entry, Kind, LeadKind, Outline, Piece, SpecPlace};
pub(crate) use import::{Leaf, collapse_whitespace, leaves};
pub(crate) use python::{docstring, first_statement, is_method};
pub(crate) use rust::takes_self;

/// The largest text that is parsed, in bytes: 512 KiB. A larger file is handled as one without a grammar.
pub(crate) const MAX_SYNTAX_BYTES: usize = 512 << 10;

/// Up to this size a text with an error is parsed to its end, to say where the error stands.
const MAX_PLACED_BYTES: usize = 64 << 10;

/// How much of a text the parser is given at once, in bytes.
const CHUNK: usize = 1 << 10;

/// How often a text may be read; ordinary source is read less than three times.
const MAX_READ_TIMES: usize = 30;

/// A language with a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grammar {
    /// `.rs`
    Rust,
    /// `.py`, `.pyi`
    Python,
    /// `.js` and its kin; JSX is part of the grammar.
    JavaScript,
    /// `.ts`, `.mts`, `.cts`
    TypeScript,
    /// `.tsx`
    Tsx,
    /// `.go`
    Go,
    /// `.c` and `.h`, only for code that is broken or mutated: answers are not spliced into it.
    C,
}

impl Grammar {
    /// The same as [`Self::from_path`], with the languages whose functions can only be broken and mutated.
    pub(crate) fn of_tested(path: &RepoPath) -> Option<Self> {
        match path.extension()?.to_ascii_lowercase().as_str() {
            "c" | "h" => Some(Self::C),
            _ => Self::from_path(path),
        }
    }

    /// The grammar of a file by its extension; none for everything else.
    pub(crate) fn from_path(path: &RepoPath) -> Option<Self> {
        match path.extension()?.to_ascii_lowercase().as_str() {
            "rs" => Some(Self::Rust),
            "py" | "pyi" => Some(Self::Python),
            "js" | "jsx" | "mjs" | "cjs" => Some(Self::JavaScript),
            "ts" | "mts" | "cts" => Some(Self::TypeScript),
            "tsx" => Some(Self::Tsx),
            "go" => Some(Self::Go),
            _ => None,
        }
    }

    fn language(self) -> tree_sitter::Language {
        match self {
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
            Self::Go => tree_sitter_go::LANGUAGE.into(),
            Self::C => tree_sitter_c::LANGUAGE.into(),
        }
    }
}

/// Why a text has no tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParseFailure {
    /// It does not follow its grammar near this line, counted from 1.
    Error { line: u64 },
    /// It is too large, or reading it would take too long.
    TooMuch,
}

/// A text that follows its grammar.
pub(crate) struct Parsed<'t> {
    pub(crate) grammar: Grammar,
    pub(crate) text: &'t str,
    tree: Tree,
}

impl<'t> Parsed<'t> {
    /// Parses `text`, or says why there is no tree without an error in it.
    pub(crate) fn parse(grammar: Grammar, text: &'t str) -> Result<Self, ParseFailure> {
        if text.len() > MAX_SYNTAX_BYTES {
            return Err(ParseFailure::TooMuch);
        }
        let mut parser = Parser::new();
        if parser.set_language(&grammar.language()).is_err() {
            return Err(ParseFailure::TooMuch);
        }
        let mut parsed = parse(&mut parser, text, OnError::Stop);
        if grammar == Grammar::C
            && matches!(parsed, Err(ParseFailure::Error { .. }))
            && let Some(blanked) = without_linkage(text)
        {
            parser.reset();
            // Of the same length, so the places of the tree are those of the text.
            if let Ok(tree) = parse(&mut parser, &blanked, OnError::Stop) {
                parsed = Ok(tree);
            }
            parser.reset();
        }
        match parsed {
            Ok(tree) if !tree.root_node().has_error() => Ok(Self {
                grammar,
                text,
                tree,
            }),
            Ok(tree) => Err(ParseFailure::Error {
                line: first_error(&tree),
            }),
            Err(ParseFailure::Error { .. }) if text.len() <= MAX_PLACED_BYTES => {
                parser.reset();
                let tree = parse(&mut parser, text, OnError::GoOn)?;
                Err(ParseFailure::Error {
                    line: first_error(&tree),
                })
            }
            Err(unparsed) => Err(unparsed),
        }
    }

    pub(crate) fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum OnError {
    Stop,
    GoOn,
}

fn parse(parser: &mut Parser, text: &str, on_error: OnError) -> Result<Tree, ParseFailure> {
    // The callback comes once in a hundred steps; ordinary source needs a tenth of this.
    let mut budget = 1_000 + text.len() / 10;
    let mut why = ParseFailure::TooMuch;
    let mut watch = |state: &ParseState| {
        if on_error == OnError::Stop && state.has_error() {
            why = ParseFailure::Error {
                line: line_of(text, state.current_byte_offset()),
            };
            return ControlFlow::Break(());
        }
        budget = budget.saturating_sub(1);
        if budget == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let bytes = text.as_bytes();
    // One step may read ahead to the end of the text, so what is read is counted too. At its limit the text ends.
    let mut unread = MAX_READ_TIMES * bytes.len() + CHUNK;
    let mut read = |at: usize, _| {
        let chunk = bytes.get(at..).unwrap_or_default();
        let chunk = chunk.get(..CHUNK).unwrap_or(chunk);
        unread = unread.saturating_sub(chunk.len());
        if unread == 0 { &[][..] } else { chunk }
    };
    let options = ParseOptions::new().progress_callback(&mut watch);
    let tree = parser.parse_with_options(&mut read, None, Some(options));
    if unread == 0 && !bytes.is_empty() {
        return Err(ParseFailure::TooMuch);
    }
    tree.ok_or(why)
}

/// The line of the first node that is an error or was made up to go on, counted from 1.
fn first_error(tree: &Tree) -> u64 {
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if node.is_error() || node.is_missing() {
            return node.start_position().row as u64 + 1;
        }
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return 1;
            }
        }
    }
}

/// The line of a byte, counted from 1.
pub(crate) fn line_of(text: &str, at: usize) -> u64 {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests;
