//! Landing: exactly the verified bytes become a commit on the branch the run started from.
//!
//! Everything that the commit consists of (its parent, tree, message and dates) is written down before the first
//! side effect, so a landing that was cut off is finished with the very same commit, and never made twice. The
//! trailers tie the commit to the run: its id, the digests of plan and verify report, and the head of the ledger.

use crucible_ledger::Ledger;
use crucible_model::{ClockSource, Digest, Timestamp, is_hidden, single_spaced};
use crucible_repo::{Git, Identity, LandRequest, Oid, RUN_TRAILER};
use crucible_verify::VerifyReport;
use serde::{Deserialize, Serialize};

use crate::analysis::Analysis;
use crate::attempt;
use crate::contract::{Plan, RunRecord};
use crate::document::versions;
use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::gatekeeper::{self, Ground};
use crate::journal::{Entry, Journal, Witness};
use crate::layout::{self, RunDir};
use crate::recording::check_recording;
use crate::start::register;
use crate::state::RunState;
use crate::status::{progress, status_of};
use crate::trial::or_base_gone;
use crate::world::World;

/// The key of the trailer that ties a commit to the ledger's head.
pub const LEDGER_TRAILER: &str = "Crucible-Ledger";

/// `artifacts/landing.json`: the commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Landing {
    /// Which version of the document this is.
    pub schema_version: LandingVersion,
    /// The commit's id.
    pub commit: Oid,
    /// The tree it holds.
    pub tree: Oid,
    /// The digest of the patch that was applied.
    pub patch: Digest,
    /// The message, trailers included.
    pub message: String,
}

versions! {
    /// The schema id of `artifacts/landing.json`.
    pub Landing, LandingVersion = "crucible-landing-v1"
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
    let record = dir.record()?;
    world.run_outside_of(&record.repo, dir)?;
    let _lock = dir.take("landing the run")?;
    let mut journal = Journal::open(record.run_id.clone(), dir.clone(), ledger, world.clock, witness)?;
    journal.check_files()?;
    attempt::check_copies(dir, journal.events())?;
    let state = progress(dir, journal.events())?.state();
    if state < RunState::Verified || state > RunState::Landed {
        let usage = journal.ledger().usage(&record.run_id)?;
        let hint = status_of(dir, record.clone(), journal.events(), &usage)?.next;
        return Err(RunError::NotVerified { id: record.run_id.to_string(), state: state.name(), hint });
    }
    if record.clock == ClockSource::Pinned {
        return Err(RunError::PinnedClock);
    }
    let git = world.git(&record.repo, &dir.fresh_scratch()?).await?;
    if state == RunState::Landed {
        journal.write_trace()?;
        register(&record, RunState::Landed, journal.ledger(), world)?;
        return dir.read_document(layout::LANDING);
    }
    if let Some(what) = git.operation_under_way() {
        return Err(RunError::UnderWay { what });
    }
    if let Some(broken) = journal.ledger().verify(&[])?.errors().next() {
        return Err(RunError::LedgerBroken { first: format!("{} {}", broken.code, broken.subject) });
    }
    // What the model answered belongs to what is vouched for; its recording is no recorded file, for it grows.
    if !check_recording(dir, &record.run_id, journal.ledger())?.passes() {
        return Err(RunError::Edited { path: dir.path(layout::CASSETTE) });
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
        schema_version: LandingVersion::V1,
        commit: commit.oid,
        tree,
        patch: Digest::of(&patch),
        message: begun.message,
    };
    dir.write_json(layout::LANDING, &landing)?;
    journal.record_file("crucible", EventKind::Landed, "landed", layout::LANDING)?;
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
    let title = title(&record.goal);
    let message = format!(
        "{title}\n\n{RUN_TRAILER}: {}\nCrucible-Plan: {plan}\nCrucible-Verify: {report}\n{LEDGER_TRAILER}: {}:{}\n",
        record.run_id, head.seq, head.hash
    );
    let body = serde_json::json!({
        "message": message, "patch": Digest::of(patch), "name": identity.name, "email": identity.email
    });
    let key = "landing".to_owned();
    let event = journal.record(Entry {
        role: "crucible",
        event: EventKind::LandingStarted,
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
    let analysis: Analysis = dir.read_document(layout::ANALYSIS)?;
    let format = crucible_model::EditFormat::UnifiedDiff;
    let ground = Ground { git, record, format, plan: &plan, gate_files: &analysis.gate_files };
    let judged = match gatekeeper::judge_again(&ground, patch).await {
        Ok(judged) => judged,
        Err(error) => return Err(or_base_gone(git, record, error).await),
    };
    let tree = judged.change.map(|change| change.tree.tree);
    let report: VerifyReport = dir.read_json(layout::VERIFY_REPORT)?;
    tree.filter(|tree| report.tree.as_deref() == Some(tree.as_str()))
        .ok_or_else(|| RunError::Edited { path: dir.path(layout::PATCH) })
}

/// The first line of the commit. Nothing stands in it that is not seen as itself.
fn title(goal: &str) -> String {
    single_spaced(goal).chars().filter(|c| !is_hidden(*c)).take(72).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_unseen_stands_in_a_commits_title() {
        assert_eq!(title("fix\n the\u{202e} \u{200b}par\u{ad}ser\u{1b}\u{e0041}"), "fix the parser");
        assert_eq!(title(&"x".repeat(100)).len(), 72);
    }
}
