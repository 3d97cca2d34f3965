//! The available workflows: the embedded ones, and the project's own in `.crucible/workflows/*.toml`.
//!
//! A project's own workflow replaces the embedded one with the same id, and a note says so. Only files
//! tracked by git count: a run starts from a commit, and its replay must find the same workflows in it.
//!
//! Invariants: one workflow fits every goal ([`Workflows::fallback`]); ids are unique; links are not
//! followed.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crucible_host::fs::{FsError, read_regular_up_to};
use crucible_model::{ByteLimit, Code, Finding, RepoPath};
use crucible_patch::FileMode;
use crucible_repo::TrackedFile;

use super::workflow::{MAX_BYTES, Workflow, WorkflowFault};

const REPLACED: Code = Code::new("find-workflow-replaced");
const UNTRACKED: Code = Code::new("find-workflow-untracked");

/// The directory of a project's own workflows.
pub(crate) const WORKFLOWS_DIR: &str = ".crucible/workflows";
/// The most workflows of a project.
const MAX_OWN: usize = 64;
/// Maximum number of directory entries that are read.
const MAX_ENTRIES: usize = 4096;

/// The embedded workflow that fits every goal.
const FALLBACK: (&str, &str) = (
    "general-change.toml",
    include_str!("../../workflows/general-change.toml"),
);

/// All other embedded workflows.
const DEFAULTS: [(&str, &str); 9] = [
    (
        "add-option.toml",
        include_str!("../../workflows/add-option.toml"),
    ),
    (
        "add-test.toml",
        include_str!("../../workflows/add-test.toml"),
    ),
    (
        "bump-dependency.toml",
        include_str!("../../workflows/bump-dependency.toml"),
    ),
    (
        "fix-defect.toml",
        include_str!("../../workflows/fix-defect.toml"),
    ),
    (
        "fix-failing-test.toml",
        include_str!("../../workflows/fix-failing-test.toml"),
    ),
    (
        "refactor.toml",
        include_str!("../../workflows/refactor.toml"),
    ),
    (
        "remove-code.toml",
        include_str!("../../workflows/remove-code.toml"),
    ),
    (
        "rename-definition.toml",
        include_str!("../../workflows/rename-definition.toml"),
    ),
    (
        "write-document.toml",
        include_str!("../../workflows/write-document.toml"),
    ),
];

/// Where a workflow comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkflowOrigin {
    /// It is embedded.
    Embedded,
    /// It is the project's own.
    Project,
    /// A project's own workflow that replaces an embedded one.
    ProjectInstead,
}

/// Every workflow that a run can choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflows {
    fallback: (Workflow, WorkflowOrigin),
    others: BTreeMap<String, (Workflow, WorkflowOrigin)>,
    notes: Vec<Finding>,
}

