//! Test runners of JavaScript, which tests use as gates, in `.tools/runners`.

use super::npm_packages::NpmPackages;
use crate::error::TaskError;
use crate::root::Root;

pub(super) const PACKAGES: NpmPackages = NpmPackages {
    folder: "runners",
    manifest: include_str!("../../runners/package.json"),
    lock: include_str!("../../runners/package-lock.json"),
    purpose: "mocha, jest and vitest (70 MB)",
};

/// Installs them where they are not.
pub(crate) fn runners(root: &Root) -> Result<(), TaskError> {
    PACKAGES.ready(root)
}
