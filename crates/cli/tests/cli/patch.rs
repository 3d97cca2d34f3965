//! The patch gate: the same rules on its own as in a run, and the bytes that are judged, tried and landed.

use crate::support::{Desk, answering, codes, good_answer, id_of, right, small, with_gate};

const DELETION: &str = "diff --git a/tests/area_test.sh b/tests/area_test.sh\ndeleted file mode 100644\n";

#[test]
fn a_check_knows_every_rule_of_a_run() {
    let repo = small().build();
    let desk = Desk::new();
    let content = std::fs::read_to_string(repo.path().join("tests/area_test.sh")).unwrap();
    let mode = DELETION.replace("100644", if is_executable(&repo) { "100755" } else { "100644" });
    let removed: String = content.lines().map(|line| format!("-{line}\n")).collect();
    let count = content.lines().count();
    let deletion = format!("{mode}--- a/tests/area_test.sh\n+++ /dev/null\n@@ -1,{count} +0,0 @@\n{removed}");
    let policy = r#"{"allow_roots": ["tests/", "src/"], "named": ["tests/area_test.sh"]}"#;
    std::fs::write(desk.path("policy.json"), policy).unwrap();
    std::fs::write(desk.path("change.patch"), deletion).unwrap();
    let (patch, policy) = (desk.path("change.patch"), desk.path("policy.json"));
    let found = desk
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

#[test]
fn the_gates_see_the_line_ends_that_land() {
    let gate = "grep -q 'width . height' src/area.py && grep -q '\\*' src/area.py &&\n\
                test \"$(tr -cd '\\r' < src/area.py | wc -c)\" -gt 1\n";
    let repo = with_gate(gate, 20).file(".gitattributes", "*.py text eol=crlf\n").build();
    std::fs::remove_file(repo.path().join("src/area.py")).unwrap();
    repo.git(["checkout", "-q", "HEAD", "--", "src/area.py"]);
    let server = answering(good_answer());
    let desk = Desk::with(&server);
    let started = desk.start(repo.path()).ok().json();
    assert_eq!(started["state"], "verified");
    desk.run(["run", "land", &id_of(&started), "--json"]).ok();
    let landed = std::fs::read_to_string(repo.path().join("src/area.py")).unwrap();
    assert_eq!(landed, right().replace('\n', "\r\n"));
    assert_eq!(repo.git(["show", "HEAD:src/area.py"]).trim_end(), right().trim_end());
    assert_eq!(repo.status(), "");
}

#[test]
fn a_file_that_a_filter_rewrites_is_refused() {
    let repo = small().file(".gitattributes", "*.py filter=lfs\n").build();
    let server = answering(good_answer());
    let desk = Desk::with(&server);
    let status = desk.start_call(repo.path()).args(["--max-iterations", "1"]).run().exits(1).json();
    assert_eq!(codes(&status, 1), ["patch-attribute"]);
}
