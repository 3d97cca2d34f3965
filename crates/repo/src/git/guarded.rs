//! Finds the places that decide what git runs, so that writers can be kept from them.
//!
//! Every repository in, around and behind the writable directories is treated in the same way: its git directories, its submodules,
//! the files of its settings with all that they include, and the files that these settings name in each of its work trees.
//!
//! Invariant: everything that git treats as a repository is listed completely, or the result is an error; a failure of git never
//! shortens the list.

mod unclear;

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_sandbox::Sandbox;

use super::addresses::{Addresses, LocalTarget, local, remote_helper};
use super::command::{Call, Runner, as_path};
use super::command_files::{has_interpreter, named_in_command};
use super::config_files::{ConfigFiles, Entry, in_environment, path_in, prefix_of_git};
use super::git_dir::{is_git_directory, is_in_work_tree};
use super::guard_conflict::GuardConflict;
use super::links::{resolve, retain_incomplete_links, unguarded_link};
use super::nested::{FoundRepositories, Repository, absent_repository, paths_in};
use super::programs::{
    NamedPath, SettingRole, library_variable, named_by, named_by_setting, role, variable_role,
};
use super::search_path::{SearchPath, git_subcommands};
use super::{Git, config};
use crate::error::RepoError;
use crate::tree_edit::GuardedPlaces;
use unclear::unclear_commands;

/// How many places are guarded at most: each is a mount.
const MAX_PLACES: usize = 300;
/// How many entries of guarded directories are read at most.
const MAX_CONTENTS: usize = 300_000;
/// Where the names of other directories of objects are.
const ALTERNATES: &str = "alternates";
/// Directories in a git directory of which every entry decides what git runs. Other repositories in it are listed by themselves.
const WHOLE_IN_GIT: [&str; 5] = ["branches", "hooks", "info", "rebase-apply", "rebase-merge"];
/// The mode of a submodule in the index, before its path.
const GITLINK: &[u8] = b"160000 ";
/// Commands of an unfinished rebase, each in a line that begins with one of these words.
const REBASE: &str = "rebase-merge/git-rebase-todo";
const REBASE_COMMANDS: [&[u8]; 2] = [b"exec", b"x"];

/// The places in some directories that decide what git runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guards {
    /// The places, none of which is in another one, except for `.crucible`. One that does not exist and would be a directory ends
    /// with `/`.
    pub places: Vec<PathBuf>,
    /// Why read-only places are not enough.
    pub conflicts: Vec<GuardConflict>,
    /// The settings, variables and hooks with a command that may run any file.
    pub unclear: BTreeSet<String>,
}

/// What git runs or obeys in some directories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunByGit {
    /// The paths whose content decides what git runs, whether or not they can be protected.
    pub paths: BTreeSet<PathBuf>,
    /// The settings, variables and hooks with a command that may run any file.
    pub unclear: BTreeSet<String>,
}

impl Guards {
    /// Returns all that decides what git runs, whether or not it can be protected.
    #[must_use]
    pub fn run_by_git(&self) -> RunByGit {
        let exposed = self.conflicts.iter().map(|conflict| match conflict {
            GuardConflict::Around { directory, .. } => directory,
            GuardConflict::Link { place } => place,
            GuardConflict::HardLink { other, .. } => other,
        });
        RunByGit {
            paths: self.places.iter().chain(exposed).cloned().collect(),
            unclear: self.unclear.clone(),
        }
    }

    /// Returns the guards, unless each of them would be a mount and there are too many.
    fn within_limit(self, directories: &[PathBuf]) -> Result<Self, RepoError> {
        if self.places.len() > MAX_PLACES {
            return Err(too_many_places(directories, self.places.len()));
        }
        Ok(self)
    }
}

impl Git {
    /// Returns the places in `directories` that decide which programs git runs, or which receipts are believed.
    ///
    /// These are git directories; the repository of each submodule that an index names, also of those that do not exist yet;
    /// directories of hooks; files with settings of a repository or the user; files that the settings make git run; and each
    /// `.crucible`. Directories named `node_modules` and `target` are not searched. The repositories around the directories and
    /// around the working directory count, too. They need no commit.
    ///
    /// `known` names repositories wherever they are in the directories, by `.git` or as bare ones.
    ///
    /// # Errors
    ///
    /// Any failure of git ([`RepoError`] as for [`Git::open`]), a search that would take too long, and too many places.
    pub async fn guarded_places(
        sandbox: Arc<Sandbox>,
        env: &Environment,
        directories: &[PathBuf],
        known: &[PathBuf],
    ) -> Result<Guards, RepoError> {
        let guards = guards_of(Runner::find(sandbox, env), env, directories, known).await?;
        guards.within_limit(directories)
    }

