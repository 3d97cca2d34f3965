//! What a source text consists of: definitions, imports, prose and the rest, in order and by container.
//!
//! An [`Outline`] looks into containers (modules, implementations, classes) and nowhere else: what stands inside a
//! function is its own business. Each entry knows what belongs to it above its first word: attributes, decorators and
//! the comments that touch it.

use std::ops::Range;

use tree_sitter::Node;

use super::{Grammar, Parsed, go, python, rust, script};

/// One entry of an outline.
#[derive(Debug)]
pub(crate) struct Entry<'t> {
    /// What it is.
    pub(crate) kind: Kind,
    /// The entry of the container that it stands in.
    pub(crate) parent: Option<usize>,
    /// What belongs to it and stands above it, from top to bottom.
    pub(crate) lead: Vec<Piece>,
    /// Its own text, without `lead`.
    pub(crate) core: Range<usize>,
    /// What of the container's text it takes up: more than `core` where it stands in a group or in a branch.
    pub(crate) outer: Range<usize>,
    /// The node that says what it is.
    pub(crate) node: Node<'t>,
    /// For a container, the node that holds its entries.
    pub(crate) body: Option<Node<'t>>,
    /// For one of several declarations behind one keyword.
    pub(crate) spec: Option<DeclarationSpec>,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something with a name that can be replaced.
    Definition(Definition),
    /// An import.
    Import,
    /// A docstring, a package clause, the line that names an interpreter. A comment that belongs to nothing is not an entry.
    Prose,
    /// Anything else: statements that run, macros, exports.
    Other,
}

/// By what a definition is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    /// The word for it in messages.
    pub(crate) word: &'static str,
    /// The names in one space exclude each other: a `struct` may turn into an `enum`, both stand in `types`.
    pub(crate) space: &'static str,
    /// Its names; more than one for `a, b = 1, 2`.
    pub(crate) names: Vec<String>,
    /// The shorter name by which the container may be called, where the full one is not its only one.
    pub(crate) short: Option<String>,
}

impl Definition {
    pub(crate) fn new(word: &'static str, space: &'static str, name: impl Into<String>) -> Self {
        Self {
            word,
            space,
            names: vec![name.into()],
            short: None,
        }
    }
}

/// A piece of what stands above a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) class: LeadKind,
    pub(crate) span: Range<usize>,
}

/// What a piece above a definition is: each class is replaced or kept on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeadKind {
    /// Documentation.
    Doc,
    /// A plain comment in a language that has another form for documentation.
    Note,
    /// An attribute or a decorator.
    Attribute,
}

/// How one of several declarations stands behind its keyword.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeclarationSpec {
    pub(crate) keyword: &'static str,
    /// The declaration without the keyword.
    pub(crate) span: Range<usize>,
    pub(crate) place: SpecPlace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpecPlace {
    /// Alone behind the keyword.
    Alone,
    /// Among others in parentheses.
    Grouped,
}

/// What a node is, as a language sees it.
pub(super) enum NodeClass<'t> {
    /// A definition; `lead` are children of it that belong above its core.
    Definition {
        definition: Definition,
        body: Option<Node<'t>>,
        lead: Vec<Node<'t>>,
    },
    /// Several declarations behind one keyword.
    Specs {
        keyword: &'static str,
        specs: Vec<(Node<'t>, Vec<String>)>,
        place: SpecPlace,
    },
    /// A statement whose branches may hold definitions of the container that it stands in.
    Branches(Vec<Node<'t>>),
    /// An import.
    Import,
    /// A comment or an attribute that may belong to what follows.
    Lead(LeadKind),
    /// Prose.
    Prose,
    /// A separator that belongs to the entry before.
    Ends,
    /// Nothing to look at.
    Nothing,
    /// A statement.
    Other,
}

/// Whether definitions in branches (`if` at the top level of Python) are entries.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Branches {
    /// They are entries of the container that the branch stands in.
    Open,
    /// The statement is one entry.
    Closed,
}

