//! Hardware-backed keys: signatures of an authenticator that the test is itself, and what OpenSSH and another library
//! say about them. And the two forms of an ECDSA signature.

use std::process::{Command, Stdio};

use crucible_attest::{
    Bundle, Envelope, PAYLOAD_TYPE, PublicKey, STATEMENT_NAMESPACE, Signer, SshSignature,
    pre_authentication_encoding, statements,
};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};

use crate::keys::sign;
use crate::sample::{
    AT, change, codes, commit_of, env, instant, judge, name_of, sandbox, ssh_keygen,
};

const TOUCHED: u8 = 1;
const VERIFIED: u8 = 4;

/// A device in software, with one key for `application`.
struct Authenticator {
    pair: Pair,
    application: &'static str,
}

enum Pair {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
}

fn put(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
    into.extend(bytes);
}

/// A positive number as the SSH protocol writes it.
fn put_number(into: &mut Vec<u8>, bytes: &[u8]) {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let digits = &bytes[zeros..];
    let sign: &[u8] = if digits[0] & 0x80 == 0 { &[] } else { &[0] };
    put(into, &[sign, digits].concat());
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    ring::digest::digest(&ring::digest::SHA256, bytes)
        .as_ref()
        .to_vec()
}

impl Authenticator {
    fn both() -> [Self; 2] {
        let random = SystemRandom::new();
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let p256 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pairs = [
            Pair::Ed25519(Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).unwrap()),
            Pair::P256(EcdsaKeyPair::from_pkcs8(algorithm, p256.as_ref(), &random).unwrap()),
        ];
        pairs.map(|pair| Self {
            pair,
            application: "ssh:",
        })
    }

    const fn name(&self) -> &'static str {
        match &self.pair {
            Pair::Ed25519(_) => "sk-ssh-ed25519@openssh.com",
            Pair::P256(_) => "sk-ecdsa-sha2-nistp256@openssh.com",
        }
    }

    fn blob(&self) -> Vec<u8> {
        let mut blob = Vec::new();
        put(&mut blob, self.name().as_bytes());
        match &self.pair {
            Pair::Ed25519(pair) => put(&mut blob, pair.public_key().as_ref()),
            Pair::P256(pair) => {
                put(&mut blob, b"nistp256");
                put(&mut blob, pair.public_key().as_ref());
            }
        }
        put(&mut blob, self.application.as_bytes());
        blob
    }

    fn public(&self) -> PublicKey {
        use base64::Engine as _;
        let blob = base64::engine::general_purpose::STANDARD.encode(self.blob());
        format!("{} {blob}", self.name()).parse().unwrap()
    }

    /// Signs as `ssh-keygen -Y sign` lets a device sign: the device hashes application and message, and adds its flags
    /// and its counter.
    fn sign(&self, application: &str, flags: u8, counter: u32, message: &[u8]) -> SshSignature {
        let mut data = b"SSHSIG".to_vec();
        for part in [
            STATEMENT_NAMESPACE.as_bytes(),
            b"",
            b"sha256",
            &sha256(message),
        ] {
            put(&mut data, part);
        }
        let mut signed = sha256(application.as_bytes());
        signed.push(flags);
        signed.extend(counter.to_be_bytes());
        signed.extend(sha256(&data));
        let content = match &self.pair {
            Pair::Ed25519(pair) => pair.sign(&signed).as_ref().to_vec(),
            Pair::P256(pair) => {
                let signature = pair.sign(&SystemRandom::new(), &signed).unwrap();
                let mut numbers = Vec::new();
                put_number(&mut numbers, &signature.as_ref()[..32]);
                put_number(&mut numbers, &signature.as_ref()[32..]);
                numbers
            }
        };
        let mut inner = Vec::new();
        put(&mut inner, self.name().as_bytes());
        put(&mut inner, &content);
        inner.push(flags);
        inner.extend(counter.to_be_bytes());
        wrapped(&self.blob(), &inner)
    }
}

/// The signature of a message in the namespace of statements.
fn wrapped(blob: &[u8], inner: &[u8]) -> SshSignature {
    let mut bytes = b"SSHSIG\0\0\0\x01".to_vec();
    for part in [blob, STATEMENT_NAMESPACE.as_bytes(), b"", b"sha256", inner] {
        put(&mut bytes, part);
    }
    SshSignature::from_bytes(&bytes).unwrap()
}

