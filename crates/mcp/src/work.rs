//! Advances a run as a process of its own, which goes on after this server.

use std::path::{Path, PathBuf};

use crucible_host::fs::{create_dir_all, create_new, read_regular_up_to, remove_file};
use crucible_model::{ByteLimit, Failure, RunId};
use crucible_run::RunDir;
use crucible_sandbox::{BackgroundStart, Runtime};

use crate::session::Session;

/// Runs that a server advances at the same time.
const MAX_AT_WORK: usize = 4;
/// The directory, in Crucible's home, for what such processes print.
const LOGS: &str = "mcp";
/// The longest log that is read.
const MAX_LOG: ByteLimit = ByteLimit(16 << 20);
/// The end of a log that an answer shows, in characters.
const LAST_WORDS: usize = 2000;

/// Refuses to start one more process if enough are at work.
pub(crate) fn require_room(session: &Session<'_>) -> Result<(), Failure> {
    let mut at_work = session.at_work.borrow_mut();
    at_work.retain(|_, process| !process.has_ended());
    match at_work.len() {
        running if running >= MAX_AT_WORK => Err(Failure::refused(format!(
            "{running} runs are at work, which is the most of one server"
        ))
        .hint("Wait until one has ended; `run_status` follows a run.")),
        _ => Ok(()),
    }
}

/// Starts `crucible run advance` for this run, in its repository.
pub(crate) async fn advance(
    session: &Session<'_>,
    runtime: &Runtime<'_>,
    repository: &Path,
    run: &RunId,
) -> Result<(), Failure> {
    let log = log_of(session, run)?;
    if let Some(directory) = log.parent() {
        create_dir_all(directory)?;
    }
    // A run's first process has none.
    let _missing = remove_file(&log);
    let env = runtime.env.pairs();
    let start = BackgroundStart {
        args: ["run", "advance", run.as_str()].map(Into::into).to_vec(),
        cwd: repository.to_owned(),
        env: env
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        stderr: create_new(&log)?,
    };
    let process = runtime.sandbox.start_in_background(start).await?;
    session.at_work.borrow_mut().insert(run.clone(), process);
    Ok(())
}

/// Whether a process advances the run.
pub(crate) fn is_at_work(
    session: &Session<'_>,
    run: &RunId,
    dir: &RunDir,
) -> Result<bool, Failure> {
    let at_work = session.at_work.borrow();
    let is_ours = at_work.get(run).is_some_and(|process| !process.has_ended());
    Ok(is_ours || dir.lock_holder()?.is_some())
}

/// What the last process of a run printed at its end; empty if nothing is known.
pub(crate) fn last_words(session: &Session<'_>, run: &RunId) -> Result<String, Failure> {
    let bytes = read_regular_up_to(&log_of(session, run)?, MAX_LOG).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let skipped = text.chars().count().saturating_sub(LAST_WORDS);
    Ok(text.chars().skip(skipped).collect())
}

fn log_of(session: &Session<'_>, run: &RunId) -> Result<PathBuf, Failure> {
    Ok(session.host.home()?.join(LOGS).join(format!("{run}.log")))
}
