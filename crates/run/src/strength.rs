//! Strength: small mistakes in the changed lines, and how many of them the gates notice.
//!
//! The gates that noticed the broken change run on one mistake at a time, until the time budget is used up. Which mistakes are
//! tried first depends on their text alone.

use std::path::Path;
use std::time::Duration;

use crucible_host::fs;
use crucible_model::{ByteLimit, Digest, RepoPath};
use crucible_patch::{Mutant, mutants};
use crucible_verify::{
    BrokenChange, BrokenOutcome, CanaryOutcome, GateSpec, Strength, Survivor, judge_canary,
};

use crate::error::RunError;
use crate::journal::RunObserver;
use crate::trial::{self, Copied, TrialBase, TrialResult, Tried, VariantFiles, VerifyContext};
use crate::world::World;

/// The largest file that is mutated.
const MAX_FILE: ByteLimit = ByteLimit(512 << 10);
/// Additional time for a gate on a mistake, beyond twice its time: a mistake can make a loop endless.
const GRACE: Duration = Duration::from_secs(2);
/// How many survivors a report lists.
const MAX_SURVIVORS: usize = 20;

/// Runs the gates on mistakes; nothing without a budget, or if no gate noticed the broken change.
pub(crate) async fn measure(
    world: &World<'_>,
    by: VerifyContext<'_>,
    base: TrialBase<'_>,
    room: &Path,
    (tried, passed, broken): (&Tried<'_>, &TrialResult, &BrokenChange),
    observer: &mut dyn RunObserver,
) -> Result<Option<Strength>, RunError> {
    let settings = &by.record.settings;
    let budget = Duration::from_secs(settings.strength_budget_s);
    let noticed = |id: &str| {
        let mut gates = broken.gates.iter();
        gates.any(|gate| gate.id == id && gate.outcome == BrokenOutcome::Noticed)
    };
    if budget.is_zero() || broken.outcome != BrokenOutcome::Noticed {
        return Ok(None);
    }
    let after = tried.change.tree.files_checked_out();
    let mut all: Vec<(Digest, &RepoPath, Mutant)> = Vec::new();
    for (path, bytes) in &after {
        let old = fs::read_regular_up_to(&by.git.top().join(path.as_str()), MAX_FILE).ok();
        let found = mutants(path, old.as_deref(), bytes);
        all.extend(found.into_iter().map(|mutant| {
            let digest = Digest::of(mutant.text.as_bytes());
            (digest, path, mutant)
        }));
    }
    all.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    let mut strength = Strength {
        mutants: all.len() as u64,
        required: settings.min_strength,
        ..Strength::default()
    };
    let mut used = Duration::ZERO;
    for (_, path, mutant) in &all {
        let mut is_noticed = false;
        let mut files = VariantFiles::new();
        files.insert((*path).clone(), mutant.text.clone().into_bytes());
        if used >= budget {
            break;
        }
        for run in passed.runs().filter(|run| noticed(run.id.as_str())) {
            let Some(spec) = base.gates.iter().find(|spec| spec.id == run.id) else {
                continue;
            };
            let limit = run.duration.saturating_mul(2).saturating_add(GRACE);
            let gate = [GateSpec {
                timeout: spec.timeout.min(limit),
                ..spec.clone()
            }];
            let base = TrialBase {
                gates: &gate,
                ..base
            };
            let copied = Copied::Variant(tried, &files);
            let trial = trial::run(world, by.git, base, by.level, room, copied, observer).await?;
            let mut runs = trial.runs();
            if let Some(mutated) = runs.next() {
                used += mutated.duration;
                is_noticed = judge_canary(run, mutated) == CanaryOutcome::Noticed;
            }
            if is_noticed {
                break;
            }
        }
        strength.tried += 1;
        strength.noticed += u64::from(is_noticed);
        if !is_noticed && strength.survivors.len() < MAX_SURVIVORS {
            strength.survivors.push(Survivor {
                at: format!("{path}:{}", mutant.line),
                what: mutant.what.clone(),
                diff: after
                    .get(*path)
                    .map(|after| mutant.diff(after))
                    .unwrap_or_default(),
            });
        }
    }
    strength.survivors.sort_by(|a, b| a.at.cmp(&b.at));
    if let Some(percent) = strength.percent() {
        let left = strength.mutants - strength.tried;
        let rest = if left > 0 {
            format!("; {left} were not tried within `[run] strength_budget_s`")
        } else {
            String::new()
        };
        observer.note(&format!(
            "  strength: the gates notice {} of {} mistakes in the changed lines ({percent} %){rest}",
            strength.noticed, strength.tried
        ));
    }
    Ok(Some(strength))
}
