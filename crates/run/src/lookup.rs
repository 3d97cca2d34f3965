//! Finds the run that a command names, and compares the recorded runs with the ledger.

use std::collections::BTreeSet;
use std::path::Path;

use crucible_ledger::{Anchor, EventRecord, Ledger};
use crucible_model::{Code, Failure, Finding, RunId, Verdict, counted};

use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::layout::{EVENTS, RunDir};
use crate::recording::check_recording;
use crate::world::World;

/// The most ids in the error of an ambiguous prefix.
const SHOWN_RUNS: usize = 5;

const UNANCHORED: Code = Code::new("ledger-unanchored");
const LANDING_MISSING: Code = Code::new("ledger-landing-missing");
const RUN_UNKNOWN: Code = Code::new("ledger-run-unknown");

/// What the database alone cannot show.
const NOT_DETECTED: &str = "no landed commit vouches for this ledger: an emptied database, and a history written anew with its hashes, are not detected; \
                            name the repositories with --repo, or a head with --anchor";

/// Returns the directory of the run that is named by its id or a prefix of it. Without a name, returns the newest run of the
/// repository at `here`, or the newest of all without a repository.
///
/// # Errors
///
/// Fails if `ledger`, which is at `ledger_file`, is missing although there are runs, if a prefix is ambiguous, or if there
/// is no such run.
pub fn find_run(
    world: &World<'_>,
    ledger: Option<Ledger>,
    ledger_file: &Path,
    named: Option<&str>,
    here: Option<&Path>,
) -> Result<(Ledger, RunDir), Failure> {
    let runs = ledger
        .as_ref()
        .map_or_else(|| Ok(Vec::new()), Ledger::runs)
        .map_err(RunError::from)?;
    if ledger.is_none() && has_runs(&world.runs_root) {
        return Err(missing_ledger(ledger_file));
    }
    let here = here.map(|top| std::fs::canonicalize(top).unwrap_or_else(|_| top.to_owned()));
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
    let meant = named
        .map(|named| run_id(named, runs.iter().map(|run| run.id.as_str())))
        .transpose()?;
    let dir = meant.or(newest).map(|id| world.open_run(id)).transpose()?;
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
    .hint("Put it back from a copy, or set CRUCIBLE_HOME to where it lies.")
}

/// Checks the chain of the ledger against these anchors, each run's recording against the ledger, and the ledger against the runs
/// that commits name as landed. Returns the number of recordings too.
///
/// # Errors
///
/// Fails if the ledger or a recording cannot be read.
pub fn verify_ledger(
    world: &World<'_>,
    ledger: &Ledger,
    anchors: &[Anchor],
    landed: &BTreeSet<RunId>,
) -> Result<(Verdict, u64), RunError> {
    let mut verdict = ledger.verify(anchors)?;
    if anchors.is_empty() {
        verdict.push(Finding::info(
            UNANCHORED,
            "the head of the chain",
            NOT_DETECTED,
        ));
    }
    for run in unknown_runs(&world.runs_root, ledger)? {
        let hint = "its directory holds events, and the ledger knows none of them: the ledger was emptied or replaced, or the directory belongs to another one";
        verdict.push(Finding::warning(RUN_UNKNOWN, format!("run {run}"), hint));
    }
    // The digests of a damaged ledger prove nothing.
    let runs = if verdict.passes() {
        ledger.runs()?
    } else {
        Vec::new()
    };
    let mut recordings = 0;
    for run in runs {
        let is_landing = |event: &EventRecord| event.event == EventKind::Landed.name();
        // The landing is recorded after the commit that vouches for what was before.
        if landed.contains(&run.id) && !ledger.events(Some(&run.id))?.iter().any(is_landing) {
            let hint = "a commit says that it landed, and no event does: the end of the ledger was cut, or the landing was interrupted; `crucible run land` with this run records it";
            verdict.push(Finding::error(
                LANDING_MISSING,
                format!("run {}", run.id),
                hint,
            ));
        }
        // A run whose directory was removed or moved has no recording here.
        let Ok(dir) = world.open_run(run.id.as_str()) else {
            continue;
        };
        verdict.merge(check_recording(&dir, &run.id, ledger)?);
        recordings += 1;
    }
    Ok((verdict, recordings))
}

fn has_runs(runs_root: &Path) -> bool {
    // A killed `run start` leaves a directory with a hidden name, which is not a run.
    let is_shown =
        |entry: std::fs::DirEntry| !entry.file_name().as_encoded_bytes().starts_with(b".");
    std::fs::read_dir(runs_root).is_ok_and(|entries| entries.flatten().any(is_shown))
}

/// Returns the runs that have a directory with events and are unknown to the ledger, in order.
fn unknown_runs(runs_root: &Path, ledger: &Ledger) -> Result<Vec<RunId>, RunError> {
    let Ok(entries) = std::fs::read_dir(runs_root) else {
        return Ok(Vec::new());
    };
    let mut unknown = Vec::new();
    for entry in entries.flatten() {
        let Some(run) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<RunId>().ok())
        else {
            continue;
        };
        let has_events = entry
            .path()
            .join(EVENTS)
            .metadata()
            .is_ok_and(|events| events.is_file() && events.len() > 0);
        if has_events && ledger.run(&run)?.is_none() && ledger.events(Some(&run))?.is_empty() {
            unknown.push(run);
        }
    }
    unknown.sort();
    Ok(unknown)
}
