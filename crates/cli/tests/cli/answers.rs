//! What a model must not get away with: each bad answer is refused with its own code, and nothing outside the run
//! directory changes.

use std::path::Path;

use crucible_testkit::{FakeOpenAi, Reply, RepoBuilder, TestRepo};

use crate::support::{
    Fixture, GOAL, GOOD_DIFF, WRONG, answering, codes, good_answer, id_of, right, small, snapshot,
    whole_file,
};

/// Asks once for a diff, gets this one, and tells what the patch gate found. The files are the ones the operator
/// names.
#[track_caller]
fn refused(repo: &TestRepo, format: &str, answer: &str, files: &[&str]) -> Vec<String> {
    refused_reply(repo, format, Reply::Answer(answer.to_owned()), files)
}

#[track_caller]
fn refused_reply(repo: &TestRepo, format: &str, reply: Reply, files: &[&str]) -> Vec<String> {
    let server = FakeOpenAi::start([reply]);
    let fixture = Fixture::with(&server);
    let before = snapshot(repo, &fixture);
    let mut call = fixture
        .start_call(repo.path())
        .args(["--max-iterations", "1"])
        .env("CRUCIBLE_RUN_EDIT_FORMAT", format)
        .env("CRUCIBLE_RUN_MAX_MALFORMED", "0");
    for file in files {
        call = call.args(["--file", file]);
    }
    let status = call.run().exits(1).json();
    before.is_still(&snapshot(repo, &fixture));
    assert_eq!(status["state"], "failed");
    let end = status["attempts"][0]["end"].as_str().unwrap();
    assert!(["refused", "malformed"].contains(&end), "{end}");
    assert_eq!(status["attempts"][0]["asked_for"], format);
    assert_eq!(status["failure"]["code"], "run-out-of-attempts");
    assert_eq!(server.requests().len(), 1);
    let land = fixture.run([
        "run",
        "land",
        status["run"]["run_id"].as_str().unwrap(),
        "--json",
    ]);
    assert!(land.exits(1).message().contains("failed, not verified"));
    before.is_still(&snapshot(repo, &fixture));
    codes(&status, 1)
}

/// A diff of the small repository, refused.
#[track_caller]
fn refused_diff(diff: &str) -> Vec<String> {
    refused(&small().build(), "unified-diff", diff, &["src/area.py"])
}

#[track_caller]
fn has(codes: &[String], code: &str) {
    assert!(codes.iter().any(|known| known == code), "{codes:?}");
}

/// A diff that makes a new file at a path.
fn new_file(path: &str) -> String {
    format!(
        "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+intruder\n"
    )
}

#[test]
fn prose_is_no_change() {
    let prose = "Sure! You should multiply instead of adding in `src/area.py`.";
    assert_eq!(refused_diff(prose), ["answer-no-edit"]);
    assert_eq!(
        refused(&small().build(), "whole-file", prose, &[]),
        ["answer-no-edit"]
    );
    assert_eq!(
        refused(&small().build(), "search-replace", prose, &[]),
        ["answer-no-edit"]
    );
}

