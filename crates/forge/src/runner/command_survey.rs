//! What a command that is not a skill left in the directories that it could write to.
//!
//! Before the command, [`CommandSurvey::protect`] returns the places that stay read-only. After it, [`CommandSurvey::left`]
//! compares the directories: it lists what other programs run or obey.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_model::{Failure, counted, short_line};
use crucible_repo::{Git, Guards, RunByGit};
use crucible_sandbox::Sandbox;
use serde::Serialize;

use super::left_behind::{DirectoryState, LeftBehind};

/// Crucible's own directory in a project.
const OWN: &str = ".crucible";

/// The most paths that a terminal shows.
const MAX_REPORTED: usize = 20;

/// The characters of a path that a terminal shows.
const MAX_PATH_LEN: usize = 200;

/// The most names that the line about files that git may run has.
const MAX_NAMES: usize = 3;

/// Whether a command may change git directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitWrites {
    /// It may: hooks, settings and commits.
    Allowed,
    /// They are read-only.
    Refused,
}

/// The directories that a command may write to, as they were before it.
pub struct CommandSurvey {
    directories: Vec<PathBuf>,
    before: Vec<DirectoryState>,
    /// What git runs or obeys in the directories.
    run_by_git: RunByGit,
    /// Why the present settings of git could not be read.
    git_failure: Option<String>,
}

impl CommandSurvey {
    /// Surveys these directories, which contain no links; `repository_of` returns the repository around one.
    pub fn new(
        directories: Vec<PathBuf>,
        repository_of: impl Fn(&Path) -> Option<PathBuf>,
    ) -> Self {
        let is_outer = |directory: &&PathBuf| {
            let mut others = directories.iter().filter(|other| other != directory);
            !others.any(|other| directory.starts_with(other))
        };
        let before = directories
            .iter()
            .filter(is_outer)
            .map(|directory| {
                let top = repository_of(directory).unwrap_or_else(|| directory.clone());
                DirectoryState::survey(&top, std::slice::from_ref(directory))
            })
            .collect();
        Self {
            directories,
            before,
            run_by_git: RunByGit::default(),
            git_failure: None,
        }
    }

    /// Returns what stays read-only in the directories: git directories, what decides which programs git starts, and
    /// `.crucible`.
    ///
    /// # Errors
    ///
    /// A usage error if git's settings cannot be read, or if a place cannot be protected.
    pub async fn protect(
        &mut self,
        sandbox: &Arc<Sandbox>,
        env: &Environment,
        git_writes: GitWrites,
    ) -> Result<Vec<PathBuf>, Failure> {
        if self.directories.is_empty() {
            return Ok(Vec::new());
        }
        let guarded = Git::guarded_places(
            Arc::clone(sandbox),
            env,
            &self.directories,
            &self.repositories(),
        )
        .await;
        let mut guards = match guarded {
            Ok(guards) => guards,
            Err(_) if git_writes == GitWrites::Allowed => Guards::default(),
            Err(error) => {
                let directories: Vec<_> = self
                    .directories
                    .iter()
                    .map(|one| one.display().to_string())
                    .collect();
                return Err(Failure::usage(format!(
                    "cannot tell what git runs in {}: {error}",
                    directories.join(" and ")
                ))
                .hint("Hand out a directory below it, or pass --write-git to leave git directories unprotected."));
            }
        };
        self.run_by_git = guards.run_by_git();
        if git_writes == GitWrites::Allowed {
            let is_own = |place: &Path| place.file_name().is_some_and(|name| name == OWN);
            guards.places.retain(|place| is_own(place));
            guards.conflicts.retain(|conflict| is_own(conflict.place()));
        }
        if let Some(conflict) = guards.conflicts.first() {
            return Err(Failure::usage(conflict.to_string())
                .hint("Pass another directory to --write, or pass --write-git, which leaves files that git runs unprotected."));
        }
        for state in &mut self.before {
            state.keep_guarded(&self.run_by_git.paths);
        }
        Ok(guards.places)
    }

    /// Reads git's settings again after the command: others may have changed them meanwhile.
    pub async fn refresh(&mut self, sandbox: &Arc<Sandbox>, env: &Environment) {
        if self.directories.is_empty() {
            return;
        }
        let known = self.repositories();
        match Git::run_by_git(Arc::clone(sandbox), env, &self.directories, &known).await {
            Ok(now) => {
                // A directory that git no longer takes programs from may be filled with other files.
                let all = &mut self.run_by_git;
                all.paths.retain(|path| path.is_symlink() || !path.is_dir());
                all.paths.extend(now.paths);
                all.unclear.extend(now.unclear);
            }
            Err(error) => self.git_failed(error.to_string()),
        }
    }

