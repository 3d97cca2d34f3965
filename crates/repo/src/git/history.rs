//! Data for the ranking of files: the last commits with their changed files, and the repository's name.
//!
//! Everything comes from plumbing commands: no diff program, no text conversion, no signature check, no file
//! content. The trees alone give the files of a commit.

use crucible_model::{ByteLimit, RepoPath};

use super::{Call, Git};
use crate::error::RepoError;
use crate::oid::Oid;

/// Maximum output of git in bytes for the messages, and for the files. A larger history is refused.
const MAX_OUTPUT: ByteLimit = ByteLimit(64 << 20);

/// Maximum size of a diff in bytes.
const MAX_DIFF: ByteLimit = ByteLimit(8 << 20);

/// The longest name of a repository.
const MAX_NAME: usize = 100;

/// A commit, and the files that it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitFiles {
    /// The commit.
    pub commit: Oid,
    /// Its message; bytes that are not UTF-8 are replaced.
    pub message: String,
    /// The added, changed and removed files, sorted, without names that are not a valid [`RepoPath`].
    pub paths: Vec<RepoPath>,
}

impl Git {
    /// Returns the changes of the last `count` commits up to `from`, newest first. Merges and commits without
    /// a parent are skipped.
    ///
    /// # Errors
    ///
    /// Fails when git fails, for example on a missing tree of a partial clone, or when a limit is exceeded.
    pub async fn history(&self, from: &Oid, count: u32) -> Result<Vec<CommitFiles>, RepoError> {
        let most = format!("--max-count={count}");
        let words = [
            "rev-list",
            "--header",
            "--no-merges",
            &most,
            "--end-of-options",
            from.as_str(),
            "--",
        ];
        let output = self
            .run_ok(Call::new(words).with_max_output(MAX_OUTPUT))
            .await?;
        let mut commits = Vec::new();
        for record in output.records() {
            commits.extend(read_commit(record).ok_or_else(|| output.unreadable())?);
        }
        if commits.is_empty() {
            return Ok(commits);
        }
        let names: Vec<u8> = commits
            .iter()
            .flat_map(|commit| [commit.commit.as_str().as_bytes(), b"\n"].concat())
            .collect();
        let words = [
            "diff-tree",
            "--stdin",
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
        ];
        let output = self
            .run_ok(Call::new(words).reading(names).with_max_output(MAX_OUTPUT))
            .await?;
        let mut at = None;
        let mut records = output.records();
        while let Some(record) = records.next() {
            if record.starts_with(b":") {
                // `:mode mode oid oid status`, then the path.
                let path = records.next().ok_or_else(|| output.unreadable())?;
                let commit: &mut CommitFiles = at
                    .and_then(|at| commits.get_mut(at))
                    .ok_or_else(|| output.unreadable())?;
                commit.paths.extend(RepoPath::from_bytes(path));
            } else {
                let oid =
                    Oid::from_ascii(record.trim_ascii()).ok_or_else(|| output.unreadable())?;
                // They come in the requested order; those without changes are omitted.
                let from = at.map_or(0, |at| at + 1);
                let found = commits
                    .get(from..)
                    .and_then(|rest| rest.iter().position(|one| one.commit == oid));
                at = Some(from + found.ok_or_else(|| output.unreadable())?);
            }
        }
        Ok(commits)
    }

    /// Returns the changes of a commit in these files as a diff that shows whole files. Bytes that are not UTF-8 are
    /// replaced.
    ///
    /// # Errors
    ///
    /// Fails when git fails, or when a limit is exceeded.
    pub async fn whole_diff(&self, commit: &Oid, paths: &[RepoPath]) -> Result<String, RepoError> {
        let mut words = vec![
            "diff-tree",
            "-r",
            "-p",
            "--unified=1000000",
            "--no-commit-id",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            "--end-of-options",
            commit.as_str(),
            "--",
        ];
        words.extend(paths.iter().map(RepoPath::as_str));
        let output = self
            .run_ok(Call::new(words).with_max_output(MAX_DIFF))
            .await?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Returns the repository's name, which is the same at every checkout: the last part of the URL of
    /// `origin`. Without such a remote or a plain name, the name of the top directory. Fixed when the
    /// repository is opened.
    #[must_use]
    pub fn name(&self) -> String {
        let directory = || {
            self.top()
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
        };
        self.origin
            .as_deref()
            .and_then(last_part)
            .or_else(directory)
            .unwrap_or_default()
    }
}

/// Parses `oid LF header LF LF message`, with each message line indented by four; an inner `None` if the
/// commit has no parent.
fn read_commit(record: &[u8]) -> Option<Option<CommitFiles>> {
    let text = String::from_utf8_lossy(record);
    let (oid, rest) = text.trim_start_matches('\n').split_once('\n')?;
    let commit = Oid::from_ascii(oid.as_bytes())?;
    let (header, message) = rest.split_once("\n\n").unwrap_or((rest, ""));
    if !header.lines().any(|line| line.starts_with("parent ")) {
        return Some(None);
    }
    let lines: Vec<&str> = message
        .lines()
        .map(|line| line.strip_prefix("    ").unwrap_or(line))
        .collect();
    Some(Some(CommitFiles {
        commit,
        message: lines.join("\n").trim_end().to_owned(),
        paths: Vec::new(),
    }))
}

/// `repo` of `https://host/owner/repo.git`, `host:owner/repo` and `/srv/git/repo/`.
fn last_part(url: &[u8]) -> Option<String> {
    let url = std::str::from_utf8(url).ok()?.trim_end_matches('/');
    let url = url.strip_suffix("/.git").unwrap_or(url);
    let name = url.rsplit(['/', ':']).next()?;
    let name = name.strip_suffix(".git").unwrap_or(name);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_name = !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_plain);
    (is_name && name.chars().any(|c| c.is_ascii_alphanumeric())).then(|| name.to_owned())
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "git is found where the test's own PATH says"
)]
mod tests {
    use std::sync::Arc;

