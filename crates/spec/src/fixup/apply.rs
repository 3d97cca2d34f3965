//! Applies a fixup to the project's files: all of them or none.

use std::collections::{BTreeMap, BTreeSet};

use crucible_host::fs::FsError;
use crucible_model::{ByteLimit, Code, Digest, Finding, RepoPath, Verdict};
use crucible_patch::{Proposal, apply, judge, parse};
use crucible_repo::{
    EditNote, EditObstacle, EditRecovery, EditedFile, LinkPolicy, MAX_EDITED_BYTES, NewFile,
    RecoveredEdit, RepoError, TreeEdit, TreeEditError, edit_tree, read_tree_file,
};

use super::places::judge_places;
use super::record::{FixupRecord, recovered, went_on};
use super::{AppliedFixup, FixupChoice, PendingFixup};
use crate::error::SpecError;
use crate::project::SpecProject;
use crate::receipt::FixedFile;
use crate::store::{SpecLock, SpecStore};

type Files = BTreeMap<RepoPath, Vec<u8>>;

/// Applies a fixup. It first completes or rolls back the application of a killed process; if every file is already in its new
/// state, nothing is left to do. A process that takes the spec's lock by force either waits until this is done, or takes it before
/// the first file changes; then no file changes.
///
/// # Errors
///
/// [`SpecError::FixupBlocked`] if a file has changed since the fixup was made, with what to do; [`SpecError::FixupRefused`] if the
/// current policy refuses it. No file is changed then.
pub(crate) fn apply_fixup(
    project: &SpecProject,
    lock: &SpecLock,
    fixup: &PendingFixup,
    choice: &FixupChoice,
) -> Result<AppliedFixup, SpecError> {
    let store = lock.store();
    lock.in_turn(|still_held| apply_in_turn(project, store, fixup, choice, still_held))
}

fn apply_in_turn(
    project: &SpecProject,
    store: &SpecStore,
    fixup: &PendingFixup,
    choice: &FixupChoice,
    still_held: &dyn Fn() -> Result<(), SpecError>,
) -> Result<AppliedFixup, SpecError> {
    let (policy, links) = (&choice.policy, choice.links);
    let advice = Advice {
        spec: store.spec().as_str(),
        links,
    };
    let record = FixupRecord::new(project, store, Some(&fixup.diff), &fixup.files)?;
    let left = record.recover(project).map_err(file_system)?;
    // Every file was changed, whatever happened to one since.
    let is_whole = |left: &RecoveredEdit| {
        left.outcome == EditRecovery::Finished && left.files.len() == fixup.files.len()
    };
    if is_whole(&left) || is_whole(&choice.recovered) {
        // What this command recovered at its beginning has already been reported.
        let recovery_findings = recovered(&left)
            .into_iter()
            .chain(went_on(&choice.recovered));
        return Ok(AppliedFixup {
            files: fixup.files.clone(),
            verdict: Verdict::new(recovery_findings.collect()),
        });
    }

    let patch = parse(&fixup.diff).map_err(|error| refused(error.finding()))?;
    let mut present = Present::default();
    for path in patch.paths() {
        let limit = ByteLimit(MAX_EDITED_BYTES);
        let file = read_tree_file(project.root(), path, links, limit)
            .map_err(|error| advice.error(error))?;
        if let Some(bytes) = file.bytes {
            present.files.insert(path.clone(), bytes);
        }
        present.places.insert(path.clone(), file.real);
    }
    let named: BTreeSet<&str> = fixup.files.iter().map(|file| file.path.as_str()).collect();
    if present
        .places
        .keys()
        .map(RepoPath::as_str)
        .collect::<BTreeSet<_>>()
        != named
    {
        let why = "its diff and its receipt name different files";
        return Err(advice.blocked(why));
    }
    let is_at = |requested: fn(&FixedFile) -> Option<Digest>| {
        fixup
            .files
            .iter()
            .find(|file| present.digest(&file.path) != requested(file))
    };
    if is_at(|file| file.after).is_none() {
        let verdict = Verdict::new(recovered(&left));
        return Ok(AppliedFixup {
            files: fixup.files.clone(),
            verdict,
        });
    }
    if let Some(file) = is_at(|file| file.before) {
        let holds = |file: &&FixedFile| {
            present.digest(&file.path) == file.after && file.before != file.after
        };
        let applied_files: Vec<&str> = fixup
            .files
            .iter()
            .filter(holds)
            .map(|file| file.path.as_str())
            .collect();
        let applied_files = match applied_files.as_slice() {
            [] => String::new(),
            applied_files => format!(
                ", and the fixup is already applied to {}",
                applied_files.join(", ")
            ),
        };
        return Err(advice.blocked(&format!(
            "{} has changed since the fixup was made{applied_files}",
            file.path
        )));
    }

    let after = apply(&Proposal::Diff(fixup.diff.clone()), &present.files)
        .map_err(|error| refused(error.finding()))?;
    let mut verdict = judge(&patch, policy, &present.files, &after);
    if !verdict.passes() {
        return Err(SpecError::FixupRefused { verdict });
    }
    recovered(&left)
        .into_iter()
        .for_each(|finding| verdict.push(finding));
    let is_another = |file: &&FixedFile| digest(&after, &file.path) != file.after;
    if let Some(file) = fixup.files.iter().find(is_another) {
        return Err(advice.blocked(&format!("{} would not match the receipt", file.path)));
    }
    judge_places(&present.places, &present.files, &after, choice)
        .map_err(|verdict| SpecError::FixupRefused { verdict })?;

    let mut edits = Vec::new();
    for (path, place) in &present.places {
        edits.push(TreeEdit {
            path: place.clone(),
            before: present.files.get(path).map(|bytes| Digest::compute(bytes)),
            after: after.get(path).cloned(),
            new_file: NewFile::Plain,
        });
        if place != path {
            let hint =
                format!("it is a link or is reached through one; the changed file is {place}");
            verdict.push(Finding::warning(
                Code::new("fixup-link-followed"),
                path.as_str(),
                hint,
            ));
        }
    }
    still_held()?;
    let edited = record
        .with(project, |journal| {
            edit_tree(project.root(), &edits, journal)
        })
        .map_err(|error| advice.error(error))?;
    edited
        .iter()
        .flat_map(notes)
        .for_each(|finding| verdict.push(finding));
    Ok(AppliedFixup {
        files: fixup.files.clone(),
        verdict,
    })
}

