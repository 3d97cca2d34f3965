//! From the settings and arguments of a command to a run: its gates, limits, roles and backends.
//!
//! A run keeps what it started with, so each value is checked here, before the run exists.

mod agents;
mod find;
mod gates;
mod launch;
mod limits;
mod missing;
mod patch;
mod project;
mod roles;
mod start;

pub use agents::agents;
pub(crate) use agents::configured_agents;
pub(crate) use gates::configured_gates;
pub use gates::{GateChoice, no_repository};
pub use launch::{ExistingRun, RunHost, RunSpending, UnattendedEnd, UnattendedRun};
pub use limits::patch_limits;
pub(crate) use limits::{ChangePolicies, change_policies, context_settings, pack_limits};
pub use missing::MissingPart;
pub use patch::{MAX_PATCH, PatchMeasure};
pub use project::{
    WrittenSettings, with_alternatives, write_project_settings, write_replaced_commands,
};
pub(crate) use roles::{configured_dispatch, needs_provider};
pub use start::{StartRequest, StartSettings, StartedRun, parameters};
