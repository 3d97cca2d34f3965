//! The status of a workspace's specs: `workspace-status-json.v1`
//! (`docs/schemas/workspace-status-json.v1.schema.json`).
//!
//! Each spec is summarised from its [`SpecStatus`], and [`WorkspaceSurvey::summary`] counts them.
//! Invariants: a spec that cannot be read is shown with the reason and does not hide the others. A spec
//! on disk that is not listed is named.

use std::collections::BTreeSet;

use crucible_ledger::Ledger;
use crucible_model::{Timestamp, short_line, single_spaced};
use serde::Serialize;

use super::file::WorkspaceFile;
use super::model::{SpecWorkspace, WorkspaceEntry};
use crate::error::{SpecAbsence, SpecError};
use crate::id::SpecId;
use crate::json_output::{NextStep, PhaseCondition, SpecStatus, spec_status};
use crate::phase_id::PhaseId;
use crate::project::SpecProject;
use crate::store::{RecordedReceipts, SpecStore};

/// The schema of [`WorkspaceStatus`].
pub(crate) const WORKSPACE_STATUS_SCHEMA: &str = "workspace-status-json.v1";

/// The most unlisted specs that are named.
const MAX_UNLISTED: usize = 100;

/// The most characters of the reason why a spec cannot be read.
const MAX_LEN: usize = 300;

/// The status of a workspace's specs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkspaceStatus {
    /// [`WORKSPACE_STATUS_SCHEMA`].
    pub schema_version: String,
    /// The workspace's name.
    pub name: String,
    /// The specs, in the order of the file.
    pub specs: Vec<WorkspaceSpec>,
    /// The number of specs in each state; a spec can be in several.
    pub counts: WorkspaceCounts,
    /// Specs on disk that the workspace does not list, by name, the first hundred.
    pub unlisted: Vec<SpecId>,
}

/// The status of a spec in a workspace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkspaceSpec {
    /// Which spec.
    pub spec_id: SpecId,
    /// The tags in `workspace.yaml`.
    pub tags: Vec<String>,
    /// The time of its addition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<Timestamp>,
    /// Its state.
    pub standing: SpecStanding,
    /// The last phase that is done, together with every phase before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<PhaseId>,
    /// Phases whose last run failed.
    pub failed: Vec<PhaseId>,
    /// Phases whose inputs have changed since.
    pub stale: Vec<PhaseId>,
    /// Files that a pending fixup proposes to change.
    pub pending_fixups: u64,
    /// The number of receipts that cannot be trusted, and of artifacts that differ from their receipts.
    pub problems: u64,
    /// The time of its newest receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<Timestamp>,
    /// What to run next; absent if nothing is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The state of a spec: the first of these that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpecStanding {
    /// It cannot be read, a receipt cannot be trusted, or an artifact differs from its receipt.
    Damaged,
    /// The last run of a phase failed.
    Failed,
    /// The inputs of a phase have changed since.
    Stale,
    /// A fixup is pending.
    Pending,
    /// No phase has succeeded yet.
    NotStarted,
    /// Some phases are done.
    InProgress,
    /// All phases are done.
    Done,
}

/// The number of specs in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct WorkspaceCounts {
    /// All listed specs.
    pub specs: u64,
    /// Specs with all phases done.
    pub done: u64,
    /// Specs with a phase whose last run failed.
    pub failed: u64,
    /// Specs with a pending fixup.
    pub pending: u64,
    /// Specs with a phase whose inputs have changed since.
    pub stale: u64,
    /// Specs that cannot be read, or whose receipts or artifacts are invalid.
    pub damaged: u64,
    /// Specs without a phase that succeeded.
    pub not_started: u64,
    /// Specs on disk that are not listed.
    pub unlisted: u64,
}

impl SpecStanding {
    /// The word in the JSON document.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Failed => "failed",
            Self::Stale => "stale",
            Self::Pending => "pending",
            Self::NotStarted => "not_started",
            Self::InProgress => "in_progress",
            Self::Done => "done",
        }
    }
}

/// The state of a workspace's specs.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkspaceSurvey {
    /// The workspace that was surveyed.
    pub workspace: SpecWorkspace,
    /// For each of its specs, in order: its status, nothing if it does not exist on disk, or why it
    /// cannot be read.
    pub statuses: Vec<Result<Option<SpecStatus>, String>>,
    /// Specs on disk that the workspace does not list.
    pub unlisted: BTreeSet<SpecId>,
}

