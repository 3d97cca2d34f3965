//! Decides whether a change behaves differently in a second world. Pure.
//!
//! After a change passed, its gates run again with another home directory, user, host name, path, command, time zone and more
//! ([`WorldPolicy`]). Code that recognises the sandbox by one of these loses tests there. [`next_world_run`] says which run
//! tells a lost test from chance, from settings that people have, and from a gate that depends on its surroundings anyway.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::{Code, Finding, Verdict};
use serde::{Deserialize, Serialize};

use crate::canary::can_canary_differ;
use crate::gate::{GateEnd, GateRun, NotStarted};
use crate::judge::GateBefore;
use crate::results::TestStatus;

/// The name of a gate's command in lists of tests.
const COMMAND: &str = "(the command)";
/// How many tests a report lists of each kind.
const MAX_NAMED: usize = 100;
/// How many tests a finding names.
const MAX_SHOWN: usize = 10;

/// A run of a gate in another world than the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorldRun {
    /// The change in the second world.
    Second,
    /// The same once more.
    Again,
    /// The change in the first world, with the time zone, locale, order and threads of the second.
    Settings,
    /// The base in the second world.
    Base,
}

/// One gate in its worlds.
#[derive(Debug, Clone, Copy)]
pub struct WorldRuns<'a> {
    /// The gate before any change, in the first world.
    pub before: Option<&'a GateBefore>,
    /// The gate on the change, in the first world.
    pub after: &'a GateRun,
    /// The runs in other worlds.
    pub runs: &'a BTreeMap<WorldRun, GateRun>,
}

/// What to do next for a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldStep {
    /// Make this run.
    Run(WorldRun),
    /// It is decided.
    Done(WorldGate),
}

/// What a gate showed in the second world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorldOutcome {
    /// The same tests passed, or those that did not are explained.
    Same,
    /// Tests failed, and nothing but the second world explains it.
    Differs,
    /// It could not run there, or nothing of it had passed before.
    NotChecked,
}

/// Which results of the second world refuse a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorldPolicy {
    /// There is no second world.
    Off,
    /// Differences are reported.
    Advisory,
    /// A change that behaves differently is refused.
    #[default]
    Required,
}

impl WorldPolicy {
    /// Every policy, by its name in settings.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("required", Self::Required),
        ("advisory", Self::Advisory),
        ("off", Self::Off),
    ];

    /// Returns whether this is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The second world of a change, as the report keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecondWorld {
    /// The policy in force.
    pub policy: WorldPolicy,
    /// What was different there, such as `home` or `time-zone`.
    pub differences: Vec<String>,
    /// Each gate that counts.
    pub gates: Vec<WorldGate>,
}

/// One gate in the second world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldGate {
    /// Which gate.
    pub id: String,
    /// What it showed.
    pub outcome: WorldOutcome,
    /// Tests that pass in the first world and not in the second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differing: Vec<String>,
    /// Tests that also fail in the first world with the time zone, locale, order or threads of the second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_settings: Vec<String>,
    /// Tests that fail in the second world without the change, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_change: Vec<String>,
    /// Tests that failed in one of two runs in the second world.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaky: Vec<String>,
}

impl WorldGate {
    /// Returns the gate of a run that shows nothing yet.
    #[must_use]
    pub fn not_checked(run: &GateRun) -> Self {
        Self {
            id: run.id.to_string(),
            outcome: WorldOutcome::NotChecked,
            differing: Vec::new(),
            by_settings: Vec::new(),
            without_change: Vec::new(),
            flaky: Vec::new(),
        }
    }
}

/// Says what to run next for a gate, or what it showed.
#[must_use]
pub fn next_world_run(runs: WorldRuns<'_>) -> WorldStep {
    let mut gate = WorldGate::not_checked(runs.after);
    if !can_canary_differ(runs.after) {
        return WorldStep::Done(gate);
    }
    let mut suspects: BTreeSet<String> = green(runs.after);
    for kind in [WorldRun::Second, WorldRun::Again, WorldRun::Settings] {
        let Some(run) = runs.runs.get(&kind) else {
            return WorldStep::Run(kind);
        };
        if cannot_start(run) {
            return WorldStep::Done(gate);
        }
        let now = green(run);
        let (stay, lost): (BTreeSet<_>, BTreeSet<_>) =
            suspects.into_iter().partition(|name| now.contains(name));
        match kind {
            WorldRun::Second => {
                suspects = lost;
                // The tests explain why the command failed.
                if suspects.len() > 1 {
                    suspects.remove(COMMAND);
                }
            }
            WorldRun::Again => {
                gate.flaky = capped_list(stay);
                suspects = lost;
            }
            WorldRun::Settings | WorldRun::Base => {
                gate.by_settings = capped_list(lost);
                suspects = stay;
            }
        }
        if suspects.is_empty() {
            gate.outcome = WorldOutcome::Same;
            return WorldStep::Done(gate);
        }
    }
    // A test that failed without the change shows nothing about the base.
    let green_before = runs.before.map(green_without_change).unwrap_or_default();
    if !green_before.is_empty() {
        let Some(base) = runs.runs.get(&WorldRun::Base) else {
            return WorldStep::Run(WorldRun::Base);
        };
        let lost = |name: &String| !green(base).contains(name);
        if green_before.iter().all(lost) {
            // The gate does not work in the second world, whatever the change is.
            gate.without_change = capped_list(suspects);
            return WorldStep::Done(gate);
        }
        let (excused, differing): (BTreeSet<_>, BTreeSet<_>) = suspects
            .into_iter()
            .partition(|name| green_before.contains(name) && lost(name));
        gate.without_change = capped_list(excused);
        suspects = differing;
    }
    gate.outcome = if suspects.is_empty() {
        WorldOutcome::Same
    } else {
        WorldOutcome::Differs
    };
    gate.differing = capped_list(suspects);
    WorldStep::Done(gate)
}

