//! What a killed process left: finished, or taken back.
//!
//! What is there is told by digests, not by how far the journal says that the change came: each of the three names of a file
//! holds the old content, the new one, nothing, or something that somebody else put there.

use std::path::Path;

use crucible_model::RepoPath;
use rustix::io::Errno;

use super::journal::{BesideNames, Journal, JournalEntry, JournalStage};
use super::look::{Look, glance};
use super::swap::{self, Fault};
use super::{EditJournal, TreeEditError};
use crate::beneath::Root;
use crate::error::RepoError;

/// How many files an error names.
const NAMED: usize = 10;

/// What became of a change that a killed process left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditRecovery {
    /// There was none.
    Nothing,
    /// All of its files are changed now.
    Finished,
    /// None of its files is.
    TakenBack,
}

/// What became of a change that a killed process left, and of which files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredEdit {
    /// What became of it.
    pub outcome: EditRecovery,
    /// The files of the change; none where it had come to none of them.
    pub files: Vec<RepoPath>,
}

impl RecoveredEdit {
    /// There was nothing to recover.
    #[must_use]
    pub const fn nothing() -> Self {
        Self { outcome: EditRecovery::Nothing, files: Vec::new() }
    }
}

/// How far one file had come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryState {
    /// It holds the old content, and the new one waits.
    Todo,
    /// It was changed; somebody may have gone on from there.
    Done,
    /// It was changed, and what was beside it is gone already: so all were changed.
    Cleared,
    /// Somebody else changed it before the change came to it.
    Foreign,
}

/// Finishes the change that the journal tells of where every file of it is still what it was made for, and takes it back otherwise.
/// A journal whose claim does not agree with what its owner knows changes nothing.
///
/// # Errors
///
/// Fails when the journal is none or is of another change, or when the file system refuses; then the journal stays for the next time.
pub fn recover_tree_edit(root: &Path, journal: &EditJournal<'_>) -> Result<RecoveredEdit, TreeEditError> {
    recover(&Root::open(root)?, journal)
}

/// [`recover_tree_edit`] in a directory that is open.
pub(super) fn recover(root: &Root, place: &EditJournal<'_>) -> Result<RecoveredEdit, TreeEditError> {
    let Some(journal) = Journal::read(place.path)? else {
        return Ok(RecoveredEdit::nothing());
    };
    let claim = journal.claim();
    if claim.purpose != place.purpose || !(place.agrees)(&claim) {
        let names: Vec<&str> = claim.edits.iter().map(|edit| edit.path.as_str()).take(NAMED).collect();
        let why = format!("it is of another change than the one that is known here, of {}", names.join(", "));
        return Err(TreeEditError::Journal { path: place.path.to_owned(), why });
    }
    let (outcome, files) = match journal.stage {
        JournalStage::Staging => (EditRecovery::TakenBack, Vec::new()),
        JournalStage::Ready => (settle(root, &journal, place.path)?, journal.paths()),
        JournalStage::GivenUp => {
            take_back(root, &journal)
                .map_err(|paths| stuck(paths, "it was given up".to_owned(), place.path))?;
            (EditRecovery::TakenBack, journal.paths())
        }
    };
    clear(root, &journal)?;
    Journal::remove(place.path)?;
    Ok(RecoveredEdit { outcome, files })
}

fn settle(root: &Root, journal: &Journal, journal_path: &Path) -> Result<EditRecovery, TreeEditError> {
    let mut states = Vec::new();
    for (index, entry) in journal.entries.iter().enumerate() {
        states.push(state(root, &journal.names(index), entry)?);
    }
    // Clearing begins when every file is changed: one that still waits says that what looks like it is somebody else's doing.
    let is_cleared = states.contains(&EntryState::Cleared);
    if is_cleared && !states.contains(&EntryState::Todo) {
        return Ok(EditRecovery::Finished);
    }
    if is_cleared || states.contains(&EntryState::Foreign) {
        // One that waits may have been set aside.
        let is_touched = |state: &EntryState| matches!(state, EntryState::Todo | EntryState::Done);
        take_back_those(root, journal, |index| states.get(index).is_some_and(is_touched))
            .map_err(|paths| stuck(paths, "a file changed meanwhile".to_owned(), journal_path))?;
        return Ok(EditRecovery::TakenBack);
    }
    for (index, entry) in journal.entries.iter().enumerate() {
        if states.get(index) != Some(&EntryState::Todo) {
            continue;
        }
        if let Err(fault) = finish(root, &journal.names(index), entry) {
            let cause = fault.of(&entry.path, root, entry).to_string();
            take_back(root, journal).map_err(|paths| stuck(paths, cause, journal_path))?;
            return Ok(EditRecovery::TakenBack);
        }
    }
    Ok(EditRecovery::Finished)
}

/// The error for files that could not be put back.
pub(super) fn stuck(paths: Vec<String>, cause: String, journal: &Path) -> TreeEditError {
    TreeEditError::NotTakenBack { paths, cause, journal: journal.to_owned() }
}

/// Puts the old content of every file back into its place. `Err` names those where that is not possible.
pub(super) fn take_back(root: &Root, journal: &Journal) -> Result<(), Vec<String>> {
    take_back_those(root, journal, |_| true)
}

