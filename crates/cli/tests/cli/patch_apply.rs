//! `patch apply`: what `patch check` lets through, byte for byte in the work tree; and nothing else, ever.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crucible_testkit::{RepoBuilder, TestRepo};
use serde_json::{Value, json};

use crate::support::{
    Fixture, GOOD_DIFF, Ran, Snapshot, answering, good_answer, id_of, right, small,
};

/// The five keys, and what these tests name.
const POLICY: &str = r#"{"allow_roots": ["src/"], "deny_prefixes": ["src/generated/"], "deny_suffixes": [".sql"],
    "max_files": 5, "max_added_lines": 400, "named": ["src/new.txt", "src/gone.txt", "src/moved.txt"]}"#;

struct Bench {
    fixture: Fixture,
    repo: TestRepo,
}

impl Bench {
    fn from_repo(repo: RepoBuilder) -> Self {
        let fixture = Fixture::new();
        std::fs::write(fixture.path("policy.json"), POLICY).unwrap();
        Self {
            fixture,
            repo: repo.build(),
        }
    }

    fn new() -> Self {
        Self::from_repo(RepoBuilder::new().files([
            ("src/a.txt", "one\ntwo\nthree\n"),
            ("src/gone.txt", "gone\n"),
            ("src/generated/g.txt", "made\n"),
            ("secret/s.txt", "s\n"),
            (".gitattributes", "*.md text\n"),
        ]))
    }

    fn call(&self, verb: &str, patch: impl AsRef<[u8]>) -> Ran {
        self.call_from(verb, patch, self.repo.path())
    }

    fn call_from(&self, verb: &str, patch: impl AsRef<[u8]>, repo: &Path) -> Ran {
        std::fs::write(self.fixture.path("change.patch"), patch).unwrap();
        let (patch, policy) = (
            self.fixture.path("change.patch"),
            self.fixture.path("policy.json"),
        );
        let call = self
            .fixture
            .call(["patch", verb, "--json", "--patch"])
            .arg(patch)
            .arg("--policy")
            .arg(policy);
        call.arg("--repo").arg(repo).run()
    }

    fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.repo.path().join(path)).unwrap()
    }
}

/// A section that changes one line of `src/a.txt`, and lines of its own below.
fn change() -> String {
    "diff --git a/src/a.txt b/src/a.txt\n--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n".to_owned()
}

/// Whether a document is as its schema says.
fn is_as(schema: &str, document: &Value) {
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let problem = schema
        .iter_errors(document)
        .next()
        .map(|error| error.to_string());
    assert_eq!(problem, None, "{document:#}");
}