/// Asks once in a format, gets this answer, and tells as what it was read; the right change landed, and replays.
#[track_caller]
fn landed(format: &str, answer: &str) -> String {
    let (repo, server) = (small().build(), answering(answer));
    let fixture = Fixture::with(&server);
    let call =
        fixture
            .start_call(repo.path())
            .args(["--max-iterations", "1", "--file", "src/area.py"]);
    let status = call
        .env("CRUCIBLE_RUN_EDIT_FORMAT", format)
        .run()
        .ok()
        .json();
    assert_eq!(status["state"], "verified", "{answer}: {status:#}");
    assert_eq!(status["attempts"][0]["asked_for"], format);
    let kept = fixture.runs()[0].join("attempts/001");
    assert_eq!(
        std::fs::read_to_string(kept.join("answer.txt")).unwrap(),
        answer
    );
    assert!(
        std::fs::read_to_string(kept.join("diff.patch"))
            .unwrap()
            .starts_with("diff --git ")
    );
    let replayed = fixture
        .run(["run", "replay", &id_of(&status), "--json"])
        .ok()
        .json();
    assert_eq!(replayed["different"], serde_json::json!([]));
    fixture.run(["run", "land", &id_of(&status)]).ok();
    assert_eq!(
        std::fs::read_to_string(repo.path().join("src/area.py")).unwrap(),
        right()
    );
    status["attempts"][0]["read_as"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn answer_in_another_form_lands() {
    let blocks = "src/area.py\n<<<<<<< SEARCH\n    return width + height\n=======\n    return width * height\n>>>>>>> REPLACE\n";
    let prose = format!("Here is the patch:\n\n```diff\n{GOOD_DIFF}```\n\nIt multiplies now.\n");
    assert_eq!(landed("unified-diff", &prose), "unified-diff");
    assert_eq!(landed("whole-file", &prose), "unified-diff");
    assert_eq!(landed("whole-file", blocks), "search-replace");
    assert_eq!(landed("unified-diff", blocks), "search-replace");
    assert_eq!(landed("definitions", blocks), "search-replace");
    assert_eq!(landed("search-replace", &good_answer()), "whole-file");
    assert_eq!(landed("unified-diff", &good_answer()), "whole-file");
}

#[test]
fn hunks_with_wrong_headers_are_placed_by_lines() {
    let at = GOOD_DIFF.find("@@").unwrap();
    let (names, hunk) = (
        &GOOD_DIFF[..at],
        GOOD_DIFF[at..].split_once('\n').unwrap().1,
    );
    for header in ["@@ -71,9 +71,9 @@", "@@"] {
        assert_eq!(
            landed("unified-diff", &format!("{names}{header}\n{hunk}")),
            "unified-diff"
        );
        assert_eq!(
            landed(
                "whole-file",
                &format!("Sure:\n{names}{header}\n{hunk}\nDone.\n")
            ),
            "unified-diff"
        );
    }
}

#[test]
fn two_diffs_are_refused() {
    let fenced = format!("```diff\n{GOOD_DIFF}```\n\nor:\n\n```diff\n{GOOD_DIFF}```\n");
    assert_eq!(refused_diff(&fenced), ["answer-two-diffs"]);
    assert_eq!(
        refused_diff(&format!("{GOOD_DIFF}{GOOD_DIFF}")),
        ["patch-path-twice"]
    );
    let both = format!("{}{}", good_answer(), whole_file("src/area.py", WRONG));
    assert_eq!(
        refused(&small().build(), "whole-file", &both, &[]),
        ["answer-two-answers"]
    );
}

#[test]
fn a_diff_to_gits_hooks_is_refused() {
    for path in [
        ".git/hooks/pre-commit",
        ".GIT/hooks/pre-commit",
        "src/.git/config",
    ] {
        assert_eq!(refused_diff(&new_file(path)), ["patch-bad-path"], "{path}");
    }
    assert_eq!(
        refused(
            &small().build(),
            "whole-file",
            &whole_file(".git/hooks/pre-commit", "exit 0\n"),
            &[]
        ),
        ["answer-bad-path"]
    );
}

#[test]
fn a_diff_above_the_repository_is_refused() {
    let repo = small().build();
    let name = format!("crucible-escape-{}", std::process::id());
    let above = repo.path().parent().unwrap().join(&name);
    for path in [format!("../{name}"), format!("src/../../{name}")] {
        assert_eq!(
            refused(&repo, "unified-diff", &new_file(&path), &["src/area.py"]),
            ["patch-bad-path"]
        );
        assert_eq!(
            refused(&repo, "whole-file", &whole_file(&path, "intruder\n"), &[]),
            ["answer-bad-path"]
        );
        assert!(!above.exists());
    }
}

#[test]
fn a_diff_to_an_absolute_path_is_refused() {
    let repo = small().build();
    let path = format!("/etc/crucible-escape-{}", std::process::id());
    assert_eq!(
        refused(&repo, "whole-file", &whole_file(&path, "intruder\n"), &[]),
        ["answer-bad-path"]
    );
    let diff = new_file("x").replace("b/x", &path).replace("a/x", &path);
    has(
        &refused(&repo, "unified-diff", &diff, &["src/area.py"]),
        "patch-headers-disagree",
    );
    // With git's prefixes the same path begins with two slashes.
    assert_eq!(
        refused(&repo, "unified-diff", &new_file(&path), &["src/area.py"]),
        ["patch-bad-path"]
    );
    assert!(!Path::new(&path).exists());
}

/// A repository with links in every direction.
fn linked(outside: &Path) -> RepoBuilder {
    small()
        .symlink("src/alias.py", "area.py")
        .symlink("lib", "src")
        .symlink("out", outside)
}

#[test]
fn a_change_through_a_symbolic_link_is_refused() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("area.py"), WRONG).unwrap();
    let repo = linked(outside.path()).build();
    let diff = |path: &str, files: &[&str]| {
        refused(
            &repo,
            "unified-diff",
            &GOOD_DIFF.replace("src/area.py", path),
            files,
        )
    };
    // What git tracks of a link is its target, which the diff does not fit; below a linked directory it tracks
    // nothing.
    assert_eq!(
        diff("src/alias.py", &["src/area.py"]),
        ["answer-does-not-apply"]
    );
    assert_eq!(
        diff("lib/area.py", &["src/area.py"]),
        ["answer-unknown-file"]
    );
    assert_eq!(
        diff("out/area.py", &["src/area.py"]),
        ["answer-unknown-file"]
    );
    let lines = refused(
        &repo,
        "unified-diff",
        &new_file("out/new.py"),
        &["src/area.py"],
    );
    assert_eq!(
        lines,
        ["patch-path-outside-scope", "patch-new-file-unnamed"]
    );
    for path in ["lib/area.py", "out/area.py", "out/new.py", "src/alias.py"] {
        let codes = refused(
            &repo,
            "whole-file",
            &whole_file(path, &right()),
            &["src/area.py"],
        );
        has(&codes, "patch-path-outside-scope");
    }
    assert_eq!(
        std::fs::read_to_string(outside.path().join("area.py")).unwrap(),
        WRONG
    );
    assert!(!outside.path().join("new.py").exists());
}

