//! Makes a copy its own repository: one commit, no remotes, no hooks, no history of the original.
//!
//! Programs in the sandbox may ask git for tracked or changed files. The commit's names and date are fixed,
//! so the same files give the same commit.

use std::path::Path;
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_host::fs;
use crucible_sandbox::Sandbox;

use crate::error::RepoError;
use crate::git::{Call, Flush, Runner};
use crate::oid::Oid;

/// Author and committer of a baseline, and its date.
pub(crate) const WHO: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "Crucible"),
    ("GIT_AUTHOR_EMAIL", "crucible@localhost"),
    ("GIT_AUTHOR_DATE", "@946684800 +0000"),
    ("GIT_COMMITTER_NAME", "Crucible"),
    ("GIT_COMMITTER_EMAIL", "crucible@localhost"),
    ("GIT_COMMITTER_DATE", "@946684800 +0000"),
];

/// Makes `copy` a repository whose only commit has all of its files, ignored ones included.
///
/// # Errors
///
/// Fails when git fails; a copy with a `.git` is refused.
pub async fn create_baseline(
    sandbox: Arc<Sandbox>,
    env: &Environment,
    copy: &Path,
) -> Result<Oid, RepoError> {
    if copy.join(".git").symlink_metadata().is_ok() {
        return Err(RepoError::DestinationTaken {
            path: copy.join(".git"),
        });
    }
    let runner = Runner::find(sandbox, env)?;
    let here = [
        ("GIT_DIR", copy.join(".git")),
        ("GIT_WORK_TREE", copy.to_owned()),
    ];
    let run = async |words: &[&str]| {
        // The copy does not live long.
        let mut call = Call::new(words.iter().copied())
            .flushing(Flush::No)
            // It is never checked out on a file system for which a name of the project would mean another one.
            .with_setting("core.protectNTFS", "false")
            .with_setting("core.protectHFS", "false");
        for (name, value) in WHO {
            call = call.with_env(name, value);
        }
        for (name, value) in &here {
            call = call.with_env(name, value);
        }
        let output = runner.run(copy, None, &[], call).await?;
        if output.code == 0 {
            Ok(output)
        } else {
            Err(output.into_error())
        }
    };
    run(&["init", "--quiet", "--template=", "--initial-branch=main"]).await?;
    // It overrides every `.gitattributes`: the bytes are committed unchanged.
    fs::create_dir_all(&copy.join(".git/info"))?;
    fs::write_atomic(
        &copy.join(".git/info/attributes"),
        b"* -text -ident -filter -working-tree-encoding\n",
    )?;
    run(&["add", "--all", "--force", "."]).await?;
    run(&[
        "commit",
        "--quiet",
        "--no-verify",
        "--allow-empty",
        "--message=The state before the change",
    ])
    .await?;
    let output = run(&["rev-parse", "HEAD"]).await?;
    Oid::from_ascii(output.stdout.trim_ascii()).ok_or_else(|| output.unreadable())
}
