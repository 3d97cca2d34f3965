//! Whether a patch only adds tests: whole new tests in a test file, or a new file of nothing but tests.
//!
//! A test file is read as a syntax tree. New tests and new imports are taken out of it; what is left has to be the file as it was,
//! line for line. A new test has a name that does not occur in the file, may not be skipped, and may not reach out of
//! itself: whatever another test would notice (an assignment to what is imported, a hook, a mock without an end) is refused. A
//! rename is not addition, and passes where both files are the same once the old name is written as the new one.
//!
//! What always holds: what cannot be read is refused; existing lines stand as they stood.

mod go;
mod python;
mod reach;
mod rust;
mod script;

use std::collections::BTreeSet;
use std::ops::Range;

use crucible_model::RepoPath;
use tree_sitter::Node;

use crate::syntax::{Grammar, Leaf, ParseFailure, Parsed, leaves, line_of};

/// How many items may stand beside one another.
const MAX_BESIDE: usize = 4000;

/// Why a change of a test file is more than new tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NonTestChange {
    /// Where, counted from 1.
    pub(crate) line: u64,
    /// Its content.
    pub(crate) why: &'static str,
}

/// A test or an import of a file.
#[derive(Debug)]
struct Unit<'t> {
    /// With decorators, attributes and the new comments above it.
    span: Range<usize>,
    node: Node<'t>,
    kind: UnitKind,
}

#[derive(Debug, PartialEq)]
enum UnitKind {
    /// A test, by its name.
    Test(String),
    /// A group of tests, by its name.
    Group(String),
    Import,
    /// Code beside the tests; a new file may hold some.
    Helper,
    Other,
}

/// Nothing, or where a test does what it may not, and what that is.
type Checked = Result<(), (usize, &'static str)>;

/// What a language says of its tests.
struct Rules {
    /// What a node at the top or in a group is.
    unit: fn(Node<'_>, &str) -> UnitKind,
    /// The nodes in a group, or in a container that was there before.
    inside: for<'t> fn(Node<'t>, &str) -> Vec<Node<'t>>,
    /// What a test may not do.
    check: fn(Node<'_>, &str) -> Checked,
    /// Whether a name of a new file is one that its runner knows.
    file: fn(&RepoPath) -> bool,
}

fn rules(grammar: Grammar) -> &'static Rules {
    match grammar {
        Grammar::Python => &python::RULES,
        Grammar::Rust => &rust::RULES,
        // C has no grammar here: see `Grammar::from_path`.
        Grammar::Go | Grammar::C => &go::RULES,
        Grammar::JavaScript | Grammar::TypeScript | Grammar::Tsx => &script::RULES,
    }
}

/// Judges a changed test file.
///
/// # Errors
///
/// What it changes besides adding tests.
pub(crate) fn only_adds_tests(
    path: &RepoPath,
    before: &[u8],
    after: &[u8],
) -> Result<(), NonTestChange> {
    let (grammar, before, after) = (grammar(path)?, text(before)?, text(after)?);
    let rules = rules(grammar);
    let (old, new) = (parsed(grammar, before)?, parsed(grammar, after)?);
    let words: BTreeSet<&str> = words(before).collect();
    let lines: BTreeSet<&str> = before.lines().map(str::trim).collect();
    let at = |offset, why| NonTestChange {
        line: line_of(after, offset),
        why,
    };
    let (mut old_imports, mut new_imports) = (Imports::default(), Imports::default());
    let mut ranges = Vec::new();
    let mut names = BTreeSet::new();
    for unit in units(&old, rules, &|_| false)? {
        if unit.kind == UnitKind::Import {
            old_imports.add(grammar, unit.node, before);
            ranges.push(unit.span);
        } else if let UnitKind::Test(name) | UnitKind::Group(name) = unit.kind {
            names.insert(name);
        }
    }
    let was = RemainingText::new(&old, ranges);
    // What stands in a group is checked with it.
    let (mut taken, mut checked) = (Vec::new(), 0);
    for unit in units(&new, rules, &|line| !lines.contains(line.trim()))? {
        match &unit.kind {
            UnitKind::Import => new_imports.add(grammar, unit.node, after),
            UnitKind::Test(name) | UnitKind::Group(name) if is_free(name, &names, &words) => {
                if unit.node.start_byte() >= checked {
                    check_unit(rules, unit.node, after).map_err(|(offset, why)| at(offset, why))?;
                    checked = unit.node.end_byte();
                }
            }
            UnitKind::Test(_) | UnitKind::Group(_) | UnitKind::Helper | UnitKind::Other => continue,
        }
        taken.push(unit.span);
    }
    new_imports
        .extend(&old_imports, &words)
        .map_err(|why| at(0, why))?;
    let is = RemainingText::new(&new, taken);
    match was.first_difference(&is) {
        None => Ok(()),
        Some(line) => Err(NonTestChange {
            line,
            why: "it is not a new test with a unique name",
        }),
    }
}

/// Judges a new test file.
///
/// # Errors
///
/// What it holds besides tests.
pub(crate) fn is_file_of_tests(path: &RepoPath, after: &[u8]) -> Result<(), NonTestChange> {
    let (grammar, text) = (grammar(path)?, text(after)?);
    let rules = rules(grammar);
    if !(rules.file)(path) {
        return Err(NonTestChange {
            line: 1,
            why: "a runner takes no tests from a new file of this name",
        });
    }
    let parsed = parsed(grammar, text)?;
    for unit in units(&parsed, rules, &|_| true)? {
        let checked = match unit.kind {
            UnitKind::Import => {
                // What Python imports by a star may be a fixture or a hook.
                let is_star =
                    |leaf: &Leaf| grammar == Grammar::Python && leaf.statement.contains('*');
                let is_plain = !leaves(grammar, unit.node, text).iter().any(is_star);
                if is_plain {
                    Ok(())
                } else {
                    Err((unit.span.start, "an import brings names that nobody sees"))
                }
            }
            UnitKind::Test(_) | UnitKind::Group(_) => check_unit(rules, unit.node, text),
            UnitKind::Helper => (rules.check)(unit.node, text),
            UnitKind::Other => Err((
                unit.span.start,
                "it is neither a test nor what a test needs",
            )),
        };
        checked.map_err(|(offset, why)| NonTestChange {
            line: line_of(text, offset),
            why,
        })?;
    }
    Ok(())
}

/// Whether two texts are the same once each old name is written as its new one.
pub(crate) fn only_renames(renames: &[(String, String)], before: &[u8], after: &[u8]) -> bool {
    let (Ok(before), Ok(after)) = (text(before), text(after)) else {
        return false;
    };
    !renames.is_empty() && renamed(renames, before) == renamed(renames, after)
}

fn renamed(renames: &[(String, String)], text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        out.push_str(&rest[..start]);
        let word = &rest[start..];
        let end = word.find(|c| !is_word(c)).unwrap_or(word.len());
        let (word, behind) = word.split_at(end);
        out.push_str(
            renames
                .iter()
                .find(|(old, _)| old == word)
                .map_or(word, |(_, new)| new),
        );
        rest = behind;
    }
    out.push_str(rest);
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c)).filter(|word| !word.is_empty())
}

