//! The copy of a project, what an agent may do to it, and the way back.
#![expect(
    clippy::disallowed_methods,
    reason = "tests lay out files by hand, and start git and themselves"
)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use crucible_host::clock::SystemClock;
use crucible_host::env::Environment;
use crucible_model::Verdict;
use crucible_repo::{
    CopyEntry, EditObstacle, EditRecovery, OmitReason, TreeEditError, UnseenReason,
};
use crucible_sandbox::{Sandbox, Strength};

use super::scope::MAX_SCOPE_FINDINGS;
use super::*;
use crate::answer_form::AnswerForm;
use crate::paths::SkillPaths;

const SKILL: &str = "src/skillset/skills/word_len.py";
const TEST: &str = "tests/test_skill_word_len.py";

struct Setup {
    directory: tempfile::TempDir,
    env: Environment,
}

impl Setup {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let home = directory.path().as_os_str().to_owned();
        let env = Environment::from_pairs([("PATH", path), ("HOME", home)], "/");
        let setup = Self { directory, env };
        setup.write("src/skillset/skills/base.py", "class BaseSkill: ...\n");
        setup.write("src/skillset/__init__.py", "");
        setup.write("tests/conftest.py", "");
        setup.write("README.md", "words\n");
        setup
    }

    fn top(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        put(&self.top(), path, content);
    }

    fn project(&self) -> ForgeProject {
        ForgeProject::new(
            self.top(),
            Digest::compute(b"project"),
            "skillset".parse().unwrap(),
        )
    }

    fn paths(&self) -> SkillPaths {
        self.project().paths(&"word_len".parse().unwrap()).unwrap()
    }

    fn world(&self) -> ForgeContext<'_> {
        ForgeContext {
            env: &self.env,
            clock: &SystemClock,
            sandbox: Arc::new(Sandbox::new(None, &self.env)),
            strength: Strength::Off,
            home: self.home(),
            tmp: self.home().join("tmp"),
        }
    }

    async fn copy(&self) -> SkillWorkspace {
        SkillWorkspace::make(&self.world(), &self.project())
            .await
            .unwrap()
    }

    /// The verdict over what is different in the copy.
    fn judge(&self, workspace: &SkillWorkspace) -> Verdict {
        let paths = self.paths();
        let current_paths: Vec<&RepoPath> = paths
            .files()
            .into_iter()
            .filter(|path| workspace.initial_digest(path).is_some())
            .collect();
        check_scope(
            &workspace.changes().unwrap(),
            &Scope {
                paths: &paths,
                existing: &current_paths,
                form: AnswerForm::WritesFiles,
            },
        )
    }

    /// What a build does once its agent is done.
    fn bring_back(&self, workspace: &SkillWorkspace) -> Result<(), CopyBackError> {
        let changes = workspace.changes().unwrap();
        let files = workspace.built(&self.paths(), &changes)?;
        copy_back(&self.project(), &self.home(), &self.paths(), &files).map(drop)
    }

    /// Every file, link and directory of the project.
    fn state(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut state = BTreeMap::new();
        let mut left = vec![self.top()];
        while let Some(directory) = left.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let meta = path.symlink_metadata().unwrap();
                let content = if meta.is_dir() {
                    left.push(path.clone());
                    Vec::new()
                } else if meta.is_symlink() {
                    std::fs::read_link(&path)
                        .unwrap()
                        .into_os_string()
                        .into_encoded_bytes()
                } else {
                    std::fs::read(&path).unwrap()
                };
                state.insert(path, content);
            }
        }
        state
    }
}

