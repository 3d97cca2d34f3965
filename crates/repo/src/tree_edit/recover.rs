//! What a killed process left: finished, or taken back.
//!
//! What is there is told by digests: each of the three names of a file holds the old content, the new one, nothing, or something that
//! somebody else put there. The journal says only whether a file may have been changed, and whether what lies beside the files may have been
//! cleared away. What lay beside a file may be gone although nothing was cleared: whoever tidies up a work tree takes it for rubbish.
//!
//! What always holds: an outcome is told where every file was looked at; where neither way leads to the end, the journal stays, and
//! the files with it.

use std::path::Path;

use crucible_model::{Digest, RepoPath};
use rustix::io::Errno;

use super::journal::{BesideNames, Journal, JournalEntry, JournalStage};
use super::look::{self, Look, glance};
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
    TakenBack,
}

/// What became of a change that a killed process left, and of which files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredEdit {
    /// What became of it.
    pub outcome: EditRecovery,
    /// The files of the change; none where it had come to none of them.
    pub files: Vec<RepoPath>,
    /// Those of them that are neither as they were nor as the change makes them: somebody went on with them.
    pub went_on: Vec<RepoPath>,
}

impl RecoveredEdit {
    /// There was nothing to recover.
    #[must_use]
    pub const fn nothing() -> Self {
        Self { outcome: EditRecovery::Nothing, files: Vec::new(), went_on: Vec::new() }
    }
}

/// Makes the new content of a file from its old one (nothing for a new file), where what waited beside it is gone.
pub type RemadeContent<'a> = &'a dyn Fn(&ClaimedEdit, Option<&[u8]>) -> Option<Vec<u8>>;

/// How far one file had come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryState {
    /// It holds the old content, or that was set aside, and the new one waits.
    Waits,
    /// The same, and what waited is gone.
    Bare,
    /// It was changed, and can be put back; somebody may have gone on from there.
    Changed,
    /// It is as the change makes it, and its old content is gone.
    Settled,
    /// It holds something else, and nothing beside it tells whether the change came before that.
    Unclear,
    /// Somebody else changed it before the change came to it.
    Foreign,
    /// Its directory is not there, or is a link.
    Unreachable,
}

/// Finishes the change that the journal tells of where every file of it is still what it was made for, and takes it back otherwise.
/// A journal whose claim does not agree with what its owner knows changes nothing.
///
/// # Errors
///
/// [`TreeEditError::NotTakenBack`] where neither way leads to the end. Fails when the journal is none or is of another change, or when the
/// file system refuses. The journal stays then for the next time.
pub fn recover_tree_edit(root: &Path, journal: &EditJournal<'_>) -> Result<RecoveredEdit, TreeEditError> {
    recover(&Root::open(root)?, journal)
}

/// [`recover_tree_edit`] by somebody who can make the new contents again.
///
/// # Errors
///
/// As [`recover_tree_edit`].
pub fn recover_tree_edit_remaking(
    root: &Path,
    journal: &EditJournal<'_>,
    remade: RemadeContent<'_>,
) -> Result<RecoveredEdit, TreeEditError> {
    recover_remaking(&Root::open(root)?, journal, remade)
}

/// What a change that may be under way is of; nothing where there is none. Nothing is changed, and nothing of it is believed.
///
/// # Errors
///
/// Fails when there is a journal that cannot be read.
pub fn tree_edit_under_way(journal: &Path) -> Result<Option<EditClaim>, TreeEditError> {
    Ok(Journal::read(journal)?.map(|journal| journal.claim()))
}

/// [`recover_tree_edit`] in a directory that is open.
pub(super) fn recover(root: &Root, place: &EditJournal<'_>) -> Result<RecoveredEdit, TreeEditError> {
    recover_remaking(root, place, &|_, _| None)
}

/// [`recover_tree_edit_remaking`] in a directory that is open.
pub(super) fn recover_remaking(
    root: &Root,
    place: &EditJournal<'_>,
    remade: RemadeContent<'_>,
) -> Result<RecoveredEdit, TreeEditError> {
    let Some(journal) = Journal::read(place.path)? else {
        return Ok(RecoveredEdit::nothing());
    };
    let claim = journal.claim();
    if claim.purpose != place.purpose || !(place.agrees)(&claim) {
        let names: Vec<&str> = claim.edits.iter().map(|edit| edit.path.as_str()).take(NAMED).collect();
        let why = format!("it belongs to a different change than the expected one, of {}", names.join(", "));
        return Err(TreeEditError::Journal { path: place.path.to_owned(), why });
    }
    let states = states(root, &journal)?;
    reachable(&journal, &states, place.path)?;
    let outcome = match journal.stage {
        JournalStage::Staging => EditRecovery::TakenBack,
        JournalStage::Ready => settle(root, &journal, &states, place.path, remade)?,
        JournalStage::GivenUp => {
            take_back(root, &journal)
                .map_err(|paths| stuck(paths, "the change was abandoned".to_owned(), place.path))?;
            EditRecovery::TakenBack
        }
        JournalStage::Clearing => EditRecovery::Finished,
    };
    let (files, went_on) = match journal.stage {
        JournalStage::Staging => (Vec::new(), Vec::new()),
        JournalStage::Ready | JournalStage::GivenUp | JournalStage::Clearing => {
            (journal.paths(), others(root, &journal, outcome)?)
        }
    };
    clear(root, &journal)?;
    Journal::remove(place.path)?;
    Ok(RecoveredEdit { outcome, files, went_on })
}

