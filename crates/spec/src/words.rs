//! The states of specs and phases, and their sums, in words.

use crucible_llm::dollars;
use crucible_model::counted;

use crate::json_output::{PhaseCondition, StepReason};
use crate::phase_id::PhaseId;
use crate::receipt::PhaseStatus;
use crate::workspace::{SpecHistory, SpecStanding, WorkspaceCounts, WorkspaceSpec};

impl PhaseCondition {
    /// The state of a phase.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            PhaseCondition::Success => "done",
            PhaseCondition::Failed => "failed",
            PhaseCondition::Stale => "stale",
            PhaseCondition::Changed => "changed",
            PhaseCondition::Damaged => "damaged",
            PhaseCondition::DryRun => "dry run",
            PhaseCondition::NotRun => "not run",
        }
    }
}

impl SpecStanding {
    /// The state of a spec.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            SpecStanding::Damaged => "damaged",
            SpecStanding::Failed => "failed",
            SpecStanding::Stale => "stale",
            SpecStanding::Pending => "pending",
            SpecStanding::NotStarted => "not started",
            SpecStanding::InProgress => "in progress",
            SpecStanding::Done => "done",
        }
    }
}

impl StepReason {
    /// The self for the next step.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            StepReason::NotRun => "it has not run",
            StepReason::Failed => "it failed",
            StepReason::Stale => "its inputs have changed",
            StepReason::Changed => "its artifact was changed",
            StepReason::Damaged => "its receipt cannot be trusted",
            StepReason::FixupsPending => "changes are not applied yet",
            StepReason::FixupsApplied => {
                "its changes are applied, but its receipt records a failure"
            }
            StepReason::Problem => "receipts are invalid",
        }
    }
}

impl PhaseStatus {
    /// How a phase ended.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            PhaseStatus::Success => "done",
            PhaseStatus::Failed => "failed",
            PhaseStatus::DryRun => "dry run",
        }
    }
}

impl WorkspaceCounts {
    /// The number of specs in each state, on one line.
    #[must_use]
    pub fn words(&self) -> String {
        let mut parts = vec![counted(self.specs, "spec")];
        for (count, word) in [
            (self.done, "done"),
            (self.failed, "failed"),
            (self.pending, "pending"),
            (self.stale, "stale"),
            (self.damaged, "damaged"),
            (self.not_started, "not started"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {word}"));
            }
        }
        parts.join(", ")
    }
}

impl WorkspaceSpec {
    /// The problems and pending work of a spec, a few words each.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        let phases = |phases: &[PhaseId], what: &str| {
            let names: Vec<&str> = phases.iter().map(|phase| phase.as_str()).collect();
            (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
        };
        let mut troubles: Vec<String> = self.error.iter().cloned().collect();
        troubles.extend(phases(&self.failed, "failed"));
        troubles.extend(phases(&self.stale, "stale"));
        if self.pending_fixups > 0 {
            troubles.push(format!(
                "pending fixups: {}",
                counted(self.pending_fixups, "file")
            ));
        }
        if self.problems > 0 {
            troubles.push(counted(self.problems, "problem"));
        }
        troubles
    }
}

impl SpecHistory {
    /// The sums over all runs, on one line.
    #[must_use]
    pub fn sums(&self) -> String {
        let totals = &self.totals;
        let mut parts = vec![counted(totals.runs, "run")];
        for (count, word) in [
            (totals.succeeded, "done"),
            (totals.failed, "failed"),
            (totals.dry_runs, "dry"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {word}"));
            }
        }
        parts.push(format!(
            "{} tokens in, {} out",
            totals.tokens_input, totals.tokens_output
        ));
        // The sum of no known costs is not a price of zero.
        if totals.cost_unknown == 0
            || self
                .timeline
                .iter()
                .any(|row| row.cost_micro_dollars.is_some())
        {
            let estimate = if totals.cost_estimated > 0 {
                " (estimate)"
            } else {
                ""
            };
            parts.push(format!("{}{estimate}", dollars(totals.cost_micro_dollars)));
        }
        let unknown = match totals.cost_unknown {
            0 => String::new(),
            unknown => format!("; the cost of {} is not known", counted(unknown, "run")),
        };
        format!("together: {}{unknown}", parts.join(", "))
    }
}
