//! `crucible project status`: the state of the specs in the workspace.

use clap::Args;
use crucible_model::{ExitStatus, counted, one_line};
use crucible_spec::{PhaseId, SpecStanding, WorkspaceCounts, WorkspaceFile, WorkspaceSpec};

use crate::app::App;
use crate::error::CommandError;
use crate::table::{lines_of, table};

/// Show the state of the specs in the workspace
///
/// Nothing is changed, and no model is called. Failed, pending and outdated phases are counted;
/// `crucible gate` judges a spec.
#[derive(Args)]
pub(crate) struct Status {}

impl Status {
    pub(crate) fn run(
        &self,
        app: &App,
        workspace: &WorkspaceFile,
    ) -> Result<ExitStatus, CommandError> {
        let ledger = app.ledger_to_ask()?;
        let status = workspace
            .survey(app.clock.now(), ledger.as_ref())?
            .summary();
        if app.output.is_json() {
            app.output.json(&status)?;
            return Ok(ExitStatus::Success);
        }
        app.output.line(&one_line(&format!(
            "{}: {}",
            status.name,
            counts(&status.counts)
        )));
        if !status.specs.is_empty() {
            let mut rows = table(["spec", "state", "reached", "trouble", "next"]);
            for spec in &status.specs {
                rows.add_row([
                    spec.spec_id.as_str(),
                    words(spec.standing),
                    spec.reached.map_or("", PhaseId::as_str),
                    &one_line(&troubles(spec).join("; ")),
                    spec.next.as_ref().map_or("", |next| next.command.as_str()),
                ]);
            }
            app.output.line(&lines_of(&rows));
        }
        if let Some(first) = status.unlisted.first() {
            let unlisted = counted(status.counts.unlisted, "spec");
            app.output.remark(&format!(
                "note: {unlisted} on the disk not listed, for example {first}; add one: crucible project \
                add-spec {first}"
            ));
        }
        Ok(ExitStatus::Success)
    }
}

/// The number of specs in each state, on one line.
pub(super) fn counts(counts: &WorkspaceCounts) -> String {
    let mut parts = vec![counted(counts.specs, "spec")];
    for (count, word) in [
        (counts.done, "done"),
        (counts.failed, "failed"),
        (counts.pending, "pending"),
        (counts.stale, "stale"),
        (counts.damaged, "damaged"),
        (counts.not_started, "not started"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    parts.join(", ")
}

/// The state of a spec in words.
pub(super) fn words(standing: SpecStanding) -> &'static str {
    match standing {
        SpecStanding::Damaged => "damaged",
        SpecStanding::Failed => "failed",
        SpecStanding::Stale => "stale",
        SpecStanding::Pending => "pending",
        SpecStanding::NotStarted => "not started",
        SpecStanding::InProgress => "in progress",
        SpecStanding::Done => "done",
    }
}

/// The problems and pending work of a spec, a few words each.
pub(super) fn troubles(spec: &WorkspaceSpec) -> Vec<String> {
    let phases = |phases: &[PhaseId], what: &str| {
        let names: Vec<&str> = phases.iter().map(|phase| phase.as_str()).collect();
        (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
    };
    let mut troubles: Vec<String> = spec.error.iter().cloned().collect();
    troubles.extend(phases(&spec.failed, "failed"));
    troubles.extend(phases(&spec.stale, "stale"));
    if spec.pending_fixups > 0 {
        troubles.push(format!(
            "pending fixups: {}",
            counted(spec.pending_fixups, "file")
        ));
    }
    if spec.problems > 0 {
        troubles.push(counted(spec.problems, "problem"));
    }
    troubles
}
