//! What is said at the end of files that git runs, when a person replaced them or changed settings during the run.

use std::path::Path;
use std::time::{Duration, Instant};

use crucible_testkit::TestRepo;
use serde_json::Value;

use crate::sandbox_writes::{exec, left, repository};
use crate::skill_trust::Skills;
use crate::support::Fixture;

/// How long the person waits for the command.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs `command` in the sandbox; the person runs `meanwhile` between its start and its end.
fn exec_while(fixture: &Fixture, repo: &TestRepo, command: &str, meanwhile: &str) -> Value {
    let at = |name: &str| repo.path().join(name);
    let script = format!("touch started; until [ -e go ]; do sleep 0.02; done; {command}");
    let ran = std::thread::scope(|threads| {
        threads.spawn(|| {
            let began = Instant::now();
            while !at("started").exists() && began.elapsed() < TIMEOUT {
                std::thread::sleep(Duration::from_millis(10));
            }
            shell(repo.path(), meanwhile);
            std::fs::write(at("go"), "").unwrap();
        });
        exec(fixture, repo.path(), &[], &script)
    });
    ran.ok().json()
}

fn shell(at: &Path, script: &str) {
    let status = std::process::Command::new("sh")
        .args(["-c", script])
        .envs(["AUTHOR", "COMMITTER"].map(|of| (format!("GIT_{of}_NAME"), "Ada")))
        .envs(["AUTHOR", "COMMITTER"].map(|of| (format!("GIT_{of}_EMAIL"), "ada@example.invalid")))
        .current_dir(at)
        .status()
        .unwrap();
    assert!(status.success(), "{script}");
}

/// A repository in which git runs `tools/mon`.
fn watched() -> TestRepo {
    let repo = repository();
    shell(
        repo.path(),
        "mkdir tools; echo true > tools/mon; git add tools; git commit -qm tools; git config core.fsmonitor 'sh tools/mon'",
    );
    repo
}

fn reasons<'d>(document: &'d Value, path: &str) -> Vec<&'d str> {
    let all = document["left_behind"].as_array().unwrap().iter();
    let of_path = all.filter(|one| one["path"] == path);
    of_path.map(|one| one["why"].as_str().unwrap()).collect()
}

#[test]
fn replaced_program_of_git_is_listed() {
    let fixture = Fixture::new();
    let plant = "echo planted > tools/mon";
    for meanwhile in [
        "echo true > tools/m2; mv tools/m2 tools/mon",
        "git checkout -qb other; git rm -rq tools; git commit -qm other; git checkout -q -",
        "mv tools away; mkdir tools; echo true > tools/mon",
    ] {
        let repo = watched();
        let ran = exec_while(&fixture, &repo, plant, meanwhile);
        assert_eq!(
            reasons(&ran, "tools/mon"),
            ["run_by_git"],
            "{meanwhile}: {ran:#}"
        );
        let text = std::fs::read_to_string(repo.path().join("tools/mon")).unwrap();
        assert_eq!(text, "planted\n", "{meanwhile}");
    }
    // Without the person the command changes nothing, and nothing is listed.
    let repo = watched();
    let ran = exec_while(&fixture, &repo, &format!("{plant} || true"), "true");
    assert_eq!(left(&ran), [""; 0], "{ran:#}");
}

#[test]
fn program_of_a_new_setting_is_listed() {
    let fixture = Fixture::new();
    let repo = repository();
    shell(
        repo.path(),
        "mkdir tools; echo true > tools/mon; echo > tools/other",
    );
    let ran = exec_while(
        &fixture,
        &repo,
        "echo planted > tools/mon; echo x > tools/other",
        "git config core.fsmonitor 'sh tools/mon'",
    );
    assert_eq!(reasons(&ran, "tools/mon"), ["run_by_git"], "{ran:#}");
    assert!(!left(&ran).contains(&"tools/other"), "{ran:#}");
    // An unchanged one is not.
    let repo = repository();
    shell(repo.path(), "mkdir tools; echo true > tools/mon");
    let ran = exec_while(
        &fixture,
        &repo,
        "echo x > tools/other",
        "git config core.fsmonitor 'sh tools/mon'",
    );
    assert_eq!(reasons(&ran, "tools/mon"), [""; 0], "{ran:#}");
}

