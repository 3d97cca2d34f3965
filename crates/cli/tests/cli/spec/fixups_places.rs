//! Which files fixups reach: not those that decide what git runs, none behind a link to what may not be changed, and none by a pattern.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crucible_testkit::Reply;

use super::fixups::proposing;
use super::support::{asked, project, resume, server, spec};
use crate::support::{Fixture, Ran, WRONG, right, whole_file};

fn git(project: &Path, args: &[&str]) {
    let mut git = Command::new("git");
    git.arg("-C")
        .arg(project)
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    assert!(git.status().unwrap().success(), "{args:?}");
}

fn read(project: &Path, path: &str) -> String {
    std::fs::read_to_string(project.join(path)).unwrap()
}

fn propose(fixture: &Fixture, project: &Path, path: &str) -> Ran {
    spec(fixture, project, ["--through", "fixup", "--context", path])
}

#[test]
fn git_control_file_changes_only_if_named() {
    let evil = "[core]\n\tfsmonitor = touch ran\n";
    for path in ["gitconf", "bare/repo/config", "tools/gitrun/lib.sh"] {
        let server = proposing(&[(path, evil)]);
        let fixture = Fixture::with(&server);
        let project = project(&fixture);
        git(&project, &["init", "-q"]);
        git(&project, &["config", "include.path", "../gitconf"]);
        git(&project, &["config", "core.hooksPath", "tools/gitrun"]);
        git(&project, &["init", "-q", "--bare", "bare/repo"]);
        std::fs::create_dir_all(project.join("tools/gitrun")).unwrap();
        let own = "[user]\n\tname = me\n";
        std::fs::write(project.join(path), own).unwrap();
        let ran = propose(&fixture, &project, path).exits(1);
        assert!(
            ran.stderr.contains("fixup-guarded-place") && ran.stderr.contains(path),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("--allow-path"), "{}", ran.stderr);
        assert_eq!(
            asked(&server)
                .iter()
                .filter(|phase| **phase == "fixup")
                .count(),
            2,
            "it is told once"
        );
        // Named, it is proposed; and it is applied where it is named again.
        let named = ["--phase", "fixup", "--context", path, "--allow-path", path];
        resume(&fixture, &project, named).ok();
        let ran = resume(&fixture, &project, ["--phase", "fixup", "--apply-fixups"]).exits(1);
        assert!(ran.stderr.contains("fixup-guarded-place"), "{}", ran.stderr);
        assert_eq!(read(&project, path), own);
        let named = ["--phase", "fixup", "--apply-fixups", "--allow-path", path];
        resume(&fixture, &project, named).ok();
        assert_eq!(read(&project, path), evil);
        assert!(!project.join("ran").exists());
    }
}

#[test]
fn fixup_link_targets_are_judged_before_offer() {
    let review = "# Review: Export of data\n\n## Findings\n\n- F-001 [major] src/lt.py: wrong\n- F-002 [major] src/area.py: wrong\n";
    let mut asked_before = 0;
    let server = server(move |phase, request| match phase {
        "review" => Some(Reply::Answer(review.to_owned())),
        "fixup" => {
            asked_before += 1;
            let question = request.body["messages"].to_string();
            let was_told = question.contains("src/lt.py leads there through a link");
            assert_eq!(was_told, asked_before > 1, "{question}");
            let more = if was_told {
                String::new()
            } else {
                whole_file("src/lt.py", "assert True\n")
            };
            Some(Reply::Answer(whole_file("src/area.py", &right()) + &more))
        }
        _ => None,
    });
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    std::fs::create_dir(project.join("tests")).unwrap();
    std::fs::write(project.join("tests/test_a.py"), "assert False\n").unwrap();
    symlink("../tests/test_a.py", project.join("src/lt.py")).unwrap();
    std::fs::rename(project.join("src/area.py"), project.join("src/real.py")).unwrap();
    symlink("real.py", project.join("src/area.py")).unwrap();
    let ran = spec(
        &fixture,
        &project,
        [
            "--through",
            "fixup",
            "--allow-links",
            "--context",
            "src/area.py",
            "--context",
            "src/lt.py",
        ],
    )
    .ok();
    let text = "proposed fixups: 1 file\n  src/area.py +1 -1, through a link to src/real.py\n";
    assert!(ran.stdout.contains(text), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("what would change is src/real.py"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        asked(&server)
            .iter()
            .filter(|phase| **phase == "fixup")
            .count(),
        2
    );
    assert_eq!(
        (
            read(&project, "src/real.py").as_str(),
            read(&project, "tests/test_a.py").as_str()
        ),
        (WRONG, "assert False\n")
    );
    resume(
        &fixture,
        &project,
        ["--phase", "fixup", "--apply-fixups", "--allow-links"],
    )
    .ok();
    assert_eq!(
        (
            read(&project, "src/real.py"),
            read(&project, "tests/test_a.py")
        ),
        (right(), "assert False\n".to_owned())
    );
}

#[test]
fn second_unnamed_code_block_is_refused() {
    let answer = format!(
        "{}```python\ndef more():\n    pass\n```\n",
        whole_file("src/area.py", &right())
    );
    let server = server(move |phase, _| (phase == "fixup").then(|| Reply::Answer(answer.clone())));
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let ran = propose(&fixture, &project, "src/area.py").exits(1);
    assert!(ran.stderr.contains("fixup-block-unclear"), "{}", ran.stderr);
    assert_eq!(read(&project, "src/area.py"), WRONG);
}

#[test]
fn unusable_allow_path_is_usage_error() {
    let server = proposing(&[("src/area.py", &right())]);
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    propose(&fixture, &project, "src/area.py").ok();
    let before = asked(&server).len();
    for (path, why) in [
        (".crucible/config.toml", "Crucible's own directory"),
        ("src/*", "taken word for word"),
        ("src", "is a directory"),
    ] {
        for flag in ["--apply-fixups", "--dry-run"] {
            let ran = resume(
                &fixture,
                &project,
                ["--phase", "fixup", flag, "--allow-path", path],
            )
            .exits(2);
            assert!(
                ran.stderr.contains("--allow-path") && ran.stderr.contains(why),
                "{}",
                ran.stderr
            );
        }
    }
    assert_eq!(
        (asked(&server).len(), read(&project, "src/area.py").as_str()),
        (before, WRONG)
    );
}
