//! Runs the gates of a policy on the tips of a push, in the sandbox and on copies.

use std::time::Duration;

use crucible_attest::{Policy, RefUpdate, judge_pushed_programs};
use crucible_host::WorkDir;
use crucible_host::fs::create_dir_all;
use crucible_model::{Code, Finding, Verdict};
use crucible_repo::{CommitReader, Oid};
use crucible_sandbox::Strength;
use crucible_verify::GateSpec;

use super::commits::GuardedRefs;
use crate::check_gates::{GateCheck, GateState, check_gates};
use crate::error::RunError;
use crate::journal::NoopObserver;
use crate::run_context::RunContext;

const GATE_FAILED: Code = Code::new("attest-gate-failed");

/// What the directories of such trials begin with, below [`RunContext::tmp`].
const PREFIX: &str = "door-";

/// Runs the policy's `rerun_gates` on the tip of each guarded ref of a push. The commands come from the policy, and a push
/// that changes a file which one of them names is refused.
///
/// # Errors
///
/// Fails when the repository cannot be read, when a copy cannot be made, or when a gate's name is invalid.
pub async fn rerun_gates(
    world: &RunContext<'_>,
    reader: &CommitReader,
    policy: &Policy,
    updates: &[RefUpdate],
    sandbox: Strength,
) -> Result<Verdict, RunError> {
    let mut verdict = Verdict::default();
    let mut gates = Vec::new();
    for gate in policy.rerun_gates() {
        let id = gate.id.parse().map_err(|_| RunError::DoorGate {
            id: gate.id.clone(),
        })?;
        let timeout = Duration::from_secs(gate.timeout_s.into());
        gates.push(GateSpec::new(
            id,
            gate.command.clone(),
            timeout,
            "the policy",
        ));
    }
    if gates.is_empty() {
        return Ok(verdict);
    }
    let guarded = GuardedRefs::read(reader, policy).await?;
    let mut tips: Vec<Oid> = Vec::new();
    let mut changed_programs = Vec::new();
    for update in updates {
        if !update.is_deletion()
            && guarded.are_changed_by(reader, policy, update).await?
            && let Some(tip) = reader.resolve(&update.new).await?
        {
            let older = match reader.resolve(&update.old).await? {
                Some(older) => Some(older),
                None => reader.fork_point(&tip, &guarded.commits).await?,
            };
            let changed = reader.changed_files(older.as_ref(), &tip).await?;
            let links = reader.links(&tip).await?;
            for gate in policy.rerun_gates() {
                let findings = judge_pushed_programs(gate, tip.as_str(), &changed, &links);
                changed_programs.extend(findings);
            }
            if !tips.contains(&tip) {
                tips.push(tip);
            }
        }
    }
    verdict.merge(Verdict::new(changed_programs));
    if !verdict.passes() {
        return Ok(verdict);
    }
    create_dir_all(&world.tmp)?;
    WorkDir::sweep(&world.tmp, PREFIX);
    for tip in tips {
        let temp_dir = WorkDir::create(&world.tmp, PREFIX, "")?;
        let tree = temp_dir.path().join("tree");
        create_dir_all(&tree)?;
        reader.check_out_aside(&tip, &tree).await?;
        let git = world.repository(&tree).await?;
        let checks = check_gates(world, git, &gates, sandbox, &mut NoopObserver).await?;
        let findings = checks.iter().filter_map(|check| finding(&tip, check));
        verdict.merge(Verdict::new(findings.collect()));
    }
    Ok(verdict)
}

/// Only a gate that ran and passed is a pass.
fn finding(tip: &Oid, check: &GateCheck) -> Option<Finding> {
    let why = match &check.state {
        GateState::Passes => return None,
        GateState::Fails { end, .. } => end.clone(),
        GateState::CouldNotRun { cause, .. } => format!("it could not run: {cause}"),
    };
    let hint = format!(
        "gate {:?} did not pass on this commit: {why}",
        check.id.as_str()
    );
    Some(Finding::error(GATE_FAILED, tip.as_str(), hint))
}
