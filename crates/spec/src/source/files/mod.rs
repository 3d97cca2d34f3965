//! Selects the project files for a packet: named ones first, then those that the patterns match.
//!
//! Patterns are parsed first (`pattern`), so that an invalid one costs nothing. A plain path is looked up
//! directly; only globs walk the tree, each below its own literal prefix. Then files are read in order
//! while there is room (`read`).
//!
//! Invariants: no link leads out of the project. `.git` and `.crucible` are never read. The order is that
//! of the patterns, then of the names. A directory that a pattern names is walked even if git ignores it;
//! in other directories, ignored files are not found.

mod near;
mod pattern;
mod read;

use std::collections::BTreeSet;
use std::path::PathBuf;

use crucible_model::{RepoPath, Untrusted};
use crucible_secrets::Scanner;

use self::pattern::{Excludes, Matches, Pattern};
use self::read::{Found, Project};
use crate::error::SpecError;
use crate::packet::{
    EntryKind, Omission, OmissionReason, PacketEntry, PacketLimits, PacketRow, SECRET_FILE,
    Selection, lines_of,
};

/// The most files that the selectors may match together.
const MAX_FILES: usize = 10_000;

/// The most bytes of selected files that are read, as a multiple of the room: a small file may still have
/// too many lines.
const READ_TIMES: u64 = 4;

/// Patterns for the project files of a packet. They are paths or globs relative to the project's
/// directory, with `/`. `*` does not match a `/`, `**` does, and a directory stands for all its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSelectors {
    /// The project's directory.
    pub root: PathBuf,
    /// Required files.
    pub named: Vec<String>,
    /// Files to show while there is room, the most important first.
    pub include: Vec<String>,
    /// Files that are never shown. A pattern without a `/` applies at any depth, and one that matches a
    /// directory applies to its content.
    pub exclude: Vec<String>,
}

/// Finds and reads the files. Named files must fit into `limits`; others are included while there is room, in the order of `include`,
/// then of the names.
///
/// # Errors
///
/// [`SpecError::Source`] for an invalid pattern, for a named file that does not exist (with similar names), is not text or is
/// excluded, and for selectors that match more than 10,000 files; [`SpecError::SecretInPacket`] for a named file whose name suggests
/// secrets.
pub fn select_files(
    selectors: &FileSelectors,
    limits: PacketLimits,
) -> Result<Selection, SpecError> {
    let FileSelectors {
        root,
        named,
        include,
        exclude,
    } = selectors;
    if named.is_empty() && include.is_empty() {
        return Ok(Selection::default());
    }
    let project = Project::open(root)?;
    let excludes = Excludes::read(exclude)?;
    let named = named
        .iter()
        .map(|text| Pattern::read(&project, text))
        .collect::<Result<Vec<_>, _>>()?;
    let include = include
        .iter()
        .map(|text| Pattern::read(&project, text))
        .collect::<Result<Vec<_>, _>>()?;

    let mut picker = Picker {
        project: &project,
        room: limits,
        allowance: limits.max_bytes.saturating_mul(READ_TIMES),
        seen: BTreeSet::new(),
        selection: Selection::default(),
    };
    for pattern in &named {
        match pattern {
            Pattern::Plain(path) => picker.take_named(path, &excludes)?,
            Pattern::Glob(_) => picker.take_matching(pattern, &excludes)?,
        }
    }
    for path in pattern::matching(
        &project,
        &include,
        &excludes,
        MAX_FILES,
        &mut picker.selection.passed_over,
    )? {
        picker.take_selected(path);
    }
    Ok(picker.selection)
}

/// Checks that the required files exist and may be shown, without reading them.
///
/// # Errors
///
/// [`SpecError::Source`] as [`select_files`], except for a file that is not text.
pub(crate) fn check_named_files(selectors: &FileSelectors) -> Result<(), SpecError> {
    let FileSelectors {
        root,
        named,
        include,
        exclude,
    } = selectors;
    if named.is_empty() && include.is_empty() {
        return Ok(());
    }
    let project = Project::open(root)?;
    let excludes = Excludes::read(exclude)?;
    let read = |text: &String| Pattern::read(&project, text);
    let named = named.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    include.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    for pattern in &named {
        match pattern {
            Pattern::Plain(path) => check_named(&project, path, &excludes)?,
            Pattern::Glob(_) => {
                let one = std::slice::from_ref(pattern);
                if pattern::matching(&project, one, &excludes, MAX_FILES, &mut Vec::new())?
                    .is_empty()
                {
                    return Err(matches_nothing(pattern));
                }
            }
        }
    }
    Ok(())
}

/// Checks a file named by its path: why it cannot be shown, judging by its location. The packet reports a
/// name that suggests secrets, because that leaves a receipt.
fn check_named(project: &Project, path: &RepoPath, excludes: &Excludes) -> Result<(), SpecError> {
    if let Some(pattern) = excludes.forbid(path) {
        return Err(forbidden(path, pattern));
    }
    match project.place(path) {
        Err(Found::Missing) => Err(refused(path, &near::what_is_near(project, path))),
        Err(Found::Refused(OmissionReason::SecretName)) => Ok(()),
        Err(Found::Refused(why)) => Err(not_shown(path, why)),
        Ok(place) if place.metadata().is_ok_and(|meta| !meta.is_file()) => {
            Err(not_shown(path, OmissionReason::NotAFile))
        }
        Ok(_) | Err(Found::Text(_) | Found::Larger(_)) => Ok(()),
    }
}

/// Redacts a name; even names of nearby files may contain a secret.
fn redacted(text: &str) -> String {
    Scanner::builtin().redact(text).text.into_owned()
}

