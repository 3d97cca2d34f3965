//! The story of skills: steps, rows and events stand or fall together; a step from the wrong place is refused.

use crucible_ledger::{
    Ledger, LedgerError, Moment, NewPromotion, NewSkill, NewSkillBuild, NewSkillRun,
    NewVerification, SideEffect, SkillArtifactKind, SkillBuildEnd, SkillBuildRow, SkillBuildStatus,
    SkillGateRow, SkillRunOutcome, SkillStatus, VerificationEnd, VerificationLevel,
    VerificationRow, VerificationStatus, skill_run_id,
};
use crucible_model::{ClockSource, Digest};
use serde_json::{Value, json};

use crate::common::{instant, place};

/// The gates that a verification has to pass.
pub(crate) const REQUIRED: [&str; 5] = ["ruff", "mypy", "pytest", "policy", "invariants"];

pub(crate) fn project() -> Digest {
    Digest::compute(b"a project")
}

pub(crate) fn moment() -> Moment {
    Moment {
        at: instant(),
        clock: ClockSource::System,
    }
}

pub(crate) fn proposal(name: &str) -> NewSkill {
    NewSkill {
        moment: moment(),
        project: project(),
        name: name.to_owned(),
        description: "count words".to_owned(),
        io_schema: json!({ "input": { "type": "object" }, "output": { "type": "object" } }),
        side_effect: SideEffect::ReadOnly,
        grants: json!({}),
        spec: b"# word_count\n".to_vec(),
        held_out: None,
    }
}

pub(crate) fn build(ledger: &mut Ledger, proposal: u64) -> Result<SkillBuildRow, LedgerError> {
    let new = NewSkillBuild {
        moment: moment(),
        proposal,
        agent: "claude".to_owned(),
    };
    ledger.begin_skill_build(&new, |row| {
        Ok::<_, LedgerError>(format!("packet of attempt {}", row.attempt).into_bytes())
    })
}

pub(crate) fn succeeded() -> SkillBuildEnd {
    SkillBuildEnd::Succeeded {
        skill: Digest::compute(b"skill"),
        test: Digest::compute(b"test"),
    }
}

pub(crate) fn verification(proposal: u64, build: u64) -> NewVerification {
    NewVerification {
        moment: moment(),
        proposal,
        build,
        level: VerificationLevel::Skill,
        required: REQUIRED.map(str::to_owned).to_vec(),
        skill: Digest::compute(b"skill"),
        test: Digest::compute(b"test"),
    }
}

pub(crate) fn promotion(proposal: u64, verification: u64) -> NewPromotion {
    NewPromotion {
        moment: moment(),
        proposal,
        verification: Some(verification),
        from: SkillStatus::Verified,
        to: SkillStatus::Trusted,
        approved_by: "a maintainer".to_owned(),
        reason: "read it".to_owned(),
        skill: Digest::compute(b"skill"),
        test: Digest::compute(b"test"),
    }
}

pub(crate) fn status(ledger: &Ledger, name: &str) -> SkillStatus {
    ledger.skill(&project(), name).unwrap().unwrap().status
}

/// Records that each of these gates passed, or did not.
pub(crate) fn record(ledger: &mut Ledger, checked: &VerificationRow, gates: &[&str], passed: bool) {
    for &gate in gates {
        let row = SkillGateRow {
            gate: gate.to_owned(),
            passed,
            duration_ms: 12,
            findings: json!([]),
            log: None,
        };
        ledger.record_skill_gate(checked, moment(), &row).unwrap();
    }
}

/// The events of `word_count`, by name.
pub(crate) fn told(ledger: &Ledger) -> Vec<String> {
    let run = skill_run_id(&project(), "word_count").unwrap();
    ledger
        .events(Some(&run))
        .unwrap()
        .into_iter()
        .map(|event| event.event)
        .collect()
}

/// A ledger in which `word_count` is trusted, and its number.
pub(crate) fn trusted(path: &std::path::Path) -> (Ledger, u64) {
    let mut ledger = Ledger::open(path).unwrap();
    let id = ledger.propose_skill(&proposal("word_count")).unwrap();
    let attempt = build(&mut ledger, id).unwrap();
    ledger
        .end_skill_build(&attempt, moment(), &succeeded())
        .unwrap();
    let checked = ledger
        .begin_verification(&verification(id, attempt.id))
        .unwrap();
    record(&mut ledger, &checked, &REQUIRED, true);
    ledger
        .end_verification(&checked, moment(), VerificationEnd::Passed)
        .unwrap();
    ledger.promote_skill(&promotion(id, checked.id)).unwrap();
    (ledger, id)
}

