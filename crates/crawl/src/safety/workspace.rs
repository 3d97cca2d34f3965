//! The directory in which a plan will run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The directory in which a plan will run, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workspace {
    /// Its top level, as an absolute path.
    pub root: PathBuf,
    /// The links in it, as paths relative to the top level.
    pub links: BTreeSet<String>,
    /// The packages that each package.json declares, by its directory (`.` is the top level).
    pub declared: BTreeMap<String, BTreeSet<String>>,
}
