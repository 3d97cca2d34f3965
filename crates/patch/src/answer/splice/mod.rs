//! Puts definitions into a file by its syntax tree.
//!
//! The file and the answer are read as outlines; each definition of the answer is looked for in the file by what it
//! is, its name and its container ([`find`]), and takes the place of the one that is there or is added beside its
//! neighbours ([`write`]). Imports that are missing are added ([`imports`]). All of it is a list of edits of the file's
//! text, so what no edit covers stays byte for byte as it was. A definition whose text is the same makes no edit.

mod find;
mod imports;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crucible_model::RepoPath;

use super::AnswerError;
use super::apply::{is_elision, refuse_elided};
use crate::syntax::{
    Branches, Entry, Grammar, Kind, MAX_SYNTAX_BYTES, Outline, ParseFailure, Parsed,
    collapse_whitespace, line_of,
};
use find::Index;

/// A file that definitions can be put into.
pub(super) struct Target<'t> {
    parsed: Parsed<'t>,
}

/// What a splice gave.
pub(super) struct SpliceResult {
    /// The file's new text.
    pub(super) text: String,
    /// How many definitions of the answer were found in the file.
    pub(super) found: usize,
}

/// How much of the file the answer covers.
#[derive(Clone, Copy)]
pub(super) enum Coverage<'a> {
    /// Of what it holds; everything else stays.
    OfParts,
    /// Of all of it: definitions with these names, that it does not hold, are taken away.
    OfAll { gone: &'a BTreeSet<String> },
}

impl<'t> Target<'t> {
    /// The file, where its language has a grammar and it follows it. `text` has no byte order mark.
    pub(super) fn parse(path: &RepoPath, text: &'t str) -> Option<Self> {
        let grammar = Grammar::from_path(path)?;
        Parsed::parse(grammar, text)
            .ok()
            .map(|parsed| Self { parsed })
    }

    /// Whether definitions and imports are at least half of the file's own level.
    pub(super) fn is_mostly_definitions(&self) -> bool {
        let file = Outline::new(&self.parsed, Branches::Open);
        let (mut definitions, mut others) = (0, 0);
        for entry in file.entries.iter().filter(|entry| entry.parent.is_none()) {
            match entry.kind {
                Kind::Definition(_) | Kind::Import => definitions += entry.core.len(),
                Kind::Other => others += entry.core.len(),
                Kind::Prose => {}
            }
        }
        definitions >= others
    }

    /// Returns the file's text without one definition. `name` may have its container in front.
    pub(super) fn text_without(&self, path: &RepoPath, name: &str) -> Result<String, AnswerError> {
        let file = Outline::new(&self.parsed, Branches::Open);
        let at = find::find_unique(path, &file, name)?;
        let entry = &file.entries[at];
        if entry.outer != entry.core || entry.definition().is_some_and(|it| it.names.len() > 1) {
            return Err(AnswerError::PartOfDeclaration {
                path: path.clone(),
                names: name.to_owned(),
            });
        }
        let mut text = file.text.to_owned();
        text.replace_range(write::whole_lines(file.text, entry), "");
        match Parsed::parse(self.parsed.grammar, &text) {
            Ok(_) => Ok(text),
            Err(ParseFailure::Error { line }) => Err(AnswerError::BrokenSyntax {
                path: path.clone(),
                line,
                place: "the file without the deleted definition",
            }),
            Err(ParseFailure::TooMuch) => Err(too_much(path)),
        }
    }

