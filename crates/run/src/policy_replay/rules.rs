//! The rules, each from the record and its setting to an answer.

use crucible_llm::Limit;
use crucible_patch::{Change, parse};
use crucible_sandbox::{IsolationLevel, Strength};
use crucible_verify::{
    BrokenChange, BrokenPolicy, ResultsFrom, ResultsPolicy, SecondWorld, VerifyReport, WorldPolicy,
    judge_broken_change, judge_second_world, judge_sinks, judge_strength,
};

use super::{ReplayPolicy, RuleAnswer, RuleResult};
use crate::documents::{AttemptDocuments, RunDocuments};

pub(super) fn patch_rules(attempt: &AttemptDocuments, policy: &ReplayPolicy) -> Vec<RuleResult> {
    let (files, lines) = ("patch.max_files", "patch.max_added_lines");
    let Some(Ok(patch)) = attempt.patch.as_deref().map(parse) else {
        let reason = "the patch is missing or cannot be parsed";
        return [files, lines]
            .map(|setting| RuleResult::unknown(setting, reason))
            .to_vec();
    };
    let has_copies = patch
        .files
        .iter()
        .any(|file| matches!(file.change, Change::Copy { .. }));
    let added = patch.files.iter().map(|file| file.added()).sum();
    let of_lines = RuleResult::limit(
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
        match of_lines.answer {
            RuleAnswer::Passes if has_copies => RuleResult::unknown(
                lines,
                "the patch copies files, whose lines it does not show",
            ),
            RuleAnswer::Passes | RuleAnswer::Unknown | RuleAnswer::Refuses => of_lines,
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
    let mut rules = vec![
        sandbox_rule(report, policy.sandbox),
        broken_change_rule(report, policy.broken_change),
        second_world_rule(report, policy.second_world),
        results_rule(report, policy.results_outside),
        strength_rule(report, policy.min_strength),
        RuleResult::of_verdict(
            "run.sinks_need_approval",
            &judge_sinks(&report.sinks, &policy.sinks_need_approval),
        ),
    ];
    for (id, command) in &policy.gates {
        rules.push(gate_rule(run, report, id, command));
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
        return RuleResult::unknown(setting, "the isolation of a gate is not recorded");
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
            RuleResult::unknown(setting, "the change was not broken on purpose")
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
            RuleResult::unknown(setting, "the gates did not run in a second world")
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
        ResultsPolicy::Required if report.results_from.is_empty() => RuleResult::unknown(
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
        Some(_) | None => RuleResult::unknown(setting, "the strength was not measured"),
    }
}

/// Whether a gate that is configured today ran, with the same command.
fn gate_rule(
    run: &RunDocuments,
    report: &VerifyReport,
    id: &str,
    command: &[String],
) -> RuleResult {
    let setting = format!("gates.{id}");
    let reports = [Some(report), run.landing_report.as_ref()];
    let has_run = reports
        .into_iter()
        .flatten()
        .any(|report| report.isolation.iter().any(|gate| gate.gate.as_str() == id));
    let recorded = run
        .status
        .run
        .settings
        .gates
        .iter()
        .find(|gate| gate.id.as_str() == id);
    match recorded {
        _ if !has_run => RuleResult::unknown(&setting, "this gate did not run"),
        Some(gate) if gate.command == command => RuleResult::passes(&setting),
        Some(_) => RuleResult::unknown(&setting, "this gate ran with another command"),
        None => RuleResult::unknown(&setting, "a gate of this name ran that was not configured"),
    }
}

#[cfg(test)]
mod tests {
    use crucible_verify::{BrokenOutcome, GateIsolation, GateResultsFrom, Strength as Measured};

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
        ] {
            assert_eq!(result.answer, RuleAnswer::Passes, "{result:?}");
        }
    }

    #[test]
    fn recorded_results_are_judged_by_the_policy_of_today() {
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
        let of = |policy| broken_change_rule(&report, policy).answer;
        assert_eq!(of(BrokenPolicy::Required), RuleAnswer::Passes);
        assert_eq!(of(BrokenPolicy::Strict), RuleAnswer::Refuses);
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
    fn limits_include_their_own_number() {
        assert_eq!(RuleResult::limit("x", 5, 5, "").answer, RuleAnswer::Passes);
        let over = RuleResult::limit("x", 6, 5, "files are touched");
        assert_eq!(over.answer, RuleAnswer::Refuses);
        assert_eq!(over.reason, "6 files are touched, and 5 are allowed");
    }
}
