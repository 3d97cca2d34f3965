//! Finds the paths in a directory that decide what git runs, so that writers can be kept from them.
//!
//! Every repository in reach is treated in the same way: its git directories, its submodules, the files of its settings with all
//! that they include, and the files that these settings name in each of its work trees.
//!
//! Invariant: everything that git treats as a repository is listed completely, or the result is an error; a
//! failure of git never shortens the list.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_sandbox::Sandbox;

use super::command::{Call, Runner, as_path};
use super::config::Listing;
use super::config_files::{ConfigFiles, Entry, in_environment};
use super::locate::Place;
use super::nested::{Found, Repository};
use super::{Git, config, locate, named_files, nested};
use crate::error::RepoError;
use crate::tree_edit::GuardedPlaces;

/// How many places are guarded at most: each is a mount.
const MOST_PLACES: usize = 300;
/// The mode of a submodule in the index, before its path.
const GITLINK: &[u8] = b"160000 ";

impl Git {
    /// Returns the places in `directory` that decide which programs git runs, or which receipts are believed.
    ///
    /// These are the git directories of the work tree; the repository of each submodule that an index names, also of
    /// those that do not exist yet; directories of hooks; files with settings of a repository or the user; files that
    /// a word of a setting names; each repository and each `.crucible` at any depth, except in `node_modules` and
    /// `target`; and each link on the way to one of them. A directory that does not exist ends with `/`. If `directory`
    /// is in no repository, only what it contains counts. The repository needs no commit.
    ///
    /// `known` names repositories wherever they are, by `.git` or as bare ones.
    ///
    /// # Errors
    ///
    /// Any failure of git ([`RepoError`] as for [`Git::open`]), a search that would take too long, and too many places.
    pub async fn guarded_places(
        sandbox: Arc<Sandbox>,
        env: &Environment,
        directory: &Path,
        known: &[PathBuf],
    ) -> Result<Vec<PathBuf>, RepoError> {
        let place = match locate::locate(directory) {
            Ok(place) => Some(place),
            Err(RepoError::NotARepository { .. } | RepoError::NotThere { .. }) => None,
            Err(error) => return Err(error),
        };
        let mut found = below(directory, known).await?;
        if let Some(place) = &place {
            let submodules = match Repository::from(place).submodules()? {
                Some(places) => places,
                None => {
                    let runner = Runner::find(Arc::clone(&sandbox), env)?;
                    listed_submodules(&runner, place).await?
                }
            };
            add_top(&mut found, place, submodules);
        }
        let runner = Runner::find(sandbox, env);
        let settings = Settings::read(runner, env, &found, place.as_ref()).await?;
        if let Some(place) = &place {
            settings.check(place)?;
        }
        settings.guarded(directory, found)
    }

    /// Returns the current paths of this work tree that decide what git runs.
    pub async fn guards(&self) -> GuardedPlaces {
        GuardedPlaces::told(self.top(), self.guarded().await)
    }

    async fn guarded(&self) -> Result<Vec<PathBuf>, RepoError> {
        let mut found = below(self.top(), &[]).await?;
        let paths = self.submodules().await?;
        let submodules = paths
            .iter()
            .map(|path| nested::submodule(&self.top().join(path)));
        add_top(&mut found, &self.place, submodules.collect());
        let runner = Ok(self.runner.clone());
        let settings = Settings::read(runner, &self.env, &found, Some(&self.place)).await?;
        settings.guarded(self.top(), found)
    }
}

/// Searches a directory; `known` are repositories in it.
async fn below(directory: &Path, known: &[PathBuf]) -> Result<Found, RepoError> {
    let (searched, known) = (directory.to_owned(), known.to_vec());
    let search = tokio::task::spawn_blocking(move || Found::below(&searched, &known));
    let died = |error| RepoError::io("search", directory, std::io::Error::other(error));
    search.await.map_err(died)?
}

/// Adds the repository that contains the searched directory.
fn add_top(found: &mut Found, place: &Place, submodules: Vec<PathBuf>) {
    let repository = Repository::from(place);
    found.places.extend(repository.places());
    found.places.extend(submodules);
    // A new one would hold settings and receipts that are believed.
    found.places.push(place.top.join(".crucible").join(""));
    if !found.repositories.contains(&repository) {
        found.repositories.push(repository);
    }
}

/// Returns the places of the submodules in an index that only git can read.
async fn listed_submodules(runner: &Runner, place: &Place) -> Result<Vec<PathBuf>, RepoError> {
    let listing = config::list(runner, place, config::PATIENCE).await?;
    place.check(&listing)?;
    let neutral = listing.neutral(&place.top)?;
    let call = Call::new(["ls-files", "--stage", "-z"]);
    let index = runner.run(&place.top, Some(place), &neutral, call).await?;
    if index.code != 0 {
        return Err(index.failed());
    }
    let submodule = |record: &[u8]| {
        let tab = record
            .iter()
            .position(|byte| *byte == b'\t')
            .ok_or_else(|| index.unreadable())?;
        let path = as_path(&record[tab + 1..]);
        Ok(nested::submodule(&place.top.join(path)))
    };
    let links = index.records().filter(|record| record.starts_with(GITLINK));
    links.map(submodule).collect()
}

/// The settings of all repositories in reach, and those that git reads everywhere.
struct Settings<'a> {
    env: &'a Environment,
    files: ConfigFiles,
    /// The files of the machine and of the user.
    shared: Vec<PathBuf>,
    in_environment: Vec<Entry>,
}

