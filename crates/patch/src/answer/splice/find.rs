//! Where a definition of the answer stands in the file.
//!
//! The container that the answer names is its word: only in there is looked. An answer that names none means the
//! file's own level; what is not there is looked for in every container, and a method, which its own text shows to be
//! one, only in containers. Test modules are left alone unless the answer names them.

use std::collections::HashMap;

use crucible_model::RepoPath;

use super::{AnswerError, Coverage, Form, Splicer};
use crate::syntax::{Entry, Grammar, Outline, is_method, line_of, takes_self};

/// The definitions of a file by name.
pub(super) struct Index<'a> {
    inside: HashMap<(Option<usize>, &'static str, &'a str), Vec<usize>>,
    anywhere: HashMap<(&'static str, &'a str), Vec<usize>>,
    shortened: HashMap<(Option<usize>, &'a str), Vec<usize>>,
}

impl<'a> Index<'a> {
    pub(super) fn from_outline(file: &'a Outline<'_>) -> Self {
        let mut index = Self {
            inside: HashMap::new(),
            anywhere: HashMap::new(),
            shortened: HashMap::new(),
        };
        for (at, entry) in file.entries.iter().enumerate() {
            let Some(definition) = entry.definition() else {
                continue;
            };
            if let Some(short) = &definition.short {
                index
                    .shortened
                    .entry((entry.parent, short))
                    .or_default()
                    .push(at);
            }
            for name in &definition.names {
                index
                    .inside
                    .entry((entry.parent, definition.space, name))
                    .or_default()
                    .push(at);
                index
                    .anywhere
                    .entry((definition.space, name))
                    .or_default()
                    .push(at);
            }
        }
        index
    }
}

/// Whether a container may stand in a file more than once: all of them are one.
pub(super) fn may_repeat(entry: &Entry<'_>) -> bool {
    entry
        .definition()
        .is_some_and(|definition| matches!(definition.space, "impls" | "externs"))
}

