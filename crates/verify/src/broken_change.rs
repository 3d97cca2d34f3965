//! Decides whether gates notice that the changed code is broken. Pure.
//!
//! After a change passed, its gates run again on copies in which every changed function fails at its end. A gate that stays
//! green proves nothing about the change: it does not run the changed code, or something in that code decides its result.
//! [`next_step`] says which variant tells more, [`BrokenChange`] is what the report keeps.

use std::collections::BTreeMap;

use crucible_model::{Code, Finding, Verdict};
use serde::{Deserialize, Serialize};

use crate::canary::{CanaryOutcome, can_canary_differ, judge_canary};
use crate::gate::GateRun;
use crate::judge::GateBefore;
use crate::results::TestStatus;

/// Every gate stays green with the changed code broken.
pub const NOT_NOTICED: Code = Code::new("verify-change-not-noticed");

/// A copy with deliberately changed code, on which a gate runs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// Changed functions fail once their file is loaded, and changed constants are wrong.
    Fails,
    /// Changed functions return nothing.
    ReturnsNothing,
    /// Changed functions fail while their file is being loaded, too.
    FailsWhileLoading,
    /// The tests expect other values.
    OtherExpectations,
    /// No program can load the changed files.
    Unloadable,
    /// The code of changed functions is gone.
    Removed,
    /// The first variant that a gate without tests noticed, once more; with the number of the repetition.
    Again(u8),
}

/// What can be tried on a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariantChoices<'a> {
    /// The variants that differ from the change.
    pub variants: &'a [Variant],
    /// Whether functions are broken, not only constants.
    pub has_functions: bool,
    /// Whether the change touches functions that compare values, which could answer always the same.
    pub has_comparisons: bool,
    /// Whether it touches code that runs when its file is loaded.
    pub has_loading: bool,
    /// How often a gate that reports no tests must notice a variant again: it could be red by chance.
    pub repetitions: u8,
}

/// One gate on the change and its variants.
#[derive(Debug, Clone, Copy)]
pub struct BrokenRuns<'a> {
    /// The gate before any change.
    pub before: Option<&'a GateBefore>,
    /// The gate on the change.
    pub after: &'a GateRun,
    /// The gate on the variants that were run.
    pub runs: &'a BTreeMap<Variant, GateRun>,
}

/// What to do next for a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenChangeStep {
    /// Run it on this variant.
    Run(Variant),
    /// It is decided.
    Done(BrokenOutcome),
}

/// What a gate showed on broken changed code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BrokenOutcome {
    /// It failed: it tests the changed code.
    Noticed,
    /// It does not run the changed code and reads its text.
    ReadsText,
    /// It stayed green: it proves nothing about the change.
    Unnoticed,
    /// Nothing of the change could be broken for it.
    NotChecked,
}

/// Which results of the check refuse a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BrokenPolicy {
    /// The check is not made.
    Off,
    /// The result is reported.
    Report,
    /// A change that no gate notices is refused.
    #[default]
    Required,
    /// The same, and a change that cannot be broken as well.
    Strict,
}

impl BrokenPolicy {
    /// Every policy, by its name in settings.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("required", Self::Required),
        ("strict", Self::Strict),
        ("report", Self::Report),
        ("off", Self::Off),
    ];

    /// Returns whether this is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The check of a change, as the report keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokenChange {
    /// The policy in force.
    pub policy: BrokenPolicy,
    /// The best outcome of a gate that counts.
    pub outcome: BrokenOutcome,
    /// The functions that were broken, with their files.
    pub functions: Vec<String>,
    /// How many constants were wrong.
    pub constants: u64,
    /// Changed code that was not broken, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_broken: Vec<String>,
    /// Each gate that counts.
    pub gates: Vec<BrokenGate>,
}

/// One gate of the check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokenGate {
    /// Which gate.
    pub id: String,
    /// What it showed.
    pub outcome: BrokenOutcome,
    /// Tests that the change fixed and that stayed green on every variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unaffected: Vec<String>,
    /// Tests that the change adds and that fail with its functions broken; the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noticed_by_added: Vec<String>,
    /// Tests that fail before and after the change and that may run its code; the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub still_red: Vec<String>,
}

