//! `MANIFEST.json` of a failure bundle.

use crucible_model::Digest;
use serde::{Deserialize, Serialize};

/// Describes every other file in a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BundleManifest {
    /// The schema of this document.
    pub schema_version: BundleVersion,
    /// The files of the bundle, by name.
    pub entries: Vec<BundleEntry>,
    /// Files in the bundled directories that were left out.
    pub left_out: Vec<OmittedEntry>,
}

/// The schema id of a bundle's manifest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum BundleVersion {
    /// The only version.
    #[default]
    #[serde(rename = "crucible-failure-bundle-v1")]
    V1,
}

/// One file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BundleEntry {
    /// Its name in the bundle.
    pub path: String,
    /// Where it comes from.
    pub origin: BundleOrigin,
    /// Its size in the bundle, in bytes.
    pub size: u64,
    /// The digest of its bytes in the bundle.
    pub sha256: Digest,
    /// How many secrets were replaced in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redacted: u64,
    /// The missing part, if it was too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<BundleCut>,
}

/// The origin of a file in a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BundleOrigin {
    /// Copied from the run directory.
    File,
    /// Stands for a file that the run does not have.
    Placeholder,
    /// This description.
    Manifest,
}

/// What of a long file is in the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BundleCut {
    /// The part that was kept: `beginning` or `end`.
    pub kept: String,
    /// The size of the whole file in bytes.
    pub of_bytes: u64,
}

/// A file that is not in the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OmittedEntry {
    /// Its path in the run directory, control characters escaped.
    pub path: String,
    /// Why it is not there.
    pub reason: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
