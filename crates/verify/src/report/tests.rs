//! Tests of the verify report: its shape and its result.

use crucible_model::{Finding, Verdict};

use super::*;
use crate::gate::{GateEnd, GateRun};
use crate::judge::Baseline;
use crate::judge::tests::{receipt, run_of};

static NO_NAMES: BTreeSet<String> = BTreeSet::new();

fn input<'a>(outcomes: &'a [GateOutcome], declared: &'a [GateId]) -> ReportInput<'a> {
    ReportInput {
        gate: GateLevel::Lite,
        iteration: 1,
        max_iterations: 3,
        outcomes,
        requirements: Requirements {
            declared,
            baseline: Baseline::default(),
        },
        named_tests: &NO_NAMES,
        paths: ReportPaths::default(),
        plan_digest: None,
        patch_digest: None,
        tree: None,
    }
}

fn passing() -> GateRun {
    run_of(
        "cargo test",
        GateEnd::Exited(0),
        "running 1 test\n\ntest result: ok. 1 passed; 0 failed\n",
        "",
    )
}

#[test]
fn report_has_contract_fields() {
    let outcomes = [GateOutcome::Ran(Box::new(passing()))];
    let report = report(&input(&outcomes, &[]));
    let value: serde_json::Value = serde_json::from_slice(&report.to_bytes().unwrap()).unwrap();
    assert_eq!(
        value,
        serde_json::json!({
            "schema_version": "crucible-verify-report-v1",
            "result": "PASS", "gate": "lite", "iteration": 1, "max_iterations": 3,
            "commands": [{"cmd": "cargo test", "exit_code": 0}],
            "failures": [],
            "paths": {
                "trace": "TRACE.md", "verify_report": "artifacts/verify_report.json",
                "stdout_log": "logs/verify.stdout.log", "stderr_log": "logs/verify.stderr.log"
            },
            "executed_gates": ["lite", "unit"],
            "results_from": [{"gate": "unit", "from": "tested_process"}]
        })
    );
}

#[test]
fn report_with_seed_fields_only_parses() {
    let text = r#"{"result":"FAIL","gate":"full","iteration":2,"max_iterations":2,"commands":[],
        "failures":[{"kind":"k","id":"i","message":"m"}],
        "paths":{"trace":"TRACE.md","verify_report":"v","bundle":"failure_bundle.zip","stdout_log":"o",
        "stderr_log":"e","plan":"p","patch":"d"}}"#;
    let report: VerifyReport = serde_json::from_str(text).unwrap();
    assert_eq!(report.result, VerifyResult::Fail);
    assert_eq!(report.gate, GateLevel::Full);
}

#[test]
fn report_without_outcome_fails() {
    let nothing = report(&input(&[], &[]));
    assert_eq!(nothing.result, VerifyResult::Fail);
    assert_eq!(nothing.failures[0].kind, "verify-no-gates");
}

#[test]
fn only_errors_are_failures() {
    let refusal = Verdict::new(vec![
        Finding::error(Code::new("patch-path-denied"), "src/a.rs", "remove it"),
        Finding::warning(Code::new("patch-large"), "src/b.rs", "look"),
    ]);
    let failed = run_of(
        "cargo test",
        GateEnd::Exited(101),
        "test result: FAILED",
        "",
    );
    let outcomes = [
        GateOutcome::Ran(Box::new(failed)),
        GateOutcome::Judged {
            id: "patch_check".parse().unwrap(),
            verdict: refusal,
        },
    ];
    let report = report(&input(&outcomes, &[]));
    assert_eq!(report.result, VerifyResult::Fail);
    let rows: Vec<(&str, &str, &str)> = report
        .failures
        .iter()
        .map(|row| (row.kind.as_str(), row.id.as_str(), row.message.as_str()))
        .collect();
    assert_eq!(
        rows,
        [
            (
                "verify-gate-failed",
                "unit",
                "`cargo test` exited with 101 (test_failure); its output is in the run's `logs/`"
            ),
            ("patch-path-denied", "patch_check", "src/a.rs: remove it"),
        ]
    );
    assert_eq!(report.warnings.len(), 1);
    assert_eq!(report.executed_gates.len(), 3);
}

#[test]
fn each_gate_end_has_its_exit_code() {
    let code = |end| run_of("x", end, "", "").exit_code();
    assert_eq!(code(GateEnd::Exited(3)), 3);
    assert_eq!(code(GateEnd::Signalled(9)), 137);
    assert_eq!(
        code(GateEnd::TimedOut {
            after: std::time::Duration::ZERO
        }),
        124
    );
    assert_eq!(code(GateEnd::OutputLimit), 125);
}

#[test]
fn report_bytes_do_not_depend_on_duration() {
    let mut slow = passing();
    slow.duration = std::time::Duration::from_secs(99);
    slow.isolation = Some(receipt("partial"));
    let mut fast = passing();
    fast.isolation = Some(receipt("partial"));
    let bytes = |run: GateRun| {
        report(&input(&[GateOutcome::Ran(Box::new(run))], &[]))
            .to_bytes()
            .unwrap()
    };
    assert_eq!(bytes(slow), bytes(fast));
}

#[test]
fn an_attempt_beyond_the_limit_fails() {
    let outcomes = [GateOutcome::Ran(Box::new(passing()))];
    let fourth = ReportInput {
        iteration: 4,
        ..input(&outcomes, &[])
    };
    assert_eq!(
        report(&fourth).failures[0].kind,
        "verify-iterations-exceeded"
    );
    let third = ReportInput {
        iteration: 3,
        ..input(&outcomes, &[])
    };
    assert_eq!(report(&third).result, VerifyResult::Pass);
}

#[test]
fn report_keeps_isolation_and_digests() {
    let mut run = passing();
    run.isolation = Some(receipt("partial"));
    let outcomes = [GateOutcome::Ran(Box::new(run))];
    let given_report_input = ReportInput {
        plan_digest: Some(Digest::compute(b"plan")),
        patch_digest: Some(Digest::compute(b"patch")),
        tree: Some("4b825dc642cb6eb9a060e54bf8d69288fbee4904".to_owned()),
        ..input(&outcomes, &[])
    };
    let report = report(&given_report_input);
    assert_eq!(report.isolation[0].missing, [Layer::Landlock]);
    let second_verify_report: VerifyReport =
        serde_json::from_slice(&report.to_bytes().unwrap()).unwrap();
    assert_eq!(second_verify_report, report);
}
