//! Recovery after a killed process: the change is finished or undone.
//!
//! Digests show the state: each of a file's three names has the old content, the new one, nothing, or foreign
//! content. The journal says only whether a file may have been changed, and whether what lies beside the
//! files may have been cleared away. What lay beside a file may be gone although nothing was cleared: a person who
//! tidies up a work tree takes it for rubbish.
//!
//! What always holds: an outcome is reported only if every file was looked at; where neither way leads to the end,
//! the journal stays, and the files with it.

use std::path::Path;

use crucible_model::{Digest, RepoPath};
use rustix::io::Errno;

use super::edit_target::{self, PathKind, read_edited_path};
use super::journal::{Journal, JournalEntry, JournalStage, TemporaryNames};
use super::swap::{self, Fault};
use super::{ClaimedEdit, EditClaim, EditJournal, NewFile, TreeEdit, TreeEditError, stage};
use crate::beneath::Root;
use crate::error::RepoError;

/// How many files an error names.
const NAMED: usize = 10;

/// What became of a change that a killed process left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditRecovery {
    /// There was none.
    Nothing,
    /// All of its files were changed.
    Finished,
    /// None of its files is.
    RolledBack,
}

/// What became of a change that a killed process left, and of which files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredEdit {
    /// What became of it.
    pub outcome: EditRecovery,
    /// The files of the change; empty if it had changed none.
    pub files: Vec<RepoPath>,
    /// Those with neither the old nor the new content: they were edited since.
    pub edited_since: Vec<RepoPath>,
}

impl RecoveredEdit {
    /// There was nothing to recover.
    #[must_use]
    pub const fn nothing() -> Self {
        Self {
            outcome: EditRecovery::Nothing,
            files: Vec::new(),
            edited_since: Vec::new(),
        }
    }
}

/// Computes the new content of a file from its old one (`None` for a new file), if the staged content is
/// gone.
pub type RegeneratedContent<'a> = &'a dyn Fn(&ClaimedEdit, Option<&[u8]>) -> Option<Vec<u8>>;

/// How far one file had come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryState {
    /// It holds the old content, or that was set aside, and the new one waits.
    Waits,
    /// The same, and the staged content is gone.
    Bare,
    /// Changed, and can be restored; may have been edited since.
    Changed,
    /// It has the new content, and its old content is gone.
    Settled,
    /// It has other content, and nothing shows whether the change came first.
    Unclear,
    /// Another process changed it before the change came to it.
    Foreign,
    /// Its directory is not there, or is a link.
    Unreachable,
}

/// Finishes the change in the journal if every file is still in the expected state, and undoes it otherwise.
/// A journal whose claim does not match what its owner knows changes nothing.
///
/// # Errors
///
/// [`TreeEditError::NotTakenBack`] if neither is possible. Fails when the journal is invalid or is of another
/// change, or when the file system refuses. The journal stays then for the next time.
pub fn recover_tree_edit(
    root: &Path,
    journal: &EditJournal<'_>,
) -> Result<RecoveredEdit, TreeEditError> {
    recover(&Root::open(root)?, journal)
}

/// [`recover_tree_edit`] for a caller that can compute the new contents again.
///
/// # Errors
///
/// As [`recover_tree_edit`].
pub fn recover_tree_edit_with(
    root: &Path,
    journal: &EditJournal<'_>,
    remade: RegeneratedContent<'_>,
) -> Result<RecoveredEdit, TreeEditError> {
    recover_with_content(&Root::open(root)?, journal, remade)
}

/// Returns the claim of a change that may be in progress, if any. Nothing is changed or trusted.
///
/// # Errors
///
/// Fails when the journal cannot be read.
pub fn pending_tree_edit(journal: &Path) -> Result<Option<EditClaim>, TreeEditError> {
    Ok(Journal::read(journal)?.map(|journal| journal.claim()))
}

/// [`recover_tree_edit`] in a directory that is open.
pub(super) fn recover(
    root: &Root,
    place: &EditJournal<'_>,
) -> Result<RecoveredEdit, TreeEditError> {
    recover_with_content(root, place, &|_, _| None)
}

