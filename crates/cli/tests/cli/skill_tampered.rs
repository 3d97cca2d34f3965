//! Somebody changes the ledger with an editor for databases, its guards out of the way: `skill run` runs nothing on its word, and says
//! what to do.

use std::path::PathBuf;

use crucible_model::Digest;
use rusqlite::Connection;

use crate::skill_trust::{Skills, five};

const GOOD: &str = "return {'is': 'good'}";
const EVIL: &str = "return {'is': 'evil'}";

/// A ledger with skills of every standing, and a copy to come back to.
struct Setup {
    skills: Skills,
    kept: Vec<u8>,
}

impl Setup {
    /// `trusted` reads, `writes` writes below `notes/`, `verified` waits for somebody, `demoted` is trusted no more; whatever comes last
    /// in the chain is about none of them.
    fn new() -> Self {
        let skills = Skills::new();
        skills.trusted("trusted", "READ_ONLY", [], GOOD);
        skills.trusted("writes", "FILE_WRITE", ["--allow-write", "notes/"], GOOD);
        skills.proposed("verified", "READ_ONLY", [], GOOD);
        skills.verified("verified", &five());
        skills.trusted("demoted", "READ_ONLY", [], GOOD);
        skills
            .run([
                "skill", "demote", "demoted", "--by", "Bo", "--reason", "Wrong.",
            ])
            .ok();
        skills.proposed("last", "READ_ONLY", [], GOOD);
        let setup = Self {
            skills,
            kept: Vec::new(),
        };
        let emptied = setup
            .open()
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
        emptied.unwrap();
        Self {
            kept: std::fs::read(setup.path("")).unwrap(),
            ..setup
        }
    }

    fn path(&self, rest: &str) -> PathBuf {
        self.skills.fixture.data().join(format!("ledger.db{rest}"))
    }

    fn open(&self) -> Connection {
        Connection::open(self.path("")).unwrap()
    }

    /// Puts the ledger and the skills' files back, and changes the ledger so.
    fn edit(&self, sql: &str) {
        for rest in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(self.path(rest));
        }
        std::fs::write(self.path(""), &self.kept).unwrap();
        let connection = self.open();
        let triggers: Vec<(String, String)> = connection
            .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
            .and_then(|mut select| {
                select
                    .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                    .collect()
            })
            .unwrap();
        let off: String = triggers
            .iter()
            .map(|(name, _)| format!("DROP TRIGGER {name};"))
            .collect();
        let on: String = triggers.iter().map(|(_, sql)| format!("{sql};")).collect();
        let free = "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;";
        connection
            .execute_batch(&format!("{free} {off} {sql}; {on}"))
            .unwrap();
    }

    /// The skill is not run, the user is sent to the verification of the ledger, and that finds it, too.
    #[track_caller]
    fn is_refused(&self, name: &str, edit: &str) {
        let output = self.skills.run(["skill", "run", name, "--input", "{}"]);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(1), ""),
            "{name}: {edit}\n{}",
            output.stderr
        );
        assert!(
            output.stderr.contains("crucible ledger verify"),
            "{name}: {edit}\n{}",
            output.stderr
        );
        let checked = self.skills.run(["ledger", "verify"]);
        assert_ne!(
            checked.code,
            Some(0),
            "{name}: {edit}\n{}{}",
            checked.stdout,
            checked.stderr
        );
    }
}

/// The columns of a promotion by somebody who was never asked.
fn forged(skill: &str, event: &str, digest: &str) -> String {
    format!(
        "INSERT INTO promotions SELECT {event}, s.id, v.id, 'VERIFIED', 'TRUSTED', 'Nobody Asked', 'None.', {digest}, v.test_digest,
         '2026-01-02T03:04:05Z' FROM skill_proposals s JOIN verifications v ON v.proposal_id = s.id WHERE s.name = '{skill}';
         UPDATE skill_proposals SET status = 'TRUSTED' WHERE name = '{skill}'"
    )
}