#[test]
fn link_named_by_the_operator_is_not_changed() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("area.py"), WRONG).unwrap();
    let repo = linked(outside.path()).build();
    let whole = |path: &str| refused(&repo, "whole-file", &whole_file(path, &right()), &[path]);
    assert_eq!(whole("src/alias.py"), ["patch-symlink"]);
    assert_eq!(whole("lib/area.py"), ["run-patch-not-applicable"]);
    // The same as a diff that does not say what it changes.
    let diff = "diff --git a/src/alias.py b/src/alias.py\n--- a/src/alias.py\n+++ b/src/alias.py\n@@ -1 +1 @@\n-area.py\n\
                \\ No newline at end of file\n+/etc/passwd\n\\ No newline at end of file\n";
    let turned = refused(&repo, "unified-diff", diff, &["src/alias.py"]);
    assert_eq!(turned, ["patch-symlink"]);
    // What lies outside is not shown to a model, so no run begins.
    let fixture = Fixture::new();
    let message = fixture
        .start_call(repo.path())
        .args(["--file", "out/area.py"])
        .run()
        .exits(2)
        .message();
    assert!(message.contains("out/area.py"), "{message}");
    assert_eq!(fixture.runs(), Vec::<std::path::PathBuf>::new());
    assert_eq!(
        std::fs::read_to_string(outside.path().join("area.py")).unwrap(),
        WRONG
    );
}