/// Says what to run next for a gate, or what it showed.
#[must_use]
pub fn next_step(possible: VariantChoices<'_>, runs: BrokenRuns<'_>) -> BrokenChangeStep {
    let step = first_step(possible, runs);
    let is_noticed = step == BrokenChangeStep::Done(BrokenOutcome::Noticed);
    if !is_noticed || runs.after.results.is_some() || repeated_variant(runs).is_none() {
        return step;
    }
    // A script that ends itself with 0 at random is red only sometimes.
    for repetition in (1..=possible.repetitions).map(Variant::Again) {
        match runs.runs.get(&repetition) {
            None => return BrokenChangeStep::Run(repetition),
            Some(run) if has_noticed(runs, run) => {}
            Some(_) => return BrokenChangeStep::Done(BrokenOutcome::Unnoticed),
        }
    }
    step
}

/// Returns the first variant that a gate noticed, which is run again if the gate reports no tests.
#[must_use]
pub fn repeated_variant(runs: BrokenRuns<'_>) -> Option<Variant> {
    let is_first = |(variant, run): &(&Variant, &GateRun)| {
        !matches!(variant, Variant::Again(_)) && has_noticed(runs, run)
    };
    runs.runs.iter().find(is_first).map(|(variant, _)| *variant)
}

/// The same without repetitions.
fn first_step(possible: VariantChoices<'_>, runs: BrokenRuns<'_>) -> BrokenChangeStep {
    use Variant::{
        Fails, FailsWhileLoading, OtherExpectations, Removed, ReturnsNothing, Unloadable,
    };
    let done = |outcome| BrokenChangeStep::Done(outcome);
    if !can_canary_differ(runs.after) {
        return done(BrokenOutcome::NotChecked);
    }
    let has = |variant| possible.variants.contains(&variant);
    let noticed = |variant| {
        let run = runs.runs.get(&variant)?;
        Some(has_noticed(runs, run))
    };
    for variant in [Fails, ReturnsNothing] {
        if !has(variant) {
            continue;
        }
        match noticed(variant) {
            None => return BrokenChangeStep::Run(variant),
            // A function that calls everything equal fails like any other, and so does one that took the place of an assertion.
            Some(true)
                if (possible.has_comparisons || possible.has_loading) && has(OtherExpectations) =>
            {
                return match noticed(OtherExpectations) {
                    None => BrokenChangeStep::Run(OtherExpectations),
                    Some(true) => done(BrokenOutcome::Noticed),
                    Some(false) => done(BrokenOutcome::Unnoticed),
                };
            }
            Some(true) => return done(BrokenOutcome::Noticed),
            Some(false) => {}
        }
    }
    let has_fixed = fixed(runs).next().is_some();
    // Code that runs while a file is loaded cannot be told from code that replaces the test runner, except by a test that must
    // fail.
    let is_loading = has(FailsWhileLoading) || possible.has_loading;
    if is_loading && has(OtherExpectations) {
        let depends = if has(FailsWhileLoading) {
            match noticed(FailsWhileLoading) {
                None => return BrokenChangeStep::Run(FailsWhileLoading),
                Some(noticed) => noticed || possible.has_loading,
            }
        } else {
            true
        };
        if depends {
            match noticed(OtherExpectations) {
                None => return BrokenChangeStep::Run(OtherExpectations),
                // Every suite fails with other expectations. That the change matters is shown by a red variant, or by tests
                // that fail without it.
                Some(true) if noticed(FailsWhileLoading) == Some(true) || has_fixed => {
                    return done(BrokenOutcome::Noticed);
                }
                Some(true) if !possible.has_functions => return done(BrokenOutcome::NotChecked),
                Some(_) => {}
            }
        }
    }
    let reports_no_tests = runs.after.results.is_none();
    if reports_no_tests && has(Unloadable) && has(Removed) {
        match noticed(Unloadable) {
            None => return BrokenChangeStep::Run(Unloadable),
            Some(true) => {}
            Some(false) => match noticed(Removed) {
                None => return BrokenChangeStep::Run(Removed),
                Some(true) => return done(BrokenOutcome::ReadsText),
                Some(false) => {}
            },
        }
    }
    let is_tried = !runs.runs.is_empty();
    if !is_tried || !possible.has_functions && !possible.has_loading && !has_fixed {
        // Nothing is broken, or only constants that no failing test asked for.
        return done(BrokenOutcome::NotChecked);
    }
    done(BrokenOutcome::Unnoticed)
}