impl<'a> Settings<'a> {
    async fn read(
        runner: Result<Runner, RepoError>,
        env: &'a Environment,
        found: &Found,
        place: Option<&Place>,
    ) -> Result<Self, RepoError> {
        let mut shared = system_settings(env);
        shared.extend(users_settings(env));
        let in_environment = in_environment(env);
        // A relative path in a variable is refused by git.
        let included = |entry: &Entry| entry.included(Path::new("/environment"), env);
        shared.extend(in_environment.iter().filter_map(included));
        let mut strict = shared.clone();
        strict.extend(
            place
                .map(Repository::from)
                .iter()
                .flat_map(Repository::settings),
        );
        let nested: Vec<PathBuf> = found
            .repositories
            .iter()
            .flat_map(Repository::settings)
            .collect();
        let files = match runner {
            Ok(runner) => ConfigFiles::read(&runner, env, &strict, &nested).await?,
            Err(error) if nested.iter().any(|file| file.exists()) => return Err(error),
            // Without git and without settings of a repository nothing is run.
            Err(_) => ConfigFiles::default(),
        };
        Ok(Self {
            env,
            files,
            shared,
            in_environment,
        })
    }

    /// Checks that a git directory which a file names belongs to this work tree.
    fn check(&self, place: &Place) -> Result<(), RepoError> {
        let mut listing = Listing::default();
        for entry in self.files.of(&place.common_dir.join("config")) {
            match &entry.key[..] {
                b"core.worktree" => listing.work_tree = Some(as_path(&entry.value)),
                b"core.bare" => listing.is_bare = config::is_true(Some(&entry.value)),
                _ => {}
            }
        }
        match place.check(&listing) {
            // It has no work tree here that git could change; those that are linked to it are covered.
            Err(RepoError::GitDirElsewhere { .. } | RepoError::Bare { .. }) if listing.is_bare => {
                Ok(())
            }
            checked => checked,
        }
    }

    /// Returns the places in `directory`: those that were found, and those that settings name.
    fn guarded(&self, directory: &Path, found: Found) -> Result<Vec<PathBuf>, RepoError> {
        let mut places = found.places;
        let (included, mut shared) = self.files.reachable(&self.shared, self.env);
        places.extend(self.shared.iter().cloned().chain(included));
        shared.extend(&self.in_environment);
        let named = |entry: &&Entry, top: &Path| named_files::named_by(entry, top, self.env);
        for entry in &shared {
            places.extend(named(entry, Path::new("/")));
        }
        for repository in &found.repositories {
            let (included, mut entries) = self.files.reachable(&repository.settings(), self.env);
            places.extend(included);
            let mut tops = repository.tops();
            let work_trees = entries.iter().filter(|entry| entry.key == b"core.worktree");
            tops.extend(work_trees.map(|entry| repository.git_dir().join(as_path(&entry.value))));
            entries.extend(&shared);
            // A relative path means another file in each work tree.
            for top in &tops {
                places.extend(entries.iter().flat_map(|entry| named(entry, top)));
            }
        }
        let real = directory
            .canonicalize()
            .map_err(|source| RepoError::io("open", directory, source))?;
        let places = outermost(&real, &places);
        if places.len() > MOST_PLACES {
            return Err(too_many_places(directory, places.len()));
        }
        Ok(places)
    }
}

/// Returns the places below `directory` that are in no other one, with the links that lead to them.
///
/// A file with a hard link is kept, since the place around it does not protect it, and so is each `.crucible`.
fn outermost(directory: &Path, places: &[PathBuf]) -> Vec<PathBuf> {
    let with_links = |path: &PathBuf| {
        let (path, links) = nested::resolve(path);
        links.into_iter().chain([path])
    };
    let places: BTreeSet<PathBuf> = places
        .iter()
        .flat_map(with_links)
        .filter(|path| path.starts_with(directory))
        .collect();
    let mut around: Option<PathBuf> = None;
    let mut outermost = Vec::new();
    // A directory sorts before what it contains.
    for place in places {
        let is_covered = around.as_ref().is_some_and(|dir| place.starts_with(dir));
        if !is_covered && !place.is_symlink() && place.is_dir() {
            around = Some(place.clone());
        }
        if !is_covered || nested::has_hard_link(&place) || place.ends_with(".crucible") {
            outermost.push(place);
        }
    }
    outermost
}

fn too_many_places(directory: &Path, places: usize) -> RepoError {
    let why = format!(
        "{places} paths in it decide what git runs; at most {MOST_PLACES} can be protected. Move other repositories in it elsewhere, or run the hook without a sandbox (hooks.NAME.sandbox = \"off\" in your own configuration)"
    );
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
            let git = env.find_program("git").ok();
            let own = git.and_then(|git| Some(git.parent()?.parent()?.join(FILE)));
            std::iter::once(Path::new("/").join(FILE))
                .chain(own)
                .collect()
        }
    }
}

/// Returns the files with the user's own git settings, and those that git would read if they were created.
fn users_settings(env: &Environment) -> Vec<PathBuf> {
    match path_of(env, "GIT_CONFIG_GLOBAL") {
        Some(file) => vec![file],
        None => {
            let home = env.home();
            let config =
                path_of(env, "XDG_CONFIG_HOME").or_else(|| Some(home.clone()?.join(".config")));
            home.map(|home| home.join(".gitconfig"))
                .into_iter()
                .chain(config.map(|config| config.join("git/config")))
                .collect()
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
        let guarded =
            async || Git::guarded_places(Arc::clone(&sandbox), &env, dir.path(), &[]).await;
        clones(0..MOST_PLACES);
        assert_eq!(guarded().await.unwrap().len(), MOST_PLACES);
        clones(MOST_PLACES..MOST_PLACES + 1);
        let why = guarded().await.unwrap_err().to_string();
        assert!(
            why.contains("301 paths") && why.contains("at most 300"),
            "{why}"
        );
        assert!(why.contains("Move other repositories"), "{why}");
    }
}
