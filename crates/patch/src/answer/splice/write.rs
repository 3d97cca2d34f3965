//! How a definition is written into a file: what above it stays, how far it is indented, where a new one goes.

use std::ops::Range;

use tree_sitter::Node;

use super::{AnswerError, EntryOutcome, Splicer, TextEdit, core_text, find};
use crate::syntax::{
    Entry, Grammar, Kind, LeadKind, Outline, Piece, SpecPlace, collapse_whitespace, docstring,
    first_statement,
};

/// How many new definitions, and how many new imports, are added: the place of each is looked for among all others.
pub(super) const MAX_NEW: u64 = 500;

impl Splicer<'_, '_> {
    /// Puts entry `new` of the answer in the place of entry `old` of the file.
    pub(super) fn replace(&mut self, old: usize, new: usize) -> Result<(), AnswerError> {
        let (file, answer) = (self.file, self.answer);
        let (old, new) = (&file.entries[old], &answer.entries[new]);
        if let (Some(was), Some(is)) = (old.definition(), new.definition())
            && was.names.iter().any(|name| !is.names.contains(name))
        {
            let names = was.names.join(", ");
            return Err(AnswerError::PartOfDeclaration {
                path: self.path.clone(),
                names,
            });
        }
        let indent = file.indent(old.core.start);
        let from = answer.indent(new.core.start);
        let mut core = match (&old.spec, &new.spec) {
            (Some(was), Some(is)) if was.place == SpecPlace::Grouped => {
                if was.keyword != is.keyword {
                    let names = old
                        .definition()
                        .map(|definition| definition.names.join(", "));
                    let names = names.unwrap_or_default();
                    return Err(AnswerError::PartOfDeclaration {
                        path: self.path.clone(),
                        names,
                    });
                }
                moved(answer, new.node, is.span.clone(), from, indent)
            }
            (_, Some(is)) if is.place == SpecPlace::Grouped => {
                format!(
                    "{} {}",
                    is.keyword,
                    moved(answer, new.node, is.span.clone(), from, indent)
                )
            }
            _ => moved(answer, new.node, new.core.clone(), from, indent),
        };
        self.refuse_elided(&core)?;
        self.keep_docstring(old, new, &mut core);
        self.rewrite(old, new, old.core.clone(), &core);
        Ok(())
    }

    /// Gives a container the answer's first line and what stands above it, where the answer writes more than a name.
    pub(super) fn replace_head(&mut self, old: usize, new: usize) {
        let (file, answer) = (self.file, self.answer);
        let (old, new) = (&file.entries[old], &answer.entries[new]);
        let (was, is) = (head(file, old), head(answer, new));
        let text = answer.text.get(is).unwrap_or_default();
        let old_text = file.text.get(was.clone()).unwrap_or_default();
        let core = if is_shortened(file.grammar, text)
            || collapse_whitespace(text) == collapse_whitespace(old_text)
        {
            old_text.replace("\r\n", "\n")
        } else {
            text.to_owned()
        };
        self.rewrite(old, new, was, &core);
    }

    /// Writes `core` over `span` and the answer's attributes and comments over those of `old` that are of their
    /// class. What the answer leaves out above a definition stays.
    fn rewrite(&mut self, old: &Entry<'_>, new: &Entry<'_>, span: Range<usize>, core: &str) {
        let (file, answer) = (self.file, self.answer);
        let indent = file.indent(span.start);
        let from = answer.indent(new.core.start);
        let has = |lead: &[Piece], class: LeadKind| lead.iter().any(|piece| piece.class == class);
        let is_own = old
            .spec
            .as_ref()
            .is_none_or(|spec| spec.place == SpecPlace::Alone);
        let (span, text) = if new.lead.is_empty() || !is_own {
            (span, core.to_owned())
        } else if old.lead.iter().all(|piece| has(&new.lead, piece.class)) {
            let above = moved(answer, new.node, new.start()..new.core.start, from, indent);
            (old.start()..span.end, above + core)
        } else {
            let mut text = String::new();
            for class in [LeadKind::Doc, LeadKind::Note, LeadKind::Attribute] {
                let (outline, lead, from) = if has(&new.lead, class) {
                    (answer, &new.lead, from)
                } else {
                    (file, &old.lead, indent)
                };
                for piece in lead.iter().filter(|piece| piece.class == class) {
                    text.push_str(&moved(outline, new.node, piece.span.clone(), from, indent));
                    text.push('\n');
                    text.push_str(indent);
                }
            }
            (old.start()..span.end, text + core)
        };
        let before = file.text.get(span.clone()).unwrap_or_default();
        if before.replace("\r\n", "\n") != text {
            self.edits.push(TextEdit {
                span,
                text: self.with_line_ends(&text),
            });
        }
    }

