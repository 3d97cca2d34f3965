//! Inspects fetched files: what they are, how they build and on what evidence.
//!
//! `crucible-repo` lists and reads files within the caps, and detects the build system. This module turns
//! the result into the artifact and the input of later steps. All texts for a model or a person are
//! redacted. With a sub-project, only its directory is inspected, and all paths are relative to it.

mod beginning;
mod build_files;
mod key_files;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crucible_model::{RepoPath, Timestamp, Untrusted};
use crucible_repo::{
    BuildSystem, Detection, ProjectFiles, Projects, RepoError, RepoSample, SampleCaps,
    count_languages, detect_build_system, find_projects, sample,
};
use crucible_secrets::Scanner;

use crate::artifact::{BuildFinding, InspectV1, InspectedRepository, LanguageCount, SubProject};
use crate::fetch::Fetched;
use crate::safety::Workspace;
use beginning::beginning;
use build_files::build_files;
use key_files::key_files;
use versions::Manifests;

/// Characters of the README that are kept.
const README_CHARACTERS: usize = 4_000;
/// The most sub-projects in a message.
const NAMED_PROJECTS: usize = 20;

/// The result of an inspection: the artifact, and the input of later steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    /// The document that is printed and stored.
    pub artifact: InspectV1,
    /// The build files for a model, cut and redacted.
    pub build_files: Vec<BuildFile>,
    /// Every link in the tree, as a path relative to the inspected top level: no `cwd` may lead through
    /// one.
    pub links: BTreeSet<String>,
    /// Version constraints in the build files, by program.
    pub version_constraints: BTreeMap<String, String>,
    /// The directory of the detected build system, relative to the top level: `.`, or one level below.
    pub build_dir: String,
    /// The names of the scripts in its `package.json`.
    pub scripts: BTreeSet<String>,
    /// The packages that it declares.
    pub declared: BTreeSet<String>,
    /// The reasons for people: sentences that name their files.
    pub reasons: Vec<String>,
    /// Warnings for the user, such as caps and skipped files. Each is printed after `Warning: `.
    pub warnings: Vec<String>,
}

/// A build file for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildFile {
    /// From the top.
    pub path: String,
    /// Its redacted beginning.
    pub content: Untrusted,
}

/// Why files could not be inspected.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// They could not be read.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// The sub-project does not exist.
    #[error("there is no directory {path} in the repository; its sub-projects are: {known}")]
    NoSubProject {
        /// The requested path.
        path: String,
        /// The first existing ones, for people.
        known: String,
        /// All existing ones.
        sub_projects: Vec<SubProject>,
    },
    /// There are several projects and none at the top level, and the user cannot be asked.
    #[error(
        "the repository contains several projects, none of them at its top level: {known}; choose one with \
        --ref REF:PATH"
    )]
    ChooseSubProject {
        /// The first existing ones, for people.
        known: String,
        /// All existing ones, with the path for `--ref REF:PATH`.
        sub_projects: Vec<SubProject>,
    },
}

/// Inspects fetched files, or only the sub-project at `subpath`; without one, the sub-project that was requested when
/// fetching.
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
    if projects.is_monorepo()
        && !builds_at_top
        && subpath.is_none()
        && !projects.projects.is_empty()
    {
        let sub_projects = sub_projects(&projects);
        return Err(InspectError::ChooseSubProject {
            known: format_names(&sub_projects),
            sub_projects,
        });
    }

    let readme = sampling
        .readme()
        .map(|file| beginning(file, README_CHARACTERS, usize::MAX));
    let build_file_selection = build_files(&sampling, &detection);
    let tree = Scanner::builtin().redact(&sampling.tree_summary);
    let secrets = readme.as_ref().map_or(0, |readme| readme.secrets) + build_file_selection.secrets;
    let warnings = warnings(
        &sampling,
        &projects,
        build_file_selection.cut,
        secrets as u64 + tree.count,
    );
    let manifests = Manifests::new(&files, &detection.directory);
    let (version_constraints, scripts) = (manifests.version_constraints(), manifests.scripts());
    let declared = installed(&manifests, &fetched.tree, &detection.directory);
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
            .map(|(language, file_count)| LanguageCount {
                language: language.to_owned(),
                file_count,
            })
            .collect(),
        key_files: key_files(&sampling),
        file_tree_summary: tree.text.into_owned(),
    };
    let Detection {
        directory,
        mut reasons,
        ..
    } = detection;
    reasons.extend(
        projects
            .signs
            .iter()
            .map(|sign| format!("several projects: {sign}")),
    );
    Ok(Inspection {
        artifact,
        build_files: build_file_selection.files,
        links: sampling.links.into_iter().chain(sampling.unseen).collect(),
        version_constraints,
        build_dir: if directory.is_empty() {
            ".".to_owned()
        } else {
            directory
        },
        scripts,
        declared,
        reasons,
        warnings,
    })
}

/// The workspace for judging a plan that runs in this directory: its links, and the packages that its `package.json` declares.
///
/// # Errors
///
/// Fails if the directory cannot be read.
pub fn workspace_of(root: &Path) -> Result<Workspace, RepoError> {
    let sampling = sample(root, None, &SampleCaps::STANDARD)?;
    let files = project_files(&sampling);
    let directory = detect_build_system(&files).directory;
    let declared = installed(&Manifests::new(&files, &directory), root, &directory);
    let directory = if directory.is_empty() {
        ".".to_owned()
    } else {
        directory
    };
    Ok(Workspace {
        root: root.to_owned(),
        declared: [(directory, declared)].into(),
        links: sampling.links.into_iter().chain(sampling.unseen).collect(),
    })
}

