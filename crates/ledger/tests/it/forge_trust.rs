//! Trust in skills: what it takes to be verified and promoted, and that no reader is taken in by rows that were edited, added or deleted.

use crucible_ledger::{
    Ledger, LedgerError, NewPromotion, NewSkillRun, NewVerification, SkillArtifactKind,
    SkillGateRow, SkillRunOutcome, SkillStatus, VerificationEnd, VerificationStatus,
};
use crucible_model::Digest;
use serde_json::json;

use crate::common::{older, place, tamper};
use crate::forge::{
    REQUIRED, build, moment, project, promotion, proposal, record, status, succeeded, told,
    trusted, verification,
};

/// A ledger in which `word_count` is built, the number of the skill and of the attempt.
fn built(path: &std::path::Path) -> (Ledger, u64, u64) {
    let mut ledger = Ledger::open(path).unwrap();
    let id = ledger.propose_skill(&proposal("word_count")).unwrap();
    let attempt = build(&mut ledger, id).unwrap();
    ledger
        .end_skill_build(&attempt, moment(), &succeeded())
        .unwrap();
    (ledger, id, attempt.id)
}

fn away(proposal: u64) -> NewPromotion {
    NewPromotion {
        verification: None,
        from: SkillStatus::Trusted,
        to: SkillStatus::Built,
        ..promotion(proposal, 1)
    }
}

#[test]
fn verification_requires_five_gates_and_requested_sixth() {
    let place = place();
    let (mut ledger, id, attempt) = built(&place.path);
    for left_out in REQUIRED {
        let checked = ledger
            .begin_verification(&verification(id, attempt))
            .unwrap();
        let others: Vec<&str> = REQUIRED
            .into_iter()
            .filter(|gate| *gate != left_out)
            .collect();
        record(&mut ledger, &checked, &others, true);
        let refused = ledger.end_verification(&checked, moment(), VerificationEnd::Passed);
        let missing = left_out;
        assert!(
            matches!(&refused, Err(LedgerError::GatesNotPassed { missing: said, .. }) if said == missing),
            "{refused:?}"
        );
        record(&mut ledger, &checked, &[left_out], false);
        assert!(
            ledger
                .end_verification(&checked, moment(), VerificationEnd::Passed)
                .is_err(),
            "{missing} failed"
        );
        assert_eq!(status(&ledger, "word_count"), SkillStatus::Built);
        ledger
            .end_verification(&checked, moment(), VerificationEnd::Failed)
            .unwrap();
    }
    let checked = ledger
        .begin_verification(&verification(id, attempt))
        .unwrap();
    record(&mut ledger, &checked, &REQUIRED, true);
    record(&mut ledger, &checked, &["examples"], false);
    assert!(
        ledger
            .end_verification(&checked, moment(), VerificationEnd::Passed)
            .is_err()
    );
    ledger
        .end_verification(&checked, moment(), VerificationEnd::Failed)
        .unwrap();
    // What has ended hears of no gate any more.
    let late = SkillGateRow {
        gate: "examples".to_owned(),
        passed: true,
        duration_ms: 1,
        findings: json!([]),
        log: None,
    };
    let refused = ledger.record_skill_gate(&checked, moment(), &late);
    assert!(
        matches!(refused, Err(LedgerError::SkillMoved { .. })),
        "{refused:?}"
    );
    assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
}

#[test]
fn verification_needs_newest_attempt_and_ends_with_next() {
    let place = place();
    let (mut ledger, id, first) = built(&place.path);
    let overtaken = ledger.begin_verification(&verification(id, first)).unwrap();
    record(&mut ledger, &overtaken, &REQUIRED, true);
    let second = build(&mut ledger, id).unwrap();
    ledger
        .end_skill_build(&second, moment(), &succeeded())
        .unwrap();
    assert_eq!(
        ledger.verifications(id).unwrap()[0].status,
        VerificationStatus::Aborted
    );
    let late = ledger.end_verification(&overtaken, moment(), VerificationEnd::Passed);
    assert!(
        matches!(late, Err(LedgerError::SkillMoved { .. })),
        "{late:?}"
    );
    assert_eq!(status(&ledger, "word_count"), SkillStatus::Built);
    let old = ledger.begin_verification(&verification(id, first));
    assert!(
        matches!(old, Err(LedgerError::SkillMoved { .. })),
        "{old:?}"
    );
    assert!(told(&ledger).contains(&"SKILL_VERIFICATION_ENDED".to_owned()));
}

