//! Strength: small mistakes in the changed lines, and how many of them the gates notice.
//!
//! The gates that noticed the broken change run on one mistake at a time, until the time budget is used up. Which mistakes are
//! tried first depends on their text alone.

use std::path::Path;
use std::time::Duration;

use crucible_model::{Digest, RepoPath};
use crucible_patch::{Mutant, mutants};
use crucible_verify::{
    BrokenChange, BrokenOutcome, CanaryOutcome, Strength, Survivor, judge_canary,
};

use crate::broken_change::run_variant;
use crate::error::RunError;
use crate::journal::RunObserver;
use crate::trial::{TrialBase, TrialResult, Tried, VariantFiles, VerifyContext};
use crate::world::World;

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
        let old = tried.base_files.get(path).map(Vec::as_slice);
        let found = mutants(path, old, bytes);
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
    let one_run: Duration = passed
        .runs()
        .filter(|run| noticed(run.id.as_str()))
        .map(|run| run.duration)
        .sum();
    let mut used = Duration::ZERO;
    for (_, path, mutant) in &all {
        let mut is_noticed = false;
        let mut files = VariantFiles::new();
        files.insert((*path).clone(), mutant.text.clone().into_bytes());
        // A required share needs at least one.
        let may_stop = strength.tried > 0 || settings.min_strength == 0;
        if may_stop && used.saturating_add(one_run) > budget {
            break;
        }
        for run in passed.runs().filter(|run| noticed(run.id.as_str())) {
            let on = (run, &files, GRACE);
            let mutated = run_variant(world, by, base, room, tried, on, observer).await?;
            if let Some(mutated) = mutated {
                used += mutated.duration;
                is_noticed = judge_canary(run, &mutated) == CanaryOutcome::Noticed;
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
    if strength.tried == 0 && strength.mutants > 0 {
        observer.note(&format!(
            "  strength: not measured, because one run of the gates takes {} s; `[run] strength_budget_s` is {}",
            one_run.as_secs(),
            budget.as_secs()
        ));
    }
    if let Some(percent) = strength.percent() {
        let left = strength.mutants - strength.tried;
        observer.note(&match left {
            0 => format!(
                "  strength: the gates notice {} of {} mistakes in the changed lines ({percent} %)",
                strength.noticed, strength.tried
            ),
            // A share of so few says little.
            _ => format!(
                "  strength: the gates notice {} of {} tried mistakes; {left} more were not tried within `[run] strength_budget_s`",
                strength.noticed, strength.tried
            ),
        });
    }
    Ok(Some(strength))
}
