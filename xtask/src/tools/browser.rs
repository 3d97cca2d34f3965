//! The packages that drive Chromium and judge pages, which the tests of the local page use, in `.tools/browser`.

use super::npm_packages::NpmPackages;
use crate::error::TaskError;
use crate::root::Root;

pub(super) const PACKAGES: NpmPackages = NpmPackages {
    folder: "browser",
    manifest: include_str!("../../browser/package.json"),
    lock: include_str!("../../browser/package-lock.json"),
    purpose: "what judges pages (180 MB)",
};

/// Installs them where they are not.
pub(crate) fn browser(root: &Root) -> Result<(), TaskError> {
    PACKAGES.ready(root)
}
