//! Which places of a directory decide what git runs, so that who may write in the directory can be kept from them.
//!
//! What always holds: what git takes for a repository is either listed whole or an error; nothing is left out because git failed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_sandbox::Sandbox;

use super::command::{Call, Runner, as_path};
use super::locate::Place;
use super::{Git, config, identity, locate, nested};
use crate::error::RepoError;
use crate::tree_edit::GuardedPlaces;

/// How many places are guarded at most: each is a mount.
const MOST_PLACES: usize = 300;
/// What the index says of a submodule, before its path.
const GITLINK: &[u8] = b"160000 ";
/// The value that every call of ours sets.
const OURS: &[u8] = b"/dev/null";

impl Git {
    /// The places in `directory` that decide which programs git runs, or which receipts are believed: the git directories of this work
    /// tree, `.git` of each submodule that the index names, also of those that are not there, the directories that `core.hooksPath` names
    /// and the files that hold or include settings, of the repository or the user; each repository and each `.crucible` at any
    /// depth, but for what `node_modules` and `target` hold; and what links among hooks and settings lead to. A directory that is not
    /// there ends with a `/`. Where `directory` lies in no repository, only what lies in it. The repository needs no commit.
    ///
    /// # Errors
    ///
    /// Whatever keeps git from telling ([`RepoError`] as for [`Git::open`]), a search that would take too long, and too many places.
    pub async fn guarded_places(
        sandbox: Arc<Sandbox>,
        env: &Environment,
        directory: &Path,
    ) -> Result<Vec<PathBuf>, RepoError> {
        let mut places = match locate::locate(directory) {
            Ok(place) => of_repository(Runner::find(sandbox, env)?, env, &place).await?,
            Err(RepoError::NotARepository { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        places.extend(nested::places(directory)?);

        let inside = |path: PathBuf| {
            let path = if path.starts_with(directory) { path } else { path.canonicalize().ok()? };
            path.starts_with(directory).then_some(path)
        };
        let places: BTreeSet<PathBuf> = places.into_iter().filter_map(inside).collect();
        if places.len() > MOST_PLACES {
            let why = format!(
                "{} places in it decide what git runs; at most {MOST_PLACES} can be guarded. Move clones and other repositories that lie in \
                 it outside of it, or run the hook without walls (hooks.NAME.sandbox = \"off\" in your own configuration)",
                places.len()
            );
            return Err(RepoError::io("guard", directory, std::io::Error::other(why)));
        }
        Ok(places.into_iter().collect())
    }
}

impl Git {
    /// The places of this work tree that decide what git runs, as they are now.
    pub async fn guards(&self) -> GuardedPlaces {
        GuardedPlaces::find(self.runner.sandbox(), &self.env, self.top()).await
    }
}

/// What the repository itself names, wherever that lies.
async fn of_repository(runner: Runner, env: &Environment, place: &Place) -> Result<Vec<PathBuf>, RepoError> {
    let listing = config::list(&runner, place, config::PATIENCE).await?;
    place.check(&listing)?;
    let neutral = listing.neutral(&place.top)?;
    let run = async |call: Call| {
        let output = runner.run(&place.top, Some(place), &neutral, call).await?;
        if output.code == 0 { Ok(output) } else { Err(output.failed()) }
    };
    let mut places = vec![place.git_dir.clone(), place.common_dir.clone()];
    places.extend(nested::programs(&place.git_dir));
    places.extend(nested::programs(&place.common_dir));

    let index = run(Call::new(["ls-files", "--stage", "-z"])).await?;
    for record in index.records().filter(|record| record.starts_with(GITLINK)) {
        let tab = record.iter().position(|byte| *byte == b'\t').ok_or_else(|| index.unreadable())?;
        places.push(place.top.join(as_path(&record[tab + 1..])).join(".git").join(""));
    }

    let user = identity::user_config(env);
    let as_user = |call: Call| {
        let named = user.iter().any(|(name, _)| name == "GIT_CONFIG_GLOBAL");
        let call = if named { call } else { call.without_env("GIT_CONFIG_GLOBAL") };
        call.with_envs(&user)
    };
    let hooks = as_user(Call::new(["config", "--get-all", "-z", "--type=path", "core.hooksPath"]));
    let hooks = run(hooks).await?;
    for hooks in hooks.records().filter(|value| *value != OURS) {
        let hooks = place.top.join(as_path(hooks)).join("");
        places.extend(nested::links_in(&hooks));
        places.push(hooks);
    }

    let settings = run(as_user(Call::new(["config", "--list", "--show-origin", "-z"]))).await?;
    let mut records = settings.records();
    while let (Some(origin), Some(entry)) = (records.next(), records.next()) {
        if let Some(file) = origin.strip_prefix(b"file:") {
            let file = place.top.join(as_path(file));
            places.extend(included(entry, &file, env));
            places.push(file);
        }
    }
    Ok(places)
}

/// The file that this entry of a file of settings includes, whether or not it is there.
fn included(entry: &[u8], file: &Path, env: &Environment) -> Option<PathBuf> {
    let line = entry.iter().position(|byte| *byte == b'\n')?;
    let (key, value) = (&entry[..line], &entry[line + 1..]);
    let includes = key == b"include.path" || (key.starts_with(b"includeif.") && key.ends_with(b".path"));
    let value = as_path(value);
    let named = match value.strip_prefix("~") {
        Ok(below) => env.home()?.join(below),
        Err(_) => file.parent()?.join(value),
    };
    includes.then_some(named)
}
