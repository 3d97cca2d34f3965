//! Which places of a directory decide what git runs, so that who may write in the directory can be kept from them.
//!
//! What always holds: what git takes for a repository is either listed whole or an error; nothing is left out because git failed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_sandbox::Sandbox;

use super::command::{Call, Runner, as_path};
use super::{Git, config, identity, locate};
use crate::error::RepoError;

/// What the index says of a submodule, before its path.
const GITLINK: &[u8] = b"160000 ";
/// The value that every call of ours sets.
const OURS: &[u8] = b"/dev/null";

impl Git {
    /// The places in `directory`, besides its own `.git`, that make git run programs: `.git` of each submodule that the index names, also of
    /// those that are not there, and the directories that `core.hooksPath` names, in the repository's settings or the user's. Each
    /// ends with a `/`. Nothing where `directory` lies in no repository. The repository needs no commit.
    ///
    /// # Errors
    ///
    /// Whatever keeps git from telling: [`RepoError`] as for [`Git::open`].
    pub async fn guarded_places(
        sandbox: Arc<Sandbox>,
        env: &Environment,
        directory: &Path,
    ) -> Result<Vec<PathBuf>, RepoError> {
        let place = match locate::locate(directory) {
            Ok(place) => place,
            Err(RepoError::NotARepository { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let runner = Runner::find(sandbox, env)?;
        let listing = config::list(&runner, &place, config::PATIENCE).await?;
        place.check(&listing)?;
        let neutral = listing.neutral(&place.top)?;
        let run = async |call: Call| {
            let output = runner.run(&place.top, Some(&place), &neutral, call).await?;
            if output.code == 0 { Ok(output) } else { Err(output.failed()) }
        };

        let index = run(Call::new(["ls-files", "--stage", "-z"])).await?;
        let mut places = Vec::new();
        for record in index.records().filter(|record| record.starts_with(GITLINK)) {
            let tab = record.iter().position(|byte| *byte == b'\t').ok_or_else(|| index.unreadable())?;
            places.push(place.top.join(as_path(&record[tab + 1..])).join(".git"));
        }

        let user = identity::user_config(env);
        let mut call = Call::new(["config", "--get-all", "-z", "--type=path", "core.hooksPath"]);
        if !user.iter().any(|(name, _)| name == "GIT_CONFIG_GLOBAL") {
            call = call.without_env("GIT_CONFIG_GLOBAL");
        }
        let hooks = run(call.with_envs(&user)).await?;
        places.extend(
            hooks.records().filter(|value| *value != OURS).map(|value| place.top.join(as_path(value))),
        );

        let inside = |path: PathBuf| {
            let path = if path.starts_with(directory) { path } else { path.canonicalize().ok()? };
            path.starts_with(directory).then(|| path.join(""))
        };
        Ok(places.into_iter().filter_map(inside).collect())
    }
}
