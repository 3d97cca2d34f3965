//! What a run may change: by the goal's words, by `--file`, and by a permission that is given later.

use std::fs;
use std::path::PathBuf;

use crucible_testkit::{FakeOpenAi, Reply, RepoBuilder, TestRepo};

use crate::support::{CHECK, Call, Fixture, GOOD_DIFF, WRONG, codes, id_of, small};

/// A second file that changes.
const OTHER_DIFF: &str = "\
diff --git a/lib/other.py b/lib/other.py
--- a/lib/other.py
+++ b/lib/other.py
@@ -1 +1 @@
-x = 1
+x = 2
";

/// A new file of tests.
const TEST_DIFF: &str = "\
diff --git a/tests/test_area.py b/tests/test_area.py
new file mode 100644
--- /dev/null
+++ b/tests/test_area.py
@@ -0,0 +1,5 @@
+from src.area import area
+
+
+def test_area():
+    assert area(2, 3) == 6
";

fn file(fixture: &Fixture, id: &str, path: &str) -> PathBuf {
    fixture.data().join("runs").join(id).join(path)
}

fn line(fixture: &Fixture, id: &str, key: &str) -> String {
    let plan = fs::read_to_string(file(fixture, id, "artifacts/PLAN.md")).unwrap();
    let line = plan
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{key}: ")).map(str::to_owned));
    line.unwrap_or_default()
}

#[test]
fn a_goal_opens_what_it_names() {
    let repo = small()
        .file("lib/a.py", "a = 1\n")
        .file("lib/b.py", "b = 1\n")
        .file("CHANGELOG.md", "#\n")
        .build();
    let server = FakeOpenAi::start([Reply::Answer(GOOD_DIFF.to_owned())]);
    let fixture = Fixture::with(&server);
    let goal = "area must multiply in src/area.py; update lib/b.py, and leave lib/a.py alone";
    let call = fixture
        .call([
            "run",
            "start",
            goal,
            "--provider",
            "gateway",
            "--json",
            "--repo",
        ])
        .arg(repo.path());
    let status = call
        .env("CRUCIBLE_RUN_EDIT_FORMAT", "unified-diff")
        .run()
        .ok()
        .json();
    let id = id_of(&status);
    assert_eq!(line(&fixture, &id, "Scope-Allow"), "src/area.py, lib/b.py");
    assert_eq!(line(&fixture, &id, "Scope-Deny"), "lib/a.py");
    assert!(
        line(&fixture, &id, "May-Add").contains("tests"),
        "{}",
        line(&fixture, &id, "May-Add")
    );
    fixture.run(["run", "replay", &id]).ok();
    fixture
        .run(["run", "land", &id, "--message", "area: multiply"])
        .ok();
    assert_eq!(repo.git(["log", "-1", "--format=%s"]), "area: multiply");
    let body = repo.git(["log", "-1", "--format=%b"]);
    assert!(
        body.starts_with("area must multiply in src/area.py;")
            && body.contains("\n\nCrucible-Run: "),
        "{body}"
    );
    fixture.run(["run", "verify-record", &id]).ok();
}

#[test]
fn new_tests_pass_and_changed_ones_do_not() {
    let test = "def test_old():\n    assert 1 + 1 == 2\n";
    let repo = small().file("tests/test_old.py", test).build();
    let added = "diff --git a/tests/test_old.py b/tests/test_old.py\n--- a/tests/test_old.py\n+++ b/tests/test_old.py\n@@ -1,2 +1,6 @@\n def test_old():\n     assert 1 + 1 == 2\n+\n+\n+def test_new():\n+    assert 2 + 2 == 4\n";
    let changed = "diff --git a/tests/test_old.py b/tests/test_old.py\n--- a/tests/test_old.py\n+++ b/tests/test_old.py\n@@ -1,2 +1,2 @@\n def test_old():\n-    assert 1 + 1 == 2\n+    assert True\n";
    let judged = |diff: String, code: i32| {
        let server = FakeOpenAi::start([Reply::Answer(diff)]);
        let fixture = Fixture::with(&server);
        let call = fixture
            .start_call(repo.path())
            .args(["--max-iterations", "1"]);
        call.env("CRUCIBLE_RUN_EDIT_FORMAT", "unified-diff")
            .run()
            .exits(code)
            .json()
    };
    let status = judged(format!("{GOOD_DIFF}{TEST_DIFF}{added}"), 0);
    assert_eq!(status["state"], "verified");
    let status = judged(format!("{GOOD_DIFF}{changed}"), 1);
    assert_eq!(codes(&status, 1), ["patch-test-edited"]);
    let status = judged(
        format!(
            "{GOOD_DIFF}{}",
            TEST_DIFF.replace("test_area.py", "conftest.py")
        ),
        1,
    );
    assert!(
        codes(&status, 1).contains(&"patch-test-edited".to_owned()),
        "{:?}",
        codes(&status, 1)
    );
}

