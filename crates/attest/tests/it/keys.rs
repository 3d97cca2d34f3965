//! Signatures of each kind of key, made by `ssh-keygen` and by an agent.

use std::path::Path;
use std::process::{Command, Stdio};

use crucible_attest::{
    AttestError, COMMIT_NAMESPACE, PublicKey, STATEMENT_NAMESPACE, Signer, SshSignature, create_key,
};
use crucible_host::env::Environment;

use crate::sample::{Sample, change, codes, env, new_signer, policy_of, sandbox, ssh_keygen};

/// A new key of a kind, and its public half.
fn key(scratch_dir: &Path, name: &str, kind: &[&str]) -> (std::path::PathBuf, PublicKey) {
    let path = scratch_dir.join(name);
    let mut words = vec!["-q", "-N", "", "-f", path.to_str().unwrap()];
    words.extend(kind);
    ssh_keygen(&words);
    let public = std::fs::read_to_string(path.with_extension("pub")).unwrap();
    (path, public.parse().unwrap())
}

pub(crate) fn sign(key: &Path, namespace: &str, hash: &str, message: &[u8]) -> SshSignature {
    let mut child = Command::new("ssh-keygen")
        .args([
            "-Y",
            "sign",
            "-n",
            namespace,
            "-O",
            &format!("hashalg={hash}"),
            "-f",
        ])
        .arg(key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), message).unwrap();
    let output = child.wait_with_output().unwrap();
    SshSignature::from_armor(std::str::from_utf8(&output.stdout).unwrap()).unwrap()
}

#[test]
fn unsupported_key_is_refused_with_its_reason() {
    let temp_dir = tempfile::tempdir().unwrap();
    for (name, kind, shown) in [
        (
            "p521",
            &["-t", "ecdsa", "-b", "521"],
            "ecdsa-sha2-nistp521 is not supported",
        ),
        ("rsa", &["-t", "rsa", "-b", "1024"], "this one has 1024"),
    ] {
        let path = temp_dir.path().join(name);
        let mut words = vec!["-q", "-N", "", "-f", path.to_str().unwrap()];
        words.extend(kind);
        ssh_keygen(&words);
        let public = std::fs::read_to_string(path.with_extension("pub")).unwrap();
        let error = public.parse::<PublicKey>().unwrap_err().to_string();
        assert!(error.contains(shown), "{error}");
        let error = Signer::open(sandbox(), &env(), &path)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(shown), "{error}");
    }
    assert!(
        key(temp_dir.path(), "long", &["-t", "rsa", "-b", "2048"])
            .1
            .to_string()
            .starts_with("ssh-rsa")
    );
}

#[tokio::test]
async fn key_with_passphrase_is_refused_with_hint() {
    let temp_dir = tempfile::tempdir().unwrap();
    let path = temp_dir.path().join("locked");
    ssh_keygen(&[
        "-q",
        "-t",
        "ed25519",
        "-N",
        "secret",
        "-f",
        path.to_str().unwrap(),
    ]);
    let signer = Signer::open(sandbox(), &env(), &path).unwrap();
    let failure = crucible_model::Failure::from(signer.sign(b"{}").await.unwrap_err());
    let hints = format!("{:?}", failure.hints);
    assert!(
        hints.contains("passphrase") && hints.contains("ssh-add"),
        "{failure:?}"
    );
}

