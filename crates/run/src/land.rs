//! Landing: exactly the verified bytes become a commit on the branch the run started from.
//!
//! Everything that the commit consists of (its parent, tree, message and dates) is written down before the first
//! side effect, so a landing that was cut off is finished with the very same commit, and never made twice. The
//! trailers tie the commit to the run: its id, the digests of plan and verify report, and the head of the ledger.

use crucible_ledger::Ledger;
use crucible_model::{ClockSource, Digest, Timestamp};
use crucible_repo::{Git, Identity, LandRequest, Oid};
use crucible_verify::VerifyReport;
use serde::{Deserialize, Serialize};

use crate::attempt;
use crate::contract::{Plan, RunRecord};
use crate::error::RunError;
use crate::gatekeeper;
use crate::journal::{Entry, Journal, Witness};
use crate::layout::{self, RunDir};
use crate::start::register;
use crate::state::RunState;
use crate::status::{progress, status_of};
use crate::world::World;

/// `artifacts/landing.json`: the commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Landing {
    /// `crucible-landing-v1`.
    pub schema_version: String,
    /// The commit's id.
    pub commit: Oid,
    /// The tree it holds.
    pub tree: Oid,
    /// The digest of the patch that was applied.
    pub patch: Digest,
    /// The message, trailers included.
    pub message: String,
}

/// Commits a verified run.
///
/// # Errors
///
/// Fails without touching the repository when the run is not verified, when its files were edited since, when the
/// branch has moved or tracked files have changed, or when the run was recorded under a pinned clock.
pub async fn land(
    world: &World<'_>,
    dir: &RunDir,
    ledger: &mut Ledger,
    witness: &mut dyn Witness,
) -> Result<Landing, RunError> {
    let _lock = dir.take("landing the run")?;
    let record = dir.record()?;
    let mut journal = Journal::open(record.run_id.clone(), dir.clone(), ledger, world.clock, witness)?;
    journal.check_files()?;
    attempt::check_copies(dir)?;
    let state = progress(dir, journal.events())?.state();
    if state < RunState::Verified || state > RunState::Landed {
        let hint = status_of(dir, record.clone(), journal.events())?.next;
        return Err(RunError::NotVerified { id: record.run_id.to_string(), state: state.name(), hint });
    }
    if record.clock == ClockSource::Pinned {
        return Err(RunError::PinnedClock);
    }
    let git = world.git(&record.repo, &dir.fresh_scratch()?).await?;
    if state == RunState::Landed {
        journal.write_trace()?;
        register(&record, RunState::Landed, journal.ledger(), world)?;
        return dir.read_json(layout::LANDING);
    }
    if let Some(broken) = journal.ledger().verify(&[])?.errors().next() {
        return Err(RunError::LedgerBroken { first: format!("{} {}", broken.code, broken.subject) });
    }
    // Landing records nothing about the patch: only what the ledger already knows as verified comes this far.
    let patch = dir.read(layout::PATCH)?;
    let begun = begin(dir, &record, &patch, git.identity().await?, &mut journal)?;
    journal.witness().working("crucible", "committing the verified change");
    let tree = verified_tree(dir, &git, &record, &patch).await?;
    let request = LandRequest {
        run: &record.run_id,
        base: &record.base_commit,
        branch: &record.branch,
        patch: &patch,
        tree: &tree,
        message: &begun.message,
        identity: &begun.identity,
        at: begun.date,
    };
    let commit = git.land(&request).await?;
    let landing = Landing {
        schema_version: "crucible-landing-v1".to_owned(),
        commit: commit.oid,
        tree,
        patch: Digest::of(&patch),
        message: begun.message,
    };
    dir.write_json(layout::LANDING, &landing)?;
    journal.record_file("crucible", "LANDED", "landed", layout::LANDING)?;
    journal.write_trace()?;
    register(&record, RunState::Landed, journal.ledger(), world)?;
    Ok(landing)
}

struct Begun {
    message: String,
    identity: Identity,
    date: Timestamp,
}

/// Fixes the commit's message and date, once: what a first try wrote down, a second one uses.
fn begin(
    dir: &RunDir,
    record: &RunRecord,
    patch: &[u8],
    identity: Identity,
    journal: &mut Journal<'_>,
) -> Result<Begun, RunError> {
    let head = journal.ledger().head()?;
    let plan = Digest::of(&dir.read(layout::PLAN)?);
    let report = Digest::of(&dir.read(layout::VERIFY_REPORT)?);
    // Whoever reads the history later reads it on a terminal.
    let printable =
        |c: &char| !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let words = record.goal.split_whitespace().collect::<Vec<_>>().join(" ");
    let title: String = words.chars().filter(printable).take(72).collect();
    let message = format!(
        "{title}\n\nCrucible-Run: {}\nCrucible-Plan: {plan}\nCrucible-Verify: {report}\nCrucible-Ledger: {}:{}\n",
        record.run_id, head.seq, head.hash
    );
    let body = serde_json::json!({
        "message": message, "patch": Digest::of(patch), "name": identity.name, "email": identity.email
    });
    let key = "landing".to_owned();
    let event = journal.record(Entry {
        role: "crucible",
        event: "LANDING_STARTED",
        key,
        path: layout::PATCH,
        body,
    })?;
    let text = |field: &str| {
        let text = event.body.get(field).and_then(serde_json::Value::as_str).map(str::to_owned);
        text.ok_or_else(|| {
            dir.malformed(layout::EVENTS, "the beginning of the landing is not recorded whole")
        })
    };
    let identity = Identity { name: text("name")?, email: text("email")? };
    Ok(Begun { message: text("message")?, identity, date: event.ts })
}

/// Judges the verified patch once more, on the repository as it is now, and gives the tree it makes.
async fn verified_tree(dir: &RunDir, git: &Git, record: &RunRecord, patch: &[u8]) -> Result<Oid, RunError> {
    let plan = Plan::parse(&dir.read_text(layout::PLAN)?)
        .map_err(|_| dir.malformed(layout::PLAN, "it is no plan"))?;
    let judged = gatekeeper::judge_again(git, record, &plan, patch).await?;
    let tree = judged.change.map(|change| change.tree.tree);
    let report: VerifyReport = dir.read_json(layout::VERIFY_REPORT)?;
    tree.filter(|tree| report.tree.as_deref() == Some(tree.as_str()))
        .ok_or_else(|| RunError::Edited { path: dir.path(layout::PATCH) })
}
