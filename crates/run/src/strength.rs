//! Strength: small mistakes in the changed lines, and how many of them the gates notice.
//!
//! The gates that noticed the broken change run on the mistakes, one in each copy and as many copies as there are processors,
//! until the time budget is used up. Which mistakes are tried first depends on their text alone.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use crucible_host::fs;
use crucible_model::{Digest, RepoPath};
use crucible_patch::{Mutant, mutants};
use crucible_verify::{
    BrokenChange, BrokenOutcome, CanaryOutcome, GateRun, Strength, SurvivingMutant, judge_canary,
};

use crate::broken_change::run_variant;
use crate::error::RunError;
use crate::journal::{NoopObserver, RunObserver};
use crate::run_context::RunContext;
use crate::trial::{TrialContext, TrialResult, TrialSetup, VariantFiles, VerifyContext};

/// Additional time for a gate on a mistake, beyond twice its time: a mistake can make a loop endless.
const GRACE: Duration = Duration::from_secs(2);
/// How many survivors a report lists.
const MAX_SURVIVORS: usize = 20;

/// The most mistakes that are tried at a time, each in a copy of its own.
const MAX_LANES: usize = 4;

/// How many mistakes are tried at a time: as many as there are processors.
fn lanes() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_LANES))
}

/// Mistakes that are tried side by side.
struct Lanes<'l> {
    /// The gates, as they ran on the change.
    gates: &'l [&'l GateRun],
    mutants: &'l [(Digest, &'l RepoPath, Mutant)],
    budget: Duration,
    /// How long the gates take together.
    one_run: Duration,
    must_try_one: bool,
    lanes: usize,
    progress: Mutex<Progress>,
}

/// How far the lanes are.
#[derive(Default)]
struct Progress {
    /// The next mistake.
    next: usize,
    /// The time that all lanes used together.
    used: Duration,
    /// Whether the gates noticed a mistake, by its number.
    noticed: BTreeMap<usize, bool>,
}

impl Lanes<'_> {
    /// Takes the next mistake, if there is one and time for it.
    fn take(&self) -> Option<usize> {
        let mut progress = self.progress.lock().ok()?;
        let lanes = u32::try_from(self.lanes).unwrap_or(1).max(1);
        let is_over = (progress.used / lanes).saturating_add(self.one_run) > self.budget;
        let may_stop = progress.next > 0 || !self.must_try_one;
        if progress.next >= self.mutants.len() || may_stop && is_over {
            return None;
        }
        progress.next += 1;
        Some(progress.next - 1)
    }

    /// Tries mistakes in the lane of this number until none is left.
    async fn run(
        &self,
        world: &RunContext<'_>,
        by: VerifyContext<'_>,
        base: TrialSetup<'_>,
        scratch_dir: &Path,
        tried: &TrialContext<'_>,
        number: usize,
    ) -> Result<(), RunError> {
        if number >= self.lanes {
            return Ok(());
        }
        let scratch_dir = scratch_dir.join(format!("strength-{number}"));
        fs::create_dir_all(&scratch_dir)?;
        while let Some(at) = self.take() {
            let Some((_, path, mutant)) = self.mutants.get(at) else {
                break;
            };
            let files = VariantFiles::from([((*path).clone(), mutant.text.clone().into_bytes())]);
            let (mut used, mut is_noticed) = (Duration::ZERO, false);
            for gate in self.gates {
                let on = (*gate, &files, GRACE);
                let unwatched = &mut NoopObserver;
                let run = run_variant(world, by, base, &scratch_dir, tried, on, unwatched).await?;
                if let Some(run) = run {
                    used += run.duration;
                    is_noticed = judge_canary(gate, &run) == CanaryOutcome::Noticed;
                }
                if is_noticed {
                    break;
                }
            }
            if let Ok(mut progress) = self.progress.lock() {
                progress.used += used;
                progress.noticed.insert(at, is_noticed);
            }
        }
        Ok(())
    }
}

/// Runs the gates on mistakes; nothing without a budget, or if no gate noticed the broken change.
pub(crate) async fn measure(
    world: &RunContext<'_>,
    by: VerifyContext<'_>,
    base: TrialSetup<'_>,
    scratch_dir: &Path,
    (tried, passed, broken): (&TrialContext<'_>, &TrialResult, &BrokenChange),
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
            let digest = Digest::compute(mutant.text.as_bytes());
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
        .gate_runs()
        .filter(|run| noticed(run.id.as_str()))
        .map(|run| run.duration)
        .sum();
    let gates: Vec<&GateRun> = passed
        .gate_runs()
        .filter(|run| noticed(run.id.as_str()))
        .collect();
    let on = Lanes {
        gates: &gates,
        mutants: &all,
        budget,
        one_run,
        // A required share needs at least one.
        must_try_one: settings.min_strength > 0,
        lanes: lanes(),
        progress: Mutex::new(Progress::default()),
    };
    let lane = |number| on.run(world, by, base, scratch_dir, tried, number);
    tokio::try_join!(lane(0), lane(1), lane(2), lane(3))?;
    let tried_mutants = on.progress.into_inner().unwrap_or_default().noticed;
    for (at, is_noticed) in tried_mutants {
        let Some((_, path, mutant)) = all.get(at) else {
            continue;
        };
        strength.tried += 1;
        strength.noticed += u64::from(is_noticed);
        if !is_noticed && strength.survivors.len() < MAX_SURVIVORS {
            strength.survivors.push(SurvivingMutant {
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