/// Records a run of a skill that is trusted.
pub(crate) fn run(ledger: &mut Ledger, proposal: u64) {
    let promotion = ledger
        .promotions(proposal)
        .unwrap()
        .pop()
        .map(|promotion| promotion.event);
    let run = NewSkillRun {
        moment: moment(),
        proposal,
        promotion,
        skill: Digest::compute(b"skill"),
        outcome: SkillRunOutcome::Succeeded,
        findings: json!([]),
        duration_ms: 3,
    };
    ledger.record_skill_run(&run).unwrap();
}

#[test]
fn skill_steps_to_trust_are_in_chain() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let id = ledger.propose_skill(&proposal("word_count")).unwrap();
    assert_eq!(status(&ledger, "word_count"), SkillStatus::Proposed);

    let first = build(&mut ledger, id).unwrap();
    let why = json!({ "kind": "TIMEOUT" });
    ledger
        .end_skill_build(&first, moment(), &SkillBuildEnd::Failed(why.clone()))
        .unwrap();
    assert_eq!(status(&ledger, "word_count"), SkillStatus::Proposed);
    let second = build(&mut ledger, id).unwrap();
    assert_eq!((second.attempt, second.parent), (2, Some(first.id)));
    ledger
        .end_skill_build(&second, moment(), &succeeded())
        .unwrap();
    assert_eq!(status(&ledger, "word_count"), SkillStatus::Built);
    let builds = ledger.skill_builds(id).unwrap();
    assert_eq!(builds[0].failure, Some(why));
    assert_eq!(builds[1].skill, Some(Digest::compute(b"skill")));

    let checked = ledger
        .begin_verification(&verification(id, second.id))
        .unwrap();
    let log = ledger.put_artifact("gate-log", b"1 passed").unwrap();
    for (gate, log) in [("pytest", Some(log)), ("policy", None)] {
        let row = SkillGateRow {
            gate: gate.to_owned(),
            passed: true,
            duration_ms: 12,
            findings: json!([]),
            log,
        };
        ledger.record_skill_gate(&checked, moment(), &row).unwrap();
        assert!(ledger.skill_gates(checked.id).unwrap().contains(&row));
        assert!(
            ledger.record_skill_gate(&checked, moment(), &row).is_err(),
            "each gate once"
        );
    }
    record(&mut ledger, &checked, &["ruff", "mypy", "invariants"], true);
    ledger
        .end_verification(&checked, moment(), VerificationEnd::Passed)
        .unwrap();
    assert_eq!(status(&ledger, "word_count"), SkillStatus::Verified);
    assert_eq!(
        ledger.verifications(id).unwrap()[0].status,
        VerificationStatus::Passed
    );

    assert_eq!(ledger.skill_trust(&project(), "word_count").unwrap(), None);
    let row = ledger.promote_skill(&promotion(id, checked.id)).unwrap();
    assert_eq!(
        ledger.skill_trust(&project(), "word_count").unwrap(),
        Some(row.clone())
    );
    assert_eq!(ledger.promotions(id).unwrap(), std::slice::from_ref(&row));
    let run = NewSkillRun {
        moment: moment(),
        proposal: id,
        promotion: Some(row.event),
        skill: Digest::compute(b"skill"),
        outcome: SkillRunOutcome::Succeeded,
        findings: json!([]),
        duration_ms: 40,
    };
    ledger.record_skill_run(&run).unwrap();
    let ran = &ledger.skill_runs(id, 5).unwrap()[0];
    assert_eq!(
        (ran.outcome, ran.promotion),
        (SkillRunOutcome::Succeeded, Some(row.event))
    );

    let kinds: Vec<_> = ledger
        .skill_artifacts(id)
        .unwrap()
        .into_iter()
        .map(|row| row.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            SkillArtifactKind::SkillSpec,
            SkillArtifactKind::BuildPacket,
            SkillArtifactKind::BuildPacket
        ]
    );
    assert_eq!(
        told(&ledger),
        [
            "SKILL_PROPOSED",
            "SKILL_BUILD_STARTED",
            "SKILL_BUILD_ENDED",
            "SKILL_BUILD_STARTED",
            "SKILL_BUILD_ENDED",
            "SKILL_VERIFICATION_STARTED",
            "SKILL_GATE_FINISHED",
            "SKILL_GATE_FINISHED",
            "SKILL_GATE_FINISHED",
            "SKILL_GATE_FINISHED",
            "SKILL_GATE_FINISHED",
            "SKILL_VERIFICATION_ENDED",
            "SKILL_PROMOTED",
            "SKILL_RUN",
        ]
    );
    assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
}