#[test]
fn a_new_symbolic_link_is_refused() {
    let link = "diff --git a/src/passwd b/src/passwd\nnew file mode 120000\n--- /dev/null\n+++ b/src/passwd\n\
                @@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n";
    let codes = refused(&small().build(), "unified-diff", link, &["src/passwd"]);
    assert_eq!(codes, ["patch-symlink"]);
}

#[test]
fn a_rename_out_of_scope_is_refused() {
    let rename = "diff --git a/src/area.py b/elsewhere/area.py\nsimilarity index 100%\nrename from src/area.py\nrename to elsewhere/area.py\n";
    let codes = refused_diff(rename);
    has(&codes, "patch-path-outside-scope");
    has(&codes, "patch-new-file-unnamed");
    let from = "diff --git a/check.sh b/src/area.py\nsimilarity index 100%\nrename from check.sh\nrename to src/area.py\n";
    has(&refused_diff(from), "patch-rename-source-outside");
}

#[test]
fn a_mode_change_is_refused() {
    let mode = "diff --git a/README.md b/README.md\nold mode 100644\nnew mode 100755\n";
    let repo = small().file("README.md", "read me\n").build();
    has(
        &refused(&repo, "unified-diff", mode, &["src/area.py"]),
        "patch-mode-change",
    );
}

#[test]
fn a_gitlink_is_refused() {
    let link = "diff --git a/vendor b/vendor\nnew file mode 160000\n--- /dev/null\n+++ b/vendor\n@@ -0,0 +1 @@\n\
                +Subproject commit 0123456789012345678901234567890123456789\n";
    let codes = refused(&small().build(), "unified-diff", link, &["vendor"]);
    assert_eq!(codes, ["patch-gitlink"]);
}

#[test]
fn a_binary_change_is_refused() {
    let repo = small().build();
    repo.write("src/area.py", "nul \0 byte\n");
    repo.write("src/other.py", "x = 1\n");
    repo.git(["add", "--all"]);
    let literal = repo.git(["diff", "--cached", "--binary"]) + "\n";
    assert!(literal.contains("GIT binary patch"));
    repo.git(["reset", "--quiet", "--hard"]);
    has(&refused_diff(&literal), "patch-binary");
    let differ = "diff --git a/src/area.py b/src/area.py\nindex 0123456..789abcd 100644\nBinary files a/src/area.py and b/src/area.py differ\n";
    has(&refused_diff(differ), "patch-binary");
    assert_eq!(
        refused(
            &small().build(),
            "whole-file",
            &whole_file("src/area.py", "nul \0 byte\n"),
            &[]
        ),
        ["run-answer-not-text"]
    );
}

/// A diff that deletes the failing test.
fn deletion(repo: &TestRepo) -> String {
    repo.git(["rm", "--quiet", "tests/area_test.sh"]);
    let diff = repo.git(["diff", "--cached"]) + "\n";
    repo.git(["reset", "--quiet", "--hard"]);
    diff
}

#[test]
fn patch_deleting_the_failing_test_is_refused() {
    let repo = small().build();
    let codes = refused(&repo, "unified-diff", &deletion(&repo), &["src/area.py"]);
    for code in [
        "patch-path-outside-scope",
        "patch-test-edited",
        "patch-deletes-file",
    ] {
        has(&codes, code);
    }
}

#[test]
fn naming_failing_test_does_not_allow_deletion() {
    let repo = small().build();
    let codes = refused(
        &repo,
        "unified-diff",
        &deletion(&repo),
        &["src/area.py", "tests/area_test.sh"],
    );
    assert_eq!(codes, ["run-test-deleted"]);
}

#[test]
fn an_answer_of_three_megabytes_is_refused() {
    let codes = refused_reply(&small().build(), "whole-file", Reply::Huge(3_000_000), &[]);
    assert_eq!(codes, ["answer-too-large"]);
}

