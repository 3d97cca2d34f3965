//! Approvals: signatures of people over the plan of a run.
//!
//! An approval is made in a namespace of its own, so it is neither a statement nor a commit. It names the run and the digest
//! of the plan, so it is valid for no other.

use crucible_model::{Digest, RunId};
use serde::{Deserialize, Serialize};

use crate::base64;
use crate::public_key::PublicKey;
use crate::signature::SshSignature;

/// The namespace of approvals.
pub const APPROVAL_NAMESPACE: &str = "crucible-approval";

/// A person's approval of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The fingerprint of the key. It selects a key of the policy and proves nothing.
    pub keyid: String,
    /// The SSH signature of [`approval_message`], in base64.
    pub sig: String,
}

impl Approval {
    pub(crate) fn new(key: &PublicKey, signature: &SshSignature) -> Self {
        Self {
            keyid: key.fingerprint(),
            sig: base64::encode(&signature.to_bytes()),
        }
    }

    /// Returns whether the key with this fingerprint signed it, for this plan of this run. Whose key that is, only a policy
    /// can say.
    #[must_use]
    pub fn is_signed(&self, run: &RunId, plan: &Digest) -> bool {
        let key = self.signature().and_then(|signature| signature.named_key());
        key.is_some_and(|key| self.verifies(&key, run, plan))
    }

    fn signature(&self) -> Option<SshSignature> {
        base64::decode(&self.sig).and_then(|bytes| SshSignature::from_bytes(&bytes))
    }

    /// Returns whether `key` approved this plan of this run.
    #[must_use]
    pub fn verifies(&self, key: &PublicKey, run: &RunId, plan: &Digest) -> bool {
        self.keyid == key.fingerprint()
            && self.signature().is_some_and(|signature| {
                signature.verifies(key, APPROVAL_NAMESPACE, &approval_message(run, plan))
            })
    }
}

/// Returns the bytes that an approval signs.
#[must_use]
pub fn approval_message(run: &RunId, plan: &Digest) -> Vec<u8> {
    format!("crucible-approval-v1\nrun {run}\nplan {plan}\n").into_bytes()
}
