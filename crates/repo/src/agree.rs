//! Compares the tree that git made of a patch with the patch's text.
//!
//! Crucible's own parser reads the text and applies each hunk exactly at its stated position. git is more
//! generous: it tries other positions, follows settings, and accepts patch forms that no one reviews. If the
//! resulting trees differ, the patch is refused, whichever is right.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crucible_model::{Code, Finding, RepoPath, Verdict};
use crucible_patch::{Change, Content, FileMode, FilePatch, ObjectNames, Patch, Proposal, apply};

use crate::attributes::CheckoutConversion;
use crate::oid::Oid;
use crate::tree::{ProducedChanges, ProducedTree, TreeChange};

const CODE: Code = Code::new("repo-tree-differs");

/// What a path should be after the patch.
struct Expected<'a> {
    /// The previous mode in the text.
    old_mode: Option<FileMode>,
    /// The mode in the text; `None` if not stated.
    mode: Option<FileMode>,
    /// The content; `None` if the text does not show it.
    content: Option<&'a [u8]>,
    /// The names of its objects, if the text shows these instead of the content.
    objects: Option<&'a ObjectNames>,
}

/// Compares `produced` with the patch `raw`. `patch` is `raw` parsed, and `before` has the previous contents
/// of every file that it reads.
#[must_use]
pub fn check_agreement(
    raw: &[u8],
    patch: &Patch,
    before: &BTreeMap<RepoPath, Vec<u8>>,
    produced: &ProducedTree,
) -> Verdict {
    let ProducedTree {
        changes,
        after,
        checked_out,
        ..
    } = produced;
    compare(
        raw,
        patch,
        before,
        &GitResult {
            changes,
            after,
            checked_out,
        },
    )
}

/// The same when only the changes are known.
#[must_use]
pub fn check_changes_agreement(
    raw: &[u8],
    patch: &Patch,
    before: &BTreeMap<RepoPath, Vec<u8>>,
    produced: &ProducedChanges,
) -> Verdict {
    let ProducedChanges {
        changes,
        after,
        checked_out,
        ..
    } = produced;
    compare(
        raw,
        patch,
        before,
        &GitResult {
            changes,
            after,
            checked_out,
        },
    )
}

/// What git made of the patch.
struct GitResult<'a> {
    changes: &'a [TreeChange],
    after: &'a BTreeMap<Oid, Vec<u8>>,
    checked_out: &'a CheckoutConversion,
}

fn compare(
    raw: &[u8],
    patch: &Patch,
    before: &BTreeMap<RepoPath, Vec<u8>>,
    produced: &GitResult<'_>,
) -> Verdict {
    let mut verdict = Verdict::default();
    let after = match apply(&Proposal::Diff(raw.to_vec()), before) {
        Ok(after) => after,
        Err(error) => {
            let hint = format!(
                "git can apply the patch but Crucible cannot: {error}; create the patch again"
            );
            verdict.push(Finding::error(CODE, "the patch", hint));
            return verdict;
        }
    };
    for file in patch
        .files
        .iter()
        .filter(|file| file.content != Content::Text && whole_names(file).is_none())
    {
        verdict.push(Finding::error(
            Code::new("repo-tree-unverifiable"),
            file.path.to_string(),
            "its content is binary and the patch does not give full object names; create it with `git diff --binary`",
        ));
    }

    let mut expected: BTreeMap<&RepoPath, Option<Expected<'_>>> = BTreeMap::new();
    for file in &patch.files {
        if let Change::Rename { from } = &file.change {
            expected.entry(from).or_insert(None);
        }
        let becomes = (file.change != Change::Delete).then(|| Expected {
            old_mode: file.old_mode,
            mode: file.new_mode.or_else(|| stated_mode(file)),
            content: after.get(&file.path).map(Vec::as_slice),
            objects: whole_names(file),
        });
        expected.insert(&file.path, becomes);
    }
    let found: BTreeMap<PathBuf, &TreeChange> = produced
        .changes
        .iter()
        .map(|change| (change.path.clone(), change))
        .collect();
    for (path, becomes) in &expected {
        let change = found.get(&PathBuf::from(path.as_str())).copied();
        if let Some(hint) = difference(path, becomes.as_ref(), change, before, produced) {
            verdict.push(Finding::error(CODE, path.to_string(), hint));
        }
    }
    let named: BTreeSet<&[u8]> = expected
        .keys()
        .map(|path| path.as_str().as_bytes())
        .collect();
    for change in produced.changes {
        if !named.contains(change.path.as_os_str().as_bytes()) {
            let subject = change.path.to_string_lossy().into_owned();
            verdict.push(Finding::error(
                CODE,
                subject,
                "the tree changes it but the patch does not name it",
            ));
        }
    }
    verdict.merge(attributes(produced));
    verdict
}