#[test]
fn step_from_wrong_status_is_refused_without_changes() {
    let place = place();
    let (mut ledger, id) = trusted(&place.path);
    let head = ledger.head().unwrap();
    let moved = |result: Result<(), LedgerError>| {
        assert!(
            matches!(
                result,
                Err(LedgerError::SkillMoved {
                    status: "TRUSTED",
                    ..
                })
            ),
            "{result:?}"
        );
    };
    moved(build(&mut ledger, id).map(drop));
    moved(ledger.begin_verification(&verification(id, 1)).map(drop));
    moved(ledger.promote_skill(&promotion(id, 1)).map(drop));
    assert!(matches!(
        ledger.propose_skill(&proposal("word_count")),
        Err(LedgerError::SkillTaken { .. })
    ));
    assert!(matches!(
        build(&mut ledger, 99),
        Err(LedgerError::NoSuchSkill { id: 99 })
    ));
    // The same name in another project is another skill.
    ledger
        .propose_skill(&NewSkill {
            project: Digest::compute(b"another"),
            ..proposal("word_count")
        })
        .unwrap();
    assert_eq!(ledger.head().unwrap().seq, head.seq + 2);
    assert_eq!(ledger.skills(&project()).unwrap().len(), 1);
}

#[test]
fn failed_packet_leaves_no_attempt() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let id = ledger.propose_skill(&proposal("word_count")).unwrap();
    let new = NewSkillBuild {
        moment: moment(),
        proposal: id,
        agent: "claude".to_owned(),
    };
    let failed = ledger.begin_skill_build(&new, |_| Err(LedgerError::NoSuchSkill { id: 0 }));
    assert!(failed.is_err());
    assert_eq!(ledger.skill_builds(id).unwrap(), []);
}

#[test]
fn killed_attempt_and_verification_are_ended_by_next() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let id = ledger.propose_skill(&proposal("word_count")).unwrap();
    let killed = build(&mut ledger, id).unwrap();
    let next = build(&mut ledger, id).unwrap();
    let builds = ledger.skill_builds(id).unwrap();
    assert_eq!(builds[0].status, SkillBuildStatus::Aborted);
    assert_eq!(builds[1].status, SkillBuildStatus::Running);
    // The process that was taken for dead comes back: its end is refused.
    assert!(matches!(
        ledger.end_skill_build(&killed, moment(), &succeeded()),
        Err(LedgerError::SkillMoved { .. })
    ));
    ledger
        .end_skill_build(&next, moment(), &succeeded())
        .unwrap();
    let killed = ledger
        .begin_verification(&verification(id, next.id))
        .unwrap();
    let second_verification_row = ledger
        .begin_verification(&verification(id, next.id))
        .unwrap();
    assert!(
        ledger
            .end_verification(&killed, moment(), VerificationEnd::Failed)
            .is_err()
    );
    let run = skill_run_id(&project(), "word_count").unwrap();
    let events = ledger.events(Some(&run)).unwrap();
    let ended = events
        .iter()
        .rfind(|event| event.event == "SKILL_VERIFICATION_ENDED")
        .unwrap();
    assert_eq!(
        ended.body,
        json!({ "verification": killed.id, "status": "ABORTED" })
    );
    ledger
        .end_verification(&second_verification_row, moment(), VerificationEnd::Failed)
        .unwrap();
    assert_eq!(status(&ledger, "word_count"), SkillStatus::Built);
    assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
}

#[test]
fn rows_hold_only_what_the_seed_names() {
    let place = place();
    let (ledger, _) = trusted(&place.path);
    drop(ledger);
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    for bad in [
        "UPDATE skill_proposals SET status = 'DONE'",
        "UPDATE skill_proposals SET side_effect_class = 'ANY'",
        "UPDATE builds SET status = 'RUNNING'",
        "INSERT INTO skill_artifacts (proposal_id, kind, digest, created_at) SELECT 1, 'OTHER', digest, '' FROM artifacts",
        "UPDATE promotions SET reason = ''",
        "DELETE FROM promotions",
        "UPDATE verifications SET skill_digest = test_digest",
        "UPDATE verifications SET status = 'FAILED'",
        "DELETE FROM gate_results",
        "UPDATE gate_results SET passed = 1",
    ] {
        assert!(connection.execute(bad, []).is_err(), "{bad}");
    }
    let names: Vec<Value> = [
        SideEffect::ALL
            .iter()
            .map(|one| json!(one))
            .collect::<Vec<_>>(),
        SkillArtifactKind::ALL
            .iter()
            .map(|one| json!(one))
            .collect(),
    ]
    .concat();
    assert_eq!(names.len(), 13);
}