    /// Puts the definitions of `answer`, which has LF line ends, into the file.
    pub(super) fn splice(
        &self,
        path: &RepoPath,
        answer: &str,
        speaks: Coverage<'_>,
    ) -> Result<SpliceResult, AnswerError> {
        let grammar = self.parsed.grammar;
        let around: String;
        let (parsed, form) = match Parsed::parse(grammar, answer) {
            Ok(parsed) => (parsed, Form::File),
            Err(unparsed) => {
                around = in_a_class(grammar, answer).ok_or_else(|| broken(path, unparsed))?;
                let members =
                    Parsed::parse(grammar, &around).map_err(|_| broken(path, unparsed))?;
                (members, Form::Members)
            }
        };
        let file = Outline::new(&self.parsed, Branches::Open);
        let mut outline = Outline::new(&parsed, Branches::Closed);
        outline
            .entries
            .iter_mut()
            .for_each(|entry| without_elisions(parsed.text, entry));
        let mut splicer = Splicer::new(path, &file, &outline, form, speaks);
        splicer.take()?;
        if let Coverage::OfAll { gone } = speaks {
            splicer.remove(gone);
        }
        splicer.place_new()?;
        imports::add(&mut splicer)?;
        let found = splicer.found.iter().filter(|found| **found).count();
        let text = splicer.text()?;
        match Parsed::parse(grammar, &text) {
            Ok(_) => Ok(SpliceResult { text, found }),
            Err(ParseFailure::Error { line }) => Err(AnswerError::BrokenSyntax {
                path: path.clone(),
                line,
                place: "the file with the answer's definitions in it",
            }),
            Err(ParseFailure::TooMuch) => Err(too_much(path)),
        }
    }
}

/// How the answer is written.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// As a file would be.
    File,
    /// As members without their class; one was put around them.
    Members,
}

/// JavaScript's methods need a class around them.
fn in_a_class(grammar: Grammar, answer: &str) -> Option<String> {
    let script = matches!(
        grammar,
        Grammar::JavaScript | Grammar::TypeScript | Grammar::Tsx
    );
    // The line of the class is put before the first one, so that lines keep their numbers.
    script.then(|| format!("class Members {{ {answer}\n}}"))
}

fn broken(path: &RepoPath, unparsed: ParseFailure) -> AnswerError {
    match unparsed {
        ParseFailure::Error { line } => AnswerError::BrokenSyntax {
            path: path.clone(),
            line,
            place: "the answer's block",
        },
        ParseFailure::TooMuch => too_much(path),
    }
}

fn too_much(path: &RepoPath) -> AnswerError {
    AnswerError::TooMuchSyntax {
        path: path.clone(),
        limit: MAX_SYNTAX_BYTES as u64,
    }
}

/// A comment for code left out belongs to nothing, even where it touches a definition.
fn without_elisions(text: &str, entry: &mut Entry<'_>) {
    let is_elided =
        |span: &Range<usize>| is_elision(text.get(span.clone()).unwrap_or_default().trim());
    if let Some(last) = entry.lead.iter().rposition(|piece| is_elided(&piece.span)) {
        entry.lead.drain(..=last);
    }
}

/// One change of the file's text.
struct TextEdit {
    span: Range<usize>,
    text: String,
}

/// What became of an entry of the answer.
#[derive(Clone)]
enum EntryOutcome {
    /// Its entries go into these containers of the file.
    Open(Vec<usize>),
    /// It took the place of this one.
    Replaces(usize),
    /// It is added to this container.
    New(Option<usize>),
    /// Nothing is left to do about it.
    Done,
}

struct Splicer<'a, 't> {
    path: &'a RepoPath,
    file: &'a Outline<'t>,
    answer: &'a Outline<'t>,
    form: Form,
    speaks: Coverage<'a>,
    index: Index<'a>,
    fates: Vec<EntryOutcome>,
    /// Which entries of the file the answer holds.
    found: Vec<bool>,
    /// Which entries of the file go away.
    gone: Vec<bool>,
    edits: Vec<TextEdit>,
    line_end: &'static str,
}