/// Refuses to go on where a directory is gone or became a link: what lies beside the files in it is out of reach, and so are they.
fn reachable(journal: &Journal, states: &[EntryState], journal_path: &Path) -> Result<(), TreeEditError> {
    let lost = |(_, state): &(&JournalEntry, &EntryState)| **state == EntryState::Unreachable;
    let lost: Vec<&JournalEntry> =
        journal.entries.iter().zip(states).filter(lost).map(|(entry, _)| entry).collect();
    // Where nothing was changed yet, a file that was to go away has nothing beside it.
    let is_of_use = |entry: &&JournalEntry| journal.stage != JournalStage::Staging || entry.after.is_some();
    let paths: Vec<String> = lost.into_iter().filter(is_of_use).map(|entry| entry.path.to_string()).collect();
    match paths.is_empty() {
        true => Ok(()),
        false => {
            Err(stuck(paths, "the directory they are in is gone, or is a link now".to_owned(), journal_path))
        }
    }
}

/// Brings a change to one of its two ends after which files may have been changed and nothing beside them was cleared.
fn settle(
    root: &Root,
    journal: &Journal,
    states: &[EntryState],
    journal_path: &Path,
    remade: RemadeContent<'_>,
) -> Result<EditRecovery, TreeEditError> {
    let is_changed = |state: &EntryState| matches!(state, EntryState::Changed | EntryState::Settled);
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
        .filter(|(index, _)| states.get(*index).is_some_and(|state| is_lost((*index, state))))
        .map(|(_, entry)| entry)
        .collect();
    let has = |wanted: EntryState| states.contains(&wanted);
    if lost.is_empty() && !has(EntryState::Waits) && !has(EntryState::Bare) {
        return Ok(EditRecovery::Finished);
    }
    if !has(EntryState::Settled) {
        let can_go_on = lost.is_empty() && !has(EntryState::Bare);
        let failed = if can_go_on { finish_all(root, journal, states).err() } else { None };
        if can_go_on && failed.is_none() {
            return Ok(EditRecovery::Finished);
        }
        let cause = failed.map_or_else(|| "a file changed meanwhile".to_owned(), |error| error.to_string());
        take_back(root, journal).map_err(|paths| stuck(paths, cause, journal_path))?;
        return Ok(EditRecovery::TakenBack);
    }
    // What cannot be put back leaves only the way forward.
    let settled = || {
        let is_settled = |(_, state): &(&JournalEntry, &EntryState)| **state == EntryState::Settled;
        let settled = journal.entries.iter().zip(states).filter(is_settled);
        settled.map(|(entry, _)| entry.path.to_string()).collect::<Vec<_>>()
    };
    let beside = "their saved copies are gone";
    if let Some(other) = lost.first() {
        let cause =
            format!("{beside}, and the change cannot be finished because {} changed meanwhile", other.path);
        return Err(stuck(settled(), cause, journal_path));
    }
    let failed = match remake_all(root, journal, states, remade) {
        Ok(true) => finish_all(root, journal, states).err(),
        Ok(false) => {
            let cause = format!("{beside}, and so is the new content of the other files");
            return Err(stuck(settled(), cause, journal_path));
        }
        Err(error) => Some(error),
    };
    match failed {
        None => Ok(EditRecovery::Finished),
        Some(error) => Err(stuck(settled(), format!("{beside}, and {error}"), journal_path)),
    }
}

/// Goes on with every file that still waits.
fn finish_all(root: &Root, journal: &Journal, states: &[EntryState]) -> Result<(), TreeEditError> {
    for (index, entry) in journal.entries.iter().enumerate() {
        if matches!(states.get(index), Some(EntryState::Waits | EntryState::Bare)) {
            finish(root, &journal.names(index), entry).map_err(|fault| fault.of(&entry.path, root, entry))?;
        }
    }
    Ok(())
}

