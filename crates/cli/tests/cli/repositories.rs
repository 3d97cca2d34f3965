//! Repositories as they are found: each is refused with a clear error before anything is written, or taken through
//! to a landed change.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crucible_testkit::{RepoBuilder, TestRepo};

use crate::support::{
    Fixture, GOAL, Snapshot, answering, good_answer, id_of, right, small, snapshot, whole_file,
};

/// The run is refused before it begins, with this code and words; nothing is asked, nothing is left.
#[track_caller]
fn refused(directory: &Path, code: i32, text: &str) {
    let fixture = Fixture::new();
    let before = Snapshot::take([directory, &fixture.home()]);
    let message = fixture.start(directory).exits(code).message();
    assert!(message.contains(text), "{message}");
    before.is_still(&Snapshot::take([directory, &fixture.home()]));
    assert_eq!(fixture.runs(), Vec::<PathBuf>::new());
    assert_eq!(
        fixture.run(["run", "list", "--json"]).ok().json()["runs"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

/// The run is verified without touching the repository, and lands as exactly this change.
#[track_caller]
fn lands(repo: &TestRepo, directory: &Path, changed: &str) {
    let (server, before_status) = (answering(good_answer()), repo.status());
    let fixture = Fixture::with(&server);
    let before = snapshot(repo, &fixture);
    let status = fixture.start(directory).ok().json();
    assert_eq!(status["state"], "verified");
    before.is_still(&snapshot(repo, &fixture));
    fixture.run(["run", "land", &id_of(&status)]).ok();
    assert_eq!(
        git(directory, &["diff", "--name-status", "HEAD^", "HEAD"]),
        changed
    );
    assert_eq!(repo.status(), before_status);
    let file = git(directory, &["rev-parse", "--show-toplevel"]) + "/src/area.py";
    assert_eq!(std::fs::read_to_string(file).unwrap(), right());
}

fn git(directory: &Path, args: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(args)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

#[test]
fn tracked_changes_are_refused_by_name() {
    let changed = small()
        .uncommitted("src/area.py", "def area(): pass\n")
        .build();
    refused(
        changed.path(),
        2,
        "1 tracked file changed since the last commit, including \"src/area.py\"",
    );
    let staged = small().uncommitted("src/new.py", "x = 1\n").build();
    staged.git(["add", "--all"]);
    refused(staged.path(), 2, "including \"src/new.py\"");
    let removed = small().build();
    std::fs::remove_file(removed.path().join("check.sh")).unwrap();
    refused(removed.path(), 2, "including \"check.sh\"");
    // Where git itself tells of no change, the way out is another one.
    let sparse = small().build();
    sparse.git(["sparse-checkout", "set", "--no-cone", "/src/"]);
    refused(
        sparse.path(),
        2,
        "end it with `git sparse-checkout disable`",
    );
}

#[test]
fn merge_in_progress_prevents_start_and_landing() {
    let repo = small().build();
    repo.git(["branch", "other"]);
    repo.git(["commit", "--allow-empty", "--message", "here"]);
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let id = id_of(&fixture.start(repo.path()).ok().json());
    repo.git(["checkout", "--quiet", "other"]);
    repo.git(["commit", "--allow-empty", "--message", "there"]);
    repo.git(["checkout", "--quiet", "-"]);
    repo.git(["merge", "--no-commit", "--no-ff", "other"]);
    refused(repo.path(), 2, "a merge is in progress");
    let landing = fixture.run(["run", "land", &id, "--json"]).exits(2);
    assert!(
        landing.message().contains("git merge --abort"),
        "{}",
        landing.stderr
    );
    repo.git(["merge", "--abort"]);
    fixture.run(["run", "land", &id]).ok();
}

#[test]
fn untracked_files_are_no_obstacle_and_stay() {
    let repo = small()
        .uncommitted("notes.txt", "mine\n")
        .uncommitted("src/draft.py", "x = 1\n")
        .build();
    lands(&repo, repo.path(), "M\tsrc/area.py");
    assert_eq!(
        std::fs::read_to_string(repo.path().join("notes.txt")).unwrap(),
        "mine\n"
    );
}

#[test]
fn a_directory_outside_git_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("area.py"), right()).unwrap();
    refused(
        directory.path(),
        2,
        "is not in a git repository; run `git init` and commit once",
    );
    let missing = directory.path().join("missing");
    let message = Fixture::new().start(&missing).exits(2).message();
    assert!(message.contains("missing"), "{message}");
}

#[test]
fn a_bare_repository_is_refused() {
    let repo = small().build();
    let bare = tempfile::tempdir().unwrap();
    git(
        repo.path(),
        &[
            "clone",
            "--quiet",
            "--bare",
            ".",
            bare.path().join("b.git").to_str().unwrap(),
        ],
    );
    refused(
        &bare.path().join("b.git"),
        2,
        "is a bare repository; clone it",
    );
}

#[test]
fn a_repository_without_a_commit_is_refused() {
    let repo = RepoBuilder::new()
        .uncommitted("src/area.py", right())
        .build();
    refused(repo.path(), 2, "has no commit yet; make an initial commit");
}

#[test]
fn linked_worktree_changes_without_main_one() {
    let repo = small().build();
    let other_temp_dir = tempfile::tempdir().unwrap();
    let tree = other_temp_dir.path().join("tree");
    repo.git([
        "worktree",
        "add",
        "--quiet",
        "-b",
        "side",
        tree.to_str().unwrap(),
    ]);
    let main = repo.head();
    lands(&repo, &tree, "M\tsrc/area.py");
    assert_eq!(repo.head(), main);
    assert_ne!(repo.git(["rev-parse", "side"]), main);
    assert_ne!(
        std::fs::read_to_string(repo.path().join("src/area.py")).unwrap(),
        right()
    );
}

#[test]
fn repository_with_submodule_can_be_changed() {
    let (repo, library) = (
        small().build(),
        RepoBuilder::new().file("lib.py", "x = 1\n").build(),
    );
    repo.git([
        "submodule",
        "--quiet",
        "add",
        library.path().to_str().unwrap(),
        "vendor/lib",
    ]);
    repo.commit("Add a submodule");
    let at = repo.git(["rev-parse", "HEAD:vendor/lib"]);
    lands(&repo, repo.path(), "M\tsrc/area.py");
    assert_eq!(repo.git(["rev-parse", "HEAD:vendor/lib"]), at);
    assert_eq!(
        std::fs::read_to_string(repo.path().join("vendor/lib/lib.py")).unwrap(),
        "x = 1\n"
    );
}

#[test]
fn file_of_100_megabytes_is_supported() {
    let repo = small().build();
    let large = std::fs::File::create(repo.path().join("large.bin")).unwrap();
    large.set_len(100_000_000).unwrap();
    drop(large);
    repo.git(["config", "core.bigFileThreshold", "1m"]);
    repo.git(["config", "core.compression", "1"]);
    repo.commit("Add a large file");
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let status = fixture.start(repo.path()).ok().json();
    fixture.run(["run", "land", &id_of(&status)]).ok();
    assert_eq!(
        repo.git(["diff", "--name-status", "HEAD^", "HEAD"]),
        "M\tsrc/area.py"
    );
    assert_eq!(repo.status(), "");
    // A model is not shown it, and a run does not hold it.
    let requests = server.requests()[0].body.to_string();
    assert!(requests.len() < 100_000, "{} bytes", requests.len());
}

#[test]
fn unusual_file_names_are_supported() {
    let mut builder = small();
    let names: [&[u8]; 8] = [
        b"with space.py",
        b"src/two\nlines.py",
        b"not-utf8-\xff\xfe.py",
        b"tab\there.py",
        b"\"quoted\".py",
        b"-rf",
        "ümläut/é.py".as_bytes(),
        b"src/\x1b[2Jescape.py",
    ];
    for name in names {
        builder = builder.file(PathBuf::from(OsStr::from_bytes(name)), "area = 1\n");
    }
    let repo = builder.build();
    lands(&repo, repo.path(), "M\tsrc/area.py");
}

#[test]
fn file_with_spaces_in_name_can_be_changed() {
    let name = "src/the area of it.py";
    let check = "grep -q good 'src/the area of it.py'\n";
    let repo = small()
        .file("check.sh", check)
        .file(name, "value = 'bad'\n")
        .build();
    let server = answering(whole_file(name, "value = 'good'\n"));
    let fixture = Fixture::with(&server);
    let status = fixture
        .start_call(repo.path())
        .args(["--file", name])
        .run()
        .ok()
        .json();
    fixture.run(["run", "land", &id_of(&status)]).ok();
    assert_eq!(
        repo.git(["diff", "--name-status", "HEAD^", "HEAD"]),
        format!("M\t{name}")
    );
    assert_eq!(
        std::fs::read_to_string(repo.path().join(name)).unwrap(),
        "value = 'good'\n"
    );
}

#[test]
fn run_from_subdirectory_belongs_to_the_repository() {
    let repo = small().build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let call = fixture
        .call(["run", "start", GOAL, "--json"])
        .current_dir(repo.path().join("src"));
    let status = call.run().ok().json();
    assert_eq!(
        status["run"]["repo"],
        repo.path().canonicalize().unwrap().to_str().unwrap()
    );
}

#[test]
fn detached_head_moves_without_any_branch() {
    let repo = small().build();
    repo.git(["checkout", "--quiet", "--detach"]);
    let main = repo.git(["rev-parse", "main"]);
    lands(&repo, repo.path(), "M\tsrc/area.py");
    assert_eq!(repo.git(["rev-parse", "main"]), main);
}

#[test]
fn runs_and_ledger_inside_the_repository_are_refused() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let before = snapshot(&repo, &fixture);
    for (variable, place) in [
        ("CRUCIBLE_RUNS_ROOT", "runs"),
        ("CRUCIBLE_HOME", "data"),
        ("CRUCIBLE_HOME", ".git/data"),
    ] {
        let call = fixture
            .start_call(repo.path())
            .env(variable, repo.path().join(place));
        let message = call.run().exits(2).message();
        assert!(
            message.contains("inside the repository"),
            "{variable}: {message}"
        );
        before.is_still(&snapshot(&repo, &fixture));
    }
    // A link that leads back inside is seen through.
    std::os::unix::fs::symlink(repo.path(), fixture.path("link")).unwrap();
    let call = fixture
        .start_call(repo.path())
        .env("CRUCIBLE_RUNS_ROOT", fixture.path("link/runs"));
    assert!(
        call.run()
            .exits(2)
            .message()
            .contains("inside the repository")
    );
    before.is_still(&snapshot(&repo, &fixture));
}

#[test]
fn a_repository_that_nothing_can_prove_is_refused() {
    let repo = RepoBuilder::new().file("src/area.py", right()).build();
    refused(repo.path(), 2, "no gate found");
}
