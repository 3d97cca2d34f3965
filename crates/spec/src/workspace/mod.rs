//! Many specs at once: `workspace.yaml`, found upward from the working directory, read strictly and edited with care.
//!
//! [`WorkspaceFile`] is the file, [`SpecWorkspace`] what it says. An edit cuts the text where its tree of values (`yaml`) tells, and is
//! kept only where the new text says the old one and the change.

mod edit;
mod file;
mod history;
mod model;
mod report;
mod yaml;

pub use file::{EntryChange, OnListed, WorkspaceFile};
pub use history::{HISTORY_SCHEMA, HistoryProblem, HistoryRow, HistoryTotals, SpecHistory, spec_history};
pub use model::{SpecTag, SpecTagError, SpecWorkspace, WorkspaceEntry};
pub use report::{
    SpecStanding, WORKSPACE_STATUS_SCHEMA, WorkspaceCounts, WorkspaceSpec, WorkspaceStatus, WorkspaceSurvey,
};
