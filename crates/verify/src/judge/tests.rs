//! Tests of the judge of gates: what passes and what never does.

use std::path::Path;

use crucible_model::Level;
use crucible_sandbox::IsolationReceipt;

use super::*;
use crate::results::TestResults;
use crate::text::Normaliser;

/// Returns a run of a command with this end and output, in full isolation.
pub(crate) fn run_of(command: &str, end: GateEnd, stdout: &str, stderr: &str) -> GateRun {
    let captured = |text: &str| Captured {
        bytes: text.as_bytes().to_vec(),
        total: text.len() as u64,
        extent: Extent::Whole,
    };
    let run = GateRun {
        id: "unit".parse().unwrap(),
        command: command.split(' ').map(str::to_owned).collect(),
        end,
        duration: Duration::from_millis(5),
        stdout: captured(stdout),
        stderr: captured(stderr),
        report: None,
        isolation: None,
        results: None,
    };
    GateRun {
        results: TestResults::of_run(&run, &Normaliser::new(Path::new("/copy"))),
        ..run
    }
}

/// A receipt as the sandbox writes it.
pub(crate) fn receipt(level: &str) -> IsolationReceipt {
    let missing = if level == "full" {
        "[]"
    } else {
        r#"[{"layer":"landlock","reason":"abi 0"}]"#
    };
    let text = format!(
        r#"{{"schema_version":"crucible-isolation-v1","requested":"best-effort","network":"none",
        "level":"{level}","reached":[{{"layer":"namespaces","detail":"d"}}],"missing":{missing}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

pub(crate) fn codes(verdict: &Verdict) -> Vec<(&str, Level)> {
    verdict
        .findings()
        .iter()
        .map(|finding| (finding.code.as_str(), finding.level))
        .collect()
}

fn declared(ids: &[&str]) -> Vec<GateId> {
    ids.iter().map(|id| id.parse().unwrap()).collect()
}

fn required(declared: &[GateId]) -> Requirements<'_> {
    Requirements {
        declared,
        baseline: Baseline::default(),
    }
}

fn judged(id: &str, verdict: Verdict) -> GateOutcome {
    GateOutcome::Judged {
        id: id.parse().unwrap(),
        verdict,
    }
}

#[test]
fn no_outcome_is_a_failure() {
    let verdict = judge(&[], &required(&[]));
    assert_eq!(codes(&verdict), [("verify-no-gates", Level::Error)]);
}

#[test]
fn verdicts_alone_are_a_failure() {
    let outcomes = [judged("plan_check", Verdict::default())];
    let verdict = judge(&outcomes, &required(&[]));
    assert_eq!(codes(&verdict), [("verify-no-command-gate", Level::Error)]);
}

#[test]
fn every_bad_end_has_its_own_code() {
    let not_started = |why| GateEnd::NotStarted {
        why,
        message: "m".to_owned(),
    };
    let ends = [
        (GateEnd::Exited(1), "verify-gate-failed"),
        (GateEnd::Exited(-1), "verify-gate-failed"),
        (GateEnd::Signalled(9), "verify-gate-killed"),
        (
            GateEnd::TimedOut {
                after: Duration::from_millis(1500),
            },
            "verify-gate-timeout",
        ),
        (GateEnd::OutputLimit, "verify-gate-output-limit"),
        (not_started(NotStarted::ToolMissing), "verify-tool-missing"),
        (not_started(NotStarted::EmptyCommand), "verify-tool-missing"),
        (not_started(NotStarted::Sandbox), "verify-sandbox-refused"),
        (not_started(NotStarted::Setup), "verify-gate-setup"),
    ];
    for (end, code) in ends {
        let verdict = judge(
            &[GateOutcome::Ran(Box::new(run_of("x", end, "", "")))],
            &required(&[]),
        );
        assert_eq!(codes(&verdict), [(code, Level::Error)]);
    }
    let passed = judge(
        &[GateOutcome::Ran(Box::new(run_of(
            "x",
            GateEnd::Exited(0),
            "",
            "",
        )))],
        &required(&[]),
    );
    assert_eq!(passed, Verdict::default());
}

#[test]
fn declared_gate_must_have_run() {
    let run = GateOutcome::Ran(Box::new(run_of("true", GateEnd::Exited(0), "", "")));
    let outcomes = [run, judged("patch_check", Verdict::default())];
    let ids = declared(&["lite", "unit", "patch_check", "plan_check", "fuzz"]);
    let verdict = judge(&outcomes, &required(&ids));
    let missing: Vec<&str> = verdict
        .findings()
        .iter()
        .map(|finding| finding.subject.as_str())
        .collect();
    assert_eq!(missing, ["plan_check", "fuzz"]);
    assert!(
        codes(&verdict)
            .iter()
            .all(|found| *found == ("verify-gate-not-executed", Level::Error))
    );
}

#[test]
fn a_carried_verdict_refuses_as_it_would_alone() {
    let refusal = Verdict::new(vec![Finding::error(
        Code::new("patch-path-denied"),
        "a",
        "h",
    )]);
    let run = GateOutcome::Ran(Box::new(run_of("true", GateEnd::Exited(0), "", "")));
    let verdict = judge(
        &[run, judged("patch_check", refusal.clone())],
        &required(&[]),
    );
    assert_eq!(verdict, refusal);
}

#[test]
fn two_gates_of_one_name_are_refused() {
    let run = || GateOutcome::Ran(Box::new(run_of("true", GateEnd::Exited(0), "", "")));
    assert_eq!(
        codes(&judge(&[run(), run()], &required(&[]))),
        [("verify-gate-duplicate", Level::Error)]
    );
}

#[test]
fn partial_isolation_and_cuts_are_reported() {
    let mut run = run_of("true", GateEnd::Exited(0), "", "");
    run.isolation = Some(receipt("full"));
    assert_eq!(judge_run(&run), Verdict::default());
    run.isolation = Some(receipt("partial"));
    run.stdout.extent = Extent::Cut;
    let verdict = judge_run(&run);
    assert_eq!(
        codes(&verdict),
        [
            ("verify-isolation-partial", Level::Warning),
            ("verify-log-cut", Level::Info)
        ]
    );
    assert!(verdict.findings()[0].hint.contains("landlock"));
}

#[test]
fn test_commands_that_ran_no_test_are_noticed() {
    let empty = "\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed\n";
    let cases = [
        ("cargo test", empty.to_owned(), true),
        ("cargo test", format!("{empty}{empty}"), true),
        ("cargo test", format!("{empty}\nrunning 3 tests\n"), false),
        ("cargo build", empty.to_owned(), false),
        ("cargo test", String::new(), false),
        (
            "cargo nextest run",
            "    Starting 0 tests across 1 binary".to_owned(),
            true,
        ),
        (
            "cargo nextest run",
            "    Starting 2 tests across 1 binary".to_owned(),
            false,
        ),
        ("pytest -q", "no tests ran in 0.01s".to_owned(), true),
        (
            "python -m pytest",
            "===== no tests ran in 0.01s =====".to_owned(),
            true,
        ),
        ("pytest", "1 passed in 0.01s".to_owned(), false),
        (
            "go test ./...",
            "?   \ta\t[no test files]\n".to_owned(),
            true,
        ),
        (
            "go test ./...",
            "?   \ta\t[no test files]\nok  \tb\t0.003s\n".to_owned(),
            false,
        ),
        (
            "go test ./...",
            "ok  \tb\t0.003s [no tests to run]\n".to_owned(),
            true,
        ),
    ];
    for (command, output, expected) in cases {
        let run = run_of(command, GateEnd::Exited(0), &output, "");
        let noticed = codes(&judge_run(&run)) == [("verify-no-tests-ran", Level::Warning)];
        assert_eq!(noticed, expected, "{command}: {output}");
    }
}
