//! What is said at the end of changed files, if a command in git's settings may run any of them.

use std::os::unix::fs::PermissionsExt;

use crucible_testkit::TestRepo;
use serde_json::{Value, json};

use crate::sandbox_writes::{exec, left, repository};
use crate::support::Fixture;

/// Commands that only a shell or an interpreter understands, each in a setting.
const UNCLEAR: [(&str, &str); 14] = [
    ("alias.cd", "!cd $(dirname tools/x) && ./mon"),
    ("alias.dir", "!$(dirname tools/x)/mon"),
    ("alias.glob", "!tools/m*n"),
    ("alias.variable", "!M=mon; sh $M"),
    ("alias.bisecting", "bisect run tools/mon"),
    ("alias.other", "!git -c core.pager=x log"),
    ("core.pager", "less -k tools/keys"),
    ("core.editor", "vim -S tools/x"),
    ("core.sshcommand", "ssh -o ProxyCommand=tools/x"),
    ("credential.helper", "!node ."),
    (
        "diff.x.textconv",
        "python -c \"import runpy; runpy.run_path('tools/x')\"",
    ),
    ("filter.x.clean", "make -s clean"),
    ("gpg.program", "tools/../tools/gpg"),
    ("remote.x.url", "ext::sh -c mon"),
];

/// Commands that run nothing from a work tree.
const UNDERSTOOD: [(&str, &str); 23] = [
    ("alias.aliases", "config --get-regexp ^alias"),
    ("alias.st", "status -sb"),
    ("alias.lg", "log --graph --pretty=format:'%h %s (%cr)'"),
    ("alias.up", "!git fetch --all && git rebase --autostash"),
    ("alias.again", "st --short"),
    ("core.editor", "vim"),
    ("core.pager", "less -R"),
    ("core.fsmonitor", "true"),
    (
        "core.sshCommand",
        "ssh -i ~/.ssh/id_work -o IdentitiesOnly=yes",
    ),
    ("credential.helper", "cache --timeout=600"),
    (
        "credential.https://github.com.helper",
        "!/usr/bin/gh auth git-credential",
    ),
    ("diff.pdf.textconv", "pdftotext -layout"),
    ("diff.external", "difft"),
    ("filter.lfs.clean", "git-lfs clean -- %f"),
    ("filter.lfs.process", "git-lfs filter-process"),
    ("filter.lfs.smudge", "git-lfs smudge -- %f"),
    ("gpg.program", "gpg"),
    ("merge.ours.driver", "true"),
    (
        "mergetool.meld.cmd",
        "meld \"$LOCAL\" \"$MERGED\" \"$REMOTE\"",
    ),
    ("pager.log", "false"),
    ("remote.origin.url", "https://example.invalid/a.git"),
    ("sendemail.smtpServer", "smtp.example.invalid"),
    ("submodule.x.update", "rebase"),
];

fn changed(fixture: &Fixture, repo: &TestRepo) -> Value {
    let script = "mkdir -p tools && echo x > tools/new && echo x >> src/a.txt";
    exec(fixture, repo.path(), &[], script).ok().json()
}

#[test]
fn command_not_understood_lists_every_change() {
    let (fixture, repo) = (Fixture::new(), repository());
    for (key, value) in UNCLEAR {
        repo.git(["config", key, value]);
    }
    let ran = changed(&fixture, &repo);
    let may_be_run = &ran["may_be_run_by_git"];
    assert_eq!(
        may_be_run["files"],
        json!(["src/a.txt", "tools/new"]),
        "{ran:#}"
    );
    let mut names: Vec<&str> = UNCLEAR.iter().map(|(key, _)| *key).collect();
    names.sort_unstable();
    assert_eq!(may_be_run["because_of"], json!(names), "{ran:#}");
    // A person reads one line with names and counts.
    let words = ["sandbox", "exec", "--write", ".", "--", "sh", "-c"];
    let script = "for f in 1 2 3 4 5; do echo > src/$f.txt; done";
    let words = words.into_iter().chain([script]);
    let ran = fixture.call(words).current_dir(repo.path()).run().ok();
    let line = "made or changed 5 files that git may run, because Crucible cannot tell what alias.bisecting, alias.cd, alias.dir and 11 more runs: src/1.txt, src/2.txt, src/3.txt and 2 more";
    assert!(ran.stderr.contains(line), "{}", ran.stderr);
}

