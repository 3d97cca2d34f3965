//! What a command of `sandbox exec` can plant in a directory that it may write to, and what is said of it at the end.

use std::path::Path;

use crucible_testkit::{RepoBuilder, TestRepo};
use serde_json::Value;

use crate::support::{Fixture, Ran};

/// Writes what git would run or believe at its next command, into the git directory `$1`, and tells each that worked.
const PLANT: &str = "\
try() { what=$1; shift; if sh -c \"$*\" 2>/dev/null; then echo \"planted $what\"; fi; }\n\
try hook \"printf '#!/bin/sh\\n' > $1/hooks/pre-commit\"\n\
try settings \"printf '[core]\\n fsmonitor = touch /tmp/x\\n' >> $1/config\"\n\
try alternates \"echo /tmp > $1/objects/info/alternates\"\n\
try attributes \"echo '* filter=x' > $1/info/attributes\"\n\
try moved \"mv $1 $1.other\"\n\
try head \"echo x > $1/HEAD\"\n\
true\n";

pub(crate) fn repository() -> TestRepo {
    RepoBuilder::new()
        .file("src/a.txt", "a\n")
        .file(".gitignore", "target\nvenv\n")
        .build()
}

pub(crate) fn exec(fixture: &Fixture, at: &Path, flags: &[&str], script: &str) -> Ran {
    let words = [
        &["sandbox", "exec", "--json", "--write", "."],
        flags,
        &["--", "sh", "-c", script],
    ]
    .concat();
    fixture.call(words).current_dir(at).run()
}

