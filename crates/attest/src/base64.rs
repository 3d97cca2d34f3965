//! Base64 with padding, in its one canonical spelling.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

/// Encodes with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Encodes without padding, as `ssh-keygen` prints fingerprints.
pub(crate) fn encode_unpadded(bytes: &[u8]) -> String {
    STANDARD_NO_PAD.encode(bytes)
}

/// Decodes the canonical spelling; `None` for any other text.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_base64_is_decoded() {
        assert_eq!(decode("QQ=="), Some(b"A".to_vec()));
        for bad in ["QR==", "QQ=", "QQ", "Q Q==", "QQ==\n", "Q_==", "QQ==QQ=="] {
            assert_eq!(decode(bad), None, "{bad:?}");
        }
    }
}