/// [`recover_tree_edit_with`] in a directory that is open.
pub(super) fn recover_with_content(
    root: &Root,
    place: &EditJournal<'_>,
    remade: RegeneratedContent<'_>,
) -> Result<RecoveredEdit, TreeEditError> {
    let Some(journal) = Journal::read(place.path)? else {
        return Ok(RecoveredEdit::nothing());
    };
    let claim = journal.claim();
    if claim.purpose != place.purpose || !(place.agrees)(&claim) {
        let names: Vec<&str> = claim
            .edits
            .iter()
            .map(|edit| edit.path.as_str())
            .take(NAMED)
            .collect();
        let why = format!(
            "it belongs to a different change than the expected one, of {}",
            names.join(", ")
        );
        return Err(TreeEditError::Journal {
            path: place.path.to_owned(),
            why,
        });
    }
    let states = states(root, &journal)?;
    reachable(&journal, &states, place.path)?;
    let outcome = match journal.stage {
        JournalStage::Staging => EditRecovery::RolledBack,
        JournalStage::Ready => settle(root, &journal, &states, place.path, remade)?,
        JournalStage::GivenUp => {
            take_back(root, &journal).map_err(|paths| {
                rollback_error(paths, "the change was abandoned".to_owned(), place.path)
            })?;
            EditRecovery::RolledBack
        }
        JournalStage::Clearing => EditRecovery::Finished,
    };
    let (files, went_on) = match journal.stage {
        JournalStage::Staging => (Vec::new(), Vec::new()),
        JournalStage::Ready | JournalStage::GivenUp | JournalStage::Clearing => {
            (journal.paths(), unknown_contents(root, &journal, outcome)?)
        }
    };
    clear(root, &journal)?;
    Journal::remove(place.path)?;
    Ok(RecoveredEdit {
        outcome,
        files,
        edited_since: went_on,
    })
}

/// Fails if a directory is missing or became a link, because its files and their temporary files are out of
/// reach.
fn reachable(
    journal: &Journal,
    states: &[EntryState],
    journal_path: &Path,
) -> Result<(), TreeEditError> {
    let lost = |(_, state): &(&JournalEntry, &EntryState)| **state == EntryState::Unreachable;
    let lost: Vec<&JournalEntry> = journal
        .entries
        .iter()
        .zip(states)
        .filter(lost)
        .map(|(entry, _)| entry)
        .collect();
    // If nothing was changed yet, a file to be removed has no temporary files.
    let is_of_use =
        |entry: &&JournalEntry| journal.stage != JournalStage::Staging || entry.after.is_some();
    let paths: Vec<String> = lost
        .into_iter()
        .filter(is_of_use)
        .map(|entry| entry.path.to_string())
        .collect();
    match paths.is_empty() {
        true => Ok(()),
        false => Err(rollback_error(
            paths,
            "the directory they are in is gone, or is a link now".to_owned(),
            journal_path,
        )),
    }
}

