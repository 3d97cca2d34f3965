//! Many specs at once: `workspace.yaml`, searched upward from the working directory, parsed strictly and
//! edited with care.
//!
//! [`WorkspaceFile`] is the file, [`SpecWorkspace`] its content. An edit inserts text at positions from
//! the parsed tree (`yaml`), and is kept only if the new text means the old one plus the change.

mod edit;
mod file;
mod history;
mod model;
mod report;
mod yaml;

pub use file::{EntryChange, OnListed, WorkspaceFile};
pub use history::{HistoryProblem, HistoryRow, HistoryTotals, SpecHistory, spec_history};
pub use model::{SpecTag, SpecTagError, SpecWorkspace, WorkspaceEntry};
pub use report::{SpecStanding, WorkspaceCounts, WorkspaceSpec, WorkspaceStatus, WorkspaceSurvey};