    /// Records why git's settings could not be read after the command.
    pub fn git_failed(&mut self, why: String) {
        self.git_failure = Some(why);
    }

    /// The repositories that were found before the command ran.
    fn repositories(&self) -> Vec<PathBuf> {
        self.before
            .iter()
            .flat_map(DirectoryState::repositories)
            .cloned()
            .collect()
    }

    /// Returns what came or changed since; paths are relative to `current_dir` where they are below it.
    #[must_use]
    pub fn left(self, current_dir: &Path) -> LeftByCommand {
        let here = current_dir
            .canonicalize()
            .unwrap_or_else(|_| current_dir.to_owned());
        let shown = |state: &DirectoryState, path: &str| {
            let path = state.root().join(path);
            let path = path.strip_prefix(&here).unwrap_or(&path).to_string_lossy();
            if path.is_empty() {
                ".".to_owned()
            } else {
                path.into_owned()
            }
        };
        let Self {
            before,
            run_by_git: RunByGit { paths, unclear },
            git_failure,
            ..
        } = self;
        let all_left = before.iter().flat_map(|state| {
            let left = state.left_behind(&paths).into_iter();
            left.map(move |left| LeftBehind {
                path: shown(state, &left.path),
                ..left
            })
        });
        let all_left = all_left.collect();
        let files: Vec<String> = if unclear.is_empty() {
            Vec::new()
        } else {
            let changed = before.iter().map(|state| (state, state.changed_files()));
            changed
                .flat_map(|(state, files)| {
                    let shown = files.iter().map(|file| shown(state, file));
                    shown.collect::<Vec<_>>()
                })
                .collect()
        };
        LeftByCommand {
            paths: all_left,
            may_be_run: (!files.is_empty()).then_some(MayBeRunByGit {
                because_of: unclear,
                files,
            }),
            is_whole: before.iter().all(DirectoryState::is_whole) && git_failure.is_none(),
            git_failure,
        }
    }
}

/// Changed files, any of which git may run.
#[derive(Serialize)]
pub struct MayBeRunByGit {
    /// The settings, variables and hooks with a command that is not understood.
    because_of: BTreeSet<String>,
    files: Vec<String>,
}

impl MayBeRunByGit {
    /// Returns the line for a person.
    fn line(&self) -> String {
        format!(
            "note: made or changed {} that git may run, because Crucible cannot tell what {} runs: {}",
            counted(self.files.len() as u64, "file"),
            first_names(self.because_of.iter()),
            first_names(self.files.iter()),
        )
    }
}

/// Returns the first names, and how many there are besides.
fn first_names<'n>(names: impl ExactSizeIterator<Item = &'n String>) -> String {
    let more = names.len().saturating_sub(MAX_NAMES);
    let lines: Vec<String> = names
        .take(MAX_NAMES)
        .map(|name| short_line(name, MAX_PATH_LEN))
        .collect();
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", lines.join(", "))
}

/// What a command left that other programs run or obey.
pub struct LeftByCommand {
    /// The entries, most likely run first.
    pub paths: Vec<LeftBehind>,
    /// Changed files that git may run.
    pub may_be_run: Option<MayBeRunByGit>,
    /// Whether all files were compared.
    pub is_whole: bool,
    /// Why it is unknown what git runs now.
    git_failure: Option<String>,
}

impl LeftByCommand {
    /// Returns the lines for a person.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let of_path = |left: &LeftBehind| {
            let more = match left.paths {
                0 | 1 => String::new(),
                paths => format!(" ({})", counted(paths as u64, "path")),
            };
            let path = short_line(&left.path, MAX_PATH_LEN);
            format!("note: made or changed {path}{more}: {}", left.why.as_str())
        };
        let shown = self.paths.iter().take(MAX_REPORTED);
        let mut notes: Vec<String> = shown.map(of_path).collect();
        let others = self.paths.iter().skip(MAX_REPORTED);
        let rest: usize = others.map(|left| left.paths).sum();
        if rest > 0 {
            let rest = counted(rest as u64, "path");
            notes.push(format!("note: and {rest} more; `--json` lists them"));
        }
        notes.extend(self.may_be_run.as_ref().map(MayBeRunByGit::line));
        if let Some(failure) = &self.git_failure {
            notes.push(format!(
                "note: files that git runs since the command began may be missing from this list: {failure}"
            ));
        } else if !self.is_whole {
            notes.push("note: there are too many files to look at all of them for changes; repositories among the rest, in node_modules or target, were not protected".to_owned());
        }
        notes
    }
}
