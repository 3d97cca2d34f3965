//! `crucible patch apply`: the patch gate, and then the judged bytes in the user's work tree.
//!
//! An obstacle to an accepted patch is a finding too: a file that the user changed, or one that cannot be
//! written. An error means that judging was impossible.

use std::path::Path;

use crucible_host::fs::create_dir_all;
use crucible_host::lock::Lock;
use crucible_model::{Code, Digest, Finding, Outcome, Verdict};
use crucible_patch::Policy;
use crucible_repo::{
    AppliedFile, AppliedTree, ApplyError, ChangeStatus, DirtyEntry, DirtyKind, EditRecovery, Git,
    RepoError, TreeEditError,
};
use serde::Serialize;

use super::check::check;
use crate::error::RunError;

/// The directory of journals and locks of work trees, in Crucible's own directory.
const APPLYING: &str = "applying";

const DIRTY: Code = Code::new("patch-file-dirty");
const BLOCKED: Code = Code::new("patch-file-blocked");
const RECOVERED: Code = Code::new("patch-apply-recovered");
const UNFINISHED: Code = Code::new("patch-apply-unfinished");

/// What became of a patch that was to be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedPatch {
    /// Why it was applied or not.
    pub verdict: Verdict,
    /// The files that now match the patch; empty if it was not applied.
    pub files: Vec<AppliedFile>,
}

/// The document of `patch apply`.
#[derive(Serialize)]
pub struct AppliedPatchDocument<'a> {
    schema_version: &'static str,
    verdict: Outcome,
    findings: &'a [Finding],
    files: Vec<ChangedFile<'a>>,
}

#[derive(Serialize)]
struct ChangedFile<'a> {
    path: &'a str,
    change: &'static str,
    /// The digest of its content; `null` if it was removed.
    sha256: Option<String>,
}

impl<'a> From<&'a AppliedFile> for ChangedFile<'a> {
    fn from(file: &'a AppliedFile) -> Self {
        Self {
            path: file.path.as_str(),
            change: AppliedPatch::change_word(file.status),
            sha256: file.after.map(|digest| digest.to_string()),
        }
    }
}

impl AppliedPatch {
    /// Returns the result as JSON.
    #[must_use]
    pub fn document(&self) -> AppliedPatchDocument<'_> {
        AppliedPatchDocument {
            schema_version: "crucible-patch-apply-v1",
            verdict: self.verdict.outcome(),
            findings: self.verdict.findings(),
            files: self.files.iter().map(ChangedFile::from).collect(),
        }
    }

    /// Returns the change of a file in a word.
    #[must_use]
    pub const fn change_word(status: ChangeStatus) -> &'static str {
        match status {
            ChangeStatus::Added => "added",
            ChangeStatus::Modified | ChangeStatus::TypeChanged => "changed",
            ChangeStatus::Deleted => "removed",
        }
    }
}

/// Applies a patch as [`apply_patch`] does, under the lock of the work tree in Crucible's own directory `home`.
///
/// # Errors
///
/// As [`apply_patch`], and if another process applies a patch to this work tree.
pub async fn apply_patch_locked(
    git: &Git,
    policy: &Policy,
    patch: &[u8],
    home: &Path,
) -> Result<AppliedPatch, RunError> {
    let place = home.join(APPLYING);
    create_dir_all(&place)?;
    let tree = Digest::compute(git.top().as_os_str().as_encoded_bytes());
    let lock = place.join(format!("{tree}.lock"));
    let _one_at_a_time = Lock::acquire(&lock, "applying a patch to this work tree")?;
    apply_patch(git, policy, patch, &place.join(format!("{tree}.json"))).await
}

