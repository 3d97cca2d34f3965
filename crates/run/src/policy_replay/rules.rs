//! The rules. Each one compares the record of a run with one setting and returns an answer.

use crucible_llm::Limit;
use crucible_patch::{Change, parse};
use crucible_sandbox::{IsolationLevel, Strength};
use crucible_verify::{
    BrokenChange, BrokenPolicy, GateCanary, GateSpec, ObjectionPolicy, Objections, ResultsFrom,
    ResultsPolicy, SecondWorld, VerifyReport, WorldPolicy, judge_broken_change, judge_objections,
    judge_second_world, judge_sinks, judge_strength,
};

use super::{ReplayPolicy, RuleAnswer, RuleResult};
use crate::documents::{AttemptDocuments, RunDocuments};

pub(super) fn patch_rules(attempt: &AttemptDocuments, policy: &ReplayPolicy) -> Vec<RuleResult> {
    let (files, lines) = ("patch.max_files", "patch.max_added_lines");
    let Some(Ok(patch)) = attempt.patch.as_deref().map(parse) else {
        let reason = "the patch is missing or cannot be parsed";
        return [files, lines]
            .map(|setting| RuleResult::unknown_setting(setting, reason))
            .to_vec();
    };
    let has_copies = patch
        .files
        .iter()
        .any(|file| matches!(file.change, Change::Copy { .. }));
    let added = patch.files.iter().map(|file| file.added()).sum();
    let added_lines_rule = RuleResult::limit(
        lines,
        added,
        policy.patch.max_added_lines,
        "lines are added",
    );
    vec![
        RuleResult::limit(
            files,
            patch.touched(),
            policy.patch.max_files,
            "files are touched",
        ),
        match added_lines_rule.answer {
            RuleAnswer::Passes if has_copies => RuleResult::unknown_setting(
                lines,
                "the patch copies files, whose lines it does not show",
            ),
            RuleAnswer::Passes | RuleAnswer::Unknown | RuleAnswer::Refuses => added_lines_rule,
        },
    ]
}

pub(super) fn budget_rules(
    run: &RunDocuments,
    attempt: &AttemptDocuments,
    policy: &ReplayPolicy,
) -> Vec<RuleResult> {
    let used = &run.status.budgets;
    let max_calls = match run.status.run.settings.coding_agent {
        Some(_) => policy.agent_calls,
        None => policy.max_calls,
    };
    let number = |limit: Limit| match limit {
        Limit::Unlimited => u64::MAX,
        Limit::At(limit) => limit,
    };
    let (tokens, money) = (number(policy.max_tokens), number(policy.max_micro_dollars));
    vec![
        RuleResult::limit(
            "run.max_iterations",
            attempt.outcome.round(),
            policy.max_iterations,
            "attempts were needed",
        ),
        RuleResult::limit("llm.budget.calls", used.calls, max_calls, "calls were made"),
        RuleResult::limit("llm.budget.tokens", used.tokens, tokens, "tokens were used"),
        RuleResult::limit(
            "llm.budget.dollars",
            used.micro_dollars,
            money,
            "millionths of a dollar were spent",
        ),
    ]
}

pub(super) fn report_rules(
    run: &RunDocuments,
    report: &VerifyReport,
    policy: &ReplayPolicy,
) -> Vec<RuleResult> {
    let change = &policy.change;
    let mut rules = vec![
        sandbox_rule(report, policy.sandbox),
        broken_change_rule(report, change.broken_change),
        second_world_rule(report, change.second_world),
        results_rule(report, change.results_outside),
        strength_rule(report, change.min_strength),
        objections_rule(report, change.objections),
        held_out_rule(policy.held_out),
        RuleResult::of_verdict(
            "run.sinks_need_approval",
            &judge_sinks(&report.sinks, &change.sinks_need_approval),
        ),
    ];
    let reports = [Some(report), run.landing_report.as_ref()];
    let has_run = |gate: &GateSpec| {
        let mut rows = reports
            .into_iter()
            .flatten()
            .flat_map(|report| &report.isolation);
        rows.any(|row| row.gate == gate.id)
    };
    for gate in &policy.gates {
        let recorded = run
            .status
            .run
            .settings
            .gates
            .iter()
            .find(|known| known.id == gate.id);
        rules.push(gate_rule(has_run(gate), recorded, gate));
    }
    rules
}

