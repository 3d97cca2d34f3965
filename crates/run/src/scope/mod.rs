//! What a goal's own words open for a change, by deterministic reading.
//!
//! [`read_goal`] finds the paths, directories, globs, modules and symbols that a goal names, what it renames, deletes or makes, and
//! the dependencies that it changes. [`additions`] says where a change may add without touching what is there: new files beside the
//! changed ones, tests, a line in the changelog. Both are pure functions of the goal, the tracked paths and the texts of the files.
//!
//! What always holds: a mention never opens continuous integration, git's settings, the settings of a test runner or a hidden
//! place; a test file that a goal mentions may only be added to; what a goal says to leave alone is denied. A text that is
//! pasted into a goal names sources, but makes, deletes and renames nothing and opens no manifest.

mod additions;
mod mention;
mod named;
mod names;
mod tree;

use std::collections::BTreeSet;

use crucible_model::{
    Code, Denial, Finding, PathPrefix, PathRole, PathRoles, RepoPath, denied_place,
};
use crucible_pack::FileClass;
use crucible_patch::is_test_path;

use crate::may_drop::removable_definitions;

pub(crate) use additions::additions;
pub use named::NamedPlaceError;
pub(crate) use named::{NamedPaths, named_places};
pub(crate) use tree::{Expansion, Tree, expand};

pub(crate) use mention::own_words;
use mention::{Mention, mentions};

/// The most files that a rename may touch by the goal's words alone.
pub(crate) const MAX_RENAMED: usize = 50;

/// The most files that one glob, or one name without its directory, stands for.
pub(crate) const MAX_MATCHES: usize = 50;

/// How many different words of a goal are looked up.
const MAX_NAMED: usize = 256;

/// More files of one name than this, and the goal does not say which of them it means.
const MAX_SAME_NAME: usize = 5;

/// More files than this that define a symbol, and the symbol does not say which of them it means.
const MAX_DEFINING: usize = 4;

const TOO_WIDE: Code = Code::new("plan-goal-too-wide");

/// What a goal opens.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct GoalScope {
    /// Files that may change, in the order in which the goal names them.
    pub(crate) files: Vec<RepoPath>,
    /// Directories in which everything may change that is not protected.
    pub(crate) directories: Vec<PathPrefix>,
    /// Files that may come or go, and manifests whose protection is lifted.
    pub(crate) names: Vec<RepoPath>,
    /// Test files that the goal names: they are shown, and may be added to.
    pub(crate) tests: Vec<RepoPath>,
    /// What the goal says to leave alone.
    pub(crate) denied: Vec<PathPrefix>,
    /// The old and the new name of each symbol that the goal renames.
    pub(crate) renames: Vec<(String, String)>,
    /// What the goal names and what is more than a plan takes.
    pub(crate) problems: Vec<Finding>,
    /// Whether the goal says where the change goes: by the path of a source, a directory, a glob or a rename. A symbol says where
    /// something is defined, and a manifest what the change is about; neither says which files change with it.
    pub(crate) is_certain: bool,
}

impl GoalScope {
    /// The files that a model should be shown before any others.
    pub(crate) fn priority_files(&self) -> impl Iterator<Item = &RepoPath> {
        let written = |path: &&RepoPath| FileClass::from_path(path) != FileClass::Generated;
        self.files.iter().chain(&self.tests).filter(written)
    }

    /// Whether the goal says to leave this file alone.
    pub(crate) fn denies(&self, path: &RepoPath) -> bool {
        self.denied.iter().any(|place| place.denies(path))
    }

    fn open(&mut self, path: &RepoPath) {
        match is_test_path(path) {
            _ if is_guarded(path) => {}
            true => push(&mut self.tests, path),
            false => push(&mut self.files, path),
        }
    }

    fn lift(&mut self, path: &RepoPath) {
        if !is_guarded(path) {
            push(&mut self.names, path);
            push(&mut self.files, path);
        }
    }
}

/// Reads a goal on a tree.
pub(crate) fn read_goal(goal: &str, tree: &Tree<'_>) -> GoalScope {
    let own = own_words(goal);
    let (mut mentions, own_mentions) = (mentions(goal), mentions(own));
    for pasted in mentions.iter_mut().skip(own_mentions.len()) {
        (pasted.is_created, pasted.is_changed, pasted.is_deleted) = (false, false, false);
    }
    let mut scope = GoalScope::default();
    let mut symbols = Vec::new();
    let mut seen = BTreeSet::new();
    for mention in mentions.iter().filter(|mention| mention.may_name()) {
        if seen.len() == MAX_NAMED {
            break;
        }
        if (seen.insert(mention.text.as_str()) || mention.is_denied)
            && !read_place(mention, tree, &mut scope)
            && mention.is_symbol()
        {
            symbols.push(mention.text.as_str());
        }
    }
    for files in names::files_defining(&symbols, tree, MAX_DEFINING) {
        files.iter().for_each(|path| scope.open(path));
    }
    names::dependencies(&own_mentions, tree, &mut scope);
    names::documents(&mentions, tree, &mut scope);
    read_renames(own, &own_mentions, tree, &mut scope);
    let denied = std::mem::take(&mut scope.denied);
    for list in [&mut scope.files, &mut scope.names, &mut scope.tests] {
        list.retain(|path| !denied.iter().any(|place| place.denies(path)));
    }
    scope.directories.retain(|place| !denied.contains(place));
    scope.denied = denied;
    scope
}