    /// Returns what git runs in `directories`: the paths of [`Git::guarded_places`] in any number, to compare them after a run.
    ///
    /// # Errors
    ///
    /// As [`Git::guarded_places`], except for the number of places.
    pub async fn run_by_git(
        sandbox: Arc<Sandbox>,
        env: &Environment,
        directories: &[PathBuf],
        known: &[PathBuf],
    ) -> Result<RunByGit, RepoError> {
        let guards = guards_of(Runner::find(sandbox, env), env, directories, known).await?;
        Ok(guards.run_by_git())
    }

    /// Returns the current paths of this work tree that decide what git runs.
    pub async fn guards(&self) -> GuardedPlaces {
        let top = self.top().to_owned();
        let runner = Ok(self.runner.clone());
        let guards = guards_of(runner, &self.env, std::slice::from_ref(&top), &[]).await;
        let guards = guards.and_then(|guards| guards.within_limit(&[top]));
        GuardedPlaces::new(self.top(), guards)
    }
}

async fn guards_of(
    runner: Result<Runner, RepoError>,
    env: &Environment,
    directories: &[PathBuf],
    known: &[PathBuf],
) -> Result<Guards, RepoError> {
    let real = |directory: &PathBuf| {
        let real = directory.canonicalize();
        real.map_err(|source| RepoError::io("open", directory, source))
    };
    let directories: Vec<PathBuf> = directories.iter().map(real).collect::<Result<_, _>>()?;
    let (searched, known, env) = (directories.clone(), known.to_vec(), env.clone());
    let own_env = env.clone();
    let found = blocking(move || FoundRepositories::find(&searched, &known, &own_env)).await?;
    let settings = Settings::read(&runner, &env, &found).await?;
    let mut work_trees = Vec::new();
    for repository in &found.repositories {
        work_trees.push(WorkTrees::find(repository, &settings, &runner, &directories).await?);
    }
    let expected: Vec<Vec<PathBuf>> = found
        .repositories
        .iter()
        .map(|repository| expected_tops(repository, &found, &work_trees))
        .collect();
    for (trees, expected) in work_trees.iter_mut().zip(expected) {
        trees.expected = expected;
    }
    blocking(move || {
        let mut places = Places::default();
        places.all.extend(found.places.iter().cloned());
        places.tops.extend(
            work_trees
                .iter()
                .flat_map(|trees| trees.tops.iter().cloned()),
        );
        let (files, shared) = settings.shared();
        places.all.extend(files);
        places.add_settings(&settings, &shared, &found, &work_trees)?;
        for (repository, trees) in found.repositories.iter().zip(&work_trees) {
            places.add_repository(repository, trees, &settings, &shared)?;
        }
        let repositories: Vec<_> = found.repositories.iter().zip(&work_trees).collect();
        let unclear = unclear_commands(&settings, &shared, &repositories, &directories);
        Ok(Guards {
            unclear,
            ..places.guards(&directories)?
        })
    })
    .await
}

/// Runs a search on a thread for blocking work.
async fn blocking<T: Send + 'static>(
    search: impl FnOnce() -> Result<T, RepoError> + Send + 'static,
) -> Result<T, RepoError> {
    let died = |error| {
        RepoError::io(
            "search",
            "the writable directories",
            std::io::Error::other(error),
        )
    };
    tokio::task::spawn_blocking(search).await.map_err(died)?
}

/// The settings of all repositories in reach, and those that git reads everywhere.
struct Settings {
    env: Environment,
    files: ConfigFiles,
    /// The files of the machine and of the user.
    shared: Vec<PathBuf>,
    /// Settings in variables.
    in_environment: Vec<Entry>,
}

