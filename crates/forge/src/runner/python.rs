//! Which program is Python: the interpreter itself, not a script that looks for one.
//!
//! No second program can be started in the sandbox, so a manager's script in its place would be refused there. It is asked once,
//! outside, which interpreter it stands for.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_host::fs::read_prefix;
use crucible_model::ByteLimit;
use crucible_sandbox::{End, Limits, Spawn, base_env, toolchain_env};

use super::RunnerError;
use crate::context::ForgeContext;

/// How long a manager's script may take to say where its Python is.
const TIMEOUT: Duration = Duration::from_secs(20);
/// What it is asked.
const QUESTION: &str = "import os, sys; print(os.path.realpath(getattr(sys, '_base_executable', '') or sys.executable), end='')";

/// The interpreter that skills are run by: the one that is named, or `python3` of the `PATH`.
///
/// # Errors
///
/// [`RunnerError::NoPython`] if no Python is found.
pub(crate) async fn find_python(
    world: &ForgeContext<'_>,
    named: Option<&Path>,
) -> Result<PathBuf, RunnerError> {
    let requested_path = named.unwrap_or(Path::new("python3"));
    let none = |why: String| RunnerError::NoPython {
        why: format!("{}: {why}", requested_path.display()),
    };
    let found = world
        .env
        .find_program(requested_path)
        .map_err(|error| none(error.to_string()))?;
    let begin = read_prefix(&found, ByteLimit(2)).map_err(|error| none(error.to_string()))?;
    if begin.bytes != b"#!" {
        return found
            .canonicalize()
            .map_err(|error| none(error.to_string()));
    }
    let mut spawn = Spawn::new(&found, Path::new("/"), Limits::new(TIMEOUT));
    spawn.args = ["-I", "-S", "-c", QUESTION].map(Into::into).to_vec();
    spawn.env = base_env(world.env);
    spawn.env.extend(toolchain_env(world.env));
    spawn.env.extend(
        world
            .env
            .get_os("HOME")
            .map(|home| ("HOME".into(), home.to_owned())),
    );
    let answer = world.sandbox.run(spawn).await?;
    let path = PathBuf::from(answer.stdout.text().trim());
    if answer.end == End::Exited(0) && path.is_absolute() && path.is_file() {
        Ok(path)
    } else {
        Err(none(
            "it is a script without an interpreter line".to_owned(),
        ))
    }
}
