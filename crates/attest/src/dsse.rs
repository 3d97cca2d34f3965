//! The DSSE envelope: a payload with its type and its signature.

use serde::{Deserialize, Serialize};

use crate::base64;
use crate::public_key::PublicKey;
use crate::signature::{STATEMENT_NAMESPACE, SshSignature};

/// The payload type of in-toto statements.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// A payload with its type and its signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// The payload in base64.
    pub payload: String,
    /// The type of the payload.
    #[serde(rename = "payloadType")]
    pub payload_type: String,
    /// The signatures. A bundle has exactly one.
    pub signatures: Vec<EnvelopeSignature>,
}

/// One signature of an envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeSignature {
    /// The fingerprint of the key. It selects a key of the policy and proves nothing.
    pub keyid: String,
    /// The SSH signature of the encoded payload, in base64.
    pub sig: String,
}

impl Envelope {
    /// Wraps a signed statement.
    #[must_use]
    pub fn new(payload: &[u8], key: &PublicKey, signature: &SshSignature) -> Self {
        Self {
            payload: base64::encode(payload),
            payload_type: PAYLOAD_TYPE.to_owned(),
            signatures: vec![EnvelopeSignature {
                keyid: key.fingerprint(),
                sig: base64::encode(&signature.to_bytes()),
            }],
        }
    }

    /// Returns the payload; `None` if it is not canonical base64.
    #[must_use]
    pub fn payload(&self) -> Option<Vec<u8>> {
        base64::decode(&self.payload)
    }
}

impl EnvelopeSignature {
    /// Returns the signature; `None` if it is not one of SSH.
    #[must_use]
    pub fn signature(&self) -> Option<SshSignature> {
        SshSignature::from_bytes(&base64::decode(&self.sig)?)
    }

    /// Returns whether `key` signed a payload of this type.
    pub(crate) fn verifies(&self, key: &PublicKey, payload_type: &str, payload: &[u8]) -> bool {
        let message = pre_authentication_encoding(payload_type, payload);
        self.keyid == key.fingerprint()
            && self.signature().is_some_and(|signature| {
                // Otherwise one statement would have two valid envelopes.
                signature.canonical(key).as_ref() == Some(&signature)
                    && signature.verifies(key, STATEMENT_NAMESPACE, &message)
            })
    }
}

/// Returns the bytes that a DSSE signature covers: type and payload, each with its length.
#[must_use]
pub fn pre_authentication_encoding(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    );
    [head.as_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    #[test]
    fn encoding_matches_the_specification() {
        assert_eq!(
            pre_authentication_encoding("http://example.com/HelloWorld", b"hello world"),
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
        assert_eq!(pre_authentication_encoding("", b""), b"DSSEv1 0  0 ");
    }
}
