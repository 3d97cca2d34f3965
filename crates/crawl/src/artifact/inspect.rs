//! `viv-git-inspect.v1`: a repository, its build system and the evidence for it.

use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};

/// The result of an inspection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InspectV1 {
    /// `viv-git-inspect.v1`.
    pub schema: String,
    /// The time of the inspection.
    pub inspected_at: Timestamp,
    /// The repository and its commit.
    pub repo: InspectedRepository,
    /// How its files were fetched.
    pub fetch_method: FetchMethod,
    /// The detected build system.
    pub build_system: BuildFinding,
    /// Whether it contains several projects.
    pub monorepo: bool,
    /// Its sub-projects, by path.
    pub sub_projects: Vec<SubProject>,
    /// Its files, one per line, at most 500.
    pub file_tree_summary: String,
    /// The number of files that were read.
    pub sampled_files: u64,
    /// Their total size in bytes.
    pub sampled_bytes: u64,
    /// Whether a cap was hit.
    pub sampling_truncated: bool,
    /// The beginning of the README, redacted.
    pub readme_excerpt: String,
    /// The languages, the most frequent first.
    pub detected_languages: Vec<LanguageCount>,
    /// The most informative files, by path.
    pub key_files: Vec<KeyFile>,
}

impl InspectV1 {
    /// The schema's id.
    pub const SCHEMA: &'static str = "viv-git-inspect.v1";
}

/// A repository at a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InspectedRepository {
    /// `owner/repo`; for a local repository `./` and the name of its directory.
    pub full_name: String,
    /// The address it was fetched from.
    pub url: String,
    /// The selected tag, branch or commit, with `:path` for a sub-project.
    pub selected_ref: String,
    /// 40 hexadecimal digits.
    pub resolved_commit: String,
    /// The branch that is checked out by default.
    pub default_branch: String,
}

/// How files were fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FetchMethod {
    /// As an archive, through `gh`.
    Tarball,
    /// As a shallow clone, through git.
    ShallowClone,
}

/// The detected build system of a repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BuildFinding {
    /// One of the thirteen names.
    pub name: String,
    /// A constant for each detection rule.
    pub confidence: f64,
    /// The files that the detection is based on.
    pub detected_files: Vec<String>,
}

/// A project inside a repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SubProject {
    /// Its directory, relative to the top level.
    pub path: String,
    /// The name of its build system, such as `cargo`.
    pub build_system: String,
}

/// The number of files in a language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LanguageCount {
    /// Its name.
    pub language: String,
    /// The number of files in the listing.
    pub file_count: u64,
}

/// An informative file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KeyFile {
    /// Its path, relative to the top level.
    pub path: String,
    /// What the file says about the project.
    pub role: KeyFileRole,
    /// Its full size.
    pub size_bytes: u64,
}

/// The role of a key file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyFileRole {
    /// It configures the build.
    BuildConfig,
    /// The entry point of a program.
    EntryPoint,
    /// The README of the project.
    Readme,
    /// The licence of the project.
    License,
    /// Continuous integration.
    Ci,
    /// A container definition.
    Dockerfile,
    /// Other source code.
    Source,
}