fn put(top: &Path, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let path = top.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// Both files, as a good agent makes them.
fn build(workspace: &SkillWorkspace) {
    put(workspace.root(), SKILL, "skill\n");
    put(workspace.root(), TEST, "test\n");
}

fn codes(verdict: &Verdict) -> Vec<(String, String)> {
    let findings = verdict.findings().iter();
    let mut codes: Vec<_> = findings
        .map(|finding| (finding.code.to_string(), finding.subject.clone()))
        .collect();
    codes.sort();
    codes
}

fn expect(verdict: &Verdict, expected: &[(&str, &str)]) {
    let mut expected: Vec<_> = expected
        .iter()
        .map(|(code, path)| (format!("forge-scope-{code}"), (*path).to_owned()))
        .collect();
    expected.sort();
    assert_eq!(codes(verdict), expected);
}

#[tokio::test]
async fn copy_omits_git_and_secrets() {
    let setup = Setup::new();
    // Made up, and in two parts, so that nobody takes them for keys.
    let key = format!(
        "-----BEGIN {}-----\n{}\n",
        "PRIVATE KEY",
        "q7Zt4Lm2WsR8vK1x".repeat(8)
    );
    let token = format!(
        "token = \"ghp_{}\"\n",
        "q7Zt4Lm2WsR8vK1xq7Zt4Lm2WsR8vK1x3Pa9"
    );
    let secrets: [(&str, &str); 14] = [
        (".env", "A=1"),
        (".ENV.Local", "A=1"),
        ("deep/.envs/production", "A=1"),
        (".npmrc", "x"),
        (".netrc", "x"),
        ("certs/SERVER.PEM", "x"),
        ("certs/server.key", "x"),
        ("credentials.json", "{}"),
        ("home/.ssh/config", "x"),
        (".aws/credentials", "x"),
        (".config/gcloud/legacy", "x"),
        ("docs/renamed.txt", &key),
        ("src/skillset/settings.py", &token),
        (".crucible/skills/policy.yaml", "x"),
    ];
    for (path, content) in secrets {
        setup.write(path, content);
    }
    setup.write("data/store", "SQLite format 3\0");
    setup.write("ignored.log", "kept\n");
    setup.write(".gitignore", "*.log\n");
    let workspace = setup.copy().await;
    for (path, _) in secrets {
        assert!(
            workspace.root().join(path).symlink_metadata().is_err(),
            "{path}"
        );
    }
    assert!(workspace.root().join("ignored.log").is_file());
    let omitted: Vec<_> = workspace
        .omitted()
        .iter()
        .map(|omission| omission.path.to_str().unwrap())
        .collect();
    assert_eq!(
        omitted,
        [
            ".ENV.Local",
            ".aws/credentials",
            ".config/gcloud",
            ".crucible",
            ".env",
            ".netrc",
            ".npmrc",
            "certs/SERVER.PEM",
            "certs/server.key",
            "credentials.json",
            "data/store",
            "deep/.envs",
            "docs/renamed.txt",
            "home/.ssh",
            "src/skillset/settings.py",
        ]
    );
    let own = workspace
        .omitted()
        .iter()
        .find(|omission| omission.path == Path::new(".crucible"))
        .unwrap();
    assert_eq!(own.reason, OmitReason::Own);
    assert!(workspace.changes().unwrap().is_empty() && workspace.scratch().is_dir());
    let place = workspace.root().parent().unwrap().to_owned();
    assert!(place.starts_with(setup.home()));
    let mode = std::fs::metadata(&place).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    drop(workspace);
    assert!(!place.exists());
}

#[tokio::test]
async fn copy_is_outside_project() {
    let setup = Setup::new();
    let world = ForgeContext {
        tmp: setup.top().join(".crucible/tmp"),
        ..setup.world()
    };
    let refused = SkillWorkspace::make(&world, &setup.project()).await;
    assert!(matches!(refused, Err(WorkspaceError::InsideProject { .. })));
    let sibling_path = setup.directory.path().join("beside");
    symlink(setup.top(), &sibling_path).unwrap();
    let world = ForgeContext {
        tmp: sibling_path.join("tmp"),
        ..setup.world()
    };
    let refused = SkillWorkspace::make(&world, &setup.project()).await;
    assert!(matches!(refused, Err(WorkspaceError::InsideProject { .. })));
}

#[tokio::test]
async fn copy_has_fresh_git_that_hides_nothing() {
    let setup = Setup::new();
    // A project with hooks, a remote and a history of its own.
    let git = |directory: &Path, words: &[&str]| {
        let output = Command::new("git")
            .args(words)
            .current_dir(directory)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    git(&setup.top(), &["init", "-q"]);
    git(
        &setup.top(),
        &["remote", "add", "origin", "https://example.invalid/x"],
    );
    setup.write(".git/hooks/post-commit", "#!/bin/sh\ntouch /tmp/never\n");
    let workspace = setup.copy().await;
    assert!(!workspace.root().join(".git").exists());
    workspace.with_git(&setup.world()).await.unwrap();
    let copy = workspace.root();
    assert_eq!(git(copy, &["remote"]), "");
    assert_eq!(git(copy, &["rev-list", "--count", "--all"]).trim(), "1");
    assert_eq!(git(copy, &["status", "--porcelain"]), "");
    assert!(!copy.join(".git/hooks").exists());
    assert!(workspace.changes().unwrap().is_empty());

    // Everything by which a git can be told to say nothing.
    build(&workspace);
    put(copy, "README.md", "other\n");
    put(copy, "evil.py", "x\n");
    put(copy, ".git/info/exclude", "*\n");
    put(copy, ".git/info/attributes", "* -diff\n");
    git(copy, &["config", "core.fileMode", "false"]);
    git(copy, &["update-index", "--assume-unchanged", "README.md"]);
    git(copy, &["update-index", "--skip-worktree", "README.md"]);
    assert_eq!(
        git(copy, &["status", "--porcelain"]),
        "",
        "git itself is deceived"
    );
    expect(
        &setup.judge(&workspace),
        &[("outside", "README.md"), ("outside", "evil.py")],
    );
    std::fs::remove_dir_all(copy.join(".git")).unwrap();
    expect(
        &setup.judge(&workspace),
        &[("outside", "README.md"), ("outside", "evil.py")],
    );
}

#[tokio::test]
async fn both_files_and_nothing_else() {
    let setup = Setup::new();
    let workspace = setup.copy().await;
    expect(
        &setup.judge(&workspace),
        &[("nothing", SKILL), ("missing", SKILL), ("missing", TEST)],
    );
    put(workspace.root(), SKILL, "skill\n");
    expect(&setup.judge(&workspace), &[("missing", TEST)]);
    put(workspace.root(), TEST, "test\n");
    assert_eq!(setup.judge(&workspace), Verdict::default());
    setup.bring_back(&workspace).unwrap();
    assert_eq!(std::fs::read(setup.top().join(SKILL)).unwrap(), b"skill\n");
    assert_eq!(std::fs::read(setup.top().join(TEST)).unwrap(), b"test\n");

    // Now both are there: one of them may stay as it is.
    let workspace = setup.copy().await;
    expect(&setup.judge(&workspace), &[("nothing", SKILL)]);
    put(workspace.root(), SKILL, "better\n");
    assert_eq!(setup.judge(&workspace), Verdict::default());
    setup.bring_back(&workspace).unwrap();
    assert_eq!(std::fs::read(setup.top().join(SKILL)).unwrap(), b"better\n");
    std::fs::remove_file(workspace.root().join(TEST)).unwrap();
    expect(&setup.judge(&workspace), &[("missing", TEST)]);
}

#[tokio::test]
async fn whatever_else_an_agent_does_is_refused() {
    let setup = Setup::new();
    let workspace = setup.copy().await;
    build(&workspace);
    let at = |path: &str| workspace.root().join(path);
    put(
        workspace.root(),
        "src/skillset/skills/base.py",
        "class Other: ...\n",
    );
    put(workspace.root(), "src/skillset/skills/word_len2.py", "x");
    put(workspace.root(), OsStr::from_bytes(b"\xff\x1b[2Jred"), "x");
    std::fs::create_dir(at("empty")).unwrap();
    std::fs::create_dir(at("src/.git")).unwrap();
    std::fs::remove_file(at("tests/conftest.py")).unwrap();
    std::fs::set_permissions(at("README.md"), std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("/etc/passwd", at("link")).unwrap();
    std::fs::set_permissions(at(TEST), std::fs::Permissions::from_mode(0o4755)).unwrap();
    expect(
        &setup.judge(&workspace),
        &[
            ("outside", "src/skillset/skills/base.py"),
            ("outside", "src/skillset/skills/word_len2.py"),
            ("outside", r"\xFF\u{1b}[2Jred"),
            ("directory", "empty"),
            ("directory", "src/.git"),
            ("removed", "tests/conftest.py"),
            ("mode", "README.md"),
            ("outside", "link"),
            ("mode", TEST),
        ],
    );
}

#[tokio::test]
async fn skill_files_must_be_plain_small_and_unlinked() {
    let setup = Setup::new();
    let workspace = setup.copy().await;
    let skill = workspace.root().join(SKILL);
    put(workspace.root(), TEST, "test\n");
    symlink("/etc/passwd", &skill).unwrap();
    expect(&setup.judge(&workspace), &[("kind", SKILL)]);
    assert!(matches!(
        setup.bring_back(&workspace),
        Err(CopyBackError::ChangedInCopy { .. })
    ));
    std::fs::remove_file(&skill).unwrap();
    std::fs::create_dir(&skill).unwrap();
    expect(&setup.judge(&workspace), &[("kind", SKILL)]);
    std::fs::remove_dir(&skill).unwrap();
    // 10 GB, of which nothing is read.
    std::fs::File::create(&skill)
        .unwrap()
        .set_len(10 << 30)
        .unwrap();
    expect(&setup.judge(&workspace), &[("size", SKILL)]);
    assert!(matches!(
        setup.bring_back(&workspace),
        Err(CopyBackError::TooLarge { .. })
    ));
    std::fs::remove_file(&skill).unwrap();
    std::fs::write(&skill, "skill\n").unwrap();
    std::fs::hard_link(&skill, workspace.scratch().join("elsewhere")).unwrap();
    let verdict = setup.judge(&workspace);
    expect(&verdict, &[("hard-link", SKILL)]);
    assert!(verdict.passes());
    // Its directory is a link now: nothing is read behind it.
    let skills = workspace.root().join("src/skillset/skills");
    std::fs::rename(&skills, workspace.scratch().join("skills")).unwrap();
    symlink(workspace.scratch().join("skills"), &skills).unwrap();
    let changes = workspace.changes().unwrap();
    let link = changes
        .iter()
        .find(|change| change.path == Path::new("src/skillset/skills"))
        .unwrap();
    assert!(matches!(link.now, Some(CopyEntry::Link { .. })));
    assert!(!setup.judge(&workspace).passes());
    assert!(matches!(
        setup.bring_back(&workspace),
        Err(CopyBackError::ChangedInCopy { .. })
    ));
    assert!(!setup.top().join(SKILL).exists());
}

#[tokio::test]
async fn many_findings_are_listed_briefly() {
    let setup = Setup::new();
    for number in 0..300 {
        setup.write(format!("many/{number}"), "x");
    }
    let workspace = setup.copy().await;
    for entry in std::fs::read_dir(workspace.root()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }
    let verdict = setup.judge(&workspace);
    assert!(!verdict.passes() && verdict.findings().len() <= MAX_SCOPE_FINDINGS + 4);
    assert!(
        codes(&verdict)
            .iter()
            .any(|(code, _)| code == "forge-scope-more")
    );
    let flood = CopyEntry::Unseen {
        why: UnseenReason::TooMany,
    };
    let change = WorkspaceChange {
        path: PathBuf::new(),
        was: None,
        now: Some(flood),
    };
    let paths = setup.paths();
    let verdict = check_scope(
        &[change],
        &Scope {
            paths: &paths,
            existing: &paths.files(),
            form: AnswerForm::WritesFiles,
        },
    );
    expect(&verdict, &[("unseen", ".")]);
}

#[tokio::test]
async fn copied_back_bytes_are_the_judged_ones() {
    let setup = Setup::new();
    let workspace = setup.copy().await;
    build(&workspace);
    let changes = workspace.changes().unwrap();
    put(workspace.root(), SKILL, "swapped\n");
    let swapped = workspace.built(&setup.paths(), &changes);
    assert!(
        matches!(swapped, Err(CopyBackError::ChangedInCopy { .. })),
        "{swapped:?}"
    );
    put(workspace.root(), SKILL, "skill\n");
    let files = workspace.built(&setup.paths(), &changes).unwrap();
    // From here on the copy is of no interest.
    put(workspace.root(), SKILL, "swapped\n");
    copy_back(&setup.project(), &setup.home(), &setup.paths(), &files).unwrap();
    assert_eq!(std::fs::read(setup.top().join(SKILL)).unwrap(), b"skill\n");
    assert!(check_built(&files).passes());
    let mut files = files;
    files[1].bytes = format!(
        "token = \"ghp_{}\"\n",
        "q7Zt4Lm2WsR8vK1xq7Zt4Lm2WsR8vK1x3Pa9"
    )
    .into_bytes();
    expect(&check_built(&files), &[("secret", TEST)]);
}

#[tokio::test]
async fn concurrent_project_changes_are_preserved() {
    let setup = Setup::new();
    setup.write(SKILL, "old\n");
    let blocked = |result: Result<(), CopyBackError>| match result {
        Err(CopyBackError::ChangedInProject { path, why }) => (path.to_string(), why),
        other => panic!("{other:?}"),
    };
    let outside = setup.directory.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let stories: [(&dyn Fn(), &str, EditObstacle); 5] = [
        (
            &|| setup.write(SKILL, "edited by hand\n"),
            SKILL,
            EditObstacle::Changed,
        ),
        (
            &|| std::fs::remove_file(setup.top().join(SKILL)).unwrap(),
            SKILL,
            EditObstacle::Missing,
        ),
        (
            &|| setup.write(TEST, "made by hand\n"),
            TEST,
            EditObstacle::InTheWay,
        ),
        (
            &|| symlink("/etc/passwd", setup.top().join(TEST)).unwrap(),
            TEST,
            EditObstacle::Link,
        ),
        (
            &|| {
                std::fs::remove_dir_all(setup.top().join("tests")).unwrap();
                symlink(&outside, setup.top().join("tests")).unwrap();
            },
            TEST,
            EditObstacle::Link,
        ),
    ];
    for (meddle, path, why) in stories {
        let _nothing_there = std::fs::remove_file(setup.top().join(TEST));
        setup.write(SKILL, "old\n");
        let workspace = setup.copy().await;
        build(&workspace);
        meddle();
        let before = setup.state();
        assert_eq!(
            blocked(setup.bring_back(&workspace)),
            (path.to_owned(), why)
        );
        assert_eq!(setup.state(), before);
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[tokio::test]
async fn file_missing_in_copy_is_not_replaced() {
    let setup = Setup::new();
    setup.write(
        TEST,
        format!(
            "token = \"ghp_{}\"\n",
            "q7Zt4Lm2WsR8vK1xq7Zt4Lm2WsR8vK1x3Pa9"
        ),
    );
    let workspace = setup.copy().await;
    build(&workspace);
    let before = setup.state();
    let refused = setup.bring_back(&workspace);
    assert!(
        matches!(refused, Err(CopyBackError::LeftOut { .. })),
        "{refused:?}"
    );
    assert_eq!(setup.state(), before);
}

#[tokio::test]
async fn put_file_counts_as_change_without_following_links() {
    let setup = Setup::new();
    let workspace = setup.copy().await;
    let paths = setup.paths();
    workspace.put(&paths.skill, b"skill\n").unwrap();
    workspace.put(&paths.test, b"test\n").unwrap();
    assert_eq!(setup.judge(&workspace), Verdict::default());
    std::fs::rename(
        workspace.root().join("tests"),
        workspace.scratch().join("tests"),
    )
    .unwrap();
    symlink(
        workspace.scratch().join("tests"),
        workspace.root().join("tests"),
    )
    .unwrap();
    assert!(workspace.put(&paths.test, b"other\n").is_err());
    assert_eq!(
        std::fs::read(workspace.scratch().join("tests/test_skill_word_len.py")).unwrap(),
        b"test\n"
    );
}

#[test]
fn a_journal_of_anything_else_is_not_believed() {
    let setup = Setup::new();
    setup.write("README.md", "words\n");
    let own = setup.project().own_directory(&setup.home()).unwrap();
    let place = own.join(format!(
        "{}-skillset.skills.word_len-build.json",
        setup.project().key()
    ));
    std::fs::write(&place, "{}").unwrap();
    let recovered = recover_copy_back(&setup.project(), &setup.home(), &setup.paths());
    assert!(
        matches!(
            recovered,
            Err(CopyBackError::Edit(TreeEditError::Journal { .. }))
        ),
        "{recovered:?}"
    );
}

/// Where the child of [`a_kill_leaves_both_files_or_neither`] works.
const CHILD: &str = "CRUCIBLE_TEST_COPY_BACK";

#[test]
fn a_kill_leaves_both_files_or_neither() {
    if let Some(top) = std::env::var_os(CHILD) {
        return bring_back_for_ever(Path::new(&top));
    }
    let setup = Setup::new();
    setup.write(SKILL, "0\n");
    setup.write(TEST, "0\n");
    let name = "workspace::tests::a_kill_leaves_both_files_or_neither";
    let own = setup.project().own_directory(&setup.home()).unwrap();
    let journal = own.join(format!(
        "{}-skillset.skills.word_len-build.json",
        setup.project().key()
    ));
    let mut settled = 0;
    for round in 0..12_u32 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(CHILD, setup.directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let changed = lines
            .by_ref()
            .map(Result::unwrap)
            .filter(|line| line == "changed");
        assert_eq!(
            changed.take(1 + round as usize % 3).count(),
            1 + round as usize % 3
        );
        // The record is there while a change is under way.
        while !journal.exists() {}
        child.kill().unwrap();
        child.wait().unwrap();
        let outcome = recover_copy_back(&setup.project(), &setup.home(), &setup.paths()).unwrap();
        settled += u32::from(outcome != EditRecovery::Nothing);
        let read = |path| std::fs::read_to_string(setup.top().join(path)).unwrap();
        assert_eq!(read(SKILL), read(TEST), "round {round}, {outcome:?}");
        assert_eq!(
            recover_copy_back(&setup.project(), &setup.home(), &setup.paths()).unwrap(),
            EditRecovery::Nothing
        );
        assert_eq!(
            std::fs::read_dir(setup.top().join("tests"))
                .unwrap()
                .count(),
            2,
            "nothing stays beside"
        );
    }
    assert!(settled > 0, "no kill came in the midst of a change");
}

/// Exchanges both files again and again.
fn bring_back_for_ever(directory: &Path) {
    let project = ForgeProject::new(
        directory.join("project"),
        Digest::compute(b"project"),
        "skillset".parse().unwrap(),
    );
    let paths = project.paths(&"word_len".parse().unwrap()).unwrap();
    let home = directory.join("home");
    let mut content = std::fs::read(project.root().join(SKILL)).unwrap();
    loop {
        let before = Digest::compute(&content);
        content = if content == b"0\n" {
            b"1\n".to_vec()
        } else {
            b"0\n".to_vec()
        };
        let files = paths.files().map(|path| BuiltFile {
            path: path.clone(),
            bytes: content.clone(),
            digest: Digest::compute(&content),
            before: Some(before),
        });
        copy_back(&project, &home, &paths, &files).unwrap();
        println!("changed");
    }
}
