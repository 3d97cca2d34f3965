//! Who may answer for a skill, what is promoted, and when trust is taken away.

use crucible_ledger::VerificationLevel;

use super::*;

fn name() -> SkillName {
    "word_count".parse().unwrap()
}

fn row(status: VerificationStatus) -> VerificationRow {
    VerificationRow {
        id: 1,
        proposal: 1,
        build: 1,
        level: VerificationLevel::Skill,
        required: SkillGate::REQUIRED
            .map(|gate| gate.as_str().to_owned())
            .to_vec(),
        status,
        skill: Digest::compute(b"skill"),
        test: Digest::compute(b"test"),
        started_at: "2026-01-02T03:04:05Z".parse().unwrap(),
        ended_at: None,
    }
}

fn files(skill: &[u8], test: &[u8]) -> [(RepoPath, Result<Digest, String>); 2] {
    [
        ("s.py".parse().unwrap(), Ok(Digest::compute(skill))),
        ("t.py".parse().unwrap(), Ok(Digest::compute(test))),
    ]
}

fn gate(gate: SkillGate, passed: bool) -> SkillGateRow {
    SkillGateRow {
        gate: gate.as_str().to_owned(),
        passed,
        duration_ms: 1,
        findings: serde_json::json!([]),
        log: None,
    }
}

/// The gates that every verification has to pass, passed.
fn five() -> Vec<SkillGateRow> {
    SkillGate::REQUIRED.map(|one| gate(one, true)).to_vec()
}

fn codes(verdict: &Verdict) -> Vec<String> {
    verdict
        .errors()
        .map(|finding| format!("{} {}", finding.code, finding.subject))
        .collect()
}

#[test]
fn only_what_was_verified_is_promoted() {
    let passed = row(VerificationStatus::Passed);
    let judge = |newest: Option<&VerificationRow>, files, rule| {
        codes(&judge_promotion(&name(), newest, &five(), &files, rule))
    };
    let optional = ExamplesRule::Optional;
    assert!(judge(Some(&passed), files(b"skill", b"test"), optional).is_empty());
    assert_eq!(
        judge(Some(&passed), files(b"skill ", b"test"), optional),
        ["forge-promote-changed s.py"]
    );
    assert_eq!(
        judge(Some(&passed), files(b"skill", b""), optional),
        ["forge-promote-changed t.py"]
    );
    // The two exchanged are not the two.
    assert_eq!(
        judge(Some(&passed), files(b"test", b"skill"), optional).len(),
        2
    );
    let mut gone = files(b"skill", b"test");
    gone[0].1 = Err("it is a symbolic link".to_owned());
    assert_eq!(
        judge(Some(&passed), gone, optional),
        ["forge-promote-changed s.py"]
    );
    for status in [
        VerificationStatus::Running,
        VerificationStatus::Failed,
        VerificationStatus::Aborted,
    ] {
        let found = judge(Some(&row(status)), files(b"skill", b"test"), optional);
        assert_eq!(found, ["forge-promote-unverified word_count"], "{status:?}");
    }
    assert_eq!(
        judge(None, files(b"skill", b"test"), optional),
        ["forge-promote-unverified word_count"]
    );
}

#[test]
fn required_examples_have_to_have_passed() {
    let passed = row(VerificationStatus::Passed);
    let judge = |gates: &[SkillGateRow], rule| {
        judge_promotion(
            &name(),
            Some(&passed),
            gates,
            &files(b"skill", b"test"),
            rule,
        )
        .passes()
    };
    let with_examples = |passed| [five(), vec![gate(SkillGate::Examples, passed)]].concat();
    assert!(judge(&five(), ExamplesRule::Optional));
    assert!(!judge(&five(), ExamplesRule::Required));
    assert!(!judge(&with_examples(false), ExamplesRule::Required));
    assert!(judge(&with_examples(true), ExamplesRule::Required));
}

#[test]
fn promotion_without_a_required_gate_is_refused() {
    let passed = row(VerificationStatus::Passed);
    for (at, missing) in SkillGate::REQUIRED.into_iter().enumerate() {
        let mut gates = five();
        for row in [None, Some(gate(missing, false))] {
            gates.remove(at);
            gates.splice(at..at, row.iter().cloned());
            let files = files(b"skill", b"test");
            let verdict = judge_promotion(
                &name(),
                Some(&passed),
                &gates,
                &files,
                ExamplesRule::Optional,
            );
            assert_eq!(
                codes(&verdict),
                ["forge-promote-unverified word_count"],
                "{missing:?}"
            );
            gates = five();
        }
    }
}

