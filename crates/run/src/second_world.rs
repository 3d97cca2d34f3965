//! The second world of a change that passed: its gates once more, elsewhere.
//!
//! `other_world` says what differs, `crucible_verify` which run comes next and what it showed; this only runs it.

use std::collections::BTreeMap;
use std::path::Path;

use crucible_host::fs;
use crucible_verify::{
    GateRun, SecondWorld, WorldPolicy, WorldRun, WorldRuns, WorldStep, next_world_run,
};

use crate::error::RunError;
use crate::gate_workspace::GateWorkspace;
use crate::journal::NoopObserver;
use crate::other_world::OtherWorld;
use crate::run_context::RunContext;
use crate::trial::{self, TrialContext, TrialInput, TrialResult, TrialSetup, VerifyContext};

/// Runs the gates that passed in the second world; nothing if the policy switches it off.
pub(crate) async fn check(
    world: &RunContext<'_>,
    by: VerifyContext<'_>,
    base: TrialSetup<'_>,
    scratch_dir: &Path,
    (tried, passed): (&TrialContext<'_>, &TrialResult),
) -> Result<Option<SecondWorld>, RunError> {
    let policy = by.record.settings.second_world;
    if policy == WorldPolicy::Off {
        return Ok(None);
    }
    fs::create_dir_all(scratch_dir)?;
    let tree = tried.change.tree.tree.to_string();
    let elsewhere = OtherWorld::new(by.record.run_id.as_str(), &tree);
    let settings = elsewhere.settings_only();
    let second = TrialSetup {
        other: Some(&elsewhere),
        ..base
    };
    let differences = GateWorkspace::survey(world, by.git, second)
        .await?
        .differences();
    let mut gates = Vec::new();
    for after in passed.gate_runs() {
        let mut known = tried.baseline.gates.iter();
        let before = known.find(|before| before.id == after.id.as_str());
        let counts =
            before.is_none_or(|before| before.canary.counts() && before.set_aside.is_none());
        let spec: Vec<_> = base
            .gates
            .iter()
            .filter(|spec| spec.id == after.id)
            .cloned()
            .collect();
        if !counts || spec.is_empty() {
            continue;
        }
        let mut runs: BTreeMap<WorldRun, GateRun> = BTreeMap::new();
        let gate = loop {
            let known = WorldRuns {
                before,
                after,
                runs: &runs,
            };
            let kind = match next_world_run(known) {
                WorldStep::Done(gate) => break gate,
                WorldStep::Run(kind) => kind,
            };
            let (other, copied) = match kind {
                WorldRun::Second | WorldRun::Again => (&elsewhere, TrialInput::Changed(tried)),
                WorldRun::Settings => (&settings, TrialInput::Changed(tried)),
                WorldRun::Base => (&elsewhere, TrialInput::Base),
            };
            // Without a change, the full set is only what the quick one leaves out.
            let level = spec.first().map_or(by.level, |spec| spec.level);
            let base = TrialSetup {
                gates: &spec,
                other: Some(other),
                ..base
            };
            let trial = trial::run(
                world,
                by.git,
                base,
                level,
                scratch_dir,
                copied,
                &mut NoopObserver,
            )
            .await?;
            let Some(run) = trial.gate_runs().next() else {
                break crucible_verify::WorldGate::not_checked(after);
            };
            runs.insert(kind, run.clone());
        };
        gates.push(gate);
    }
    Ok(Some(SecondWorld {
        policy,
        differences: differences.into_iter().map(str::to_owned).collect(),
        gates,
    }))
}

/// The result in one line.
pub(crate) fn summary_line(check: &SecondWorld) -> String {
    let differing: usize = check.gates.iter().map(|gate| gate.differing.len()).sum();
    let differences = check.differences.join(", ");
    if differing == 0 {
        format!("second world: the same tests pass with another {differences}")
    } else {
        format!("second world: {differing} tests fail with another {differences}")
    }
}
