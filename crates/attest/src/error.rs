//! Why a statement could not be signed, or a key not be created.

use std::path::PathBuf;

use crucible_host::env::ProgramError;
use crucible_host::fs::FsError;
use crucible_model::CanonicalError;
use crucible_sandbox::SandboxError;

/// Signing failed.
#[derive(Debug, thiserror::Error)]
pub enum AttestError {
    /// `ssh-keygen` is missing.
    #[error("cannot sign: {0}")]
    Program(#[from] ProgramError),
    /// There is no key at this path.
    #[error("there is no signing key at {}", path.display())]
    NoKey {
        /// The path.
        path: PathBuf,
    },
    /// The public half of the key cannot be read.
    #[error("cannot read the public key of {}: {why}", path.display())]
    PublicKey {
        /// The path of the key.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// There is a key already.
    #[error("{} already exists; it was not overwritten", path.display())]
    KeyExists {
        /// The path.
        path: PathBuf,
    },
    /// `ssh-keygen` failed.
    #[error("ssh-keygen failed: {detail}")]
    Failed {
        /// What it printed, or how it ended.
        detail: String,
    },
    /// What `ssh-keygen` returned is not a signature by the expected key.
    #[error("ssh-keygen returned something other than a signature by {fingerprint}")]
    OtherKey {
        /// The expected key.
        fingerprint: String,
    },
    /// `ssh-keygen` could not be started.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A file could not be written.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// A statement cannot be written as JSON.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
}