#[test]
fn trust_requires_newest_verification_of_same_files() {
    let place = place();
    let (mut ledger, id, attempt) = built(&place.path);
    let mut checks = Vec::new();
    for _ in 0..2 {
        let checked = ledger
            .begin_verification(&verification(id, attempt))
            .unwrap();
        record(&mut ledger, &checked, &REQUIRED, true);
        ledger
            .end_verification(&checked, moment(), VerificationEnd::Passed)
            .unwrap();
        checks.push(checked.id);
    }
    let good = promotion(id, checks[1]);
    let other = Digest::compute(b"other");
    let wrong = [
        ("an older verification", promotion(id, checks[0])),
        ("no such verification", promotion(id, 99)),
        (
            "none",
            NewPromotion {
                verification: None,
                ..good.clone()
            },
        ),
        (
            "another skill",
            NewPromotion {
                skill: other,
                ..good.clone()
            },
        ),
        (
            "another test",
            NewPromotion {
                test: other,
                ..good.clone()
            },
        ),
        (
            "a step that is none",
            NewPromotion {
                to: SkillStatus::Built,
                ..good.clone()
            },
        ),
    ];
    for (what, new) in wrong {
        let refused = ledger.promote_skill(&new);
        assert!(
            matches!(refused, Err(LedgerError::NotVerified { .. })),
            "{what}: {refused:?}"
        );
        assert_eq!(
            status(&ledger, "word_count"),
            SkillStatus::Verified,
            "{what}"
        );
    }
    // A verification of another skill is none of this one.
    let foreign = ledger.propose_skill(&proposal("other")).unwrap();
    let attempt = build(&mut ledger, foreign).unwrap();
    ledger
        .end_skill_build(&attempt, moment(), &succeeded())
        .unwrap();
    let checked = ledger
        .begin_verification(&verification(foreign, attempt.id))
        .unwrap();
    record(&mut ledger, &checked, &REQUIRED, true);
    ledger
        .end_verification(&checked, moment(), VerificationEnd::Passed)
        .unwrap();
    assert!(ledger.promote_skill(&promotion(id, checked.id)).is_err());
    ledger.promote_skill(&good).unwrap();
}

#[test]
fn the_database_itself_refuses_what_the_program_would() {
    let place = place();
    let (ledger, id) = trusted(&place.path);
    drop(ledger);
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    connection
        .execute_batch("PRAGMA foreign_keys = OFF")
        .unwrap();
    let forged = Digest::compute(b"forged");
    for bad in [
        format!(
            "INSERT INTO promotions SELECT 1, proposal_id, verification_id, from_status, to_status, approved_by, reason,
             '{forged}', test_digest, at FROM promotions"
        ),
        "INSERT INTO promotions SELECT 1, proposal_id, NULL, from_status, to_status, approved_by, reason, skill_digest,
         test_digest, at FROM promotions"
            .to_owned(),
        "INSERT OR REPLACE INTO promotions SELECT * FROM promotions".to_owned(),
        format!(
            "INSERT INTO verifications (proposal_id, build_id, level, skill_digest, test_digest, started_at)
             VALUES ({id}, 1, 'skill', '{forged}', '{forged}', ''); UPDATE verifications SET status = 'PASSED', ended_at = ''
             WHERE status = 'RUNNING'"
        ),
        "INSERT INTO gate_results VALUES (1, 'examples', 1, 0, '[]', NULL)".to_owned(),
        "INSERT OR REPLACE INTO gate_results SELECT * FROM gate_results".to_owned(),
    ] {
        assert!(connection.execute_batch(&bad).is_err(), "{bad}");
    }
}

#[test]
fn gate_of_any_name_is_required_if_named() {
    let place = place();
    let (mut ledger, id, attempt) = built(&place.path);
    let named = |names: &[&str]| NewVerification {
        required: names.iter().map(|name| (*name).to_owned()).collect(),
        ..verification(id, attempt)
    };
    assert!(
        ledger.begin_verification(&named(&[])).is_err(),
        "no gate is not verification"
    );
    let checked = ledger
        .begin_verification(&named(&["licences", "größe"]))
        .unwrap();
    assert_eq!(
        ledger.verifications(id).unwrap()[0].required,
        ["licences", "größe"]
    );
    record(&mut ledger, &checked, &["licences"], true);
    let refused = ledger.end_verification(&checked, moment(), VerificationEnd::Passed);
    assert!(
        matches!(&refused, Err(LedgerError::GatesNotPassed { missing, .. }) if missing == "größe"),
        "{refused:?}"
    );
    // The database refuses it by itself.
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    let passed = "UPDATE verifications SET status = 'PASSED', ended_at = '2026-01-31T09:30:00Z' WHERE status = 'RUNNING'";
    for bad in [
        passed.to_owned(),
        "UPDATE verifications SET required_gates = '[\"licences\"]'".to_owned(),
        format!("INSERT INTO gate_results VALUES ({}, 'größe', 0, 0, '[]', NULL); {passed}", checked.id),
        format!(
            "INSERT INTO verifications SELECT 99, proposal_id, build_id, level, 'PASSED', skill_digest, test_digest, started_at,
             started_at, required_gates FROM verifications WHERE id = {}",
            checked.id
        ),
    ] {
        let refused = connection.execute_batch(&format!("BEGIN; {bad}; COMMIT"));
        assert!(refused.is_err(), "{bad}");
        connection.execute_batch("ROLLBACK").unwrap();
    }
    drop(connection);
    record(&mut ledger, &checked, &["größe"], true);
    ledger
        .end_verification(&checked, moment(), VerificationEnd::Passed)
        .unwrap();
    ledger.promote_skill(&promotion(id, checked.id)).unwrap();
    assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
}