/// Judges a patch as [`check_patch`](super::check_patch) does, and applies it to the work tree if it passes:
/// all of its files or none. `journal` is a file outside the work tree that records the change in progress.
/// An interrupted application of the same patch is first finished or undone. One process at a time may use
/// it.
///
/// # Errors
///
/// [`RunError::RunInsideRepository`] if the journal is in the work tree; fails when the repository or its
/// work tree cannot be read or written.
pub(crate) async fn apply_patch(
    git: &Git,
    policy: &Policy,
    patch: &[u8],
    journal: &Path,
) -> Result<AppliedPatch, RunError> {
    // A record inside the tree itself would not be trustworthy.
    if let Some(place) = journal.parent().filter(|place| is_below(place, git.top())) {
        return Err(RunError::RunInsideRepository {
            path: place.to_owned(),
        });
    }
    let checked = check(git, policy, patch).await?;
    let mut verdict = checked.verdict;
    let Some(changes) = checked.changes else {
        return Ok(AppliedPatch {
            verdict,
            files: Vec::new(),
        });
    };
    match git
        .apply_to_work_tree(&changes, journal, Digest::compute(patch))
        .await
    {
        Ok(AppliedTree { files, recovered }) => {
            let hint = match recovered.outcome {
                EditRecovery::Nothing => None,
                EditRecovery::Finished => {
                    Some("finished applying this patch after an interrupted attempt")
                }
                EditRecovery::RolledBack => {
                    Some("undid an interrupted attempt and applied the patch again")
                }
            };
            if let Some(hint) = hint {
                verdict.push(Finding::warning(RECOVERED, "the patch", hint));
            }
            for file in &files {
                for note in &file.notes {
                    verdict.push(Finding::warning(
                        BLOCKED,
                        file.path.as_str(),
                        note.to_string(),
                    ));
                }
            }
            Ok(AppliedPatch { verdict, files })
        }
        Err(error) => {
            findings(error)?
                .into_iter()
                .for_each(|finding| verdict.push(finding));
            Ok(AppliedPatch {
                verdict,
                files: Vec::new(),
            })
        }
    }
}

fn is_below(place: &Path, top: &Path) -> bool {
    place
        .canonicalize()
        .is_ok_and(|place| place.starts_with(top))
}

/// Returns the obstacle as findings; an error if it is unrelated to the patch.
fn findings(error: ApplyError) -> Result<Vec<Finding>, RunError> {
    Ok(match error {
        ApplyError::Dirty { files } => files.iter().map(dirty).collect(),
        ApplyError::Edit(TreeEditError::Blocked { path, why }) => {
            let hint = format!("{why}; nothing was changed. Fix that, then apply the patch again");
            vec![Finding::error(BLOCKED, path.as_str(), hint)]
        }
        ApplyError::Edit(TreeEditError::Repo(error)) | ApplyError::Repo(error) => match error {
            RepoError::Rewritten { paths } => {
                let hint = "git attributes filter or encode it, so its bytes in the work tree differ from the checked ones; change it by hand";
                let finding = |path: &std::path::PathBuf| {
                    Finding::error(Code::new("patch-attribute"), path.to_string_lossy(), hint)
                };
                paths.iter().map(finding).collect()
            }
            other => return Err(other.into()),
        },
        ApplyError::Edit(
            error @ (TreeEditError::Journal { .. } | TreeEditError::NotRolledBack { .. }),
        ) => {
            let hint = format!(
                "{error}; if an earlier patch was interrupted, apply that patch again first"
            );
            vec![Finding::error(UNFINISHED, "the work tree", hint)]
        }
    })
}

fn dirty(entry: &DirtyEntry) -> Finding {
    let hint = match entry.kind {
        DirtyKind::Changed => {
            "it has uncommitted changes; commit or stash them, then apply the patch again"
        }
        DirtyKind::Unmerged => {
            "it has an unfinished merge; finish the merge, then apply the patch again"
        }
        DirtyKind::Hidden => entry.kind.hidden().unwrap_or_default(),
        DirtyKind::Untracked => {
            "an untracked file is where the patch creates one; move it, then apply the patch again"
        }
    };
    Finding::error(DIRTY, entry.path.to_string_lossy(), hint)
}
