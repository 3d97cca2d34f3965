//! Approvals: signatures of people over the plan of a run.
//!
//! An approval is made in a namespace of its own, so it is neither a statement nor a commit. It names the run, the digest of
//! the plan and the commit that the change is made on, so it is valid for no other. Two commits with one base and one run
//! are found by [`judge_repeated_runs`](crate::judge_repeated_runs), so an approval counts for one change.

use crucible_model::{Digest, RunId};
use serde::{Deserialize, Serialize};

use crate::base64;
use crate::public_key::PublicKey;
use crate::signature::SshSignature;

/// The namespace of approvals.
pub const APPROVAL_NAMESPACE: &str = "crucible-approval";

/// What a person approves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovedPlan<'a> {
    /// The run.
    pub run: &'a RunId,
    /// The digest of its plan.
    pub plan: &'a Digest,
    /// The full name of the commit that the change is made on.
    pub base: &'a str,
}

impl ApprovedPlan<'_> {
    /// Returns the bytes that an approval signs.
    #[must_use]
    pub fn message(&self) -> Vec<u8> {
        let Self { run, plan, base } = self;
        format!("crucible-approval-v1\nrun {run}\nplan {plan}\nbase {base}\n").into_bytes()
    }
}

/// A person's approval of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The fingerprint of the key. It selects a key of the policy and proves nothing.
    pub keyid: String,
    /// The SSH signature of [`ApprovedPlan::message`], in base64.
    pub sig: String,
}

impl Approval {
    pub(crate) fn new(key: &PublicKey, signature: &SshSignature) -> Self {
        Self {
            keyid: key.fingerprint(),
            sig: base64::encode(&signature.to_bytes()),
        }
    }

    /// Returns whether the key with this fingerprint signed it, for this plan. Whose key that is, only a policy can say.
    #[must_use]
    pub fn is_signed(&self, plan: &ApprovedPlan<'_>) -> bool {
        let key = self.signature().and_then(|signature| signature.named_key());
        key.is_some_and(|key| self.verifies(&key, plan))
    }

    fn signature(&self) -> Option<SshSignature> {
        base64::decode(&self.sig).and_then(|bytes| SshSignature::from_bytes(&bytes))
    }

    /// Returns whether `key` approved this plan.
    #[must_use]
    pub fn verifies(&self, key: &PublicKey, plan: &ApprovedPlan<'_>) -> bool {
        self.keyid == key.fingerprint()
            && self.signature().is_some_and(|signature| {
                signature.verifies(key, APPROVAL_NAMESPACE, &plan.message())
            })
    }
}