#[test]
fn verifications_of_an_older_ledger_name_their_gates() {
    let place = place();
    older(&place.path, 8);
    let mut ledger = Ledger::open(&place.path).unwrap();
    let checked = ledger.verifications(1).unwrap();
    assert_eq!(checked[0].required, REQUIRED);
    assert_eq!(
        ledger.skill_gates(checked[0].id).unwrap().len(),
        REQUIRED.len()
    );
    assert!(
        ledger
            .skill_trust(&project(), "word_count")
            .unwrap()
            .is_some()
    );
    assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
    // A verification goes on where the older version left it, by the same gates.
    ledger.promote_skill(&away(1)).unwrap();
    let build = ledger.skill_builds(1).unwrap()[0].id;
    let checked = ledger.begin_verification(&verification(1, build)).unwrap();
    record(&mut ledger, &checked, &REQUIRED[1..], true);
    assert!(
        ledger
            .end_verification(&checked, moment(), VerificationEnd::Passed)
            .is_err()
    );
}

#[test]
fn run_names_the_promotion_it_relied_on() {
    let place = place();
    let (mut ledger, id) = trusted(&place.path);
    let promoted = ledger
        .skill_trust(&project(), "word_count")
        .unwrap()
        .unwrap()
        .event;
    let run = |promotion, skill: &[u8], outcome| NewSkillRun {
        moment: moment(),
        proposal: id,
        promotion,
        skill: Digest::compute(skill),
        outcome,
        findings: json!([]),
        duration_ms: 1,
    };
    let wrong = [
        run(Some(promoted), b"other", SkillRunOutcome::Succeeded),
        run(Some(1), b"skill", SkillRunOutcome::Failed),
        run(Some(promoted + 9), b"skill", SkillRunOutcome::Refused),
    ];
    for new in wrong {
        let refused = ledger.record_skill_run(&new);
        assert!(
            matches!(refused, Err(LedgerError::NotPromoted { .. })),
            "{refused:?}"
        );
    }
    ledger
        .record_skill_run(&run(Some(promoted), b"other", SkillRunOutcome::Refused))
        .unwrap();
    ledger
        .record_skill_run(&run(None, b"other", SkillRunOutcome::Failed))
        .unwrap();
    // Trust was taken away while it ran: that it ran is told all the same. What took it away lets nothing run.
    let promotion_row = ledger.promote_skill(&away(id)).unwrap();
    ledger
        .record_skill_run(&run(Some(promoted), b"skill", SkillRunOutcome::Denied))
        .unwrap();
    assert!(
        ledger
            .record_skill_run(&run(
                Some(promotion_row.event),
                b"skill",
                SkillRunOutcome::Succeeded
            ))
            .is_err()
    );
    assert_eq!(ledger.skill_runs(id, 9).unwrap().len(), 3);
}

#[test]
fn trust_that_is_taken_away_is_gone() {
    let place = place();
    let (mut ledger, id) = trusted(&place.path);
    ledger.promote_skill(&away(id)).unwrap();
    assert_eq!(ledger.skill_trust(&project(), "word_count").unwrap(), None);
    assert_eq!(status(&ledger, "word_count"), SkillStatus::Built);
}

#[test]
fn forged_promotion_is_found_by_each_reader() {
    let forged = Digest::compute(b"forged");
    let edits = [
        format!("UPDATE promotions SET skill_digest = '{forged}'"),
        "UPDATE promotions SET approved_by = 'somebody else'".to_owned(),
        "UPDATE skill_proposals SET name = 'other' WHERE name = 'word_count'".to_owned(),
        format!(
            "INSERT INTO promotions SELECT 1, proposal_id, verification_id, from_status, to_status, approved_by, reason,
             '{forged}', test_digest, at FROM promotions; DELETE FROM promotions WHERE event_seq > 1"
        ),
    ];
    for edit in edits {
        let place = place();
        let (ledger, _) = trusted(&place.path);
        drop(ledger);
        tamper(&place.path, &edit);
        let ledger = Ledger::open(&place.path).unwrap();
        let name = if edit.contains("'other'") {
            "other"
        } else {
            "word_count"
        };
        let trust = ledger.skill_trust(&project(), name);
        assert!(
            matches!(trust, Err(LedgerError::Damaged { .. })),
            "{edit}: {trust:?}"
        );
        if name == "word_count" {
            let findings = ledger.verify(&[]).unwrap();
            let is_reported = findings
                .findings()
                .iter()
                .any(|found| found.code.as_str() == "ledger-promotion-edited");
            assert!(is_reported, "{edit}");
        }
    }
}

