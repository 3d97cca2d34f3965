//! The broken-change check: the gates of a change that passed, once more with the changed code broken on purpose.
//!
//! `crucible_patch` breaks the code, `crucible_verify` says which variant to run next and what it showed; this only runs it.
//! Invariant: a gate that fails anyway, or whose verdict does not count, is not run.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use crucible_host::fs;
use crucible_model::{ByteLimit, RepoPath, counted};
use crucible_patch::{
    AlteredExpectations, BROKEN_ON_PURPOSE, Breakage, Unbroken, alter_expectations, break_change,
};
use crucible_verify::{
    BrokenChange, BrokenChangeStep, BrokenGate, BrokenOutcome, BrokenPolicy, BrokenRuns, GateRun,
    GateSpec, Variant, VariantChoices, best_outcome, next_step, noticing_added_tests,
    repeated_variant, still_failing, unaffected,
};

use crate::canary::broken_source;
use crate::error::RunError;
use crate::journal::RunObserver;
use crate::run_context::RunContext;
use crate::trial::{
    self, TrialContext, TrialInput, TrialResult, TrialSetup, VariantFiles, VerifyContext,
};

/// The largest file that is broken or whose expectations are altered.
const MAX_FILE: ByteLimit = ByteLimit(512 << 10);
/// How many test files are read for their expectations.
const MAX_TESTS: usize = 500;
/// Additional time for a gate on a variant, beyond twice its time.
const GRACE: Duration = Duration::from_secs(10);
/// How many names a report lists.
const MAX_NAMED: usize = 100;

/// How often a gate without tests must notice a variant again, and the time that this may take.
const REPETITIONS: u8 = 8;
const REPETITION_BUDGET: Duration = Duration::from_secs(16);

/// Returns how often a gate that takes so long runs on a variant again: at least once.
fn repetitions(duration: Duration) -> u8 {
    let fitting = REPETITION_BUDGET.as_millis() / duration.as_millis().max(1);
    u8::try_from(fitting)
        .unwrap_or(REPETITIONS)
        .clamp(1, REPETITIONS)
}

/// The variants of a change, and what could not be broken.
struct Variants {
    files: BTreeMap<Variant, VariantFiles>,
    /// The tests with another last expectation, for gates that report no tests.
    last_expectations: VariantFiles,
    functions: Vec<String>,
    constants: u64,
    has_comparisons: bool,
    has_loading: bool,
    not_broken: Vec<String>,
}