impl Settings {
    async fn read(
        runner: &Result<Runner, RepoError>,
        env: &Environment,
        found: &FoundRepositories,
    ) -> Result<Self, RepoError> {
        let mut shared = system_settings(env);
        shared.extend(users_settings(env));
        let in_environment = in_environment(env);
        // A relative path in a variable is refused by git.
        let included = |entry: &Entry| entry.included(Path::new("/environment"), env);
        shared.extend(in_environment.iter().filter_map(included));
        let places_where = |is_around: bool| -> BTreeSet<PathBuf> {
            let repositories = found.repositories.iter();
            let repositories = repositories.filter(|repository| repository.is_around == is_around);
            repositories.flat_map(Repository::settings).collect()
        };
        let (mut strict, nested) = (places_where(true), places_where(false));
        strict.extend(shared.iter().cloned());
        let files = match runner {
            Ok(runner) => ConfigFiles::read(runner, env, strict, nested).await?,
            Err(_)
                if nested
                    .iter()
                    .chain(&places_where(true))
                    .any(|file| file.exists()) =>
            {
                return Err(git_is_missing(env));
            }
            // Without git and without settings of a repository nothing is run.
            Err(_) => ConfigFiles::default(),
        };
        Ok(Self {
            env: env.clone(),
            files,
            shared,
            in_environment,
        })
    }

    /// Returns the files that settings in `files` include, and all their entries.
    fn entries_in(&self, files: impl IntoIterator<Item = PathBuf>) -> (Vec<PathBuf>, Vec<&Entry>) {
        self.files.reachable(files.into_iter().collect(), &self.env)
    }

    /// Returns the files that git reads everywhere, and their entries with those of the environment.
    fn shared(&self) -> (Vec<PathBuf>, Vec<&Entry>) {
        let (mut files, mut entries) = self.entries_in(self.shared.clone());
        files.extend(self.shared.iter().cloned());
        entries.extend(&self.in_environment);
        (files, entries)
    }
}

fn git_is_missing(env: &Environment) -> RepoError {
    RepoError::GitMissing {
        searched: env.path_dirs(),
    }
}

/// The work trees of a repository, and the submodules in them.
struct WorkTrees {
    tops: BTreeSet<PathBuf>,
    submodules: Vec<PathBuf>,
    /// Where those of the repository of a submodule may be later.
    expected: Vec<PathBuf>,
    /// Tops with submodules that nobody can name.
    unknown: Vec<PathBuf>,
}

impl WorkTrees {
    async fn find(
        repository: &Repository,
        settings: &Settings,
        runner: &Result<Runner, RepoError>,
        directories: &[PathBuf],
    ) -> Result<Self, RepoError> {
        let mut tops = repository.tops.clone();
        let (_, entries) = settings.entries_in(repository.settings());
        let named = entries.iter().filter(|entry| entry.key == b"core.worktree");
        tops.extend(named.map(|entry| repository.git_dir.join(as_path(&entry.value))));
        let mut trees = Self {
            tops: tops.iter().map(|top| resolve(top).0).collect(),
            submodules: Vec::new(),
            expected: Vec::new(),
            unknown: Vec::new(),
        };
        if trees.tops.is_empty() {
            return Ok(trees);
        }
        let listed = match repository.submodules()? {
            Some(paths) => Ok(paths),
            None => match runner {
                Ok(runner) => listed_submodules(runner, &repository.git_dir).await,
                Err(_) => Err(git_is_missing(&settings.env)),
            },
        };
        let listed = match listed {
            Ok(mut paths) => match other_submodules(repository, &trees.tops, &settings.env) {
                Ok(others) => {
                    paths.extend(others);
                    Ok(paths)
                }
                Err(error) => Err(error),
            },
            failed => failed,
        };
        match listed {
            Ok(paths) => {
                let join =
                    |top: &PathBuf| paths.iter().map(|path| top.join(path)).collect::<Vec<_>>();
                trees.submodules = trees.tops.iter().flat_map(join).collect();
            }
            Err(error) => {
                let is_whole = |top: &PathBuf| directories.iter().any(|one| one.starts_with(top));
                if repository.is_around || trees.tops.iter().any(is_whole) {
                    return Err(error);
                }
                trees.unknown = trees.tops.iter().cloned().collect();
            }
        }
        Ok(trees)
    }
}

