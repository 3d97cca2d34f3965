//! A commit with its note, and the policy that admits it.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crucible_attest::{
    Change, CommitFacts, CommitJudgement, GateIsolationLevel, GateResult, GateVerdict, LedgerHead,
    MergeKind, NoteRead, PlanApproval, Policy, Producer, Signer, Verification, create_key,
    judge_commit, statements,
};
use crucible_host::env::Environment;
use crucible_model::{Digest, Timestamp};
use crucible_sandbox::Sandbox;

/// When the sample landed.
pub(crate) const AT: &str = "2026-11-27T09:30:00.000Z";

/// A landed commit with everything around it.
pub(crate) struct Sample {
    pub(crate) change: Change,
    pub(crate) commit: Vec<u8>,
    pub(crate) id: String,
    pub(crate) tree: String,
    pub(crate) note: Vec<u8>,
    pub(crate) policy: String,
    pub(crate) room: tempfile::TempDir,
}

pub(crate) fn env() -> Environment {
    let path = std::env::var_os("PATH").unwrap();
    Environment::from_pairs([("PATH", path)], "/")
}

pub(crate) fn sandbox() -> Arc<Sandbox> {
    Arc::new(Sandbox::new(None, &env()))
}

pub(crate) fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The name that git gives to a commit.
pub(crate) fn name_of(commit: &[u8]) -> String {
    let head = format!("commit {}\0", commit.len());
    let digest = ring::digest::digest(
        &ring::digest::SHA1_FOR_LEGACY_USE_ONLY,
        &[head.as_bytes(), commit].concat(),
    );
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

pub(crate) fn change() -> Change {
    let digest = |text: &str| Digest::compute(text.as_bytes());
    let gate = |id: &str, isolation| GateResult {
        id: id.to_owned(),
        result: GateVerdict::Passed,
        isolation,
        fixed: Some(1),
        added: None,
    };
    Change {
        run: "20261127-093000-abcdef".parse().unwrap(),
        goal: digest("goal"),
        base: "b".repeat(40),
        request: Some(digest("request")),
        pack: Some(digest("pack")),
        calls: vec![crucible_attest::Call {
            role: "patchmaker".to_owned(),
            provider: "gateway".to_owned(),
            model: "m".to_owned(),
            result: GateVerdict::Passed,
            record: Some(digest("record")),
            tokens_in: Some(100),
            tokens_out: Some(20),
            micro_dollars: Some(7),
        }],
        agents: Vec::new(),
        plan: PlanApproval {
            plan: digest("plan"),
            approval: digest("approval"),
        },
        approvals: Vec::new(),
        accepted: Vec::new(),
        patch: digest("patch"),
        verification: Verification {
            report: digest("report"),
            result: GateVerdict::Passed,
            gates: vec![
                gate("patch_check", None),
                gate("tests", Some(GateIsolationLevel::Complete)),
            ],
            broken_change: Some(GateVerdict::Passed),
            strength: Some(crucible_attest::Strength {
                noticed: 9,
                mutants: 10,
            }),
        },
        spec: None,
        ledger: LedgerHead {
            seq: 41,
            hash: digest("head"),
        },
        producer: Producer::this(),
        created_at: instant(AT),
        carried_from: None,
    }
}

pub(crate) fn commit_of(change: &Change, tree: &str) -> Vec<u8> {
    format!(
        "tree {tree}\nparent {}\nauthor A <a@example.invalid> 1795771800 +0000\ncommitter A <a@example.invalid> \
         1795771800 +0000\n\nMultiply\n\nCrucible-Run: {}\nCrucible-Plan: {}\nCrucible-Verify: {}\nCrucible-Ledger: \
         {}:{}\n",
        change.base,
        change.run,
        change.plan.plan,
        change.verification.report,
        change.ledger.seq,
        change.ledger.hash
    )
    .into_bytes()
}

pub(crate) async fn new_signer(scratch_dir: &Path) -> Signer {
    create_key(sandbox(), &env(), &scratch_dir.join("key"))
        .await
        .unwrap()
}

pub(crate) fn policy_of(signer: &Signer) -> String {
    format!(
        "version = 1\n[[signers]]\nname = \"ada\"\nkey = \"{}\"\n",
        signer.public_key()
    )
}

impl Sample {
    pub(crate) async fn new(change: Change) -> Self {
        let temp_dir = tempfile::tempdir().unwrap();
        let signer = new_signer(temp_dir.path()).await;
        Self::signed_by(change, &signer, temp_dir).await
    }

    pub(crate) async fn signed_by(
        change: Change,
        signer: &Signer,
        temp_dir: tempfile::TempDir,
    ) -> Self {
        let tree = "7".repeat(40);
        let commit = commit_of(&change, &tree);
        let id = name_of(&commit);
        let payloads = statements(&change, &id, &tree).unwrap();
        let note = signer.sign_all(&payloads).await.unwrap();
        Self {
            change,
            commit,
            id,
            tree,
            note,
            policy: policy_of(signer),
            room: temp_dir,
        }
    }

    pub(crate) fn judge(&self) -> CommitJudgement {
        self.judge_at(AT)
    }

    pub(crate) fn judge_at(&self, now: &str) -> CommitJudgement {
        judge(&self.policy, &self.commit, &self.note, instant(now))
    }
}

pub(crate) fn judge(policy: &str, commit: &[u8], note: &[u8], now: Timestamp) -> CommitJudgement {
    judge_by(&Policy::parse(policy).unwrap(), commit, note, now)
}

/// Judges by a policy that was parsed before: most mutations leave it alone.
pub(crate) fn judge_by(
    policy: &Policy,
    commit: &[u8],
    note: &[u8],
    now: Timestamp,
) -> CommitJudgement {
    judge_carried(policy, commit, note, NoteRead::Missing, now)
}

/// Judges a commit whose note was carried over from the commit with this note.
pub(crate) fn judge_carried(
    policy: &Policy,
    commit: &[u8],
    note: &[u8],
    original_note: NoteRead<'_>,
    now: Timestamp,
) -> CommitJudgement {
    let id = name_of(commit);
    let facts = CommitFacts {
        id: &id,
        bytes: Some(commit),
        merge: MergeKind::Other,
        original_note,
    };
    judge_commit(policy, &facts, NoteRead::Bytes(note), now)
}

/// The codes of a judgement.
pub(crate) fn codes(judged: &CommitJudgement) -> Vec<String> {
    assert_eq!(
        judged.admission.is_some(),
        judged.verdict.passes(),
        "{judged:?}"
    );
    let findings = judged.verdict.findings().iter();
    findings.map(|finding| finding.code.to_string()).collect()
}

/// Runs `ssh-keygen`.
pub(crate) fn ssh_keygen(words: &[&str]) {
    let output = Command::new("ssh-keygen").args(words).output().unwrap();
    assert!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
