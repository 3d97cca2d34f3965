//! SSH signatures of messages, as `ssh-keygen -Y sign` makes them (OpenSSH's PROTOCOL.sshsig).
//!
//! A signature states its namespace. Statements have one of their own, commits have git's, so the signature of one is
//! never valid for the other.

use crate::base64;
use crate::public_key::PublicKey;
use crate::wire::{WireReader, put_string};

/// The namespace of statements.
pub const STATEMENT_NAMESPACE: &str = "crucible-attestation";
/// The namespace of git's commits and tags.
pub const COMMIT_NAMESPACE: &str = "git";

const MAGIC: &[u8] = b"SSHSIG";
const VERSION: u32 = 1;
const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";

/// A signature with everything that it states about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshSignature {
    key: Vec<u8>,
    namespace: Vec<u8>,
    reserved: Vec<u8>,
    hash: Hash,
    signature: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    const fn name(self) -> &'static [u8] {
        match self {
            Self::Sha256 => b"sha256",
            Self::Sha512 => b"sha512",
        }
    }

    fn digest(self, message: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Self::Sha256 => &ring::digest::SHA256,
            Self::Sha512 => &ring::digest::SHA512,
        };
        ring::digest::digest(algorithm, message).as_ref().to_vec()
    }
}

impl SshSignature {
    /// Parses the binary form; `None` for anything else.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut wire = WireReader::new(bytes);
        (wire.bytes(MAGIC.len())? == MAGIC && wire.number()? == VERSION).then_some(())?;
        let (key, namespace, reserved) = (wire.string()?, wire.string()?, wire.string()?);
        let hash = match wire.string()? {
            b"sha256" => Hash::Sha256,
            b"sha512" => Hash::Sha512,
            _ => return None,
        };
        let signature = wire.string()?;
        wire.end()?;
        Some(Self {
            key: key.to_vec(),
            namespace: namespace.to_vec(),
            reserved: reserved.to_vec(),
            hash,
            signature: signature.to_vec(),
        })
    }

    /// Parses the text form with its first and last line.
    #[must_use]
    pub fn from_armor(text: &str) -> Option<Self> {
        let inside = text.trim().strip_prefix(BEGIN)?.strip_suffix(END)?;
        let encoded: String = inside.split_ascii_whitespace().collect();
        Self::from_bytes(&base64::decode(&encoded)?)
    }

    /// Returns the binary form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_be_bytes());
        for part in [&self.key, &self.namespace, &self.reserved] {
            put_string(&mut bytes, part);
        }
        put_string(&mut bytes, self.hash.name());
        put_string(&mut bytes, &self.signature);
        bytes
    }

    /// Returns the text form, as `ssh-keygen -Y verify` reads it.
    #[must_use]
    pub fn to_armor(&self) -> String {
        let encoded = base64::encode(&self.to_bytes());
        let lines: Vec<&str> = encoded
            .as_bytes()
            .chunks(70)
            .filter_map(|line| std::str::from_utf8(line).ok())
            .collect();
        format!("{BEGIN}\n{}\n{END}\n", lines.join("\n"))
    }

    /// Returns the canonical form of a signature by `key`: of the two forms of an ECDSA signature, the one with the
    /// smaller second number. `None` if it is not a signature of the key's kind.
    #[must_use]
    pub fn canonical(&self, key: &PublicKey) -> Option<Self> {
        Some(Self {
            signature: key.canonical(&self.signature)?,
            ..self.clone()
        })
    }

    /// Returns the key that the signature names. Whose it is, only a policy can say.
    #[must_use]
    pub fn named_key(&self) -> Option<PublicKey> {
        let kind = std::str::from_utf8(WireReader::new(&self.key).string()?).ok()?;
        let line = format!("{kind} {}", base64::encode(&self.key));
        line.parse().ok()
    }

    /// Returns whether this is a signature of `message` in `namespace` by `key`.
    #[must_use]
    pub fn verifies(&self, key: &PublicKey, namespace: &str, message: &[u8]) -> bool {
        if self.key != key.blob()
            || self.namespace != namespace.as_bytes()
            || !self.reserved.is_empty()
        {
            return false;
        }
        let mut signed = MAGIC.to_vec();
        put_string(&mut signed, &self.namespace);
        put_string(&mut signed, &self.reserved);
        put_string(&mut signed, self.hash.name());
        put_string(&mut signed, &self.hash.digest(message));
        key.verifies(&signed, &self.signature)
    }
}
