//! Finds the paths in a directory that decide what git runs, so that writers can be kept from them.
//!
//! Invariant: everything that git treats as a repository is listed completely, or the result is an error; a
//! failure of git never shortens the list.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_sandbox::Sandbox;

use super::command::{Call, Output, Runner, as_path};
use super::locate::Place;
use super::{Git, config, identity, locate, nested};
use crate::error::RepoError;
use crate::tree_edit::GuardedPlaces;

/// How many places are guarded at most: each is a mount.
const MOST_PLACES: usize = 300;
/// The mode of a submodule in the index, before its path.
const GITLINK: &[u8] = b"160000 ";
/// The value that every call of ours sets.
const OURS: &[u8] = b"/dev/null";

impl Git {
    /// Returns the places in `directory` that decide which programs git runs, or which receipts are believed.
    ///
    /// These are the git directories of the work tree; the repository of each submodule that an index names, also of
    /// those that do not exist yet; directories of hooks; files with settings of the repository or the user; files that
    /// a word of a setting names; each repository and each `.crucible` at any depth, except in `node_modules` and
    /// `target`; and each link on the way to one of them. A directory that does not exist ends with `/`. If `directory`
    /// is in no repository, only what it contains counts. The repository needs no commit.
    ///
    /// # Errors
    ///
    /// Any failure of git ([`RepoError`] as for [`Git::open`]), a search that would take too long, and too many places.
    pub async fn guarded_places(
        sandbox: Arc<Sandbox>,
        env: &Environment,
        directory: &Path,
    ) -> Result<Vec<PathBuf>, RepoError> {
        match locate::locate(directory) {
            Ok(place) => {
                let runner = Runner::find(sandbox, env)?;
                let listing = config::list(&runner, &place, config::PATIENCE).await?;
                place.check(&listing)?;
                let neutral = listing.neutral(&place.top)?;
                let asked = JudgedRepository {
                    runner: &runner,
                    place: &place,
                    neutral: &neutral,
                    env,
                };
                all_in(directory, asked.named(asked.submodules())).await
            }
            Err(RepoError::NotARepository { .. } | RepoError::NotThere { .. }) => {
                all_in(directory, async { Ok(users_settings(env)) }).await
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the current paths of this work tree that decide what git runs.
    pub async fn guards(&self) -> GuardedPlaces {
        let asked = JudgedRepository {
            runner: &self.runner,
            place: &self.place,
            neutral: &self.neutral,
            env: &self.env,
        };
        GuardedPlaces::told(
            self.top(),
            all_in(self.top(), asked.named(self.submodules())).await,
        )
    }
}

/// Returns the paths found below `directory`, and those in it that `named` reports.
async fn all_in(
    directory: &Path,
    named: impl Future<Output = Result<Vec<PathBuf>, RepoError>>,
) -> Result<Vec<PathBuf>, RepoError> {
    let searched = directory.to_owned();
    // The search waits for the disk while git runs.
    let nested = tokio::task::spawn_blocking(move || nested::places(&searched));
    let mut places = named.await?;
    let died = |error| RepoError::io("search", directory, std::io::Error::other(error));
    places.extend(nested.await.map_err(died)??);

    let real = directory
        .canonicalize()
        .map_err(|source| RepoError::io("open", directory, source))?;
    let with_links = |path: PathBuf| {
        let (path, links) = nested::resolve(&path);
        links.into_iter().chain([path])
    };
    let places: BTreeSet<PathBuf> = places
        .into_iter()
        .flat_map(with_links)
        .filter(|path| path.starts_with(&real))
        .collect();
    if places.len() > MOST_PLACES {
        let why = format!(
            "{} paths in it decide what git runs; at most {MOST_PLACES} can be protected. Move other repositories in it elsewhere, or run the hook without a sandbox (hooks.NAME.sandbox = \"off\" in your own configuration)",
            places.len()
        );
        return Err(RepoError::io(
            "guard",
            directory,
            std::io::Error::other(why),
        ));
    }
    Ok(places.into_iter().collect())
}

/// A repository with checked settings, and how to call git there.
#[derive(Clone, Copy)]
struct JudgedRepository<'a> {
    runner: &'a Runner,
    place: &'a Place,
    neutral: &'a [(OsString, OsString)],
    env: &'a Environment,
}

impl JudgedRepository<'_> {
    /// Returns the paths that the repository itself names, anywhere, with `submodules` from its index.
    async fn named(
        self,
        submodules: impl Future<Output = Result<Vec<PathBuf>, RepoError>>,
    ) -> Result<Vec<PathBuf>, RepoError> {
        let place = self.place;
        let mut places = users_settings(self.env);
        places.extend([place.git_dir.clone(), place.common_dir.clone()]);
        // A new one would hold settings and receipts that are believed.
        places.push(place.top.join(".crucible").join(""));
        places.extend(nested::programs(&place.git_dir));
        places.extend(nested::programs(&place.common_dir));

        let settings =
            self.run(self.as_user(Call::new(["config", "--list", "--show-origin", "-z"])));
        let (settings, submodules) = tokio::try_join!(settings, submodules)?;
        places.extend(
            submodules
                .iter()
                .map(|path| nested::submodule(&place.top.join(path))),
        );

        // A relative path means another file in each work tree.
        let mut tops = vec![place.top.clone()];
        tops.extend(nested::linked_work_trees(&place.common_dir));
        let mut hooks_are_named = false;
        let mut records = settings.records();
        while let (Some(origin), Some(entry)) = (records.next(), records.next()) {
            hooks_are_named |= entry.strip_prefix(b"core.hookspath").is_some_and(|rest| {
                rest.is_empty() || rest.strip_prefix(b"\n").is_some_and(|value| value != OURS)
            });
            if let Some(file) = origin.strip_prefix(b"file:") {
                let file = place.top.join(as_path(file));
                places.extend(included(entry, &file, self.env));
                places.push(file);
            }
            for top in &tops {
                places.extend(files_in(entry, top, self.env));
            }
        }
        if hooks_are_named {
            // As paths: `~` is a home directory.
            let call = Call::new(["config", "--get-all", "-z", "--type=path", "core.hooksPath"]);
            let hooks = self.run(self.as_user(call)).await?;
            for hooks in hooks.records().filter(|value| *value != OURS) {
                for top in &tops {
                    let hooks = top.join(as_path(hooks)).join("");
                    places.extend(nested::links_in(&hooks));
                    places.push(hooks);
                }
            }
        }
        Ok(places)
    }

    /// The submodules that the index names.
    async fn submodules(self) -> Result<Vec<PathBuf>, RepoError> {
        let index = self.run(Call::new(["ls-files", "--stage", "-z"])).await?;
        let path = |record: &[u8]| {
            let tab = record
                .iter()
                .position(|byte| *byte == b'\t')
                .ok_or_else(|| index.unreadable())?;
            Ok(as_path(&record[tab + 1..]))
        };
        index
            .records()
            .filter(|record| record.starts_with(GITLINK))
            .map(path)
            .collect()
    }

    /// Creates the same call that also follows the user's own settings.
    fn as_user(self, call: Call) -> Call {
        let user = identity::user_config(self.env);
        let named = user.iter().any(|(name, _)| name == "GIT_CONFIG_GLOBAL");
        let call = if named {
            call
        } else {
            call.without_env("GIT_CONFIG_GLOBAL")
        };
        call.with_envs(&user)
    }

    async fn run(self, call: Call) -> Result<Output, RepoError> {
        let output = self
            .runner
            .run(&self.place.top, Some(self.place), self.neutral, call)
            .await?;
        if output.code == 0 {
            Ok(output)
        } else {
            Err(output.failed())
        }
    }
}

/// Returns the files with the user's own git settings, and those that git would read if they were created.
fn users_settings(env: &Environment) -> Vec<PathBuf> {
    let at = |name: &str| {
        env.get_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let places = match at("GIT_CONFIG_GLOBAL") {
        Some(file) => vec![file],
        None => {
            let home = env.home();
            let config = at("XDG_CONFIG_HOME").or_else(|| Some(home.clone()?.join(".config")));
            home.map(|home| home.join(".gitconfig"))
                .into_iter()
                .chain(config.map(|config| config.join("git/config")))
                .collect()
        }
    };
    // A link and its target are both guarded.
    places
        .into_iter()
        .flat_map(|file| [file.canonicalize().ok(), Some(file)])
        .flatten()
        .collect()
}

/// The files that the value of a setting names, whatever the setting: the whole of it, what stands in quotes, and each of its words. Which settings start
/// programs, and by which words, only git knows; a file that none of them starts is guarded for nothing. Directories count where the
/// setting is called a path or a directory. Programs are started at the top of the work tree.
///
/// A file that is not there counts, too, where its directory is: else it could be made.
fn files_in(entry: &[u8], top: &Path, env: &Environment) -> Vec<PathBuf> {
    let Some(line) = entry.iter().position(|byte| *byte == b'\n') else {
        return Vec::new();
    };
    let (key, value) = (&entry[..line], &entry[line + 1..]);
    let is_directory = key.ends_with(b"path") || key.ends_with(b"dir");
    let is_path = is_directory || key.ends_with(b"file");
    if ["user.", "author.", "committer."]
        .iter()
        .any(|section| key.starts_with(section.as_bytes()))
        && !is_path
        && !key.ends_with(b"key")
    {
        return Vec::new();
    }
    // The first word of a command is found on `PATH`, unless it is a path.
    let first = value
        .split(u8::is_ascii_whitespace)
        .next()
        .map(|word| strip(word, b"!\"'"));
    let whole = std::iter::once(value);
    let words =
        value.split(|byte| byte.is_ascii_whitespace() || b"\"'`;&|()<>={}!,:".contains(byte));
    let mut files = Vec::new();
    // Between quotes a name may hold blanks.
    let quoted = value.split(|byte| b"\"'".contains(byte));
    for word in whole
        .chain(quoted)
        .chain(words)
        .filter(|word| !word.is_empty())
    {
        if !is_path && !word.contains(&b'/') && first == Some(strip(word, b"!\"'")) {
            continue;
        }
        let home = [&b"~/"[..], b"$HOME/", b"${HOME}/"]
            .iter()
            .find_map(|home| word.strip_prefix(*home));
        let path = match home {
            Some(below) => env.home().map(|home| home.join(as_path(below))),
            None => Some(top.join(as_path(word))),
        };
        let is_in_directory =
            |path: &PathBuf| path.file_name().is_some() && path.parent().is_some_and(Path::is_dir);
        let Some(path) = path.filter(is_in_directory) else {
            continue;
        };
        match path.metadata() {
            Ok(meta) if meta.is_file() || (meta.is_dir() && is_directory && path != top) => {
                files.extend(path.canonicalize().ok().filter(|real| *real != path));
                files.push(path);
            }
            Ok(_) => {}
            // A link that leads nowhere stands for what is made there.
            Err(_) if word.contains(&b'/') && !value.contains(&b'\n') => files.push(path),
            Err(_) => {}
        }
    }
    files
}

/// Returns the text without these bytes at both ends.
fn strip<'t>(text: &'t [u8], bytes: &[u8]) -> &'t [u8] {
    let is_kept = |byte: &u8| !bytes.contains(byte);
    let begin = text.iter().position(is_kept).unwrap_or(text.len());
    let end = text.iter().rposition(is_kept).map_or(begin, |at| at + 1);
    &text[begin..end]
}

/// The file that this entry of a file of settings includes, whether or not it is there.
fn included(entry: &[u8], file: &Path, env: &Environment) -> Option<PathBuf> {
    let line = entry.iter().position(|byte| *byte == b'\n')?;
    let (key, value) = (&entry[..line], &entry[line + 1..]);
    let includes =
        key == b"include.path" || (key.starts_with(b"includeif.") && key.ends_with(b".path"));
    let value = as_path(value);
    let named = match value.strip_prefix("~") {
        Ok(below) => env.home()?.join(below),
        Err(_) => file.parent()?.join(value),
    };
    includes.then_some(named)
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
        let guarded = async || Git::guarded_places(Arc::clone(&sandbox), &env, dir.path()).await;
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
