//! Public keys in the form of OpenSSH, and the verification of signatures with them.
//!
//! Ed25519, ECDSA on P-256 and P-384, RSA from 2048 bits, and the two kinds of hardware-backed keys (`sk-`). A
//! signature of a hardware-backed key counts only if the user touched the device. A policy may also require that the
//! device verified the user. The device's counter is signed, but there is no earlier value to compare it with.
//!
//! For each ECDSA signature (r, s), (r, n - s) is valid as well, where n is the order of the curve. The canonical one of
//! the two has the smaller second number.

use std::fmt;
use std::str::FromStr;

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use serde::{Deserialize, Serialize};

use crate::base64;
use crate::wire::{WireReader, put_positive, put_string};

const ED25519_NAME: &str = "ssh-ed25519";
const SK_ED25519_NAME: &str = "sk-ssh-ed25519@openssh.com";
const P256_NAME: &str = "ecdsa-sha2-nistp256";
const P384_NAME: &str = "ecdsa-sha2-nistp384";
const SK_P256_NAME: &str = "sk-ecdsa-sha2-nistp256@openssh.com";
const RSA_NAME: &str = "ssh-rsa";

/// The flag of a hardware-backed signature that says that the user was present.
const USER_PRESENT: u8 = 1;
/// The flag of a hardware-backed signature that says that the device verified the user, by PIN or fingerprint.
const USER_VERIFIED: u8 = 4;

/// The order of P-256 (FIPS 186-5).
const P256_ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];
/// The order of P-384 (FIPS 186-5).
const P384_ORDER: [u8; 48] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc7, 0x63, 0x4d, 0x81, 0xf4, 0x37, 0x2d, 0xdf,
    0x58, 0x1a, 0x0d, 0xb2, 0x48, 0xb0, 0xa7, 0x7a, 0xec, 0xec, 0x19, 0x6a, 0xcc, 0xc5, 0x29, 0x73,
];

/// A public key, as a line of `id_ed25519.pub`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey {
    /// The key in the encoding of the SSH protocol.
    blob: Vec<u8>,
    kind: Kind,
    /// Whether the device must have verified the user; only for hardware-backed keys.
    needs_user_verified: bool,
}

/// The text is not a public key that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is not a public key.
    #[error("not a public key of OpenSSH ({KINDS}): {text:?}")]
    Invalid {
        /// How the text begins.
        text: String,
    },
    /// Its kind is not supported.
    #[error("the key type {kind} is not supported; use {KINDS}")]
    Unsupported {
        /// The kind, as OpenSSH names it.
        kind: &'static str,
    },
    /// It is an RSA key that is too short or too long.
    #[error(
        "an RSA key must have 2048 to 8192 bits, and this one has {bits}; create an ed25519 key instead"
    )]
    RsaLength {
        /// The bits of its modulus.
        bits: usize,
    },
}