/// Whether `ssh-keygen -Y verify` accepts a signature.
fn openssh_accepts(key: &PublicKey, signature: &SshSignature, message: &[u8]) -> bool {
    let room = tempfile::tempdir().unwrap();
    let place = |name: &str| room.path().join(name);
    std::fs::write(place("signers"), format!("ada {key}\n")).unwrap();
    std::fs::write(place("sig"), signature.to_armor()).unwrap();
    let mut child = Command::new("ssh-keygen")
        .args(["-Y", "verify", "-I", "ada", "-n", STATEMENT_NAMESPACE, "-f"])
        .arg(place("signers"))
        .arg("-s")
        .arg(place("sig"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), message).unwrap();
    child.wait().unwrap().success()
}

/// Whether the crate `ssh-key` accepts a signature.
fn library_accepts(key: &PublicKey, signature: &SshSignature, message: &[u8]) -> bool {
    let key = ssh_key::PublicKey::from_openssh(&key.to_string()).unwrap();
    let signature = ssh_key::SshSig::from_pem(signature.to_armor()).unwrap();
    key.verify(STATEMENT_NAMESPACE, message, &signature).is_ok()
}

#[test]
fn touched_key_verifies_as_in_openssh() {
    let message = b"message";
    for device in Authenticator::both() {
        let public = device.public();
        for (flags, counter) in [(TOUCHED, 0), (TOUCHED, u32::MAX), (TOUCHED | VERIFIED, 7)] {
            let signature = device.sign(device.application, flags, counter, message);
            assert!(signature.verifies(&public, STATEMENT_NAMESPACE, message));
            assert!(openssh_accepts(&public, &signature, message));
            assert!(library_accepts(&public, &signature, message));
            assert!(!signature.verifies(&public, STATEMENT_NAMESPACE, b"other"));
        }
    }
}

/// `ssh-keygen -Y verify` accepts these, because it does not check the flags.
#[test]
fn hardware_signature_without_touch_is_refused() {
    let message = b"message";
    for device in Authenticator::both() {
        let public = device.public();
        for flags in [0, VERIFIED, 0xfe] {
            let signature = device.sign(device.application, flags, 1, message);
            assert!(!signature.verifies(&public, STATEMENT_NAMESPACE, message));
        }
    }
}

/// Flags, counter and application are signed, so none of them can be changed afterwards.
#[test]
fn changed_hardware_signature_is_refused() {
    let message = b"message";
    for device in Authenticator::both() {
        let public = device.public();
        let other_application = device.sign("ssh:other", TOUCHED, 1, message);
        assert!(!other_application.verifies(&public, STATEMENT_NAMESPACE, message));
        let untouched = device.sign(device.application, 0, 1, message).to_bytes();
        let honest = device
            .sign(device.application, TOUCHED, 1, message)
            .to_bytes();
        let end = honest.len();
        for (bytes, at, value) in [
            (&untouched, untouched.len() - 5, TOUCHED),
            (&honest, end - 5, TOUCHED | VERIFIED),
            (&honest, end - 1, 2),
        ] {
            let mut changed = bytes.clone();
            changed[at] = value;
            let changed = SshSignature::from_bytes(&changed).unwrap();
            assert!(!changed.verifies(&public, STATEMENT_NAMESPACE, message));
            assert!(!openssh_accepts(&public, &changed, message));
        }
        let [ed25519, p256] = Authenticator::both();
        for other in [ed25519, p256] {
            let signature = other.sign(other.application, TOUCHED, 1, message);
            assert!(!signature.verifies(&public, STATEMENT_NAMESPACE, message));
        }
    }
}

#[test]
fn policy_may_require_that_user_was_verified() {
    let change = change();
    let tree = "7".repeat(40);
    let commit = commit_of(&change, &tree);
    let payloads = statements(&change, &name_of(&commit), &tree).unwrap();
    for device in Authenticator::both() {
        let public = device.public();
        let note = |flags: u8| -> Vec<u8> {
            let lines = payloads.iter().map(|payload| {
                let message = pre_authentication_encoding(PAYLOAD_TYPE, payload);
                let signature = device.sign(device.application, flags, 1, &message);
                let signature = signature.canonical(&public).unwrap();
                Bundle::new(Envelope::new(payload, &public, &signature))
                    .to_line()
                    .unwrap()
            });
            lines.flatten().collect()
        };
        for (more, flags, expected) in [
            ("", TOUCHED, &[][..]),
            ("", 0, &["attest-signature-invalid"]),
            ("user_verified = true\n", TOUCHED | VERIFIED, &[]),
            (
                "user_verified = true\n",
                TOUCHED,
                &["attest-signature-invalid"],
            ),
        ] {
            let policy =
                format!("version = 1\n[[signers]]\nname = \"ada\"\nkey = \"{public}\"\n{more}");
            let judged = judge(&policy, &commit, &note(flags), instant(AT));
            assert_eq!(codes(&judged), expected, "{more}{flags}");
        }
    }
}