fn planted(fixture: &Fixture, at: &Path, git_dir: &str, flags: &[&str]) -> String {
    let script = format!("set -- {git_dir}\n{PLANT}");
    exec(fixture, at, flags, &script).ok().json()["stdout"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The paths that were left, in order.
pub(crate) fn left(document: &Value) -> Vec<&str> {
    document["left_behind"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["path"].as_str().unwrap())
        .collect()
}

#[test]
fn git_directories_are_read_only() {
    let (fixture, repo) = (Fixture::new(), repository());
    std::fs::create_dir_all(repo.path().join(".git/hooks")).unwrap();
    std::fs::create_dir_all(repo.path().join(".git/info")).unwrap();
    assert_eq!(planted(&fixture, repo.path(), ".git", &[]), "");
    // With the flag the same script does all of it, so the test can fail.
    let ran = exec(
        &fixture,
        repo.path(),
        &["--write-git"],
        &format!("set -- .git\n{PLANT}"),
    )
    .ok()
    .json();
    for done in ["hook", "settings", "alternates", "attributes", "moved"] {
        assert!(
            ran["stdout"]
                .as_str()
                .unwrap()
                .contains(&format!("planted {done}")),
            "{ran:#}"
        );
    }
    assert_eq!(left(&ran), [".git.other"]);
}

/// What the user's own git reads in every repository, where a directory that holds it is handed out.
#[test]
fn users_own_git_settings_are_read_only() {
    let fixture = Fixture::new();
    let place = fixture.path("handed");
    std::fs::create_dir_all(&place).unwrap();
    let (origin, project) = (repository(), place.join("project"));
    origin.git(["clone", "--quiet", ".", project.to_str().unwrap()]);
    let settings = place.join("settings");
    std::fs::write(&settings, "[user]\n\tname = x\n").unwrap();
    for at in [place.clone(), place.join("project")] {
        let words = [
            "sandbox",
            "exec",
            "--json",
            "--write",
            place.to_str().unwrap(),
            "--",
            "sh",
            "-c",
        ];
        let script = format!(
            "echo more >> {} && echo planted; echo more >> {}/free",
            settings.display(),
            place.display()
        );
        let ran = fixture
            .call(words)
            .arg(&script)
            .env("GIT_CONFIG_GLOBAL", &settings)
            .current_dir(&at)
            .run();
        assert_eq!(ran.json()["stdout"], "", "{ran:?}");
    }
    assert_eq!(
        std::fs::read_to_string(&settings).unwrap(),
        "[user]\n\tname = x\n"
    );
    assert_eq!(
        std::fs::read_to_string(place.join("free")).unwrap(),
        "more\nmore\n"
    );
}

/// A program in the work tree that git would start stays as it is, and so does what decides which it starts.
#[test]
fn programs_that_git_settings_name_are_read_only() {
    let (fixture, repo) = (Fixture::new(), repository());
    let at = |path: &str| repo.path().join(path);
    std::fs::create_dir_all(at("my tools/hooks")).unwrap();
    std::fs::create_dir_all(at("templates")).unwrap();
    let top = repo.path().to_str().unwrap().to_owned();
    let settings = [
        ("filter.x.clean", "sh tools/clean %f", "tools/clean"),
        (
            "filter.x.process",
            "'./my tools/process'",
            "my tools/process",
        ),
        ("core.fsmonitor", "tools/monitor", "tools/monitor"),
        ("diff.external", "./tools/diff", "tools/diff"),
        ("diff.x.textconv", "tools/text", "tools/text"),
        ("merge.x.driver", "tools/merge %O %A", "tools/merge"),
        ("core.pager", "LESS=R tools/pager", "tools/pager"),
        (
            "core.editor",
            &format!("{top}/tools/editor"),
            "tools/editor",
        ),
        ("alias.do", "!f() { sh tools/alias; }; f", "tools/alias"),
        ("gpg.program", "tools/gpg", "tools/gpg"),
        ("credential.helper", "!tools/credential", "tools/credential"),
        ("core.sshCommand", "tools/ssh -v", "tools/ssh"),
        (
            "core.attributesFile",
            "tools/attributes",
            "tools/attributes",
        ),
        ("include.path", "../tools/included", "tools/included"),
        ("new.check.command", "tools/new", "tools/new"),
    ]
    .map(|(key, value, file)| (key, value.to_owned(), file));
    std::fs::create_dir_all(at("tools")).unwrap();
    for (key, value, file) in &settings {
        std::fs::write(at(file), "").unwrap();
        repo.git(["config", key, value]);
    }
    repo.git(["config", "core.hooksPath", "my tools/hooks"]);
    repo.git(["config", "init.templateDir", "templates"]);
    repo.git(["config", "difftool.x.cmd", "tools/to-come"]);
    let files: Vec<&str> = settings.iter().map(|(_, _, file)| *file).collect();
    let mut script = String::new();
    for file in
        files
            .iter()
            .copied()
            .chain(["my tools/hooks/pre-commit", "templates/x", "tools/to-come"])
    {
        script += &format!("(echo x >> '{file}') 2>/dev/null && echo 'planted {file}'\n");
    }
    script += "mv tools other 2>/dev/null && echo moved\n";
    repo.git(["config", "core.excludesFile", "tools/other"]);
    let honest = "echo x > src/a.txt; echo x > tools/other; echo x > new.txt; echo worked\n";
    let ran = exec(&fixture, repo.path(), &[], &format!("{script}{honest}"))
        .ok()
        .json();
    assert_eq!(ran["stdout"], "worked\n", "{ran:#}");
    assert!(!at("tools/to-come").exists() && at("tools/other").exists());
    // With the flag all of it works, so the test can fail.
    let ran = exec(&fixture, repo.path(), &["--write-git"], &script)
        .ok()
        .json();
    let stdout = ran["stdout"].as_str().unwrap();
    assert!(
        stdout.contains("planted tools/clean") && stdout.contains("planted tools/to-come"),
        "{stdout}"
    );
}

#[test]
fn many_hidden_files_do_not_crowd_the_list() {
    let (fixture, repo) = (Fixture::new(), repository());
    let script = "i=0; while [ $i -lt 200 ]; do echo x > .a$i; i=$((i+1)); done\n\
        mkdir .vscode; echo x > .vscode/tasks.json; echo x > Makefile; echo x > zz; chmod +x zz";
    let document = exec(&fixture, repo.path(), &[], script).ok().json();
    let paths = left(&document);
    for path in [".vscode/tasks.json", "Makefile", "zz", ".a199"] {
        assert!(paths.contains(&path), "{path}: {paths:?}");
    }
    assert!(
        paths.iter().position(|path| *path == "Makefile") < Some(20),
        "{paths:?}"
    );
    let words = [
        "sandbox",
        "exec",
        "--write",
        ".",
        "--",
        "sh",
        "-c",
        "echo y > Makefile; for i in 1 2 3; do echo y > .a$i; done",
    ];
    let stderr = fixture.call(words).current_dir(repo.path()).run().stderr;
    assert!(stderr.contains("made or changed Makefile"), "{stderr}");
}

#[test]
fn git_directories_at_any_depth_are_read_only() {
    let (fixture, repo, inner) = (Fixture::new(), repository(), repository());
    let path = |name: &str| repo.path().join(name);
    for place in ["deep/er/clone", "node_modules/pkg", "target/kept"] {
        repo.git(["clone", "--quiet", inner.path().to_str().unwrap(), place]);
    }
    repo.git([
        "clone",
        "--quiet",
        "--bare",
        inner.path().to_str().unwrap(),
        "stores/bare",
    ]);
    repo.git(["worktree", "add", "--quiet", "tree"]);
    repo.git([
        "init",
        "--quiet",
        "--separate-git-dir",
        "stores/apart",
        "named",
    ]);
    let allow = "protocol.file.allow=always";
    repo.git([
        "-c",
        allow,
        "submodule",
        "--quiet",
        "add",
        inner.path().to_str().unwrap(),
        "sub",
    ]);
    let dirs = [
        "deep/er/clone/.git",
        "node_modules/pkg/.git",
        "target/kept/.git",
        "stores/bare",
        ".git/worktrees/tree",
        "stores/apart",
        ".git/modules/sub",
    ];
    for dir in dirs {
        std::fs::create_dir_all(path(dir).join("hooks")).unwrap();
        std::fs::create_dir_all(path(dir).join("objects/info")).unwrap();
        std::fs::create_dir_all(path(dir).join("info")).unwrap();
        assert_eq!(planted(&fixture, repo.path(), dir, &[]), "", "{dir}");
    }
    for file in ["tree/.git", "named/.git", "sub/.git"] {
        let script = format!(
            "echo 'gitdir: /tmp' > {file}; rm -f {file}; mv $(dirname {file}) elsewhere; true"
        );
        exec(&fixture, repo.path(), &[], &script).ok();
        assert!(
            std::fs::read_to_string(path(file))
                .unwrap()
                .starts_with("gitdir: "),
            "{file}"
        );
        assert_ne!(
            std::fs::read_to_string(path(file)).unwrap(),
            "gitdir: /tmp\n",
            "{file}"
        );
    }
    // The work tree that a linked one belongs to does not concern it.
    assert_eq!(planted(&fixture, &path("tree"), "../.git", &[]), "");
    repo.git(["status"]);
}

/// A command that makes a repository where git looks for one decides what git runs.
#[test]
fn repositories_that_git_looks_for_cannot_be_created() {
    let (fixture, inner, middle, repo) = (Fixture::new(), repository(), repository(), repository());
    let add = |outer: &TestRepo, from: &Path| {
        outer.git([
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            from.to_str().unwrap(),
            "sub",
        ]);
        outer.git(["commit", "--quiet", "--message", "sub"]);
    };
    add(&middle, inner.path());
    // `sub/sub` is not initialised, and neither is `clone/sub`.
    add(&repo, middle.path());
    repo.git(["clone", "--quiet", middle.path().to_str().unwrap(), "clone"]);
    std::fs::create_dir(repo.path().join("lost")).unwrap();
    std::fs::write(repo.path().join("lost/.git"), "gitdir: ../nowhere\n").unwrap();
    std::fs::create_dir(repo.path().join("gone")).unwrap();
    std::fs::write(repo.path().join("gone/.git"), "gitdir: ../away\r\n").unwrap();
    repo.git(["config", "core.hooksPath", "hooks"]);
    repo.git(["worktree", "add", "--quiet", ".trees/other"]);
    for place in [
        "sub/sub/.git",
        "clone/sub/.git",
        "nowhere",
        "away",
        ".trees/other/hooks",
        ".crucible",
    ] {
        let script = format!(
            "mkdir -p {place} 2>/dev/null; echo x > {place}/config && echo planted; git status --short"
        );
        let ran = exec(&fixture, repo.path(), &[], &script).json();
        assert!(
            !ran["stdout"].as_str().unwrap().contains("planted"),
            "{place}: {ran:#}"
        );
        let ran = exec(&fixture, repo.path(), &["--write-git"], &script).json();
        let is_planted = ran["stdout"].as_str().unwrap().contains("planted");
        assert_eq!(is_planted, place != ".crucible", "{place}: {ran:#}");
        let _ = std::fs::remove_dir_all(repo.path().join(place));
    }
}

#[test]
fn git_works_beside_an_uninitialised_submodule() {
    let (fixture, inner, origin) = (Fixture::new(), repository(), repository());
    let allow = "protocol.file.allow=always";
    origin.git([
        "-c",
        allow,
        "submodule",
        "--quiet",
        "add",
        inner.path().to_str().unwrap(),
        "sub",
    ]);
    origin.git(["commit", "--quiet", "--message", "sub"]);
    let clone = fixture.path("clone");
    origin.git(["clone", "--quiet", ".", clone.to_str().unwrap()]);
    for is_there in [true, false] {
        let script =
            "git status --short && git diff && echo works; mkdir -p sub/.git && echo planted";
        let ran = exec(&fixture, &clone, &[], script).json();
        assert_eq!(ran["stdout"], "works\n", "{is_there}: {ran:#}");
        let _ = std::fs::remove_dir(clone.join("sub"));
    }
}

#[test]
fn link_to_programs_run_by_git_is_refused() {
    let fixture = Fixture::new();
    let cases: [(&str, &[&str]); 3] = [
        (
            "links/settings",
            &["config", "include.path", "../links/settings"],
        ),
        (
            "links/check",
            &["config", "filter.x.clean", "sh links/check"],
        ),
        ("links/hooks", &["config", "core.hooksPath", "links/hooks"]),
    ];
    for (_, setting) in cases {
        let repo = repository();
        std::fs::create_dir_all(repo.path().join("real/hooks")).unwrap();
        std::fs::write(repo.path().join("real/settings"), "").unwrap();
        std::fs::write(repo.path().join("real/check"), "").unwrap();
        std::os::unix::fs::symlink("real", repo.path().join("links")).unwrap();
        exec(&fixture, repo.path(), &[], "true").ok();
        repo.git(setting.iter().copied());
        let ran = exec(&fixture, repo.path(), &[], "true").exits(2);
        assert!(
            ran.message()
                .contains("links: git follows this symbolic link"),
            "{}",
            ran.message()
        );
        assert!(ran.error()["hints"].to_string().contains("--write-git"));
        exec(&fixture, repo.path(), &["--write-git"], "true").ok();
    }
}

/// A file can be written by any of its names.
#[test]
fn hard_link_to_what_git_runs_is_refused() {
    let fixture = Fixture::new();
    for guarded in [".git/hooks/pre-commit", ".git/config", "included"] {
        let repo = repository();
        let (guarded, other) = (repo.path().join(guarded), repo.path().join("other"));
        std::fs::create_dir_all(guarded.parent().unwrap()).unwrap();
        if !guarded.exists() {
            std::fs::write(&guarded, "").unwrap();
        }
        repo.git(["config", "include.path", "../included"]);
        exec(&fixture, repo.path(), &[], "true").ok();
        std::fs::hard_link(&guarded, &other).unwrap();
        let ran = exec(&fixture, repo.path(), &[], "true").exits(2);
        assert!(ran.message().contains("hard link"), "{}", ran.message());
        assert!(ran.error()["hints"].to_string().contains("--write-git"));
        exec(&fixture, repo.path(), &["--write-git"], "true").ok();
    }
}

#[test]
fn programs_of_settings_are_read_only_per_worktree() {
    let (fixture, repo) = (Fixture::new(), repository());
    repo.git(["config", "filter.x.clean", "sh tools/check"]);
    repo.git(["worktree", "add", "--quiet", ".trees/other"]);
    std::fs::create_dir(repo.path().join(".trees/other/tools")).unwrap();
    let script =
        "echo x > .trees/other/tools/check && echo planted; echo x > .trees/other/tools/free";
    let ran = exec(&fixture, repo.path(), &[], script).ok().json();
    assert_eq!(ran["stdout"], "", "{ran:#}");
    assert!(repo.path().join(".trees/other/tools/free").exists());
}

/// Values of settings are common words, which a build may use for its files.
#[test]
fn files_named_like_setting_values_are_writable() {
    let (fixture, repo) = (Fixture::new(), repository());
    repo.git(["config", "init.defaultBranch", "main"]);
    repo.git(["config", "user.name", "Max app"]);
    repo.git(["config", "core.pager", "less"]);
    for _ in 0..2 {
        let script = "for name in main app less; do echo x > $name || exit 1; done; echo worked";
        let ran = exec(&fixture, repo.path(), &[], script).json();
        assert_eq!(ran["stdout"], "worked\n", "{ran:#}");
    }
}

#[test]
fn sparse_index_keeps_no_command_from_running() {
    let (fixture, inner, repo) = (Fixture::new(), repository(), repository());
    repo.git(["clone", "--quiet", inner.path().to_str().unwrap(), "clone"]);
    for at in [repo.path().to_owned(), repo.path().join("clone")] {
        let at = at.to_str().unwrap();
        repo.git(["-C", at, "sparse-checkout", "set", "--sparse-index", "none"]);
    }
    let script = "echo x > new && echo worked; echo x > clone/new && echo worked";
    let ran = exec(&fixture, repo.path(), &[], script).json();
    // git itself lists the submodules.
    assert_eq!(ran["stdout"], "worked\nworked\n", "{ran:#}");
    // If it cannot, nothing of the nested repository can be changed.
    repo.write("clone/.git/index", "no index");
    let ran = exec(&fixture, repo.path(), &[], script).json();
    assert_eq!(ran["stdout"], "worked\n", "{ran:#}");
}

#[test]
fn missing_git_settings_in_home_cannot_be_created() {
    let fixture = Fixture::new();
    let home = fixture.path("person");
    std::fs::create_dir_all(home.join(".config/git")).unwrap();
    let script = "echo x > .gitconfig && echo planted; echo x > .config/git/config && echo planted; echo x > free";
    let words = [
        "sandbox", "exec", "--json", "--write", ".", "--", "sh", "-c", script,
    ];
    let ran = fixture
        .call(words)
        .env("HOME", &home)
        .current_dir(&home)
        .run()
        .json();
    assert_eq!(ran["stdout"], "", "{ran:#}");
    assert!(home.join("free").exists() && !home.join(".gitconfig").exists());
}

#[test]
fn a_git_directory_itself_needs_the_flag() {
    let (fixture, repo) = (Fixture::new(), repository());
    for directory in [".git", ".git/hooks"] {
        std::fs::create_dir_all(repo.path().join(directory)).unwrap();
        let words = [
            "sandbox", "exec", "--json", "--write", directory, "--", "true",
        ];
        let ran = fixture.call(words).current_dir(repo.path()).run().exits(2);
        assert!(
            ran.message().contains("is a git directory"),
            "{}",
            ran.message()
        );
        assert!(ran.error()["hints"].to_string().contains("--write-git"));
        let words = [
            "sandbox",
            "exec",
            "--write",
            directory,
            "--write-git",
            "--",
            "true",
        ];
        fixture.call(words).current_dir(repo.path()).run().ok();
    }
    // With it what starts programs is listed, and what git keeps for itself is not.
    let script = "echo x > .git/hooks/post-commit; git hash-object -w src/a.txt";
    let words = [
        "sandbox",
        "exec",
        "--json",
        "--write",
        ".git",
        "--write-git",
        "--",
        "sh",
        "-c",
        script,
    ];
    let ran = fixture
        .call(words)
        .current_dir(repo.path())
        .run()
        .ok()
        .json();
    assert_eq!(left(&ran), [".git/hooks/post-commit"]);
}

#[test]
fn a_repository_that_the_command_makes_is_listed() {
    let (fixture, repo) = (Fixture::new(), repository());
    let script =
        "git init --quiet src/sub; git init --quiet --bare store; mkdir -p node_modules/x/.git";
    let ran = exec(&fixture, repo.path(), &[], script).ok().json();
    assert_eq!(left(&ran), ["node_modules/x/.git", "src/sub/.git", "store"]);
    // Once it is there it is read-only.
    std::fs::create_dir_all(repo.path().join("src/sub/.git/hooks")).unwrap();
    assert_eq!(planted(&fixture, repo.path(), "src/sub/.git", &[]), "");
    let ran = exec(
        &fixture,
        repo.path(),
        &[],
        "git -C src/sub status --short && echo fine",
    )
    .ok()
    .json();
    assert_eq!(
        (ran["stdout"].as_str(), left(&ran)),
        (Some("fine\n"), Vec::new())
    );
    // In a directory that is not a repository.
    std::fs::create_dir(fixture.path("plain")).unwrap();
    let ran = exec(&fixture, &fixture.path("plain"), &[], "git init --quiet .")
        .ok()
        .json();
    assert_eq!(left(&ran), [".git"]);
    // One that the directory itself becomes hides nothing else.
    std::fs::create_dir(fixture.path("bare")).unwrap();
    let ran = exec(
        &fixture,
        &fixture.path("bare"),
        &[],
        "git init --quiet --bare --template= .; echo x > .envrc",
    )
    .ok()
    .json();
    assert_eq!(left(&ran), [".", ".envrc"]);
    // A node_modules that was there hides none.
    let script = "for n in 1 2 3 4 5 6; do echo x > node_modules/x/$n.so; done; git init --quiet node_modules/y";
    let ran = exec(&fixture, repo.path(), &[], script).ok().json();
    assert_eq!(left(&ran), ["node_modules", "node_modules/y/.git"]);
}

#[test]
fn files_that_others_run_are_listed() {
    let (fixture, repo) = (Fixture::new(), repository());
    repo.write("Makefile", "all:\n");
    repo.write("kept/conftest.py", "");
    let script = "echo x > .envrc; mkdir -p .vscode .claude/commands sub; echo {} > .vscode/tasks.json; echo x > .claude/commands/x.md; echo x >> Makefile\n\
        echo x > sub/conftest.py; echo x > CLAUDE.md; echo x > sub/AGENTS.md; echo x > .cursorrules; echo x > src/notes.txt\n\
        printf '#!/bin/sh\\n' > run.sh; chmod +x run.sh";
    let document = exec(&fixture, repo.path(), &[], script).ok().json();
    assert_eq!(
        left(&document),
        [
            ".claude/commands/x.md",
            ".vscode/tasks.json",
            "CLAUDE.md",
            "Makefile",
            "sub/AGENTS.md",
            "sub/conftest.py",
            ".cursorrules",
            ".envrc",
            "run.sh",
        ]
    );
    assert_eq!(document["left_behind"][0]["why"], "obeyed");
    assert_eq!(document["left_behind_is_whole"], true);
    // For people the same on standard error, also where the command fails, and from a directory below as it is called there.
    let words = [
        "sandbox",
        "exec",
        "--write",
        ".",
        "--",
        "sh",
        "-c",
        "echo x >> .envrc; echo y >> CLAUDE.md; exit 3",
    ];
    let ran = fixture.call(words).current_dir(repo.path()).run().exits(1);
    for path in [".envrc", "CLAUDE.md"] {
        assert!(
            ran.stderr
                .contains(&format!("note: made or changed {path}: ")),
            "{}",
            ran.stderr
        );
    }
    let words = [
        "sandbox",
        "exec",
        "--write",
        "../.vscode",
        "--",
        "sh",
        "-c",
        "echo x >> ../.vscode/tasks.json",
    ];
    let ran = fixture
        .call(words)
        .current_dir(repo.path().join("src"))
        .run()
        .ok();
    assert!(
        ran.stderr.contains(".vscode/tasks.json: "),
        "{}",
        ran.stderr
    );
    // Crucible's own settings stay as they are.
    repo.write(".crucible/config.toml", "# as it was\n");
    for flags in [&[][..], &["--write-git"]] {
        exec(
            &fixture,
            repo.path(),
            flags,
            "echo x >> .crucible/config.toml",
        )
        .exits(1);
    }
}

#[test]
fn ordinary_writes_are_allowed() {
    let (fixture, repo) = (Fixture::new(), repository());
    repo.git(["config", "user.name", "Ada"]);
    repo.git(["config", "user.email", "ada@example.invalid"]);
    // Reading commands of git work, and what is built and written is nobody's business.
    let script = "git status --short && git log --oneline && git diff --stat && echo b > src/b.txt && echo done";
    let ran = exec(&fixture, repo.path(), &[], script).ok().json();
    assert!(
        ran["stdout"].as_str().unwrap().ends_with("done\n") && left(&ran).is_empty(),
        "{ran:#}"
    );
    // A commit says what it needs, and works with it.
    let commit = [
        "sandbox", "exec", "--write", ".", "--", "git", "commit", "--quiet", "--all", "-m", "b",
    ];
    repo.write("src/a.txt", "changed\n");
    let ran = fixture.call(commit).current_dir(repo.path()).run().exits(1);
    assert!(ran.stderr.contains("pass --write-git"), "{}", ran.stderr);
    let script = "git add . && git commit --quiet -m b && git status --short";
    let ran = exec(&fixture, repo.path(), &["--write-git"], script)
        .ok()
        .json();
    assert_eq!(
        (ran["stdout"].as_str(), left(&ran)),
        (Some(""), Vec::new()),
        "{ran:#}"
    );
    assert_eq!(repo.git(["log", "--format=%s", "-1"]).trim(), "b");
    // A hook that came with the flag is listed.
    let hook =
        "mkdir -p .git/hooks && echo x > .git/hooks/post-commit && git config core.fsmonitor x";
    let ran = exec(&fixture, repo.path(), &["--write-git"], hook)
        .ok()
        .json();
    assert_eq!(left(&ran), [".git/config", ".git/hooks/post-commit"]);
}

#[test]
fn generated_directories_are_listed_as_one_line() {
    let (fixture, repo) = (Fixture::new(), repository());
    let venv = "python3 -m venv --without-pip venv && venv/bin/python -c 'print(1)'";
    let ran = exec(&fixture, repo.path(), &[], venv).ok().json();
    assert_eq!(left(&ran), ["venv"], "{ran:#}");
    let build = "mkdir -p target/debug/deps && printf 'Signature: 8a477f597d28d172789f06886806bc55' > target/CACHEDIR.TAG\n\
        for n in 1 2 3 4 5 6 7; do echo x > target/debug/deps/p$n; chmod +x target/debug/deps/p$n; done\n\
        for d in a b c d e; do mkdir -p src/$d/__pycache__; echo x > src/$d/__pycache__/x.pyc; done";
    let ran = exec(&fixture, repo.path(), &[], build).ok().json();
    assert_eq!(left(&ran), ["src/a/__pycache__", "target"], "{ran:#}");
    assert_eq!(
        (
            &ran["left_behind"][0]["paths"],
            &ran["left_behind"][1]["paths"]
        ),
        (&5.into(), &7.into())
    );
}

#[test]
fn without_walls_what_was_planted_is_listed() {
    let (fixture, repo) = (Fixture::new(), repository());
    std::fs::create_dir_all(repo.path().join(".git/hooks")).unwrap();
    let script = "echo x > .git/hooks/pre-commit; echo '[x]' >> .git/config";
    let ran = exec(&fixture, repo.path(), &["--sandbox", "off"], script)
        .ok()
        .json();
    assert_eq!(left(&ran), [".git/config", ".git/hooks/pre-commit"]);
}

/// What a command wrote of these files in a repository, and what it printed.
fn written(fixture: &Fixture, repo: &TestRepo, files: &[&str]) -> Vec<String> {
    let write = |file: &&str| {
        format!(
            "(mkdir -p \"$(dirname '{file}')\" && echo x >> '{file}') 2>/dev/null && echo '{file}'\n"
        )
    };
    let script: String = files.iter().map(write).collect();
    let ran = exec(fixture, repo.path(), &[], &format!("{script}true"))
        .ok()
        .json();
    let stdout = ran["stdout"].as_str().unwrap();
    stdout.lines().map(str::to_owned).collect()
}

#[test]
fn settings_of_linked_work_trees_are_followed() {
    let (fixture, repo) = (Fixture::new(), repository());
    repo.git(["config", "extensions.worktreeConfig", "true"]);
    repo.git(["worktree", "add", "--quiet", ".trees/other"]);
    let other = repo.path().join(".trees/other");
    let set = |key: &str, value: &str| {
        let at = other.to_str().unwrap();
        repo.git(["-C", at, "config", "--worktree", key, value]);
    };
    let included = repo.path().join("included");
    set("core.hooksPath", "hooks");
    set("include.path", included.to_str().unwrap());
    let files = [".trees/other/hooks/pre-commit", "included", "free"];
    assert_eq!(written(&fixture, &repo, &files), ["free"]);
}

#[test]
fn included_files_count_under_any_condition() {
    let (fixture, repo) = (Fixture::new(), repository());
    repo.write("first", "[includeIf \"onbranch:later\"]\n\tpath = second\n");
    repo.write(
        "second",
        "[core]\n\thooksPath = hooks\n[include]\n\tpath = third\n",
    );
    repo.git(["config", "includeIf.gitdir:/elsewhere/.path", "../first"]);
    let files = ["first", "second", "third", "hooks/pre-commit", "fourth"];
    assert_eq!(written(&fixture, &repo, &files), ["fourth"]);
}

#[test]
fn settings_of_nested_repositories_are_followed() {
    let (fixture, repo, inner) = (Fixture::new(), repository(), repository());
    repo.git(["clone", "--quiet", inner.path().to_str().unwrap(), "clone"]);
    repo.git([
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        inner.path().to_str().unwrap(),
        "sub",
    ]);
    for at in ["clone", "sub"] {
        repo.git(["-C", at, "config", "core.hooksPath", "hooks"]);
        repo.git(["-C", at, "config", "core.fsmonitor", "src/watch"]);
    }
    let files = [
        "clone/hooks/pre-commit",
        "sub/hooks/pre-commit",
        "clone/src/watch",
        "sub/src/watch",
        "hooks/pre-commit",
        "clone/src/other",
        "src/watch",
    ];
    assert_eq!(written(&fixture, &repo, &files), &files[4..]);
    // git refuses one with settings that it cannot read, and so runs nothing there.
    repo.write("clone/.git/config", "no settings\n");
    assert_eq!(written(&fixture, &repo, &files[1..4]), ["clone/src/watch"]);
}

/// Directories of any size are surveyed once, for repositories as for changes.
#[test]
fn repositories_among_installed_packages_are_protected() {
    let (fixture, repo, inner, middle) = (Fixture::new(), repository(), repository(), repository());
    middle.git([
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        inner.path().to_str().unwrap(),
        "sub",
    ]);
    middle.git(["commit", "--quiet", "--message", "sub"]);
    let package = "node_modules/package";
    repo.git(["clone", "--quiet", middle.path().to_str().unwrap(), package]);
    repo.write("target/named/.git", "gitdir: ../nowhere\n");
    repo.write("tools/check", "");
    let hooks = repo.path().join(package).join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    std::os::unix::fs::symlink("../../../../tools/check", hooks.join("pre-commit")).unwrap();
    let files = [
        "node_modules/package/sub/.git/config",
        "target/nowhere/config",
        "tools/check",
        "tools/other",
        "node_modules/package/new",
        "target/named/new",
    ];
    assert_eq!(written(&fixture, &repo, &files), &files[3..]);
}

#[test]
fn setting_commands_are_split_like_a_shell() {
    let (fixture, repo) = (Fixture::new(), repository());
    for file in ["tools/my check", "tools/check", "tools/monitor"] {
        repo.write(file, "");
    }
    for (key, value) in [
        ("filter.a.clean", "true\nsh tools/new"),
        ("filter.b.clean", "sh tools/my\\ check"),
        ("filter.c.clean", "sh -c 'cd tools && sh check'"),
        ("filter.d.clean", "sh \"$PWD/tools/monitor\""),
        ("filter.e.clean", "sh new.sh"),
    ] {
        repo.git(["config", key, value]);
    }
    let files = [
        "tools/new",
        "tools/my check",
        "tools/check",
        "tools/monitor",
        "new.sh",
        "tools/free",
        "other.sh",
        "my",
    ];
    assert_eq!(written(&fixture, &repo, &files), &files[5..]);
}

#[test]
fn settings_that_variables_name_are_read_only() {
    let (fixture, repo) = (Fixture::new(), repository());
    let at = |name: &str| repo.path().join(name).into_os_string();
    repo.write("system", "[include]\n\tpath = more\n");
    repo.write("tools/ask", "");
    let files = ["system", "more", "included", "tools/ask", "tools/free"];
    let script: String = files
        .iter()
        .map(|file| format!("(echo x >> {file}) 2>/dev/null && echo {file}\n"))
        .collect();
    let words = [
        "sandbox", "exec", "--json", "--write", ".", "--", "sh", "-c", &script,
    ];
    let ran = fixture
        .call(words)
        .env("GIT_CONFIG_SYSTEM", at("system"))
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "Include.Path")
        .env("GIT_CONFIG_VALUE_0", at("included"))
        .env("GIT_ASKPASS", at("tools/ask"))
        .current_dir(repo.path())
        .run();
    assert_eq!(ran.json()["stdout"], "tools/free\n", "{ran:?}");
}

/// Only a link that the command could replace is refused; in a read-only directory its target is read-only, too.
#[test]
fn links_in_git_directories_protect_their_targets() {
    let (fixture, repo, inner) = (Fixture::new(), repository(), repository());
    let outside = fixture.path("outside");
    repo.git(["worktree", "add", "--quiet", outside.to_str().unwrap()]);
    repo.git([
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        inner.path().to_str().unwrap(),
        "sub",
    ]);
    std::fs::create_dir(repo.path().join("my")).unwrap();
    for name in ["worktrees", "modules", "objects"] {
        let (inside, sibling_path) = (
            repo.path().join(".git").join(name),
            repo.path().join("my").join(name),
        );
        std::fs::rename(&inside, sibling_path).unwrap();
        std::os::unix::fs::symlink(format!("../my/{name}"), inside).unwrap();
    }
    let files = [
        "my/worktrees/outside/commondir",
        "my/worktrees/outside/config.worktree",
        "my/modules/sub/config",
        "my/objects/info/alternates",
        // `commondir` of the work tree leads here.
        "my/config",
        "free",
    ];
    assert_eq!(written(&fixture, &repo, &files), ["free"]);
}

/// A bare repository with its work trees beside it is usual.
#[test]
fn bare_repository_beside_its_work_trees_is_protected() {
    let (fixture, origin) = (Fixture::new(), repository());
    for is_named in [true, false] {
        let project = fixture.path(&format!("project-{is_named}"));
        std::fs::create_dir_all(&project).unwrap();
        let git_dir = if is_named { ".bare" } else { ".git" };
        let bare = project.join(git_dir);
        origin.git(["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
        if is_named {
            std::fs::write(project.join(".git"), "gitdir: ./.bare\n").unwrap();
        }
        let tree = project.join("main");
        let add = ["-C", bare.to_str().unwrap(), "worktree", "add", "--quiet"];
        origin.git([&add[..], &[tree.to_str().unwrap(), "HEAD"]].concat());
        std::fs::create_dir_all(bare.join("hooks")).unwrap();
        std::fs::create_dir_all(bare.join("info")).unwrap();
        assert_eq!(planted(&fixture, &project, git_dir, &[]), "");
        let script = "cd main && git status --short && echo x > new && git status --short";
        let ran = exec(&fixture, &project, &[], script).ok().json();
        assert_eq!(ran["stdout"], "?? new\n", "{ran:#}");
    }
    // One that does not know this work tree is followed as git follows it.
    let other = fixture.path("other");
    std::fs::create_dir_all(&other).unwrap();
    let stranger = fixture.path("stranger.git");
    origin.git(["clone", "--quiet", ".", stranger.to_str().unwrap()]);
    let named = format!("gitdir: {}/.git\n", stranger.display());
    std::fs::write(other.join(".git"), named).unwrap();
    let settings = stranger.join(".git");
    let at = ["-C", settings.to_str().unwrap(), "config"];
    origin.git([&at[..], &["core.hooksPath", "hooks"]].concat());
    let script = "echo x > new && echo worked; echo x > .git; mkdir -p hooks && echo x > hooks/pre-commit && echo planted";
    let ran = exec(&fixture, &other, &[], script).json();
    assert_eq!(ran["stdout"], "worked\n", "{ran:#}");
}

/// A path may be longer than any call of the kernel takes.
#[test]
fn too_long_path_is_named_once_and_shortly() {
    let (fixture, repo) = (Fixture::new(), repository());
    let make = "import os\nfor _ in range(30):\n    os.mkdir('d' * 200); os.chdir('d' * 200)\nopen('f', 'w')";
    let run = |script: &str| {
        let words = [
            "sandbox", "exec", "--write", ".", "--", "python3", "-c", script,
        ];
        fixture
            .call(words)
            .current_dir(repo.path())
            .run()
            .ok()
            .stderr
    };
    let message = run(make);
    assert!(
        message.lines().count() == 1
            && message.contains("cannot be looked at")
            && message.len() < 300,
        "{message}"
    );
    assert_eq!(run("print(1)"), "");
}
