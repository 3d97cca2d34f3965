//! The patch gate: the same rules on its own as in a run, and the bytes that are judged, tried and landed.

use crucible_testkit::{FakeOpenAi, Reply};

use crate::support::{
    Fixture, GOOD_DIFF, WRONG, answering, codes, good_answer, id_of, right, small, with_gate,
};

const DELETION: &str =
    "diff --git a/tests/area_test.sh b/tests/area_test.sh\ndeleted file mode 100644\n";

#[test]
fn a_check_knows_every_rule_of_a_run() {
    let repo = small().build();
    let fixture = Fixture::new();
    let content = std::fs::read_to_string(repo.path().join("tests/area_test.sh")).unwrap();
    let mode = DELETION.replace(
        "100644",
        if is_executable(&repo) {
            "100755"
        } else {
            "100644"
        },
    );
    let removed: String = content.lines().map(|line| format!("-{line}\n")).collect();
    let count = content.lines().count();
    let deletion =
        format!("{mode}--- a/tests/area_test.sh\n+++ /dev/null\n@@ -1,{count} +0,0 @@\n{removed}");
    let policy = r#"{"allow_roots": ["tests/", "src/"], "named": ["tests/area_test.sh"]}"#;
    std::fs::write(fixture.path("policy.json"), policy).unwrap();
    std::fs::write(fixture.path("change.patch"), deletion).unwrap();
    let (patch, policy) = (fixture.path("change.patch"), fixture.path("policy.json"));
    let found = fixture
        .call(["patch", "check", "--json", "--patch"])
        .arg(&patch)
        .arg("--policy")
        .arg(&policy)
        .arg("--repo")
        .arg(repo.path())
        .run()
        .exits(1)
        .json();
    assert_eq!(found["verdict"], "fail");
    assert_eq!(found["findings"][0]["code"], "run-test-deleted");
    assert_eq!(found["findings"].as_array().unwrap().len(), 1);
}

fn is_executable(repo: &crucible_testkit::TestRepo) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let meta = std::fs::metadata(repo.path().join("tests/area_test.sh")).unwrap();
    meta.permissions().mode() & 0o111 != 0
}