/// Whether nothing has this name yet: no test, and where it is a word nothing at all.
fn is_free(name: &str, names: &BTreeSet<String>, words: &BTreeSet<&str>) -> bool {
    !name.is_empty() && !names.contains(name) && !words.contains(name)
}

fn grammar(path: &RepoPath) -> Result<Grammar, NonTestChange> {
    Grammar::from_path(path).ok_or(NonTestChange {
        line: 1,
        why: "tests of this language are not known one by one",
    })
}

fn text(bytes: &[u8]) -> Result<&str, NonTestChange> {
    std::str::from_utf8(bytes).map_err(|_| NonTestChange {
        line: 1,
        why: "it is not UTF-8",
    })
}

fn parsed(grammar: Grammar, text: &str) -> Result<Parsed<'_>, NonTestChange> {
    Parsed::parse(grammar, text).map_err(|why| match why {
        ParseFailure::Error { line } => NonTestChange {
            line,
            why: "the file cannot be read as its language",
        },
        ParseFailure::TooMuch => NonTestChange {
            line: 1,
            why: "the file is too large to be read",
        },
    })
}

/// Checks a test, or a group and every test in it.
fn check_unit(rules: &Rules, node: Node<'_>, text: &str) -> Checked {
    let mut rest = vec![node];
    while let Some(node) = rest.pop() {
        match (rules.unit)(node, text) {
            UnitKind::Test(_) => (rules.check)(node, text)?,
            UnitKind::Group(_) => rest.extend((rules.inside)(node, text)),
            _ => {
                return Err((
                    node.start_byte(),
                    "a new group of tests holds tests and nothing else",
                ));
            }
        }
    }
    Ok(())
}

/// The units of a file: those at its top, and in containers those in them. `is_new` says whether a line of comment is.
fn units<'t>(
    parsed: &'t Parsed<'t>,
    rules: &Rules,
    is_new: &dyn Fn(&str) -> bool,
) -> Result<Vec<Unit<'t>>, NonTestChange> {
    let text = parsed.text;
    let root = parsed.root();
    let mut units = Vec::new();
    let mut rest: Vec<Node<'t>> = vec![root];
    // A group is looked into as well: it may have been there, and hold a new test.
    while let Some(node) = rest.pop() {
        let mut inner: Vec<Node<'t>> = if node.id() == root.id() {
            root.named_children(&mut root.walk()).collect()
        } else {
            let kind = (rules.unit)(node, text);
            if kind != UnitKind::Other || !is_decoration(node) {
                units.push(Unit {
                    span: span(node, text, is_new),
                    node,
                    kind,
                });
            }
            (rules.inside)(node, text)
        };
        if inner.len() > MAX_BESIDE {
            let line = line_of(text, node.start_byte());
            return Err(NonTestChange {
                line,
                why: "more stands here than is read test by test",
            });
        }
        inner.reverse();
        rest.extend(inner);
    }
    Ok(units)
}