impl Splicer<'_, '_> {
    /// The definitions of the file that `entry` of the answer can mean, each once.
    pub(super) fn candidates(&self, entry: &Entry<'_>, containers: &[Option<usize>]) -> Vec<usize> {
        let Some(definition) = entry.definition() else {
            return Vec::new();
        };
        let method = self.is_method(self.answer, entry);
        let mut found = Vec::new();
        for name in &definition.names {
            let inside = |container: &Option<usize>| {
                self.index
                    .inside
                    .get(&(*container, definition.space, name.as_str()))
                    .cloned()
            };
            let mut named: Vec<usize> = containers.iter().filter_map(inside).flatten().collect();
            let no_container = containers == [None] && matches!(self.speaks, Coverage::OfParts);
            if no_container && method {
                let within = self.elsewhere(definition.space, name, method);
                named = if within.is_empty() { named } else { within };
            } else if no_container && named.is_empty() {
                named = self.elsewhere(definition.space, name, method);
            }
            found.extend(named);
        }
        if let (true, Some(short)) = (found.is_empty(), &definition.short) {
            found = self.shortened(short, &definition.names, containers);
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The definitions of this name in containers.
    fn elsewhere(&self, space: &'static str, name: &str, method: bool) -> Vec<usize> {
        let all = self
            .index
            .anywhere
            .get(&(space, name))
            .map(Vec::as_slice)
            .unwrap_or_default();
        let means = |at: &usize| {
            let entry = &self.file.entries[*at];
            let is_value = entry
                .definition()
                .is_some_and(|definition| definition.word == "variable");
            entry.parent.is_some()
                && !is_value
                && !self.is_in_tests(entry)
                && self.is_method(self.file, entry) == method
        };
        all.iter().copied().filter(means).collect()
    }

    /// `impl Shape` may mean `impl<T> Shape<T>`; an answer that writes parameters means exactly these.
    fn shortened(&self, short: &str, names: &[String], containers: &[Option<usize>]) -> Vec<usize> {
        if names != [short] {
            return Vec::new();
        }
        let inside =
            |container: &Option<usize>| self.index.shortened.get(&(*container, short)).cloned();
        containers.iter().filter_map(inside).flatten().collect()
    }

    fn is_in_tests(&self, entry: &Entry<'_>) -> bool {
        let mut parent = entry.parent;
        while let Some(at) = parent {
            let container = &self.file.entries[at];
            if is_test_module(self.file, container) {
                return true;
            }
            parent = container.parent;
        }
        false
    }

    /// Whether an entry is written as a method.
    pub(super) fn is_method(&self, outline: &Outline<'_>, entry: &Entry<'_>) -> bool {
        match outline.grammar {
            Grammar::Rust => takes_self(entry.node),
            Grammar::Python => is_method(entry.node, outline.text),
            Grammar::JavaScript | Grammar::TypeScript | Grammar::Tsx => entry
                .definition()
                .is_some_and(|definition| definition.space == "members"),
            Grammar::Go | Grammar::C => false,
        }
    }

    /// Why a definition cannot be added to containers that the answer calls by one short name: they are different ones.
    pub(super) fn ambiguous_container(&self, containers: &[Option<usize>]) -> Option<AnswerError> {
        let entry = |container: &Option<usize>| container.map(|at| &self.file.entries[at]);
        let first = containers.first().and_then(entry)?;
        let name = first.definition()?.names.join(", ");
        let other = containers.iter().filter_map(entry).find(|other| {
            other
                .definition()
                .is_some_and(|definition| Some(definition) != first.definition())
        })?;
        let lines = [first, other].map(|entry| line_of(self.file.text, entry.core.start));
        Some(self.same_name(&name, lines, "the file"))
    }

    /// Why a definition that is not there cannot be added.
    pub(super) fn missing_definition(&self, entry: &Entry<'_>) -> Option<AnswerError> {
        let outside = match entry.parent {
            None => true,
            Some(_) => self.form == Form::Members && entry.parent == Some(0),
        };
        let parts = matches!(self.speaks, Coverage::OfParts);
        (parts && outside && self.is_method(self.answer, entry)).then(|| AnswerError::NoContainer {
            path: self.path.clone(),
            name: entry
                .definition()
                .map(|definition| definition.names.join(", "))
                .unwrap_or_default(),
        })
    }
}

/// The definition that a name means in a file: of the container in front of it if it names one, else one at the file's own
/// level, else one of any container.
///
/// # Errors
///
/// Fails when no definition has the name, or more than one has it.
pub(super) fn find_unique(
    path: &RepoPath,
    file: &Outline<'_>,
    name: &str,
) -> Result<usize, AnswerError> {
    let written = name.replace("::", ".");
    let (container, own) = match written.rsplit_once('.') {
        Some((container, own)) => (Some(container.rsplit('.').next().unwrap_or(container)), own),
        None => (None, written.as_str()),
    };
    let is_called = |at: usize, name: &str| {
        file.entries[at].definition().is_some_and(|definition| {
            definition.short.as_deref() == Some(name)
                || definition.names.iter().any(|own| own == name)
        })
    };
    let named: Vec<usize> = (0..file.entries.len())
        .filter(|at| is_called(*at, own))
        .collect();
    let parent = |at: &usize| file.entries[*at].parent;
    let found: Vec<usize> = match container {
        Some(container) => {
            let is_inside = |at: &usize| parent(at).is_some_and(|at| is_called(at, container));
            named.into_iter().filter(is_inside).collect()
        }
        None if named.iter().any(|at| parent(at).is_none()) => named
            .into_iter()
            .filter(|at| parent(at).is_none())
            .collect(),
        None => named,
    };
    match found[..] {
        [one] => Ok(one),
        [] => Err(AnswerError::NoSuchDefinition {
            path: path.clone(),
            name: name.to_owned(),
        }),
        [first, second, ..] => {
            let line = |at: usize| line_of(file.text, file.entries[at].core.start);
            Err(AnswerError::SameName {
                path: path.clone(),
                name: name.to_owned(),
                first: line(first),
                second: line(second),
                place: "the file",
            })
        }
    }
}

/// Whether a module is compiled for tests only.
pub(super) fn is_test_module(outline: &Outline<'_>, entry: &Entry<'_>) -> bool {
    let is_module = entry
        .definition()
        .is_some_and(|definition| definition.word == "mod");
    let above = outline
        .text
        .get(entry.start()..entry.core.start)
        .unwrap_or_default();
    is_module && above.contains("cfg(test)")
}