/// The order of P-256.
const ORDER: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";

/// Takes a string with its length from the front.
fn take<'b>(rest: &mut &'b [u8]) -> &'b [u8] {
    let (length, after) = rest.split_at(4);
    let length = u32::from_be_bytes(length.try_into().unwrap());
    let (bytes, after) = after.split_at(length.try_into().unwrap());
    *rest = after;
    bytes
}

/// Another valid signature by the same P-256 key over the same message: (r, n - s) instead of (r, s).
fn twin(signature: &SshSignature) -> SshSignature {
    let bytes = signature.to_bytes();
    let mut rest = &bytes[10..];
    for _ in 0..4 {
        take(&mut rest);
    }
    let head = &bytes[..bytes.len() - rest.len()];
    let mut inner = take(&mut rest);
    let name = take(&mut inner);
    let mut numbers = take(&mut inner);
    let (first, second) = (take(&mut numbers), take(&mut numbers));
    let mut other = [0; 32];
    let mut borrowed = 0;
    for at in 0..32 {
        let order = i32::from_str_radix(&ORDER[62 - 2 * at..64 - 2 * at], 16).unwrap();
        let digit = second.iter().rev().nth(at).copied().unwrap_or_default();
        let left = order - i32::from(digit) - borrowed;
        borrowed = i32::from(left < 0);
        other[31 - at] = u8::try_from(left.rem_euclid(256)).unwrap();
    }
    let mut numbers = Vec::new();
    put(&mut numbers, first);
    put_number(&mut numbers, &other);
    let mut changed = Vec::new();
    put(&mut changed, name);
    put(&mut changed, &numbers);
    changed.extend(inner);
    let mut all = head.to_vec();
    put(&mut all, &changed);
    SshSignature::from_bytes(&all).unwrap()
}

/// A statement has one valid envelope, so nobody can make another one without the key.
#[tokio::test]
async fn other_form_of_ecdsa_signature_is_refused() {
    let room = tempfile::tempdir().unwrap();
    let file = room.path().join("p256");
    ssh_keygen(&[
        "-q",
        "-N",
        "",
        "-t",
        "ecdsa",
        "-b",
        "256",
        "-f",
        file.to_str().unwrap(),
    ]);
    let public: PublicKey = std::fs::read_to_string(file.with_extension("pub"))
        .unwrap()
        .parse()
        .unwrap();
    let message = b"message";
    for round in 0..8 {
        let signature = sign(&file, STATEMENT_NAMESPACE, "sha512", message);
        let twin = twin(&signature);
        assert_ne!(signature, twin);
        // Both are valid for everybody, and have the same canonical form.
        for one in [&signature, &twin] {
            assert!(one.verifies(&public, STATEMENT_NAMESPACE, message));
            assert!(openssh_accepts(&public, one, message), "{round}");
            assert_eq!(
                one.canonical(&public).unwrap(),
                signature.canonical(&public).unwrap()
            );
        }
        let is_canonical =
            [&signature, &twin].map(|one| one.canonical(&public).as_ref() == Some(one));
        assert_ne!(is_canonical[0], is_canonical[1]);
    }
    let signer = Signer::open(sandbox(), &env(), &file).unwrap();
    let change = change();
    let tree = "7".repeat(40);
    let commit = commit_of(&change, &tree);
    let payloads = statements(&change, &name_of(&commit), &tree).unwrap();
    let note = signer.sign_all(&payloads).await.unwrap();
    let policy = format!("version = 1\n[[signers]]\nname = \"ada\"\nkey = \"{public}\"\n");
    let judged = judge(&policy, &commit, &note, instant(AT));
    assert_eq!(codes(&judged), Vec::<String>::new());
    let mut lines = note.split_inclusive(|byte| *byte == b'\n');
    let mut changed: Bundle = serde_json::from_slice(lines.next().unwrap()).unwrap();
    let signature = changed.envelope.signatures[0].signature().unwrap();
    let other = twin(&signature);
    assert!(other.verifies(
        &public,
        STATEMENT_NAMESPACE,
        &pre_authentication_encoding(PAYLOAD_TYPE, &payloads[0])
    ));
    changed.envelope = Envelope::new(&payloads[0], &public, &other);
    let mut forged = changed.to_line().unwrap();
    forged.extend(lines.flatten());
    let judged = judge(&policy, &commit, &forged, instant(AT));
    assert_eq!(codes(&judged), ["attest-signature-invalid"]);
}