/// Returns where the work trees of the repository of a submodule may be: at each path of a submodule, or where its name says.
fn expected_tops(
    repository: &Repository,
    found: &FoundRepositories,
    work_trees: &[WorkTrees],
) -> Vec<PathBuf> {
    let mut expected = Vec::new();
    for (outer, trees) in found.repositories.iter().zip(work_trees) {
        for dir in [&outer.git_dir, &outer.common_dir] {
            if let Ok(name) = repository.git_dir.strip_prefix(dir.join("modules")) {
                expected.extend(trees.tops.iter().map(|top| top.join(name)));
                expected.extend(trees.submodules.iter().cloned());
            }
        }
    }
    expected
}

/// Returns the paths of the submodules in the index that a variable names. A relative path counts from the work tree, or from where
/// git is called.
fn other_submodules(
    repository: &Repository,
    tops: &BTreeSet<PathBuf>,
    env: &Environment,
) -> Result<Vec<PathBuf>, RepoError> {
    const INDEX: &str = "GIT_INDEX_FILE";
    let Some(index) = env.get_os(INDEX).filter(|index| !index.is_empty()) else {
        return Ok(Vec::new());
    };
    let bases = tops.iter().map(PathBuf::as_path);
    let bases = bases.chain([&*repository.git_dir, env.working_directory()]);
    let files: BTreeSet<PathBuf> = bases.map(|base| base.join(index)).collect();
    let mut submodules = Vec::new();
    for file in files {
        let of_file = Repository::submodules_in(file.clone())?.ok_or_else(|| {
            let why = format!("its format is not known; unset {INDEX}");
            RepoError::io("read", file, std::io::Error::other(why))
        })?;
        submodules.extend(of_file);
    }
    Ok(submodules)
}

/// Returns the paths of the submodules in an index that only git can read.
async fn listed_submodules(runner: &Runner, git_dir: &Path) -> Result<Vec<PathBuf>, RepoError> {
    // Any work tree will do: none is looked at.
    let words = ["ls-files", "--stage", "-z"].map(Into::into);
    let place = [
        "--git-dir".into(),
        git_dir.as_os_str().to_owned(),
        "--work-tree".into(),
    ];
    let words = place
        .into_iter()
        .chain([git_dir.as_os_str().to_owned()])
        .chain(words);
    let call = Call::new(words).with_timeout(config::TIMEOUT);
    let index = runner.run(git_dir, None, &[], call).await?;
    if index.code != 0 {
        return Err(index.into_error());
    }
    let path = |record: &[u8]| {
        let tab = record.iter().position(|byte| *byte == b'\t');
        let tab = tab.ok_or_else(|| index.unreadable())?;
        Ok(as_path(&record[tab + 1..]))
    };
    let links = index.records().filter(|record| record.starts_with(GITLINK));
    links.map(path).collect()
}

/// How much of a guarded directory matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Extent {
    /// Its files.
    Files,
    /// Everything.
    Whole,
    /// The entries of git in a git directory.
    GitDirectory,
    /// What in a directory of objects leads elsewhere.
    Objects,
    /// The names of other directories of objects.
    ObjectInfo,
}

impl Extent {
    /// Returns how much of a directory in such a directory matters.
    fn of_entry(self, name: &OsStr) -> Option<Self> {
        match (self, name.to_str()) {
            (Self::Whole, _) => Some(Self::Whole),
            (Self::GitDirectory, Some("objects")) => Some(Self::Objects),
            (Self::GitDirectory, Some(name)) => WHOLE_IN_GIT.contains(&name).then_some(Self::Whole),
            (Self::Objects, Some("info")) => Some(Self::ObjectInfo),
            _ => None,
        }
    }

    /// Returns whether a file in such a directory decides what git runs. A local clone shares objects and lists of them.
    fn has_file(self, name: &OsStr) -> bool {
        match self {
            Self::Files | Self::Whole | Self::GitDirectory => true,
            Self::Objects => false,
            Self::ObjectInfo => name == ALTERNATES,
        }
    }
}

/// Where relative paths of settings count from, and what names of remotes mean there.
struct Scope<'a> {
    bases: BTreeSet<&'a Path>,
    addresses: Addresses,
    settings: &'a Settings,
}

impl<'a> Scope<'a> {
    fn new(bases: BTreeSet<&'a Path>, entries: &[&Entry], settings: &'a Settings) -> Self {
        Self {
            bases,
            addresses: Addresses::from_entries(entries),
            settings,
        }
    }
}