/// Comments, attributes and the like belong to what follows them, or to nothing.
fn is_decoration(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "comment"
            | "line_comment"
            | "block_comment"
            | "attribute_item"
            | "inner_attribute_item"
            | "package_clause"
    )
}

/// A node with its attributes, however far above they stand, and with the new comments right above it, as whole lines; empty where
/// something else stands in them.
fn span(node: Node<'_>, text: &str, is_new: &dyn Fn(&str) -> bool) -> Range<usize> {
    let mut start = node.start_byte();
    let mut before = node.prev_sibling();
    while let Some(node) = before {
        let written = text.get(node.byte_range()).unwrap_or_default();
        let is_lead = match node.kind() {
            "attribute_item" => true,
            "comment" | "line_comment" | "block_comment" => {
                written.lines().all(is_new)
                    && !["@", "go:", "+build", "coding", "pragma", "#!"]
                        .iter()
                        .any(|mark| written.contains(mark))
            }
            _ => false,
        };
        if !is_lead {
            break;
        }
        start = node.start_byte();
        before = node.prev_sibling();
    }
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let end = start.max(node.end_byte());
    // Some nodes end with their line end.
    let end = end - (text[..end].len() - text[..end].trim_end().len()).min(end - start);
    let line_end = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    let is_alone =
        text[line_start..start].trim().is_empty() && matches!(text[end..line_end].trim(), "" | ";");
    if is_alone {
        line_start..line_end
    } else {
        start..start
    }
}

/// A text without what was taken out of it, line by line. Lines of white space count only inside of literals.
struct RemainingText<'t> {
    lines: Vec<(u64, &'t str)>,
}

impl<'t> RemainingText<'t> {
    fn new(parsed: &Parsed<'t>, mut ranges: Vec<Range<usize>>) -> Self {
        ranges.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
        let literals = literals(parsed);
        let mut lines = Vec::new();
        let mut at = 0;
        let mut skip_to = 0;
        let (mut literal_end, mut begun) = (0, literals.iter().peekable());
        let mut next = ranges
            .into_iter()
            .filter(|span| !span.is_empty())
            .peekable();
        for (number, line) in parsed.text.split_inclusive('\n').enumerate() {
            while let Some(span) = next.next_if(|span| span.start <= at) {
                skip_to = skip_to.max(span.end);
            }
            while let Some(span) = begun.next_if(|span| span.start < at) {
                literal_end = literal_end.max(span.end);
            }
            let is_literal = at < literal_end;
            if at >= skip_to && (is_literal || !line.trim().is_empty()) {
                // The end of the last line may come with what follows it.
                lines.push((number as u64 + 1, line.strip_suffix('\n').unwrap_or(line)));
            }
            at += line.len();
        }
        Self { lines }
    }

    /// The line of `other` at which it begins to differ.
    fn first_difference(&self, other: &Self) -> Option<u64> {
        let pairs = self.lines.iter().zip(&other.lines);
        let differs = pairs
            .clone()
            .find(|(old, new)| old.1 != new.1)
            .map(|(_, new)| new.0);
        let longer = || other.lines.get(self.lines.len()).map(|(line, _)| *line);
        let shorter = || {
            let last = other.lines.last().map_or(1, |(line, _)| *line);
            (self.lines.len() > other.lines.len()).then_some(last)
        };
        differs.or_else(longer).or_else(shorter)
    }
}

/// The literals that span several lines, in their order.
fn literals(parsed: &Parsed<'_>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    reach::walk(parsed.root(), &mut |node| {
        let spans = node.start_position().row != node.end_position().row;
        if spans && node.kind().contains("string") {
            found.push(node.byte_range());
        }
    });
    found
}

/// What the imports of a file bring.
#[derive(Default)]
struct Imports {
    leaves: Vec<(String, String)>,
}

impl Imports {
    fn add(&mut self, grammar: Grammar, node: Node<'_>, text: &str) {
        self.leaves.extend(
            leaves(grammar, node, text)
                .into_iter()
                .map(|leaf| (leaf.key, leaf.statement)),
        );
    }

    /// Whether everything that was imported still is, in its order, and whatever is new takes no name that the file uses.
    fn extend(&self, old: &Self, words: &BTreeSet<&str>) -> Result<(), &'static str> {
        let mut rest = old.leaves.iter().peekable();
        for (key, statement) in &self.leaves {
            if rest.next_if(|(old, _)| old == key).is_some() {
                continue;
            }
            let bound = words_of(statement).next_back().unwrap_or_default();
            if statement.contains('*') || bound.is_empty() || words.contains(bound) {
                return Err("a new import takes a name that the file uses");
            }
        }
        if rest.next().is_some() {
            Err("an import that was there is gone or has moved")
        } else {
            Ok(())
        }
    }
}

/// The words of an import without the place that it imports from, the name that it binds last.
fn words_of(statement: &str) -> impl DoubleEndedIterator<Item = &str> {
    let bound = match statement.split_once(" from ") {
        Some((bound, _)) if !statement.starts_with("from ") => bound,
        _ => statement,
    };
    bound.split(|c| !is_word(c)).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests;