/// The entries of a text.
pub(crate) struct Outline<'t> {
    pub(crate) grammar: Grammar,
    pub(crate) text: &'t str,
    pub(crate) entries: Vec<Entry<'t>>,
    /// Where each line begins.
    lines: Vec<usize>,
}

struct Frame<'t> {
    parent: Option<usize>,
    /// The outermost statement with branches that the frame stands in.
    branch: Option<Range<usize>>,
    children: std::vec::IntoIter<Node<'t>>,
    lead: Vec<Piece>,
    /// The entry before, in this frame.
    last: Option<usize>,
}

impl<'t> Outline<'t> {
    /// The outline of a parsed text.
    pub(crate) fn new(parsed: &'t Parsed<'t>, branches: Branches) -> Self {
        let ends = parsed.text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        let mut outline = Self {
            grammar: parsed.grammar,
            text: parsed.text,
            entries: Vec::new(),
            lines,
        };
        let mut frames = vec![outline.frame(None, None, parsed.root())];
        while let Some(frame) = frames.last_mut() {
            let Some(node) = frame.children.next() else {
                frames.pop();
                continue;
            };
            let inner = outline.step(frame, node, branches);
            frames.extend(inner);
        }
        outline
    }

    /// Where the line of a byte begins.
    pub(crate) fn line_start(&self, at: usize) -> usize {
        let next = self.lines.partition_point(|start| *start <= at);
        self.lines.get(next.saturating_sub(1)).copied().unwrap_or(0)
    }

