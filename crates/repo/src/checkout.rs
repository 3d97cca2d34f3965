//! A second work tree at a commit, for replaying a run: a separate repository that borrows the original's
//! objects.
//!
//! Nothing is written to the original. The new repository has none of the original's hooks, remotes and
//! configuration; its index and files are the commit's.

use std::path::Path;

use crucible_host::fs;

use crate::error::RepoError;
use crate::git::{Call, Git};
use crate::oid::Oid;

impl Git {
    /// Checks `commit` out into the new directory `dest`, as a separate repository.
    ///
    /// # Errors
    ///
    /// [`RepoError::DestinationTaken`] if `dest` exists, [`RepoError::MissingObject`] if there is no such
    /// commit.
    pub async fn check_out(&self, commit: &Oid, dest: &Path) -> Result<(), RepoError> {
        if dest.symlink_metadata().is_ok() {
            return Err(RepoError::DestinationTaken {
                path: dest.to_owned(),
            });
        }
        self.tree_of(commit).await?;
        fs::create_dir_all(dest)?;
        let git_dir = dest.join(".git");
        let run = async |words: &[&str]| {
            let call = Call::new(words.iter().copied())
                .with_env("GIT_DIR", &git_dir)
                .with_env("GIT_WORK_TREE", dest);
            self.run_bare(dest, call).await
        };
        run(&["init", "--quiet", "--template=", "--initial-branch=main"]).await?;
        let mut alternates = self.objects_dir().into_os_string().into_encoded_bytes();
        alternates.push(b'\n');
        fs::create_dir_all(&git_dir.join("objects/info"))?;
        fs::write_atomic(&git_dir.join("objects/info/alternates"), &alternates)?;
        run(&["update-ref", "HEAD", commit.as_str()]).await?;
        run(&["read-tree", commit.as_str()]).await?;
        run(&["checkout-index", "--all", "--force", "--quiet"]).await?;
        run(&["update-index", "-q", "--refresh"]).await?;
        Ok(())
    }
}
