//! Checks the ledger against what is recorded outside of it: landed commits, known heads and run directories.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crucible_ledger::{Anchor, ChainHead, EventRecord, Ledger};
use crucible_model::{Code, Digest, Failure, Finding, RunId, Verdict, counted};
use crucible_repo::{Git, RUN_TRAILER};

use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::land::LEDGER_TRAILER;
use crate::layout::EVENTS;
use crate::recording::check_recording;
use crate::run_context::RunContext;

const UNANCHORED: Code = Code::new("ledger-unanchored");
const LANDING_MISSING: Code = Code::new("ledger-landing-missing");
const RUN_UNKNOWN: Code = Code::new("ledger-run-unknown");

/// What the database alone cannot show.
const NOT_DETECTED: &str = "no landed commit vouches for this ledger: an emptied database, and a history rewritten with its hashes, are not detected; \
                            name the repositories with --repo, or a head with --anchor";

/// Heads of the chain and landed runs that are known from outside the ledger.
#[derive(Debug, Default)]
pub struct LedgerWitnesses {
    anchors: Vec<Anchor>,
    landed: BTreeSet<RunId>,
}

/// The result of a check.
#[derive(Debug)]
pub struct LedgerCheck {
    /// What is wrong with the ledger, the recordings or the landings.
    pub verdict: Verdict,
    /// What was checked, for people.
    pub summary: String,
}

impl LedgerWitnesses {
    /// Parses heads, each written `SEQ:HASH`.
    ///
    /// # Errors
    ///
    /// Fails if one is written differently.
    pub fn of_heads(heads: &[String]) -> Result<Self, Failure> {
        let parsed = |text: &String| {
            anchor(text).ok_or_else(|| {
                Failure::usage(format!("{text:?} is not an anchor"))
                    .hint("An anchor is SEQ:HASH, as in a commit's Crucible-Ledger trailer.")
            })
        };
        Ok(Self {
            anchors: heads.iter().map(parsed).collect::<Result<_, _>>()?,
            landed: BTreeSet::new(),
        })
    }

    /// Adds the trailers of the commits of a repository.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be read.
    pub async fn add_commits(
        &mut self,
        world: &RunContext<'_>,
        repository: &Path,
    ) -> Result<(), Failure> {
        let git = Git::open(Arc::clone(&world.sandbox), world.env, repository).await?;
        let (heads, runs) = (
            git.trailers(LEDGER_TRAILER).await?,
            git.trailers(RUN_TRAILER).await?,
        );
        self.anchors
            .extend(heads.iter().filter_map(|text| anchor(text)));
        self.landed
            .extend(runs.iter().filter_map(|text| text.parse().ok()));
        Ok(())
    }
}

/// Checks the chain of the ledger against the known heads, each run's recording against the ledger, and the
/// ledger against the runs that commits name as landed.
///
/// # Errors
///
/// Fails if the ledger or a recording cannot be read.
pub fn check_ledger(
    world: &RunContext<'_>,
    ledger: &Ledger,
    witnesses: &LedgerWitnesses,
) -> Result<LedgerCheck, RunError> {
    let mut verdict = ledger.verify(&witnesses.anchors)?;
    let head = match ledger.head() {
        // A finding says that it is missing.
        Err(_) if !verdict.passes() => ChainHead {
            seq: 0,
            hash: Digest::ZERO,
        },
        head => head?,
    };
    if witnesses.anchors.is_empty() {
        verdict.push(Finding::info(
            UNANCHORED,
            "the head of the chain",
            NOT_DETECTED,
        ));
    }
    for run in unknown_runs(&world.runs_root, ledger)? {
        let hint = "its directory has events that the ledger lacks: the ledger was emptied or replaced, or the run belongs to another ledger; restore the ledger, or move the directory away";
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
        if witnesses.landed.contains(&run.id)
            && !ledger.events(Some(&run.id))?.iter().any(is_landing)
        {
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
    let summary = format!(
        "{}, {}, {}, head {}",
        counted(head.seq, "event"),
        counted(witnesses.anchors.len() as u64, "anchor"),
        counted(recordings, "recording"),
        head.hash
    );
    Ok(LedgerCheck { verdict, summary })
}

fn anchor(text: &str) -> Option<Anchor> {
    let (seq, hash) = text.trim().split_once(':')?;
    Some(Anchor {
        seq: seq.parse().ok()?,
        hash: hash.parse().ok()?,
    })
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