/// The supported kinds.
const KINDS: &str = "ssh-ed25519, ecdsa-sha2-nistp256, ecdsa-sha2-nistp384, ssh-rsa or sk-";
/// Kinds that OpenSSH has and this program does not verify.
const UNSUPPORTED: [&str; 3] = ["ecdsa-sha2-nistp521", "ssh-dss", "ssh-ed448"];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Ed25519(Vec<u8>),
    P256(Vec<u8>),
    P384(Vec<u8>),
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    Hardware {
        curve: HardwareCurve,
        point: Vec<u8>,
        application: Vec<u8>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HardwareCurve {
    Ed25519,
    P256,
}

impl PublicKey {
    /// Returns the fingerprint as `ssh-keygen -l` prints it: `SHA256:` and the digest in base64.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, &self.blob);
        format!("SHA256:{}", base64::encode_unpadded(digest.as_ref()))
    }

    pub(crate) fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// Returns the key such that only signatures count for which the device verified the user; `None` if the key is not
    /// hardware-backed.
    pub(crate) fn needing_user_verified(self) -> Option<Self> {
        matches!(self.kind, Kind::Hardware { .. }).then_some(Self {
            needs_user_verified: true,
            ..self
        })
    }

    /// Returns the canonical form of a signature by this key in the encoding of the SSH protocol. Only ECDSA has another
    /// one.
    pub(crate) fn canonical(&self, signature: &[u8]) -> Option<Vec<u8>> {
        let order: &[u8] = match &self.kind {
            Kind::P256(_)
            | Kind::Hardware {
                curve: HardwareCurve::P256,
                ..
            } => &P256_ORDER,
            Kind::P384(_) => &P384_ORDER,
            _ => return Some(signature.to_vec()),
        };
        let mut wire = WireReader::new(signature);
        let (name, content) = (wire.string()?, wire.string()?);
        let mut numbers = WireReader::new(content);
        let (first, second) = (numbers.positive()?, numbers.positive()?);
        numbers.end()?;
        let other = difference(order, second)?;
        let second = if is_smaller(&other, second) {
            &other
        } else {
            second
        };
        let mut content = Vec::new();
        put_positive(&mut content, first);
        put_positive(&mut content, second);
        let mut canonical = Vec::new();
        put_string(&mut canonical, name);
        put_string(&mut canonical, &content);
        // The flags and the counter of a device.
        canonical.extend(wire.rest());
        Some(canonical)
    }

    /// Returns whether a signature in the encoding of the SSH protocol is this key's signature of `data`.
    pub(crate) fn verifies(&self, data: &[u8], signature: &[u8]) -> bool {
        self.verified(data, signature).is_some()
    }

    fn verified(&self, data: &[u8], signature: &[u8]) -> Option<()> {
        let mut wire = WireReader::new(signature);
        let name = std::str::from_utf8(wire.string()?).ok()?;
        let content = wire.string()?;
        let check = |algorithm: &'static dyn VerificationAlgorithm,
                     key: &[u8],
                     data: &[u8],
                     signature: &[u8]| {
            UnparsedPublicKey::new(algorithm, key)
                .verify(data, signature)
                .ok()
        };
        match (&self.kind, name) {
            (Kind::Ed25519(key), ED25519_NAME) => {
                wire.end()?;
                check(&ED25519, key, data, content)
            }
            (Kind::P256(key), P256_NAME) => {
                wire.end()?;
                check(&ECDSA_P256_SHA256_FIXED, key, data, &fixed::<32>(content)?)
            }
            (Kind::P384(key), P384_NAME) => {
                wire.end()?;
                check(&ECDSA_P384_SHA384_FIXED, key, data, &fixed::<48>(content)?)
            }
            (Kind::Rsa { modulus, exponent }, "rsa-sha2-256" | "rsa-sha2-512") => {
                wire.end()?;
                let parameters = match name {
                    "rsa-sha2-256" => &RSA_PKCS1_2048_8192_SHA256,
                    _ => &RSA_PKCS1_2048_8192_SHA512,
                };
                let key = RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                key.verify(parameters, data, content).ok()
            }
            (
                Kind::Hardware {
                    curve,
                    point,
                    application,
                },
                SK_ED25519_NAME | SK_P256_NAME,
            ) => {
                let (flags, counter) = (wire.byte()?, wire.bytes(4)?);
                wire.end()?;
                if flags & USER_PRESENT == 0
                    || (self.needs_user_verified && flags & USER_VERIFIED == 0)
                {
                    return None;
                }
                let sha256 = |bytes: &[u8]| ring::digest::digest(&ring::digest::SHA256, bytes);
                let mut signed = sha256(application).as_ref().to_vec();
                signed.push(flags);
                signed.extend(counter);
                signed.extend(sha256(data).as_ref());
                match (curve, name) {
                    (HardwareCurve::Ed25519, SK_ED25519_NAME) => {
                        check(&ED25519, point, &signed, content)
                    }
                    (HardwareCurve::P256, SK_P256_NAME) => check(
                        &ECDSA_P256_SHA256_FIXED,
                        point,
                        &signed,
                        &fixed::<32>(content)?,
                    ),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// Returns `order - number`, both as big-endian bytes; `None` if it is not positive.
fn difference(order: &[u8], number: &[u8]) -> Option<Vec<u8>> {
    let mut padded = vec![0; order.len().checked_sub(number.len())?];
    padded.extend(number);
    if padded.as_slice() >= order {
        return None;
    }
    let mut bytes = vec![0; order.len()];
    let mut borrowed = false;
    for ((byte, one), other) in bytes.iter_mut().zip(order).zip(&padded).rev() {
        let (once, over) = one.overflowing_sub(*other);
        let (twice, is_repeated) = once.overflowing_sub(u8::from(borrowed));
        *byte = twice;
        borrowed = over || is_repeated;
    }
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    Some(bytes.split_off(zeros))
}

/// Returns how many bits a number without leading zeros has.
fn bits(number: &[u8]) -> usize {
    let zeros = number.first().map_or(0, |first| first.leading_zeros());
    (8 * number.len()).saturating_sub(zeros as usize)
}

/// Compares positive numbers without leading zeros.
fn is_smaller(one: &[u8], other: &[u8]) -> bool {
    (one.len(), one) < (other.len(), other)
}

/// Returns the two numbers of an ECDSA signature, each with this many bytes.
fn fixed<const SIZE: usize>(signature: &[u8]) -> Option<Vec<u8>> {
    let mut wire = WireReader::new(signature);
    let numbers = [wire.positive()?, wire.positive()?];
    wire.end()?;
    let mut bytes = Vec::with_capacity(2 * SIZE);
    for number in numbers {
        bytes.resize(bytes.len() + SIZE.checked_sub(number.len())?, 0);
        bytes.extend(number);
    }
    Some(bytes)
}

impl Kind {
    fn parse(blob: &[u8]) -> Option<(&str, Self)> {
        let mut wire = WireReader::new(blob);
        let name = std::str::from_utf8(wire.string()?).ok()?;
        let sized = |wire: &mut WireReader<'_>, size: usize| {
            wire.string()
                .filter(|key| key.len() == size)
                .map(<[u8]>::to_vec)
        };
        let kind = match name {
            ED25519_NAME => Self::Ed25519(sized(&mut wire, 32)?),
            P256_NAME | P384_NAME => {
                let (curve, size): (&[u8], usize) = match name {
                    P256_NAME => (b"nistp256", 65),
                    _ => (b"nistp384", 97),
                };
                (wire.string()? == curve).then_some(())?;
                let point = sized(&mut wire, size)?;
                if name == P256_NAME {
                    Self::P256(point)
                } else {
                    Self::P384(point)
                }
            }
            RSA_NAME => {
                let exponent = wire.positive()?.to_vec();
                Self::Rsa {
                    modulus: wire.positive()?.to_vec(),
                    exponent,
                }
            }
            SK_ED25519_NAME => Self::Hardware {
                curve: HardwareCurve::Ed25519,
                point: sized(&mut wire, 32)?,
                application: wire.string()?.to_vec(),
            },
            SK_P256_NAME => {
                (wire.string()? == b"nistp256").then_some(())?;
                Self::Hardware {
                    curve: HardwareCurve::P256,
                    point: sized(&mut wire, 65)?,
                    application: wire.string()?.to_vec(),
                }
            }
            _ => return None,
        };
        wire.end()?;
        Some((name, kind))
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    /// Parses `TYPE BASE64`, with or without a comment.
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let parse = || {
            let mut words = text.split_whitespace();
            let (name, blob) = (words.next()?, base64::decode(words.next()?)?);
            let (found, kind) = Kind::parse(&blob)?;
            (found == name).then_some(())?;
            Some(Self {
                kind,
                blob,
                needs_user_verified: false,
            })
        };
        let named = text.split_whitespace().next();
        if let Some(kind) = UNSUPPORTED.into_iter().find(|kind| named == Some(kind)) {
            return Err(KeyError::Unsupported { kind });
        }
        let key = parse().ok_or_else(|| KeyError::Invalid {
            text: text.chars().take(80).collect(),
        })?;
        match &key.kind {
            Kind::Rsa { modulus, .. } if !(2048..=8192).contains(&bits(modulus)) => {
                let bits = bits(modulus);
                Err(KeyError::RsaLength { bits })
            }
            _ => Ok(key),
        }
    }
}

impl TryFrom<String> for PublicKey {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        text.parse()
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}

/// The key without a comment.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Kind::parse(&self.blob).map_or("", |(name, _)| name);
        write!(f, "{name} {}", base64::encode(&self.blob))
    }
}