/// Runs the gates that passed on variants of the change; nothing if the policy switches the check off.
pub(crate) async fn check(
    world: &RunContext<'_>,
    by: VerifyContext<'_>,
    base: TrialSetup<'_>,
    scratch_dir: &Path,
    tried: &TrialContext<'_>,
    passed: &TrialResult,
    observer: &mut dyn RunObserver,
) -> Result<Option<BrokenChange>, RunError> {
    let policy = by.record.settings.broken_change;
    if policy == BrokenPolicy::Off {
        return Ok(None);
    }
    let variants = variants(by, tried).await?;
    let kinds: Vec<Variant> = variants.files.keys().copied().collect();
    let possible = |after: &GateRun| VariantChoices {
        variants: &kinds,
        has_functions: !variants.functions.is_empty(),
        has_comparisons: variants.has_comparisons,
        has_loading: variants.has_loading,
        repetitions: repetitions(after.duration),
    };
    if !kinds.is_empty() {
        let what = counted(variants.functions.len() as u64, "function");
        observer.working(
            "verifier",
            &format!("broken-change check: running the gates with {what} of the change broken"),
        );
    }
    // A broken function of C ends the program without a message.
    let is_silent = |name: &String| name.contains(".c: ") || name.contains(".h: ");
    let message = (!variants.functions.iter().any(is_silent)).then_some(BROKEN_ON_PURPOSE);
    let before = |run: &GateRun| {
        let mut gates = tried.baseline.gates.iter();
        gates.find(|before| before.id == run.id.as_str())
    };
    let mut gates = Vec::new();
    for after in passed.gate_runs() {
        let before = before(after);
        let counts =
            before.is_none_or(|before| before.canary.counts() && before.set_aside.is_none());
        // The user vouches for a gate without canary run.
        let mut specs = base.gates.iter();
        if !counts || !specs.any(|spec| spec.id == after.id && spec.canary.is_on()) {
            continue;
        }
        let mut runs = BTreeMap::new();
        let outcome = loop {
            let known = BrokenRuns {
                before,
                after,
                runs: &runs,
            };
            match next_step(possible(after), known) {
                BrokenChangeStep::Done(outcome) => break outcome,
                BrokenChangeStep::Run(variant) => {
                    let repeated = matches!(variant, Variant::Again(_));
                    let made = if repeated {
                        repeated_variant(known)
                    } else {
                        Some(variant)
                    };
                    let files = match made.unwrap_or(variant) {
                        Variant::OtherExpectations if after.results.is_none() => {
                            Some(&variants.last_expectations)
                        }
                        made => variants.files.get(&made),
                    };
                    let Some(files) = files else {
                        break BrokenOutcome::NotChecked;
                    };
                    let on = (after, files, GRACE);
                    match run_variant(world, by, base, scratch_dir, tried, on, observer).await? {
                        Some(run) => runs.insert(variant, run),
                        None => break BrokenOutcome::NotChecked,
                    };
                }
            }
        };
        let known = BrokenRuns {
            before,
            after,
            runs: &runs,
        };
        gates.push(BrokenGate {
            id: after.id.to_string(),
            outcome,
            unaffected: unaffected(known),
            noticed_by_added: noticing_added_tests(known, tried.baseline.edited_examples),
            still_red: still_failing(known, message),
        });
    }
    let check = BrokenChange {
        policy,
        outcome: best_outcome(&gates),
        functions: variants.functions,
        constants: variants.constants,
        not_broken: variants.not_broken,
        gates,
    };
    observer.note(&format!("  {}", words(&check)));
    Ok(Some(check))
}

/// Runs the gate of a run that passed once more, on a variant of the change and for twice its time and `grace`;
/// nothing if its gate is not among these.
pub(crate) async fn run_variant(
    world: &RunContext<'_>,
    by: VerifyContext<'_>,
    base: TrialSetup<'_>,
    scratch_dir: &Path,
    tried: &TrialContext<'_>,
    (passed, files, grace): (&GateRun, &VariantFiles, Duration),
    observer: &mut dyn RunObserver,
) -> Result<Option<GateRun>, RunError> {
    let Some(spec) = base.gates.iter().find(|spec| spec.id == passed.id) else {
        return Ok(None);
    };
    let limit = passed.duration.saturating_mul(2).saturating_add(grace);
    let gate = [GateSpec {
        timeout: spec.timeout.min(limit),
        ..spec.clone()
    }];
    let base = TrialSetup {
        gates: &gate,
        ..base
    };
    let copied = TrialInput::Variant(tried, files);
    let trial = trial::run(world, by.git, base, by.level, scratch_dir, copied, observer).await?;
    Ok(trial.gate_runs().next().cloned())
}

/// The result in one line.
fn words(check: &BrokenChange) -> String {
    let what = counted(check.functions.len() as u64, "function");
    match check.outcome {
        BrokenOutcome::Noticed => format!(
            "broken-change check: the gates notice the broken change ({what}, {})",
            counted(check.constants, "constant")
        ),
        BrokenOutcome::ReadsText => {
            "broken-change check: the gates read the text of the change and do not run it"
                .to_owned()
        }
        BrokenOutcome::Unnoticed => {
            "broken-change check: every gate stays green with the changed code broken".to_owned()
        }
        BrokenOutcome::NotChecked => {
            let why = check.not_broken.first().map(|why| format!(": {why}"));
            format!(
                "broken-change check: not checked{}",
                why.unwrap_or_default()
            )
        }
    }
}