/// The reply holds nothing that could be judged: it is refused with this code and not kept, the fixer is told why, and
/// the run replays from its recording.
#[track_caller]
fn is_refused_unread(reply: Reply, code: &str, message: &str) {
    assert_eq!(
        refused_reply(&small().build(), "whole-file", reply.clone(), &[]),
        [code]
    );

    let repo = small().build();
    let server = FakeOpenAi::start([reply, Reply::Answer(good_answer())]);
    let fixture = Fixture::with(&server);
    let before = snapshot(&repo, &fixture);
    let ran = fixture.start(repo.path()).ok();
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
    let status = ran.json();
    assert_eq!(status["state"], "verified");
    assert_eq!(codes(&status, 1), [code]);
    assert!(
        !status["attempts"][0]["findings"][0]["hint"]
            .as_str()
            .unwrap()
            .is_empty()
    );
    before.is_still(&snapshot(&repo, &fixture));
    let run = fixture.runs().remove(0);
    assert_eq!(
        std::fs::read(run.join("attempts/001/answer.txt")).unwrap(),
        b""
    );
    let stored_count = size_of(&run);
    assert!(stored_count < 1_000_000, "{stored_count} bytes are kept");
    // No second question was put for the first answer, and the second one says what was wrong with it.
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].body["messages"].to_string().contains(code));

    drop(server);
    let replayed = fixture
        .run(["run", "replay", &id_of(&status), "--json"])
        .ok()
        .json();
    assert_eq!(replayed["state"], "verified");
    assert_eq!(replayed["different"], serde_json::json!([]));
    fixture.run(["ledger", "verify"]).ok();
}

fn size_of(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.metadata().unwrap() {
            meta if meta.is_dir() => size_of(&entry.path()),
            meta => meta.len(),
        })
        .sum()
}

#[test]
fn answer_of_100_megabytes_is_refused_unstored() {
    is_refused_unread(
        Reply::Huge(100_000_000),
        "answer-too-large",
        "is longer than 16777216 bytes",
    );
}

#[test]
fn nothing_is_refused() {
    for nothing in ["", " \n\n"] {
        is_refused_unread(
            Reply::Answer(nothing.to_owned()),
            "answer-empty",
            "the answer contains no text",
        );
    }
    is_refused_unread(
        Reply::NullContent,
        "answer-empty",
        "the answer contains no text",
    );
    is_refused_unread(
        Reply::EmptyChoices,
        "answer-empty",
        "the answer's list of choices is empty",
    );
    let block = "FILE: src/area.py\n```\n```\n";
    let codes = refused(&small().build(), "whole-file", block, &[]);
    has(&codes, "patch-definition-dropped");
}

#[test]
fn an_answer_that_changes_nothing_is_refused() {
    assert_eq!(
        refused(
            &small().build(),
            "whole-file",
            &whole_file("src/area.py", WRONG),
            &[]
        ),
        ["run-answer-unchanged"]
    );
}

#[test]
fn an_answer_cut_at_its_limit_is_refused() {
    let reply = Reply::CutAnswer(good_answer());
    assert_eq!(
        refused_reply(&small().build(), "whole-file", reply, &[]),
        ["run-answer-cut"]
    );
}

#[test]
fn answer_dropping_a_function_lands_with_it_kept() {
    let half = "def area(width, height):\n    return width * height\n";
    let (repo, server) = (small().build(), answering(whole_file("src/area.py", half)));
    let fixture = Fixture::with(&server);
    let status = fixture
        .start_call(repo.path())
        .env("CRUCIBLE_RUN_EDIT_FORMAT", "whole-file")
        .run()
        .ok()
        .json();
    assert_eq!(codes(&status, 1), ["answer-spliced"]);
    assert_eq!(status["attempts"][0]["findings"][0]["level"], "warning");
    fixture.run(["run", "land", &id_of(&status)]).ok();
    assert_eq!(
        std::fs::read_to_string(repo.path().join("src/area.py")).unwrap(),
        right()
    );
}

