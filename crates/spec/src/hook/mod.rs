//! Hooks: configured commands that run before and after phases and gates.
//!
//! A [`Hook`] runs in the project's directory ([`run_hooks`]) with a clean environment, a few `CRUCIBLE_`
//! variables and one JSON object ([`HOOK_SCHEMA`]) on standard input. [`weigh_hooks`] derives the
//! consequence from the receipts, as a pure function.
//!
//! Invariants: in its sandbox a hook reaches no network and writes only in the project. It cannot write
//! to `.git` and `.crucible` at its top, `workspace.yaml`, and paths that the caller names, so it cannot
//! forge a receipt. It is not started if `.crucible` or its specs contain a link. None of its child
//! processes outlives it. Its output is redacted and cut before it is stored. A hook may change every
//! other file of the project, including files that are executed later, and may create a repository.

mod configured;
mod run;
mod subject;
mod weigh;

use std::time::Duration;

pub use configured::{HookOutcome, Hooks};
pub(crate) use run::{HookPlace, run_hooks};
pub use subject::HookSubject;
pub use weigh::HookConsequence;
pub(crate) use weigh::weigh_hooks;
pub(crate) use weigh::what_happened;

use crate::phase_id::PhaseId;
use crate::receipt::{HookMoment, OnFail};

/// A command that runs before or after phases or gates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hook {
    /// The name in the configuration; hooks of one moment run in the order of their names.
    pub name: String,
    /// When it runs.
    pub moment: HookMoment,
    /// The phases; empty means all.
    pub phases: Vec<PhaseId>,
    /// The program and its arguments, without a shell. A program with a `/` is relative to the project.
    pub command: Vec<String>,
    /// The consequence of a failure.
    pub on_fail: OnFail,
    /// The time limit.
    pub timeout: Duration,
    /// Whether it runs in a sandbox.
    pub isolation: HookIsolation,
}

/// Whether a hook runs in a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum HookIsolation {
    /// As strong as the configuration requires.
    #[default]
    Required,
    /// No sandbox, by the user's choice.
    Off,
}

impl Hook {
    /// Whether it runs at this moment of this phase.
    #[must_use]
    pub(crate) fn runs_at(&self, moment: HookMoment, phase: PhaseId) -> bool {
        self.moment == moment && (self.phases.is_empty() || self.phases.contains(&phase))
    }
}

impl HookMoment {
    /// Every moment.
    pub const ALL: [Self; 4] = [
        Self::PrePhase,
        Self::PostPhase,
        Self::PreGate,
        Self::PostGate,
    ];

    /// The name, as in settings and hook input.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PrePhase => "pre_phase",
            Self::PostPhase => "post_phase",
            Self::PreGate => "pre_gate",
            Self::PostGate => "post_gate",
        }
    }
}
