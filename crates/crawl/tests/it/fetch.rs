//! Fetching files: every branch of the decision, with the real `gh` and the real git and fake servers.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test that calls it"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests lay out repositories and look at what is left of them"
)]

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_crawl::{
    FetchError, FetchMethod, FetchTools, Fetched, GitHub, GitHubError, RefChoice, RepoName, fetch,
    fetch_local,
};
use crucible_host::WorkDir;
use crucible_host::clock::PinnedClock;
use crucible_host::env::Environment;
use crucible_model::Timestamp;
use crucible_repo::{ArchiveError, CloneError, CloneUrl, RepoError};
use crucible_sandbox::Sandbox;
use crucible_testkit::{
    FakeGitHub, FakeRepo, Misbehaviour, RepoBuilder, TestRepo, Times, fake_sha, tarball,
    tarball_of_mode,
};
use serde_json::json;

use crate::ears::Ears;
use crate::fake_github::{environment, gh};

/// GitHub with its API and its repositories, and the directory for fetched files.
struct Setup {
    fake: FakeGitHub,
    room: tempfile::TempDir,
    clock: PinnedClock,
    ears: Ears,
}

impl Setup {
    fn with(repos: impl IntoIterator<Item = FakeRepo>) -> Self {
        let temp_dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp_dir.path().join("tmp")).unwrap();
        let clock = PinnedClock(Timestamp::from_unix(Duration::from_secs(1_700_000_000)));
        Self {
            fake: FakeGitHub::start(repos),
            room: temp_dir,
            clock,
            ears: Ears::default(),
        }
    }

    /// Serves `repo` for clones of `full_name`.
    fn served(self, full_name: &str, repo: &TestRepo) -> Self {
        let address = self
            .room
            .path()
            .join("served")
            .join(format!("{full_name}.git"));
        std::fs::create_dir_all(address.parent().unwrap()).unwrap();
        symlink(repo.path(), address).unwrap();
        self
    }

    /// The tools of this user, with the served repositories or with `base`.
    fn tools(&self, env: &Environment) -> FetchTools {
        let clone_base = Some(CloneUrl::of_directory(&self.room.path().join("served")).unwrap());
        FetchTools {
            sandbox: Arc::new(Sandbox::new(None, env)),
            env: env.clone(),
            clone_base,
        }
    }

    fn env(&self) -> Environment {
        environment(&self.fake, self.room.path(), &[])
    }

    fn warnings(&self) -> Vec<String> {
        self.ears.heard_of("warning: ")
    }

    fn work(&self) -> WorkDir {
        WorkDir::create(&self.tmp(), "crucible-crawl-", "1").unwrap()
    }

    fn tmp(&self) -> PathBuf {
        self.room.path().join("tmp")
    }

    async fn fetch(&self, work: &WorkDir, repo: &str, choice: &str) -> Result<Fetched, FetchError> {
        let choice = if choice.is_empty() {
            RefChoice::default()
        } else {
            RefChoice::parse(choice).unwrap()
        };
        let (repo, env) = (RepoName::parse(repo).unwrap(), self.env());
        let github = GitHub::new(gh(&env), &self.clock, &self.ears);
        fetch(
            &github,
            &self.tools(&env),
            &repo,
            &choice,
            work.path(),
            &self.ears,
        )
        .await
    }

    async fn fetch_local(
        &self,
        work: &WorkDir,
        path: &Path,
        choice: &str,
    ) -> Result<Fetched, FetchError> {
        let choice = if choice.is_empty() {
            RefChoice::default()
        } else {
            RefChoice::parse(choice).unwrap()
        };
        fetch_local(
            &self.tools(&self.env()),
            path,
            &choice,
            work.path(),
            &self.ears,
        )
        .await
    }
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A repository with a tag, a second branch, and `trunk` checked out.
fn example() -> TestRepo {
    let repo = RepoBuilder::new()
        .file("Cargo.toml", "[package]\n")
        .file("src/main.rs", "fn main() {}\n")
        .build();
    repo.git(["tag", "v0.9"]);
    repo.git(["checkout", "-q", "-b", "feature/x"]);
    repo.write("feature", "x\n");
    repo.commit("feature");
    repo.git(["checkout", "-q", "-b", "trunk", "main"]);
    repo.write("newest", "x\n");
    repo.commit("newest");
    repo
}