fn refused(path: &RepoPath, why: &str) -> SpecError {
    SpecError::Source {
        source_name: redacted(path.as_str()),
        why: redacted(why),
    }
}

fn forbidden(path: &RepoPath, pattern: &str) -> SpecError {
    let why =
        format!("spec.exclude forbids it with {pattern:?}; name another file, or change that list");
    refused(path, &why)
}

fn not_shown(path: &RepoPath, why: OmissionReason) -> SpecError {
    let omission = Omission {
        name: path.to_string(),
        why,
    }
    .to_string();
    let why = omission
        .split_once(": ")
        .map_or(omission.as_str(), |(_, why)| why);
    refused(path, &format!("{why}; leave it out, or name another file"))
}

fn matches_nothing(pattern: &Pattern) -> SpecError {
    SpecError::Source {
        source_name: pattern.text(),
        why: "it matches no file that can be shown; `*` matches no `/`, `**/` matches any directories"
            .to_owned(),
    }
}

/// Adds files one by one while there is room.
struct Picker<'a> {
    project: &'a Project,
    room: PacketLimits,
    /// The bytes of selected files that may still be read.
    allowance: u64,
    seen: BTreeSet<RepoPath>,
    selection: Selection,
}

impl Picker<'_> {
    /// Adds a file named by its path, or fails.
    fn take_named(&mut self, path: &RepoPath, excludes: &Excludes) -> Result<(), SpecError> {
        if let Some(pattern) = excludes.forbid(path) {
            return Err(forbidden(path, pattern));
        }
        if !self.seen.insert(path.clone()) {
            return Ok(());
        }
        match self.project.read(path, self.room.max_bytes) {
            Found::Text(text) => {
                self.show(EntryKind::Named, path, text);
                Ok(())
            }
            Found::Larger(bytes) => {
                let lines = self.project.lines(path);
                self.selection.unread.push(PacketRow {
                    lines,
                    ..unread(EntryKind::Named, path, bytes)
                });
                Ok(())
            }
            Found::Missing => Err(refused(path, &near::what_is_near(self.project, path))),
            Found::Refused(OmissionReason::SecretName) => Err(SpecError::SecretInPacket {
                entry: redacted(path.as_str()),
                rule: SECRET_FILE.to_owned(),
                line: 0,
            }),
            Found::Refused(why) => Err(not_shown(path, why)),
        }
    }

    /// Adds files named by a glob: all that can be shown, at least one.
    fn take_matching(&mut self, pattern: &Pattern, excludes: &Excludes) -> Result<(), SpecError> {
        let one = std::slice::from_ref(pattern);
        let paths: Matches = pattern::matching(
            self.project,
            one,
            excludes,
            MAX_FILES,
            &mut self.selection.passed_over,
        )?;
        let mut is_visible = false;
        for path in paths {
            if self.seen.contains(&path) {
                is_visible = true;
                continue;
            }
            match self.project.read(&path, self.room.max_bytes) {
                Found::Text(text) if text.is_empty() => {
                    self.pass_over(&path, OmissionReason::Empty)
                }
                Found::Text(text) => {
                    is_visible = true;
                    self.show(EntryKind::Named, &path, text);
                }
                Found::Larger(bytes) => {
                    is_visible = true;
                    let lines = self.project.lines(&path);
                    self.selection.unread.push(PacketRow {
                        lines,
                        ..unread(EntryKind::Named, &path, bytes)
                    });
                }
                Found::Missing => {}
                Found::Refused(why) => self.pass_over(&path, why),
            }
            self.seen.insert(path);
        }
        if is_visible {
            return Ok(());
        }
        Err(matches_nothing(pattern))
    }

    /// Adds, leaves out or skips a file that a selector matched.
    fn take_selected(&mut self, path: RepoPath) {
        if !self.seen.insert(path.clone()) {
            return;
        }
        let most = self.room.max_bytes.min(self.allowance);
        // If the named files do not fit, there is no packet, so nothing needs to be read.
        let most = if self.selection.unread.is_empty() && self.room.max_lines > 0 {
            most
        } else {
            0
        };
        match self.project.read(&path, most) {
            Found::Text(text) if text.is_empty() => self.pass_over(&path, OmissionReason::Empty),
            Found::Text(text) => {
                self.allowance = self.allowance.saturating_sub(text.len() as u64);
                if lines_of(&text) <= self.room.max_lines {
                    self.show(EntryKind::Selected, &path, text);
                } else {
                    self.selection.left_out.push(PacketRow::from_entry(&entry(
                        EntryKind::Selected,
                        &path,
                        text,
                    )));
                }
            }
            Found::Larger(bytes) => {
                self.selection
                    .left_out
                    .push(unread(EntryKind::Selected, &path, bytes))
            }
            // A selector may name files that do not exist.
            Found::Missing => {}
            Found::Refused(why) => self.pass_over(&path, why),
        }
    }

    fn show(&mut self, kind: EntryKind, path: &RepoPath, text: String) {
        let entry = entry(kind, path, text);
        self.room = self.room.subtract_entries(std::slice::from_ref(&entry));
        self.selection.entries.push(entry);
    }

    fn pass_over(&mut self, path: &RepoPath, why: OmissionReason) {
        self.selection.passed_over.push(Omission {
            name: path.to_string(),
            why,
        });
    }
}

fn entry(kind: EntryKind, path: &RepoPath, text: String) -> PacketEntry {
    PacketEntry {
        kind,
        name: path.to_string(),
        content: Untrusted::new(text),
    }
}

fn unread(kind: EntryKind, path: &RepoPath, bytes: u64) -> PacketRow {
    PacketRow {
        kind,
        name: path.to_string(),
        bytes,
        lines: 0,
        sha256: None,
    }
}