    /// A docstring is documentation that happens to stand inside: it stays where the answer leaves it out.
    fn keep_docstring(&self, old: &Entry<'_>, new: &Entry<'_>, core: &mut String) {
        if self.file.grammar != Grammar::Python || docstring(new.node).is_some() {
            return;
        }
        let (Some(doc), Some(first)) = (docstring(old.node), first_statement(new.node)) else {
            return;
        };
        let before = self
            .answer
            .text
            .get(new.core.start..first.start_byte())
            .unwrap_or_default();
        let lines = before.matches('\n').count();
        let Some((at, _)) = core.match_indices('\n').nth(lines.wrapping_sub(1)) else {
            return;
        };
        let rest = &core[at + 1..];
        let indent = &rest[..rest.len() - rest.trim_start().len()];
        if lines > 0 && indent == self.file.indent(doc.start_byte()) {
            let text = self
                .file
                .text
                .get(doc.byte_range())
                .unwrap_or_default()
                .replace("\r\n", "\n");
            let text = format!("{indent}{text}\n");
            core.insert_str(at + 1, &text);
        }
    }

    /// Adds what is not there, beside the neighbour that it has in the answer, else at the end of its container.
    pub(super) fn place_new(&mut self) -> Result<(), AnswerError> {
        let new = self
            .fates
            .iter()
            .filter(|fate| matches!(fate, EntryOutcome::New(_)))
            .count() as u64;
        if new > MAX_NEW {
            return Err(AnswerError::TooManyEdits { limit: MAX_NEW });
        }
        for at in 0..self.fates.len() {
            let EntryOutcome::New(container) = self.fates[at] else {
                continue;
            };
            let (place, neighbor) = self.place(at, container);
            let entry = &self.answer.entries[at];
            let text = self.new_text(entry, neighbor, &place);
            self.refuse_elided(&text)?;
            let gap = "\n".repeat(1 + self.blank_lines(entry, neighbor, container));
            let (span, text) = match place.side {
                Side::After => (place.at, format!("{gap}{}{text}", place.indent)),
                Side::Before => (place.at, format!("{text}{gap}{}", place.indent)),
                Side::Inside => {
                    let end = self
                        .file
                        .indent(container.map_or(0, |at| self.file.entries[at].core.start));
                    (place.at, format!("\n{}{text}\n{end}", place.indent))
                }
                Side::Alone => {
                    let is_empty = self.file.text.is_empty();
                    (
                        place.at,
                        if is_empty {
                            format!("{text}\n")
                        } else {
                            format!("{gap}{text}")
                        },
                    )
                }
            };
            self.edits.push(TextEdit {
                span: span..span,
                text: self.with_line_ends(&text),
            });
        }
        Ok(())
    }

    fn place(&self, at: usize, container: Option<usize>) -> (InsertionPoint, Option<usize>) {
        let parent = self.answer.entries[at].parent;
        let siblings = |other: &usize| self.answer.entries[*other].parent == parent;
        let known = |other: usize| match &self.fates[other] {
            EntryOutcome::Replaces(old) => self.lifted(*old, container),
            EntryOutcome::Open(old) => old.first().and_then(|old| self.lifted(*old, container)),
            EntryOutcome::New(_) | EntryOutcome::Done => None,
        };
        if let Some(before) = (0..at).rev().filter(siblings).find_map(known) {
            return (self.after(before), Some(before));
        }
        if let Some(after) = (at + 1..self.fates.len()).filter(siblings).find_map(known) {
            return (self.before(after), Some(after));
        }
        let inside =
            |other: &usize| self.file.entries[*other].parent == container && !self.gone[*other];
        let entries = || (0..self.file.entries.len()).rev().filter(inside);
        let last = entries().find(|other| self.file.entries[*other].definition().is_some());
        match last.or_else(|| entries().next()) {
            Some(last) if find::is_test_module(self.file, &self.file.entries[last]) => {
                (self.before(last), Some(last))
            }
            Some(last) => (self.after(last), Some(last)),
            None => (self.empty(container), None),
        }
    }

    /// The entry, or what it stands in, that stands directly in `container`.
    fn lifted(&self, mut at: usize, container: Option<usize>) -> Option<usize> {
        while self.file.entries[at].parent != container {
            at = self.file.entries[at].parent?;
        }
        Some(at)
    }

    fn after(&self, at: usize) -> InsertionPoint {
        let entry = &self.file.entries[at];
        let end = if is_grouped(entry) {
            entry.core.end
        } else {
            entry.outer.end
        };
        let text = self.file.text;
        let start = if is_grouped(entry) {
            entry.core.start
        } else {
            entry.outer.start
        };
        InsertionPoint {
            at: end + rest_of_line(text, end),
            side: Side::After,
            indent: self.file.indent(start).to_owned(),
        }
    }