#[test]
fn scope_refusal_prints_the_continuing_command() {
    let repo = small().file("lib/other.py", "x = 1\n").build();
    let both = format!("{OTHER_DIFF}{GOOD_DIFF}");
    let server = FakeOpenAi::start([Reply::Answer(both.clone()), Reply::Answer(both)]);
    let fixture = Fixture::with(&server);
    let call =
        fixture
            .start_call(repo.path())
            .args(["--file", "src/area.py", "--max-iterations", "1"]);
    let ran = call
        .env("CRUCIBLE_RUN_EDIT_FORMAT", "unified-diff")
        .run()
        .exits(1);
    let status = ran.json();
    let id = id_of(&status);
    assert_eq!(codes(&status, 1), ["patch-path-outside-scope"]);
    let command = format!("crucible run advance {id} --allow lib/other.py");
    assert!(
        status["next"].as_str().unwrap().contains(&command),
        "{}",
        status["next"]
    );
    assert!(ran.stderr.contains(&command), "{}", ran.stderr);

    let refused = fixture
        .run(["run", "advance", &id, "--allow", "../x", "--json"])
        .exits(2);
    assert!(
        refused.message().contains("--allow \"../x\""),
        "{}",
        refused.message()
    );
    assert_eq!(fixture.status()["state"], "failed");

    let status = fixture
        .run(["run", "advance", &id, "--allow", "lib/other.py", "--json"])
        .ok()
        .json();
    assert_eq!(status["state"], "verified");
    assert_eq!(
        line(&fixture, &id, "Scope-Allow"),
        "src/area.py, lib/other.py"
    );
    assert_eq!(line(&fixture, &id, "Names"), "src/area.py, lib/other.py");
    let pack = fs::read_to_string(file(&fixture, &id, "artifacts/context_pack.json")).unwrap();
    assert!(
        pack.contains("lib/other.py"),
        "the model is shown what it may change"
    );
    let log = fixture.run(["ledger", "show", &id, "--json"]);
    let events = fs::read_to_string(file(&fixture, &id, "events.jsonl")).unwrap();
    assert_eq!(events.matches("SCOPE_ALLOWED").count(), 1, "{}", log.stdout);
    assert_eq!(events.matches("PLAN_SIGNED").count(), 2);
    fixture.run(["run", "verify-record", &id]).ok();
    fixture.run(["run", "replay", &id]).ok();
    let late = fixture
        .run(["run", "advance", &id, "--allow", "check.sh", "--json"])
        .exits(1);
    assert!(late.message().contains("verified"), "{}", late.message());
    fixture.run(["run", "land", &id]).ok();
    assert_eq!(repo.git(["show", "HEAD:lib/other.py"]), "x = 2");
    fixture.run(["run", "verify-record", &id]).ok();
}

#[test]
fn directory_and_glob_open_their_contents() {
    let repo = small()
        .file("lib/other.py", "x = 1\n")
        .file("lib/more.py", WRONG)
        .build();
    let server = FakeOpenAi::start([Reply::Answer(format!("{OTHER_DIFF}{GOOD_DIFF}"))]);
    let fixture = Fixture::with(&server);
    let call = fixture
        .start_call(repo.path())
        .args(["--file", "lib/", "--file", "src/*.py"]);
    let status = call
        .env("CRUCIBLE_RUN_EDIT_FORMAT", "unified-diff")
        .run()
        .ok()
        .json();
    assert_eq!(
        line(&fixture, &id_of(&status), "Scope-Allow"),
        "src/area.py, lib"
    );
    assert_eq!(line(&fixture, &id_of(&status), "Names"), "src/area.py");
    for (file, message) in [
        ("nothing/*.py", "no tracked file"),
        ("nothing/", "no such directory"),
        ("lib/[.py", "glob"),
    ] {
        let ran = fixture
            .start_call(repo.path())
            .args(["--file", file])
            .run()
            .exits(2);
        assert!(ran.message().contains(message), "{file}: {}", ran.message());
    }
}

/// A package in which more sources lie than rank best for any goal.
fn package() -> RepoBuilder {
    let rest = (0..9).map(|at| (format!("src/part_{at}.py"), format!("value = {at}\n")));
    rest.fold(small(), |repo, (path, text)| repo.file(path, text))
        .file("src/zone.py", "zone = 1\n")
        .file(
            "src/test_zone.py",
            "def test_zone():\n    assert 1 + 1 == 2\n",
        )
        .file("src/conftest.py", "x = 1\n")
        .file("src/Makefile", "x = 1\n")
        .file("src/words.txt", "x = 1\n")
        .file("src/gate.py", "x = 1\n")
        .file("check.sh", format!("{CHECK}python3 src/gate.py\n"))
}