/// Why the project's own workflows are refused.
#[derive(Debug, thiserror::Error)]
pub enum WorkflowsError {
    /// One of them cannot be understood.
    #[error("{}: {fault}", path.display())]
    Fault {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        fault: WorkflowFault,
    },
    /// Two of them have one id.
    #[error("{}: its id `{id}` is also the id of {}; change one of them", path.display(), other.display())]
    Twice {
        /// Which file.
        path: PathBuf,
        /// The file before.
        other: PathBuf,
        /// Their id.
        id: String,
    },
    /// It fits no goal at all.
    #[error("{}: no condition under [fits]; set `kinds` or `words`", path.display())]
    FitsNothing {
        /// Which file.
        path: PathBuf,
    },
    /// Something there is no plain file.
    #[error("{}: {what}; workflows must be regular files in {WORKFLOWS_DIR}", path.display())]
    NotPlain {
        /// Which file or directory.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// There are too many.
    #[error("{}: it has more than {most} {what}; remove some", path.display())]
    TooMany {
        /// The directory.
        path: PathBuf,
        /// How many are taken.
        most: usize,
        /// Of what.
        what: &'static str,
    },
    /// A file could not be read, or is too large.
    #[error(transparent)]
    Fs(#[from] FsError),
}

impl Workflows {
    /// Returns the embedded workflows and these files of the project, in any order.
    ///
    /// # Errors
    ///
    /// Names the first refused file: an invalid one, one with a duplicate id, or one without a condition.
    pub(crate) fn with_project_workflows(
        own: Vec<(PathBuf, Vec<u8>)>,
    ) -> Result<Self, WorkflowsError> {
        let read = |path: PathBuf, bytes: &[u8]| match Workflow::parse(bytes) {
            Ok(workflow) => Ok((path, workflow)),
            Err(fault) => Err(WorkflowsError::Fault { path, fault }),
        };
        let embedded = |(name, text): (&str, &str)| {
            Ok::<_, WorkflowsError>(read(name.into(), text.as_bytes())?.1)
        };
        let mut known = Self {
            fallback: (embedded(FALLBACK)?, WorkflowOrigin::Embedded),
            others: BTreeMap::new(),
            notes: Vec::new(),
        };
        for default in DEFAULTS {
            let workflow = embedded(default)?;
            known
                .others
                .insert(workflow.id.clone(), (workflow, WorkflowOrigin::Embedded));
        }
        let mut seen: BTreeMap<String, PathBuf> = BTreeMap::new();
        let mut own = own;
        own.sort();
        for (path, bytes) in own {
            let (path, workflow) = read(path, &bytes)?;
            if let Some(other) = seen.insert(workflow.id.clone(), path.clone()) {
                return Err(WorkflowsError::Twice {
                    path,
                    other,
                    id: workflow.id,
                });
            }
            known.add(path, workflow)?;
        }
        Ok(known)
    }

    /// Reads the embedded workflows and those of the repository at `top`. Tracked files must equal the
    /// commit, which a run checks.
    ///
    /// # Errors
    ///
    /// As [`Workflows::with_project_workflows`], and for links, files that are too large and directories with too many
    /// entries.
    pub fn read(top: &Path, tracked: &[TrackedFile]) -> Result<Self, WorkflowsError> {
        let names = names_in(top)?;
        let mut own = Vec::new();
        let mut untracked = Vec::new();
        for name in names {
            let path = Path::new(WORKFLOWS_DIR).join(name);
            let place = top.join(&path);
            let is_file = place.symlink_metadata().is_ok_and(|found| found.is_file());
            match tracked
                .iter()
                .find(|file| file.path == path)
                .map(|file| file.mode)
            {
                Some(FileMode::Symlink) => {
                    return Err(WorkflowsError::NotPlain {
                        path,
                        what: "it is a link",
                    });
                }
                Some(_) if !is_file => {
                    return Err(WorkflowsError::NotPlain {
                        path,
                        what: "it is not a regular file",
                    });
                }
                Some(_) => own.push((
                    path,
                    read_regular_up_to(&place, ByteLimit(MAX_BYTES as u64))?,
                )),
                None => untracked.push(path),
            }
        }
        let mut known = Self::with_project_workflows(own)?;
        let hint = "It is ignored because git does not track it. Add it to git and commit it.";
        known.notes.extend(
            untracked
                .iter()
                .map(|path| Finding::warning(UNTRACKED, path.display().to_string(), hint)),
        );
        Ok(known)
    }

    /// The workflow that fits every goal.
    #[must_use]
    pub fn fallback(&self) -> &Workflow {
        &self.fallback.0
    }

    /// Returns the workflow of this id, and its origin.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<(&Workflow, WorkflowOrigin)> {
        self.iter().find(|(workflow, _)| workflow.id == id)
    }

    /// Every workflow: the one that fits every goal first, then the others by their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&Workflow, WorkflowOrigin)> {
        std::iter::once(&self.fallback)
            .chain(self.others.values())
            .map(|(workflow, origin)| (workflow, *origin))
    }

    /// Returns the notes: replaced embedded workflows and ignored files.
    #[must_use]
    pub fn notes(&self) -> &[Finding] {
        &self.notes
    }