#[test]
fn answer_dropping_unrelated_definitions_is_refused() {
    let other = "def other(width, height):\n    return width * height\n";
    assert_eq!(
        refused(
            &small().build(),
            "whole-file",
            &whole_file("src/area.py", other),
            &[]
        ),
        ["patch-definition-dropped", "patch-definition-dropped"]
    );
}

#[test]
fn single_definition_is_inserted_and_lands() {
    let half = "def area(width, height):\n    return width * height\n";
    let (repo, server) = (small().build(), answering(whole_file("src/area.py", half)));
    let fixture = Fixture::with(&server);
    let status = fixture
        .start_call(repo.path())
        .env("CRUCIBLE_RUN_EDIT_FORMAT", "definitions")
        .run()
        .ok()
        .json();
    assert_eq!(codes(&status, 1), [""; 0]);
    let requests = server.requests();
    assert!(
        requests[0].body["messages"]
            .to_string()
            .contains("the changed function, complete")
    );
    fixture.run(["run", "land", &id_of(&status)]).ok();
    assert_eq!(
        std::fs::read_to_string(repo.path().join("src/area.py")).unwrap(),
        right()
    );
    let replayed = fixture
        .run(["run", "replay", &id_of(&status), "--json"])
        .ok()
        .json();
    assert_eq!(replayed["different"], serde_json::json!([]));
}

#[test]
fn definitions_that_cannot_be_put_in_are_refused() {
    for (code, answer) in [
        (
            "answer-broken-syntax",
            "def area(width, height:\n    return width\n",
        ),
        (
            "answer-not-a-definition",
            "def area(width, height):\n    return width\n\nprint(area(1, 2))\n",
        ),
        ("answer-no-definition", "# nothing changes\n"),
        ("answer-no-container", "def grow(self):\n    return 1\n"),
        ("run-answer-unchanged", WRONG),
    ] {
        assert_eq!(
            refused(
                &small().build(),
                "definitions",
                &whole_file("src/area.py", answer),
                &[]
            ),
            [code]
        );
    }
}

