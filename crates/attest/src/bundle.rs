//! The Sigstore bundle (version 0.3) of an envelope: one JSON document that other tools read.

use crucible_model::{CanonicalError, to_canonical_line};
use serde::{Deserialize, Serialize};

use crate::dsse::Envelope;

/// The media type of the bundle format.
pub const BUNDLE_MEDIA_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// An envelope with a hint about its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// The format and its version.
    #[serde(rename = "mediaType")]
    pub media_type: String,
    /// The hint about the key.
    #[serde(rename = "verificationMaterial")]
    pub verification_material: VerificationMaterial,
    /// The signed statement.
    #[serde(rename = "dsseEnvelope")]
    pub envelope: Envelope,
}

/// Identifies the key. The policy contains the key itself, and there is no transparency log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerificationMaterial {
    /// Which key signed.
    #[serde(rename = "publicKey")]
    pub public_key: PublicKeyHint,
}

/// Identifies a public key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicKeyHint {
    /// The fingerprint of the key.
    pub hint: String,
}

impl Bundle {
    /// Creates the bundle of an envelope.
    #[must_use]
    pub fn new(envelope: Envelope) -> Self {
        let hint = envelope
            .signatures
            .first()
            .map(|signature| signature.keyid.clone())
            .unwrap_or_default();
        Self {
            media_type: BUNDLE_MEDIA_TYPE.to_owned(),
            verification_material: VerificationMaterial {
                public_key: PublicKeyHint { hint },
            },
            envelope,
        }
    }

    /// Returns the bundle as one line of a note: canonical JSON and a newline.
    ///
    /// # Errors
    ///
    /// Fails as [`to_canonical_line`] does, which cannot happen for this type.
    pub fn to_line(&self) -> Result<Vec<u8>, CanonicalError> {
        to_canonical_line(self)
    }
}
