//! The project whose skills these are, and the lock under which one of them is worked on.

use std::path::{Path, PathBuf};

use crucible_host::fs::{FsError, create_dir_all, read_beneath, read_regular_up_to};
use crucible_host::lock::{Lock, LockError};
use crucible_model::{ByteLimit, Digest, ExitStatus, Failure, RepoPath, RepoPathError};

use crate::name::SkillName;
use crate::paths::{PackageName, SkillPaths};
use crate::policy::{MAX_POLICY_BYTES, SkillPolicy, SkillPolicyError};

/// Where the forge keeps what is its own, in Crucible's own directory.
const SKILLS: &str = "skills";

/// The operator's own rules for skills, from the project's top.
pub(crate) const POLICY_FILE: &str = ".crucible/skills/policy.yaml";

/// A project with skills: its top, the digest it is known by in the ledger, and the package that holds its skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeProject {
    root: PathBuf,
    key: Digest,
    package: PackageName,
}

/// The operator's policy cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PolicyReadError {
    /// The file cannot be read.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// It is not text.
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
    /// As [`SkillPaths::new`].
    pub fn paths(&self, name: &SkillName) -> Result<SkillPaths, RepoPathError> {
        SkillPaths::new(&self.package, name)
    }

    /// The operator's rules for skills, from [`POLICY_FILE`]; none where there is no such file, and then the rules hold
    /// that always do.
    ///
    /// # Errors
    ///
    /// [`PolicyReadError`] where a file is there and cannot be taken.
    pub fn policy(&self) -> Result<Option<SkillPolicy>, PolicyReadError> {
        let bytes = match read_beneath(&self.root, POLICY_FILE, ByteLimit(MAX_POLICY_BYTES as u64))
        {
            Err(error) if error.is_not_found() => return Ok(None),
            read => read?,
        };
        let text = std::str::from_utf8(&bytes).map_err(|_| PolicyReadError::NotText)?;
        Ok(Some(SkillPolicy::read(text)?))
    }

    /// Returns the rules of the policy at `named`, else of the project's own, else those that always hold; and which
    /// these are, for people.
    ///
    /// # Errors
    ///
    /// Fails if the policy cannot be read or is invalid.
    pub fn rules(&self, named: Option<&Path>) -> Result<(SkillPolicy, String), Failure> {
        let Some(path) = named else {
            let path = self.root.join(POLICY_FILE);
            return Ok(match self.policy()? {
                Some(policy) => (policy, format!("policy: {}", path.display())),
                None => (
                    SkillPolicy::default(),
                    format!(
                        "policy: the rules that always hold; there is no {}",
                        path.display()
                    ),
                ),
            });
        };
        let invalid =
            |why: String| Failure::new(ExitStatus::Schema, format!("{}: {why}", path.display()));
        let bytes = read_regular_up_to(path, ByteLimit(MAX_POLICY_BYTES as u64))
            .map_err(|error| error.unreadable_input())?;
        let text = String::from_utf8(bytes)
            .map_err(|error| invalid(error.to_string()).hint("Write it as UTF-8."))?;
        let policy = SkillPolicy::read(&text).map_err(|error| {
            invalid(error.to_string()).hint("A policy is like `allowed_imports: [yaml]`.")
        })?;
        Ok((policy, format!("policy: {}", path.display())))
    }

    /// Checks that the package of the skills exists. Returns a file of the skill that exists before any build.
    ///
    /// # Errors
    ///
    /// Fails if `skill init` has not been run.
    pub fn require_initialized(&self, name: &SkillName) -> Result<Option<RepoPath>, Failure> {
        let paths = self.paths(name)?;
        if !self.root.join(paths.base.as_str()).is_file() {
            return Err(Failure::usage(format!(
                "there is no {} in {}",
                paths.base,
                self.root.display()
            ))
            .hint("Create the package first: `crucible skill init`"));
        }
        let exists = |path: &&RepoPath| self.root.join(path.as_str()).symlink_metadata().is_ok();
        Ok(paths.files().into_iter().find(exists).cloned())
    }

    /// Takes the lock of a skill, which lies below Crucible's own directory `home`: one process at a time works on it.
    /// `purpose` is what the
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
    fn skill_lock_excludes_others_on_same_skill_only() {
        let home = tempfile::tempdir().unwrap();
        let project = |of: &str| {
            ForgeProject::new(
                PathBuf::from("/p"),
                Digest::compute(of.as_bytes()),
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
