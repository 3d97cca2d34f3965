//! Parses a YAML document into a tree with the position of each part in the text.
//!
//! Editing a file in place needs positions, and verifying the edit needs a comparison of the two
//! meanings. Aliases are kept and never expanded, so no document can grow.
//!
//! Invariants: a tree is at most [`MAX_DEPTH`] levels deep and has at most [`MAX_NODES`] nodes. Its
//! positions are byte offsets at character boundaries.

use serde_saphyr::granit_parser::{Event, Marker, Parser, ScalarStyle, Span, StructureStyle, Tag};

/// The deepest nesting of collections.
pub(super) const MAX_DEPTH: usize = 32;

/// The most scalars, collections and aliases of a document.
pub(super) const MAX_NODES: usize = 100_000;

/// A value with its position.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// The anchor's number, 0 for none.
    anchor: usize,
    tag: Option<String>,
    /// Its first byte, after anchor and tag.
    pub(super) start: usize,
    /// The position after its last visible byte.
    pub(super) end: usize,
    /// The number of characters before it in its line.
    pub(super) column: usize,
}

/// The kind of a value.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Scalar {
        text: String,
        form: Form,
    },
    Alias(usize),
    Sequence {
        style: Style,
        items: Vec<Node>,
    },
    Mapping {
        style: Style,
        pairs: Vec<(Node, Node)>,
    },
}

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Without quotes: possibly a number, a boolean or null.
    Plain,
    /// Quoted or as a block: a string.
    Text,
}

/// How a collection is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// By indentation.
    Block,
    /// In brackets.
    Flow,
}

impl Node {
    /// Parses the only document of a text; nothing if the text has no document, several, or one that is too large.
    pub(super) fn read(text: &str) -> Option<Self> {
        let events = Parser::new_from_str(text)
            .collect::<Result<Vec<_>, _>>()
            .ok()?;
        let mut reader = Reader {
            events: events.into_iter(),
            text,
            left: MAX_NODES,
        };
        let documents =
            |event: &Event<'_>| matches!(event, Event::StreamStart | Event::DocumentStart(..));
        let (mut event, mut span) = reader.events.next()?;
        while documents(&event) {
            (event, span) = reader.events.next()?;
        }
        let node = reader.node(event, span, 0)?;
        // Only the end events may follow.
        let rest = reader
            .events
            .all(|(event, _)| matches!(event, Event::DocumentEnd | Event::StreamEnd));
        rest.then_some(node)
    }

    /// Whether two values have the same meaning, whatever their position and style.
    pub(super) fn means(&self, other: &Self) -> bool {
        if !self.is_marked_as(other) {
            return false;
        }
        match (&self.kind, &other.kind) {
            (Kind::Scalar { text: a, form: f }, Kind::Scalar { text: b, form: g }) => {
                a == b && f == g
            }
            (Kind::Alias(a), Kind::Alias(b)) => a == b,
            (Kind::Sequence { items: a, .. }, Kind::Sequence { items: b, .. }) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.means(b))
            }
            (Kind::Mapping { pairs: a, .. }, Kind::Mapping { pairs: b, .. }) => {
                a.len() == b.len()
                    && a.iter()
                        .zip(b)
                        .all(|(a, b)| a.0.means(&b.0) && a.1.means(&b.1))
            }
            _ => false,
        }
    }

    /// Whether both have the same anchor and tag.
    pub(super) fn is_marked_as(&self, other: &Self) -> bool {
        self.anchor == other.anchor && self.tag == other.tag
    }

    /// Whether other parts of the document can refer to it.
    pub(super) fn is_anchored(&self) -> bool {
        self.anchor != 0
    }

    /// The pairs of a mapping; empty for anything else.
    pub(super) fn pairs(&self) -> &[(Self, Self)] {
        match &self.kind {
            Kind::Mapping { pairs, .. } => pairs,
            _ => &[],
        }
    }

    /// The items of a sequence; empty for anything else.
    pub(super) fn items(&self) -> &[Self] {
        match &self.kind {
            Kind::Sequence { items, .. } => items,
            _ => &[],
        }
    }

    /// The key and the value of this name in a mapping.
    pub(super) fn pair(&self, name: &str) -> Option<&(Self, Self)> {
        self.pairs().iter().find(|(key, _)| key.is_text(name))
    }

    /// Whether it is the scalar with this text.
    pub(super) fn is_text(&self, requested: &str) -> bool {
        matches!(&self.kind, Kind::Scalar { text, .. } if text == requested)
    }

    /// Whether it is null: omitted, `~` or `null`.
    pub(super) fn is_null(&self) -> bool {
        let nothing = |text: &str| matches!(text, "" | "~" | "null" | "Null" | "NULL");
        self.tag.is_none()
            && self.anchor == 0
            && matches!(&self.kind, Kind::Scalar { text, form: Form::Plain } if nothing(text))
    }
}

struct Reader<'a, I> {
    events: I,
    text: &'a str,
    left: usize,
}