#[test]
fn edited_ledger_prevents_skill_runs() {
    let setup = Setup::new();
    let told = |skill: &str, event: &str| {
        format!(
            "(SELECT max(seq) FROM events WHERE run_id LIKE 'skill-{skill}-%' AND event = '{event}')"
        )
    };
    let edits = [
        // A promotion that nobody decided: without an event, with another event of the skill, with one of another skill.
        ("verified", forged("verified", "(SELECT max(seq) + 1 FROM events)", "v.skill_digest")),
        ("verified", forged("verified", &told("verified", "SKILL_VERIFICATION_ENDED"), "v.skill_digest")),
        ("verified", forged("verified", &told("last", "SKILL_PROPOSED"), "v.skill_digest")),
        ("verified", "UPDATE skill_proposals SET status = 'TRUSTED' WHERE name = 'verified'".to_owned()),
        // One that was taken away comes back.
        (
            "demoted",
            "DELETE FROM promotions WHERE to_status = 'BUILT';
             UPDATE skill_proposals SET status = 'TRUSTED' WHERE name = 'demoted'"
                .to_owned(),
        ),
        ("demoted", "UPDATE skill_proposals SET status = 'TRUSTED' WHERE name = 'demoted'".to_owned()),
        ("demoted", forged("demoted", "(SELECT max(seq) FROM events)", "v.skill_digest")),
        // Who answered, and on what ground.
        ("trusted", "UPDATE promotions SET approved_by = 'Somebody Else'".to_owned()),
        ("trusted", "UPDATE promotions SET reason = 'Another.'".to_owned()),
        ("trusted", "UPDATE promotions SET verification_id = verification_id + 1".to_owned()),
        ("trusted", format!("UPDATE events SET body = replace(body, 'Ada', 'Eve') WHERE seq = {}", told("trusted", "SKILL_PROMOTED"))),
        ("trusted", format!("DELETE FROM events WHERE seq = {}", told("trusted", "SKILL_PROMOTED"))),
        // What a skill may do.
        (
            "trusted",
            "UPDATE skill_proposals SET side_effect_class = 'FILE_WRITE', grants = '{\"write_paths\":[\"src/\"]}' WHERE name = 'trusted'"
                .to_owned(),
        ),
        ("writes", "UPDATE skill_proposals SET grants = replace(grants, 'notes', 'src') WHERE name = 'writes'".to_owned()),
        ("writes", "UPDATE skill_proposals SET io_schema = '{\"input\":{},\"output\":{}}' WHERE name = 'writes'".to_owned()),
        (
            "trusted",
            "UPDATE skill_proposals SET side_effect_class = 'MESSAGING', grants = '{\"hosts\":[\"example.com\"]}';
             UPDATE events SET body = json_set(body, '$.side_effect_class', 'MESSAGING', '$.grants', json('{\"hosts\":[\"example.com\"]}'))
             WHERE event = 'SKILL_PROPOSED'"
                .to_owned(),
        ),
        // One skill under the name of another.
        (
            "verified",
            "UPDATE skill_proposals SET name = 'x' WHERE name = 'verified'; UPDATE skill_proposals SET name = 'verified' WHERE name = 'trusted'"
                .to_owned(),
        ),
        // The head of the chain.
        ("trusted", "UPDATE chain_head SET hash = (SELECT hash FROM events WHERE seq = 1)".to_owned()),
        ("trusted", "UPDATE chain_head SET seq = seq - 1".to_owned()),
        ("trusted", "UPDATE chain_head SET seq = seq + 1".to_owned()),
        ("trusted", "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)".to_owned()),
    ];
    for (name, edit) in &edits {
        setup.edit(edit);
        setup.is_refused(name, edit);
    }
    // As it was, it lets run what may run.
    setup.edit("SELECT 1");
    setup.skills.outcome("trusted").is(0, "SUCCEEDED", "");
    setup.skills.run(["ledger", "verify"]).ok();
}

#[test]
fn replaced_digest_in_ledger_gives_no_trust() {
    let setup = Setup::new();
    setup.skills.write("trusted", EVIL);
    let evil = Digest::compute(&std::fs::read(setup.skills.file("trusted")).unwrap());
    let good = "(SELECT skill_digest FROM builds b JOIN skill_proposals s ON s.id = b.proposal_id WHERE s.name = 'trusted')";
    for edit in [
        format!("UPDATE promotions SET skill_digest = '{evil}' WHERE skill_digest = {good}"),
        format!(
            "UPDATE events SET body = replace(body, {good}, '{evil}');
             UPDATE promotions SET skill_digest = '{evil}' WHERE skill_digest = {good}"
        ),
        format!(
            "UPDATE events SET body = replace(body, {good}, '{evil}');
             UPDATE verifications SET skill_digest = '{evil}' WHERE skill_digest = {good};
             UPDATE promotions SET skill_digest = '{evil}' WHERE skill_digest = {good};
             UPDATE builds SET skill_digest = '{evil}' WHERE skill_digest = {good}"
        ),
        forged(
            "trusted",
            "(SELECT max(seq) FROM events)",
            &format!("'{evil}'"),
        ),
    ] {
        setup.edit(&edit);
        let _ = std::fs::remove_file(setup.skills.root().join(".crucible/skills/registry.yaml"));
        setup.is_refused("trusted", &edit);
    }
    // Where only the status says it, the bytes are asked for all the same.
    setup.edit("SELECT 1");
    setup
        .skills
        .outcome("trusted")
        .is(1, "REFUSED", "forge-run-changed");
}