impl<'a, 't> Splicer<'a, 't> {
    fn new(
        path: &'a RepoPath,
        file: &'a Outline<'t>,
        answer: &'a Outline<'t>,
        form: Form,
        speaks: Coverage<'a>,
    ) -> Self {
        let crlf = file.text.matches("\r\n").count();
        let all = file.text.matches('\n').count();
        Self {
            path,
            file,
            answer,
            form,
            speaks,
            index: Index::from_outline(file),
            fates: Vec::with_capacity(answer.entries.len()),
            found: vec![false; file.entries.len()],
            gone: vec![false; file.entries.len()],
            edits: Vec::new(),
            line_end: if crlf * 2 > all { "\r\n" } else { "\n" },
        }
    }

    /// Decides about each entry of the answer, and replaces what is there.
    fn take(&mut self) -> Result<(), AnswerError> {
        // By the container of the file, so that a class may be written more than once.
        let mut known: BTreeMap<(Option<usize>, &str, &str), usize> = BTreeMap::new();
        let statements = self.statements();
        for (at, entry) in self.answer.entries.iter().enumerate() {
            let containers = match entry.parent.map(|parent| &self.fates[parent]) {
                None => vec![None],
                Some(EntryOutcome::Open(containers)) if containers.is_empty() => vec![None],
                Some(EntryOutcome::Open(containers)) => {
                    containers.iter().copied().map(Some).collect()
                }
                Some(_) => {
                    self.fates.push(EntryOutcome::Done);
                    continue;
                }
            };
            if self.form == Form::Members && at == 0 {
                self.fates.push(EntryOutcome::Open(Vec::new()));
                continue;
            }
            let fate = match &entry.kind {
                Kind::Prose | Kind::Import => EntryOutcome::Done,
                Kind::Other
                    if statements.contains(&collapse_whitespace(core_text(self.answer, entry))) =>
                {
                    EntryOutcome::Done
                }
                Kind::Other => {
                    let text = core_text(self.answer, entry)
                        .lines()
                        .next()
                        .unwrap_or_default();
                    return Err(AnswerError::NotADefinition {
                        path: self.path.clone(),
                        line: line_of(self.answer.text, entry.core.start),
                        text: text.chars().take(80).collect(),
                    });
                }
                Kind::Definition(definition) => {
                    let container = containers.first().copied().flatten();
                    let mut again = None;
                    for name in &definition.names {
                        let key = (container, definition.space, name.as_str());
                        if let Some(first) = known.insert(key, at) {
                            again = Some((first, name));
                        }
                    }
                    match again {
                        None => self.found_or_new(at, &containers)?,
                        Some((first, name)) => match self.opened_again(first, at) {
                            Some(fate) => fate,
                            None => {
                                let first = &self.answer.entries[first];
                                let lines = [first, entry]
                                    .map(|entry| line_of(self.answer.text, entry.core.start));
                                return Err(self.same_name(name, lines, "the answer"));
                            }
                        },
                    }
                }
            };
            self.fates.push(fate);
        }
        let has =
            |kind: fn(&Kind) -> bool| self.answer.entries.iter().any(|entry| kind(&entry.kind));
        let members = usize::from(self.form == Form::Members);
        let defines = self
            .answer
            .entries
            .iter()
            .skip(members)
            .any(|entry| entry.definition().is_some());
        if !defines && !has(|kind| *kind == Kind::Import) {
            return Err(AnswerError::NoDefinition {
                path: self.path.clone(),
            });
        }
        Ok(())
    }

    /// What becomes of a container that the answer has written before: its entries go to the same place. `None` where it is no
    /// container of the file, or where its first line says something else.
    fn opened_again(&self, first: usize, second_count: usize) -> Option<EntryOutcome> {
        let fate = self.fates.get(first)?;
        let is_open = matches!(fate, EntryOutcome::Open(there) if !there.is_empty());
        let (first, second_entry) = (
            &self.answer.entries[first],
            &self.answer.entries[second_count],
        );
        let is_same = second_entry.body.is_some()
            && second_entry.lead.is_empty()
            && first.definition() == second_entry.definition()
            && write::is_same_head(self.answer, first, second_entry);
        (is_open && is_same).then(|| fate.clone())
    }