/// Returns the packages that npm surely installs in `directory`: none if a file `.npmrc` may leave some out (`omit=dev`).
///
/// Such files are named like secrets, so they are not read.
fn installed(manifests: &Manifests<'_>, root: &Path, directory: &str) -> BTreeSet<String> {
    let mut places = Path::new(directory).ancestors();
    let has_settings = places.any(|place| {
        let file = root.join(place).join(".npmrc");
        file.symlink_metadata().is_ok()
    });
    if has_settings {
        BTreeSet::new()
    } else {
        manifests.declared()
    }
}

fn look(fetched: &Fetched, subpath: Option<&RepoPath>) -> Result<RepoSample, InspectError> {
    let error = match (
        sample(&fetched.tree, subpath, &SampleCaps::STANDARD),
        subpath,
    ) {
        (Err(error), Some(path)) if is_no_directory(&error) => (error, path),
        (outcome, _) => return Ok(outcome?),
    };
    let (_, path) = error;
    let sampling = sample(&fetched.tree, None, &SampleCaps::STANDARD)?;
    let sub_projects = sub_projects(&find_projects(&project_files(&sampling)));
    Err(InspectError::NoSubProject {
        path: path.to_string(),
        known: format_names(&sub_projects),
        sub_projects,
    })
}

fn is_no_directory(error: &RepoError) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error, RepoError::Io { source, .. } if matches!(source.kind(), NotFound | NotADirectory))
}

fn project_files(sampling: &RepoSample) -> ProjectFiles<'_> {
    let contents = sampling
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.content.as_str()));
    ProjectFiles::new(&sampling.listing, contents)
}

fn sub_projects(projects: &Projects) -> Vec<SubProject> {
    let project = |(path, system): &(RepoPath, BuildSystem)| SubProject {
        path: path.to_string(),
        build_system: system.to_string(),
    };
    projects.projects.iter().map(project).collect()
}

fn format_names(sub_projects: &[SubProject]) -> String {
    let mut names: Vec<String> = sub_projects
        .iter()
        .take(NAMED_PROJECTS)
        .map(|project| format!("{} ({})", project.path, project.build_system))
        .collect();
    if let Some(more) = sub_projects
        .len()
        .checked_sub(NAMED_PROJECTS)
        .filter(|more| *more > 0)
    {
        names.push(format!("and {more} more"));
    }
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

/// The repository with the sub-project in its ref, whether it was chosen there or later.
fn repo_at(repo: &InspectedRepository, subpath: Option<&RepoPath>) -> InspectedRepository {
    let mut repo = repo.clone();
    if let Some(path) = subpath {
        let suffix = format!(":{path}");
        if !repo.selected_ref.ends_with(&suffix) {
            repo.selected_ref.push_str(&suffix);
        }
    }
    repo
}

fn warnings(
    sampling: &RepoSample,
    projects: &Projects,
    cut_build_files: usize,
    secrets: u64,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if sampling.is_truncated() {
        let (files, bytes) = (sampling.files.len(), sampling.bytes());
        warnings.push(format!(
            "sampling caps reached — {files}/{bytes} — results may be incomplete"
        ));
        let caps: Vec<String> = sampling.caps_hit.iter().map(ToString::to_string).collect();
        warnings.push(format!("the caps that were reached: {}", caps.join(", ")));
    }
    let counted = [
        (
            "files with a source's name that hold no text, skipped",
            sampling.skipped_binaries,
        ),
        (
            "files or directories that could not be read",
            sampling.unreadable,
        ),
        (
            "names that are not UTF-8 or hide characters, not looked at",
            sampling.odd_names,
        ),
        (
            "directories that were not looked into, where no step may work",
            sampling.unseen.len() as u64,
        ),
        (
            "large build files that models see in part or not at all",
            cut_build_files as u64,
        ),
        ("secrets that were found and replaced", secrets),
    ];
    let counted = counted.into_iter().filter(|(_, count)| *count > 0);
    warnings.extend(counted.map(|(what, count)| format!("{what}: {count}")));
    warnings.extend(projects.notes.iter().cloned());
    warnings
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out files by hand")]
mod tests {
    use super::*;

    #[test]
    fn packages_beside_npm_settings_are_not_installed() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = r#"{"devDependencies": {"eslint": "9"}}"#;
        std::fs::create_dir(dir.path().join("web")).unwrap();
        std::fs::write(dir.path().join("web/package.json"), manifest).unwrap();
        std::fs::write(dir.path().join("web/package-lock.json"), "{}").unwrap();
        let declared = || workspace_of(dir.path()).unwrap().declared;
        assert_eq!(
            declared(),
            [("web".into(), ["eslint".into()].into())].into()
        );
        for place in [".npmrc", "web/.npmrc"] {
            let file = dir.path().join(place);
            std::fs::write(&file, "omit=dev\n").unwrap();
            assert_eq!(
                declared(),
                [("web".into(), BTreeSet::new())].into(),
                "{place}"
            );
            std::fs::remove_file(file).unwrap();
        }
    }
}