impl WorkspaceFile {
    /// Reads the status of its specs at this time. Of each spec only the files that its status needs are read.
    ///
    /// # Errors
    ///
    /// As [`WorkspaceFile::load`]; a spec that cannot be read is reported in its place.
    pub fn survey(
        &self,
        now: Timestamp,
        ledger: Option<&Ledger>,
    ) -> Result<WorkspaceSurvey, SpecError> {
        let workspace = self.load()?;
        survey(&self.project(), workspace, now, ledger)
    }
}

impl SpecProject {
    /// Reads the status of its specs at this time: those that its workspace lists, or all on disk if it has no workspace.
    ///
    /// # Errors
    ///
    /// As [`WorkspaceFile::survey`].
    pub fn survey(
        &self,
        now: Timestamp,
        ledger: Option<&Ledger>,
    ) -> Result<WorkspaceSurvey, SpecError> {
        if let Some(file) = WorkspaceFile::within(self.root()) {
            return file.survey(now, ledger);
        }
        let name = self.root().file_name().unwrap_or_default();
        let none = SpecWorkspace {
            name: name.to_string_lossy().into_owned(),
            specs: Vec::new(),
        };
        let specs = unlisted(self, &none).into_iter().map(|id| WorkspaceEntry {
            id,
            tags: Vec::new(),
            added: None,
        });
        let all = SpecWorkspace {
            specs: specs.collect(),
            ..none
        };
        survey(self, all, now, ledger)
    }
}

fn survey(
    project: &SpecProject,
    workspace: SpecWorkspace,
    now: Timestamp,
    ledger: Option<&Ledger>,
) -> Result<WorkspaceSurvey, SpecError> {
    let recorded = ledger
        .map(|ledger| RecordedReceipts::of_project(ledger, project))
        .transpose()?;
    let store = SpecStore::of_survey(project);
    let status =
        |entry: &WorkspaceEntry| status_of(&store(entry.id.clone()), now, recorded.as_ref());
    let statuses = workspace.specs.iter().map(status).collect();
    let unlisted = unlisted(project, &workspace);
    Ok(WorkspaceSurvey {
        workspace,
        statuses,
        unlisted,
    })
}

impl WorkspaceSurvey {
    /// Summarises the specs, and counts them by state.
    #[must_use]
    pub fn summary(&self) -> WorkspaceStatus {
        let entries = self.workspace.specs.iter().zip(&self.statuses);
        let specs: Vec<_> = entries
            .map(|(entry, status)| workspace_spec(entry, status))
            .collect();
        let count =
            |of: fn(&WorkspaceSpec) -> bool| specs.iter().filter(|spec| of(spec)).count() as u64;
        let counts = WorkspaceCounts {
            specs: specs.len() as u64,
            done: count(|spec| spec.standing == SpecStanding::Done),
            failed: count(|spec| !spec.failed.is_empty()),
            pending: count(|spec| spec.pending_fixups > 0),
            stale: count(|spec| !spec.stale.is_empty()),
            damaged: count(|spec| spec.standing == SpecStanding::Damaged),
            not_started: count(|spec| spec.standing == SpecStanding::NotStarted),
            unlisted: self.unlisted.len() as u64,
        };
        WorkspaceStatus {
            schema_version: WORKSPACE_STATUS_SCHEMA.to_owned(),
            name: self.workspace.name.clone(),
            specs,
            counts,
            unlisted: self.unlisted.iter().take(MAX_UNLISTED).cloned().collect(),
        }
    }
}

fn status_of(
    store: &SpecStore,
    now: Timestamp,
    recorded: Option<&RecordedReceipts<'_>>,
) -> Result<Option<SpecStatus>, String> {
    // Creating the error would search for similar names and in the list that is being processed, once for
    // each spec.
    if matches!(store.exists(), Ok(false)) {
        return Ok(None);
    }
    match store.state_seen_by(recorded) {
        Ok(state) => Ok(Some(spec_status(&state, now))),
        Err(SpecError::Unknown {
            why: SpecAbsence::Nothing | SpecAbsence::NotBegun,
            ..
        }) => Ok(None),
        Err(error) => Err(short_line(&single_spaced(&error.to_string()), MAX_LEN)),
    }
}