fn widget() -> FakeRepo {
    FakeRepo::new("acme/widget").default_branch("trunk")
}

#[tokio::test]
async fn latest_release_is_fetched_as_archive() {
    let setup = Setup::with([widget()
        .release("v1.0", &[("Cargo.toml", "[package]\n"), ("src/lib.rs", "")])
        .preview("v2-rc")]);
    let work = setup.work();
    let fetched = setup.fetch(&work, "acme/widget", "").await.unwrap();
    assert_eq!(fetched.method, FetchMethod::Tarball);
    assert_eq!(names(&fetched.tree), set(&["Cargo.toml", "src"]));
    assert!(fetched.tree.starts_with(work.path()));
    let repo = &fetched.repo;
    assert_eq!(
        (repo.full_name.as_str(), repo.url.as_str()),
        ("acme/widget", "https://github.com/acme/widget")
    );
    assert_eq!(
        (repo.selected_ref.as_str(), repo.default_branch.as_str()),
        ("v1.0", "trunk")
    );
    assert_eq!(repo.resolved_commit, fake_sha("acme/widget", "v1.0"));
    assert_eq!(setup.fake.count("/tarball/"), 1);
    assert!(
        !names(work.path()).iter().any(|name| name.ends_with(".gz")),
        "the archive itself is gone"
    );
    assert!(setup.warnings().is_empty(), "{:?}", setup.warnings());
    drop(work);
    assert!(names(&setup.tmp()).is_empty());
}

#[tokio::test]
async fn sub_project_changes_only_selected_ref() {
    let setup = Setup::with([widget().release("v1.0", &[("core/Cargo.toml", "")])]);
    let work = setup.work();
    let fetched = setup.fetch(&work, "acme/widget", ":core").await.unwrap();
    assert_eq!(
        (fetched.method, fetched.repo.selected_ref.as_str()),
        (FetchMethod::Tarball, "v1.0:core")
    );
    assert_eq!(fetched.subpath, Some("core".parse().unwrap()));
}

#[tokio::test]
async fn without_a_release_the_default_branch_is_cloned() {
    let repo = example();
    let setup = Setup::with([widget().preview("v2-rc")]).served("acme/widget", &repo);
    let work = setup.work();
    let fetched = setup.fetch(&work, "acme/widget", "").await.unwrap();
    assert_eq!(fetched.method, FetchMethod::ShallowClone);
    assert_eq!(names(&fetched.tree), set(&["Cargo.toml", "newest", "src"]));
    assert_eq!(
        (
            fetched.repo.selected_ref.as_str(),
            fetched.repo.default_branch.as_str()
        ),
        ("trunk", "trunk")
    );
    assert_eq!(fetched.repo.resolved_commit, repo.head());
    assert_eq!(setup.fake.count("/tarball/"), 0);
}

#[tokio::test]
async fn named_ref_overrides_release() {
    let repo = example();
    let setup =
        Setup::with([widget().release("v1.0", &[("released", "")])]).served("acme/widget", &repo);
    for (choice, selected, commit, files) in [
        ("v0.9", "v0.9", "v0.9", vec!["Cargo.toml", "src"]),
        (
            "feature/x",
            "feature/x",
            "feature/x",
            vec!["Cargo.toml", "feature", "src"],
        ),
        ("v0.9:src", "v0.9:src", "v0.9", vec!["Cargo.toml", "src"]),
    ] {
        let work = setup.work();
        let fetched = setup.fetch(&work, "acme/widget", choice).await.unwrap();
        assert_eq!(
            (fetched.method, names(&fetched.tree)),
            (FetchMethod::ShallowClone, set(&files))
        );
        assert_eq!(
            (
                fetched.repo.selected_ref.as_str(),
                fetched.repo.default_branch.as_str()
            ),
            (selected, "trunk")
        );
        assert_eq!(
            fetched.repo.resolved_commit,
            repo.git(["rev-parse", commit])
        );
    }
    assert_eq!(
        (setup.fake.count("/tarball/"), setup.fake.count("/releases")),
        (0, 0)
    );
    let work = setup.work();
    let missing = setup.fetch(&work, "acme/widget", "v7").await.unwrap_err();
    assert!(
        matches!(&missing, FetchError::Clone(CloneError::NoSuchRef { name, .. }) if name == "v7"),
        "{missing}"
    );
}

