//! Fixups as a user meets them: shown before anything changes, applied for all files or none, and only where they may.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crucible_testkit::{FakeApi, Reply};
use serde_json::json;

use super::support::{
    IDEA, SPEC, answering, asked, newest, project, receipts, resume, server, spec, spec_dir,
    with_idea,
};
use crate::crawl::terminal::Terminal;
use crate::support::{Call, Fixture, Ran, WRONG, right, whole_file};

/// A server whose review names these files, and whose fixup gives them these contents.
pub(super) fn proposing(files: &[(&str, &str)]) -> FakeApi {
    let finding = |(number, (path, _)): (usize, &(&str, &str))| {
        format!("- F-{:03} [major] {path}: it is wrong\n", number + 1)
    };
    let findings: String = files.iter().enumerate().map(finding).collect();
    let review = format!("# Review: Export of data\n\n## Findings\n\n{findings}");
    let fixup: String = files
        .iter()
        .map(|(path, content)| whole_file(path, content))
        .collect();
    server(move |phase, _| match phase {
        "review" => Some(Reply::Answer(review.clone())),
        "fixup" => Some(Reply::Answer(fixup.clone())),
        _ => None,
    })
}

fn propose(fixture: &Fixture, project: &Path) -> Ran {
    spec(
        fixture,
        project,
        ["--through", "fixup", "--context", "src/area.py"],
    )
}

fn apply<const N: usize>(fixture: &Fixture, project: &Path, options: [&str; N]) -> Ran {
    let call = fixture.call(["resume", SPEC, "--phase", "fixup", "--apply-fixups"]);
    call.args(options).current_dir(project).run()
}

fn read(project: &Path, path: &str) -> String {
    std::fs::read_to_string(project.join(path)).unwrap()
}

#[test]
fn proposed_fixup_is_shown_with_apply_command() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let ran = propose(&fixture, &project).ok();
    let expected = "\
proposed fixups: 1 file
  src/area.py +1 -1
diff --git a/src/area.py b/src/area.py
--- a/src/area.py
+++ b/src/area.py
@@ -1,5 +1,5 @@
 def area(width, height):
-    return width + height
+    return width * height
 
 
 def perimeter(width, height):
next: crucible resume export-data --phase fixup --apply-fixups
";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\u{1b}'), "{:?}", ran.stdout);
    assert_eq!(read(&project, "src/area.py"), WRONG);
    let diff = std::fs::read_to_string(spec_dir(&project).join("artifacts/40-fixup.diff")).unwrap();
    assert!(diff.starts_with("diff --git a/src/area.py"), "{diff}");
}

#[test]
fn diff_is_coloured_only_on_a_terminal() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    propose(&fixture, &project).ok();
    let call = |fixture: &Fixture| -> Call {
        fixture
            .call(["resume", SPEC, "--phase", "fixup"])
            .current_dir(&project)
    };
    let (code, screen) = Terminal::start(call(&fixture).env("TERM", "xterm")).ends();
    assert_eq!(code, Some(0), "{screen}");
    assert!(
        screen.contains("\u{1b}[31m-    return width + height\u{1b}[0m"),
        "{screen:?}"
    );
    assert!(
        screen.contains("\u{1b}[32m+    return width * height\u{1b}[0m"),
        "{screen:?}"
    );
    let (code, screen) =
        Terminal::start(call(&fixture).env("TERM", "xterm").env("NO_COLOR", "1")).ends();
    assert_eq!(code, Some(0), "{screen}");
    assert!(
        screen.contains("-    return width + height\r\n"),
        "{screen:?}"
    );
    assert!(!screen.contains("\u{1b}[3"), "{screen:?}");
}

