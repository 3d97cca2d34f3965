//! Signed statements about landed commits: made when a run lands, and judged wherever the commits are.
//!
//! `change` derives the statement from the run's record, `landing` signs it before the commit is made and keeps it as a
//! note, `commits` judges commits of any repository, `run_claims` lets a run count once at the door, `approval` records
//! approvals of people, and `carry` attests a rewritten commit with the same tree and the same parent.
//!
//! What always holds: the commit is known before it is made, so a statement is signed first. Where a signature is
//! required, a failure leaves the repository as it is.

mod approval;
mod carry;
mod change;
mod commits;
mod door_gates;
mod landing;
mod run_claims;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_attest::{AttestError, Signer, key_in};
use crucible_host::env::Environment;
use crucible_model::Failure;
use crucible_sandbox::Sandbox;
use crucible_settings::Settings;

pub use approval::{ApprovalDocument, ApprovalSource, ApprovalVersion, approve};
pub use carry::carry;
pub use commits::{CheckedCommit, CommitsCheck, check_commits, check_push, read_note};
pub use door_gates::rerun_gates;
pub use landing::push_notes;
pub(crate) use landing::{LandingSigner, write_note};
pub use run_claims::claim_runs;

/// The directory of Crucible's own key, in its home.
const KEYS: &str = "attest";

/// Who signs what lands.
pub struct Signing {
    signer: Option<Signer>,
    is_required: bool,
    signs_commits: bool,
}

impl Signing {
    /// Signs nothing and requires nothing: for repositories that belong to Crucible alone.
    #[must_use]
    pub const fn off() -> Self {
        Self {
            signer: None,
            is_required: false,
            signs_commits: false,
        }
    }

    /// Opens the key that the settings name, or else the one of `crucible attest init` in `home`.
    ///
    /// # Errors
    ///
    /// Fails if a named key cannot be used, if the key of `crucible attest init` is gone, or if a signature is required and
    /// there is no key.
    pub fn configured(
        settings: &Settings,
        sandbox: Arc<Sandbox>,
        env: &Environment,
        home: &Path,
    ) -> Result<Self, Failure> {
        let signs_commits = settings.attest.sign_commits;
        let is_required = settings.attest.required || signs_commits;
        let own = key_in(&key_directory(home));
        let key = match &settings.attest.key {
            Some(named) => Some(env.working_directory().join(named)),
            None if own.is_file() => Some(own),
            // A directory without a key means that the key is gone, and a landing must not silently become unsigned.
            None if is_required || key_directory(home).is_dir() => {
                return Err(AttestError::NoKey { path: own }.into());
            }
            None => None,
        };
        let signer = key
            .map(|key| Signer::open(sandbox, env, &key))
            .transpose()?;
        Ok(Self {
            signer,
            is_required,
            signs_commits,
        })
    }

    /// Returns the signer.
    ///
    /// # Errors
    ///
    /// Fails if there is no key.
    pub fn signer(&self, home: &Path) -> Result<&Signer, Failure> {
        self.signer.as_ref().ok_or_else(|| {
            AttestError::NoKey {
                path: key_in(&key_directory(home)),
            }
            .into()
        })
    }
}

/// Returns the directory of Crucible's own key.
#[must_use]
pub fn key_directory(home: &Path) -> PathBuf {
    home.join(KEYS)
}
