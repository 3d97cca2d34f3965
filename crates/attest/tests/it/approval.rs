//! A policy can require that several people approved the plan.

use crucible_attest::{ApprovedPlan, Change, Policy};
use crucible_model::{Digest, RunId};

use crate::sample::{AT, Sample, change, codes, instant, judge, new_signer};

/// A change with the approvals of these keys, and the policy that names them.
struct Setup {
    sample: Sample,
    approvers: String,
}

impl Setup {
    async fn new(edit: impl FnOnce(&mut Change)) -> Self {
        let temp_dir = tempfile::tempdir().unwrap();
        let signer = new_signer(temp_dir.path()).await;
        let mut change = change();
        let mut approvers = String::new();
        for name in ["ada", "bob"] {
            let person = new_signer(&temp_dir.path().join(name)).await;
            let plan = ApprovedPlan {
                run: &change.run,
                plan: &change.plan.plan,
                base: &change.base,
            };
            let approval = person.approve(&plan).await.unwrap();
            change.approvals.push(approval);
            approvers.push_str(&format!(
                "[[approvers]]\nname = \"{name}\"\nkey = \"{}\"\n",
                person.public_key()
            ));
        }
        edit(&mut change);
        let sample = Sample::signed_by(change, &signer, temp_dir).await;
        Self { sample, approvers }
    }

    fn codes(&self, approvers: &str, required: u32) -> Vec<String> {
        let policy = format!(
            "{}{approvers}[require]\napprovals = {required}\n",
            self.sample.policy
        );
        codes(&judge(
            &policy,
            &self.sample.commit,
            &self.sample.note,
            instant(AT),
        ))
    }
}

const MISSING: [&str; 1] = ["attest-approvals-missing"];

#[tokio::test]
async fn distinct_people_are_counted() {
    let setup = Setup::new(|_| {}).await;
    let both = setup.approvers.clone();
    assert_eq!(setup.codes(&both, 2), [""; 0]);
    // Two keys of one person are one person, and a key that the policy does not name is nobody.
    let same = both.replace("\"bob\"", "\"ada\"");
    assert_eq!(setup.codes(&format!("{same}{}", third().await), 2), MISSING);
    let (one, _) = both.split_at(both.rfind("[[approvers]]").unwrap());
    assert_eq!(setup.codes(one, 1), [""; 0]);
    assert_eq!(setup.codes(&format!("{one}{}", third().await), 2), MISSING);
    // A key that is no longer valid does not count.
    let expired = format!("{one}valid_until = \"2026-01-01T00:00:00Z\"\n");
    assert_eq!(setup.codes(&expired, 1), MISSING);
}

#[tokio::test]
async fn repeated_or_foreign_approval_does_not_count() {
    let doubled = Setup::new(|change| change.approvals[1] = change.approvals[0].clone()).await;
    assert_eq!(doubled.codes(&doubled.approvers, 2), MISSING);
    let none = Setup::new(|change| change.approvals.clear()).await;
    assert_eq!(none.codes(&none.approvers, 1), MISSING);
    assert_eq!(none.codes(&none.approvers, 0), [""; 0]);
    type Edit = fn(&mut Change);
    let edits: [Edit; 6] = [
        |change| change.approvals[1].keyid = change.approvals[0].keyid.clone(),
        |change| change.approvals[1].sig = change.approvals[0].sig.clone(),
        |change| change.approvals[1].sig.clear(),
        // An approval of another plan, of another run, and of a change on another base.
        |change| change.base = "c".repeat(40),
        |change| change.plan.plan = Digest::compute(b"another plan"),
        |change| change.run = "20261127-093001-abcdef".parse::<RunId>().unwrap(),
    ];
    for (at, edit) in edits.into_iter().enumerate() {
        let setup = Setup::new(edit).await;
        assert_eq!(setup.codes(&setup.approvers, 2), MISSING, "{at}");
    }
}

#[tokio::test]
async fn unsatisfiable_policy_is_invalid() {
    let setup = Setup::new(|_| {}).await;
    for (approvers, required) in [("", 1), (setup.approvers.as_str(), 3)] {
        let text = format!(
            "{}{approvers}[require]\napprovals = {required}\n",
            setup.sample.policy
        );
        let error = Policy::parse(&text).unwrap_err().to_string();
        assert!(error.contains("[[approvers]]"), "{error}");
    }
}

/// Another person of the policy, who approved nothing.
async fn third() -> String {
    let temp_dir = tempfile::tempdir().unwrap();
    let signer = new_signer(temp_dir.path()).await;
    format!(
        "[[approvers]]\nname = \"eve\"\nkey = \"{}\"\n",
        signer.public_key()
    )
}
