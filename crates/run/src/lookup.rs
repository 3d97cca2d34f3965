//! Finds the run that a command names.

use std::path::Path;

use crucible_ledger::Ledger;
use crucible_model::{Failure, counted};

use crate::error::RunError;
use crate::layout::RunDir;
use crate::run_context::RunContext;

/// The most ids in the error of an ambiguous prefix.
const SHOWN_RUNS: usize = 5;

/// Returns the directory of the run that is named by its id or a prefix of it. Without a name, returns the newest run of the
/// repository at `here`, or the newest of all without a repository.
///
/// # Errors
///
/// Fails if `ledger`, which is at `ledger_file`, is missing although there are runs, if a prefix is ambiguous, or if there
/// is no such run.
pub fn find_run(
    world: &RunContext<'_>,
    ledger: Option<Ledger>,
    ledger_file: &Path,
    named: Option<&str>,
    current_dir: Option<&Path>,
) -> Result<(Ledger, RunDir), Failure> {
    let runs = ledger
        .as_ref()
        .map_or_else(|| Ok(Vec::new()), Ledger::runs)
        .map_err(RunError::from)?;
    if ledger.is_none() && has_runs(&world.runs_root) {
        return Err(missing_ledger(ledger_file));
    }
    let here = current_dir.map(|top| std::fs::canonicalize(top).unwrap_or_else(|_| top.to_owned()));
    let is_here = |repo: &str| here.as_deref().is_none_or(|top| Path::new(repo) == top);
    let newest = runs
        .iter()
        .filter(|run| is_here(&run.repo))
        .max_by_key(|run| run.created);
    let newest = newest.map(|run| run.id.as_str());
    if let (None, None, false, Some(top)) = (named, newest, runs.is_empty(), &here) {
        return Err(
            Failure::usage(format!("the repository {} has no run yet", top.display()))
                .hint("Start one: crucible run start \"what to change\" --provider gateway")
                .hint(
                    "Or name a run of another repository; `crucible run list` shows all of them.",
                ),
        );
    }
    let requested_id = named
        .map(|named| run_id(named, runs.iter().map(|run| run.id.as_str())))
        .transpose()?;
    let dir = requested_id
        .or(newest)
        .map(|id| world.open_run(id))
        .transpose()?;
    ledger.zip(dir).ok_or_else(|| {
        Failure::usage("no run yet")
            .hint("Start one: crucible run start \"what to change\" --provider gateway")
    })
}

/// Returns the id that `named` is, or the only one that begins with it; `named` itself if none does.
///
/// # Errors
///
/// Fails if several ids begin with it.
pub fn run_id<'a>(named: &'a str, ids: impl Iterator<Item = &'a str>) -> Result<&'a str, Failure> {
    let candidates: Vec<&str> = ids
        .filter(|id| !named.is_empty() && id.starts_with(named))
        .collect();
    match candidates.as_slice() {
        [one] => Ok(one),
        [] => Ok(named),
        several if several.contains(&named) => Ok(named),
        several => Err(Failure::usage(format!(
            "{} begin with {named:?}: {}",
            counted(several.len() as u64, "run"),
            several
                .iter()
                .take(SHOWN_RUNS)
                .copied()
                .collect::<Vec<_>>()
                .join(", ")
        ))
        .hint("Give more characters of the id; `crucible run list` shows all ids.")),
    }
}

/// Returns the error of a command that needs the ledger where there are runs without one.
#[must_use]
pub fn missing_ledger(ledger_file: &Path) -> Failure {
    Failure::usage(format!(
        "the ledger {} is missing, and without it no run can be believed",
        ledger_file.display()
    ))
    .hint("Restore it from a backup, or set CRUCIBLE_HOME to its directory.")
}

fn has_runs(runs_root: &Path) -> bool {
    // A killed `run start` leaves a directory with a hidden name, which is not a run.
    let is_shown =
        |entry: std::fs::DirEntry| !entry.file_name().as_encoded_bytes().starts_with(b".");
    std::fs::read_dir(runs_root).is_ok_and(|entries| entries.flatten().any(is_shown))
}
