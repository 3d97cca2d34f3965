//! Hooks as a user meets them, tried around a gate: it runs them whether or not the spec is far enough.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crucible_testkit::{Reply, RepoBuilder};
use serde_json::Value;

use super::support;
use crate::support::{Call, Fixture, Ran};

/// A project with a spec of which nothing has run, and these settings.
fn project(fixture: &Fixture, config: &str) -> PathBuf {
    let project = fixture.path("project");
    for dir in [".crucible/specs/export-data/receipts", ".git/hooks"] {
        std::fs::create_dir_all(project.join(dir)).unwrap();
    }
    std::fs::write(project.join(".git/config"), "as it was\n").unwrap();
    std::fs::write(project.join(".crucible/config.toml"), config).unwrap();
    project
}

fn hook(name: &str, moment: &str, script: &str, more: &str) -> String {
    let command = serde_json::json!(["sh", "-c", script]);
    format!("[hooks.{name}]\non = \"{moment}\"\ncommand = {command}\n{more}\n")
}

fn gate(fixture: &Fixture, project: &Path) -> Call {
    fixture.call(["gate", "export-data"]).current_dir(project)
}

/// What the document of a gate says of the finding with this code.
#[track_caller]
fn finding(ran: &Ran, code: &str) -> String {
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let found = document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["code"] == code);
    found.unwrap_or_else(|| panic!("{document:#}"))["hint"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn gate_hooks_receive_the_gates_result() {
    let fixture = Fixture::new();
    let config = [
        hook("before", "pre_gate", "cat > before.json", ""),
        hook(
            "after",
            "post_gate",
            "cat > after.json; echo $CRUCIBLE_HOOK $CRUCIBLE_PHASE > env",
            "",
        ),
        hook(
            "other-phase",
            "pre_gate",
            "touch bad",
            "phases = [\"final\"]",
        ),
        hook("other-moment", "post_phase", "touch bad", ""),
    ];
    let project = project(&fixture, &config.concat());
    gate(&fixture, &project).run().exits(1);
    let schema = include_str!("../../../../../docs/schemas/crucible-hook-v1.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let told = |name: &str| -> Value {
        let document: Value = serde_json::from_str(&text(&project.join(name))).unwrap();
        assert!(schema.is_valid(&document), "{document}");
        document
    };
    let (before, after) = (told("before.json"), told("after.json"));
    assert_eq!(
        (&before["hook"], &before["verdict"]),
        (&"pre_gate".into(), &Value::Null)
    );
    assert_eq!(
        (&after["hook"], &after["verdict"]),
        (&"post_gate".into(), &"fail".into())
    );
    assert_eq!(
        (&after["spec_id"], &after["phase"]),
        (&"export-data".into(), &"tasks".into())
    );
    assert_eq!(text(&project.join("env")), "post_gate tasks\n");
    assert!(!project.join("bad").exists());
}

#[test]
fn hostile_hook_cannot_write_to_trusted_places() {
    let fixture = Fixture::new();
    std::fs::write(fixture.home().join("notes"), "private").unwrap();
    let attack = format!(
        "for place in .git/hooks/post-commit .git/config .git/new .crucible/config.toml \
           .crucible/specs/export-data/receipts/design-20241201-100000-0001.json .crucible/specs/other; do\n\
           (echo bad > $place) 2>/dev/null && echo wrote $place\n\
         done\n\
         mv .git x 2>/dev/null && echo moved; rm -rf .git .crucible 2>/dev/null && echo removed\n\
         cat {home}/notes 2>/dev/null; (echo bad > {home}/new) 2>/dev/null && echo wrote home\n\
         cat .git/config > seen; echo done > report",
        home = fixture.home().display()
    );
    let project = project(
        &fixture,
        &hook("evil", "pre_gate", &format!("({attack}) > said 2>&1"), ""),
    );
    let config = text(&project.join(".crucible/config.toml"));
    gate(&fixture, &project).run().exits(1);
    assert_eq!(
        text(&project.join("report")),
        "done\n",
        "it did not run: {}",
        text(&project.join("said"))
    );
    let message = text(&project.join("said"));
    assert!(
        !message.contains("wrote") && !message.contains("moved") && !message.contains("removed"),
        "{message}"
    );
    assert!(!message.contains("private"), "{message}");
    assert_eq!(text(&project.join("seen")), "as it was\n");
    assert_eq!(text(&project.join(".git/config")), "as it was\n");
    assert_eq!(text(&project.join(".crucible/config.toml")), config);
    assert_eq!(
        std::fs::read_dir(project.join(".git/hooks"))
            .unwrap()
            .count(),
        0
    );
    assert_eq!(
        std::fs::read_dir(project.join(".crucible/specs/export-data/receipts"))
            .unwrap()
            .count(),
        0
    );
    assert!(!fixture.home().join("new").exists());
}

#[test]
fn hook_cannot_create_a_git_repository() {
    let fixture = Fixture::new();
    let script = "mkdir -p .git/hooks; (echo bad > .git/config); echo done > report";
    let project = project(&fixture, &hook("evil", "pre_gate", script, ""));
    std::fs::remove_dir_all(project.join(".git")).unwrap();
    gate(&fixture, &project).run().exits(1);
    assert_eq!(text(&project.join("report")), "done\n");
    assert!(!project.join(".git").exists());
}

#[test]
fn hook_cannot_take_over_a_submodule() {
    let fixture = Fixture::new();
    let script = "mkdir -p sub/.git/hooks deep/sub/.git; (echo bad > sub/.git/config); (echo bad > deep/sub/.git/config)\n\
        mv sub sub2; rm -rf deep/sub; mv deep deep2; echo done > report";
    let repo = RepoBuilder::new()
        .file(
            ".crucible/config.toml",
            hook("evil", "pre_gate", script, ""),
        )
        .file(".crucible/specs/export-data/context/idea.md", "idea\n")
        .build();
    for path in ["sub", "deep/sub"] {
        let entry = format!("160000,{},{path}", repo.head());
        repo.git(["update-index", "--add", "--cacheinfo", &entry]);
        std::fs::create_dir_all(repo.path().join(path)).unwrap();
    }
    gate(&fixture, repo.path()).run().exits(1);
    assert_eq!(text(&repo.path().join("report")), "done\n");
    for path in ["sub", "deep/sub"] {
        assert_eq!(
            std::fs::read_dir(repo.path().join(path)).unwrap().count(),
            0,
            "{path}"
        );
    }
}

#[test]
fn failing_hook_warns_or_fails_as_configured() {
    let fixture = Fixture::new();
    let warns = project(
        &fixture,
        &hook("lint", "pre_gate", "echo wrong word; exit 3", ""),
    );
    let ran = gate(&fixture, &warns).run().exits(1);
    assert!(
        ran.stderr
            .contains("the hook lint ended with exit code 3: wrong word"),
        "{}",
        ran.stderr
    );

    let fail = "on_fail = \"fail\"";
    let config = hook("lint", "pre_gate", "echo wrong word; exit 3", fail)
        + &hook("z-next", "pre_gate", "touch next", "")
        + &hook("after", "post_gate", "touch after", "");
    std::fs::write(warns.join(".crucible/config.toml"), config).unwrap();
    let hint = |code: i32| {
        finding(
            &gate(&fixture, &warns).arg("--json").run().exits(code),
            "gate-hook-failed",
        )
    };
    assert_eq!(
        hint(1),
        "The pre_gate hook ended with exit code 3: wrong word"
    );
    assert!(!warns.join("next").exists() && !warns.join("after").exists());

    let absent = format!("[hooks.lint]\non = \"pre_gate\"\ncommand = [\"./no/such\"]\n{fail}\n");
    std::fs::write(warns.join(".crucible/config.toml"), absent).unwrap();
    assert!(
        hint(1).starts_with("The pre_gate hook could not be started: "),
        "{}",
        hint(1)
    );
}

#[test]
fn hanging_hook_is_killed_and_counts_as_timeout() {
    let fixture = Fixture::new();
    let mark = format!("88{:07}", std::process::id());
    let script = format!(
        "echo started > started; setsid sleep {mark} & trap '' TERM; sleep {mark}; sleep {mark}"
    );
    let config = hook(
        "slow",
        "pre_gate",
        &script,
        "timeout_s = 1\non_fail = \"fail\"",
    );
    let project = project(&fixture, &config);
    let hint = finding(
        &gate(&fixture, &project).arg("--json").run().exits(10),
        "gate-hook-timed-out",
    );
    assert!(
        hint.contains("longer than hooks.slow.timeout_s allows"),
        "{hint}"
    );
    assert_eq!(text(&project.join("started")), "started\n");
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        assert!(
            !String::from_utf8_lossy(&line).starts_with(&format!("sleep\0{mark}")),
            "it is left running"
        );
    }
    let config = hook("slow", "pre_gate", &script, "timeout_s = 1");
    std::fs::write(project.join(".crucible/config.toml"), config).unwrap();
    let ran = gate(&fixture, &project).run().exits(1);
    assert!(
        ran.stderr
            .contains("the hook slow took longer than 1 s and was killed"),
        "{}",
        ran.stderr
    );
}