#[test]
fn file_edited_since_proposal_blocks_whole_fixup() {
    let server = proposing(&[("src/area.py", &right()), ("src/b.py", "b = 2\n")]);
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    std::fs::write(project.join("src/b.py"), "b = 1\n").unwrap();
    let lines = [
        "--through",
        "fixup",
        "--context",
        "src/area.py",
        "--context",
        "src/b.py",
    ];
    let ran = spec(&fixture, &project, lines).ok();
    assert!(
        ran.stdout
            .contains("proposed fixups: 2 files\n  src/area.py +1 -1\n  src/b.py +1 -1\n"),
        "{}",
        ran.stdout
    );
    std::fs::write(project.join("src/b.py"), "b = 3\n").unwrap();
    let before = receipts(&project).len();
    let ran = apply(&fixture, &project, []).exits(1);
    assert!(
        ran.stderr
            .contains("src/b.py has changed since the fixup was made"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("`crucible resume export-data --phase fixup`"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("no file was changed"), "{}", ran.stderr);
    assert_eq!(
        (
            read(&project, "src/area.py").as_str(),
            read(&project, "src/b.py").as_str()
        ),
        (WRONG, "b = 3\n")
    );
    assert_eq!(receipts(&project).len(), before, "it still waits");
    // With the file as it was, the same fixup is applied, and nobody was asked again.
    std::fs::write(project.join("src/b.py"), "b = 1\n").unwrap();
    apply(&fixture, &project, []).ok();
    assert_eq!(
        (
            read(&project, "src/area.py"),
            read(&project, "src/b.py").as_str()
        ),
        (right(), "b = 2\n")
    );
    assert_eq!(
        asked(&server)
            .iter()
            .filter(|phase| **phase == "fixup")
            .count(),
        1
    );
}

#[test]
fn line_endings_and_permissions_survive_a_fixup() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let file = project.join("src/area.py");
    std::fs::write(&file, WRONG.replace('\n', "\r\n").trim_end()).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o750)).unwrap();
    propose(&fixture, &project).ok();
    let ran = apply(&fixture, &project, []).ok();
    assert!(
        ran.stdout
            .contains("applied fixups: 1 file\n  src/area.py\n"),
        "{}",
        ran.stdout
    );
    assert_eq!(
        read(&project, "src/area.py"),
        right().replace('\n', "\r\n").trim_end()
    );
    assert_eq!(
        file.metadata().unwrap().permissions().mode() & 0o7777,
        0o750
    );
    let receipt = newest(&project);
    let document = &receipt["phases"][0]["fixups"]["files"][0];
    let digest = crucible_model::Digest::compute(&std::fs::read(&file).unwrap());
    assert_eq!(document["after"], json!(digest.to_string()));
}

#[test]
fn edited_fixup_diff_is_not_applied() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    propose(&fixture, &project).ok();
    let diff = spec_dir(&project).join("artifacts/40-fixup.diff");
    let text = std::fs::read_to_string(&diff).unwrap();
    std::fs::write(&diff, text.replace("width * height", "evil()")).unwrap();
    let ran = apply(&fixture, &project, []).exits(1);
    assert!(
        ran.stderr
            .contains("40-fixup.diff was changed after its receipt was written"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("`crucible resume export-data --phase fixup` for a new one"),
        "{}",
        ran.stderr
    );
    assert_eq!(read(&project, "src/area.py"), WRONG);
    resume(&fixture, &project, ["--phase", "fixup"]).ok();
    apply(&fixture, &project, []).ok();
    assert_eq!(read(&project, "src/area.py"), right());
}

