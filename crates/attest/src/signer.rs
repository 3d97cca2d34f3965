//! Signs with `ssh-keygen`, which reads the key file, asks an agent, or asks a hardware-backed key.
//!
//! Crucible never reads a private key. Only `ssh-keygen` gets the agent's socket; it is started with an environment
//! of its own. Every signature is verified with the public key before it is used.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_host::fs::{create_dir_all, read_regular_up_to, set_mode};
use crucible_model::ByteLimit;
use crucible_sandbox::{Completed, End, Limits, Redaction, Sandbox, Spawn, Stdin};

use crate::approval::{APPROVAL_NAMESPACE, Approval, ApprovedPlan};
use crate::bundle::Bundle;
use crate::dsse::{Envelope, PAYLOAD_TYPE, pre_authentication_encoding};
use crate::error::AttestError;
use crate::public_key::{KeyError, PublicKey};
use crate::signature::{COMMIT_NAMESPACE, STATEMENT_NAMESPACE, SshSignature};

/// The largest public key file in bytes.
const MAX_KEY: ByteLimit = ByteLimit(64 << 10);
/// Time for one signature; a hardware-backed key waits for a touch.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The name of the key that [`create_key`] makes.
const KEY_NAME: &str = "signing_key";
/// The variables that `ssh-keygen` gets, if they are set.
const VARIABLES: [&str; 4] = ["PATH", "HOME", "SSH_AUTH_SOCK", "SSH_SK_PROVIDER"];

/// Signs statements with one key.
pub struct Signer {
    program: Program,
    key: PathBuf,
    public: PublicKey,
}

struct Program {
    sandbox: Arc<Sandbox>,
    path: PathBuf,
    env: Vec<(OsString, OsString)>,
}

impl Signer {
    /// Opens the key at `key`: a private key with its public half beside it, or a public key whose private half an
    /// agent holds.
    ///
    /// # Errors
    ///
    /// Fails if `ssh-keygen` or the key is missing, or the public key cannot be read.
    pub fn open(sandbox: Arc<Sandbox>, env: &Environment, key: &Path) -> Result<Self, AttestError> {
        let program = Program::find(sandbox, env)?;
        if !key.is_file() {
            return Err(AttestError::NoKey {
                path: key.to_owned(),
            });
        }
        let mut public_path = key.as_os_str().to_owned();
        public_path.push(".pub");
        let public_path = PathBuf::from(public_path);
        let place = if public_path.is_file() {
            &public_path
        } else {
            key
        };
        let failed = |why: String| AttestError::PublicKey {
            path: key.to_owned(),
            why,
        };
        let bytes =
            read_regular_up_to(place, MAX_KEY).map_err(|error| failed(error.to_string()))?;
        // The text may be a private key, so it is never quoted.
        let invalid = || {
            failed(format!(
                "{} is not a public key of OpenSSH; write it with `ssh-keygen -y -f KEY`",
                place.display()
            ))
        };
        let text = String::from_utf8(bytes).map_err(|_| invalid())?;
        let public = text.parse().map_err(|error| match error {
            KeyError::Invalid { .. } => invalid(),
            other => failed(other.to_string()),
        })?;
        Ok(Self {
            program,
            key: key.to_owned(),
            public,
        })
    }

    /// Returns the public key.
    #[must_use]
    pub const fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Signs a statement.
    ///
    /// # Errors
    ///
    /// Fails if `ssh-keygen` does, or if its signature is not by this key.
    pub async fn sign(&self, payload: &[u8]) -> Result<Bundle, AttestError> {
        let message = pre_authentication_encoding(PAYLOAD_TYPE, payload);
        let signature = self.signature(STATEMENT_NAMESPACE, message).await?;
        Ok(Bundle::new(Envelope::new(
            payload,
            &self.public,
            &signature,
        )))
    }

    /// Approves the plan of a run.
    ///
    /// # Errors
    ///
    /// Those of [`Signer::sign`].
    pub async fn approve(&self, plan: &ApprovedPlan<'_>) -> Result<Approval, AttestError> {
        let signature = self.signature(APPROVAL_NAMESPACE, plan.message()).await?;
        Ok(Approval::new(&self.public, &signature))
    }