    fn before(&self, at: usize) -> InsertionPoint {
        let entry = &self.file.entries[at];
        let start = if entry.outer == entry.core {
            entry.start()
        } else {
            entry.outer.start.min(entry.start())
        };
        InsertionPoint {
            at: start,
            side: Side::Before,
            indent: self.file.indent(start).to_owned(),
        }
    }

    fn empty(&self, container: Option<usize>) -> InsertionPoint {
        let text = self.file.text;
        let Some((at, body)) = container.and_then(|at| Some((at, self.file.entries[at].body?)))
        else {
            return InsertionPoint {
                at: text.trim_end().len(),
                side: Side::Alone,
                indent: String::new(),
            };
        };
        let unit = if text.contains("\n\t") || self.file.grammar == Grammar::Go {
            "\t"
        } else {
            "    "
        };
        let indent = format!(
            "{}{unit}",
            self.file.indent(self.file.entries[at].core.start)
        );
        InsertionPoint {
            at: body.start_byte() + 1,
            side: Side::Inside,
            indent,
        }
    }

    /// The text of a new definition, indented for its place.
    fn new_text(
        &self,
        entry: &Entry<'_>,
        neighbor: Option<usize>,
        place: &InsertionPoint,
    ) -> String {
        let answer = self.answer;
        let from = answer.indent(entry.core.start);
        let Some(spec) = &entry.spec else {
            return moved(
                answer,
                entry.node,
                entry.start()..entry.core.end,
                from,
                &place.indent,
            );
        };
        let text = moved(answer, entry.node, spec.span.clone(), from, &place.indent);
        let in_group = neighbor
            .is_some_and(|at| is_grouped(&self.file.entries[at]) && place.side == Side::After);
        match spec.place {
            _ if in_group => text,
            SpecPlace::Grouped => format!("{} {text}", spec.keyword),
            SpecPlace::Alone => moved(
                answer,
                entry.node,
                entry.start()..entry.core.end,
                from,
                &place.indent,
            ),
        }
    }

    /// How many blank lines keep a new definition from its neighbour.
    fn blank_lines(
        &self,
        entry: &Entry<'_>,
        neighbor: Option<usize>,
        container: Option<usize>,
    ) -> usize {
        let is_line = |outline: &Outline<'_>, entry: &Entry<'_>| {
            !core_text(outline, entry).contains('\n') && entry.lead.is_empty()
        };
        let Some(neighbor) = neighbor.map(|at| &self.file.entries[at]) else {
            return 1;
        };
        let word = |entry: &Entry<'_>| entry.definition().map(|definition| definition.word);
        if is_line(self.answer, entry)
            && is_line(self.file, neighbor)
            && word(entry) == word(neighbor)
        {
            return 0;
        }
        let is_block = matches!(word(entry), Some("def" | "class"));
        if self.file.grammar == Grammar::Python && container.is_none() && is_block {
            2
        } else {
            1
        }
    }

    /// A text with the file's line ends.
    pub(super) fn with_line_ends(&self, text: &str) -> String {
        if self.line_end == "\n" {
            text.to_owned()
        } else {
            text.replace('\n', self.line_end)
        }
    }
}

struct InsertionPoint {
    at: usize,
    side: Side,
    indent: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    After,
    Before,
    /// The first thing in an empty container.
    Inside,
    /// The first definition of a file.
    Alone,
}

fn is_grouped(entry: &Entry<'_>) -> bool {
    entry
        .spec
        .as_ref()
        .is_some_and(|spec| spec.place == SpecPlace::Grouped)
}

/// The distance to the end of the line if only a comment is left on it.
pub(super) fn rest_of_line(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let line = rest.split('\n').next().unwrap_or_default();
    let line = line.strip_suffix('\r').unwrap_or(line);
    let words = line.trim();
    let is_comment = words.starts_with("//")
        || words.starts_with('#')
        || words.starts_with("/*") && words.find("*/") == Some(words.len() - 2);
    if words.is_empty() || is_comment {
        line.len()
    } else {
        0
    }
}

/// The lines of an entry with the blank ones before it.
pub(super) fn whole_lines(text: &str, entry: &Entry<'_>) -> Range<usize> {
    let end = entry.core.end + rest_of_line(text, entry.core.end);
    let before = text.get(..entry.start()).unwrap_or_default();
    let above = before.trim_end();
    if above.is_empty() || above.ends_with(['{', ':']) && above.len() < before.len() {
        let rest = text.get(end..).unwrap_or_default();
        return entry.start()..end + (rest.len() - rest.trim_start().len());
    }
    let starts_line = before.trim_end_matches([' ', '\t']).ends_with('\n');
    if starts_line {
        above.len()..end
    } else {
        entry.start()..end
    }
}

