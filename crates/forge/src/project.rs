//! The project whose skills these are, and the lock under which one of them is worked on.

use std::path::{Path, PathBuf};

use crucible_host::fs::{FsError, create_dir_all, read_beneath};
use crucible_host::lock::{Lock, LockError};
use crucible_model::{ByteLimit, Digest, RepoPathError};

use crate::name::SkillName;
use crate::paths::{PackageName, SkillPaths};
use crate::policy::{MAX_POLICY_BYTES, SkillPolicy, SkillPolicyError};

/// Where the forge keeps what is its own, in Crucible's own directory.
const SKILLS: &str = "skills";

/// The operator's own rules for skills, from the project's top.
pub const POLICY_FILE: &str = ".crucible/skills/policy.yaml";

/// A project with skills: its top, the digest it is known by in the ledger, and the package that holds its skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeProject {
    root: PathBuf,
    key: Digest,
    package: PackageName,
}

/// The operator's rules cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum PolicyUnread {
    /// The file cannot be read.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// It is no text.
    #[error("{POLICY_FILE} is not UTF-8; write it as UTF-8")]
    NotText,
    /// It holds no rules.
    #[error("{POLICY_FILE}: {0}")]
    Rules(#[from] SkillPolicyError),
}

impl ForgeProject {
    /// The project with this top. `key` is the digest of the top's path without links.
    #[must_use]
    pub const fn new(root: PathBuf, key: Digest, package: PackageName) -> Self {
        Self { root, key, package }
    }

    /// The project's top.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What the ledger knows the project by.
    #[must_use]
    pub const fn key(&self) -> &Digest {
        &self.key
    }

    /// The package that holds the skills.
    #[must_use]
    pub const fn package(&self) -> &PackageName {
        &self.package
    }

    /// The places of a skill of this project.
    ///
    /// # Errors
    ///
    /// As [`SkillPaths::of`].
    pub fn paths(&self, name: &SkillName) -> Result<SkillPaths, RepoPathError> {
        SkillPaths::of(&self.package, name)
    }

    /// The operator's rules for skills, from [`POLICY_FILE`]; none where there is no such file, and then the rules hold that always do.
    ///
    /// # Errors
    ///
    /// [`PolicyUnread`] where a file is there and cannot be taken.
    pub fn policy(&self) -> Result<Option<SkillPolicy>, PolicyUnread> {
        let bytes = match read_beneath(&self.root, POLICY_FILE, ByteLimit(MAX_POLICY_BYTES as u64))
        {
            Err(error) if error.is_not_found() => return Ok(None),
            read => read?,
        };
        let text = std::str::from_utf8(&bytes).map_err(|_| PolicyUnread::NotText)?;
        Ok(Some(SkillPolicy::read(text)?))
    }

    /// Takes the lock of a skill, which lies below Crucible's own directory `home`: one process at a time works on it. `purpose` is what the
    /// process does, for another process that finds the lock held.
    ///
    /// # Errors
    ///
    /// [`LockError::Held`] while another process has it.
    pub fn lock(&self, home: &Path, name: &SkillName, purpose: &str) -> Result<Lock, LockError> {
        let file = format!("{}-{name}.lock", self.key);
        Lock::acquire(&self.own_directory(home)?.join(file), purpose)
    }

    /// The directory of the forge below Crucible's own directory `home`, created if missing.
    pub(crate) fn own_directory(&self, home: &Path) -> Result<PathBuf, LockError> {
        let directory = home.join(SKILLS);
        create_dir_all(&directory)?;
        Ok(directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_works_on_a_skill_and_another_skill_or_project_does_not_wait() {
        let home = tempfile::tempdir().unwrap();
        let project = |of: &str| {
            ForgeProject::new(
                PathBuf::from("/p"),
                Digest::of(of.as_bytes()),
                "skillset".parse().unwrap(),
            )
        };
        let name = |name: &str| name.parse::<SkillName>().unwrap();
        let (one, other) = (project("one"), project("other"));
        let held = one.lock(home.path(), &name("a"), "a test").unwrap();
        assert!(matches!(
            one.lock(home.path(), &name("a"), "a test"),
            Err(LockError::Held { .. })
        ));
        one.lock(home.path(), &name("b"), "a test").unwrap();
        other.lock(home.path(), &name("a"), "a test").unwrap();
        drop(held);
        one.lock(home.path(), &name("a"), "a test").unwrap();
    }
}
