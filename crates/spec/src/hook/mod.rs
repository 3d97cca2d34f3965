//! Hooks: commands of the configuration that run before and after phases and gates.
//!
//! A [`Hook`] runs in the project's directory ([`run_hooks`]) with a clean environment, a few `CRUCIBLE_` variables and one JSON
//! object ([`HOOK_SCHEMA`]) on standard input. What its end means ([`weigh_hooks`]) is a pure function of the receipts.
//!
//! What always holds: behind its walls a hook reaches no network and writes only in the project, and there neither to `.git` and
//! `.crucible` at its top, nor to `workspace.yaml`, nor to what the caller names besides, so that it can forge no receipt; it is not
//! started where `.crucible` or its specs hold a link; nothing that it started outlives it; what it printed is redacted and cut
//! before anybody keeps it. It may change every other file of the project, also one that something runs later, and make a new repository.

mod run;
mod subject;
mod weigh;

use std::time::Duration;

pub use run::{HookPlace, run_hooks};
pub use subject::{HOOK_SCHEMA, HookSubject};
pub(crate) use weigh::what_happened;
pub use weigh::{HookConsequence, weigh_hooks};

use crate::phase_id::PhaseId;
use crate::receipt::{HookMoment, OnFail};

/// A command that runs before or after phases or gates (seed 002, properties 15 and 16).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Its name in the configuration; hooks of one moment run in the order of their names.
    pub name: String,
    /// When it runs.
    pub moment: HookMoment,
    /// Of which phases; none: of all.
    pub phases: Vec<PhaseId>,
    /// The program and its arguments; no shell. A program with a `/` is relative to the project.
    pub command: Vec<String>,
    /// What its failure means.
    pub on_fail: OnFail,
    /// How long it may run before it is ended.
    pub timeout: Duration,
    /// Whether there are walls around it.
    pub walls: HookWalls,
}

/// Whether there are walls around a hook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HookWalls {
    /// As strong as the configuration wants the sandbox.
    #[default]
    Standing,
    /// None: its user said so.
    Off,
}

impl Hook {
    /// Whether it runs at this moment of this phase.
    #[must_use]
    pub fn runs_at(&self, moment: HookMoment, phase: PhaseId) -> bool {
        self.moment == moment && (self.phases.is_empty() || self.phases.contains(&phase))
    }
}

impl HookMoment {
    /// Every moment.
    pub const ALL: [Self; 4] = [Self::PrePhase, Self::PostPhase, Self::PreGate, Self::PostGate];

    /// Its name, as settings and hooks read it.
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