#[test]
fn included_settings_and_hooks_are_listed() {
    let fixture = Fixture::new();
    let repo = repository();
    shell(
        repo.path(),
        "git config include.path ../cfg; git config -f cfg a.b c",
    );
    let ran = exec_while(
        &fixture,
        &repo,
        "echo '[core]' >> cfg",
        "git config -f cfg a.b d",
    );
    assert_eq!(reasons(&ran, "cfg"), ["run_by_git"], "{ran:#}");
    let repo = repository();
    shell(
        repo.path(),
        "mkdir gh; echo > gh/pre-commit; git config core.hooksPath gh",
    );
    let ran = exec_while(
        &fixture,
        &repo,
        "for hook in pre-commit pre-push post-merge commit-msg; do echo x > gh/$hook; done",
        "rm -rf gh; mkdir gh",
    );
    let full_values = ran["left_behind"].as_array().unwrap();
    let full_json = full_values.iter().find(|one| one["path"] == "gh").unwrap();
    assert_eq!(
        (&full_json["why"], &full_json["paths"]),
        (&"run_by_git".into(), &4.into()),
        "{ran:#}"
    );
}

#[test]
fn unreadable_git_settings_are_reported_after_run() {
    let fixture = Fixture::new();
    let repo = watched();
    let meanwhile = "echo true > tools/m2; mv tools/m2 tools/mon; echo '[' >> .git/config";
    let ran = exec_while(&fixture, &repo, "echo planted > tools/mon", meanwhile);
    assert_eq!(ran["left_behind_is_whole"], false, "{ran:#}");
    assert_eq!(reasons(&ran, "tools/mon"), ["run_by_git"], "{ran:#}");
}

/// A skill gets a copy, so that no place in it is read-only.
#[test]
fn skill_that_changes_a_program_of_git_is_denied() {
    let skills = Skills::new();
    let root = skills.root();
    std::fs::create_dir_all(root.join("notes")).unwrap();
    shell(
        &root,
        "git init -q .; echo true > notes/mon; git config core.fsmonitor 'sh notes/mon'",
    );
    let write = |name: &str| {
        format!("with open('notes/{name}', 'w') as file:\n    file.write('x')\nreturn {{}}")
    };
    let granted = ["--allow-write", "notes/"];
    skills.trusted("planter", "FILE_WRITE", granted, &write("mon"));
    let denied = skills.outcome("planter");
    let denied = denied.is(1, "DENIED", "forge-run-left-behind");
    let findings = denied.document["findings"].to_string();
    assert!(findings.contains("git runs this"), "{findings}");
    assert_eq!(
        std::fs::read_to_string(root.join("notes/mon")).unwrap(),
        "true\n"
    );
    skills.trusted("honest", "FILE_WRITE", granted, &write("other"));
    skills.outcome("honest").is(0, "SUCCEEDED", "");
    assert!(root.join("notes/other").exists());
}

/// Each form writes first and is then denied or fails.
#[test]
fn refused_skill_leaves_its_directory_unchanged() {
    let skills = Skills::new();
    let root = skills.root();
    let notes = root.join("notes");
    std::fs::create_dir_all(notes.join("sub")).unwrap();
    for name in ["keep.txt", "Makefile", "sub/old.txt"] {
        std::fs::write(notes.join(name), "old\n").unwrap();
    }
    let state = || {
        let listed = std::process::Command::new("sh")
            .args([
                "-c",
                "find . -printf '%p %m %l\\n' | sort; cat keep.txt Makefile sub/old.txt",
            ])
            .current_dir(&notes)
            .output()
            .unwrap();
        String::from_utf8(listed.stdout).unwrap()
    };
    let before = state();
    let write =
        |name: &str| format!("with open('notes/{name}', 'w') as file:\n    file.write('x')\n");
    let forms = [
        (
            "import os\nos.rename('notes/keep.txt', 'notes/conftest.py')\n",
            "DENIED",
        ),
        (
            "import os\nos.mkdir('notes/.git')\nos.mkdir('notes/sub/.vscode')\n",
            "DENIED",
        ),
        ("import os\nos.chmod('notes/keep.txt', 0o755)\n", "DENIED"),
        ("import os\nos.chmod('notes/sub', 0o777)\n", "DENIED"),
        (
            "import os\nos.remove('notes/keep.txt')\nraise ValueError('x')\n",
            "DENIED",
        ),
        ("import os\nos.utime('notes/Makefile', (1, 1))\n", "DENIED"),
    ];
    let granted = ["--allow-write", "notes/"];
    for (number, (form, word)) in forms.into_iter().enumerate() {
        let name = format!("form_{number}");
        let body = format!(
            "{}{}{form}return {{}}",
            write("Makefile"),
            write("sub/new.txt")
        );
        skills.trusted(&name, "FILE_WRITE", granted, &body);
        let outcome = skills.outcome(&name);
        assert_eq!(outcome.word(), word, "{form}: {:#}", outcome.document);
        assert_eq!(state(), before, "{form}");
    }
}