/// The tests that failed before the change and pass with it.
fn fixed(runs: BrokenRuns<'_>) -> impl Iterator<Item = &str> {
    let before = runs.before.and_then(|before| before.results.as_ref());
    let failed = move |name: &&str| {
        before.is_some_and(|before| before.tests.get(*name) == Some(&TestStatus::Failed))
    };
    let now = runs.after.results.iter();
    now.flat_map(|results| results.with_status(TestStatus::Passed))
        .filter(failed)
}

pub(crate) fn is_green(run: &GateRun, name: &str) -> bool {
    run.results
        .as_ref()
        .is_some_and(|results| results.tests.get(name) == Some(&TestStatus::Passed))
}

/// Whether a gate ended differently and, if the change fixed tests, one of these is no longer green.
fn has_noticed(runs: BrokenRuns<'_>, broken: &GateRun) -> bool {
    let mut fixed = fixed(runs).peekable();
    let concerns_goal = fixed.peek().is_none() || fixed.any(|name| !is_green(broken, name));
    concerns_goal && judge_canary(runs.after, broken) == CanaryOutcome::Noticed
}

/// Returns the tests that the change fixed and that stayed green on every variant.
#[must_use]
pub fn unaffected(runs: BrokenRuns<'_>) -> Vec<String> {
    if runs.runs.is_empty() {
        return Vec::new();
    }
    let stays = |name: &&str| runs.runs.values().all(|run| is_green(run, name));
    fixed(runs).filter(stays).map(str::to_owned).collect()
}

/// Returns the best outcome: one gate that tests the change is enough.
#[must_use]
pub fn best_outcome(gates: &[BrokenGate]) -> BrokenOutcome {
    use BrokenOutcome::{NotChecked, Noticed, ReadsText, Unnoticed};
    let has = |outcome| gates.iter().any(|gate| gate.outcome == outcome);
    let order = [Noticed, ReadsText, Unnoticed];
    order
        .into_iter()
        .find(|outcome| has(*outcome))
        .unwrap_or(NotChecked)
}