#[test]
fn invalid_hook_setting_is_configuration_error() {
    let fixture = Fixture::new();
    let project = project(&fixture, "");
    let lint = "[hooks.lint]\ncommand = [\"true\"]\n";
    for (config, text) in [
        (
            "[hooks.lint]\non = \"pre_gate\"\n".to_owned(),
            "hooks.lint has no command",
        ),
        (
            "[hooks.lint]\ncommand = [\"\", \"x\"]\n".to_owned(),
            "hooks.lint has no command",
        ),
        (
            format!("{lint}on = \"before\"\n"),
            "hooks.lint.on is \"before\"; use one of pre_phase, post_phase, pre_gate, post_gate",
        ),
        (
            format!("{lint}on_fail = \"stop\"\n"),
            "hooks.lint.on_fail is \"stop\"; use one of warn, fail",
        ),
        (
            format!("{lint}phases = [\"design\", \"Tasks\"]\n"),
            "hooks.lint.phases: \"Tasks\" is not a phase",
        ),
        (
            format!("{lint}timeout_s = 0\n"),
            "hooks.lint.timeout_s is 0; use 1 to 3600 seconds",
        ),
        (
            format!("{lint}timeout_s = 3601\n"),
            "hooks.lint.timeout_s is 3601",
        ),
        (
            format!("{lint}sandbox = \"off\"\n"),
            "a project's file cannot set",
        ),
        (
            format!("{lint}shell = \"sh\"\n"),
            "there is no setting `hooks.lint.shell`",
        ),
    ] {
        std::fs::write(project.join(".crucible/config.toml"), &config).unwrap();
        let message = gate(&fixture, &project)
            .arg("--json")
            .run()
            .exits(2)
            .message();
        assert!(message.contains(text), "{config}\n{message}");
    }
}