fn found(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = report["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|finding| (text(&finding["code"]), text(&finding["subject"])))
        .collect()
}

#[test]
fn applied_patch_changes_files_without_staging() {
    let bench = Bench::new();
    let patch = change()
        + "diff --git a/src/gone.txt b/src/gone.txt\ndeleted file mode 100644\n--- a/src/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n\
           diff --git a/src/new.txt b/src/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/src/new.txt\n@@ -0,0 +1 @@\n+new\n";
    assert_eq!(bench.call("check", &patch).ok().json()["verdict"], "pass");
    // From below: `git apply` itself does nothing there, and says nothing of it.
    let report = bench
        .call_from("apply", &patch, &bench.repo.path().join("src/generated"))
        .ok()
        .json();
    let digest = |bytes: &[u8]| crucible_model::Digest::compute(bytes).to_string();
    assert_eq!(
        report,
        json!({ "schema_version": "crucible-patch-apply-v1", "verdict": "pass", "findings": [], "files": [
            { "path": "src/a.txt", "change": "changed", "sha256": digest(b"one\nzwei\nthree\n") },
            { "path": "src/gone.txt", "change": "removed", "sha256": null },
            { "path": "src/new.txt", "change": "added", "sha256": digest(b"new\n") },
        ] })
    );
    is_as(
        include_str!("../../../../docs/contracts/crucible-patch-apply-v1.schema.json"),
        &report,
    );
    is_as(
        include_str!("../../../../docs/contracts/patch_policy.schema.json"),
        &serde_json::from_str(POLICY).unwrap(),
    );
    assert_eq!(bench.read("src/a.txt"), b"one\nzwei\nthree\n");
    assert_eq!(bench.repo.git(["diff", "--cached", "--name-only"]), "");
    assert_eq!(
        bench.repo.git(["diff", "--name-only"]),
        "src/a.txt\nsrc/gone.txt"
    );

    // It is there now, so the files are not as committed, and a second time is refused.
    let second_json = bench.call("apply", &patch).exits(1).json();
    let dirty: Vec<_> = found(&second_json)
        .into_iter()
        .map(|(code, _)| code)
        .collect();
    assert_eq!(dirty, ["patch-file-dirty"; 3]);
}

#[test]
fn apply_lists_changed_files_or_states_none_applied() {
    let bench = Bench::new();
    std::fs::write(bench.fixture.path("change.patch"), change()).unwrap();
    let call = || {
        let call = bench.fixture.call([
            "patch",
            "apply",
            "--patch",
            "../change.patch",
            "--policy",
            "../policy.json",
        ]);
        call.arg("--repo").arg(bench.repo.path())
    };
    assert_eq!(call().run().ok().stdout, "changed src/a.txt\n");
    let second_output = call().run().exits(1);
    assert!(
        second_output.stdout.contains("patch-file-dirty: src/a.txt"),
        "{}",
        second_output.stdout
    );
    assert!(
        second_output.stdout.ends_with("nothing was applied\n"),
        "{}",
        second_output.stdout
    );
}

#[test]
fn unusual_valid_patches_apply_byte_for_byte() {
    let unusual_text = "\u{2028}\u{c} \u{85}one\r\n++ b/x\n-- a/x\ndiff --git a/y b/y\nend\n";
    let latin = b"caf\xe9 \xff\n";
    let (spaced, quoted) = ("src/a b.txt", "src/t\tab \"q\" caf\u{e9}.txt");
    let bench = Bench::from_repo(
        RepoBuilder::new()
            .file("src/odd.txt", unusual_text)
            .file("src/latin.txt", latin)
            .file(spaced, "1\n")
            .file(quoted, "1\n"),
    );
    // git writes the patch itself, quotes what it quotes, and must find its own files again.
    let after = unusual_text.replace(
        "++ b/x",
        "++ c/x\n+++ b/z\n\u{c}\ndiff --git a/z b/z\u{2028}",
    );
    std::fs::write(bench.repo.path().join("src/odd.txt"), &after).unwrap();
    std::fs::write(bench.repo.path().join("src/latin.txt"), b"th\xe9 \xff\n").unwrap();
    std::fs::write(bench.repo.path().join(spaced), "2\n").unwrap();
    std::fs::write(bench.repo.path().join(quoted), "2\n").unwrap();
    let diff = std::process::Command::new("git")
        .args(["diff", "--no-ext-diff"])
        .current_dir(bench.repo.path())
        .output()
        .unwrap()
        .stdout;
    assert!(
        diff.windows(4).any(|bytes| bytes == b"th\xe9 "),
        "the patch is not UTF-8"
    );
    bench.repo.git(["checkout", "--quiet", "--", "."]);
    let report = bench.call("apply", &diff).ok().json();
    assert_eq!(report["files"].as_array().unwrap().len(), 4);
    assert_eq!(bench.read("src/odd.txt"), after.as_bytes());
    assert_eq!(bench.read("src/latin.txt"), b"th\xe9 \xff\n");
    assert_eq!(
        (bench.read(spaced), bench.read(quoted)),
        (b"2\n".to_vec(), b"2\n".to_vec())
    );
}

#[test]
fn every_known_trick_is_refused_and_touches_nothing() {
    let bench = Bench::from_repo(RepoBuilder::new().files([
        ("src/a.txt", "one\ntwo\nthree\n"),
        ("src/generated/g.txt", "made\n"),
        ("secret/s.txt", "s\n"),
        ("a/src/a.txt", "one\ntwo\nthree\n"),
        ("src/x b/src/y", "one\ntwo\nthree\n"),
        ("web/src/node_modules/m.js", "1\n"),
        ("src/node_modules/m.js", "1\n"),
    ]));
    let new = |path: &str, mode: &str| {
        format!(
            "diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
        )
    };
    let line = |path: &str| {
        format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-1\n+2\n")
    };
    let section = "--- a/secret/s.txt\n+++ b/secret/s.txt\n@@ -1 +1 @@\n-s\n+t\n";
    let tricks: Vec<(&str, String, &str, &str)> = vec![
        ("a second section without its own header", change() + section, "patch-section-without-header", "line 9"),
        ("a rename out of the scope", "diff --git a/secret/s.txt b/src/new.txt\nsimilarity index 100%\nrename from secret/s.txt\nrename to src/new.txt\n".into(), "patch-rename-source-outside", "secret/s.txt"),
        ("a copy from a denied place", "diff --git a/src/generated/g.txt b/src/new.txt\nsimilarity index 100%\ncopy from src/generated/g.txt\ncopy to src/new.txt\n".into(), "patch-rename-source-outside", "src/generated/g.txt"),
        ("names that can be divided in two ways", "diff --git a/src/x b/src/y b/secret/s.txt\nold mode 100644\nnew mode 100755\n".into(), "patch-headers-disagree", "line 1"),
        ("`a/` stripped twice", change().replace("a/src", "a/a/src").replace("b/src", "b/a/src"), "patch-path-outside-scope", "a/src/a.txt"),
        ("a denied prefix in a subdirectory", line("src/node_modules/m.js"), "patch-path-denied", "src/node_modules/m.js"),
        ("a link", new("src/new.txt", "120000"), "patch-symlink", "src/new.txt"),
        ("an executable", new("src/run.txt", "100755"), "patch-mode-change", "src/run.txt"),
        ("a submodule", new("src/new.txt", "160000"), "patch-gitlink", "src/new.txt"),
        ("another mode", "diff --git a/src/a.txt b/src/a.txt\nold mode 100644\nnew mode 100755\n".into(), "patch-mode-change", "src/a.txt"),
        ("a mode that is said by the way", change().replace("--- a", "index 1111111..2222222 120000\n--- a"), "patch-symlink", "src/a.txt"),
        ("git's attributes", new("src/.gitattributes", "100644"), "patch-git-attributes", "src/.gitattributes"),
        ("git's submodules", new(".gitmodules", "100644"), "patch-git-attributes", ".gitmodules"),
        ("a hook", new(".git/hooks/pre-commit", "100755"), "patch-bad-path", "line 1"),
        ("out of the repository", new("../x", "100644"), "patch-bad-path", "line 1"),
        ("another encoding of the name", "diff --git \"a/src/\\377\" \"b/src/\\377\"\nnew file mode 100644\n".into(), "patch-path-not-utf8", "line 1"),
        ("a file that becomes a link", "diff --git a/src/a.txt b/src/a.txt\ndeleted file mode 100644\n--- a/src/a.txt\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n".to_owned() + &new("src/a.txt", "120000"), "patch-type-change", "line 9"),
        ("prose around it", format!("Here it is:\n{}", change()), "patch-not-git-diff", "line 1"),
        ("a place that git looks for", change().replace("@@ -1,3 +1,3 @@", "@@ -2,3 +2,3 @@"), "answer-does-not-apply", "src/a.txt"),
        ("a denied ending", new("src/q.SQL", "100644"), "patch-suffix-denied", "src/q.SQL"),
    ];
    let before = Snapshot::take([bench.repo.path()]);
    for (what, patch, code, subject) in tricks {
        let checked = bench.call("check", &patch).exits(1).json();
        let applied = bench.call("apply", &patch).exits(1).json();
        assert_eq!(checked["verdict"], "fail", "{what}");
        assert_eq!(checked["findings"], applied["findings"], "{what}");
        assert_eq!(applied["files"], json!([]), "{what}");
        assert!(
            found(&checked).contains(&(code.to_owned(), subject.to_owned())),
            "{what}: {:?}",
            found(&checked)
        );
    }
    before.is_still(&Snapshot::take([bench.repo.path()]));
}

#[test]
fn removals_have_a_limit_too() {
    let long: String = (0..401).map(|line| format!("{line}\n")).collect();
    let bench = Bench::from_repo(RepoBuilder::new().file("src/gone.txt", &long));
    let removed: String = long.lines().map(|line| format!("-{line}\n")).collect();
    let patch = format!(
        "diff --git a/src/gone.txt b/src/gone.txt\ndeleted file mode 100644\n--- a/src/gone.txt\n+++ /dev/null\n@@ -1,401 +0,0 @@\n{removed}"
    );
    let report = bench.call("apply", patch).exits(1).json();
    assert_eq!(
        found(&report),
        [("patch-too-many-removed".to_owned(), "401".to_owned())]
    );
    assert!(bench.repo.path().join("src/gone.txt").exists());
}

#[test]
fn user_edit_prevents_every_change_of_patch() {
    let bench = Bench::new();
    bench.repo.write("src/gone.txt", "mine\n");
    let patch = change()
        + "diff --git a/src/gone.txt b/src/gone.txt\ndeleted file mode 100644\n--- a/src/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";
    assert_eq!(
        bench.call("check", &patch).ok().json()["verdict"],
        "pass",
        "what is judged is the commit"
    );
    let report = bench.call("apply", &patch).exits(1).json();
    assert_eq!(
        found(&report),
        [("patch-file-dirty".to_owned(), "src/gone.txt".to_owned())]
    );
    assert_eq!(bench.read("src/a.txt"), b"one\ntwo\nthree\n");
    assert_eq!(bench.read("src/gone.txt"), b"mine\n");

    // A link to a file of the same content is the user's change as well, and is not followed.
    let bench = Bench::new();
    let outside = bench.fixture.path("outside.txt");
    std::fs::write(&outside, "one\ntwo\nthree\n").unwrap();
    std::fs::remove_file(bench.repo.path().join("src/a.txt")).unwrap();
    symlink(&outside, bench.repo.path().join("src/a.txt")).unwrap();
    let report = bench.call("apply", change()).exits(1).json();
    assert_eq!(
        found(&report),
        [("patch-file-dirty".to_owned(), "src/a.txt".to_owned())]
    );
    assert_eq!(std::fs::read(outside).unwrap(), b"one\ntwo\nthree\n");
}

#[test]
fn apply_runs_no_repository_program_and_misses_nothing() {
    let bench = Bench::new();
    let (git, trace) = (bench.repo.path().join(".git"), bench.fixture.path("trace"));
    let trap = bench.fixture.path("trap");
    std::fs::write(
        &trap,
        format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", trace.display()),
    )
    .unwrap();
    std::fs::set_permissions(&trap, std::fs::Permissions::from_mode(0o755)).unwrap();
    let trap = trap.to_str().unwrap();
    let included = bench.fixture.path("included.config");
    std::fs::write(
        &included,
        format!("[filter \"evil\"]\n\tclean = {trap}\n\tsmudge = {trap}\n\tprocess = {trap}\n[diff \"evil\"]\n\ttextconv = {trap}\n\tcommand = {trap}\n"),
    )
    .unwrap();
    std::fs::write(
        git.join("info/attributes"),
        "* diff=evil\nother filter=evil\n",
    )
    .unwrap();
    std::fs::write(git.join("info/exclude"), "*.txt\n").unwrap();
    let objects = bench.fixture.path("objects");
    std::fs::create_dir(&objects).unwrap();
    std::fs::create_dir_all(git.join("objects/info")).unwrap();
    std::fs::write(
        git.join("objects/info/alternates"),
        format!("{}\n", objects.display()),
    )
    .unwrap();
    std::fs::create_dir_all(git.join("hooks")).unwrap();
    for hook in [
        "post-index-change",
        "post-checkout",
        "pre-applypatch",
        "reference-transaction",
    ] {
        std::fs::copy(trap, git.join("hooks").join(hook)).unwrap();
    }
    for (key, value) in [
        ("core.fsmonitor", trap),
        ("core.sshCommand", trap),
        ("core.alternateRefsCommand", trap),
        ("core.attributesFile", trap),
        ("include.path", included.to_str().unwrap()),
        ("core.ignoreStat", "true"),
        ("apply.whitespace", "fix"),
    ] {
        bench.repo.git(["config", key, value]);
    }
    let patch = change().replace("+zwei", "+zwei \t");
    assert_eq!(bench.call("apply", &patch).ok().json()["verdict"], "pass");
    assert_eq!(
        bench.read("src/a.txt"),
        b"one\nzwei \t\nthree\n",
        "no setting mends what was judged"
    );
    assert_eq!(std::fs::read_dir(&objects).unwrap().count(), 0);
    assert!(
        !trace.exists(),
        "{}",
        std::fs::read_to_string(&trace).unwrap_or_default()
    );

    // Hidden from `git status`, and found all the same.
    for flag in ["--skip-worktree", "--assume-unchanged"] {
        let bench = Bench::new();
        bench.repo.git(["update-index", flag, "src/a.txt"]);
        bench.repo.write("src/a.txt", "one\nmine\nthree\n");
        let report = bench.call("apply", change()).exits(1).json();
        assert_eq!(
            found(&report),
            [("patch-file-dirty".to_owned(), "src/a.txt".to_owned())],
            "{flag}"
        );
        assert_eq!(bench.read("src/a.txt"), b"one\nmine\nthree\n");
    }
}

#[test]
fn work_tree_moved_by_configuration_is_refused() {
    let bench = Bench::new();
    let elsewhere = bench.fixture.path("elsewhere");
    std::fs::create_dir_all(elsewhere.join("src")).unwrap();
    std::fs::write(elsewhere.join("src/a.txt"), "one\ntwo\nthree\n").unwrap();
    bench
        .repo
        .git(["config", "core.worktree", elsewhere.to_str().unwrap()]);
    bench.call("apply", change()).exits(2);
    assert_eq!(
        std::fs::read(elsewhere.join("src/a.txt")).unwrap(),
        b"one\ntwo\nthree\n"
    );
}

#[test]
fn run_plan_is_valid_only_as_signed() {
    let repo = small().build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let started = fixture.start(repo.path()).ok().json();
    assert_eq!(started["state"], "verified");
    let run = fixture.data().join("runs").join(id_of(&started));
    let (plan, patch) = (
        run.join("artifacts/PLAN.md"),
        run.join("artifacts/diff.patch"),
    );
    let call = |verb: &str, plan: &Path| {
        let call = fixture
            .call(["patch", verb, "--json", "--patch"])
            .arg(&patch)
            .arg("--plan")
            .arg(plan);
        call.arg("--repo").arg(repo.path()).run()
    };
    let signed = std::fs::read_to_string(&plan).unwrap();

    std::fs::write(
        &plan,
        signed.replace("Scope-Allow: ", "Scope-Allow: docs, "),
    )
    .unwrap();
    for verb in ["check", "apply"] {
        let report = call(verb, &plan).exits(1).json();
        assert_eq!(found(&report)[0].0, "patch-plan-unsigned", "{verb}");
    }
    std::fs::write(&plan, &signed).unwrap();
    let review = run.join("reviews/review_cost.md");
    let approved = std::fs::read(&review).unwrap();
    std::fs::write(&review, "Verdict: APPROVE\n").unwrap();
    call("apply", &plan).exits(1);
    std::fs::write(&review, approved).unwrap();
    let draft = run.join("artifacts/PLAN_draft.md");
    assert_eq!(
        found(&call("apply", &draft).exits(1).json())[0].0,
        "patch-plan-unsigned"
    );
    assert_eq!(repo.status(), "");

    assert_eq!(
        call("apply", &plan).ok().json()["files"][0]["path"],
        "src/area.py"
    );
    assert_eq!(
        std::fs::read_to_string(repo.path().join("src/area.py")).unwrap(),
        right()
    );
}

#[test]
fn ambiguous_plan_is_refused() {
    let repo = small().build();
    let fixture = Fixture::new();
    std::fs::write(
        fixture.path("PLAN.md"),
        b"Status: SIGNED\nScope-Allow: src/\xff\n",
    )
    .unwrap();
    std::fs::write(fixture.path("change.patch"), GOOD_DIFF).unwrap();
    let call = fixture.call([
        "patch",
        "apply",
        "--json",
        "--patch",
        "../change.patch",
        "--plan",
        "../PLAN.md",
        "--repo",
    ]);
    let report = call.arg(repo.path()).run().exits(1).json();
    assert_eq!(found(&report)[0].0, "patch-plan-unreadable");
}

#[test]
fn apply_without_plan_or_repository_is_usage_error() {
    let bench = Bench::new();
    std::fs::write(bench.fixture.path("change.patch"), change()).unwrap();
    bench
        .fixture
        .call(["patch", "apply", "--json", "--patch", "../change.patch"])
        .run()
        .exits(2);
    let nowhere = tempfile::tempdir().unwrap();
    bench.call_from("apply", change(), nowhere.path()).exits(2);
}

#[test]
fn record_of_change_is_outside_the_work_tree() {
    let bench = Bench::new();
    std::fs::write(bench.fixture.path("change.patch"), change()).unwrap();
    let call = bench.fixture.call([
        "patch",
        "apply",
        "--json",
        "--patch",
        "../change.patch",
        "--policy",
        "../policy.json",
        "--repo",
    ]);
    let call = call
        .arg(bench.repo.path())
        .env("CRUCIBLE_HOME", bench.repo.path().join("own"));
    assert!(
        call.run()
            .exits(2)
            .message()
            .contains("is inside the repository")
    );
    assert_eq!(bench.read("src/a.txt"), b"one\ntwo\nthree\n");
}