/// Makes the variants of a change.
async fn variants(by: VerifyContext<'_>, tried: &TrialContext<'_>) -> Result<Variants, RunError> {
    let after = tried.change.tree.files_checked_out();
    let mut all = Variants {
        files: BTreeMap::new(),
        last_expectations: VariantFiles::new(),
        functions: Vec::new(),
        constants: 0,
        has_comparisons: false,
        has_loading: false,
        not_broken: Vec::new(),
    };
    let mut only_loading = BTreeSet::new();
    for (path, bytes) in &after {
        let old = tried.base_files.get(path).map(Vec::as_slice);
        // A program that is its own gate runs its tests before its file is loaded.
        let is_own_gate = by.analysis.gate_files.contains(path);
        let broken = |breakage| break_change(path, old, bytes, breakage);
        let first = broken(if is_own_gate {
            Breakage::FailsWhileLoading
        } else {
            Breakage::Fails
        });
        let named = first.functions.iter().map(|name| format!("{path}: {name}"));
        all.functions.extend(named);
        all.constants += first.constants;
        all.has_comparisons |= !first.comparisons.is_empty();
        if first.rest.contains(&Unbroken::Loading) {
            only_loading.insert(path.clone());
        }
        let reasons = first.rest.iter().map(|rest| reason(path, *rest));
        all.not_broken.extend(reasons);
        let mut put = |variant, text: Option<String>| {
            if let Some(text) = text {
                let files: &mut VariantFiles = all.files.entry(variant).or_default();
                files.insert(path.clone(), text.into_bytes());
            }
        };
        let is_dynamic = matches!(
            path.extension(),
            Some("py" | "js" | "mjs" | "cjs" | "jsx" | "ts" | "tsx" | "mts" | "cts")
        );
        if !first.functions.is_empty() {
            if is_dynamic {
                put(
                    Variant::ReturnsNothing,
                    broken(Breakage::ReturnsNothing).text,
                );
                put(
                    Variant::FailsWhileLoading,
                    broken(Breakage::FailsWhileLoading).text,
                );
            }
            put(Variant::Removed, broken(Breakage::Removed).text);
            let unloadable = broken_source(path.as_str(), bytes);
            put(
                Variant::Unloadable,
                unloadable.and_then(|bytes| String::from_utf8(bytes).ok()),
            );
        }
        put(Variant::Fails, first.text);
    }
    all.has_loading = !only_loading.is_empty();
    if all.has_loading || all.has_comparisons || all.files.contains_key(&Variant::FailsWhileLoading)
    {
        all.last_expectations = expectations(by, &after, AlteredExpectations::Last).await?;
        let altered = expectations(by, &after, AlteredExpectations::All).await?;
        if !altered.is_empty() {
            all.files.insert(Variant::OtherExpectations, altered);
        }
    }
    all.functions.truncate(MAX_NAMED);
    all.not_broken.truncate(MAX_NAMED);
    Ok(all)
}

/// The test files of the changed copy, with other expectations.
async fn expectations(
    by: VerifyContext<'_>,
    after: &BTreeMap<RepoPath, Vec<u8>>,
    which: AlteredExpectations,
) -> Result<VariantFiles, RunError> {
    let tracked = by.git.tracked_files().await?;
    let paths = tracked
        .iter()
        .filter_map(|file| RepoPath::from_bytes(file.path.as_os_str().as_bytes()).ok());
    let paths: BTreeSet<RepoPath> = paths.chain(after.keys().cloned()).collect();
    let altered = paths.into_iter().filter_map(|path| {
        let bytes = match after.get(&path) {
            Some(bytes) => bytes.clone(),
            None => fs::read_regular_up_to(&by.git.top().join(path.as_str()), MAX_FILE).ok()?,
        };
        let text = alter_expectations(&path, &bytes, which)?;
        Some((path, text.into_bytes()))
    });
    Ok(altered.take(MAX_TESTS).collect())
}

fn reason(path: &RepoPath, rest: Unbroken) -> String {
    let why = match rest {
        Unbroken::NoGrammar => "not in a language whose functions can be broken",
        Unbroken::Unparsed => "does not follow the grammar of its language",
        Unbroken::Test => "a test",
        Unbroken::Declaration => "declarations compute nothing",
        Unbroken::Loading => "code that runs while the file is loaded",
    };
    format!("{path}: {why}")
}