/// Finishes or undoes a change that may have changed files but removed no temporary files.
fn settle(
    root: &Root,
    journal: &Journal,
    states: &[EntryState],
    journal_path: &Path,
    remade: RegeneratedContent<'_>,
) -> Result<EditRecovery, TreeEditError> {
    let is_changed =
        |state: &EntryState| matches!(state, EntryState::Changed | EntryState::Settled);
    // Files change one after the other: one before a changed one was changed, too.
    let last_changed = states.iter().rposition(is_changed);
    let is_lost = |(index, state): (usize, &EntryState)| match state {
        EntryState::Foreign => true,
        EntryState::Unclear => last_changed.is_none_or(|last| index > last),
        _ => false,
    };
    let lost: Vec<&JournalEntry> = journal
        .entries
        .iter()
        .enumerate()
        .filter(|(index, _)| {
            states
                .get(*index)
                .is_some_and(|state| is_lost((*index, state)))
        })
        .map(|(_, entry)| entry)
        .collect();
    let has = |requested: EntryState| states.contains(&requested);
    if lost.is_empty() && !has(EntryState::Waits) && !has(EntryState::Bare) {
        return Ok(EditRecovery::Finished);
    }
    if !has(EntryState::Settled) {
        let can_go_on = lost.is_empty() && !has(EntryState::Bare);
        let failed = if can_go_on {
            finish_all(root, journal, states).err()
        } else {
            None
        };
        if can_go_on && failed.is_none() {
            return Ok(EditRecovery::Finished);
        }
        let cause = failed.map_or_else(
            || "a file changed meanwhile".to_owned(),
            |error| error.to_string(),
        );
        take_back(root, journal).map_err(|paths| rollback_error(paths, cause, journal_path))?;
        return Ok(EditRecovery::RolledBack);
    }
    // If a file cannot be restored, the change can only be finished.
    let settled = || {
        let is_settled = |(_, state): &(&JournalEntry, &EntryState)| **state == EntryState::Settled;
        let settled = journal.entries.iter().zip(states).filter(is_settled);
        settled
            .map(|(entry, _)| entry.path.to_string())
            .collect::<Vec<_>>()
    };
    let beside = "their saved copies are gone";
    if let Some(other) = lost.first() {
        let cause = format!(
            "{beside}, and the change cannot be finished because {} changed meanwhile",
            other.path
        );
        return Err(rollback_error(settled(), cause, journal_path));
    }
    let failed = match remake_all(root, journal, states, remade) {
        Ok(true) => finish_all(root, journal, states).err(),
        Ok(false) => {
            let cause = format!("{beside}, and so is the new content of the other files");
            return Err(rollback_error(settled(), cause, journal_path));
        }
        Err(error) => Some(error),
    };
    match failed {
        None => Ok(EditRecovery::Finished),
        Some(error) => Err(rollback_error(
            settled(),
            format!("{beside}, and {error}"),
            journal_path,
        )),
    }
}

/// Goes on with every file that still waits.
fn finish_all(root: &Root, journal: &Journal, states: &[EntryState]) -> Result<(), TreeEditError> {
    for (index, entry) in journal.entries.iter().enumerate() {
        if matches!(
            states.get(index),
            Some(EntryState::Waits | EntryState::Bare)
        ) {
            finish(root, &journal.names(index), entry)
                .map_err(|fault| fault.into_error(&entry.path, root, entry))?;
        }
    }
    Ok(())
}

/// Stages missing new contents again: all, or none and `false` if one cannot be computed.
fn remake_all(
    root: &Root,
    journal: &Journal,
    states: &[EntryState],
    remade: RegeneratedContent<'_>,
) -> Result<bool, TreeEditError> {
    let mut edits = Vec::new();
    for (index, entry) in journal.entries.iter().enumerate() {
        if states.get(index) != Some(&EntryState::Bare) {
            continue;
        }
        let path: &Path = entry.path.as_ref();
        let found = read_edited_path(root, path).map_err(|errno| root.fail("read", path, errno))?;
        let old = match &found {
            PathKind::File(file) => Some(file.bytes.as_slice()),
            PathKind::Nothing | PathKind::Link | PathKind::Other | PathKind::TooLarge => None,
        };
        let content = remade(&entry.claimed(), old)
            .filter(|content| Some(Digest::compute(content)) == entry.after);
        let Some(content) = content else {
            return Ok(false);
        };
        let (path, before) = (entry.path.clone(), entry.before);
        edits.push((
            index,
            TreeEdit {
                path,
                before,
                after: Some(content),
                new_file: NewFile::Plain,
            },
        ));
    }
    let made = journal.made.iter().filter(|_| !edits.is_empty());
    for new_path in made {
        root.make_dir(new_path.as_ref())
            .map_err(|errno| root.fail("make", new_path.as_ref(), errno))?;
    }
    for (index, edit) in &edits {
        stage::stage_one(root, &edit_target::check(root, edit)?, journal, *index)?;
    }
    Ok(true)
}