fn workspace_spec(
    entry: &WorkspaceEntry,
    status: &Result<Option<SpecStatus>, String>,
) -> WorkspaceSpec {
    let error = status.as_ref().err().cloned();
    let status = status.as_ref().ok().and_then(Option::as_ref);
    let phases = status.map_or(&[][..], |status| &status.phase_statuses);
    let phases_in = |requested: PhaseCondition| -> Vec<PhaseId> {
        phases
            .iter()
            .filter(|phase| phase.status == requested)
            .map(|phase| phase.phase_id)
            .collect()
    };
    let (failed, stale) = (
        phases_in(PhaseCondition::Failed),
        phases_in(PhaseCondition::Stale),
    );
    let reached = phases
        .iter()
        .take_while(|phase| phase.status == PhaseCondition::Success)
        .last()
        .map(|phase| phase.phase_id);
    let pending_fixups = status.map_or(0, |status| status.pending_fixups);
    // A receipt that cannot be trusted is already a problem; its phase is not counted again.
    let receipts = status.map_or(0, |status| {
        status.problems.len() as u64 + status.problems_left_out
    });
    let problems = receipts + phases_in(PhaseCondition::Changed).len() as u64;
    let begun = phases
        .iter()
        .any(|phase| phase.last_success_at.is_some() || phase.status == PhaseCondition::Success);
    let standing =
        if error.is_some() || problems > 0 || !phases_in(PhaseCondition::Damaged).is_empty() {
            SpecStanding::Damaged
        } else if !failed.is_empty() {
            SpecStanding::Failed
        } else if !stale.is_empty() {
            SpecStanding::Stale
        } else if pending_fixups > 0 {
            SpecStanding::Pending
        } else if reached == PhaseId::ALL.last().copied() {
            SpecStanding::Done
        } else if reached.is_some() || begun {
            SpecStanding::InProgress
        } else {
            SpecStanding::NotStarted
        };
    WorkspaceSpec {
        spec_id: entry.id.clone(),
        tags: entry.tags.clone(),
        added: entry.added,
        standing,
        reached,
        failed,
        stale,
        pending_fixups,
        problems,
        newest: status.and_then(|status| status.newest),
        next: status.and_then(|status| status.next.clone()),
        error,
    }
}