#[tokio::test]
async fn commit_id_is_fetched_as_archive() {
    let sha = "0123456789abcdef0123456789abcdef01234567";
    let setup = Setup::with([widget()
        .release("v1.0", &[("released", "")])
        .commit(sha, &[("at-commit", "")])]);
    let work = setup.work();
    let fetched = setup
        .fetch(&work, "acme/widget", &sha.to_uppercase())
        .await
        .unwrap();
    assert_eq!(
        (fetched.method, names(&fetched.tree)),
        (FetchMethod::Tarball, set(&["at-commit"]))
    );
    assert_eq!(
        (
            fetched.repo.selected_ref.as_str(),
            fetched.repo.resolved_commit.as_str()
        ),
        (sha, sha)
    );
}

#[tokio::test]
async fn an_archive_of_another_commit_is_an_error() {
    let sha = "0123456789abcdef0123456789abcdef01234567";
    let other = "fedcba9876543210fedcba9876543210fedcba98";
    let file = [("a", "a")];
    let short = |top: &str| {
        // The commit in the header is correct, but the folder's name is not.
        let (owner, name) = top.split_once('-').unwrap();
        tarball(owner, name, &sha[..7], file)
    };
    for (archive, message) in [
        (
            tarball("acme", "widget", other, file),
            "it names the commit fedcba98",
        ),
        (short("acme-other-widget-abcdef0"), "its top folder is"),
        (
            tarball("acme", "widget", "01234", file),
            "its top folder is",
        ),
    ] {
        let fake = widget().release_with(
            "v1.0",
            if message.contains("top") { other } else { sha },
            archive,
        );
        let setup = Setup::with([fake]);
        let work = setup.work();
        let error = setup.fetch(&work, "acme/widget", "").await.unwrap_err();
        assert!(matches!(error, FetchError::OtherCommit { .. }), "{error}");
        assert!(
            error.to_string().contains(message) && error.to_string().contains("--ref"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn hostile_archive_is_refused() {
    let sha = fake_sha("acme/widget", "v1.0");
    let good = tarball("acme", "widget", &sha, [("a", "a")]);
    let hostile = tarball("acme", "widget", &sha, [("../../../../escaped", "x")]);
    for (archive, expected) in [
        (good[..good.len() - 6].to_vec(), "download it again"),
        (b"<html>not an archive</html>".to_vec(), "download it again"),
        (hostile, "has `..` in its name"),
    ] {
        let setup = Setup::with([widget().release_with("v1.0", &sha, archive)]);
        let before = names(setup.room.path());
        let work = setup.work();
        let error = setup.fetch(&work, "acme/widget", "").await.unwrap_err();
        assert!(matches!(error, FetchError::Archive { .. }), "{error}");
        assert!(
            error.to_string().contains(expected) && error.to_string().contains("--ref"),
            "{error}"
        );
        drop(work);
        assert!(names(&setup.tmp()).is_empty() && names(setup.room.path()) == before);
    }
    for how in [
        Misbehaviour::CutHalfway,
        Misbehaviour::EndHalfway,
        Misbehaviour::status(500),
    ] {
        let setup = Setup::with([widget().release("v1.0", &[("a", &"text ".repeat(3000))])]);
        setup
            .fake
            .misbehave("legacy.tar.gz", Times::Always, how.clone());
        let work = setup.work();
        let error = setup.fetch(&work, "acme/widget", "").await.unwrap_err();
        assert!(
            matches!(error, FetchError::GitHub(_) | FetchError::Archive { .. }),
            "{how:?}: {error}"
        );
        assert!(
            !matches!(
                error,
                FetchError::Archive {
                    source: ArchiveError::Io(_),
                    ..
                }
            ),
            "{how:?}: {error}"
        );
        drop(work);
        assert!(names(&setup.tmp()).is_empty());
    }
}

#[tokio::test]
async fn renamed_repository_is_fetched_under_new_name() {
    let repo = example();
    let old = FakeRepo::new("acme/old")
        .lying("full_name", json!("acme/widget"))
        .lying("name", json!("widget"))
        .lying("html_url", json!("https://github.com/acme/widget"))
        .default_branch("trunk");
    let setup = Setup::with([old, widget()]).served("acme/widget", &repo);
    let work = setup.work();
    let fetched = setup.fetch(&work, "acme/old", "v0.9").await.unwrap();
    assert_eq!(fetched.repo.full_name, "acme/widget");
    let warnings = setup.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("acme/old was renamed") && warnings[0].contains("acme/widget"));
    // Another case is the same name.
    setup
        .fetch(&setup.work(), "Acme/Widget", "v0.9")
        .await
        .unwrap();
    assert_eq!(setup.warnings().len(), 1);
}

#[tokio::test]
async fn missing_repository_is_reported() {
    let setup = Setup::with([widget()]);
    let work = setup.work();
    let missing = setup.fetch(&work, "acme/nothing", "").await.unwrap_err();
    assert!(
        matches!(missing, FetchError::GitHub(GitHubError::NotFound { .. })),
        "{missing}"
    );
    let unserved = setup.fetch(&work, "acme/widget", "").await.unwrap_err();
    assert!(
        matches!(unserved, FetchError::Clone(CloneError::NoAccess { .. })),
        "{unserved}"
    );
    assert!(unserved.to_string().contains("./path"), "{unserved}");
}

#[tokio::test]
async fn local_repository_is_cloned_at_head() {
    let repo = example();
    let setup = Setup::with([]);
    let local = setup.room.path().join("my project");
    symlink(repo.path(), &local).unwrap();
    let before = repo.git(["count-objects", "-v"]) + &repo.status();
    for (path, choice, selected, commit) in [
        ("./my project", "", "trunk", "trunk"),
        ("./my project", "v0.9", "v0.9", "v0.9"),
        (
            "./my project",
            "feature/x:src",
            "feature/x:src",
            "feature/x",
        ),
        ("./my project", ":src", "trunk:src", "trunk"),
        // Below the top level it is that part, unless another one is named.
        ("my project/src", "", "trunk:src", "trunk"),
        ("my project/src/../src", "v0.9", "v0.9:src", "v0.9"),
        ("my project/src", ":docs", "trunk:docs", "trunk"),
    ] {
        let work = setup.work();
        let fetched = setup
            .fetch_local(&work, Path::new(path), choice)
            .await
            .unwrap();
        assert_eq!(fetched.method, FetchMethod::ShallowClone);
        let directory = repo.path().canonicalize().unwrap();
        let name = directory.file_name().unwrap().to_str().unwrap();
        assert_eq!(fetched.repo.full_name, format!("./{name}"));
        assert_eq!(fetched.repo.url, format!("file://{}", directory.display()));
        assert_eq!(
            (
                fetched.repo.selected_ref.as_str(),
                fetched.repo.default_branch.as_str()
            ),
            (selected, "trunk")
        );
        let part = selected
            .split_once(':')
            .map(|(_, part)| part.parse().unwrap());
        assert_eq!(fetched.subpath, part, "{path} {choice}");
        assert_eq!(
            fetched.repo.resolved_commit,
            repo.git(["rev-parse", commit])
        );
        assert!(fetched.tree.join("src/main.rs").exists() && !fetched.tree.join(".git").exists());
    }
    assert_eq!(repo.git(["count-objects", "-v"]) + &repo.status(), before);
    assert!(
        setup.fake.requests().is_empty(),
        "GitHub has nothing to do with it"
    );
    assert!(setup.warnings().is_empty(), "{:?}", setup.warnings());
    repo.git(["checkout", "-q", "--detach", "v0.9"]);
    let work = setup.work();
    let fetched = setup.fetch_local(&work, repo.path(), "").await.unwrap();
    assert_eq!(
        (
            fetched.repo.selected_ref.as_str(),
            fetched.repo.default_branch.as_str()
        ),
        ("HEAD", "HEAD")
    );
}

#[tokio::test]
async fn invalid_local_path_has_hint() {
    let setup = Setup::with([]);
    let work = setup.work();
    std::fs::create_dir(setup.room.path().join("plain")).unwrap();
    let error = setup
        .fetch_local(&work, Path::new("./plain"), "")
        .await
        .unwrap_err();
    assert!(
        matches!(error, FetchError::Local(RepoError::NotARepository { .. })),
        "{error}"
    );
    assert!(error.to_string().contains("git init"), "{error}");
    std::fs::write(setup.room.path().join("plain/file"), "x").unwrap();
    for (path, expected) in [
        ("./nothere", "does not exist"),
        ("./plain/nothere/deeper", "does not exist"),
        ("./plain/file/deeper", "does not exist"),
        ("./plain/file", "is not a directory"),
    ] {
        let error = setup
            .fetch_local(&work, Path::new(path), "")
            .await
            .unwrap_err();
        assert!(
            matches!(
                error,
                FetchError::NoSuchPath { .. } | FetchError::NotADirectory { .. }
            ),
            "{path}: {error}"
        );
        let text = error.to_string();
        assert!(
            text.contains(expected) && text.contains("name ") && !text.contains("git init"),
            "{text}"
        );
    }
    let unborn = RepoBuilder::new().build();
    let error = setup
        .fetch_local(&work, unborn.path(), "")
        .await
        .unwrap_err();
    assert!(matches!(error, FetchError::Unborn { .. }), "{error}");
    assert!(error.to_string().contains("commit its files"), "{error}");
    let repo = example();
    repo.git(["clone", "-q", "--bare", ".", "bare.git"]);
    let error = setup
        .fetch_local(&work, &repo.path().join("bare.git"), "")
        .await
        .unwrap_err();
    assert!(matches!(error, FetchError::Bare { .. }), "{error}");
    assert!(
        error.to_string().contains("git clone") && !error.to_string().contains("worktree"),
        "{error}"
    );
    let error = setup
        .fetch_local(&work, repo.path(), &repo.head())
        .await
        .unwrap_err();
    assert!(
        matches!(error, FetchError::LocalCommit { .. }) && error.to_string().contains("git tag"),
        "{error}"
    );
    let error = setup
        .fetch_local(&work, repo.path(), "nope")
        .await
        .unwrap_err();
    assert!(
        matches!(error, FetchError::Clone(CloneError::NoSuchRef { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn dropped_fetch_stops_its_work() {
    // Small files, so that unpacking takes much longer than downloading.
    let files: Vec<(String, String)> = (0..4000)
        .map(|n| (format!("d{}/f{n}", n % 50), format!("{n}\n")))
        .collect();
    let sha = fake_sha("acme/widget", "v1.0");
    let setup =
        Setup::with([widget().release_with("v1.0", &sha, tarball("acme", "widget", &sha, files))]);
    let work = setup.work();
    let begun = async {
        while !work
            .path()
            .join("archive")
            .join(format!("acme-widget-{}", &sha[..7]))
            .exists()
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        _ = setup.fetch(&work, "acme/widget", "") => {}
        () = begun => {}
    }
    drop(work);
    assert!(names(&setup.tmp()).is_empty());

    // While GitHub does not answer, and while git waits.
    let setup = Setup::with([widget().release("v1.0", &[])]);
    setup
        .fake
        .misbehave("tarball", Times::Always, Misbehaviour::Hang);
    let work = setup.work();
    let asked = async {
        while setup.fake.count("tarball") == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        fetched = setup.fetch(&work, "acme/widget", "") => panic!("{fetched:?}"),
        () = asked => {}
    }
    drop(work);
    assert!(names(&setup.tmp()).is_empty());
}

#[tokio::test]
async fn fetch_reports_progress() {
    let setup = Setup::with([widget().release("v1.0", &[("a", "")])]);
    setup.fetch(&setup.work(), "acme/widget", "").await.unwrap();
    let messages = setup.ears.heard();
    assert_eq!(
        messages,
        [
            "looking up acme/widget",
            "downloading acme/widget at v1.0",
            "unpacking the archive"
        ]
    );
    let (repo, setup) = (example(), Setup::with([]));
    setup
        .fetch_local(&setup.work(), &repo.path().join("src"), "")
        .await
        .unwrap();
    let top = repo.path().canonicalize().unwrap();
    let top = top.display();
    assert_eq!(
        setup.ears.heard(),
        [format!("opening {top}/src"), format!("cloning {top}")]
    );
}

#[tokio::test]
async fn uncommitted_changes_are_warned_once() {
    let repo = example();
    repo.write("newest", "changed\n");
    repo.write("untracked", "x\n");
    let setup = Setup::with([]);
    let work = setup.work();
    let fetched = setup.fetch_local(&work, repo.path(), "").await.unwrap();
    assert!(!fetched.tree.join("untracked").exists());
    let warnings = setup.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("2 paths are changed or untracked"),
        "{warnings:?}"
    );
    // With a named commit the user has chosen what is read.
    setup
        .fetch_local(&setup.work(), repo.path(), "v0.9")
        .await
        .unwrap();
    assert_eq!(setup.warnings().len(), 1);
}

#[tokio::test]
async fn omitted_submodules_are_reported() {
    let repo = example();
    let head = repo.head();
    repo.git([
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{head},sub"),
    ]);
    repo.git(["commit", "-q", "-m", "a submodule"]);
    let archive = [(".gitmodules", "[submodule \"sub\"]\n"), ("a", "")];
    let setup = Setup::with([
        widget(),
        FakeRepo::new("acme/packed").release("v1", &archive),
    ])
    .served("acme/widget", &repo);
    for name in ["acme/widget", "acme/packed"] {
        setup.fetch(&setup.work(), name, "").await.unwrap();
    }
    let warnings = setup.warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert_eq!(warnings[0], "submodules, whose files are not read: 1");
    assert!(warnings[1].contains(".gitmodules"), "{warnings:?}");
}

#[tokio::test]
async fn special_archive_mode_bits_are_dropped_and_reported() {
    let sha = fake_sha("acme/widget", "v1.0");
    let archive = tarball_of_mode(0o4755, "acme", "widget", &sha, [("a", "x"), ("b", "y")]);
    let setup = Setup::with([widget().release_with("v1.0", &sha, archive)]);
    setup.fetch(&setup.work(), "acme/widget", "").await.unwrap();
    assert_eq!(
        setup.warnings(),
        ["set-user, set-group and sticky bits of the archive's entries, left out: 2"]
    );
}

#[tokio::test]
async fn clone_host_must_match_gh() {
    let corporate = FakeRepo::new("acme/widget")
        .default_branch("trunk")
        .lying("html_url", json!("https://git.example.org/acme/widget"));
    let setup = Setup::with([corporate]);
    // Nothing listens on that port: git names the address.
    let variables = [
        ("GH_HOST", "Git.Example.org"),
        ("GH_ENTERPRISE_TOKEN", "t"),
        ("HTTPS_PROXY", "http://127.0.0.1:9"),
    ];
    let env = environment(&setup.fake, setup.room.path(), &variables);
    let github = GitHub::new(gh(&env), &setup.clock, &setup.ears);
    let (name, choice) = (
        RepoName::parse("acme/widget").unwrap(),
        RefChoice::default(),
    );
    let from = async |base: Option<&str>| {
        let clone_base = base.map(|base| CloneUrl::parse(base).unwrap());
        let tools = FetchTools {
            clone_base,
            ..setup.tools(&env)
        };
        fetch(
            &github,
            &tools,
            &name,
            &choice,
            setup.work().path(),
            &setup.ears,
        )
        .await
        .unwrap_err()
    };
    for base in [
        None,
        Some("https://git.example.org"),
        Some("https://GIT.example.org:443/"),
    ] {
        let error = from(base).await;
        assert!(
            matches!(&error, FetchError::Clone(CloneError::Unreachable { url, .. })
                if url.to_lowercase().starts_with("https://git.example.org")),
            "{base:?}: {error}"
        );
    }
    let request_count = setup.fake.requests().len();
    for base in [
        "https://github.com",
        "https://git.example.org.evil.test",
        "https://git.example.com/x",
    ] {
        let error = from(Some(base)).await;
        assert!(
            matches!(error, FetchError::OtherHost { .. }),
            "{base}: {error}"
        );
        assert!(error.to_string().contains("crawl.clone_base"), "{error}");
    }
    assert_eq!(
        setup.fake.requests().len(),
        request_count,
        "nobody was asked"
    );
}