/// Removes what a change left beside the files, and the directories that it made where they are empty.
pub(super) fn clear(root: &Root, journal: &Journal) -> Result<(), RepoError> {
    for (index, entry) in journal.entries.iter().enumerate() {
        clear_one(root, journal, index, entry)?;
    }
    for made in journal.made.iter().rev() {
        // One that holds something is in use.
        let _stays = root.remove_dir(made.as_ref());
    }
    Ok(())
}

/// Removes what a change left beside one file; for a file that went away also the directories that are empty now.
pub(super) fn clear_one(
    root: &Root,
    journal: &Journal,
    index: usize,
    entry: &JournalEntry,
) -> Result<(), RepoError> {
    let dir = match root.below(entry.parent()) {
        Ok(dir) => dir,
        // Where the directory is gone, so is what was in it.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        Err(errno) => return Err(root.fail("open", entry.parent(), errno)),
    };
    let beside = journal.names(index);
    for name in [&beside.spare, &beside.old] {
        // A read-only file system refuses to remove even what is not there.
        let is_there = !matches!(dir.stat(name), Err(Errno::NOENT));
        match dir.unlink(name) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) if is_there => return Err(dir.fail("remove", name, errno)),
            Err(_) => {}
        }
    }
    if entry.after.is_none() {
        let parents = entry.parent().ancestors().take_while(|parent| !parent.as_os_str().is_empty());
        for parent in parents {
            if root.remove_dir(parent).is_err() {
                break;
            }
        }
    }
    Ok(())
}

fn take_back_those(root: &Root, journal: &Journal, which: impl Fn(usize) -> bool) -> Result<(), Vec<String>> {
    let mut stuck = Vec::new();
    for (index, entry) in journal.entries.iter().enumerate().rev().filter(|(index, _)| which(*index)) {
        if !matches!(put_back(root, &journal.names(index), entry), Ok(true)) {
            stuck.push(entry.path.to_string());
        }
    }
    if stuck.is_empty() { Ok(()) } else { Err(stuck) }
}

/// Puts one file back; tells whether it is what it was, or what somebody else made of it before us.
fn put_back(root: &Root, beside: &BesideNames, entry: &JournalEntry) -> Result<bool, Errno> {
    let dir = root.below(entry.parent())?;
    let target = glance(&dir, entry.name())?;
    let Some(before) = entry.before else {
        let is_ours = entry.after.is_some() && target.digest() == entry.after;
        // While the new content still waits, what stands there is somebody else's.
        if is_ours && glance(&dir, &beside.spare)?.is_nothing() {
            dir.unlink(entry.name())?;
        }
        return Ok(true);
    };
    let mut holder = None;
    for name in [&beside.old, &beside.spare] {
        if glance(&dir, name)?.digest() == Some(before) {
            holder = Some(name);
        }
    }
    let Some(holder) = holder else {
        // The change did not come to this file, or it was put back; only one that is as the change makes it is not.
        let waits = entry.after.is_some() && glance(&dir, &beside.spare)?.digest() == entry.after;
        return Ok(waits || target.digest().is_none() || target.digest() != entry.after);
    };
    if target.is_nothing() {
        return Ok(swap::move_to_free(&dir, holder, entry.name()).is_ok());
    }
    if target.digest() == entry.after {
        dir.rename_over(holder, entry.name())?;
        return Ok(true);
    }
    Ok(target.digest() == Some(before))
}

/// Goes on with a file that holds its old content, or nothing where it was set aside.
fn finish(root: &Root, beside: &BesideNames, entry: &JournalEntry) -> Result<(), Fault> {
    let dir = root.below(entry.parent())?;
    if entry.before.is_some() && entry.after.is_some() && glance(&dir, entry.name())?.is_nothing() {
        return swap::move_to_free(&dir, &beside.spare, entry.name());
    }
    swap::put(&dir, beside, entry)?;
    Ok(dir.sync()?)
}

fn state(root: &Root, beside: &BesideNames, entry: &JournalEntry) -> Result<EntryState, TreeEditError> {
    let dir = match root.below(entry.parent()) {
        Ok(dir) => dir,
        Err(Errno::NOENT) if entry.after.is_none() => return Ok(EntryState::Cleared),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(EntryState::Foreign),
        Err(errno) => return Err(root.fail("open", entry.parent(), errno).into()),
    };
    let at = |name: &Path| glance(&dir, name).map_err(|errno| dir.fail("read", name, errno));
    let (target, spare, old) = (at(entry.name())?, at(&beside.spare)?, at(&beside.old)?);
    let waits = entry.after.is_none() || spare.digest() == entry.after;
    let Some(before) = entry.before else {
        return Ok(match (spare.is_nothing(), target.is_nothing()) {
            (true, _) => EntryState::Done,
            (false, true) if waits => EntryState::Todo,
            (false, _) => EntryState::Foreign,
        });
    };
    let is_old = |look: &Look| look.digest() == Some(before);
    let is_kept = is_old(&spare) || is_old(&old);
    Ok(if is_old(&target) {
        if waits { EntryState::Todo } else { EntryState::Foreign }
    } else if is_old(&old) && target.is_nothing() && entry.after.is_some() {
        // It was set aside. Where nothing waits to take its place, going on fails, and all is taken back.
        EntryState::Todo
    } else if is_kept {
        EntryState::Done
    } else if entry.after.is_some() && waits {
        EntryState::Foreign
    } else if target.is_nothing() || entry.after.is_some() {
        EntryState::Cleared
    } else {
        EntryState::Foreign
    })
}