#[test]
fn only_user_hooks_may_disable_the_sandbox() {
    let fixture = Fixture::new();
    let outside = fixture.path("outside");
    let script = format!("echo $HOME > {}", outside.display());
    let mine = hook("notify", "pre_gate", &script, "sandbox = \"off\"");
    fixture.user_config(&mine);
    let project = project(&fixture, "");
    gate(&fixture, &project).run().exits(1);
    assert_eq!(text(&outside).trim_end(), fixture.home().to_str().unwrap());
    std::fs::remove_file(&outside).unwrap();

    // The same name in a cloned project brings its own command, or has a say in when it runs.
    let lines = hook(
        "notify",
        "pre_gate",
        &script,
        "on_fail = \"fail\"\ntimeout_s = 1\nphases = [\"tasks\"]",
    );
    let ran = gate(&fixture, &project).run();
    assert_eq!(ran.code, Some(1));
    std::fs::remove_file(&outside).unwrap();
    for line in lines.lines().skip(1) {
        std::fs::write(
            project.join(".crucible/config.toml"),
            format!("[hooks.notify]\n{line}\n"),
        )
        .unwrap();
        let ran = gate(&fixture, &project).arg("--json").run().exits(2);
        assert!(
            ran.message()
                .contains("must not control what runs without a sandbox"),
            "{line}: {}",
            ran.stderr
        );
        assert!(!outside.exists());
    }
    std::fs::write(
        project.join(".crucible/config.toml"),
        hook("notify", "pre_gate", &script, ""),
    )
    .unwrap();
    // Without that word it runs in a sandbox.
    fixture.user_config("");
    gate(&fixture, &project).run().exits(1);
    assert!(!outside.exists());
    // And whoever calls the command may say so.
    gate(&fixture, &project)
        .env("CRUCIBLE_HOOKS_NOTIFY_SANDBOX", "off")
        .run()
        .exits(1);
    assert!(outside.exists());
}