/// The places that decide what git runs, in the writable directories and elsewhere.
#[derive(Debug, Default)]
struct Places {
    all: BTreeSet<PathBuf>,
    /// Git directories: work trees may be in them, beside the entries of git.
    git_dirs: BTreeSet<PathBuf>,
    /// Directories of hooks, of which only the files are run.
    hooks: BTreeSet<PathBuf>,
    /// Where git expects repositories.
    addresses: BTreeSet<PathBuf>,
    tops: BTreeSet<PathBuf>,
    /// What is run because it is found on `PATH`.
    programs: BTreeSet<PathBuf>,
    /// Directories of modules that programs load.
    libraries: BTreeSet<PathBuf>,
    /// Directories that were read.
    contents: HashSet<(PathBuf, Extent)>,
    seen: usize,
}

impl Places {
    /// Adds what the settings that git reads everywhere name outside of repositories, and what variables name.
    fn add_settings(
        &mut self,
        settings: &Settings,
        shared: &[&Entry],
        found: &FoundRepositories,
        work_trees: &[WorkTrees],
    ) -> Result<(), RepoError> {
        let tops = work_trees.iter().flat_map(|trees| &trees.tops);
        let mut bases: BTreeSet<&Path> = tops.map(PathBuf::as_path).collect();
        let current_dir = settings.env.working_directory();
        if !bases.iter().any(|top| current_dir.starts_with(top)) {
            bases.insert(current_dir);
            let scope = Scope::new([current_dir].into(), shared, settings);
            self.add_entries(shared, &scope)?;
        }
        let git_dirs = found.repositories.iter();
        bases.extend(git_dirs.map(|repository| &*repository.git_dir));
        self.programs.extend(git_subcommands(&settings.env, &bases));
        let scope = Scope::new(bases, &[], settings);
        let mut entries = shared.to_vec();
        for repository in &found.repositories {
            entries.extend(settings.entries_in(repository.settings()).1);
        }
        let libraries = settings.env.pairs().filter_map(|(name, value)| {
            let interpreter = library_variable(name.to_str()?)??;
            let is_run = entries.iter().any(|entry| {
                role(&entry.key).is_some() && has_interpreter(&entry.value, interpreter)
            });
            is_run.then_some(value.as_encoded_bytes())
        });
        for value in libraries {
            self.add_value(SettingRole::Libraries, value, &scope)?;
        }
        let variables = settings.env.pairs().filter_map(|(name, value)| {
            Some((variable_role(name.to_str()?)?, value.as_encoded_bytes()))
        });
        for (role, value) in variables {
            self.add_value(role, value, &scope)?;
        }
        let directory = users_directory(&settings.env);
        self.all
            .extend(directory.map(|directory| directory.join("attributes")));
        Ok(())
    }

    fn add_repository(
        &mut self,
        repository: &Repository,
        trees: &WorkTrees,
        settings: &Settings,
        shared: &[&Entry],
    ) -> Result<(), RepoError> {
        let dirs = [&repository.git_dir, &repository.common_dir];
        for dir in dirs {
            self.git_dirs.insert(resolve(dir).0);
            self.add_directory(dir, Extent::GitDirectory)?;
            self.add_alternates(&dir.join("objects"))?;
        }
        self.all.extend(trees.unknown.iter().cloned());
        self.all
            .extend(trees.submodules.iter().map(|path| absent_repository(path)));
        let (files, mut entries) = settings.entries_in(repository.settings());
        self.all.extend(files);
        entries.extend(shared);
        let mut bases: BTreeSet<&Path> = dirs.map(PathBuf::as_path).into();
        bases.extend(
            trees
                .tops
                .iter()
                .chain(&trees.expected)
                .map(PathBuf::as_path),
        );
        let mut scope = Scope::new(bases, &entries, settings);
        for address in scope.addresses.add_files(repository) {
            self.add_value(SettingRole::Address, &address, &scope)?;
        }
        self.add_entries(&entries, &scope)?;
        let todo = std::fs::read(repository.git_dir.join(REBASE)).unwrap_or_default();
        for line in todo.split(|byte| *byte == b'\n') {
            if let Some(command) = command_of_rebase(line) {
                self.add_value(SettingRole::Command, command, &scope)?;
            }
        }
        // git runs these in the submodules.
        scope.bases = trees.submodules.iter().map(PathBuf::as_path).collect();
        entries.retain(|entry| {
            entry.key.starts_with(b"submodule.") || has_word(&entry.value, b"foreach")
        });
        self.add_entries(&entries, &scope)
    }