#[test]
fn repeated_refused_patch_costs_attempt_without_trial() {
    let (repo, server) = (
        small().build(),
        answering(whole_file(
            "src/area.py",
            "def area(width, height):\n    return 7\n",
        )),
    );
    let fixture = Fixture::with(&server);
    fixture.user_config("[llm.gateway]\ntemperature = 0.1\n");
    let before = snapshot(&repo, &fixture);
    let call = fixture
        .start_call(repo.path())
        .args(["--max-iterations", "3"]);
    let status = call
        .env("CRUCIBLE_RUN_EDIT_FORMAT", "definitions")
        .run()
        .exits(1)
        .json();
    assert_eq!(status["failure"]["code"], "run-out-of-attempts");
    let ends: Vec<&str> = status["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| attempt["end"].as_str().unwrap())
        .collect();
    assert_eq!(ends, ["verify_failed", "repeated", "repeated"]);
    has(&codes(&status, 2), "run-same-patch-twice");
    assert!(
        !fixture.runs()[0]
            .join("attempts/002/verify_report.json")
            .exists()
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    // Each question has other settings, and tells what was said before.
    let setting = |name: &str| {
        requests
            .iter()
            .map(|request| request.body[name].as_f64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(setting("seed"), [1.0, 2.0, 3.0]);
    assert_eq!(setting("temperature"), [0.1, 0.35, 0.85]);
    let last = requests[2].body["messages"].to_string();
    assert!(
        last.contains("run-same-patch-twice") && last.contains("return 7"),
        "{last}"
    );
    before.is_still(&snapshot(&repo, &fixture));
    let replayed = fixture
        .run(["run", "replay", &id_of(&status), "--json"])
        .ok()
        .json();
    assert_eq!(replayed["different"], serde_json::json!([]));
    fixture.run(["run", "verify-record", &id_of(&status)]).ok();
}

#[test]
fn unfounded_decline_is_asked_once_more() {
    let decline =
        |conflict: &str| Reply::Answer(format!("CANNOT: area is wrong\nCONFLICT: {conflict}\n"));
    let state_of = |replies: Vec<Reply>, code: i32| {
        let calls = replies.len();
        let server = FakeOpenAi::start(replies);
        let (repo, fixture) = (small().build(), Fixture::with(&server));
        let status = fixture.start_call(repo.path()).run().exits(code).json();
        assert_eq!(server.requests().len(), calls);
        status["state"].as_str().unwrap().to_owned()
    };
    let unfounded = || decline("area is wrong");
    let good = Reply::Answer(good_answer());
    assert_eq!(state_of(vec![unfounded(), good], 0), "verified");
    assert_eq!(state_of(vec![unfounded(), unfounded()], 1), "declined");
    // A test that exists is a reason at once.
    assert_eq!(state_of(vec![decline("tests/area_test.sh")], 1), "declined");
}

#[test]
fn malformed_answers_cost_calls_but_no_attempt() {
    let prose = || Reply::Answer("I would rather not.".to_owned());
    let cut = Reply::CutAnswer(good_answer());
    let server = FakeOpenAi::start([prose(), cut, prose(), Reply::Answer(good_answer())]);
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    let call = fixture
        .start_call(repo.path())
        .args(["--max-iterations", "1"]);
    let status = call
        .env("CRUCIBLE_RUN_EDIT_FORMAT", "whole-file")
        .run()
        .ok()
        .json();
    assert_eq!(status["state"], "verified");
    let attempts = status["attempts"].as_array().unwrap();
    let ends: Vec<&str> = attempts
        .iter()
        .map(|attempt| attempt["end"].as_str().unwrap())
        .collect();
    assert_eq!(ends, ["malformed", "malformed", "malformed", "verified"]);
    assert_eq!(codes(&status, 2), ["run-answer-cut"]);
    assert_eq!(
        (
            &status["budgets"]["iterations"],
            &status["budgets"]["calls"]
        ),
        (&1.into(), &4.into())
    );
    // The question shows the form with lines of the file, and a cut answer is asked for in a shorter one.
    let requests = server.requests();
    let question = |number: usize| requests[number].body["messages"].to_string();
    assert!(
        !question(0).contains("because of its form"),
        "{}",
        question(0)
    );
    assert!(
        question(1).contains("because of its form") && question(1).contains("answer-no-edit"),
        "{}",
        question(1)
    );
    assert!(
        question(1).contains("(and every other line of the file)"),
        "{}",
        question(1)
    );
    assert!(
        question(2).contains("the changed function, complete"),
        "{}",
        question(2)
    );
    assert_eq!(
        (&attempts[1]["asked_for"], &attempts[2]["asked_for"]),
        (&"whole-file".into(), &"definitions".into())
    );
    let replayed = fixture
        .run(["run", "replay", &id_of(&status), "--json"])
        .ok()
        .json();
    assert_eq!(replayed["different"], serde_json::json!([]));
    fixture.run(["run", "verify-record", &id_of(&status)]).ok();

    // One more of them than the budget has costs the attempt.
    let server = FakeOpenAi::start([prose(), prose(), Reply::Answer(good_answer())]);
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    let call = fixture
        .start_call(repo.path())
        .args(["--max-iterations", "1"]);
    let status = call
        .env("CRUCIBLE_RUN_MAX_MALFORMED", "1")
        .run()
        .exits(1)
        .json();
    assert_eq!(status["failure"]["code"], "run-out-of-attempts");
    assert_eq!(
        (server.requests().len(), &status["budgets"]["iterations"]),
        (2, &1.into())
    );
}

#[test]
fn candidates_of_a_round_answer_one_question() {
    let wrong = |value: u32| {
        Reply::Answer(whole_file(
            "src/area.py",
            &right().replace("width * height", &value.to_string()),
        ))
    };
    let server = FakeOpenAi::start([wrong(1), wrong(2), Reply::Answer(good_answer()), wrong(3)]);
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    let call = fixture
        .start_call(repo.path())
        .args(["--max-iterations", "1", "--candidates", "4"]);
    let status = call
        .env("CRUCIBLE_RUN_EDIT_FORMAT", "whole-file")
        .run()
        .ok()
        .json();
    assert_eq!(status["state"], "verified");
    let ends: Vec<&str> = status["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| attempt["end"].as_str().unwrap())
        .collect();
    assert_eq!(
        ends,
        [
            "verify_failed",
            "verify_failed",
            "candidate",
            "verify_failed",
            "verified"
        ]
    );
    assert_eq!(
        (
            &status["budgets"]["iterations"],
            &status["budgets"]["calls"]
        ),
        (&1.into(), &4.into())
    );
    let requests = server.requests();
    // All of them answer the same question, each with its own seed.
    assert!(
        requests
            .windows(2)
            .all(|pair| pair[0].body["messages"] == pair[1].body["messages"])
    );
    assert_eq!(
        requests
            .iter()
            .map(|request| request.body["seed"].clone())
            .collect::<Vec<_>>(),
        [1, 2, 3, 4]
    );
    let report =
        std::fs::read_to_string(fixture.runs()[0].join("artifacts/verify_report.json")).unwrap();
    assert!(
        serde_json::from_str::<serde_json::Value>(&report).unwrap()["iteration"] == 1,
        "{report}"
    );
    let replayed = fixture
        .run(["run", "replay", &id_of(&status), "--json"])
        .ok()
        .json();
    assert_eq!(replayed["different"], serde_json::json!([]));
}

#[test]
fn oversized_file_is_requested_in_parts() {
    let filler = |at: usize| format!("def filler_{at}(value):\n    return value + {at}\n\n\n");
    let large = format!("{WRONG}\n\n{}", (0..700).map(filler).collect::<String>());
    assert!(large.len() > 33_000);
    let repo = small().file("src/area.py", &large).build();
    let half = "def area(width, height):\n    return width * height\n";
    let server = answering(whole_file("src/area.py", half));
    let fixture = Fixture::with(&server);
    let ran = fixture
        .start_call(repo.path())
        .args(["--file", "src/area.py"])
        .run()
        .ok();
    let status = ran.json();
    assert_eq!(status["state"], "verified", "{status:#}");
    assert_eq!(status["attempts"][0]["asked_for"], "definitions");
    let cost = std::fs::read_to_string(fixture.runs()[0].join("reviews/review_cost.md")).unwrap();
    assert!(
        cost.contains("Verdict: APPROVE") && cost.contains("plan-answer-too-large"),
        "{cost}"
    );
    assert!(
        ran.stderr
            .contains("requesting definitions instead of whole files"),
        "{}",
        ran.stderr
    );
    let replayed = fixture
        .run(["run", "replay", &id_of(&status), "--json"])
        .ok()
        .json();
    assert_eq!(replayed["different"], serde_json::json!([]));
}

#[test]
fn second_answer_after_refusal_brief_is_verified() {
    let repo = small().build();
    let server = FakeOpenAi::start([
        Reply::Answer("I would rather not.".to_owned()),
        Reply::Answer(good_answer()),
    ]);
    let fixture = Fixture::with(&server);
    let status = fixture.start(repo.path()).ok().json();
    assert_eq!(status["state"], "verified");
    assert_eq!(codes(&status, 1), ["answer-no-edit"]);
    assert_eq!(status["run"]["goal"], GOAL);
}
