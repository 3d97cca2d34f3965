//! Reads a commit byte for byte: tree, parents, message.
//!
//! The bytes are hashed again, here or by git, so a commit object that was overwritten in the object store is
//! detected.

use crucible_model::ByteLimit;

use super::store::ObjectKind;
use super::{Call, Git};
use crate::error::RepoError;
use crate::oid::Oid;

/// No commit of ours is larger, in bytes.
pub(crate) const MAX_COMMIT: ByteLimit = ByteLimit(1 << 20);

/// What a commit says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitObject {
    /// The tree it holds.
    pub tree: Oid,
    /// The commits before it, in order.
    pub parents: Vec<Oid>,
    /// Its message; bytes that are not UTF-8 are replaced.
    pub message: String,
}

/// Whether a branch leads to a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchReach {
    /// It does.
    Reached,
    /// It does not.
    Unreached,
    /// There is no branch of this name.
    NoBranch,
    /// The repository holds no such commit.
    NoCommit,
}

impl Git {
    /// Reads a commit; `None` if the repository has no commit of this name, or its bytes do not match the
    /// name.
    ///
    /// # Errors
    ///
    /// Fails when git cannot be run, and for a commit that is larger than a megabyte.
    pub async fn commit_object(&self, commit: &Oid) -> Result<Option<CommitObject>, RepoError> {
        let requested = commit.clone();
        let read_here = self.read(&[], move |reader| {
            let object = reader.object(&requested, MAX_COMMIT.0)?;
            Ok((object.kind == ObjectKind::Commit)
                .then(|| read(&object.bytes))
                .flatten())
        });
        match read_here.await {
            Ok(Some(Some(read))) => return Ok(Some(read)),
            Err(RepoError::DamagedObject { .. }) => return Ok(None),
            // A tag may point to a commit, and git reports what is broken.
            Ok(_) => {}
            Err(error) => return Err(error),
        }
        let call = Call::new(["cat-file", "commit", commit.as_str()]).with_max_output(MAX_COMMIT);
        let output = self.run(call).await?;
        if output.code != 0 {
            return Ok(None);
        }
        let call =
            Call::new(["hash-object", "-t", "commit", "--stdin"]).reading(output.stdout.clone());
        let hashed = self.run(call).await?;
        let is_itself = hashed.code == 0
            && Oid::from_ascii(hashed.stdout.trim_ascii()).as_ref() == Some(commit);
        Ok(if is_itself {
            read(&output.stdout)
        } else {
            None
        })
    }

    /// Returns whether a local branch contains a commit.
    ///
    /// # Errors
    ///
    /// Fails when git cannot be run, or an object in between is missing or damaged.
    pub async fn branch_reach(&self, commit: &Oid, branch: &str) -> Result<BranchReach, RepoError> {
        let branch = format!("refs/heads/{branch}");
        let call = Call::new(["for-each-ref", "--format=%(refname)", &branch]);
        let output = self.run_ok(call).await?;
        // A branch below one of this name is listed, too.
        if !output
            .stdout
            .split(|byte| *byte == b'\n')
            .any(|line| line == branch.as_bytes())
        {
            return Ok(BranchReach::NoBranch);
        }
        if self.commit_object(commit).await?.is_none() {
            return Ok(BranchReach::NoCommit);
        }
        let call = Call::new(["merge-base", "--is-ancestor", commit.as_str(), &branch]);
        let output = self.run(call).await?;
        match output.code {
            0 => Ok(BranchReach::Reached),
            1 => Ok(BranchReach::Unreached),
            _ => Err(output.into_error()),
        }
    }
}

/// `tree OID`, `parent OID` for each parent, other headers, an empty line, the message.
fn read(bytes: &[u8]) -> Option<CommitObject> {
    let text = String::from_utf8_lossy(bytes);
    let (header, message) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut lines = header.lines();
    let tree = Oid::from_ascii(lines.next()?.strip_prefix("tree ")?.as_bytes())?;
    let parents = lines
        .map_while(|line| line.strip_prefix("parent "))
        .map(|parent| Oid::from_ascii(parent.as_bytes()))
        .collect::<Option<Vec<_>>>()?;
    Some(CommitObject {
        tree,
        parents,
        message: message.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_headers_are_parsed() {
        let oid = |digit: &str| digit.repeat(40);
        let text = format!(
            "tree {}\nparent {}\nparent {}\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n\nTitle\n\nparent {}\n",
            oid("1"),
            oid("2"),
            oid("3"),
            oid("4")
        );
        let commit = read(text.as_bytes()).unwrap();
        assert_eq!(commit.tree.as_str(), oid("1"));
        assert_eq!(
            commit.parents.iter().map(Oid::as_str).collect::<Vec<_>>(),
            [oid("2"), oid("3")]
        );
        assert_eq!(commit.message, format!("Title\n\nparent {}\n", oid("4")));
        for bad in [
            "",
            "tree x\n\nT",
            "parent 1\n",
            &text.replace(&oid("3"), "3"),
        ] {
            assert_eq!(read(bad.as_bytes()), None, "{bad}");
        }
    }
}
