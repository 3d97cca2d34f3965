//! Whole files that lost definitions on the way: a small model leaves out what it did not change.
//!
//! Where the judge would refuse a file for the definitions that went away, the answer is read as definitions of that
//! file instead. That changes what is proposed, not how it is judged: what the plan lets go still goes, a definition
//! that moves to another file of the answer still moves, and where the answer cannot be read so, it stays as it came.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::{Code, Finding, RepoPath};

use super::apply::split_bom;
use super::splice::{Coverage, Target};
use super::{EditKind, Proposal};
use crate::patch::Files;
use crate::source::{Definition, Language, definitions};

/// How many names a finding lists.
const MAX_NAMES: usize = 8;

/// The files of a proposal after [`restore_lost_definitions`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredDefinitions {
    /// The contents of the touched files.
    pub files: Files,
    /// A warning for each file whose lost definitions were kept.
    pub findings: Vec<Finding>,
}

/// Gives each file that `proposal` gives whole, and that lost definitions, those definitions back. `before` and `after`
/// are what [`crate::apply`] read and made; `may_drop` are the names of definitions that may go.
#[must_use]
pub fn restore_lost_definitions(
    proposal: &Proposal,
    before: &Files,
    mut after: Files,
    may_drop: &[String],
) -> RestoredDefinitions {
    let mut findings = Vec::new();
    let changes: Vec<FileChange<'_>> = match proposal {
        Proposal::Edits(edits) => edits
            .iter()
            .filter(|edit| matches!(edit.kind, EditKind::WholeFile { .. }))
            .filter_map(|edit| FileChange::new(&edit.path, before, &after))
            .collect(),
        Proposal::Diff(_) => Vec::new(),
    };
    let mut balance: BTreeMap<&Definition, i64> = BTreeMap::new();
    for (definition, change) in changes.iter().flat_map(|change| &change.counts) {
        *balance.entry(definition).or_default() += change;
    }
    let is_lost = |definition: &Definition| {
        balance.get(definition).is_some_and(|change| *change < 0)
            && !may_drop.contains(&definition.name)
    };
    let mut restored = Vec::new();
    for change in &changes {
        let dropped: Vec<&Definition> = change
            .counts
            .iter()
            .filter(|(its, count)| **count < 0 && is_lost(its))
            .map(|(its, _)| its)
            .collect();
        if dropped.is_empty() {
            continue;
        }
        let moved = changes
            .iter()
            .filter(|other| other.path != change.path)
            .flat_map(|other| &other.counts);
        let moved = moved
            .filter(|(_, count)| **count > 0)
            .map(|(definition, _)| definition.name.clone());
        let removed: BTreeSet<String> = may_drop.iter().cloned().chain(moved).collect();
        if let Some(content) = spliced(change.path, before, &after, &removed) {
            let remaining = change.restored(&dropped, &content);
            if !remaining.is_empty() {
                restored.push((change.path.clone(), content));
                findings.push(finding(change.path, &remaining));
            }
        }
    }
    after.extend(restored);
    RestoredDefinitions {
        files: after,
        findings,
    }
}

/// How often each definition came (above zero) or went (below) in a file.
struct FileChange<'a> {
    path: &'a RepoPath,
    counts: BTreeMap<Definition, i64>,
}

impl<'a> FileChange<'a> {
    fn new(path: &'a RepoPath, before: &Files, after: &Files) -> Option<Self> {
        let language = Language::from_path(path)?;
        let mut counts = BTreeMap::new();
        for (files, sign) in [(before, -1), (after, 1)] {
            for (definition, count) in files
                .get(path)
                .map(|text| definitions(language, text))
                .unwrap_or_default()
            {
                *counts.entry(definition).or_default() +=
                    sign * i64::try_from(count).unwrap_or(i64::MAX);
            }
        }
        Some(Self { path, counts })
    }

    /// Which of the lost definitions `content` holds again: what is let go may take others with it.
    fn restored<'d>(&self, dropped: &[&'d Definition], content: &[u8]) -> Vec<&'d Definition> {
        let now = Language::from_path(self.path)
            .map(|language| definitions(language, content))
            .unwrap_or_default();
        dropped
            .iter()
            .copied()
            .filter(|definition| now.contains_key(*definition))
            .collect()
    }
}

/// The file with the answer's definitions in it, where both can be read and have a definition in common.
fn spliced(
    path: &RepoPath,
    before: &Files,
    after: &Files,
    removed: &BTreeSet<String>,
) -> Option<Vec<u8>> {
    let (mark, old) = split_bom(before.get(path)?);
    let (_, new) = split_bom(after.get(path)?);
    let (old, new) = (
        std::str::from_utf8(old).ok()?,
        std::str::from_utf8(new).ok()?,
    );
    let answer = new.replace("\r\n", "\n");
    let spliced = Target::parse(path, old)?
        .splice(path, &answer, Coverage::OfAll { gone: removed })
        .ok()?;
    (spliced.found > 0).then(|| [mark, spliced.text.as_bytes()].concat())
}

fn finding(path: &RepoPath, dropped: &[&Definition]) -> Finding {
    let mut names: Vec<String> = dropped
        .iter()
        .take(MAX_NAMES)
        .map(ToString::to_string)
        .collect();
    if dropped.len() > MAX_NAMES {
        names.push(format!("{} more", dropped.len() - MAX_NAMES));
    }
    let hint = format!(
        "the answer gives the file whole but lacks {}; what it holds was put into the file and the rest was kept",
        names.join(", ")
    );
    Finding::warning(Code::new("answer-spliced"), path.to_string(), hint)
}