/// The specs on disk that a workspace does not list. Names that are not spec ids are ignored.
fn unlisted(project: &SpecProject, workspace: &SpecWorkspace) -> BTreeSet<SpecId> {
    let listed: BTreeSet<&SpecId> = workspace.specs.iter().map(|entry| &entry.id).collect();
    let entries = std::fs::read_dir(project.specs())
        .into_iter()
        .flatten()
        .flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|id| !listed.contains(id))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::json_output::{PhaseSummary, STATUS_SCHEMA};

    fn entry(id: &str) -> WorkspaceEntry {
        WorkspaceEntry {
            id: id.parse().unwrap(),
            tags: vec!["t".to_owned()],
            added: None,
        }
    }

    /// A status with these phase states, the others not run.
    fn status(standings: &[PhaseCondition], pending_fixups: u64) -> SpecStatus {
        let phase = |(at, phase_id): (usize, PhaseId)| {
            let standing = standings.get(at).copied().unwrap_or(PhaseCondition::NotRun);
            let value =
                serde_json::json!({ "phase_id": phase_id, "status": standing, "receipt_id": null });
            serde_json::from_value::<PhaseSummary>(value).unwrap()
        };
        let value = serde_json::json!({
            "schema_version": STATUS_SCHEMA, "spec_id": "a", "phase_statuses": [], "pending_fixups": pending_fixups,
            "has_errors": false,
        });
        let status: SpecStatus = serde_json::from_value(value).unwrap();
        SpecStatus {
            phase_statuses: PhaseId::ALL.into_iter().enumerate().map(phase).collect(),
            ..status
        }
    }

    fn summarize(standings: &[PhaseCondition], pending_fixups: u64) -> WorkspaceSpec {
        workspace_spec(&entry("a"), &Ok(Some(status(standings, pending_fixups))))
    }

    #[test]
    fn project_without_workspace_lists_specs_on_disk() {
        let root = tempfile::tempdir().unwrap();
        crucible_host::fs::create_dir_all(&root.path().join(".crucible/specs/b")).unwrap();
        crucible_host::fs::create_dir_all(&root.path().join(".crucible/specs/a")).unwrap();
        crucible_host::fs::create_dir_all(&root.path().join(".crucible/specs/no id")).unwrap();
        let project = SpecProject::find(root.path());
        let survey = project
            .survey(Timestamp::from_unix(Duration::ZERO), None)
            .unwrap();
        let summary = survey.summary();
        let ids: Vec<&str> = summary
            .specs
            .iter()
            .map(|spec| spec.spec_id.as_str())
            .collect();
        assert_eq!(ids, ["a", "b"]);
        assert_eq!((summary.counts.specs, summary.counts.unlisted), (2, 0));
    }

    #[test]
    fn worst_state_wins_and_reached_needs_predecessors() {
        use PhaseCondition::{Changed, Damaged, DryRun, Failed, Stale, Success};
        for (standings, pending, standing, reached) in [
            (&[][..], 0, SpecStanding::NotStarted, None),
            (&[DryRun], 0, SpecStanding::NotStarted, None),
            (
                &[Success, Success],
                0,
                SpecStanding::InProgress,
                Some(PhaseId::Design),
            ),
            (
                &[Success, Failed, Success],
                0,
                SpecStanding::Failed,
                Some(PhaseId::Requirements),
            ),
            (
                &[Success, Success, Stale, Failed],
                1,
                SpecStanding::Failed,
                Some(PhaseId::Design),
            ),
            (
                &[Success, Stale],
                1,
                SpecStanding::Stale,
                Some(PhaseId::Requirements),
            ),
            (
                &[Success; 5],
                2,
                SpecStanding::Pending,
                Some(PhaseId::Fixup),
            ),
            (&[Success; 6], 0, SpecStanding::Done, Some(PhaseId::Final)),
            (&[Changed, Failed], 0, SpecStanding::Damaged, None),
            (&[Damaged], 0, SpecStanding::Damaged, None),
        ] {
            let spec = summarize(standings, pending);
            assert_eq!(
                (spec.standing, spec.reached),
                (standing, reached),
                "{standings:?}"
            );
        }
    }

    #[test]
    fn specs_are_counted_by_each_of_their_troubles() {
        use PhaseCondition::{Failed, Stale, Success};
        let statuses = vec![
            Ok(Some(status(&[Success, Stale, Failed], 3))),
            Ok(Some(status(&[Success; 6], 0))),
            Ok(None),
            Ok(Some(status(&[Success, Stale], 0))),
            Err("no right to read it".to_owned()),
        ];
        let specs = ["a", "b", "c", "d", "e"].map(entry).into();
        let workspace = SpecWorkspace {
            name: "x".to_owned(),
            specs,
        };
        let unlisted: BTreeSet<SpecId> = (0..150)
            .map(|at| format!("s{at}").parse().unwrap())
            .collect();
        let report = WorkspaceSurvey {
            workspace,
            statuses,
            unlisted,
        }
        .summary();
        let expected = WorkspaceCounts {
            specs: 5,
            done: 1,
            failed: 1,
            pending: 1,
            stale: 2,
            damaged: 1,
            not_started: 1,
            unlisted: 150,
        };
        assert_eq!(
            (report.counts, report.unlisted.len()),
            (expected, MAX_UNLISTED)
        );
    }

    #[test]
    fn unreadable_spec_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let file = WorkspaceFile::in_directory(dir.path());
        file.create("x").unwrap();
        for id in ["nowhere", "odd", "after"] {
            let added = Some("2024-12-01T10:00:00Z".parse().unwrap());
            file.add(
                &WorkspaceEntry { added, ..entry(id) },
                super::super::OnListed::Refuse,
            )
            .unwrap();
        }
        let specs = file.project().specs();
        crucible_host::fs::create_dir_all(&specs.join("more")).unwrap();
        crucible_host::fs::create_dir_all(&specs.join("no id")).unwrap();
        crucible_host::fs::create_dir_all(&specs.join("after/receipts")).unwrap();
        crucible_host::fs::create_dir_all(&specs.join("odd")).unwrap();
        crucible_host::fs::write_atomic(&specs.join("odd/receipts"), b"no directory").unwrap();
        let report = file
            .survey("2024-12-02T10:00:00Z".parse().unwrap(), None)
            .unwrap()
            .summary();
        let words: Vec<_> = report.specs.iter().map(|spec| spec.standing).collect();
        assert_eq!(
            words,
            [
                SpecStanding::NotStarted,
                SpecStanding::Damaged,
                SpecStanding::NotStarted
            ]
        );
        assert_eq!(report.unlisted, ["more".parse().unwrap()]);
    }
}