pub(super) fn sandbox_rule(report: &VerifyReport, required: Strength) -> RuleResult {
    let setting = "sandbox.strength";
    match required {
        Strength::BestEffort | Strength::Off => return RuleResult::passes(setting),
        Strength::Required => {}
    }
    if report.isolation.len() < report.results_from.len() || report.isolation.is_empty() {
        return RuleResult::unknown_setting(setting, "the isolation of a gate is not recorded");
    }
    let weak = report
        .isolation
        .iter()
        .find(|gate| gate.level != IsolationLevel::Full);
    match weak {
        None => RuleResult::passes(setting),
        Some(gate) => {
            let (gate, level) = (&gate.gate, gate.level.name());
            RuleResult::refuses(setting, format!("gate {gate} ran with isolation {level}"))
        }
    }
}

pub(super) fn broken_change_rule(report: &VerifyReport, policy: BrokenPolicy) -> RuleResult {
    let setting = "run.broken_change";
    match (&report.broken_change, policy) {
        (_, BrokenPolicy::Off | BrokenPolicy::Report) => RuleResult::passes(setting),
        (None, BrokenPolicy::Required | BrokenPolicy::Strict) => {
            RuleResult::unknown_setting(setting, "the change was not broken on purpose")
        }
        (Some(check), BrokenPolicy::Required | BrokenPolicy::Strict) => {
            let check = BrokenChange {
                policy,
                ..check.clone()
            };
            RuleResult::of_verdict(setting, &judge_broken_change(&check))
        }
    }
}

pub(super) fn second_world_rule(report: &VerifyReport, policy: WorldPolicy) -> RuleResult {
    let setting = "run.second_world";
    match (&report.second_world, policy) {
        (_, WorldPolicy::Off | WorldPolicy::Advisory) => RuleResult::passes(setting),
        (None, WorldPolicy::Required) => {
            RuleResult::unknown_setting(setting, "the gates did not run in a second world")
        }
        (Some(check), WorldPolicy::Required) => {
            let check = SecondWorld {
                policy,
                ..check.clone()
            };
            RuleResult::of_verdict(setting, &judge_second_world(&check))
        }
    }
}

pub(super) fn results_rule(report: &VerifyReport, policy: ResultsPolicy) -> RuleResult {
    let setting = "run.results_outside";
    let is_outside = |from: ResultsFrom| from == ResultsFrom::RunnerProcess;
    match policy {
        ResultsPolicy::Off => RuleResult::passes(setting),
        ResultsPolicy::Required if report.results_from.is_empty() => RuleResult::unknown_setting(
            setting,
            "the process that decided the results is not recorded",
        ),
        ResultsPolicy::Required if report.results_from.iter().any(|row| is_outside(row.from)) => {
            RuleResult::passes(setting)
        }
        ResultsPolicy::Required => RuleResult::refuses(
            setting,
            "the results of every gate came from a process that runs tested code".to_owned(),
        ),
    }
}

pub(super) fn strength_rule(report: &VerifyReport, required: u64) -> RuleResult {
    let setting = "run.min_strength";
    match &report.strength {
        _ if required == 0 => RuleResult::passes(setting),
        Some(measured) if measured.percent().is_some() => {
            let mut measured = measured.clone();
            measured.required = required;
            RuleResult::of_verdict(setting, &judge_strength(&measured))
        }
        Some(_) | None => RuleResult::unknown_setting(setting, "the strength was not measured"),
    }
}