/// Reads a mention as a place of the tree; tells whether it is one.
fn read_place(mention: &Mention, tree: &Tree<'_>, scope: &mut GoalScope) -> bool {
    let text = mention.text.as_str();
    if mention.is_glob() {
        return match expand(text, tree) {
            Expansion::Files(files) if files.len() > MAX_MATCHES => {
                scope
                    .problems
                    .push(too_wide(text, files.len(), MAX_MATCHES));
                true
            }
            Expansion::Files(files) => {
                files
                    .iter()
                    .for_each(|path| open_or_deny(mention, path, scope));
                scope.is_certain |= files.iter().any(|path| scope.files.contains(path));
                !files.is_empty()
            }
            Expansion::Directory(_) | Expansion::New(_) | Expansion::NotAPath(_) => false,
        };
    }
    if let Some(place) = tree.directory(text, mention.may_be_directory()) {
        if mention.is_denied {
            scope.denied.push(place);
        } else if !scope.directories.contains(&place) && !is_guarded_place(&place) {
            scope.directories.push(place);
            scope.is_certain = true;
        }
        return true;
    }
    let files = tree.files(text);
    if !files.is_empty() {
        if files.len() <= MAX_SAME_NAME {
            files
                .iter()
                .for_each(|path| open_or_deny(mention, path, scope));
            let is_certain = |path: &RepoPath| scope.files.contains(path) && is_source(path);
            scope.is_certain |= matches!(files.as_slice(), [only] if is_certain(only));
        }
        return true;
    }
    if mention.is_denied {
        return false;
    }
    if mention.is_created
        && let Ok(path) = text.parse::<RepoPath>()
        && mention.is_path()
    {
        if !is_test_path(&path) {
            scope.lift(&path);
        }
        return true;
    }
    let module = tree.module(text);
    module.iter().for_each(|path| scope.open(path));
    !module.is_empty()
}

fn open_or_deny(mention: &Mention, path: &RepoPath, scope: &mut GoalScope) {
    let is_manifest = matches!(
        FileClass::from_path(path),
        FileClass::Manifest | FileClass::Generated
    );
    if mention.is_denied {
        scope.denied.push(path.clone().into());
    } else if mention.is_deleted && !is_test_path(path) {
        scope.lift(path);
    } else if !is_manifest {
        scope.open(path);
    } else if mention.is_changed {
        scope.lift(path);
    }
}

/// A renamed symbol changes in every file that mentions it.
fn read_renames(goal: &str, mentions: &[Mention], tree: &Tree<'_>, scope: &mut GoalScope) {
    let dropped: BTreeSet<String> = removable_definitions(goal).into_iter().collect();
    for (old, new) in mention::renames(mentions)
        .into_iter()
        .filter(|(old, _)| dropped.contains(old))
    {
        let speaking = names::files_mentioning(&old, tree);
        if speaking.len() > MAX_RENAMED {
            scope
                .problems
                .push(too_wide(&old, speaking.len(), MAX_RENAMED));
            continue;
        }
        speaking.iter().for_each(|path| scope.open(path));
        scope.is_certain = true;
        scope.renames.push((old, new));
    }
}

fn too_wide(what: &str, count: usize, most: usize) -> Finding {
    let hint = format!(
        "The goal's words open at most {most} files, and these are {count}: name the files with --file, or take \
         one directory after the other."
    );
    Finding::error(TOO_WIDE, what, hint)
}

fn is_source(path: &RepoPath) -> bool {
    FileClass::from_path(path) == FileClass::Source
}

/// Places that no mention opens: only --file and --allow do.
pub(crate) fn is_guarded(path: &RepoPath) -> bool {
    let roles = PathRoles::from_path(path);
    [PathRole::Ci, PathRole::GitSetting, PathRole::TestSettings]
        .iter()
        .any(|role| roles.has(*role))
        || denied_place(path, Denial::Changed).is_some()
        || path.segments().any(|name| name.starts_with('.'))
        || path.file_name() == "conftest.py"
}

fn is_guarded_place(place: &PathPrefix) -> bool {
    place
        .to_string()
        .parse::<RepoPath>()
        .is_ok_and(|path| is_guarded(&path))
}

/// Whether a name can stand in a plan's line and in a question without being taken for something else. Other files may
/// change when the operator names them.
pub(crate) fn is_unambiguous_name(path: &RepoPath) -> bool {
    path.as_str()
        .chars()
        .all(|c| c.is_alphanumeric() || "/._-+@~".contains(c))
}

/// Whether a change needs a person's word to touch a file: tests, manifests, lock files, continuous integration and git's settings.
pub(crate) fn is_protected(path: &RepoPath) -> bool {
    use crucible_patch::{is_ci, is_git_setting, is_lockfile, is_manifest, is_test_path};
    is_test_path(path)
        || is_manifest(path)
        || is_ci(path)
        || is_lockfile(path)
        || is_git_setting(path)
}

fn push(list: &mut Vec<RepoPath>, path: &RepoPath) {
    if !list.contains(path) {
        list.push(path.clone());
    }
}

#[cfg(test)]
mod tests;