/// The current files of the project.
#[derive(Default)]
struct Present {
    files: Files,
    /// The real path of each, without links.
    places: BTreeMap<RepoPath, RepoPath>,
}

impl Present {
    fn digest(&self, path: &str) -> Option<Digest> {
        digest(&self.files, path)
    }
}

fn digest(files: &Files, path: &str) -> Option<Digest> {
    let path: RepoPath = path.parse().ok()?;
    files.get(&path).map(|bytes| Digest::compute(bytes))
}

fn notes(file: &EditedFile) -> impl Iterator<Item = Finding> {
    file.notes.iter().map(|note| {
        let code = match note {
            EditNote::OtherNames(_) => Code::new("fixup-other-names"),
            EditNote::SpecialBits => Code::new("fixup-special-bits"),
        };
        Finding::warning(code, file.path.as_str(), note.to_string())
    })
}

/// The advice for a fixup that cannot be applied.
struct Advice<'a> {
    spec: &'a str,
    links: LinkPolicy,
}

impl Advice<'_> {
    fn blocked(&self, why: &str) -> SpecError {
        let why = format!(
            "{why}; run `crucible resume {} --phase fixup` for a new one",
            self.spec
        );
        SpecError::FixupBlocked { why }
    }

    fn error(&self, error: TreeEditError) -> SpecError {
        match error {
            TreeEditError::Blocked {
                path,
                why: EditObstacle::Link,
            } if self.links == LinkPolicy::Refuse => {
                let why = format!(
                    "{path}: {}; change that file by hand, or follow links inside the project with --allow-links",
                    EditObstacle::Link
                );
                SpecError::FixupBlocked { why }
            }
            TreeEditError::Blocked { path, why } => match why {
                EditObstacle::Changed | EditObstacle::Missing | EditObstacle::InTheWay => {
                    self.blocked(&format!("{path}: {why}"))
                }
                EditObstacle::Link
                | EditObstacle::LeadsOut
                | EditObstacle::NoFile
                | EditObstacle::TooLarge
                | EditObstacle::OtherMode
                | EditObstacle::ReadOnly
                | EditObstacle::OtherOwner
                | EditObstacle::Twice => SpecError::FixupBlocked {
                    why: format!("{path}: {why}; change that file by hand"),
                },
            },
            other => file_system(other),
        }
    }
}

/// Converts an error of the file system.
pub(super) fn file_system(error: TreeEditError) -> SpecError {
    match error {
        TreeEditError::Repo(RepoError::Fs(error)) => SpecError::Fs(error),
        TreeEditError::Repo(RepoError::Io {
            action,
            path,
            source,
        }) => SpecError::Fs(FsError::Io {
            action,
            path,
            source,
        }),
        error @ (TreeEditError::NotRolledBack { .. } | TreeEditError::Journal { .. }) => {
            SpecError::FixupBrokenOff {
                why: error.to_string(),
            }
        }
        error @ (TreeEditError::Blocked { .. } | TreeEditError::Repo(_)) => {
            SpecError::FixupBlocked {
                why: error.to_string(),
            }
        }
    }
}

fn refused(finding: Finding) -> SpecError {
    SpecError::FixupRefused {
        verdict: Verdict::new(vec![finding]),
    }
}