pub(super) fn objections_rule(report: &VerifyReport, policy: ObjectionPolicy) -> RuleResult {
    let setting = "run.objections";
    match (&report.objections, policy) {
        (_, ObjectionPolicy::Off | ObjectionPolicy::Advisory) => RuleResult::passes(setting),
        (None, ObjectionPolicy::Blocking) => {
            RuleResult::unknown_setting(setting, "no objections were requested")
        }
        (Some(check), ObjectionPolicy::Blocking) => {
            let check = Objections {
                policy,
                ..check.clone()
            };
            RuleResult::of_verdict(setting, &judge_objections(&check))
        }
    }
}

/// Returns "unknown" if held-out tests are configured today, because they would have to run.
pub(super) fn held_out_rule(places: usize) -> RuleResult {
    let setting = "run.held_out";
    match places {
        0 => RuleResult::passes(setting),
        _ => RuleResult::unknown_setting(setting, "held-out tests would have to run"),
    }
}

/// Checks that a gate configured today ran, with the same command, directory, setup and variables.
pub(super) fn gate_rule(
    has_run: bool,
    recorded: Option<&GateSpec>,
    today: &GateSpec,
) -> RuleResult {
    // The ignored fields only decide where and when a gate runs; a gate counts as run at any time.
    let GateSpec {
        id,
        command,
        timeout,
        env,
        cwd,
        setup,
        canary,
        alternatives: _,
        builds: _,
        source: _,
        origin: _,
        level: _,
    } = today;
    let setting = format!("gates.{id}");
    let Some(recorded) = recorded.filter(|_| has_run) else {
        let reason = match has_run {
            true => "a gate with this name ran, but was not configured",
            false => "this gate did not run",
        };
        return RuleResult::unknown_setting(&setting, reason);
    };
    let differences = [
        ("with another command", recorded.command != *command),
        ("in another directory", recorded.cwd != *cwd),
        ("after another setup", recorded.setup != *setup),
        ("with other variables", recorded.env != *env),
        ("with a longer time limit", recorded.timeout > *timeout),
        (
            "without the check on broken sources",
            *canary == GateCanary::On && recorded.canary != *canary,
        ),
    ];
    let different: Vec<&str> = differences
        .into_iter()
        .filter_map(|(what, is_different)| is_different.then_some(what))
        .collect();
    match different.is_empty() {
        true => RuleResult::passes(&setting),
        false => RuleResult::unknown_setting(
            &setting,
            &format!("this gate ran {}", different.join(", ")),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crucible_verify::{
        BrokenOutcome, GateIsolation, GateLevel, GateResultsFrom, Strength as Measured,
    };

    use super::*;

    fn report() -> VerifyReport {
        let gate = || "tests".parse().unwrap();
        let text = r#"{"result":"PASS","gate":"lite","iteration":1,"max_iterations":4,"commands":[],"failures":[],
            "paths":{"trace":"","verify_report":"","stdout_log":"","stderr_log":""}}"#;
        VerifyReport {
            isolation: vec![GateIsolation {
                gate: gate(),
                level: IsolationLevel::Full,
                reached: Vec::new(),
                missing: Vec::new(),
            }],
            results_from: vec![GateResultsFrom {
                gate: gate(),
                from: ResultsFrom::TestedProcess,
            }],
            ..serde_json::from_str(text).unwrap()
        }
    }

    #[test]
    fn unrecorded_result_never_passes() {
        let empty = VerifyReport {
            isolation: Vec::new(),
            results_from: Vec::new(),
            ..report()
        };
        for result in [
            sandbox_rule(&empty, Strength::Required),
            broken_change_rule(&empty, BrokenPolicy::Required),
            second_world_rule(&empty, WorldPolicy::Required),
            results_rule(&empty, ResultsPolicy::Required),
            strength_rule(&empty, 50),
            objections_rule(&empty, ObjectionPolicy::Blocking),
            held_out_rule(1),
        ] {
            assert_eq!(result.answer, RuleAnswer::Unknown, "{result:?}");
            assert!(!result.reason.is_empty());
        }
        for result in [
            sandbox_rule(&empty, Strength::BestEffort),
            broken_change_rule(&empty, BrokenPolicy::Report),
            second_world_rule(&empty, WorldPolicy::Advisory),
            results_rule(&empty, ResultsPolicy::Off),
            strength_rule(&empty, 0),
            objections_rule(&empty, ObjectionPolicy::Advisory),
            held_out_rule(0),
        ] {
            assert_eq!(result.answer, RuleAnswer::Passes, "{result:?}");
        }
    }

    #[test]
    fn recorded_results_are_judged_by_todays_policy() {
        let mut report = report();
        assert_eq!(
            sandbox_rule(&report, Strength::Required).answer,
            RuleAnswer::Passes
        );
        report.isolation[0].level = IsolationLevel::Partial;
        assert_eq!(
            sandbox_rule(&report, Strength::Required).answer,
            RuleAnswer::Refuses
        );
        let outside = results_rule(&report, ResultsPolicy::Required);
        assert_eq!(outside.answer, RuleAnswer::Refuses);
        report.broken_change = Some(BrokenChange {
            policy: BrokenPolicy::Report,
            outcome: BrokenOutcome::NotChecked,
            functions: Vec::new(),
            constants: 0,
            not_broken: Vec::new(),
            gates: Vec::new(),
        });
        let answer_for = |policy| broken_change_rule(&report, policy).answer;
        assert_eq!(answer_for(BrokenPolicy::Required), RuleAnswer::Passes);
        assert_eq!(answer_for(BrokenPolicy::Strict), RuleAnswer::Refuses);
        report.strength = Some(Measured {
            noticed: 3,
            tried: 4,
            mutants: 4,
            required: 0,
            survivors: Vec::new(),
        });
        assert_eq!(strength_rule(&report, 75).answer, RuleAnswer::Passes);
        assert_eq!(strength_rule(&report, 76).answer, RuleAnswer::Refuses);
    }

    #[test]
    fn gate_that_ran_differently_is_unknown() {
        let spec = |timeout| {
            let command = vec!["make".to_owned(), "test".to_owned()];
            GateSpec::new(
                "tests".parse().unwrap(),
                command,
                Duration::from_secs(timeout),
                "",
            )
        };
        let of = |today: &GateSpec| gate_rule(true, Some(&spec(60)), today);
        for today in [
            spec(60),
            spec(61),
            GateSpec {
                canary: GateCanary::Off,
                level: GateLevel::Full,
                ..spec(60)
            },
        ] {
            assert_eq!(of(&today).answer, RuleAnswer::Passes, "{today:?}");
        }
        for (today, reason) in [
            (
                GateSpec {
                    command: Vec::new(),
                    ..spec(60)
                },
                "this gate ran with another command",
            ),
            (
                GateSpec {
                    cwd: Some("web".parse().unwrap()),
                    ..spec(60)
                },
                "this gate ran in another directory",
            ),
            (
                GateSpec {
                    setup: vec![vec!["make".to_owned()]],
                    ..spec(60)
                },
                "this gate ran after another setup",
            ),
            (
                GateSpec {
                    env: [("A".to_owned(), "1".to_owned())].into(),
                    ..spec(59)
                },
                "this gate ran with other variables, with a longer time limit",
            ),
        ] {
            let result = of(&today);
            assert_eq!(
                (result.answer, result.reason.as_str()),
                (RuleAnswer::Unknown, reason)
            );
        }
        let unchecked = GateSpec {
            canary: GateCanary::Off,
            ..spec(60)
        };
        let result = gate_rule(true, Some(&unchecked), &spec(60));
        assert_eq!(
            result.reason,
            "this gate ran without the check on broken sources"
        );
        for (has_run, recorded) in [(false, Some(&unchecked)), (true, None), (false, None)] {
            assert_eq!(
                gate_rule(has_run, recorded, &unchecked).answer,
                RuleAnswer::Unknown
            );
        }
    }

    #[test]
    fn value_equal_to_limit_passes() {
        assert_eq!(RuleResult::limit("x", 5, 5, "").answer, RuleAnswer::Passes);
        let over = RuleResult::limit("x", 6, 5, "files are touched");
        assert_eq!(over.answer, RuleAnswer::Refuses);
        assert_eq!(over.reason, "6 files are touched, and 5 are allowed");
    }
}