    fn add(&mut self, path: PathBuf, workflow: Workflow) -> Result<(), WorkflowsError> {
        let is_fallback = workflow.id == self.fallback.0.id;
        if !is_fallback && workflow.fits.kinds.is_empty() && workflow.fits.words.is_empty() {
            return Err(WorkflowsError::FitsNothing { path });
        }
        let origin = if is_fallback || self.others.contains_key(&workflow.id) {
            let hint = format!("It replaces the embedded workflow `{}`.", workflow.id);
            self.notes
                .push(Finding::info(REPLACED, path.display().to_string(), hint));
            WorkflowOrigin::ProjectInstead
        } else {
            WorkflowOrigin::Project
        };
        if is_fallback {
            self.fallback = (workflow, origin);
        } else {
            self.others.insert(workflow.id.clone(), (workflow, origin));
        }
        Ok(())
    }
}

/// Returns the names of the workflow files below `top`, sorted; empty if the project has no such directory.
fn names_in(top: &Path) -> Result<Vec<String>, WorkflowsError> {
    let mut place = top.to_owned();
    for part in Path::new(WORKFLOWS_DIR) {
        place.push(part);
        match place.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(found) if found.is_symlink() => {
                return Err(WorkflowsError::NotPlain {
                    path: place,
                    what: "it is a link",
                });
            }
            // A file of that name is not a directory of workflows, so there are none.
            _ => return Ok(Vec::new()),
        }
    }
    let fail = |source| FsError::Io {
        path: place.clone(),
        action: "list",
        source,
    };
    let mut names = Vec::new();
    for (count, entry) in std::fs::read_dir(&place).map_err(fail)?.enumerate() {
        let entry = entry.map_err(fail)?;
        if count >= MAX_ENTRIES {
            return Err(WorkflowsError::TooMany {
                path: place,
                most: MAX_ENTRIES,
                what: "entries",
            });
        }
        let name = entry.file_name();
        if !name.as_bytes().ends_with(b".toml") {
            continue;
        }
        let Some(name) = name.to_str().filter(|name| is_plain(name)) else {
            let what = "its name has unsupported characters";
            return Err(WorkflowsError::NotPlain {
                path: Path::new(WORKFLOWS_DIR).join(name),
                what,
            });
        };
        names.push(name.to_owned());
    }
    if names.len() > MAX_OWN {
        return Err(WorkflowsError::TooMany {
            path: place,
            most: MAX_OWN,
            what: "workflows",
        });
    }
    names.sort_unstable();
    Ok(names)
}

fn is_plain(name: &str) -> bool {
    !name.chars().any(crucible_model::is_hidden)
        && format!("{WORKFLOWS_DIR}/{name}")
            .parse::<RepoPath>()
            .is_ok()
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests lay out files and links by hand"
)]
mod tests {
    use crucible_repo::Oid;

    use super::*;

    const OWN: &str =
        "id = \"our-way\"\nversion = \"1\"\ntitle = \"Our way\"\n[fits]\nwords = [\"parser\"]\n";

    fn own(name: &str, text: &str) -> (PathBuf, Vec<u8>) {
        (Path::new(WORKFLOWS_DIR).join(name), text.into())
    }

    fn tracked(name: &str, mode: FileMode) -> TrackedFile {
        let oid: Oid = "1".repeat(40).parse().unwrap();
        TrackedFile {
            path: Path::new(WORKFLOWS_DIR).join(name),
            mode,
            oid,
            size: 1,
        }
    }

