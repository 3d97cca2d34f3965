//! From the settings and arguments of a command to a run: its gates, limits, roles and backends.
//!
//! A run keeps what it started with, so each value is checked here, before the run exists.

mod agents;
mod find;
mod gates;
mod launch;
mod limits;
mod missing;
mod project;
mod roles;
mod start;

pub use agents::{agents, configured_agents};
pub use find::find_settings;
pub use gates::{GateChoice, default_timeout, no_repository};
pub use launch::{ExistingRun, RunHost, RunSpending, UnattendedEnd, UnattendedRun};
pub use limits::{context_settings, pack_limits, patch_limits};
pub use missing::MissingPart;
pub use project::{
    WrittenSettings, with_alternatives, write_project_settings, write_replaced_commands,
};
pub use roles::{RoleBackends, configured_dispatch, needs_provider};
pub use start::{StartRequest, StartedRun, StartedWith, parameters};
