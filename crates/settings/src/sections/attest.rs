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
        /// Whether the commits that land are signed as well, as `git commit -S` does with an SSH key. A change then lands
        /// only with both signatures.
        sign_commits: bool = false, user;
        /// The policy of `crucible attest verify` and `crucible attest door`, where no other is named.
        policy: Text = "", user;
    }
}
