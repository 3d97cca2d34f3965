//! Looking at fetched files: what they are, how they build and why we think so.
//!
//! `crucible-repo` lists and reads within the caps, and detects; here its answers become the artifact and what later steps
//! need. What leaves towards a model or a person has its secrets replaced. With a sub-project, nothing outside of it is
//! looked at, and all paths are from its directory.

mod beginning;
mod build_files;
mod key_files;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crucible_model::{RepoPath, Timestamp, Untrusted};
use crucible_repo::{
    BuildSystem, Detection, ProjectFiles, Projects, RepoError, SampleCaps, Sampling, count_languages,
    detect_build_system, find_projects, sample,
};
use crucible_secrets::Scanner;

use crate::artifact::{BuildFinding, InspectV1, LanguageCount, RepoAt, SubProject};
use crate::fetch::Fetched;
use crate::safety::Workspace;
use beginning::beginning;
use build_files::build_files;
use key_files::key_files;
use versions::Manifests;

/// Characters of the README that are kept.
const README_CHARACTERS: usize = 4_000;
/// Sub-projects that a message names.
const NAMED_PROJECTS: usize = 20;

/// What an inspection found: the artifact, and what later steps need besides.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    /// What is handed out.
    pub artifact: InspectV1,
    /// The build files that a model may read, cut while sampling; secrets are replaced.
    pub build_files: Vec<BuildFile>,
    /// Every link in the tree, as a path from the top of what was inspected: no `cwd` may lead through one.
    pub links: BTreeSet<String>,
    /// Versions that the build files ask for, by program.
    pub version_constraints: BTreeMap<String, String>,
    /// The directory that the detected build system works in, from the top: `.`, or one a level below.
    pub build_dir: String,
    /// The names of the scripts in the `package.json` there.
    pub scripts: BTreeSet<String>,
    /// The packages that it declares.
    pub declared: BTreeSet<String>,
    /// Why we think so: sentences for people, each naming the files it speaks of.
    pub reasons: Vec<String>,
    /// What the user should be told on stderr: caps that were hit, skipped binaries. Each goes behind `Warning: `.
    pub warnings: Vec<String>,
}

/// A build file for the eyes of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildFile {
    /// From the top.
    pub path: String,
    /// Its beginning.
    pub content: Untrusted,
}

/// Why files could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// They could not be read.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// The sub-project is not there.
    #[error("there is no directory {path} in the repository; its sub-projects are: {known}")]
    NoSubProject {
        /// What was asked for.
        path: String,
        /// The first ones there are, for people.
        known: String,
        /// All there are.
        sub_projects: Vec<SubProject>,
    },
    /// Several projects, none at the top, and nobody to ask.
    #[error(
        "the repository contains several projects, none of them at its top level: {known}; choose one with \
        --ref REF:PATH"
    )]
    ChooseSubProject {
        /// The first ones there are, for people.
        known: String,
        /// All there are, by the path that `--ref REF:PATH` takes.
        sub_projects: Vec<SubProject>,
    },
}

/// Looks at fetched files, or at the sub-project at `subpath` alone; without one, at the part that was asked for when they were
/// fetched.
///
/// # Errors
///
/// See [`InspectError`].
pub fn inspect(
    fetched: &Fetched,
    subpath: Option<&RepoPath>,
    at: Timestamp,
) -> Result<Inspection, InspectError> {
    let subpath = subpath.or(fetched.subpath.as_ref());
    let sampling = look(fetched, subpath)?;
    let files = project_files(&sampling);
    let detection = detect_build_system(&files);
    let projects = find_projects(&files);
    let builds_at_top = detection.system != BuildSystem::Unknown && detection.directory.is_empty();
    if projects.is_monorepo() && !builds_at_top && subpath.is_none() && !projects.projects.is_empty() {
        let sub_projects = sub_projects(&projects);
        return Err(InspectError::ChooseSubProject { known: named(&sub_projects), sub_projects });
    }

    let readme = sampling.readme().map(|file| beginning(file, README_CHARACTERS, usize::MAX));
    let shown = build_files(&sampling, &detection);
    let tree = Scanner::builtin().redact(&sampling.tree_summary);
    let secrets = readme.as_ref().map_or(0, |readme| readme.secrets) + shown.secrets;
    let warnings = warnings(&sampling, &projects, shown.cut, secrets as u64 + tree.count);
    let manifests = Manifests::new(&files, &detection.directory);
    let (version_constraints, scripts) = (manifests.version_constraints(), manifests.scripts());
    let declared = manifests.declared();
    let languages = count_languages(&sampling.listing).into_iter();
    let artifact = InspectV1 {
        schema: InspectV1::SCHEMA.to_owned(),
        inspected_at: at,
        repo: repo_at(&fetched.repo, subpath),
        fetch_method: fetched.method,
        build_system: BuildFinding {
            name: detection.system.to_string(),
            confidence: detection.system.confidence(),
            detected_files: detection.detected_files.clone(),
        },
        monorepo: projects.is_monorepo(),
        sub_projects: sub_projects(&projects),
        sampled_files: sampling.files.len() as u64,
        sampled_bytes: sampling.bytes(),
        sampling_truncated: sampling.is_truncated(),
        readme_excerpt: readme.map(|readme| readme.text).unwrap_or_default(),
        detected_languages: languages
            .map(|(language, file_count)| LanguageCount { language: language.to_owned(), file_count })
            .collect(),
        key_files: key_files(&sampling),
        file_tree_summary: tree.text.into_owned(),
    };
    let Detection { directory, mut reasons, .. } = detection;
    reasons.extend(projects.signs.iter().map(|sign| format!("several projects: {sign}")));
    Ok(Inspection {
        artifact,
        build_files: shown.files,
        links: sampling.links.into_iter().chain(sampling.unseen).collect(),
        version_constraints,
        build_dir: if directory.is_empty() { ".".to_owned() } else { directory },
        scripts,
        declared,
        reasons,
        warnings,
    })
}