/// Returns the files with neither the old nor the new content.
fn unknown_contents(
    root: &Root,
    journal: &Journal,
    outcome: EditRecovery,
) -> Result<Vec<RepoPath>, TreeEditError> {
    let mut others = Vec::new();
    for entry in &journal.entries {
        let path: &Path = entry.path.as_ref();
        let found = match read_edited_path(root, path) {
            Ok(found) => found,
            Err(Errno::LOOP) => PathKind::Link,
            Err(errno) => return Err(root.fail("read", path, errno).into()),
        };
        let requested = if outcome == EditRecovery::Finished {
            entry.after
        } else {
            entry.before
        };
        let matches_wanted = if requested.is_some() {
            found.digest() == requested
        } else {
            found.is_nothing()
        };
        if !matches_wanted {
            others.push(entry.path.clone());
        }
    }
    Ok(others)
}

/// Returns the error for files that could not be restored.
pub(super) fn rollback_error(paths: Vec<String>, cause: String, journal: &Path) -> TreeEditError {
    TreeEditError::NotRolledBack {
        paths,
        cause,
        journal: journal.to_owned(),
    }
}

/// Restores the old content of every file. `Err` names those for which that is not possible.
pub(super) fn take_back(root: &Root, journal: &Journal) -> Result<(), Vec<String>> {
    let mut stuck = Vec::new();
    for (index, entry) in journal.entries.iter().enumerate().rev() {
        if !matches!(
            put_back(root, journal, &journal.names(index), entry),
            Ok(true)
        ) {
            stuck.push(entry.path.to_string());
        }
    }
    if stuck.is_empty() { Ok(()) } else { Err(stuck) }
}

/// Removes the temporary files of a change, and its new directories if they are empty.
pub(super) fn clear(root: &Root, journal: &Journal) -> Result<(), RepoError> {
    for (index, entry) in journal.entries.iter().enumerate() {
        clear_one(root, journal, index, entry)?;
    }
    for new_path in journal.made.iter().rev() {
        // One that holds something is in use.
        let _stays = root.remove_dir(new_path.as_ref());
    }
    Ok(())
}

/// Removes the temporary files of one file; for a removed file also directories that became empty.
pub(super) fn clear_one(
    root: &Root,
    journal: &Journal,
    index: usize,
    entry: &JournalEntry,
) -> Result<(), RepoError> {
    let dir = match root.open_directory(entry.parent()) {
        Ok(dir) => dir,
        // If the directory is gone, so are its contents.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        Err(errno) => return Err(root.fail("open", entry.parent(), errno)),
    };
    let temporary_names = journal.names(index);
    for name in [&temporary_names.swap_file, &temporary_names.old] {
        // A read-only file system refuses even to remove a missing file.
        let is_there = !matches!(dir.stat(name), Err(Errno::NOENT));
        match dir.unlink(name) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) if is_there => return Err(dir.fail("remove", name, errno)),
            Err(_) => {}
        }
    }
    if entry.after.is_none() {
        let parents = entry
            .parent()
            .ancestors()
            .take_while(|parent| !parent.as_os_str().is_empty());
        for parent in parents {
            if root.remove_dir(parent).is_err() {
                break;
            }
        }
    }
    Ok(())
}