/// Returns the findings on the check.
#[must_use]
pub fn judge_broken_change(check: &BrokenChange) -> Verdict {
    let mut verdict = Verdict::default();
    let mut push = |is_refused: bool, code, hint: &str| {
        let subject = "gates";
        verdict.push(if is_refused {
            Finding::error(code, subject, hint)
        } else {
            Finding::warning(code, subject, hint)
        });
    };
    match check.outcome {
        BrokenOutcome::Noticed => {}
        BrokenOutcome::ReadsText if check.policy == BrokenPolicy::Strict => push(
            true,
            Code::new("verify-change-only-read"),
            "the gates read the text of the changed code and do not run it, and `[run] broken_change = \"strict\"` requires that they run it",
        ),
        BrokenOutcome::ReadsText => {}
        BrokenOutcome::Unnoticed => push(
            check.policy != BrokenPolicy::Report,
            NOT_NOTICED,
            "every gate stays green with the changed code broken on purpose, so no gate tests the change; add a test that fails without the change",
        ),
        BrokenOutcome::NotChecked if check.policy == BrokenPolicy::Strict => push(
            true,
            Code::new("verify-change-not-checked"),
            "nothing of the change could be broken on purpose, and `[run] broken_change = \"strict\"` requires it",
        ),
        BrokenOutcome::NotChecked => {}
    }
    let unaffected: Vec<&str> = check
        .gates
        .iter()
        .filter(|gate| gate.outcome == BrokenOutcome::Noticed)
        .flat_map(|gate| gate.unaffected.iter().map(String::as_str))
        .take(10)
        .collect();
    if !unaffected.is_empty() {
        push(
            false,
            Code::new("verify-test-unaffected"),
            &format!(
                "these tests failed before the change and stay green with the changed code broken on purpose: {}",
                unaffected.join(", ")
            ),
        );
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::GateEnd;
    use crate::judge::tests::run_of;
    use crate::results::TestResults;
    use BrokenOutcome::{NotChecked, Noticed, ReadsText, Unnoticed};
    use Variant::{Again, Fails, FailsWhileLoading, OtherExpectations, Removed, Unloadable};

    const GREEN: &str =
        "running 2 tests\ntest a ... ok\ntest b ... ok\n\ntest result: ok. 2 passed; 0 failed\n";
    const A_RED: &str = "running 2 tests\ntest a ... FAILED\ntest b ... ok\n\ntest result: FAILED. 1 passed; 1 failed\n";
    const B_RED: &str = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed\n";

    fn run(output: &str) -> GateRun {
        let code = if output.contains("FAILED") || output == "red" {
            101
        } else {
            0
        };
        run_of("cargo test", GateEnd::Exited(code), output, "")
    }

    fn before(red: &str) -> GateBefore {
        let mut results = TestResults::default();
        results.add(red, TestStatus::Failed);
        GateBefore {
            results: Some(results),
            ..GateBefore::default()
        }
    }

    struct Case<'a> {
        variants: &'a [Variant],
        after: &'a str,
        runs: &'a [(Variant, &'a str)],
        is_loading: bool,
        has_comparisons: bool,
        /// The test that failed before the change.
        red: &'static str,
    }

    impl Case<'_> {
        fn step(&self) -> BrokenChangeStep {
            let runs = self
                .runs
                .iter()
                .map(|(variant, output)| (*variant, run(output)))
                .collect();
            let possible = VariantChoices {
                variants: self.variants,
                has_functions: self.variants.contains(&Fails),
                has_comparisons: self.has_comparisons,
                has_loading: self.is_loading,
                repetitions: 2,
            };
            next_step(
                possible,
                BrokenRuns {
                    before: Some(&before(self.red)),
                    after: &run(self.after),
                    runs: &runs,
                },
            )
        }
    }

    const CASE: Case<'static> = Case {
        variants: &[Fails],
        after: GREEN,
        runs: &[],
        is_loading: false,
        has_comparisons: false,
        red: "a",
    };

    #[test]
    fn gate_that_fails_on_broken_change_has_noticed() {
        assert_eq!(CASE.step(), BrokenChangeStep::Run(Fails));
        let red = Case {
            runs: &[(Fails, A_RED)],
            ..CASE
        };
        assert_eq!(red.step(), BrokenChangeStep::Done(Noticed));
        let green = Case {
            runs: &[(Fails, GREEN)],
            ..CASE
        };
        assert_eq!(green.step(), BrokenChangeStep::Done(Unnoticed));
    }

    #[test]
    fn unrelated_failing_test_proves_nothing_for_goal() {
        let decoy = Case {
            runs: &[(Fails, B_RED)],
            ..CASE
        };
        assert_eq!(decoy.step(), BrokenChangeStep::Done(Unnoticed));
    }

    #[test]
    fn comparison_must_also_fail_other_expectations() {
        let variants = &[Fails, OtherExpectations];
        let case = |runs: &[(Variant, &str)]| {
            Case {
                variants,
                runs,
                has_comparisons: true,
                ..CASE
            }
            .step()
        };
        assert_eq!(
            case(&[(Fails, A_RED)]),
            BrokenChangeStep::Run(OtherExpectations)
        );
        let all = |expected| case(&[(Fails, A_RED), (OtherExpectations, expected)]);
        assert_eq!(all(A_RED), BrokenChangeStep::Done(Noticed));
        assert_eq!(all(GREEN), BrokenChangeStep::Done(Unnoticed));
    }

    #[test]
    fn loading_code_is_shown_by_failing_test() {
        let variants = &[Fails, FailsWhileLoading, OtherExpectations];
        let case = |runs: &[(Variant, &str)]| {
            Case {
                variants,
                runs,
                ..CASE
            }
            .step()
        };
        let green = (Fails, GREEN);
        assert_eq!(case(&[green]), BrokenChangeStep::Run(FailsWhileLoading));
        let loading = (FailsWhileLoading, "red");
        assert_eq!(
            case(&[green, loading]),
            BrokenChangeStep::Run(OtherExpectations)
        );
        let all = |expected| case(&[green, loading, (OtherExpectations, expected)]);
        assert_eq!(all(A_RED), BrokenChangeStep::Done(Noticed));
        assert_eq!(all(GREEN), BrokenChangeStep::Done(Unnoticed));
    }

    /// Otherwise one line that runs on loading would vouch for functions that no test calls.
    #[test]
    fn other_expectations_alone_are_no_evidence() {
        let case = |variants, red, runs| {
            Case {
                variants,
                runs,
                is_loading: true,
                red,
                ..CASE
            }
            .step()
        };
        let both: &[Variant] = &[Fails, OtherExpectations];
        let runs: &[(Variant, &str)] = &[(Fails, GREEN), (OtherExpectations, A_RED)];
        assert_eq!(case(both, "other", runs), BrokenChangeStep::Done(Unnoticed));
        assert_eq!(case(both, "a", runs), BrokenChangeStep::Done(Noticed));
        let only: &[Variant] = &[OtherExpectations];
        assert_eq!(
            case(only, "other", &runs[1..]),
            BrokenChangeStep::Done(NotChecked)
        );
        assert_eq!(case(only, "a", &runs[1..]), BrokenChangeStep::Done(Noticed));
    }

    #[test]
    fn gate_reading_text_is_distinguished_from_running_it() {
        let variants = &[Fails, Unloadable, Removed];
        let case = |runs: &[(Variant, &str)]| {
            Case {
                variants,
                after: "",
                runs,
                ..CASE
            }
            .step()
        };
        assert_eq!(case(&[(Fails, "")]), BrokenChangeStep::Run(Unloadable));
        assert_eq!(
            case(&[(Fails, ""), (Unloadable, "")]),
            BrokenChangeStep::Run(Removed)
        );
        let all = |load, removed| case(&[(Fails, ""), (Unloadable, load), (Removed, removed)]);
        assert_eq!(all("", "red"), BrokenChangeStep::Done(ReadsText));
        assert_eq!(all("", ""), BrokenChangeStep::Done(Unnoticed));
        // A program that ends itself is loaded.
        assert_eq!(all("red", "red"), BrokenChangeStep::Done(Unnoticed));
    }

    #[test]
    fn change_that_cannot_be_broken_is_not_checked() {
        let case = Case {
            variants: &[],
            ..CASE
        };
        assert_eq!(case.step(), BrokenChangeStep::Done(NotChecked));
        let loading = Case {
            variants: &[OtherExpectations],
            is_loading: true,
            ..CASE
        };
        assert_eq!(loading.step(), BrokenChangeStep::Run(OtherExpectations));
        let forged = Case {
            runs: &[(OtherExpectations, GREEN)],
            ..loading
        };
        assert_eq!(forged.step(), BrokenChangeStep::Done(Unnoticed));
    }

    #[test]
    fn policy_decides_what_refuses() {
        let check = |policy, outcome| BrokenChange {
            policy,
            outcome,
            functions: Vec::new(),
            constants: 0,
            not_broken: Vec::new(),
            gates: Vec::new(),
        };
        let refuses = |policy, outcome| !judge_broken_change(&check(policy, outcome)).passes();
        for (outcome, required, strict) in [
            (Noticed, false, false),
            (ReadsText, false, true),
            (Unnoticed, true, true),
            (NotChecked, false, true),
        ] {
            assert!(!refuses(BrokenPolicy::Report, outcome));
            assert_eq!(refuses(BrokenPolicy::Required, outcome), required);
            assert_eq!(refuses(BrokenPolicy::Strict, outcome), strict);
        }
    }

    #[test]
    fn best_gate_decides() {
        let gate = |outcome| BrokenGate {
            id: "tests".into(),
            outcome,
            unaffected: Vec::new(),
            noticed_by_added: Vec::new(),
            still_red: Vec::new(),
        };
        assert_eq!(best_outcome(&[gate(Unnoticed), gate(Noticed)]), Noticed);
        assert_eq!(
            best_outcome(&[gate(Unnoticed), gate(NotChecked)]),
            Unnoticed
        );
        assert_eq!(best_outcome(&[]), NotChecked);
    }

    #[test]
    fn gate_without_tests_notices_again() {
        fn step(runs: &[(Variant, &str)]) -> BrokenChangeStep {
            let case = Case {
                after: "done",
                runs,
                ..CASE
            };
            case.step()
        }
        let red = (Fails, "red");
        assert_eq!(step(&[red]), BrokenChangeStep::Run(Again(1)));
        assert_eq!(
            step(&[red, (Again(1), "red")]),
            BrokenChangeStep::Run(Again(2))
        );
        let chance = [red, (Again(1), "red"), (Again(2), "done")];
        assert_eq!(step(&chance), BrokenChangeStep::Done(Unnoticed));
        let steady = [red, (Again(1), "red"), (Again(2), "red")];
        assert_eq!(step(&steady), BrokenChangeStep::Done(Noticed));
    }
}
