//! The files of the project that a packet may show: those that were named, then those that the selectors find.
//!
//! Patterns are read first (`pattern`), so that a wrong one costs nothing; a pattern that is a plain path is looked up, and only globs
//! walk the tree, each below its own literal beginning. Then files are read in their order while there is room (`read`).
//!
//! What always holds: no link leads out of the project; `.git` and `.crucible` are never read; the order is that of the
//! patterns, and of the names within one. A directory that a pattern names itself is walked even where git ignores it; below any other,
//! what git ignores is not found.

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
    EntryKind, PacketEntry, PacketLimits, PacketRow, PassedOver, PassedOverReason, SECRET_FILE, Selection,
    lines_of,
};

/// The most files that the selectors may find together.
const MOST_FILES: usize = 10_000;

/// How many times the room's bytes are read of selected files, at most: a file can have few bytes and too many lines.
const READ_TIMES: u64 = 4;

/// Which files of a project a packet may show. Patterns are paths or globs from the project's directory on, with `/`; `*` does not
/// match a `/`, `**` does, and a directory stands for all that is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSelectors {
    /// The project's directory.
    pub root: PathBuf,
    /// What has to be shown.
    pub named: Vec<String>,
    /// What is shown while there is room, the most important first.
    pub include: Vec<String>,
    /// What is never shown. A pattern without a `/` counts at any depth, and one that matches a directory for all that is in it.
    pub exclude: Vec<String>,
}

/// Finds and reads the files. Those that were named have to fit into `room`; of the others each is taken while there is room, in the
/// order of `include`, then of the names.
///
/// # Errors
///
/// [`SpecError::Source`] for a pattern that is none, for a named file that is not there (it says what is near), that is no text, or that
/// `exclude` forbids, and for selectors that find more than 10,000 files; [`SpecError::SecretInPacket`] for a named file whose name says
/// that it holds secrets.
pub fn select_files(selectors: &FileSelectors, room: PacketLimits) -> Result<Selection, SpecError> {
    let FileSelectors { root, named, include, exclude } = selectors;
    if named.is_empty() && include.is_empty() {
        return Ok(Selection::default());
    }
    let project = Project::open(root)?;
    let excludes = Excludes::read(exclude)?;
    let named = named.iter().map(|text| Pattern::read(&project, text)).collect::<Result<Vec<_>, _>>()?;
    let include = include.iter().map(|text| Pattern::read(&project, text)).collect::<Result<Vec<_>, _>>()?;

    let mut picker = Picker {
        project: &project,
        room,
        allowance: room.max_bytes.saturating_mul(READ_TIMES),
        seen: BTreeSet::new(),
        selection: Selection::default(),
    };
    for pattern in &named {
        match pattern {
            Pattern::Plain(path) => picker.take_named(path, &excludes)?,
            Pattern::Glob(_) => picker.take_matching(pattern, &excludes)?,
        }
    }
    for path in
        pattern::matching(&project, &include, &excludes, MOST_FILES, &mut picker.selection.passed_over)?
    {
        picker.take_selected(path);
    }
    Ok(picker.selection)
}

/// Looks whether what has to be shown is there and may be shown, as far as that can be told without reading a file.
///
/// # Errors
///
/// [`SpecError::Source`] as [`select_files`], but for a file that is no text.
pub fn check_named_files(selectors: &FileSelectors) -> Result<(), SpecError> {
    let FileSelectors { root, named, include, exclude } = selectors;
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
                if pattern::matching(&project, one, &excludes, MOST_FILES, &mut Vec::new())?.is_empty() {
                    return Err(matches_nothing(pattern));
                }
            }
        }
    }
    Ok(())
}

/// A file that was named by its path: why it cannot be shown, as far as its place tells. A name that says that it holds secrets is for
/// the packet to tell, which leaves a receipt of it.
fn check_named(project: &Project, path: &RepoPath, excludes: &Excludes) -> Result<(), SpecError> {
    if let Some(pattern) = excludes.forbid(path) {
        return Err(forbidden(path, pattern));
    }
    match project.place(path) {
        Err(Found::Missing) => Err(refused(path, &near::what_is_near(project, path))),
        Err(Found::Refused(PassedOverReason::SecretName)) => Ok(()),
        Err(Found::Refused(why)) => Err(not_shown(path, why)),
        Ok(place) if place.metadata().is_ok_and(|meta| !meta.is_file()) => {
            Err(not_shown(path, PassedOverReason::NotAFile))
        }
        Ok(_) | Err(Found::Text(_) | Found::Larger(_)) => Ok(()),
    }
}

/// A name can hold a secret, too, and so can those of files near it.
fn redacted(text: &str) -> String {
    Scanner::builtin().redact(text).text.into_owned()
}

fn refused(path: &RepoPath, why: &str) -> SpecError {
    SpecError::Source { source_name: redacted(path.as_str()), why: redacted(why) }
}