impl<'a, I: Iterator<Item = (Event<'a>, Span)>> Reader<'a, I> {
    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Option<Node> {
        self.left = self.left.checked_sub(1)?;
        if depth > MAX_DEPTH {
            return None;
        }
        let (start, mut end) = (self.offset(span.start)?, self.offset(span.end)?);
        let (kind, anchor, tag) = match event {
            Event::Alias(anchor) => (Kind::Alias(anchor), 0, None),
            Event::Scalar(text, style, anchor, tag) => {
                if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
                    // The end of a block scalar is known only from the line after it.
                    end = start + self.text.get(start..end)?.trim_end().len();
                }
                let form = if style == ScalarStyle::Plain {
                    Form::Plain
                } else {
                    Form::Text
                };
                (
                    Kind::Scalar {
                        text: text.into_owned(),
                        form,
                    },
                    anchor,
                    tag,
                )
            }
            Event::SequenceStart(style, anchor, tag) => {
                let mut items = Vec::new();
                let last = loop {
                    match self.events.next()? {
                        (Event::SequenceEnd, span) => break span,
                        (event, span) => items.push(self.node(event, span, depth + 1)?),
                    }
                };
                end = self.end_of(style, last, end, items.iter())?;
                (
                    Kind::Sequence {
                        style: Style::from_style(style),
                        items,
                    },
                    anchor,
                    tag,
                )
            }
            Event::MappingStart(style, anchor, tag) => {
                let mut pairs = Vec::new();
                let last = loop {
                    match self.events.next()? {
                        (Event::MappingEnd, span) => break span,
                        (event, span) => {
                            let key = self.node(event, span, depth + 1)?;
                            let (event, span) = self.events.next()?;
                            pairs.push((key, self.node(event, span, depth + 1)?));
                        }
                    }
                };
                end = self.end_of(
                    style,
                    last,
                    end,
                    pairs.iter().flat_map(|(key, value)| [key, value]),
                )?;
                (
                    Kind::Mapping {
                        style: Style::from_style(style),
                        pairs,
                    },
                    anchor,
                    tag,
                )
            }
            _ => return None,
        };
        let tag = tag.as_deref().map(Tag::original);
        Some(Node {
            kind,
            anchor,
            tag,
            start,
            end,
            column: span.start.col(),
        })
    }

    /// The end of a collection: after its bracket, or after its last visible part.
    fn end_of<'n>(
        &self,
        style: StructureStyle,
        last: Span,
        begun: usize,
        parts: impl Iterator<Item = &'n Node>,
    ) -> Option<usize> {
        match style {
            StructureStyle::Flow => self.offset(last.end),
            // An omitted value has a position without length; the position may be after comments and
            // empty lines.
            StructureStyle::Block => Some(
                parts
                    .filter(|part| part.end > part.start)
                    .map(|part| part.end)
                    .fold(begun, usize::max),
            ),
        }
    }

    fn offset(&self, marker: Marker) -> Option<usize> {
        let offset = marker.byte_offset()?;
        self.text.is_char_boundary(offset).then_some(offset)
    }
}

impl Style {
    fn from_style(style: StructureStyle) -> Self {
        match style {
            StructureStyle::Block => Self::Block,
            StructureStyle::Flow => Self::Flow,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source_text<'t>(text: &'t str, node: &Node) -> &'t str {
        &text[node.start..node.end]
    }

    #[test]
    fn node_has_column_and_source_range() {
        let text = "\u{feff}# ä\nname: 'ü'\r\nspecs: # here\n  - id: a\n    note: |\n      x\n\n  - {id: b}  # c\n\nlast:\n";
        let root = Node::read(text).unwrap();
        assert_eq!(source_text(text, &root.pair("name").unwrap().1), "'ü'");
        let specs = &root.pair("specs").unwrap().1;
        assert_eq!((specs.items().len(), specs.column), (2, 2));
        assert!(
            text[specs.start..].starts_with("- id: a"),
            "{}",
            source_text(text, specs)
        );
        assert!(source_text(text, &specs.items()[0]).ends_with('x'));
        assert_eq!(source_text(text, &specs.items()[1]), "{id: b}");
        assert!(root.pair("last").unwrap().1.is_null());
    }

    #[test]
    fn one_document_of_limited_size_is_read() {
        assert!(Node::read("").is_none() && Node::read("a: [").is_none());
        assert!(Node::read("a: 1\n---\nb: 2\n").is_none());
        assert!(Node::read("---\na: 1\n...\n").is_some());
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(Node::read(&deep(MAX_DEPTH)).is_some());
        assert!(Node::read(&deep(MAX_DEPTH + 2)).is_none());
        assert!(Node::read(&"- a\n".repeat(MAX_NODES)).is_none());
    }

    #[test]
    fn documents_are_compared_by_meaning_not_layout() {
        let same = |a, b| Node::read(a).unwrap().means(&Node::read(b).unwrap());
        assert!(same("a: [1, 'x']\n", "# c\na:\n- 1\n- \"x\"\n"));
        assert!(!same("a: 1\n", "a: '1'\n"));
        assert!(!same("a: 1\nb: 2\n", "b: 2\na: 1\n"));
        assert!(!same("a: &x 1\nb: *x\n", "a: 1\nb: 1\n"));
        assert!(!same("a: !t 1\n", "a: 1\n"));
    }
}
