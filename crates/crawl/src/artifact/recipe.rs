//! `viv-git-recipe.v1`: a plan in the form that an executor processes, derived by rules without a model.

use std::collections::BTreeMap;

use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};

use super::hash::ShortHash;
use super::plan::PlanRepository;

/// The commands of a plan, without the debate that led to them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecipeV1 {
    /// `viv-git-recipe.v1`.
    pub schema: String,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The hash of the plan it was derived from.
    pub source_plan_hash: ShortHash,
    /// The repository and its commit.
    pub repo: PlanRepository,
    pub build_system: String,
    /// The required programs.
    pub toolchain: Toolchain,
    /// The variables of all steps together.
    pub environment: BTreeMap<String, String>,
    /// The directories.
    pub workspace_layout: WorkspaceLayout,
    /// The plan's commands, each with its phase.
    pub normalized_commands: Vec<NormalizedCommand>,
    /// Notes for people.
    pub notes: String,
}

impl RecipeV1 {
    /// The schema's id.
    pub(crate) const SCHEMA: &'static str = "viv-git-recipe.v1";
}

/// The programs that a recipe needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Toolchain {
    /// Programs that are always needed.
    pub required: Vec<String>,
    /// Programs that only some commands need.
    pub optional: Vec<String>,
    /// Version constraints by program, such as `rustc` to `>=1.70`.
    pub version_constraints: BTreeMap<String, String>,
}

/// Directories relative to the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkspaceLayout {
    /// The directory of the checkout.
    pub source_dir: String,
    /// The directory of build outputs.
    pub build_dir: String,
    /// The directory of installed files.
    pub install_dir: String,
}

/// One command with its phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NormalizedCommand {
    pub phase: CommandPhase,
    /// The command.
    pub cmd: String,
    /// The working directory.
    pub cwd: String,
}

/// The phase of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CommandPhase {
    /// Fetches dependencies.
    Fetch,
    /// Prepares the build.
    Configure,
    Build,
    /// Tests the result.
    Test,
    /// Installs the result.
    Install,
    /// Deletes the result.
    Clean,
}