fn forbidden(path: &RepoPath, pattern: &str) -> SpecError {
    let why = format!("spec.exclude forbids it with {pattern:?}; name another file, or change that list");
    refused(path, &why)
}

fn not_shown(path: &RepoPath, why: PassedOverReason) -> SpecError {
    let told = PassedOver { name: path.to_string(), why }.to_string();
    let why = told.split_once(": ").map_or(told.as_str(), |(_, why)| why);
    refused(path, &format!("{why}; leave it out, or name another file"))
}

fn matches_nothing(pattern: &Pattern) -> SpecError {
    SpecError::Source {
        source_name: pattern.text(),
        why: "it matches no file that can be shown; `*` matches no `/`, `**/` matches any directories"
            .to_owned(),
    }
}

/// Takes files one by one while there is room.
struct Picker<'a> {
    project: &'a Project,
    room: PacketLimits,
    /// Bytes of selected files that may still be read.
    allowance: u64,
    seen: BTreeSet<RepoPath>,
    selection: Selection,
}

impl Picker<'_> {
    /// A file that was named by its path: it is shown, or nothing is.
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
                self.selection.unread.push(PacketRow { lines, ..unread(EntryKind::Named, path, bytes) });
                Ok(())
            }
            Found::Missing => Err(refused(path, &near::what_is_near(self.project, path))),
            Found::Refused(PassedOverReason::SecretName) => Err(SpecError::SecretInPacket {
                entry: redacted(path.as_str()),
                rule: SECRET_FILE.to_owned(),
                line: 0,
            }),
            Found::Refused(why) => Err(not_shown(path, why)),
        }
    }

    /// Files that were named by a glob: all that can be shown, at least one.
    fn take_matching(&mut self, pattern: &Pattern, excludes: &Excludes) -> Result<(), SpecError> {
        let one = std::slice::from_ref(pattern);
        let paths: Matches =
            pattern::matching(self.project, one, excludes, MOST_FILES, &mut self.selection.passed_over)?;
        let mut shown = false;
        for path in paths {
            if self.seen.contains(&path) {
                shown = true;
                continue;
            }
            match self.project.read(&path, self.room.max_bytes) {
                Found::Text(text) if text.is_empty() => self.pass_over(&path, PassedOverReason::Empty),
                Found::Text(text) => {
                    shown = true;
                    self.show(EntryKind::Named, &path, text);
                }
                Found::Larger(bytes) => {
                    shown = true;
                    let lines = self.project.lines(&path);
                    self.selection.unread.push(PacketRow { lines, ..unread(EntryKind::Named, &path, bytes) });
                }
                Found::Missing => {}
                Found::Refused(why) => self.pass_over(&path, why),
            }
            self.seen.insert(path);
        }
        if shown {
            return Ok(());
        }
        Err(matches_nothing(pattern))
    }

    /// A file that a selector found: shown, left out or passed over.
    fn take_selected(&mut self, path: RepoPath) {
        if !self.seen.insert(path.clone()) {
            return;
        }
        let most = self.room.max_bytes.min(self.allowance);
        // With named files that cannot fit there is no packet, and nothing to read for it.
        let most = if self.selection.unread.is_empty() && self.room.max_lines > 0 { most } else { 0 };
        match self.project.read(&path, most) {
            Found::Text(text) if text.is_empty() => self.pass_over(&path, PassedOverReason::Empty),
            Found::Text(text) => {
                self.allowance = self.allowance.saturating_sub(text.len() as u64);
                if lines_of(&text) <= self.room.max_lines {
                    self.show(EntryKind::Selected, &path, text);
                } else {
                    self.selection.left_out.push(PacketRow::of(&entry(EntryKind::Selected, &path, text)));
                }
            }
            Found::Larger(bytes) => self.selection.left_out.push(unread(EntryKind::Selected, &path, bytes)),
            // A selector names what may be there.
            Found::Missing => {}
            Found::Refused(why) => self.pass_over(&path, why),
        }
    }

    fn show(&mut self, kind: EntryKind, path: &RepoPath, text: String) {
        let entry = entry(kind, path, text);
        self.room = self.room.beside(std::slice::from_ref(&entry));
        self.selection.entries.push(entry);
    }

    fn pass_over(&mut self, path: &RepoPath, why: PassedOverReason) {
        self.selection.passed_over.push(PassedOver { name: path.to_string(), why });
    }
}

fn entry(kind: EntryKind, path: &RepoPath, text: String) -> PacketEntry {
    PacketEntry { kind, name: path.to_string(), content: Untrusted::new(text) }
}

fn unread(kind: EntryKind, path: &RepoPath, bytes: u64) -> PacketRow {
    PacketRow { kind, name: path.to_string(), bytes, lines: 0, sha256: None }
}