    /// The white space that the line of a byte begins with, up to the byte.
    pub(crate) fn indent(&self, at: usize) -> &'t str {
        let line = self.text.get(self.line_start(at)..at).unwrap_or_default();
        &line[..line.len() - line.trim_start().len()]
    }

    fn frame(
        &self,
        parent: Option<usize>,
        branch: Option<Range<usize>>,
        node: Node<'t>,
    ) -> Frame<'t> {
        let children: Vec<Node<'t>> = node.children(&mut node.walk()).collect();
        Frame {
            parent,
            branch,
            children: children.into_iter(),
            lead: Vec::new(),
            last: None,
        }
    }

    fn classify(&self, node: Node<'t>) -> NodeClass<'t> {
        match self.grammar {
            Grammar::Rust => rust::classify(node, self.text),
            Grammar::Python => python::classify(node, self.text),
            Grammar::JavaScript | Grammar::TypeScript | Grammar::Tsx => {
                script::classify(node, self.text)
            }
            Grammar::Go => go::classify(node, self.text),
            Grammar::C => NodeClass::Other,
        }
    }

    /// Takes one node of a frame; gives the frames that it opens, the first one last.
    fn step(
        &mut self,
        frame: &mut Frame<'t>,
        node: Node<'t>,
        branches: Branches,
    ) -> Vec<Frame<'t>> {
        let span = self.trimmed(node.byte_range());
        match self.classify(node) {
            NodeClass::Nothing => {}
            NodeClass::Ends => {
                if let Some(last) = frame.last.and_then(|at| self.entries.get_mut(at))
                    && last.spec.is_none()
                {
                    last.core.end = span.end;
                    last.outer.end = last.outer.end.max(span.end);
                }
            }
            NodeClass::Lead(class) => self.lead(frame, class, span),
            NodeClass::Prose => self.add(frame, Kind::Prose, node, span),
            NodeClass::Import => self.add(frame, Kind::Import, node, span),
            NodeClass::Other => self.add(frame, Kind::Other, node, span),
            NodeClass::Branches(bodies) => {
                self.add(frame, Kind::Other, node, span.clone());
                if branches == Branches::Open {
                    let branch = frame.branch.clone().unwrap_or(span);
                    let open =
                        |body: Node<'t>| self.frame(frame.parent, Some(branch.clone()), body);
                    return bodies.into_iter().rev().map(open).collect();
                }
            }
            NodeClass::Definition {
                definition,
                body,
                lead,
            } => {
                let mut core = span.clone();
                for node in lead {
                    let span = self.trimmed(node.byte_range());
                    core.start = core.start.max(span.end + gap(self.text, span.end));
                    frame.lead.push(Piece {
                        class: LeadKind::Attribute,
                        span,
                    });
                }
                self.add(frame, Kind::Definition(definition), node, core);
                if let (Some(body), Some(at)) = (body, frame.last) {
                    if let Some(entry) = self.entries.get_mut(at) {
                        entry.body = Some(body);
                    }
                    return vec![self.frame(Some(at), None, body)];
                }
            }
            NodeClass::Specs {
                keyword,
                specs,
                place,
            } => {
                for (node, names) in specs {
                    let spec = self.trimmed(node.byte_range());
                    let core = if place == SpecPlace::Grouped {
                        spec.clone()
                    } else {
                        span.clone()
                    };
                    let definition = Definition {
                        names,
                        ..Definition::new(keyword, "names", "")
                    };
                    self.add(frame, Kind::Definition(definition), node, core);
                    if let Some(entry) = frame.last.and_then(|at| self.entries.get_mut(at)) {
                        entry.outer = span.clone();
                        entry.spec = Some(DeclarationSpec {
                            keyword,
                            span: spec,
                            place,
                        });
                    }
                }
            }
        }
        Vec::new()
    }

    fn lead(&self, frame: &mut Frame<'t>, class: LeadKind, span: Range<usize>) {
        let before = self
            .text
            .get(self.line_start(span.start)..span.start)
            .unwrap_or_default();
        let starts_line = before.trim().is_empty();
        if class != LeadKind::Attribute && !starts_line {
            // It stands behind something in its line and belongs to that.
            return;
        }
        let touches = frame
            .lead
            .last()
            .is_none_or(|last| touches(self.text, last.span.end, span.start));
        if !touches {
            frame.lead.clear();
        }
        frame.lead.push(Piece { class, span });
    }

    fn add(&mut self, frame: &mut Frame<'t>, kind: Kind, node: Node<'t>, core: Range<usize>) {
        let lead = std::mem::take(&mut frame.lead);
        let is_attached = match (lead.last(), &kind) {
            (Some(last), Kind::Definition(_) | Kind::Import) => {
                last.class == LeadKind::Attribute || touches(self.text, last.span.end, core.start)
            }
            _ => false,
        };
        let lead = if is_attached { lead } else { Vec::new() };
        let outer = frame.branch.clone().unwrap_or(core.clone());
        frame.last = Some(self.entries.len());
        let parent = frame.parent;
        self.entries.push(Entry {
            kind,
            parent,
            lead,
            core,
            outer,
            node,
            body: None,
            spec: None,
        });
    }

    /// A span without the white space at its end: some grammars count the line end of a comment in.
    fn trimmed(&self, span: Range<usize>) -> Range<usize> {
        let text = self.text.get(span.clone()).unwrap_or_default();
        span.start..span.start + text.trim_end().len()
    }
}

impl Entry<'_> {
    /// Where it begins, with what stands above it.
    pub(crate) fn start(&self) -> usize {
        self.lead
            .first()
            .map_or(self.core.start, |piece| piece.span.start)
    }

    pub(crate) fn definition(&self) -> Option<&Definition> {
        match &self.kind {
            Kind::Definition(definition) => Some(definition),
            Kind::Import | Kind::Prose | Kind::Other => None,
        }
    }
}

/// How much white space follows.
fn gap(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.len() - rest.trim_start().len()
}

/// Whether nothing but one line end stands between two places.
fn touches(text: &str, end: usize, start: usize) -> bool {
    let between = text.get(end..start).unwrap_or("?");
    between.trim().is_empty() && between.matches('\n').count() <= 1
}