/// A text of an outline, moved from one indentation to another. Its first line has no indentation; lines that begin
/// inside a literal stay as they are.
fn moved(
    outline: &Outline<'_>,
    node: Node<'_>,
    span: Range<usize>,
    from: &str,
    to: &str,
) -> String {
    let text = outline
        .text
        .get(span.clone())
        .unwrap_or_default()
        .replace("\r\n", "\n");
    if from == to || !text.contains('\n') {
        return text;
    }
    let literals = literals(node);
    let mut out = String::with_capacity(text.len());
    // Offsets are those of the text as it stands, which may end its lines with two bytes.
    let mut at = span.start;
    for (number, line) in outline
        .text
        .get(span)
        .unwrap_or_default()
        .split_inclusive('\n')
        .enumerate()
    {
        let before = literals.partition_point(|literal| literal.start < at);
        let inside = literals[..before]
            .last()
            .is_some_and(|literal| at < literal.end);
        at += line.len();
        let line = line
            .strip_suffix("\r\n")
            .map_or(line.to_owned(), |line| format!("{line}\n"));
        if number == 0 || inside || line.trim().is_empty() {
            out.push_str(&line);
            continue;
        }
        // By characters: two of white space may begin with the same bytes.
        let same = line.chars().zip(from.chars()).take_while(|(a, b)| a == b);
        let shared: usize = same.map(|(same, _)| same.len_utf8()).sum();
        out.push_str(to);
        out.push_str(line.get(shared..).unwrap_or_default());
    }
    out
}

/// The literals of more than one line inside a node, but for strings that are statements: those are documentation.
fn literals(node: Node<'_>) -> Vec<Range<usize>> {
    const KINDS: [&str; 5] = [
        "string",
        "string_literal",
        "raw_string_literal",
        "template_string",
        "concatenated_string",
    ];
    let mut found = Vec::new();
    let mut cursor = node.walk();
    loop {
        let node = cursor.node();
        let spans_lines = node.end_position().row > node.start_position().row;
        let is_literal = KINDS.contains(&node.kind());
        if is_literal && spans_lines {
            found.push(node.byte_range());
        }
        let is_documentation = node.kind() == "expression_statement"
            && node.named_child_count() == 1
            && node
                .named_child(0)
                .is_some_and(|inner| inner.kind() == "string");
        if spans_lines && !is_literal && !is_documentation && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

/// The text of a container up to its body.
fn head(outline: &Outline<'_>, entry: &Entry<'_>) -> Range<usize> {
    let start = entry.core.start;
    let Some(body) = entry.body else {
        return entry.core.clone();
    };
    if outline.grammar == Grammar::Python {
        let class = entry
            .node
            .child_by_field_name("definition")
            .unwrap_or(entry.node);
        let mut cursor = class.walk();
        let colon = class
            .children(&mut cursor)
            .filter(|child| child.kind() == ":")
            .last();
        return start..colon.map_or(body.start_byte(), |colon| colon.end_byte());
    }
    let text = outline
        .text
        .get(start..body.start_byte())
        .unwrap_or_default();
    start..start + text.trim_end().len()
}

/// Whether a container is written again with the first line that it had, or with no more than its name.
pub(super) fn is_same_head(
    outline: &Outline<'_>,
    first: &Entry<'_>,
    second_entry: &Entry<'_>,
) -> bool {
    let text = |entry| outline.text.get(head(outline, entry)).unwrap_or_default();
    is_shortened(outline.grammar, text(second_entry))
        || collapse_whitespace(text(first)) == collapse_whitespace(text(second_entry))
}

/// Whether the head of a container is no more than its name: then what more the file has stays.
fn is_shortened(grammar: Grammar, head: &str) -> bool {
    match grammar {
        Grammar::Rust => !head.contains(['<', ':']) && !head.contains(" where"),
        Grammar::Python => !head.contains('('),
        Grammar::JavaScript | Grammar::TypeScript | Grammar::Tsx => {
            !head.contains('<') && !head.contains(" extends ") && !head.contains(" implements ")
        }
        Grammar::Go | Grammar::C => true,
    }
}

/// Whether an entry can stand before the imports of a file.
pub(super) fn may_lead(outline: &Outline<'_>, entry: &Entry<'_>) -> bool {
    match entry.kind {
        Kind::Prose => true,
        Kind::Other => {
            let text = core_text(outline, entry);
            text.starts_with("#!") || text.starts_with(['"', '\''])
        }
        Kind::Definition(_) | Kind::Import => false,
    }
}