    /// Signs a commit as `git commit -S` does. Returns the text form, the value of the header `gpgsig`.
    ///
    /// # Errors
    ///
    /// Those of [`Signer::sign`].
    pub async fn sign_commit(&self, commit: &[u8]) -> Result<String, AttestError> {
        let signature = self.signature(COMMIT_NAMESPACE, commit.to_vec()).await?;
        Ok(signature.to_armor())
    }

    async fn signature(
        &self,
        namespace: &str,
        message: Vec<u8>,
    ) -> Result<SshSignature, AttestError> {
        let words = ["-Y", "sign", "-n", namespace, "-f"].map(OsString::from);
        let words = words.into_iter().chain([self.key.clone().into()]).collect();
        let output = self.program.run(words, message.clone()).await?;
        std::str::from_utf8(&output.stdout.bytes)
            .ok()
            .and_then(SshSignature::from_armor)
            .and_then(|signature| signature.canonical(&self.public))
            .filter(|signature| signature.verifies(&self.public, namespace, &message))
            .ok_or_else(|| AttestError::OtherKey {
                fingerprint: self.public.fingerprint(),
            })
    }

    /// Signs statements and returns them as the lines of a note.
    ///
    /// # Errors
    ///
    /// Those of [`Signer::sign`].
    pub async fn sign_all(&self, payloads: &[Vec<u8>]) -> Result<Vec<u8>, AttestError> {
        let mut note = Vec::new();
        for payload in payloads {
            note.extend(self.sign(payload).await?.to_line()?);
        }
        Ok(note)
    }
}

/// Returns the path of the key that [`create_key`] makes in a directory.
#[must_use]
pub fn key_in(directory: &Path) -> PathBuf {
    directory.join(KEY_NAME)
}

/// Creates an Ed25519 key without a passphrase in a directory that only the user can read.
///
/// # Errors
///
/// Fails if there is a key already, or if `ssh-keygen` fails.
pub async fn create_key(
    sandbox: Arc<Sandbox>,
    env: &Environment,
    directory: &Path,
) -> Result<Signer, AttestError> {
    let program = Program::find(Arc::clone(&sandbox), env)?;
    let key = key_in(directory);
    if key.symlink_metadata().is_ok() {
        return Err(AttestError::KeyExists { path: key });
    }
    create_dir_all(directory)?;
    set_mode(directory, 0o700)?;
    let mut words = ["-q", "-t", "ed25519", "-N", "", "-C", "crucible", "-f"]
        .map(OsString::from)
        .to_vec();
    words.push(key.clone().into());
    program.run(words, Vec::new()).await?;
    set_mode(&key, 0o600)?;
    Signer::open(sandbox, env, &key)
}

impl Program {
    fn find(sandbox: Arc<Sandbox>, env: &Environment) -> Result<Self, AttestError> {
        let path = env.find_program("ssh-keygen")?;
        let set = VARIABLES
            .iter()
            .filter_map(|name| Some(((*name).into(), env.get_os(name)?.to_owned())));
        let env = set.chain([("LC_ALL".into(), "C".into())]).collect();
        Ok(Self { sandbox, path, env })
    }

    async fn run(&self, args: Vec<OsString>, stdin: Vec<u8>) -> Result<Completed, AttestError> {
        let spawn = Spawn {
            args,
            env: self.env.clone(),
            stdin: Stdin::Bytes(stdin),
            redaction: Redaction::OnlyStderr,
            ..Spawn::new(&self.path, "/", Limits::new(TIMEOUT))
        };
        let completed = self.sandbox.run(spawn).await?;
        if completed.end == End::Exited(0) {
            return Ok(completed);
        }
        let stderr = completed.stderr.text().trim().to_owned();
        let detail = match completed.end {
            End::TimedOut => format!("no signature within {} s", TIMEOUT.as_secs()),
            _ if stderr.is_empty() => format!("{:?}", completed.end),
            _ => stderr,
        };
        Err(AttestError::Failed { detail })
    }
}
