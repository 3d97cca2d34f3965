//! `viv-git-recipe.v1`: a plan, put in the form that an executor works through. Derived by rule, no model involved.

use std::collections::BTreeMap;

use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};

use super::hash::ShortHash;
use super::plan::PlanRepo;

/// A recipe (seed 000 §4.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipeV1 {
    /// `viv-git-recipe.v1`.
    pub schema: String,
    /// When.
    pub created_at: Timestamp,
    /// The plan it was derived from.
    pub source_plan_hash: ShortHash,
    /// For which repository at which commit.
    pub repo: PlanRepo,
    /// What builds it.
    pub build_system: String,
    /// The programs it takes.
    pub toolchain: Toolchain,
    /// Variables of all steps together.
    pub environment: BTreeMap<String, String>,
    /// Where things lie.
    pub workspace_layout: WorkspaceLayout,
    /// The plan's commands, each with its phase.
    pub normalized_commands: Vec<NormalizedCommand>,
    /// Words for people.
    pub notes: String,
}

impl RecipeV1 {
    /// The schema's id.
    pub const SCHEMA: &'static str = "viv-git-recipe.v1";
}

/// Programs that a recipe takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolchain {
    /// Without these nothing works.
    pub required: Vec<String>,
    /// With these more works.
    pub optional: Vec<String>,
    /// By program, such as `rustc` to `>=1.70`.
    pub version_constraints: BTreeMap<String, String>,
}

/// Directories relative to the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceLayout {
    /// Where the repository is checked out.
    pub source_dir: String,
    /// Where what is built lies.
    pub build_dir: String,
    /// Where what is finished lies.
    pub install_dir: String,
}

/// One command with its phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NormalizedCommand {
    /// What it is for.
    pub phase: CommandPhase,
    /// What to run.
    pub cmd: String,
    /// Where.
    pub cwd: String,
}

/// What a command is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandPhase {
    /// Gets what the build needs.
    Fetch,
    /// Prepares the build.
    Configure,
    /// Builds.
    Build,
    /// Checks what was built.
    Test,
    /// Puts what was built in its place.
    Install,
    /// Takes away what was built.
    Clean,
}
