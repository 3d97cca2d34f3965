//! The packages that drive Chromium and judge pages, which the tests of the local page use.
//!
//! `browser/package.json` pins their versions and `browser/package-lock.json` the digest of every package. No package's
//! install script runs.
//!
//! What always holds: `.tools/browser` has exactly the packages of the lock file, and `node` in it is the interpreter.

use std::fs;
use std::os::unix::fs::symlink;

use super::node::Node;
use crate::error::TaskError;
use crate::root::Root;

const MANIFEST: &str = include_str!("../../browser/package.json");
const LOCK: &str = include_str!("../../browser/package-lock.json");

/// Installs them where they are not.
pub(crate) fn browser(root: &Root) -> Result<(), TaskError> {
    let folder = root.tools().join("browser");
    // The folder gets its name when all of it is there.
    let is_ready = || {
        let lock = fs::read_to_string(folder.join("package-lock.json"));
        lock.is_ok_and(|lock| lock == LOCK) && folder.join("node").is_file()
    };
    if is_ready() {
        return Ok(());
    }
    let _alone = super::alone(root)?;
    if is_ready() {
        return Ok(());
    }
    eprintln!("installing what judges pages into .tools/browser (180 MB)");
    let node = Node::ready(root)?;
    let new = root.tools().join("browser.new");
    super::clear(&new)?;
    fs::create_dir_all(&new).map_err(TaskError::io("create", &new))?;
    for (name, text) in [("package.json", MANIFEST), ("package-lock.json", LOCK)] {
        let path = new.join(name);
        fs::write(&path, text).map_err(TaskError::io("write", &path))?;
    }
    let words = [
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--loglevel=error",
    ];
    node.npm(root).args(words).folder(&new).run()?;
    let link = new.join("node");
    symlink(node.program(), &link).map_err(TaskError::io("make", &link))?;
    super::clear(&folder)?;
    fs::rename(&new, &folder).map_err(TaskError::io("put into place", &folder))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn packages_are_pinned_and_locked() {
        let wanted: Value = serde_json::from_str(MANIFEST).unwrap();
        let lock: Value = serde_json::from_str(LOCK).unwrap();
        let packages = lock["packages"].as_object().unwrap();
        assert_eq!(packages[""]["dependencies"], wanted["dependencies"]);
        for (name, version) in wanted["dependencies"].as_object().unwrap() {
            assert_eq!(
                packages[&format!("node_modules/{name}")]["version"],
                *version
            );
        }
        for (name, package) in packages {
            assert!(
                name.is_empty() || package["integrity"].is_string(),
                "{name} has no digest"
            );
        }
    }
}
