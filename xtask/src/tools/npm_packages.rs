//! Packages from npm in a folder of `.tools`, exactly those of a lock file. No package's install script runs.
//!
//! What always holds: the folder has the packages of the lock file, and `node` in it is the interpreter.

use std::fs;
use std::os::unix::fs::symlink;

use super::node::Node;
use crate::error::TaskError;
use crate::root::Root;

/// What is installed, and where.
pub(super) struct NpmPackages {
    /// The name of the folder.
    pub(super) folder: &'static str,
    /// Its `package.json`, which pins the versions.
    pub(super) manifest: &'static str,
    /// Its `package-lock.json`, which has the digest of each package.
    pub(super) lock: &'static str,
    /// What the user reads during the installation.
    pub(super) purpose: &'static str,
}

impl NpmPackages {
    /// Installs them where they are not.
    pub(super) fn ready(&self, root: &Root) -> Result<(), TaskError> {
        let folder = root.tools().join(self.folder);
        // The folder gets its name when all of it is there.
        let is_ready = || {
            let lock = fs::read_to_string(folder.join("package-lock.json"));
            lock.is_ok_and(|lock| lock == self.lock) && folder.join("node").is_file()
        };
        if is_ready() {
            return Ok(());
        }
        let _alone = super::folder::alone(root)?;
        if is_ready() {
            return Ok(());
        }
        eprintln!("installing {} into .tools/{}", self.purpose, self.folder);
        let node = Node::ready(root)?;
        let new = root.tools().join(format!("{}.new", self.folder));
        super::folder::clear(&new)?;
        fs::create_dir_all(&new).map_err(TaskError::io("create", &new))?;
        for (name, text) in [
            ("package.json", self.manifest),
            ("package-lock.json", self.lock),
        ] {
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
        super::folder::clear(&folder)?;
        fs::rename(&new, &folder).map_err(TaskError::io("put into place", &folder))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::tools::{browser, runners, verifiers};

    #[test]
    fn packages_are_pinned_and_locked() {
        for packages in [
            browser::PACKAGES,
            runners::PACKAGES,
            verifiers::NPM_PACKAGES,
        ] {
            let expected: Value = serde_json::from_str(packages.manifest).unwrap();
            let lock: Value = serde_json::from_str(packages.lock).unwrap();
            let locked = lock["packages"].as_object().unwrap();
            assert_eq!(locked[""]["dependencies"], expected["dependencies"]);
            for (name, version) in expected["dependencies"].as_object().unwrap() {
                assert_eq!(locked[&format!("node_modules/{name}")]["version"], *version);
            }
            for (name, package) in locked {
                assert!(
                    name.is_empty() || package["integrity"].is_string(),
                    "{name} has no digest"
                );
            }
        }
    }
}