    #[test]
    fn embedded_workflows_are_valid() {
        let known = Workflows::with_project_workflows(Vec::new()).unwrap();
        let names: Vec<String> = known
            .iter()
            .map(|(workflow, _)| format!("{}.toml", workflow.id))
            .collect();
        let files: Vec<&str> = std::iter::once(FALLBACK)
            .chain(DEFAULTS)
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, files);
        for (workflow, _) in known.iter() {
            assert!(!workflow.advice.steps.is_empty(), "{}", workflow.id);
            let fits = !workflow.fits.kinds.is_empty() && !workflow.fits.words.is_empty();
            assert!(fits || workflow == known.fallback(), "{}", workflow.id);
        }
        assert_eq!(known.notes(), []);
    }

    #[test]
    fn own_workflow_replaces_embedded_with_note() {
        for id in ["fix-defect", "general-change"] {
            let known =
                Workflows::with_project_workflows(vec![own("a.toml", &OWN.replace("our-way", id))])
                    .unwrap();
            let (workflow, origin) = known.get(id).unwrap();
            assert_eq!(
                (workflow.title.as_str(), origin),
                ("Our way", WorkflowOrigin::ProjectInstead)
            );
            assert_eq!(known.notes()[0].code, REPLACED);
            assert!(
                known.notes()[0].subject.ends_with("a.toml") && known.notes()[0].hint.contains(id)
            );
            assert_eq!(known.iter().count(), 10);
        }
        let known = Workflows::with_project_workflows(vec![own("a.toml", OWN)]).unwrap();
        assert_eq!(known.get("our-way").unwrap().1, WorkflowOrigin::Project);
        assert_eq!((known.iter().count(), known.notes().len()), (11, 0));
    }

    #[test]
    fn refused_workflow_names_its_file() {
        let error = |own| {
            Workflows::with_project_workflows(own)
                .unwrap_err()
                .to_string()
        };
        let unknown = error(vec![
            own("a.toml", OWN),
            own("b.toml", &OWN.replace("title", "titel")),
        ]);
        assert!(
            unknown.contains("workflows/b.toml") && unknown.contains("titel"),
            "{unknown}"
        );
        let twice = error(vec![own("b.toml", OWN), own("a.toml", OWN)]);
        assert!(
            twice.contains("b.toml: its id `our-way` is also the id of .crucible/workflows/a.toml"),
            "{twice}"
        );
        let nothing = error(vec![own("a.toml", OWN.split("[fits]").next().unwrap())]);
        assert!(
            nothing.contains("a.toml: no condition under [fits]"),
            "{nothing}"
        );
    }

    #[test]
    fn only_tracked_regular_workflow_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let read = |files: &[TrackedFile]| Workflows::read(dir.path(), files);
        assert_eq!(read(&[]).unwrap().iter().count(), 10);
        let place = dir.path().join(WORKFLOWS_DIR);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("a.toml"), OWN).unwrap();
        std::fs::write(place.join("README.md"), "no workflow").unwrap();
        let loose = read(&[]).unwrap();
        assert_eq!(
            (loose.iter().count(), loose.notes()[0].code.as_str()),
            (10, "find-workflow-untracked")
        );
        let found = read(&[tracked("a.toml", FileMode::Regular)]).unwrap();
        assert!(found.get("our-way").is_some() && found.notes().is_empty());

        std::os::unix::fs::symlink("a.toml", place.join("b.toml")).unwrap();
        let link = [
            tracked("a.toml", FileMode::Regular),
            tracked("b.toml", FileMode::Symlink),
        ];
        assert!(
            read(&link)
                .unwrap_err()
                .to_string()
                .contains("b.toml: it is a link")
        );
        let exchanged = [tracked("b.toml", FileMode::Regular)];
        assert!(
            read(&exchanged)
                .unwrap_err()
                .to_string()
                .contains("b.toml: it is not a regular file")
        );
        std::fs::remove_file(place.join("b.toml")).unwrap();

        std::fs::write(place.join("big.toml"), "#".repeat(MAX_BYTES + 1)).unwrap();
        let big = read(&[tracked("big.toml", FileMode::Regular)]).unwrap_err();
        assert!(
            matches!(&big, WorkflowsError::Fs(FsError::TooLarge { path, .. }) if path.ends_with("big.toml"))
        );
        for number in 0..MAX_OWN {
            std::fs::write(place.join(format!("{number}.toml")), "").unwrap();
        }
        assert!(
            read(&[])
                .unwrap_err()
                .to_string()
                .contains("more than 64 workflows")
        );
    }

    #[test]
    fn linked_directory_and_odd_names_are_refused() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(dir.path().join(".crucible")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join(WORKFLOWS_DIR)).unwrap();
        assert!(
            Workflows::read(dir.path(), &[])
                .unwrap_err()
                .to_string()
                .contains("it is a link")
        );
        std::fs::remove_file(dir.path().join(WORKFLOWS_DIR)).unwrap();
        std::fs::create_dir(dir.path().join(WORKFLOWS_DIR)).unwrap();
        std::fs::write(dir.path().join(WORKFLOWS_DIR).join("a\u{202e}b.toml"), OWN).unwrap();
        let error = Workflows::read(dir.path(), &[]).unwrap_err().to_string();
        assert!(error.contains("unsupported characters"), "{error}");
    }
}
