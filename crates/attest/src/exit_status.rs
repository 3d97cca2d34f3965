//! The exit status and the hints of each error of this crate.

use crucible_model::Failure;

use crate::door::RefUpdateError;
use crate::error::AttestError;
use crate::policy::PolicyError;

impl From<AttestError> for Failure {
    fn from(error: AttestError) -> Self {
        match error {
            AttestError::Sandbox(error) => error.into(),
            AttestError::Fs(error) => error.into(),
            AttestError::Canonical(error) => error.into(),
            AttestError::Program(_) => {
                Self::usage(error.to_string()).hint("Install OpenSSH (Debian: apt-get install openssh-client).")
            }
            AttestError::NoKey { .. } | AttestError::PublicKey { .. } => Self::usage(error.to_string())
                .hint("Create a key with `crucible attest init`, or name one: `crucible config set --user attest.key FILE`."),
            AttestError::KeyExists { .. } => {
                Self::usage(error.to_string()).hint("`crucible attest key` prints its public half.")
            }
            AttestError::Failed { ref detail } if detail.contains("passphrase") => Self::refused(error.to_string())
                .hint("The key has a passphrase. Load it into an agent with `ssh-add KEY`, and name its public half: `crucible config set --user attest.key KEY.pub`."),
            AttestError::Failed { .. } | AttestError::OtherKey { .. } => Self::refused(error.to_string())
                .hint("Is the agent running, and is a hardware-backed key plugged in? `ssh-add -L` lists an agent's keys."),
        }
    }
}

impl From<PolicyError> for Failure {
    fn from(error: PolicyError) -> Self {
        Self::usage(error.to_string()).hint("docs/attest.md describes the policy.")
    }
}

impl From<RefUpdateError> for Failure {
    fn from(error: RefUpdateError) -> Self {
        Self::usage(error.to_string())
            .hint("Install `crucible attest door` as a git hook; docs/attest.md shows how.")
    }
}