#[test]
fn approver_name_must_be_readable() {
    assert!(Approval::new("Ada Example", "I read it.").is_ok());
    assert!(Approval::new("größer 漢字", "ok").is_ok());
    let long = "x".repeat(MAX_NAME_LEN + 1);
    for bad in [
        "",
        " ",
        "\u{200d}",
        "a\nb",
        "a\u{1b}[2J",
        "a\u{202e}b",
        "crucible",
        " Crucible ",
        &long,
    ] {
        assert!(Approval::new(bad, "ok").is_err(), "{bad:?}");
    }
    for bad in ["", "\t", "a\u{0}b"] {
        assert!(Approval::new("Ada", bad).is_err(), "{bad:?}");
    }
    let key = concat!("ghp_", "0123456789abcdefABCDEF0123456789abcd");
    for (by, reason) in [(key, "ok"), ("Ada", key)] {
        let error = Approval::new(by, reason).unwrap_err();
        assert!(matches!(error, ApprovalError::Secret { .. }), "{error:?}");
        assert!(!error.to_string().contains(key));
    }
}

#[test]
fn trust_ends_with_consecutive_failures() {
    use SkillRunOutcome::{Denied, Failed, Refused, Succeeded};
    let runs = |outcomes: &[(SkillRunOutcome, u64)]| -> Vec<SkillRunRow> {
        outcomes
            .iter()
            .map(|(outcome, promotion)| SkillRunRow {
                promotion: Some(*promotion),
                skill: Digest::compute(b"skill"),
                outcome: *outcome,
                findings: serde_json::json!([]),
                duration_ms: 1,
                at: "2026-01-02T03:04:05Z".parse().unwrap(),
            })
            .collect()
    };
    let fails = |outcomes: &[(SkillRunOutcome, u64)]| keeps_failing(&runs(outcomes), 7, 3);
    assert!(fails(&[(Failed, 7), (Denied, 7), (Failed, 7)]));
    assert!(!fails(&[(Failed, 7), (Failed, 7)]));
    assert!(!fails(&[
        (Failed, 7),
        (Failed, 7),
        (Succeeded, 7),
        (Failed, 7)
    ]));
    assert!(!fails(&[
        (Succeeded, 7),
        (Failed, 7),
        (Failed, 7),
        (Failed, 7)
    ]));
    // What was refused was not run.
    assert!(fails(&[
        (Refused, 7),
        (Failed, 7),
        (Refused, 7),
        (Failed, 7),
        (Failed, 7)
    ]));
    assert!(!fails(&[(Refused, 7), (Refused, 7), (Refused, 7)]));
    // Runs by an earlier promotion are of other bytes.
    assert!(!fails(&[(Failed, 7), (Failed, 7), (Failed, 5)]));
    assert!(!keeps_failing(&runs(&[(Failed, 7)]), 7, 0));
    assert!(keeps_failing(&runs(&[(Failed, 7)]), 7, 1));
}

#[test]
fn grants_refused_at_run_prevent_promotion() {
    let judge = |grants: serde_json::Value, class| {
        let verdict = judge_grants(&name(), serde_json::from_value(grants), class);
        let codes: Vec<String> = verdict
            .findings()
            .iter()
            .map(|finding| finding.code.as_str().to_owned())
            .collect();
        (verdict.passes(), codes)
    };
    let refused = (false, vec!["forge-promote-grants".to_owned()]);
    let (writes, connects) = (SideEffect::FileWrite, SideEffect::Network);
    assert_eq!(
        judge(serde_json::json!({"write_paths": ["notes/"]}), writes),
        (true, Vec::new())
    );
    for path in [
        ".github/",
        ".git/",
        "reports/.crucible/",
        "node_modules/",
        ".",
    ] {
        assert_eq!(
            judge(serde_json::json!({ "write_paths": [path] }), writes),
            refused,
            "{path}"
        );
    }
    assert_eq!(
        judge(serde_json::json!({"write_paths": []}), writes),
        refused
    );
    assert_eq!(
        judge(serde_json::json!({"hosts": ["api.example.com"]}), writes),
        refused
    );
    assert_eq!(
        judge(serde_json::json!({"everything": true}), writes),
        refused
    );
    let local = judge(serde_json::json!({"hosts": ["127.0.0.1"]}), connects);
    assert_eq!(local, (true, vec!["forge-host-local".to_owned()]));
}