#[test]
fn fixup_touches_tests_only_if_named() {
    let server = proposing(&[
        ("src/area.py", &right()),
        ("tests/area_test.sh", "exit 0\n"),
        ("src/new.py", "n = 1\n"),
    ]);
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    std::fs::create_dir(project.join("tests")).unwrap();
    std::fs::write(project.join("tests/area_test.sh"), "exit 1\n").unwrap();
    let lines = [
        "--context",
        "src/area.py",
        "--context",
        "tests/area_test.sh",
    ];
    let ran = spec(
        &fixture,
        &project,
        ["--through", "fixup", lines[0], lines[1], lines[2], lines[3]],
    )
    .exits(1);
    assert!(
        ran.stderr.contains("patch-test-edited") && ran.stderr.contains("patch-new-file-unnamed"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("--allow-path"), "{}", ran.stderr);
    let named = [
        "--allow-path",
        "tests/area_test.sh",
        "--allow-path",
        "src/new.py",
    ];
    let call = fixture
        .call(["resume", SPEC, "--phase", "fixup"])
        .args(lines)
        .args(named);
    let ran = call.current_dir(&project).run().ok();
    assert!(
        ran.stdout.contains("  src/new.py +1 -0 (new)\n"),
        "{}",
        ran.stdout
    );
    // What was allowed for the proposal is allowed anew for the change.
    apply(&fixture, &project, []).exits(1);
    assert_eq!(read(&project, "tests/area_test.sh"), "exit 1\n");
    apply(&fixture, &project, named).ok();
    assert_eq!(
        (
            read(&project, "tests/area_test.sh"),
            read(&project, "src/new.py")
        ),
        ("exit 0\n".into(), "n = 1\n".into())
    );
}

#[test]
fn no_flag_lifts_what_is_never_touched() {
    // The review names a file that may be changed, and the answer changes another one with it.
    let answer =
        whole_file("src/area.py", &right()) + &whole_file(".crucible/config.toml", "[spec]\n");
    let server = server(move |phase, _| (phase == "fixup").then(|| Reply::Answer(answer.clone())));
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    std::fs::write(project.join(".crucible/config.toml"), "").unwrap();
    let lines = ["--through", "fixup", "--context", "src/area.py"];
    let named = ["--allow-path", "src/area.py"];
    let call = fixture.call(["spec", SPEC]).args(lines).args(named);
    let ran = with_idea(call, &project, IDEA).exits(1);
    assert!(ran.stderr.contains("patch-path-denied"), "{}", ran.stderr);
    assert_eq!(
        asked(&server)
            .iter()
            .filter(|phase| **phase == "fixup")
            .count(),
        2
    );
    assert_eq!(
        (
            read(&project, ".crucible/config.toml"),
            read(&project, "src/area.py")
        ),
        (String::new(), WRONG.to_owned())
    );
    for path in [
        "../outside.py",
        "/etc/passwd",
        ".git/config",
        ".crucible/config.toml",
    ] {
        let ran = resume(
            &fixture,
            &project,
            ["--phase", "fixup", "--allow-path", path],
        )
        .exits(2);
        assert!(ran.stderr.contains("--allow-path"), "{}", ran.stderr);
    }
}

#[test]
fn fixup_link_is_followed_only_inside_project() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    propose(&fixture, &project).ok();
    // The very same content, behind a link.
    std::fs::rename(project.join("src/area.py"), project.join("src/real.py")).unwrap();
    symlink("real.py", project.join("src/area.py")).unwrap();
    let ran = apply(&fixture, &project, []).exits(1);
    assert!(
        ran.stderr.contains("src/area.py: it is a symbolic link")
            && ran.stderr.contains("--allow-links"),
        "{}",
        ran.stderr
    );
    assert_eq!(read(&project, "src/real.py"), WRONG);
    let outside = project.parent().unwrap().join("outside.py");
    std::fs::rename(project.join("src/real.py"), &outside).unwrap();
    std::fs::remove_file(project.join("src/area.py")).unwrap();
    symlink(&outside, project.join("src/area.py")).unwrap();
    let ran = apply(&fixture, &project, ["--allow-links"]).exits(1);
    assert!(ran.stderr.contains("out of the project"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), WRONG);
    std::fs::rename(&outside, project.join("src/real.py")).unwrap();
    std::fs::remove_file(project.join("src/area.py")).unwrap();
    symlink("real.py", project.join("src/area.py")).unwrap();
    let ran = apply(&fixture, &project, ["--allow-links"]).ok();
    assert!(
        ran.stderr.contains("the changed file is src/real.py"),
        "{}",
        ran.stderr
    );
    assert_eq!(read(&project, "src/real.py"), right());
    assert!(project.join("src/area.py").is_symlink());
}