#[test]
fn unsandboxed_hook_cannot_be_a_project_file() {
    let fixture = Fixture::new();
    let outside = fixture.path("outside");
    let project = project(&fixture, "");
    std::fs::create_dir(project.join("tools")).unwrap();
    let script = format!("#!/bin/sh\necho bad > {}\n", outside.display());
    for tool in [project.join("tools/notify.sh"), fixture.path("notify.sh")] {
        std::fs::write(&tool, &script).unwrap();
        std::fs::set_permissions(&tool, Permissions::from_mode(0o755)).unwrap();
    }
    let unwalled = |command: &str| {
        let command = serde_json::json!([command]);
        fixture.user_config(&format!(
            "[hooks.notify]\non = \"pre_gate\"\ncommand = {command}\nsandbox = \"off\"\n"
        ));
        gate(&fixture, &project).arg("--json").run()
    };
    for command in [
        "./tools/notify.sh",
        "tools/notify.sh",
        "../project/tools/notify.sh",
    ] {
        let ran = unwalled(command).exits(2);
        assert!(
            ran.message()
                .contains("is a file of the project, which may be untrusted"),
            "{}",
            ran.stderr
        );
        assert!(!outside.exists());
    }
    unwalled(fixture.path("notify.sh").to_str().unwrap()).exits(1);
    assert!(outside.exists());
}

#[test]
fn hook_cannot_change_registry_or_git_hooks() {
    let fixture = Fixture::new();
    let script = "for place in workspace.yaml .githooks/pre-commit mine/pre-commit; do\n\
        (echo bad > $place) 2>/dev/null && echo wrote $place; rm $place 2>/dev/null && echo removed $place; done\n\
        mv .githooks x 2>/dev/null && echo moved; echo done; ls -A > seen";
    let repo = RepoBuilder::new()
        .file(
            ".crucible/config.toml",
            hook("evil", "pre_gate", &format!("({script}) > said"), ""),
        )
        .file(".crucible/specs/export-data/context/idea.md", "idea\n")
        .file(".githooks/pre-commit", "as it was\n")
        .file("workspace.yaml", "version: \"1\"\nname: shop\nspecs: []\n")
        .build();
    repo.git(["config", "core.hooksPath", ".githooks"]);
    std::fs::write(
        fixture.home().join(".gitconfig"),
        "[core]\n\thooksPath = mine\n",
    )
    .unwrap();
    gate(&fixture, repo.path()).run().exits(1);
    assert_eq!(text(&repo.path().join("said")), "done\n");
    assert_eq!(
        text(&repo.path().join(".githooks/pre-commit")),
        "as it was\n"
    );
    assert!(!repo.path().join("mine").exists());
    // A registry that is not there is not made up meanwhile.
    std::fs::remove_file(repo.path().join("workspace.yaml")).unwrap();
    gate(&fixture, repo.path()).run().exits(1);
    let seen = text(&repo.path().join("seen"));
    assert!(
        seen.contains(".githooks") && text(&repo.path().join("said")).contains("done"),
        "{seen}"
    );
}