    use crucible_host::env::Environment;
    use crucible_sandbox::Sandbox;
    use crucible_testkit::{RepoBuilder, TestRepo};

    use super::*;

    async fn open(repo: &TestRepo) -> Git {
        let path = std::env::var_os("PATH").unwrap();
        let env = Environment::from_pairs([("PATH", path)], "/");
        let sandbox = Arc::new(Sandbox::new(None, &env));
        Git::open(sandbox, &env, repo.path()).await.unwrap()
    }

    fn messages_and_paths(history: &[CommitFiles]) -> Vec<(&str, Vec<&str>)> {
        fn as_pair(commit: &CommitFiles) -> (&str, Vec<&str>) {
            (
                &commit.message,
                commit.paths.iter().map(RepoPath::as_str).collect(),
            )
        }
        history.iter().map(as_pair).collect()
    }

    #[tokio::test]
    async fn whole_diff_shows_every_line_of_files() {
        let lines = |last: &str| format!("{}{last}\n", "line\n".repeat(50));
        let repo = RepoBuilder::new()
            .files([("a*", lines("old").as_str()), ("ab", "1\n")])
            .build();
        repo.write("a*", lines("new"));
        repo.write("ab", "2\n");
        repo.commit("Change both");
        let git = open(&repo).await;
        let path = "a*".parse().unwrap();
        let diff = git
            .whole_diff(&git.opened_at().commit, &[path])
            .await
            .unwrap();
        assert_eq!(diff.matches("\n line").count(), 50, "{diff}");
        assert!(
            diff.contains("\n+++ b/a*\n") && diff.contains("\n-old\n+new\n"),
            "{diff}"
        );
        assert!(!diff.contains("ab"), "{diff}");
    }

    #[tokio::test]
    async fn history_skips_root_and_merge_commits() {
        let repo = RepoBuilder::new()
            .files([("a", "1"), ("b", "1"), ("dir/c", "1")])
            .build();
        repo.write("a", "2");
        repo.write("dir/c", "2");
        repo.commit("Mend the parser\n\nparent of all: \u{e9}\n\n:100644 is not an entry");
        repo.git(["checkout", "--quiet", "-b", "side", "HEAD~1"]);
        repo.write("side", "1");
        repo.commit("On the side");
        repo.git(["checkout", "--quiet", "main"]);
        repo.git(["merge", "--quiet", "--no-edit", "side"]);
        repo.git([
            "commit",
            "--quiet",
            "--allow-empty",
            "--allow-empty-message",
            "--message",
            "",
        ]);
        repo.git(["mv", "b", &"0".repeat(40)]);
        repo.commit("Move b");
        let git = open(&repo).await;
        let history = git.history(&git.opened_at().commit, 500).await.unwrap();
        let zeros = "0".repeat(40);
        let mut commits = messages_and_paths(&history);
        // The two in the middle are of one second: their order is git's.
        commits.sort_by_key(|(message, _)| *message);
        assert_eq!(
            commits,
            [
                ("", vec![]),
                (
                    "Mend the parser\n\nparent of all: \u{e9}\n\n:100644 is not an entry",
                    vec!["a", "dir/c"]
                ),
                ("Move b", vec![zeros.as_str(), "b"]),
                ("On the side", vec!["side"]),
            ]
        );
        assert_eq!(
            git.history(&git.opened_at().commit, 1).await.unwrap().len(),
            1
        );
    }

    #[tokio::test]
    async fn history_runs_nothing_of_hostile_configuration() {
        let repo = RepoBuilder::new()
            .files([("a", "1"), (".gitattributes", "* diff=evil\n")])
            .build();
        let git = open(&repo).await;
        assert_eq!(git.history(&git.opened_at().commit, 500).await.unwrap(), []);
        repo.write("a", "2");
        repo.commit("Second");
        let mark = repo.path().join("ran");
        let evil = format!("touch {}; false", mark.display());
        for key in [
            "diff.external",
            "diff.evil.command",
            "diff.evil.textconv",
            "core.fsmonitor",
            "core.pager",
        ] {
            repo.git(["config", key, &evil]);
        }
        repo.git(["config", "diff.noprefix", "true"]);
        repo.git(["config", "diff.renames", "copies"]);
        repo.git(["config", "log.showSignature", "true"]);
        let git = open(&repo).await;
        let history = git.history(&git.opened_at().commit, 500).await.unwrap();
        assert_eq!(messages_and_paths(&history), [("Second", vec!["a"])]);
        assert_eq!(git.tracked_names().await.unwrap().len(), 2);
        assert!(!mark.exists());
    }

    #[tokio::test]
    async fn name_is_from_origin_or_directory() {
        let repo = RepoBuilder::new().file("a", "1").build();
        let directory = repo
            .path()
            .canonicalize()
            .unwrap()
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        assert_eq!(open(&repo).await.name(), directory);
        for (url, name) in [
            (
                "https://user:password@host.invalid/owner/thing.git",
                "thing",
            ),
            ("git@host.invalid:owner/thing", "thing"),
            ("host.invalid:thing.git/", "thing"),
            ("/srv/git/thing/.git", "thing"),
            ("../..", directory.as_str()),
            ("https://host.invalid/a b", directory.as_str()),
            ("https://host.invalid/\u{1b}[2J", directory.as_str()),
        ] {
            repo.git(["config", "remote.origin.url", url]);
            assert_eq!(open(&repo).await.name(), name, "{url}");
        }
    }
}