    fn add_entries(&mut self, entries: &[&Entry], scope: &Scope<'_>) -> Result<(), RepoError> {
        for entry in entries {
            for base in &scope.bases {
                for named in named_by_setting(&entry.key, &entry.value, base, &scope.settings.env) {
                    self.add_named(named, base, scope)?;
                }
            }
        }
        Ok(())
    }

    fn add_value(
        &mut self,
        role: SettingRole,
        value: &[u8],
        scope: &Scope<'_>,
    ) -> Result<(), RepoError> {
        // A relative path means another file in each work tree.
        for base in &scope.bases {
            for named in named_by(role, value, base, &scope.settings.env) {
                self.add_named(named, base, scope)?;
            }
        }
        Ok(())
    }

    fn add_named(
        &mut self,
        named: NamedPath,
        base: &Path,
        scope: &Scope<'_>,
    ) -> Result<(), RepoError> {
        match named {
            NamedPath::Path(path) => {
                self.all.insert(path);
            }
            NamedPath::Directory(path) => self.add_directory(&path, Extent::Whole)?,
            NamedPath::Hooks(path) => {
                // The hooks of husky start those in the directory above.
                let above = path.parent().filter(|_| path.ends_with("_"));
                for hooks in above.into_iter().chain([&*path]) {
                    self.hooks.insert(resolve(hooks).0);
                    self.add_directory(hooks, Extent::Files)?;
                }
            }
            NamedPath::Repository(path) => self.add_place_of_repository(&path),
            NamedPath::Repositories(path) => self.add_address(&path),
            NamedPath::WorkTree(path) => {
                self.all.insert(absent_repository(&path));
            }
            NamedPath::Program(path) => {
                self.programs.insert(path);
            }
            NamedPath::Library(path) => {
                let is_there = path.exists();
                self.libraries
                    .insert(if is_there { path } else { path.join("") });
            }
            NamedPath::Remotes(words) => {
                for word in words {
                    self.add_named(NamedPath::Remote(word), base, scope)?;
                }
            }
            NamedPath::FirstRemote(words) => {
                let is_address = |word: &Vec<u8>| !scope.addresses.has_remote(word);
                for word in words.into_iter().take_while(is_address) {
                    self.add_named(NamedPath::Address(word), base, scope)?;
                }
            }
            NamedPath::Remote(name) if scope.addresses.has_remote(&name) => {}
            NamedPath::Remote(address) | NamedPath::Address(address) => {
                for address in scope.addresses.rewritten_forms(&address) {
                    match local(&address) {
                        Some(LocalTarget::Path(path)) => {
                            if let Some(path) = path_in(&path, base, &scope.settings.env) {
                                self.add_place_of_repository(&path);
                            }
                        }
                        Some(LocalTarget::Command(command)) => {
                            // Its own addresses are taken as they are, so this ends.
                            let inner = Scope::new([base].into(), &[], scope.settings);
                            for named in named_in_command(&command, base, &scope.settings.env) {
                                self.add_named(named, base, &inner)?;
                            }
                        }
                        None => {
                            let programs = SearchPath::new(&scope.settings.env, base);
                            for named in remote_helper(&address)
                                .into_iter()
                                .flat_map(|helper| programs.candidate_programs(&helper))
                            {
                                self.add_named(named, base, scope)?;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the place of a repository that does not exist yet.
    fn add_place_of_repository(&mut self, path: &Path) {
        let is_there = path.join(".git").symlink_metadata().is_ok() || is_git_directory(path);
        if !is_there {
            // git tries both names.
            let mut with_ending = path.as_os_str().to_owned();
            with_ending.push(".git");
            self.add_address(path);
            self.add_address(Path::new(&with_ending));
        }
    }

    fn add_address(&mut self, path: &Path) {
        let path = if path.exists() {
            path.to_owned()
        } else {
            path.join("")
        };
        self.addresses.insert(resolve(&path).0);
        self.all.insert(path);
    }

    /// Adds a directory, with the links and the files of several names in it, which lead elsewhere.
    fn add_directory(&mut self, directory: &Path, extent: Extent) -> Result<(), RepoError> {
        let Ok(real) = directory.canonicalize() else {
            self.all.insert(directory.join(""));
            return Ok(());
        };
        self.all.insert(directory.to_owned());
        if !self.contents.insert((real.clone(), extent)) {
            return Ok(());
        }
        for path in paths_in(&real) {
            self.seen += 1;
            if self.seen > MAX_CONTENTS {
                let why = format!(
                    "git runs programs from it, and it has more than {MAX_CONTENTS} entries"
                );
                return Err(RepoError::io(
                    "search",
                    directory,
                    std::io::Error::other(why),
                ));
            }
            let (Some(name), Ok(meta)) = (path.file_name(), path.symlink_metadata()) else {
                continue;
            };
            let is_link = meta.is_symlink();
            if is_link || meta.nlink() > 1 && meta.is_file() && extent.has_file(name) {
                self.all.insert(path.clone());
            }
            let inner = extent
                .of_entry(name)
                .filter(|_| meta.is_dir() || is_link && path.is_dir());
            if let Some(inner) = inner {
                self.add_directory(&path, inner)?;
            }
        }
        Ok(())
    }

    /// Adds the directories of objects that one borrows from, directly or not.
    fn add_alternates(&mut self, objects: &Path) -> Result<(), RepoError> {
        let (mut left, mut seen) = (vec![objects.to_owned()], HashSet::new());
        while let Some(objects) = left.pop() {
            let list = std::fs::read(objects.join("info").join(ALTERNATES)).unwrap_or_default();
            for line in list.split(|byte| *byte == b'\n') {
                let is_path = !line.is_empty() && !line.starts_with(b"#");
                let other = objects.join(as_path(line));
                if is_path && seen.insert(other.clone()) {
                    self.add_directory(&other, Extent::Objects)?;
                    left.push(other);
                }
            }
        }
        Ok(())
    }

    /// Returns what has to be protected in the writable directories, and what cannot be.
    fn guards(&self, directories: &[PathBuf]) -> Result<Guards, RepoError> {
        let is_inside = |path: &Path| {
            directories
                .iter()
                .any(|directory| path.starts_with(directory))
        };
        let (mut places, mut inside) = (BTreeSet::new(), BTreeSet::new());
        for path in &self.all {
            let (real, links) = resolve(path);
            inside.extend(links.into_iter().filter(|link| is_inside(link)));
            if is_inside(&real) {
                inside.insert(without_file_above(&real));
            }
            places.insert(real);
        }
        let is_below = |path: &Path| {
            let mut directories = directories.iter();
            directories.any(|directory| path != directory && path.starts_with(directory))
        };
        for path in self.programs.iter().chain(&self.libraries) {
            let (real, links) = resolve(path);
            // A link cannot be protected by itself, but the directory of programs that it is in can.
            let around = links.iter().filter_map(|link| link.parent());
            let found = around.chain([&*real]).filter(|path| is_below(path));
            inside.extend(found.map(without_file_above));
        }
        let mut conflicts: Vec<GuardConflict> = Vec::new();
        for directory in directories {
            let around = places.iter().filter(|place| directory.starts_with(place));
            let around = around.filter(|place| !self.is_apart(directory, place));
            conflicts.extend(around.map(|place| GuardConflict::Around {
                place: place.clone(),
                directory: directory.clone(),
            }));
        }
        let outermost_places = outermost(inside);
        conflicts.extend(
            outermost_places
                .iter()
                .filter(|place| place.is_symlink())
                .map(|place| GuardConflict::Link {
                    place: place.clone(),
                }),
        );
        let names = retain_incomplete_links(&places);
        if !names.is_empty() {
            let files = names.keys().copied().collect();
            let stored_paths: BTreeSet<PathBuf> = outermost_places.iter().cloned().collect();
            for directory in directories {
                if let Some((other, id)) = unguarded_link(directory, &files, &stored_paths)? {
                    let place = names[&id].clone();
                    conflicts.push(GuardConflict::HardLink { place, other });
                }
            }
        }
        Ok(Guards {
            places: outermost_places,
            conflicts,
            unclear: BTreeSet::new(),
        })
    }

    /// Returns whether a writer in `directory` changes nothing that decides what git runs in the place around it.
    fn is_apart(&self, directory: &Path, place: &Path) -> bool {
        let is_of_hooks = || {
            let mut tops = self.tops.iter();
            self.hooks.contains(place) && tops.any(|top| top.starts_with(place))
        };
        let is_of_git = || self.git_dirs.contains(place) && is_in_work_tree(directory, place);
        let is_below = directory != place;
        is_below && (is_of_git() || is_of_hooks() || self.addresses.contains(place))
    }
}

/// Returns the command in a line of an unfinished rebase. git ignores blanks before it.
fn command_of_rebase(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii_start();
    let end = line.iter().position(u8::is_ascii_whitespace)?;
    REBASE_COMMANDS
        .contains(&&line[..end])
        .then(|| line[end..].trim_ascii())
}

fn has_word(text: &[u8], word: &[u8]) -> bool {
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    text.split(|byte| !is_of_word(byte)).any(|one| one == word)
}

/// Returns the path, or the file that is in the place of a directory above it: nothing is created below a file that stays.
fn without_file_above(path: &Path) -> PathBuf {
    let mut above = path.ancestors().skip(1);
    let existing = above.find(|above| above.symlink_metadata().is_ok());
    match existing {
        Some(file) if !file.is_dir() => file.to_owned(),
        _ => path.to_owned(),
    }
}

/// Returns the places that are in no other one. Each `.crucible` is kept.
fn outermost(places: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mut around: Option<PathBuf> = None;
    let mut outermost = Vec::new();
    // A directory sorts before what it contains.
    for place in places {
        let is_covered = around.as_ref().is_some_and(|dir| place.starts_with(dir));
        if !is_covered && !place.is_symlink() && place.is_dir() {
            around = Some(place.clone());
        }
        if !is_covered || place.ends_with(".crucible") {
            outermost.push(place);
        }
    }
    outermost
}

fn too_many_places(directories: &[PathBuf], places: usize) -> RepoError {
    let why = format!(
        "{places} paths in it decide what git runs; at most {MAX_PLACES} can be protected. Move other repositories in it elsewhere"
    );
    let directory = directories.first().cloned().unwrap_or_default();
    RepoError::io("guard", directory, std::io::Error::other(why))
}

/// Returns the path in a variable.
fn path_of(env: &Environment, name: &str) -> Option<PathBuf> {
    let value = env.get_os(name).filter(|value| !value.is_empty());
    value.map(|value| env.working_directory().join(value))
}

/// Returns the files with the settings of the machine.
fn system_settings(env: &Environment) -> Vec<PathBuf> {
    const FILE: &str = "etc/gitconfig";
    match path_of(env, "GIT_CONFIG_SYSTEM") {
        Some(file) => vec![file],
        None => {
            let own = prefix_of_git(env).map(|prefix| prefix.join(FILE));
            std::iter::once(Path::new("/").join(FILE))
                .chain(own)
                .collect()
        }
    }
}

/// Returns where the user's own settings of git are, besides `.gitconfig`.
fn users_directory(env: &Environment) -> Option<PathBuf> {
    let config = path_of(env, "XDG_CONFIG_HOME").or_else(|| Some(env.home()?.join(".config")));
    config.map(|config| config.join("git"))
}

/// Returns the files with the user's own git settings, and those that git would read if they were created.
fn users_settings(env: &Environment) -> Vec<PathBuf> {
    match path_of(env, "GIT_CONFIG_GLOBAL") {
        Some(file) => vec![file],
        None => {
            let home = env.home().map(|home| home.join(".gitconfig"));
            let directory = users_directory(env).map(|directory| directory.join("config"));
            home.into_iter().chain(directory).collect()
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test lays out repositories by hand"
)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn too_many_guarded_places_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let clones = |numbers: std::ops::Range<usize>| {
            numbers.for_each(|n| {
                std::fs::create_dir_all(dir.path().join(format!("clones/{n}/.git"))).unwrap()
            });
        };
        let env = Environment::default();
        let sandbox = Arc::new(Sandbox::new(None, &env));
        let directories = [dir.path().to_owned()];
        let guarded =
            async || Git::guarded_places(Arc::clone(&sandbox), &env, &directories, &[]).await;
        clones(0..MAX_PLACES);
        assert_eq!(guarded().await.unwrap().places.len(), MAX_PLACES);
        clones(MAX_PLACES..MAX_PLACES + 1);
        let why = guarded().await.unwrap_err().to_string();
        assert!(
            why.contains("301 paths") && why.contains("at most 300"),
            "{why}"
        );
        assert!(why.contains("Move other repositories"), "{why}");
    }
}