#[test]
fn hook_cannot_change_repositories_at_any_depth() {
    let fixture = Fixture::new();
    let script = "for place in vendor/lib/.git/config away/config bare/config deep/.crucible/config.toml \\\n\
        tools/check tools/later settings.inc later.inc; do\n\
        (echo bad > $place) 2>/dev/null && echo wrote $place; rm -rf $place 2>/dev/null && echo removed $place; done\n\
        mv vendor x 2>/dev/null && echo moved; echo fine > sources; echo done";
    let repo = RepoBuilder::new()
        .file(
            ".crucible/config.toml",
            hook("evil", "pre_gate", &format!("({script}) > said"), ""),
        )
        .file(".crucible/specs/export-data/context/idea.md", "idea\n")
        .file("tools/check", "as it was\n")
        .file("settings.inc", "[user]\n\tname = as it was\n")
        .build();
    let at = |name: &str| repo.path().join(name);
    for dir in [
        "vendor/lib/.git",
        "away/objects",
        "away/refs",
        "bare/objects",
        "bare/refs",
        "deep/.crucible",
        "named",
    ] {
        std::fs::create_dir_all(at(dir)).unwrap();
    }
    let stored_lines = [
        "vendor/lib/.git/config",
        "away/config",
        "bare/config",
        "deep/.crucible/config.toml",
    ];
    for file in stored_lines.iter().chain(&["away/HEAD"]) {
        std::fs::write(at(file), "as it was\n").unwrap();
    }
    std::fs::write(at("bare/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(at("named/.git"), "gitdir: ../away\n").unwrap();
    symlink("../../tools/check", at(".git/hooks/pre-commit")).unwrap();
    symlink("../../tools/later", at(".git/hooks/pre-push")).unwrap();
    repo.git(["config", "include.path", "../settings.inc"]);
    repo.git(["config", "--add", "include.path", "../later.inc"]);
    gate(&fixture, repo.path()).run().exits(1);
    assert_eq!(text(&at("said")), "done\n");
    assert_eq!(text(&at("sources")), "fine\n");
    for file in stored_lines.iter().chain(&["tools/check"]) {
        assert_eq!(text(&at(file)), "as it was\n", "{file}");
    }
    assert!(!at("tools/later").exists() && !at("later.inc").exists());
    assert!(text(&at("settings.inc")).contains("as it was"));
}

#[test]
fn git_directory_elsewhere_is_protected_from_hooks() {
    let fixture = Fixture::new();
    let repo = RepoBuilder::new()
        .file(
            ".crucible/config.toml",
            hook(
                "evil",
                "pre_gate",
                "touch ran; echo bad > .gitdata/hooks/x",
                "",
            ),
        )
        .file(".crucible/specs/export-data/context/idea.md", "idea\n")
        .build();
    repo.git(["init", "-q", "--separate-git-dir=.gitdata", "."]);
    // Also where its settings say that this is the work tree.
    for _ in 0..2 {
        gate(&fixture, repo.path()).run().exits(1);
        assert!(repo.path().join("ran").exists());
        assert!(!repo.path().join(".gitdata/hooks/x").exists());
        std::fs::remove_file(repo.path().join("ran")).unwrap();
        repo.git(["config", "core.worktree", ".."]);
    }
}

#[test]
fn hook_does_not_start_beside_hard_linked_settings() {
    let fixture = Fixture::new();
    let repo = RepoBuilder::new()
        .file(
            ".crucible/config.toml",
            hook("lint", "pre_gate", "touch ran", ""),
        )
        .file(".crucible/specs/export-data/context/idea.md", "idea\n")
        .build();
    gate(&fixture, repo.path()).run().exits(1);
    assert!(repo.path().join("ran").exists());
    std::fs::remove_file(repo.path().join("ran")).unwrap();
    std::fs::hard_link(repo.path().join(".git/config"), repo.path().join("other")).unwrap();
    let ran = gate(&fixture, repo.path()).run().exits(1);
    assert!(
        ran.stderr.contains("could not be started") && ran.stderr.contains("a hard link"),
        "{}",
        ran.stderr
    );
    assert!(!repo.path().join("ran").exists());
}

#[test]
fn no_hook_runs_behind_a_specs_link() {
    let fixture = Fixture::new();
    for link in [
        ".crucible/specs",
        ".crucible/specs/other",
        ".crucible/specs/export-data/receipts",
    ] {
        let project = fixture.path(&format!("project-{}", link.len()));
        std::fs::create_dir_all(project.join(".crucible/specs/export-data/receipts")).unwrap();
        let strict = [
            hook("evil", "pre_gate", "touch ran", ""),
            hook("evil-2", "pre_phase", "touch ran", ""),
        ];
        std::fs::write(project.join(".crucible/config.toml"), strict.concat()).unwrap();
        let place = project.join(link);
        if place.exists() {
            std::fs::rename(&place, project.join("sp")).unwrap();
        }
        std::fs::create_dir_all(project.join("sp")).unwrap();
        symlink(project.join("sp"), &place).unwrap();
        let ran = gate(&fixture, &project).run();
        assert!(!project.join("ran").exists(), "{link}");
        assert!(
            ran.code == Some(2) || ran.stderr.contains("is a symbolic link"),
            "{link}: {}",
            ran.stderr
        );
    }
}

#[test]
fn a_secret_is_no_name() {
    let fixture = Fixture::new();
    let token = crucible_testkit::made_up_token();
    let project = project(&fixture, "");
    std::fs::write(
        project.join("workspace.yaml"),
        "version: \"1\"\nname: shop\nspecs: []\n",
    )
    .unwrap();
    let listed = text(&project.join("workspace.yaml"));
    let refused = |arguments: &[&str]| {
        let ran = fixture.call(arguments).current_dir(&project).run().exits(8);
        assert!(
            !ran.stderr.contains(&token) && !ran.stdout.contains(&token),
            "{arguments:?}: {}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("looks like a secret"),
            "{arguments:?}: {}",
            ran.stderr
        );
    };
    refused(&["spec", &token]);
    refused(&["gate", &token]);
    refused(&["resume", &token, "--phase", "design"]);
    refused(&["template", "init", "rust-service", &token]);
    refused(&["project", "add-spec", &token]);
    refused(&["project", "add-spec", "one", "--tag", &token]);
    let ran = fixture
        .call(["--json", "spec", &token])
        .current_dir(&project)
        .run()
        .exits(8);
    assert!(
        ran.message()
            .starts_with("the id of the spec looks like a secret"),
        "{}",
        ran.stderr
    );
    let config = hook(&token, "pre_gate", "touch ran", "");
    std::fs::write(project.join(".crucible/config.toml"), config).unwrap();
    refused(&["gate", "export-data"]);
    assert!(!project.join("ran").exists());
    assert_eq!(text(&project.join("workspace.yaml")), listed);
    assert_eq!(
        std::fs::read_dir(project.join(".crucible/specs"))
            .unwrap()
            .count(),
        1
    );
}

#[test]
fn unreadable_submodule_list_prevents_hooks() {
    let fixture = Fixture::new();
    let strict = hook("lint", "pre_gate", "touch ran", "on_fail = \"fail\"");
    let repo = RepoBuilder::new()
        .file(".crucible/config.toml", strict)
        .file(".crucible/specs/export-data/context/idea.md", "idea\n")
        .build();
    let broken = |file: &str, content: &str| {
        let path = repo.path().join(file);
        let before = std::fs::read(&path).unwrap();
        std::fs::write(&path, content).unwrap();
        let hint = finding(
            &gate(&fixture, repo.path()).arg("--json").run().exits(1),
            "gate-hook-failed",
        );
        assert!(
            hint.contains("could not be started: cannot determine what it must not change"),
            "{file}: {hint}"
        );
        assert!(!repo.path().join("ran").exists(), "{file}");
        std::fs::write(&path, before).unwrap();
    };
    broken(".git/index", "no index");
    broken(".git/config", "no settings\n");
    gate(&fixture, repo.path()).run().exits(1);
    assert!(repo.path().join("ran").exists());
    // A repository without a commit has an index all the same.
    std::fs::remove_file(repo.path().join("ran")).unwrap();
    repo.git(["update-ref", "-d", "HEAD"]);
    gate(&fixture, repo.path()).run().exits(1);
    assert!(repo.path().join("ran").exists());
}

#[test]
fn hook_is_not_run_if_unprotectable() {
    let fixture = Fixture::new();
    let project = project(&fixture, &hook("lint", "pre_gate", "touch ran", ""));
    std::fs::remove_dir_all(project.join(".git")).unwrap();
    std::fs::create_dir(fixture.path("elsewhere")).unwrap();
    symlink(fixture.path("elsewhere"), project.join(".git")).unwrap();
    let ran = gate(&fixture, &project).run().exits(1);
    assert!(
        ran.stderr.contains("could not be started") && ran.stderr.contains("symbolic link"),
        "{}",
        ran.stderr
    );
    // No bubblewrap on the search path: isolation is required, and there is none.
    std::fs::remove_file(project.join(".git")).unwrap();
    let bin = fixture.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let search = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&search)
        .map(|dir| dir.join("git"))
        .find(|git| git.is_file())
        .unwrap();
    symlink(git, bin.join("git")).unwrap();
    let ran: Ran = gate(&fixture, &project).env("PATH", &bin).run().exits(1);
    assert!(
        ran.stderr
            .contains("the sandbox is required but not complete here"),
        "{}",
        ran.stderr
    );
    assert!(!project.join("ran").exists());
}

#[test]
fn secrets_that_a_hook_prints_are_nowhere() {
    let fixture = Fixture::new();
    let token = crucible_testkit::made_up_token();
    let script = format!("head -c 2000000 /dev/zero | tr '\\\\0' x; echo; echo {token}; exit 1");
    let project = project(
        &fixture,
        &hook("leak", "pre_gate", &script, "on_fail = \"fail\""),
    );
    let ran = gate(&fixture, &project).arg("--json").run().exits(1);
    assert!(
        !ran.stderr.contains(&token) && !ran.stdout.contains(&token),
        "{}",
        ran.stderr
    );
    assert!(
        finding(&ran, "gate-hook-failed").contains("[secret:"),
        "{}",
        ran.stdout
    );
}

/// A project of [`support`] whose configuration holds these hooks.
fn project_of_phases(fixture: &Fixture, config: &[String]) -> PathBuf {
    let project = support::project(fixture);
    std::fs::create_dir_all(project.join(".crucible")).unwrap();
    std::fs::write(project.join(".crucible/config.toml"), config.concat()).unwrap();
    project
}

#[test]
fn phase_hooks_see_draft_and_are_in_receipt() {
    let server = support::answering();
    let fixture = Fixture::with(&server);
    let read = "cat > told.json; sha256sum \"$(sed 's/.*\"path\":\"\\([^\"]*\\)\".*/\\1/' told.json)\" > digest; echo seen; exit 4";
    let project = project_of_phases(
        &fixture,
        &[
            hook("first", "pre_phase", "cat > before.json", ""),
            hook("look", "post_phase", read, ""),
        ],
    );
    let ran = support::spec(&fixture, &project, []).ok();
    assert!(
        ran.stderr
            .contains("the hook look ended with exit code 4: seen"),
        "{}",
        ran.stderr
    );
    let receipt = support::newest(&project);
    support::valid(
        &receipt,
        include_str!("../../../../../docs/schemas/receipt.v1.schema.json"),
    );
    let phase = &receipt["phases"][0];
    let [first, look] = &phase["hooks"].as_array().unwrap()[..] else {
        panic!("{phase:#}")
    };
    assert_eq!(
        (&first["name"], &first["moment"], &first["end"]),
        (&"first".into(), &"pre_phase".into(), &"passed".into())
    );
    assert_eq!(
        (&look["end"], &look["exit_code"], &look["said"]),
        (&"failed".into(), &4.into(), &"seen".into())
    );
    assert_eq!(
        (&look["isolation"]["level"], &look["isolation"]["network"]),
        (&"full".into(), &"none".into())
    );
    assert_eq!(phase["warnings"][0]["type"], "hook_failed");
    let document: Value = serde_json::from_str(&text(&project.join("told.json"))).unwrap();
    let digest = document["artifact"]["sha256"].as_str().unwrap();
    assert!(
        text(&project.join("digest")).starts_with(digest),
        "{document:#}"
    );
    assert_eq!(
        (&document["receipt_id"], &document["status"]),
        (&receipt["receipt_id"], &"success".into())
    );
    assert_eq!(phase["outputs"][0]["sha256"], digest);
    let before: Value = serde_json::from_str(&text(&project.join("before.json"))).unwrap();
    assert_eq!(
        (&before["hook"], &before["artifact"]),
        (&"pre_phase".into(), &Value::Null)
    );
}

#[test]
fn failing_post_phase_hook_prevents_promotion() {
    let server = support::answering();
    let fixture = Fixture::with(&server);
    let strict = "on_fail = \"fail\"";
    let project = project_of_phases(&fixture, &[hook("wording", "post_phase", "exit 7", strict)]);
    let message = support::spec(&fixture, &project, ["--json"])
        .exits(1)
        .message();
    assert!(
        message.starts_with("the hook wording failed: ended with exit code 7"),
        "{message}"
    );
    assert!(
        !support::spec_dir(&project)
            .join("artifacts/00-requirements.md")
            .exists()
    );
    let receipt = support::newest(&project);
    let phase = &receipt["phases"][0];
    assert_eq!(
        (&phase["status"], &phase["error"]["class"]),
        (&"failed".into(), &"hook".into())
    );
    assert_eq!(
        (&receipt["exit_code"], &phase["hooks"][0]["exit_code"]),
        (&1.into(), &7.into())
    );

    // One that comes before keeps the model from being asked, and one that hangs ends with its own code.
    let request_count = support::asked(&server).len();
    let slow = hook(
        "wait",
        "pre_phase",
        "sleep 300",
        &format!("{strict}\ntimeout_s = 1"),
    );
    std::fs::write(project.join(".crucible/config.toml"), slow).unwrap();
    let message = support::spec(&fixture, &project, ["--json"])
        .exits(10)
        .message();
    assert!(
        message.starts_with("the hook wait took longer than 1 s"),
        "{message}"
    );
    assert_eq!(support::asked(&server).len(), request_count);
    let receipt = support::newest(&project);
    assert_eq!(receipt["phases"][0]["hooks"][0]["end"], "timed_out");
    assert_eq!(
        (
            &receipt["exit_code"],
            &receipt["phases"][0]["error"]["class"]
        ),
        (&10.into(), &"hook_timeout".into())
    );
}

#[test]
fn idea_is_kept_when_pre_phase_hook_fails() {
    let server = support::answering();
    let fixture = Fixture::with(&server);
    let strict = hook("check", "pre_phase", "exit 7", "on_fail = \"fail\"");
    let project = project_of_phases(&fixture, &[strict]);
    let token = crucible_testkit::made_up_token();
    let idea = support::spec_dir(&project).join("context/idea.md");
    support::with_idea(fixture.call(["spec", "export-data"]), &project, &token).exits(8);
    assert!(!idea.exists());
    support::spec(&fixture, &project, []).exits(1);
    assert!(idea.exists());
    std::fs::write(project.join(".crucible/config.toml"), "").unwrap();
    // What `status` recommends works.
    fixture
        .call(["resume", "export-data", "--phase", "requirements"])
        .current_dir(&project)
        .run()
        .ok();
}

#[test]
fn a_dry_run_runs_no_hooks() {
    let fixture = Fixture::new();
    let project = project_of_phases(&fixture, &[hook("touch", "pre_phase", "touch ran", "")]);
    support::spec(&fixture, &project, ["--dry-run"]).ok();
    assert!(!project.join("ran").exists());
}

#[test]
fn the_examples_of_the_documentation_work() {
    let document = include_str!("../../../../../docs/hooks.md");
    let blocks = |kind: &str| -> Vec<&str> {
        let begin = format!("```{kind}\n");
        document
            .split(&begin)
            .skip(1)
            .filter_map(|block| block.split("```").next())
            .collect()
    };
    let [wording, team] = blocks("toml")[..] else {
        panic!("two examples of settings")
    };
    let [script] = blocks("sh")[..] else {
        panic!("one script")
    };
    let mut good = true;
    let server = support::server(move |phase, _| {
        let text =
            support::good(phase).replace("can ask", if good { "can ask" } else { "should ask" });
        good = false;
        Some(Reply::Answer(text))
    });
    let fixture = Fixture::with(&server);
    fixture.user_config(team);
    let project = project_of_phases(&fixture, &[wording.to_owned()]);
    std::fs::create_dir(project.join("tools")).unwrap();
    let tool = project.join("tools/wording.sh");
    std::fs::write(&tool, script).unwrap();
    std::fs::set_permissions(&tool, Permissions::from_mode(0o755)).unwrap();
    support::spec(&fixture, &project, []).ok();
    std::fs::remove_dir_all(support::spec_dir(&project)).unwrap();
    let ran = support::spec(&fixture, &project, []).exits(1);
    assert!(
        ran.stderr.contains("the hook wording failed") && ran.stderr.contains("should"),
        "{}",
        ran.stderr
    );
    // The example of the user's own file names a program that is not here: a warning.
    let ran = gate(&fixture, &project).run().exits(1);
    assert!(
        ran.stderr
            .contains("the hook tell-the-team could not be started"),
        "{}",
        ran.stderr
    );
}