/// Puts the new contents beside the files again where they are gone: all, or none and `false` where one cannot be made.
fn remake_all(
    root: &Root,
    journal: &Journal,
    states: &[EntryState],
    remade: RemadeContent<'_>,
) -> Result<bool, TreeEditError> {
    let mut edits = Vec::new();
    for (index, entry) in journal.entries.iter().enumerate() {
        if states.get(index) != Some(&EntryState::Bare) {
            continue;
        }
        let path: &Path = entry.path.as_ref();
        let found = glance(root, path).map_err(|errno| root.fail("read", path, errno))?;
        let old = match &found {
            Look::File(file) => Some(file.bytes.as_slice()),
            Look::Nothing | Look::Link | Look::Other | Look::TooLarge => None,
        };
        let content =
            remade(&entry.claimed(), old).filter(|content| Some(Digest::of(content)) == entry.after);
        let Some(content) = content else { return Ok(false) };
        let (path, before) = (entry.path.clone(), entry.before);
        edits.push((index, TreeEdit { path, before, after: Some(content), new_file: NewFile::Plain }));
    }
    let made = journal.made.iter().filter(|_| !edits.is_empty());
    for made in made {
        root.make_dir(made.as_ref()).map_err(|errno| root.fail("make", made.as_ref(), errno))?;
    }
    for (index, edit) in &edits {
        stage::stage_one(root, &look::check(root, edit)?, journal, *index)?;
    }
    Ok(true)
}

/// The files that are neither what they were nor what the change makes of them.
fn others(root: &Root, journal: &Journal, outcome: EditRecovery) -> Result<Vec<RepoPath>, TreeEditError> {
    let mut others = Vec::new();
    for entry in &journal.entries {
        let path: &Path = entry.path.as_ref();
        let found = match glance(root, path) {
            Ok(found) => found,
            Err(Errno::LOOP) => Look::Link,
            Err(errno) => return Err(root.fail("read", path, errno).into()),
        };
        let wanted = if outcome == EditRecovery::Finished { entry.after } else { entry.before };
        let is_so = if wanted.is_some() { found.digest() == wanted } else { found.is_nothing() };
        if !is_so {
            others.push(entry.path.clone());
        }
    }
    Ok(others)
}

/// The error for files that could not be put back.
pub(super) fn stuck(paths: Vec<String>, cause: String, journal: &Path) -> TreeEditError {
    TreeEditError::NotTakenBack { paths, cause, journal: journal.to_owned() }
}

/// Puts the old content of every file back into its place. `Err` names those where that is not possible.
pub(super) fn take_back(root: &Root, journal: &Journal) -> Result<(), Vec<String>> {
    let mut stuck = Vec::new();
    for (index, entry) in journal.entries.iter().enumerate().rev() {
        if !matches!(put_back(root, journal, &journal.names(index), entry), Ok(true)) {
            stuck.push(entry.path.to_string());
        }
    }
    if stuck.is_empty() { Ok(()) } else { Err(stuck) }
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

/// Puts one file back; tells whether it is what it was, or what somebody else made of it before us.
fn put_back(
    root: &Root,
    journal: &Journal,
    beside: &BesideNames,
    entry: &JournalEntry,
) -> Result<bool, Errno> {
    let dir = match root.below(entry.parent()) {
        // In a directory that is not made yet, or not any more, nothing is to be put back.
        Err(Errno::NOENT) if is_to_be_made(root, journal, entry) => return Ok(true),
        dir => dir?,
    };
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

/// How far each file had come.
fn states(root: &Root, journal: &Journal) -> Result<Vec<EntryState>, TreeEditError> {
    let state = |(index, entry)| state(root, journal, &journal.names(index), entry);
    journal.entries.iter().enumerate().map(state).collect()
}

fn state(
    root: &Root,
    journal: &Journal,
    beside: &BesideNames,
    entry: &JournalEntry,
) -> Result<EntryState, TreeEditError> {
    let dir = match root.below(entry.parent()) {
        Ok(dir) => dir,
        // The change makes the directory itself, and takes it away again.
        Err(Errno::NOENT) if is_to_be_made(root, journal, entry) => return Ok(EntryState::Bare),
        // A directory that is empty now was removed with the last file of it.
        Err(Errno::NOENT) if journal.stage == JournalStage::Clearing && entry.after.is_none() => {
            return Ok(EntryState::Settled);
        }
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(EntryState::Unreachable),
        Err(errno) => return Err(root.fail("open", entry.parent(), errno).into()),
    };
    let at = |name: &Path| glance(&dir, name).map_err(|errno| dir.fail("read", name, errno));
    let (target, spare, old) = (at(entry.name())?, at(&beside.spare)?, at(&beside.old)?);
    let is_new = entry.after.is_some() && target.digest() == entry.after;
    let Some(before) = entry.before else {
        return Ok(if !spare.is_nothing() {
            let waits = target.is_nothing() && spare.digest() == entry.after;
            if waits { EntryState::Waits } else { EntryState::Foreign }
        } else if is_new {
            EntryState::Changed
        } else if target.is_nothing() {
            EntryState::Bare
        } else {
            EntryState::Unclear
        });
    };
    let waits = entry.after.is_none() || spare.digest() == entry.after;
    let is_old = |look: &Look| look.digest() == Some(before);
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

/// Whether the directory of this file is one that the change makes, in one that is there.
fn is_to_be_made(root: &Root, journal: &Journal, entry: &JournalEntry) -> bool {
    let is_made = |path: &Path| journal.made.iter().any(|made| Path::new(made.as_str()) == path);
    is_made(entry.parent())
        && entry.parent().ancestors().find(|path| !is_made(path)).is_some_and(|path| root.below(path).is_ok())
}
