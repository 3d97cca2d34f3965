//! `viv-git-inspect.v1`: what a repository is, how it builds and why we think so.

use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};

/// What an inspection found (seed 000 §4.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InspectV1 {
    /// `viv-git-inspect.v1`.
    pub schema: String,
    /// When.
    pub inspected_at: Timestamp,
    /// Which repository at which commit.
    pub repo: RepoAt,
    /// How its files were got.
    pub fetch_method: FetchMethod,
    /// What builds it.
    pub build_system: BuildFinding,
    /// Whether it holds several projects.
    pub monorepo: bool,
    /// The projects it holds, by path.
    pub sub_projects: Vec<SubProject>,
    /// Its files, one a line, at most 500.
    pub file_tree_summary: String,
    /// How many files were read.
    pub sampled_files: u64,
    /// How many bytes of them.
    pub sampled_bytes: u64,
    /// Whether a cap was hit.
    pub sampling_truncated: bool,
    /// The beginning of the README; secrets are replaced.
    pub readme_excerpt: String,
    /// The most frequent first.
    pub detected_languages: Vec<LanguageCount>,
    /// Files that tell most, by path.
    pub key_files: Vec<KeyFile>,
}

impl InspectV1 {
    /// The schema's id.
    pub const SCHEMA: &'static str = "viv-git-inspect.v1";
}

/// A repository at a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoAt {
    /// `owner/repo`; of a local repository `./` and the name of its directory.
    pub full_name: String,
    /// Where it was fetched from.
    pub url: String,
    /// The tag, branch or commit that was chosen; with `:path` where a sub-project was.
    pub selected_ref: String,
    /// 40 hexadecimal digits.
    pub resolved_commit: String,
    /// The branch that is checked out by default.
    pub default_branch: String,
}

/// How files were got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FetchMethod {
    /// As an archive, through `gh`.
    Tarball,
    /// As a shallow clone, through git.
    ShallowClone,
}

/// What builds a repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BuildFinding {
    /// One of the thirteen names.
    pub name: String,
    /// Fixed for each way to detect it.
    pub confidence: f64,
    /// The files that gave it away.
    pub detected_files: Vec<String>,
}

/// A project inside of a repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SubProject {
    /// Its directory from the top.
    pub path: String,
    /// What builds it.
    pub build_system: String,
}

/// How many files are written in a language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LanguageCount {
    /// Its name.
    pub language: String,
    /// Files of the listing.
    pub file_count: u64,
}

/// A file that tells much.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KeyFile {
    /// From the top.
    pub path: String,
    /// What it is for.
    pub role: KeyFileRole,
    /// Its whole size.
    pub size_bytes: u64,
}

/// What a key file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyFileRole {
    /// Says how to build.
    BuildConfig,
    /// Where the program begins.
    EntryPoint,
    /// The README.
    Readme,
    /// The licence.
    License,
    /// Continuous integration.
    Ci,
    /// A container's description.
    Dockerfile,
    /// Other source.
    Source,
}
