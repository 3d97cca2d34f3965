//! `[attest]`: who signs what lands.

use crate::declare::section;

section! {
    /// Signed statements about landed commits.
    ["attest"] AttestSection {
        /// The SSH key that signs: a private key, or a public key whose private half an agent holds. Empty: the key of
        /// `crucible attest init`, if there is one; else nothing is signed.
        key: Text = "", user;
        /// Whether a change lands only with a signed statement.
        required: bool = false, user;
        /// The policy of `crucible attest verify` and `crucible attest door`, where no other is named.
        policy: Text = "", user;
    }
}
