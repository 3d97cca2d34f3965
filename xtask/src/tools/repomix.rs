//! repomix, which packs a repository into one file for a model: what a bench stands beside.

use std::path::PathBuf;

use super::node::Node;
use crate::error::TaskError;
use crate::root::Root;

/// The npm package; its scripts are not run.
const PACKAGE: &str = "repomix@1.18.1";

/// The interpreter, and the script that it runs.
#[derive(Debug)]
pub(crate) struct Repomix {
    pub(crate) node: PathBuf,
    pub(crate) script: PathBuf,
}

/// repomix, installed now if it was not.
pub(crate) fn repomix(root: &Root) -> Result<Repomix, TaskError> {
    let _alone = super::folder::alone(root)?;
    let node = Node::ready(root)?;
    // The folder is named by the version, so that another one is installed anew.
    let folder = root.tools().join(PACKAGE.replace('@', "-"));
    let script = folder.join("node_modules/repomix/bin/repomix.cjs");
    if !script.is_file() {
        let new = folder.with_extension("new");
        super::folder::clear(&new)?;
        std::fs::create_dir_all(&new).map_err(TaskError::io("create", &new))?;
        let words = [
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            PACKAGE,
        ];
        node.npm(root).args(words).folder(&new).run()?;
        super::folder::clear(&folder)?;
        std::fs::rename(&new, &folder).map_err(TaskError::io("put into place", &folder))?;
    }
    Ok(Repomix {
        node: node.program().clone(),
        script,
    })
}