#[test]
fn deleted_demotion_is_detected_by_each_reader() {
    let edits = [
        "DELETE FROM promotions WHERE to_status <> 'TRUSTED'",
        "DELETE FROM promotions WHERE to_status <> 'TRUSTED'; UPDATE skill_proposals SET status = 'TRUSTED'",
        "DELETE FROM promotions",
        "UPDATE skill_proposals SET status = 'TRUSTED'",
    ];
    for edit in edits {
        let place = place();
        let (mut ledger, id) = trusted(&place.path);
        ledger.promote_skill(&away(id)).unwrap();
        // A run of another skill, and one of this skill, come after it: neither hides it.
        ledger.propose_skill(&proposal("other")).unwrap();
        ledger
            .keep_skill_artifact(id, None, SkillArtifactKind::Note, b"a note", moment())
            .unwrap();
        assert_eq!(ledger.skill_trust(&project(), "word_count").unwrap(), None);
        drop(ledger);
        tamper(&place.path, edit);
        let ledger = Ledger::open(&place.path).unwrap();
        let trust = ledger.skill_trust(&project(), "word_count");
        assert!(
            matches!(trust, Err(LedgerError::Damaged { .. })),
            "{edit}: {trust:?}"
        );
        let found = ledger.verify(&[]).unwrap();
        let is_reported = found
            .findings()
            .iter()
            .any(|found| found.code.as_str() == "ledger-promotion-edited");
        assert!(is_reported, "{edit}");
    }
}

#[test]
fn skill_with_altered_rights_is_detected() {
    let edits = [
        "UPDATE skill_proposals SET side_effect_class = 'NETWORK'",
        "UPDATE skill_proposals SET grants = '{\"write_paths\":[\"src/\"]}'",
        "UPDATE skill_proposals SET io_schema = '{}'",
        "UPDATE events SET body = replace(body, 'READ_ONLY', 'NETWORK') WHERE event = 'SKILL_PROPOSED';
         UPDATE skill_proposals SET side_effect_class = 'NETWORK'",
        "DELETE FROM events WHERE event = 'SKILL_PROPOSED'",
    ];
    for edit in edits {
        let place = place();
        drop(trusted(&place.path));
        tamper(&place.path, edit);
        let ledger = Ledger::open(&place.path).unwrap();
        let trust = ledger.skill_trust(&project(), "word_count");
        assert!(
            matches!(trust, Err(LedgerError::Damaged { .. })),
            "{edit}: {trust:?}"
        );
        assert!(!ledger.verify(&[]).unwrap().passes(), "{edit}");
    }
}

#[test]
fn moved_head_removes_all_trust() {
    let edits = [
        "UPDATE chain_head SET hash = (SELECT hash FROM events WHERE seq = 1)",
        "UPDATE chain_head SET seq = seq - 1",
        "UPDATE chain_head SET seq = seq + 1",
        "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)",
        "INSERT INTO events SELECT seq + 1, run_id, ts, role, event, path, key, artifacts, body, prev, hash FROM events
         WHERE seq = (SELECT max(seq) FROM events)",
    ];
    for edit in edits {
        let place = place();
        let (mut ledger, _) = trusted(&place.path);
        ledger.propose_skill(&proposal("other")).unwrap();
        drop(ledger);
        tamper(&place.path, edit);
        let ledger = Ledger::open(&place.path).unwrap();
        let trust = ledger.skill_trust(&project(), "word_count");
        assert!(
            matches!(trust, Err(LedgerError::Damaged { .. })),
            "{edit}: {trust:?}"
        );
        assert!(!ledger.verify(&[]).unwrap().passes(), "{edit}");
    }
}

#[test]
fn a_promotion_whose_verification_was_edited_is_found() {
    let edits = [
        "UPDATE verifications SET status = 'FAILED'",
        "UPDATE verifications SET skill_digest = test_digest",
        "DELETE FROM verifications",
    ];
    for edit in edits {
        let place = place();
        drop(trusted(&place.path));
        tamper(&place.path, &format!("PRAGMA foreign_keys = OFF; {edit}"));
        let found = Ledger::open(&place.path).unwrap().verify(&[]).unwrap();
        let is_reported = found
            .findings()
            .iter()
            .any(|found| found.code.as_str() == "ledger-promotion-edited");
        assert!(is_reported, "{edit}");
    }
}