/// Crucible's own sources are named like any product's, whatever they deal with: specs, secrets, skills, patches.
#[test]
fn change_of_each_own_crate_is_allowed() {
    let workspace = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources: Vec<String> = std::fs::read_dir(workspace.join("crates"))
        .unwrap()
        .map(|entry| {
            format!(
                "crates/{}/src",
                entry.unwrap().file_name().to_string_lossy()
            )
        })
        .chain(["xtask/src".to_owned()])
        .filter_map(|place| {
            ["lib.rs", "main.rs"]
                .iter()
                .map(|name| format!("{place}/{name}"))
                .find(|at| workspace.join(at).exists())
        })
        .collect();
    // Files with names that mean something elsewhere.
    sources.extend(
        [
            "crates/spec/src/phase/mod.rs",
            "crates/verify/src/runner/pytest.rs",
            "crates/forge/src/gates/mod.rs",
        ]
        .map(str::to_owned),
    );
    assert!(sources.len() > 18, "{sources:?}");
    let mut repo = crucible_testkit::RepoBuilder::new();
    for source in &sources {
        repo = repo.file(
            source,
            std::fs::read_to_string(workspace.join(source)).unwrap(),
        );
    }
    let repo = repo.build();
    for source in &sources {
        let at = repo.path().join(source);
        let text = std::fs::read_to_string(&at).unwrap();
        std::fs::write(&at, format!("{text}\n// The end.\n")).unwrap();
    }
    let fixture = Fixture::new();
    std::fs::write(fixture.path("change.patch"), repo.git(["diff"]) + "\n").unwrap();
    let limit = sources.len();
    let policy = format!(r#"{{"allow_roots": ["crates/", "xtask/"], "max_files": {limit}}}"#);
    std::fs::write(fixture.path("policy.json"), policy).unwrap();
    repo.git(["checkout", "-q", "."]);
    let found = fixture
        .call(["patch", "check", "--json", "--patch"])
        .arg(fixture.path("change.patch"))
        .arg("--policy")
        .arg(fixture.path("policy.json"))
        .arg("--repo")
        .arg(repo.path())
        .run()
        .ok()
        .json();
    assert_eq!(
        (&found["verdict"], &found["findings"]),
        (&"pass".into(), &serde_json::json!([]))
    );
}

#[test]
fn the_gates_see_the_line_ends_that_land() {
    let gate = "grep -q 'width \\* height' src/area.py &&\n\
                test \"$(tr -cd '\\r' < src/area.py | wc -c)\" -gt 1\n";
    let repo = with_gate(gate, 20)
        .file(".gitattributes", "*.py text eol=crlf\n")
        .build();
    std::fs::remove_file(repo.path().join("src/area.py")).unwrap();
    repo.git(["checkout", "-q", "HEAD", "--", "src/area.py"]);
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let started = fixture.start(repo.path()).ok().json();
    assert_eq!(started["state"], "verified");
    fixture
        .run(["run", "land", &id_of(&started), "--json"])
        .ok();
    let landed = std::fs::read_to_string(repo.path().join("src/area.py")).unwrap();
    assert_eq!(landed, right().replace('\n', "\r\n"));
    assert_eq!(
        repo.git(["show", "HEAD:src/area.py"]).trim_end(),
        right().trim_end()
    );
    assert_eq!(repo.status(), "");
}

#[test]
fn a_file_that_a_filter_rewrites_is_refused() {
    let repo = small().file(".gitattributes", "*.py filter=lfs\n").build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let status = fixture
        .start_call(repo.path())
        .args(["--max-iterations", "1"])
        .run()
        .exits(1)
        .json();
    assert_eq!(codes(&status, 1), ["patch-attribute"]);
}

#[test]
fn refused_patch_is_stored_reviewed_and_briefed() {
    let bad = GOOD_DIFF.replace("src/area.py", "src/other.py");
    let server = FakeOpenAi::start([Reply::Answer(bad.clone())]);
    let repo = small().file("src/other.py", WRONG).build();
    let fixture = Fixture::with(&server);
    let call =
        fixture
            .start_call(repo.path())
            .args(["--file", "src/area.py", "--max-iterations", "1"]);
    let status = call
        .env("CRUCIBLE_RUN_EDIT_FORMAT", "unified-diff")
        .run()
        .exits(1)
        .json();
    assert_eq!(codes(&status, 1), ["patch-path-outside-scope"]);
    let run = fixture.data().join("runs").join(id_of(&status));
    assert_eq!(
        std::fs::read_to_string(run.join("artifacts/diff.patch")).unwrap(),
        bad
    );
    let review = std::fs::read_to_string(run.join("reviews/review_patch.md")).unwrap();
    assert!(review.contains("\nVerdict: BLOCK\n"), "{review}");
    let subject = format!(
        "Subject: {}",
        crucible_model::Digest::compute(bad.as_bytes())
    );
    assert!(
        review.contains(&subject) && review.contains("patch-path-outside-scope"),
        "{review}"
    );
    assert!(
        !run.join("artifacts/verify_report.json").exists(),
        "nothing was tried"
    );

    // With another try the fixer is asked, told why, and shown what was refused.
    let server = FakeOpenAi::start([
        Reply::Answer(bad.clone()),
        Reply::Answer(GOOD_DIFF.to_owned()),
    ]);
    let fixture = Fixture::with(&server);
    let call =
        fixture
            .start_call(repo.path())
            .args(["--file", "src/area.py", "--max-iterations", "2"]);
    let status = call
        .env("CRUCIBLE_RUN_EDIT_FORMAT", "unified-diff")
        .run()
        .ok()
        .json();
    assert_eq!(status["state"], "verified");
    let requests = server.completions()[1].body.to_string();
    assert!(
        requests.contains("patch-path-outside-scope") && requests.contains("unified diff"),
        "{requests}"
    );
    let run = fixture.data().join("runs").join(id_of(&status));
    assert_eq!(
        std::fs::read_to_string(run.join("attempts/001/diff.patch")).unwrap(),
        bad
    );
    assert_eq!(
        std::fs::read_to_string(run.join("artifacts/diff.patch")).unwrap(),
        GOOD_DIFF
    );
}