/// What a plan that runs in this directory is judged by: its links, and the packages that its `package.json` declares.
///
/// # Errors
///
/// Fails when the directory cannot be read.
pub fn workspace_of(root: &Path) -> Result<Workspace, RepoError> {
    let sampling = sample(root, None, &SampleCaps::STANDARD)?;
    let files = project_files(&sampling);
    let directory = detect_build_system(&files).directory;
    let declared = Manifests::new(&files, &directory).declared();
    let directory = if directory.is_empty() { ".".to_owned() } else { directory };
    Ok(Workspace {
        root: root.to_owned(),
        declared: [(directory, declared)].into(),
        links: sampling.links.into_iter().chain(sampling.unseen).collect(),
    })
}

fn look(fetched: &Fetched, subpath: Option<&RepoPath>) -> Result<Sampling, InspectError> {
    let error = match (sample(&fetched.tree, subpath, &SampleCaps::STANDARD), subpath) {
        (Err(error), Some(path)) if is_no_directory(&error) => (error, path),
        (outcome, _) => return Ok(outcome?),
    };
    let (_, path) = error;
    let sampling = sample(&fetched.tree, None, &SampleCaps::STANDARD)?;
    let sub_projects = sub_projects(&find_projects(&project_files(&sampling)));
    Err(InspectError::NoSubProject { path: path.to_string(), known: named(&sub_projects), sub_projects })
}

fn is_no_directory(error: &RepoError) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error, RepoError::Io { source, .. } if matches!(source.kind(), NotFound | NotADirectory))
}

fn project_files(sampling: &Sampling) -> ProjectFiles<'_> {
    let contents = sampling.files.iter().map(|file| (file.path.as_str(), file.content.as_str()));
    ProjectFiles::new(&sampling.listing, contents)
}

fn sub_projects(projects: &Projects) -> Vec<SubProject> {
    let project = |(path, system): &(RepoPath, BuildSystem)| SubProject {
        path: path.to_string(),
        build_system: system.to_string(),
    };
    projects.projects.iter().map(project).collect()
}

fn named(sub_projects: &[SubProject]) -> String {
    let mut names: Vec<String> = sub_projects
        .iter()
        .take(NAMED_PROJECTS)
        .map(|project| format!("{} ({})", project.path, project.build_system))
        .collect();
    if let Some(more) = sub_projects.len().checked_sub(NAMED_PROJECTS).filter(|more| *more > 0) {
        names.push(format!("and {more} more"));
    }
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The ref names the sub-project, whether it was chosen with it or afterwards.
fn repo_at(repo: &RepoAt, subpath: Option<&RepoPath>) -> RepoAt {
    let mut repo = repo.clone();
    if let Some(path) = subpath {
        let suffix = format!(":{path}");
        if !repo.selected_ref.ends_with(&suffix) {
            repo.selected_ref.push_str(&suffix);
        }
    }
    repo
}

fn warnings(sampling: &Sampling, projects: &Projects, cut_build_files: usize, secrets: u64) -> Vec<String> {
    let mut warnings = Vec::new();
    if sampling.is_truncated() {
        let (files, bytes) = (sampling.files.len(), sampling.bytes());
        warnings.push(format!("sampling caps reached — {files}/{bytes} — results may be incomplete"));
        let caps: Vec<String> = sampling.caps_hit.iter().map(ToString::to_string).collect();
        warnings.push(format!("the caps that were reached: {}", caps.join(", ")));
    }
    let counted = [
        ("files with a source's name that hold no text, skipped", sampling.skipped_binaries),
        ("files or directories that could not be read", sampling.unreadable),
        ("names that are not UTF-8 or hide characters, not looked at", sampling.odd_names),
        ("directories that were not looked into, where no step may work", sampling.unseen.len() as u64),
        ("large build files that models see in part or not at all", cut_build_files as u64),
        ("secrets that were found and replaced", secrets),
    ];
    let counted = counted.into_iter().filter(|(_, count)| *count > 0);
    warnings.extend(counted.map(|(what, count)| format!("{what}: {count}")));
    warnings.extend(projects.notes.iter().cloned());
    warnings
}
