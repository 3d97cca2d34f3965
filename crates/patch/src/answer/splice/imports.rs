//! Imports that the answer brings and the file lacks.

use std::collections::{BTreeMap, BTreeSet};

use super::write::{MAX_NEW, may_lead, rest_of_line};
use super::{AnswerError, EntryOutcome, Splicer, TextEdit};
use crate::syntax::{Entry, Grammar, Kind, leaves};

/// The imports of one container of the file.
#[derive(Default)]
struct Imports<'a, 't> {
    entries: Vec<&'a Entry<'t>>,
    known: BTreeSet<String>,
}

/// Adds each missing import behind those that its container has.
///
/// # Errors
///
/// Fails when there are more than anybody needs.
pub(super) fn add(splicer: &mut Splicer<'_, '_>) -> Result<(), AnswerError> {
    let mut added = 0;
    let (file, answer) = (splicer.file, splicer.answer);
    let mut there: BTreeMap<Option<usize>, Imports<'_, '_>> = BTreeMap::new();
    let mut is_read = false;
    for entry in answer
        .entries
        .iter()
        .filter(|entry| entry.kind == Kind::Import)
    {
        let container = match entry.parent.map(|parent| &splicer.fates[parent]) {
            None => None,
            Some(EntryOutcome::Open(containers)) => containers.first().copied(),
            Some(_) => continue,
        };
        if !is_read {
            is_read = true;
            for import in file
                .entries
                .iter()
                .filter(|import| import.kind == Kind::Import)
            {
                let imports = there.entry(import.parent).or_default();
                imports.entries.push(import);
                imports.known.extend(
                    leaves(file.grammar, import.node, file.text)
                        .into_iter()
                        .map(|leaf| leaf.key),
                );
            }
        }
        let imports = there.entry(container).or_default();
        let brought = leaves(answer.grammar, entry.node, answer.text);
        let all = brought.len();
        let missing: Vec<_> = brought
            .into_iter()
            .filter(|leaf| imports.known.insert(leaf.key.clone()))
            .collect();
        if missing.is_empty() {
            continue;
        }
        added += 1;
        if added > MAX_NEW {
            return Err(AnswerError::TooManyEdits { limit: MAX_NEW });
        }
        let lines: Vec<String> = if missing.len() == all && file.grammar != Grammar::Go {
            vec![
                answer
                    .text
                    .get(entry.core.clone())
                    .unwrap_or_default()
                    .to_owned(),
            ]
        } else {
            missing.into_iter().map(|leaf| leaf.statement).collect()
        };
        let is_future = lines.iter().any(|line| line.starts_with("from __future__"));
        let first = file
            .entries
            .iter()
            .find(|other| other.parent == container && other.definition().is_some())
            .map_or(usize::MAX, |other| other.core.start);
        let before = imports
            .entries
            .partition_point(|other| other.core.start < first);
        let leading = imports.entries.get(before.saturating_sub(1));
        let edit = match leading.filter(|_| !is_future) {
            Some(last) => after(splicer, last, &lines),
            None => on_top(splicer, container, &lines),
        };
        splicer.edits.push(edit);
    }
    Ok(())
}

/// Behind the last import. Go keeps its imports in parentheses where there are some.
fn after(splicer: &Splicer<'_, '_>, last: &Entry<'_>, lines: &[String]) -> TextEdit {
    let text = splicer.file.text;
    let full_text = text.get(last.core.clone()).unwrap_or_default();
    if splicer.file.grammar == Grammar::Go && full_text.ends_with(')') {
        let inside = full_text.trim_end_matches(')').trim_end();
        let at = last.core.start + inside.len();
        let specs = lines
            .iter()
            .map(|line| line.strip_prefix("import ").unwrap_or(line));
        let added: String = specs.map(|spec| format!("\n\t{spec}")).collect();
        return TextEdit {
            span: at..at,
            text: splicer.with_line_ends(&added),
        };
    }
    let at = last.core.end + rest_of_line(text, last.core.end);
    let indent = splicer.file.indent(last.core.start);
    let added: String = lines
        .iter()
        .map(|line| format!("\n{indent}{line}"))
        .collect();
    TextEdit {
        span: at..at,
        text: splicer.with_line_ends(&added),
    }
}

/// Where there is no import yet: behind what has to stand first, before everything else.
fn on_top(splicer: &Splicer<'_, '_>, container: Option<usize>, lines: &[String]) -> TextEdit {
    let file = splicer.file;
    let mut inside = file
        .entries
        .iter()
        .filter(|entry| entry.parent == container);
    let next = inside.find(|entry| !may_lead(file, entry));
    let at = next.map_or(file.text.len(), |entry| entry.start());
    let indent = file.indent(at);
    let is_import = next.is_some_and(|entry| entry.kind == Kind::Import);
    let mut added: String = lines
        .iter()
        .map(|line| format!("{line}\n{indent}"))
        .collect();
    if next.is_some() && !is_import {
        added.insert(added.len() - indent.len(), '\n');
    }
    if next.is_none() && file.line_start(at) != at {
        added.insert(0, '\n');
    }
    TextEdit {
        span: at..at,
        text: splicer.with_line_ends(&added),
    }
}