#[test]
fn signatures_of_every_kind_are_verified() {
    let temp_dir = tempfile::tempdir().unwrap();
    let kinds: [(&str, &[&str]); 4] = [
        ("ed25519", &["-t", "ed25519"]),
        ("p256", &["-t", "ecdsa", "-b", "256"]),
        ("p384", &["-t", "ecdsa", "-b", "384"]),
        ("rsa", &["-t", "rsa", "-b", "3072"]),
    ];
    let keys: Vec<_> = kinds
        .iter()
        .map(|(name, kind)| key(temp_dir.path(), name, kind))
        .collect();
    for (path, public) in &keys {
        let output = Command::new("ssh-keygen")
            .args(["-l", "-f"])
            .arg(path)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.split(' ').nth(1), Some(public.fingerprint().as_str()));
        for hash in ["sha256", "sha512"] {
            // Some ECDSA numbers are shorter than others.
            for round in 0..20 {
                let message = format!("message {round}");
                let signature = sign(path, STATEMENT_NAMESPACE, hash, message.as_bytes());
                assert!(
                    signature.verifies(public, STATEMENT_NAMESPACE, message.as_bytes()),
                    "{public}"
                );
                assert!(!signature.verifies(public, COMMIT_NAMESPACE, message.as_bytes()));
                assert!(!signature.verifies(public, STATEMENT_NAMESPACE, b"other"));
                for (_, other) in keys.iter().filter(|(_, other)| other != public) {
                    assert!(!signature.verifies(other, STATEMENT_NAMESPACE, message.as_bytes()));
                }
                let bytes = signature.to_bytes();
                assert_eq!(SshSignature::from_bytes(&bytes), Some(signature.clone()));
                assert_eq!(
                    SshSignature::from_armor(&signature.to_armor()),
                    Some(signature)
                );
                assert_eq!(SshSignature::from_bytes(&bytes[..bytes.len() - 1]), None);
                if public.to_string().starts_with("ssh-rsa") && round > 2 {
                    break;
                }
            }
        }
    }
}

#[tokio::test]
async fn created_key_is_private_and_kept() {
    use std::os::unix::fs::PermissionsExt;
    let temp_dir = tempfile::tempdir().unwrap();
    let signer = new_signer(temp_dir.path()).await;
    let mode = |path: &str| {
        std::fs::metadata(temp_dir.path().join(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!((mode("key"), mode("key/signing_key")), (0o700, 0o600));
    let second_signer = create_key(sandbox(), &env(), &temp_dir.path().join("key")).await;
    assert!(matches!(second_signer, Err(AttestError::KeyExists { .. })));
    let reopened =
        Signer::open(sandbox(), &env(), &temp_dir.path().join("key/signing_key")).unwrap();
    assert_eq!(reopened.public_key(), signer.public_key());
}

/// An agent that ends with the test.
struct Agent(std::process::Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn ssh_agent_signs_with_key_not_on_disk() {
    let temp_dir = tempfile::tempdir().unwrap();
    let socket = temp_dir.path().join("agent");
    let child = Command::new("ssh-agent")
        .arg("-D")
        .arg("-a")
        .arg(&socket)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let _agent = Agent(child);
    let (path, public) = key(temp_dir.path(), "key", &["-t", "ed25519"]);
    while !socket.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let added = Command::new("ssh-add")
        .arg("-q")
        .arg(&path)
        .env("SSH_AUTH_SOCK", &socket)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(added.success());
    std::fs::remove_file(&path).unwrap();
    let vars = [
        ("PATH", std::env::var_os("PATH").unwrap()),
        ("SSH_AUTH_SOCK", socket.clone().into_os_string()),
    ];
    let with_agent = Environment::from_pairs(vars, "/");
    let public_path = path.with_extension("pub");
    let signer = Signer::open(sandbox(), &with_agent, &public_path).unwrap();
    assert_eq!(*signer.public_key(), public);
    let sample = Sample::signed_by(change(), &signer, temp_dir).await;
    assert_eq!(codes(&sample.judge()), Vec::<String>::new());
    // Without the agent there is no signature.
    let signer = Signer::open(sandbox(), &env(), &public_path).unwrap();
    assert!(matches!(
        signer.sign(b"{}").await,
        Err(AttestError::Failed { .. })
    ));
}

#[tokio::test]
async fn private_key_text_is_never_quoted() {
    let temp_dir = tempfile::tempdir().unwrap();
    let (path, _) = key(temp_dir.path(), "key", &["-t", "ed25519"]);
    std::fs::remove_file(path.with_extension("pub")).unwrap();
    let error = Signer::open(sandbox(), &env(), &path)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("is not a public key") && !error.contains("BEGIN"),
        "{error}"
    );
    let missing = Signer::open(sandbox(), &env(), &temp_dir.path().join("none"))
        .err()
        .unwrap();
    assert!(matches!(missing, AttestError::NoKey { .. }));
}

#[tokio::test]
async fn signer_outside_policy_is_refused() {
    let sample = Sample::new(change()).await;
    let other = new_signer(&sample.room.path().join("other")).await;
    let judged = crate::sample::judge(
        &policy_of(&other),
        &sample.commit,
        &sample.note,
        crate::sample::instant(crate::sample::AT),
    );
    assert_eq!(codes(&judged), ["attest-signer-unknown"]);
}