/// A change of one line of a file.
fn line_diff(path: &str, before: &str, after: &str) -> String {
    format!(
        "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{before}\n+{after}\n"
    )
}

/// Starts a run whose model gives this diff.
fn changed_with(fixture: &Fixture, repo: &TestRepo, goal: &str) -> Call {
    let call = fixture.call([
        "run",
        "start",
        goal,
        "--max-iterations",
        "1",
        "--provider",
        "gateway",
        "--json",
        "--repo",
    ]);
    call.arg(repo.path())
        .env("CRUCIBLE_RUN_EDIT_FORMAT", "unified-diff")
}

#[test]
fn fix_in_two_files_of_one_package_lands() {
    let repo = package().build();
    let diff = format!(
        "{GOOD_DIFF}{}",
        line_diff("src/zone.py", "zone = 1", "zone = 2")
    );
    let server = FakeOpenAi::start([Reply::Answer(diff)]);
    let fixture = Fixture::with(&server);
    let ran = changed_with(&fixture, &repo, "the area of a rectangle is wrong")
        .run()
        .ok();
    let status = ran.json();
    let id = id_of(&status);
    assert!(
        !line(&fixture, &id, "Scope-Allow").contains("src/zone.py"),
        "{}",
        line(&fixture, &id, "Scope-Allow")
    );
    assert_eq!(line(&fixture, &id, "Scope-Sources"), "src/**");
    assert_eq!(status["scope_sources"], serde_json::json!(["src/**"]));
    assert!(
        ran.stderr.contains("any source in src/** may change"),
        "{}",
        ran.stderr
    );
    let result = fixture.run(["run", "status", &id]).ok();
    assert!(
        result.stdout.contains("any source in src/**"),
        "{}",
        result.stdout
    );
    let question = server.requests()[0].body["messages"][1]["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        question.contains("\nsrc/** (any source there"),
        "{question}"
    );
    fixture.run(["run", "land", &id]).ok();
    assert_eq!(repo.git(["show", "HEAD:src/zone.py"]), "zone = 2");
    fixture.run(["run", "verify-record", &id]).ok();
    fixture.run(["run", "replay", &id]).ok();
}

#[test]
fn tests_and_build_files_stay_closed_in_package() {
    let repo = package().build();
    for (path, before, codes_of_it) in [
        (
            "src/test_zone.py",
            "def test_zone():",
            &["patch-test-edited", "patch-definition-dropped"][..],
        ),
        (
            "src/conftest.py",
            "x = 1",
            &["patch-path-outside-scope", "patch-test-edited"],
        ),
        (
            "src/Makefile",
            "x = 1",
            &[
                "patch-path-outside-scope",
                "patch-path-denied",
                "patch-manifest-edited",
            ],
        ),
        ("src/words.txt", "x = 1", &["patch-path-outside-scope"]),
        ("src/gate.py", "x = 1", &["patch-path-denied"]),
    ] {
        let server = FakeOpenAi::start([Reply::Answer(format!(
            "{GOOD_DIFF}{}",
            line_diff(path, before, "x = 2")
        ))]);
        let fixture = Fixture::with(&server);
        let status = changed_with(&fixture, &repo, "the area of a rectangle is wrong")
            .run()
            .exits(1)
            .json();
        assert_eq!(line(&fixture, &id_of(&status), "Scope-Sources"), "src/**");
        assert_eq!(codes(&status, 1), codes_of_it, "{path}");
    }
}

#[test]
fn goal_naming_a_file_keeps_scope_narrow() {
    let repo = package().build();
    let diff = format!(
        "{GOOD_DIFF}{}",
        line_diff("src/zone.py", "zone = 1", "zone = 2")
    );
    let server = FakeOpenAi::start([Reply::Answer(diff.clone()), Reply::Answer(diff)]);
    let narrow = Fixture::with(&server);
    let status = changed_with(&narrow, &repo, "src/area.py must multiply")
        .run()
        .exits(1)
        .json();
    assert_eq!(line(&narrow, &id_of(&status), "Scope-Sources"), "");
    assert_eq!(codes(&status, 1), ["patch-path-outside-scope"]);
    // A symbol says where something is defined, and its callers may be elsewhere.
    let open = Fixture::with(&server);
    let status = changed_with(&open, &repo, "`perimeter` and area() must be right")
        .run()
        .ok()
        .json();
    assert_eq!(line(&open, &id_of(&status), "Scope-Sources"), "src/**");
}

#[test]
fn a_subject_is_one_line_of_72_characters() {
    let (repo, fixture) = (small().build(), Fixture::new());
    for bad in ["", "a\nb", &"x".repeat(73), "Crucible-Run: x"] {
        let ran = fixture
            .start_call(repo.path())
            .args(["--message", bad])
            .run()
            .exits(2);
        assert!(ran.message().contains("--message"), "{}", ran.message());
    }
}