/// The tests of a run that passed; the command is among them if it ended with success.
fn green(run: &GateRun) -> BTreeSet<String> {
    let whole = run.results.iter().filter(|results| results.is_whole());
    let tests = whole.flat_map(|results| results.with_status(TestStatus::Passed));
    let command = (run.end == GateEnd::Exited(0)).then_some(COMMAND);
    tests.chain(command).map(str::to_owned).collect()
}

/// The same of a gate before the change.
fn green_without_change(before: &GateBefore) -> BTreeSet<String> {
    let whole = before.results.iter().filter(|results| results.is_whole());
    let tests = whole.flat_map(|results| results.with_status(TestStatus::Passed));
    let command = before.passed.then_some(COMMAND);
    tests.chain(command).map(str::to_owned).collect()
}

/// Whether the machine kept a gate from running; a setup command can fail because of the change.
fn cannot_start(run: &GateRun) -> bool {
    matches!(
        run.end,
        GateEnd::NotStarted {
            why: NotStarted::Sandbox | NotStarted::ToolMissing | NotStarted::EmptyCommand,
            ..
        }
    )
}

fn capped_list(tests: BTreeSet<String>) -> Vec<String> {
    tests.into_iter().take(MAX_NAMED).collect()
}

/// Returns the findings on the second world.
#[must_use]
pub fn judge_second_world(check: &SecondWorld) -> Verdict {
    let mut verdict = Verdict::default();
    let shown = |tests: &[String]| {
        let some: Vec<&str> = tests.iter().take(MAX_SHOWN).map(String::as_str).collect();
        some.join(", ")
    };
    for gate in &check.gates {
        if gate.outcome == WorldOutcome::Differs {
            let hint = format!(
                "passes where the change was tested, and twice not with another {}: {}; make the change independent of them, or set `[run] second_world = \"advisory\"`",
                check.differences.join(", "),
                shown(&gate.differing)
            );
            let code = Code::new("verify-second-world-differs");
            verdict.push(if check.policy == WorldPolicy::Required {
                Finding::error(code, &gate.id, hint)
            } else {
                Finding::warning(code, &gate.id, hint)
            });
        }
        if !gate.by_settings.is_empty() {
            verdict.push(Finding::warning(
                Code::new("verify-second-world-settings"),
                &gate.id,
                format!(
                    "these tests depend on the time zone, the locale, the order of tests or the number of threads: {}",
                    shown(&gate.by_settings)
                ),
            ));
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::run_of;
    use crate::results::TestResults;
    use WorldRun::{Again, Base, Second, Settings};

    const GREEN: &str =
        "running 2 tests\ntest a ... ok\ntest b ... ok\n\ntest result: ok. 2 passed; 0 failed\n";
    const A_RED: &str = "running 2 tests\ntest a ... FAILED\ntest b ... ok\n\ntest result: FAILED. 1 passed; 1 failed\n";
    const ALL_RED: &str = "running 2 tests\ntest a ... FAILED\ntest b ... FAILED\n\ntest result: FAILED. 0 passed; 2 failed\n";

    fn run(output: &str) -> GateRun {
        let code = if output.contains("FAILED") { 101 } else { 0 };
        run_of("cargo test", GateEnd::Exited(code), output, "")
    }

    /// The gate before the change, with these tests green and `a` red unless it is among them.
    fn before(green: &[&str]) -> GateBefore {
        let mut results = TestResults {
            basis: run(GREEN).results.unwrap().basis,
            ..TestResults::default()
        };
        results.add("a", TestStatus::Failed);
        let mut before = GateBefore::default();
        if green.contains(&"a") {
            results.tests.clear();
            before.passed = true;
        }
        for name in green {
            results.add(*name, TestStatus::Passed);
        }
        before.results = Some(results);
        before
    }

    fn step(before: &GateBefore, outputs: &[(WorldRun, &str)]) -> WorldStep {
        let runs = outputs
            .iter()
            .map(|(kind, output)| (*kind, run(output)))
            .collect();
        next_world_run(WorldRuns {
            before: Some(before),
            after: &run(GREEN),
            runs: &runs,
        })
    }

    #[track_caller]
    fn finished_gate(before: &GateBefore, outputs: &[(WorldRun, &str)]) -> WorldGate {
        match step(before, outputs) {
            WorldStep::Done(gate) => gate,
            WorldStep::Run(run) => panic!("it asks for {run:?}"),
        }
    }

    #[test]
    fn equal_worlds_need_one_run() {
        let before = before(&["b"]);
        assert_eq!(step(&before, &[]), WorldStep::Run(Second));
        let gate = finished_gate(&before, &[(Second, GREEN)]);
        assert_eq!(gate.outcome, WorldOutcome::Same);
        assert!(gate.flaky.is_empty());
    }

    #[test]
    fn test_that_fails_by_chance_differs_not() {
        let before = before(&["b"]);
        assert_eq!(step(&before, &[(Second, A_RED)]), WorldStep::Run(Again));
        let gate = finished_gate(&before, &[(Second, A_RED), (Again, GREEN)]);
        assert_eq!(gate.outcome, WorldOutcome::Same);
        assert_eq!(gate.flaky, ["a"]);
    }

    #[test]
    fn settings_of_people_are_listed_and_warned() {
        let before = before(&["b"]);
        let red = [(Second, A_RED), (Again, A_RED)];
        assert_eq!(step(&before, &red), WorldStep::Run(Settings));
        let gate = finished_gate(&before, &[red[0], red[1], (Settings, A_RED)]);
        assert_eq!(gate.outcome, WorldOutcome::Same);
        assert_eq!(gate.by_settings, ["a"]);
        let check = SecondWorld {
            policy: WorldPolicy::Required,
            differences: Vec::new(),
            gates: vec![gate],
        };
        let verdict = judge_second_world(&check);
        assert!(verdict.passes());
        assert_eq!(verdict.findings().len(), 1);
    }

    #[test]
    fn fixed_test_must_not_depend_on_the_world() {
        let before = before(&["b"]);
        let red = [(Second, A_RED), (Again, A_RED), (Settings, GREEN)];
        assert_eq!(step(&before, &red), WorldStep::Run(Base));
        let gate = finished_gate(&before, &[red[0], red[1], red[2], (Base, A_RED)]);
        assert_eq!(gate.outcome, WorldOutcome::Differs);
        assert_eq!(gate.differing, ["a"]);
        for (policy, passes) in [
            (WorldPolicy::Required, false),
            (WorldPolicy::Advisory, true),
        ] {
            let check = SecondWorld {
                policy,
                differences: vec!["home".into()],
                gates: vec![gate.clone()],
            };
            let verdict = judge_second_world(&check);
            assert_eq!(verdict.passes(), passes);
            assert_eq!(
                verdict.findings()[0].code.as_str(),
                "verify-second-world-differs"
            );
        }
    }

    #[test]
    fn test_also_failing_on_base_is_listed() {
        let before = before(&["a", "b"]);
        let runs = [
            (Second, A_RED),
            (Again, A_RED),
            (Settings, GREEN),
            (Base, A_RED),
        ];
        let gate = finished_gate(&before, &runs);
        assert_eq!(gate.outcome, WorldOutcome::Same);
        assert_eq!(gate.without_change, ["a"]);
        // The base keeps it, so the change has lost it.
        let runs = [runs[0], runs[1], runs[2], (Base, GREEN)];
        assert_eq!(finished_gate(&before, &runs).outcome, WorldOutcome::Differs);
    }

    #[test]
    fn gate_that_fails_there_anyway_is_not_checked() {
        let before = before(&["b"]);
        let runs = [
            (Second, ALL_RED),
            (Again, ALL_RED),
            (Settings, GREEN),
            (Base, ALL_RED),
        ];
        assert_eq!(
            finished_gate(&before, &runs).outcome,
            WorldOutcome::NotChecked
        );
    }

    #[test]
    fn gate_without_baseline_needs_no_base_run() {
        let none = GateBefore::default();
        let runs = [(Second, A_RED), (Again, A_RED), (Settings, GREEN)];
        assert_eq!(finished_gate(&none, &runs).outcome, WorldOutcome::Differs);
    }

    #[test]
    fn gate_that_cannot_start_there_is_not_checked() {
        let mut stopped = run(GREEN);
        stopped.end = GateEnd::NotStarted {
            why: NotStarted::Sandbox,
            message: String::new(),
        };
        let with = |run: GateRun| {
            let runs = BTreeMap::from([(Second, run)]);
            next_world_run(WorldRuns {
                before: None,
                after: &self::run(GREEN),
                runs: &runs,
            })
        };
        let WorldStep::Done(gate) = with(stopped.clone()) else {
            panic!("it is decided");
        };
        assert_eq!(gate.outcome, WorldOutcome::NotChecked);
        // The change decides whether its own build succeeds.
        stopped.end = GateEnd::NotStarted {
            why: NotStarted::Setup,
            message: String::new(),
        };
        stopped.results = None;
        assert_eq!(with(stopped), WorldStep::Run(Again));
    }
}