#[test]
fn understood_commands_list_nothing_new() {
    let (fixture, repo) = (Fixture::new(), repository());
    for settings in [&[][..], &UNDERSTOOD[..]] {
        for (key, value) in settings {
            repo.git(["config", key, value]);
        }
        let ran = changed(&fixture, &repo);
        assert_eq!(ran["may_be_run_by_git"], Value::Null, "{ran:#}");
        assert_eq!(left(&ran), [""; 0], "{ran:#}");
    }
}

#[test]
fn hook_lists_every_change_except_of_lfs() {
    let (fixture, repo) = (Fixture::new(), repository());
    let put = |name: &str, text: &str| {
        repo.write(format!(".git/hooks/{name}"), text);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(repo.path().join(".git/hooks").join(name), mode).unwrap();
    };
    put("pre-commit.sample", "#!/bin/sh\nsh tools/lint\n");
    let lfs = "#!/bin/sh\ncommand -v git-lfs >/dev/null 2>&1 || { echo >&2 \"\\nThis repository is configured for Git LFS but 'git-lfs' was not found on your path. If you no longer wish to use Git LFS, remove this hook by deleting the 'pre-push' file in the hooks directory (set by 'core.hookspath'; usually '.git/hooks').\\n\"; exit 2; }\ngit lfs pre-push \"$@\"\n";
    put("pre-push", lfs);
    assert_eq!(changed(&fixture, &repo)["may_be_run_by_git"], Value::Null);
    put("pre-push", &format!("{lfs}sh tools/mon\n"));
    put("pre-commit", "#!/bin/sh\nexec tools/lint\n");
    let ran = changed(&fixture, &repo);
    assert_eq!(
        ran["may_be_run_by_git"]["because_of"],
        json!(["hook pre-commit", "hook pre-push"]),
        "{ran:#}"
    );
}

#[test]
fn only_repositories_of_written_directories_count() {
    let (fixture, repo, other) = (Fixture::new(), repository(), repository());
    repo.git(["config", "alias.x", "!make"]);
    let exec_in = |words: &[&str]| {
        let script = ["--", "sh", "-c", "echo x > \"$0\"/new"];
        let at = other.path().to_str().unwrap();
        let words = [&["sandbox", "exec", "--json"][..], words, &script, &[at]].concat();
        fixture
            .call(words)
            .current_dir(repo.path())
            .run()
            .ok()
            .json()
    };
    let at = other.path().to_str().unwrap();
    assert_eq!(exec_in(&["--write", at])["may_be_run_by_git"], Value::Null);
    // Both were given to the same command, and an alias may leave its repository.
    let ran = exec_in(&["--write", at, "--write", "."]);
    let files = ran["may_be_run_by_git"]["files"].as_array().unwrap().len();
    assert_eq!(files, 1, "{ran:#}");
}

#[test]
fn submodules_of_another_index_cannot_be_created() {
    let (fixture, repo) = (Fixture::new(), repository());
    let head = repo.git(["rev-parse", "HEAD"]).trim().to_owned();
    std::fs::copy(
        repo.path().join(".git/index"),
        repo.path().join(".git/index2"),
    )
    .unwrap();
    let entry = format!("160000,{head},sub");
    let index = repo.path().join(".git/index2");
    let status = std::process::Command::new("git")
        .args(["update-index", "--add", "--cacheinfo", &entry])
        .env("GIT_INDEX_FILE", &index)
        .current_dir(repo.path())
        .status()
        .unwrap();
    assert!(status.success());
    // git runs the maintenance of this place.
    repo.git([
        "config",
        "maintenance.repo",
        repo.path().join("other").to_str().unwrap(),
    ]);
    let script = "for d in sub other free; do mkdir -p $d/.git 2>/dev/null && echo x 2>/dev/null > $d/.git/config && echo $d; done; true";
    let words = [
        "sandbox", "exec", "--json", "--write", ".", "--", "sh", "-c", script,
    ];
    let call = || fixture.call(words).current_dir(repo.path());
    let ran = call().env("GIT_INDEX_FILE", &index).run().ok().json();
    assert_eq!(ran["stdout"], "free\n", "{ran:#}");
    std::fs::remove_dir_all(repo.path().join("free")).unwrap();
    let ran = call().run().ok().json();
    assert_eq!(ran["stdout"], "sub\nfree\n", "{ran:#}");
}