/// Restores one file; returns whether it has the old content, or foreign content from before the change.
fn put_back(
    root: &Root,
    journal: &Journal,
    temporary_names: &TemporaryNames,
    entry: &JournalEntry,
) -> Result<bool, Errno> {
    let dir = match root.open_directory(entry.parent()) {
        // If the directory does not exist, there is nothing to restore.
        Err(Errno::NOENT) if is_to_be_made(root, journal, entry) => return Ok(true),
        dir => dir?,
    };
    let target = read_edited_path(&dir, entry.name())?;
    let Some(before) = entry.before else {
        let is_ours = entry.after.is_some() && target.digest() == entry.after;
        // While the new content is still staged, the file's content is foreign.
        if is_ours && read_edited_path(&dir, &temporary_names.swap_file)?.is_nothing() {
            dir.unlink(entry.name())?;
        }
        return Ok(true);
    };
    let mut holder = None;
    for name in [&temporary_names.old, &temporary_names.swap_file] {
        if read_edited_path(&dir, name)?.digest() == Some(before) {
            holder = Some(name);
        }
    }
    let Some(holder) = holder else {
        // The change did not reach this file, or it was restored; only a file with the new content is not.
        let waits = entry.after.is_some()
            && read_edited_path(&dir, &temporary_names.swap_file)?.digest() == entry.after;
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

/// Finishes a file with its old content, or one that was set aside.
fn finish(
    root: &Root,
    temporary_names: &TemporaryNames,
    entry: &JournalEntry,
) -> Result<(), Fault> {
    let dir = root.open_directory(entry.parent())?;
    if entry.before.is_some()
        && entry.after.is_some()
        && read_edited_path(&dir, entry.name())?.is_nothing()
    {
        return swap::move_to_free(&dir, &temporary_names.swap_file, entry.name());
    }
    swap::put(&dir, temporary_names, entry)?;
    Ok(dir.sync()?)
}

/// How far each file had come.
fn states(root: &Root, journal: &Journal) -> Result<Vec<EntryState>, TreeEditError> {
    let state = |(index, entry)| state(root, journal, &journal.names(index), entry);
    journal.entries.iter().enumerate().map(state).collect()
}

fn state(
    root: &Root,
    journal: &Journal,
    temporary_names: &TemporaryNames,
    entry: &JournalEntry,
) -> Result<EntryState, TreeEditError> {
    let dir = match root.open_directory(entry.parent()) {
        Ok(dir) => dir,
        // The change creates the directory itself, and removes it again.
        Err(Errno::NOENT) if is_to_be_made(root, journal, entry) => return Ok(EntryState::Bare),
        // A directory that is empty now was removed with the last file of it.
        Err(Errno::NOENT) if journal.stage == JournalStage::Clearing && entry.after.is_none() => {
            return Ok(EntryState::Settled);
        }
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(EntryState::Unreachable),
        Err(errno) => return Err(root.fail("open", entry.parent(), errno).into()),
    };
    let at =
        |name: &Path| read_edited_path(&dir, name).map_err(|errno| dir.fail("read", name, errno));
    let (target, spare, old) = (
        at(entry.name())?,
        at(&temporary_names.swap_file)?,
        at(&temporary_names.old)?,
    );
    let is_new = entry.after.is_some() && target.digest() == entry.after;
    let Some(before) = entry.before else {
        return Ok(if !spare.is_nothing() {
            let waits = target.is_nothing() && spare.digest() == entry.after;
            if waits {
                EntryState::Waits
            } else {
                EntryState::Foreign
            }
        } else if is_new {
            EntryState::Changed
        } else if target.is_nothing() {
            EntryState::Bare
        } else {
            EntryState::Unclear
        });
    };
    let waits = entry.after.is_none() || spare.digest() == entry.after;
    let is_old = |look: &PathKind| look.digest() == Some(before);
    let is_aside = is_old(&old) && target.is_nothing() && entry.after.is_some();
    Ok(if is_old(&target) || is_aside {
        match waits {
            true => EntryState::Waits,
            false if spare.is_nothing() => EntryState::Bare,
            false if is_aside => EntryState::Bare,
            false => EntryState::Foreign,
        }
    } else if is_old(&spare) || is_old(&old) {
        EntryState::Changed
    } else if entry.after.is_some() && waits {
        EntryState::Foreign
    } else if is_new || (entry.after.is_none() && target.is_nothing()) {
        EntryState::Settled
    } else {
        EntryState::Unclear
    })
}

/// Returns whether the change creates this file's directory inside an existing one.
fn is_to_be_made(root: &Root, journal: &Journal, entry: &JournalEntry) -> bool {
    let is_made = |path: &Path| {
        journal
            .made
            .iter()
            .any(|new_path| Path::new(new_path.as_str()) == path)
    };
    is_made(entry.parent())
        && entry
            .parent()
            .ancestors()
            .find(|path| !is_made(path))
            .is_some_and(|path| root.open_directory(path).is_ok())
}