    /// The statements of the file, which an answer may repeat.
    fn statements(&self) -> BTreeSet<String> {
        let others = self
            .file
            .entries
            .iter()
            .filter(|entry| entry.kind == Kind::Other);
        others
            .map(|entry| collapse_whitespace(core_text(self.file, entry)))
            .collect()
    }

    fn found_or_new(
        &mut self,
        at: usize,
        containers: &[Option<usize>],
    ) -> Result<EntryOutcome, AnswerError> {
        let entry = &self.answer.entries[at];
        let positions = self.candidates(entry, containers);
        let opens = |at: &usize| self.file.entries[*at].body.is_some();
        let is_open = entry.body.is_some() && !positions.is_empty() && positions.iter().all(opens);
        if is_open && find::may_repeat(entry) {
            positions
                .iter()
                .for_each(|current_count| self.found[*current_count] = true);
            if let [one] = positions[..] {
                self.replace_head(one, at);
            }
            return Ok(EntryOutcome::Open(positions));
        }
        match positions[..] {
            [] => match self
                .missing_definition(entry)
                .or_else(|| self.ambiguous_container(containers))
            {
                Some(error) => Err(error),
                None => Ok(EntryOutcome::New(containers.first().copied().flatten())),
            },
            [one] => {
                self.found[one] = true;
                if is_open {
                    self.replace_head(one, at);
                    return Ok(EntryOutcome::Open(positions));
                }
                self.replace(one, at)?;
                Ok(EntryOutcome::Replaces(one))
            }
            [first, second, ..] => {
                let name = entry
                    .definition()
                    .map(|definition| definition.names.join(", "))
                    .unwrap_or_default();
                let lines = [first, second]
                    .map(|there| line_of(self.file.text, self.file.entries[there].core.start));
                Err(self.same_name(&name, lines, "the file"))
            }
        }
    }

    fn same_name(&self, name: &str, [first, second]: [u64; 2], place: &'static str) -> AnswerError {
        AnswerError::SameName {
            path: self.path.clone(),
            name: name.to_owned(),
            first,
            second,
            place,
        }
    }

    /// Takes away what the answer does not hold and what may go.
    fn remove(&mut self, names: &BTreeSet<String>) {
        for (at, entry) in self.file.entries.iter().enumerate() {
            let parent_stays = entry.parent.is_none_or(|parent| self.found[parent]);
            let may_go = entry
                .definition()
                .is_some_and(|definition| definition.names.iter().all(|name| names.contains(name)));
            if self.found[at] || !parent_stays || !may_go || entry.outer != entry.core {
                continue;
            }
            self.gone[at] = true;
            let span = write::whole_lines(self.file.text, entry);
            self.edits.push(TextEdit {
                span,
                text: String::new(),
            });
        }
    }

    /// The file's text with all edits in it.
    fn text(mut self) -> Result<String, AnswerError> {
        // Stable: what is put in at one place stays in the answer's order.
        self.edits
            .sort_by_key(|edit| (edit.span.start, edit.span.end));
        let mut out = String::with_capacity(self.file.text.len());
        let mut at = 0;
        for edit in &self.edits {
            let between = self.file.text.get(at..edit.span.start);
            let between = between.ok_or_else(|| AnswerError::Tangled {
                path: self.path.clone(),
            })?;
            out.push_str(between);
            out.push_str(&edit.text);
            at = edit.span.end;
        }
        out.push_str(self.file.text.get(at..).unwrap_or_default());
        Ok(out)
    }

    /// Refuses a text of the answer in which code is left out.
    fn refuse_elided(&self, text: &str) -> Result<(), AnswerError> {
        refuse_elided(self.path, text, self.file.text.as_bytes())
    }
}

fn core_text<'t>(outline: &Outline<'t>, entry: &Entry<'_>) -> &'t str {
    outline.text.get(entry.core.clone()).unwrap_or_default()
}