/// The bytes that were judged have to be the bytes that are tried, and those the bytes that land.
fn attributes(produced: &GitResult<'_>) -> Verdict {
    let code = || Code::new("patch-attribute");
    let mut verdict = Verdict::default();
    for (path, attribute) in &produced.checked_out.refused {
        let hint = format!(
            "git attributes set {attribute}, so the work tree would differ from the checked content; change this file by hand"
        );
        verdict.push(Finding::error(code(), path.to_string_lossy(), hint));
    }
    let says_attributes = |path: &Path| path.file_name() == Some(OsStr::new(".gitattributes"));
    let settings = produced
        .changes
        .iter()
        .filter(|change| says_attributes(&change.path));
    for setting in settings.filter(|_| produced.changes.len() > 1) {
        let hint = "it would change how git checks out the other files of this patch; change it in a separate patch";
        verdict.push(Finding::error(code(), setting.path.to_string_lossy(), hint));
    }
    verdict
}

/// Returns the object names of a binary file, if the patch has its content and states full names as git does.
fn whole_names(file: &FilePatch) -> Option<&ObjectNames> {
    let is_whole = |name: &str| matches!(name.len(), 40 | 64);
    let names = file
        .objects
        .as_ref()
        .filter(|names| is_whole(&names.old) && is_whole(&names.new));
    names.filter(|_| file.content == Content::Binary)
}

/// A file created without a mode is a regular file.
fn stated_mode(file: &FilePatch) -> Option<FileMode> {
    (file.change == Change::Create).then_some(FileMode::Regular)
}

/// Returns how the tree's change of `path` differs from the text.
fn difference(
    path: &RepoPath,
    becomes: Option<&Expected<'_>>,
    change: Option<&TreeChange>,
    before: &BTreeMap<RepoPath, Vec<u8>>,
    produced: &GitResult<'_>,
) -> Option<String> {
    let Some(becomes) = becomes else {
        let is_gone = change.is_some_and(|change| change.new_oid.is_none());
        return (!is_gone).then(|| "the patch removes it but the tree still has it".to_owned());
    };
    let Some(change) = change else {
        // A patch may write existing content; the tree then has no change.
        let has_content = |content| before.get(path).is_some_and(|old| old == content);
        let keeps_mode = becomes.mode.is_none() || becomes.mode == becomes.old_mode;
        let is_same = becomes.content.is_some_and(has_content) && keeps_mode;
        return (!is_same).then(|| "the patch changes it but the tree does not".to_owned());
    };
    let Some(new_oid) = &change.new_oid else {
        return Some("the patch keeps it but the tree does not have it".to_owned());
    };
    if let Some(mode) = becomes.mode.filter(|mode| change.new_mode != Some(*mode)) {
        return Some(format!(
            "its mode is {:?} in the tree and {mode:?} in the patch",
            change.new_mode
        ));
    }
    if becomes.old_mode.is_some()
        && change.old_mode.is_some()
        && becomes.old_mode != change.old_mode
    {
        return Some(format!(
            "its mode was {:?}, unlike the patch says",
            change.old_mode
        ));
    }
    if becomes.mode.is_none() && change.old_mode.is_some() && change.old_mode != change.new_mode {
        return Some("its mode changes in the tree but not in the patch".to_owned());
    }
    // An object name of zeros means no object.
    let is = |name: &str, oid: Option<&Oid>| match oid {
        Some(oid) => oid.as_str() == name,
        None => name.bytes().all(|byte| byte == b'0'),
    };
    let was =
        |names: &ObjectNames| change.old_oid.is_none() || is(&names.old, change.old_oid.as_ref());
    if becomes
        .objects
        .is_some_and(|names| !is(&names.new, Some(new_oid)) || !was(names))
    {
        return Some("its object in the tree differs from the one the patch names".to_owned());
    }
    content_differs(becomes, new_oid, produced)
        .then(|| "its content in the tree differs from the result of the patch".to_owned())
}

fn content_differs(becomes: &Expected<'_>, new_oid: &Oid, produced: &GitResult<'_>) -> bool {
    // Content that the text does not show has its own finding.
    becomes
        .content
        .is_some_and(|content| produced.after.get(new_oid).map(Vec::as_slice) != Some(content))
}
