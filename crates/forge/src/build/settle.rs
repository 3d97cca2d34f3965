//! What a build that was killed left, settled by the next step of its skill.
//!
//! How it works: right before both files go to the project a record in Crucible's own directory says which attempt
//! brings which bytes; it
//! goes when the ledger has the end of that attempt. Where one is found later, under the lock, a change that was broken
//! off is finished or
//! taken back first, and then the files tell how far the attempt had come: where both are those of the record it
//! succeeded, and else it was
//! aborted.
//!
//! What always holds: no bytes of an attempt stay in the project that the ledger calls aborted, but where a person went
//! on with them; a
//! record that is of no attempt that runs decides nothing.

use std::path::{Path, PathBuf};

use crucible_host::fs::{FsError, read_regular_up_to, remove_file, write_atomic};
use crucible_host::lock::LockError;
use crucible_ledger::{
    Ledger, LedgerError, Moment, SkillBuildEnd, SkillBuildRow, SkillBuildStatus,
};
use crucible_model::{ByteLimit, Digest, RepoPath, RepoPathError, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::context::ForgeContext;
use crate::name::SkillName;
use crate::paths::SkillPaths;
use crate::project::ForgeProject;
use crate::trust::read_skill_file;
use crate::workspace::{CopyBackError, recover_copy_back};

/// The form of the record.
const FORM: &str = "skill-build-brings.v1";
/// Larger ones are not ours.
const MAX_READ: ByteLimit = ByteLimit(4 << 10);

/// Why what a killed build left cannot be settled.
#[derive(Debug, thiserror::Error)]
pub enum SettleError {
    /// A change that was broken off leads to no end.
    #[error(transparent)]
    CopyBack(#[from] CopyBackError),
    /// The record of it cannot be read or taken away.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The ledger cannot be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A name makes no path.
    #[error(transparent)]
    Path(#[from] RepoPathError),
}

impl From<LockError> for SettleError {
    fn from(error: LockError) -> Self {
        Self::CopyBack(error.into())
    }
}

/// Which attempt brings which bytes to the project.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BuildFiles {
    schema_version: String,
    build: u64,
    started_at: Timestamp,
    skill: Digest,
    test: Digest,
}

/// Records the files that the attempt will copy to the project.
pub(super) fn record_build_files(
    project: &ForgeProject,
    home: &Path,
    paths: &SkillPaths,
    build: &SkillBuildRow,
    [skill, test]: [Digest; 2],
) -> Result<(), CopyBackError> {
    let brings = BuildFiles {
        schema_version: FORM.to_owned(),
        build: build.id,
        started_at: build.started_at,
        skill,
        test,
    };
    let bytes = json!(brings).to_string();
    let place = place(project, home, paths)?;
    write_atomic(&place, bytes.as_bytes()).map_err(|error| CopyBackError::Own(error.into()))
}

/// Removes that record after the ledger has the end of the attempt.
pub(super) fn remove_build_record(project: &ForgeProject, home: &Path, paths: &SkillPaths) {
    // One that stays is of an attempt that runs no more, and the next step passes over it.
    let _stays = place(project, home, paths).map(|place| remove_file(&place));
}

/// Settles what a build of this skill left that was killed or interrupted: no attempt runs any more when this returns,
/// and the ledger says of
/// each what came of it. The caller holds the lock of the skill, and reads its row afterwards. A skill that nobody
/// knows has no builds.
///
/// # Errors
///
/// [`SettleError`], after which the next step tries again.
pub(crate) fn settle_builds(
    world: &ForgeContext<'_>,
    project: &ForgeProject,
    ledger: &mut Ledger,
    name: &SkillName,
) -> Result<(), SettleError> {
    let Some(skill) = ledger.skill(project.key(), name.as_str())? else {
        return Ok(());
    };
    let paths = project.paths(name)?;
    recover_copy_back(project, &world.home, &paths)?;
    let place = place(project, &world.home, &paths)?;
    let brings = read(&place)?;
    for build in ledger.skill_builds(skill.id)? {
        if build.status != SkillBuildStatus::Running {
            continue;
        }
        let came = brings
            .as_ref()
            .filter(|brings| brings.is_of(&build) && brings.is_there(project, &paths));
        let end = match came {
            Some(brings) => SkillBuildEnd::Succeeded {
                skill: brings.skill,
                test: brings.test,
            },
            None => SkillBuildEnd::Aborted(json!({ "interrupted": true })),
        };
        ledger.end_skill_build(&build, Moment::now(world.clock), &end)?;
    }
    match remove_file(&place) {
        Err(error) if !error.is_not_found() => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

impl BuildFiles {
    fn is_of(&self, build: &SkillBuildRow) -> bool {
        self.schema_version == FORM && self.build == build.id && self.started_at == build.started_at
    }

    /// Whether the project holds both files as they were promised.
    fn is_there(&self, project: &ForgeProject, paths: &SkillPaths) -> bool {
        let holds = |path: &RepoPath, digest: Digest| {
            read_skill_file(project, path).is_ok_and(|bytes| Digest::compute(&bytes) == digest)
        };
        holds(&paths.skill, self.skill) && holds(&paths.test, self.test)
    }
}

fn place(project: &ForgeProject, home: &Path, paths: &SkillPaths) -> Result<PathBuf, LockError> {
    Ok(project
        .own_directory(home)?
        .join(format!("{}-{}-brings.json", project.key(), paths.module)))
}

/// The record; nothing if it does not exist or cannot be ours.
fn read(place: &Path) -> Result<Option<BuildFiles>, FsError> {
    match read_regular_up_to(place, MAX_READ) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crucible_host::clock::PinnedClock;
    use crucible_host::env::Environment;
    use crucible_ledger::{NewSkill, NewSkillBuild, SideEffect, SkillStatus};
    use crucible_model::ClockSource;
    use crucible_sandbox::{Sandbox, Strength};

    use super::*;
    use crate::workspace::{BuiltFile, copy_back};

    struct Setup {
        directory: tempfile::TempDir,
        ledger: Ledger,
        build: SkillBuildRow,
    }

    fn moment() -> Moment {
        Moment {
            at: "2026-01-31T09:30:00Z".parse().unwrap(),
            clock: ClockSource::Pinned,
        }
    }

    fn name() -> SkillName {
        "count_it".parse().unwrap()
    }

    impl Setup {
        /// A skill with an attempt that runs.
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            crucible_host::fs::create_dir_all(
                &directory.path().join("project/src/skillset/skills"),
            )
            .unwrap();
            crucible_host::fs::create_dir_all(&directory.path().join("project/tests")).unwrap();
            let mut ledger = Ledger::open(&directory.path().join("ledger.db")).unwrap();
            let new = NewSkill {
                moment: moment(),
                project: Digest::compute(b"project"),
                name: "count_it".to_owned(),
                description: "Counts.".to_owned(),
                io_schema: json!({ "input": {}, "output": {} }),
                side_effect: SideEffect::ReadOnly,
                grants: json!({}),
                spec: b"spec".to_vec(),
                held_out: None,
            };
            let proposal = ledger.propose_skill(&new).unwrap();
            let build = begin(&mut ledger, proposal);
            Self {
                directory,
                ledger,
                build,
            }
        }

        fn home(&self) -> PathBuf {
            self.directory.path().join("home")
        }

        fn project(&self) -> ForgeProject {
            let root = self.directory.path().join("project");
            ForgeProject::new(
                root,
                Digest::compute(b"project"),
                "skillset".parse().unwrap(),
            )
        }

        fn files(&self) -> [BuiltFile; 2] {
            let paths = self.project().paths(&name()).unwrap();
            paths.files().map(|path| BuiltFile {
                path: path.clone(),
                bytes: path.as_str().as_bytes().to_vec(),
                digest: Digest::compute(path.as_str().as_bytes()),
                before: None,
            })
        }

        fn promised(&self) {
            let (project, files) = (self.project(), self.files());
            let paths = project.paths(&name()).unwrap();
            let digests = files.each_ref().map(|file| file.digest);
            record_build_files(&project, &self.home(), &paths, &self.build, digests).unwrap();
        }

        fn brought(&self) {
            let project = self.project();
            copy_back(
                &project,
                &self.home(),
                &project.paths(&name()).unwrap(),
                &self.files(),
            )
            .unwrap();
        }

        fn record(&self) -> PathBuf {
            let project = self.project();
            place(&project, &self.home(), &project.paths(&name()).unwrap()).unwrap()
        }

        /// What came of the attempts, and where the skill stands.
        fn settle(&mut self) -> (Vec<SkillBuildStatus>, SkillStatus) {
            let env = Environment::from_pairs::<&str, &str>([], "/");
            let clock = PinnedClock(moment().at);
            let world = ForgeContext {
                env: &env,
                clock: &clock,
                sandbox: Arc::new(Sandbox::new(None, &env)),
                strength: Strength::Off,
                home: self.home(),
                tmp: self.home(),
            };
            let project = self.project();
            settle_builds(&world, &project, &mut self.ledger, &name()).unwrap();
            assert!(!self.record().exists(), "the record stays");
            let builds = self.ledger.skill_builds(self.build.proposal).unwrap();
            let skill = self
                .ledger
                .skill(project.key(), "count_it")
                .unwrap()
                .unwrap();
            (
                builds.iter().map(|build| build.status).collect(),
                skill.status,
            )
        }
    }

    fn begin(ledger: &mut Ledger, proposal: u64) -> SkillBuildRow {
        let new = NewSkillBuild {
            moment: moment(),
            proposal,
            agent: "nobody".to_owned(),
        };
        ledger
            .begin_skill_build::<LedgerError>(&new, |_| Ok(b"packet".to_vec()))
            .unwrap()
    }

    #[test]
    fn killed_attempt_with_both_files_succeeded() {
        let mut setup = Setup::new();
        setup.promised();
        setup.brought();
        assert_eq!(
            setup.settle(),
            (vec![SkillBuildStatus::Succeeded], SkillStatus::Built)
        );
        let build = setup
            .ledger
            .skill_builds(setup.build.proposal)
            .unwrap()
            .pop()
            .unwrap();
        let digests = setup.files().map(|file| Some(file.digest));
        assert_eq!([build.skill, build.test], digests);
        assert_eq!(
            setup.settle(),
            (vec![SkillBuildStatus::Succeeded], SkillStatus::Built)
        );
    }

    #[test]
    fn killed_attempt_without_its_files_is_aborted() {
        let aborted = (vec![SkillBuildStatus::Aborted], SkillStatus::Proposed);
        let mut setup = Setup::new();
        assert_eq!(setup.settle(), aborted);
        let mut setup = Setup::new();
        setup.promised();
        assert_eq!(setup.settle(), aborted);
        // Somebody went on with one of them.
        let mut setup = Setup::new();
        setup.promised();
        setup.brought();
        write_atomic(
            &setup.project().root().join(setup.files()[1].path.as_str()),
            b"mine\n",
        )
        .unwrap();
        assert_eq!(setup.settle(), aborted);
    }

    #[test]
    fn unrelated_or_missing_build_record_is_ignored() {
        let mut setup = Setup::new();
        setup.promised();
        setup.brought();
        let next = begin(&mut setup.ledger, setup.build.proposal);
        let both = vec![SkillBuildStatus::Aborted; 2];
        assert_eq!(setup.settle(), (both, SkillStatus::Proposed));
        assert_ne!(next.id, setup.build.id);
        for text in ["", "{}", "[1", "\u{feff}null"] {
            let mut setup = Setup::new();
            setup.brought();
            write_atomic(&setup.record(), text.as_bytes()).unwrap();
            assert_eq!(
                setup.settle(),
                (vec![SkillBuildStatus::Aborted], SkillStatus::Proposed),
                "{text}"
            );
        }
        // An attempt that ended is not ended again.
        let mut setup = Setup::new();
        setup.promised();
        setup.brought();
        let end = SkillBuildEnd::Failed(json!({ "kind": "UNKNOWN" }));
        setup
            .ledger
            .end_skill_build(&setup.build, moment(), &end)
            .unwrap();
        assert_eq!(
            setup.settle(),
            (vec![SkillBuildStatus::Failed], SkillStatus::Proposed)
        );
    }
}
