//! A run under what the world does to it between two commands: its directory goes, its disk says no, the repository moves on,
//! somebody else advances it as well, or the repository's own settings lead to programs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crucible_testkit::{FakeOpenAi, TestRepo};
use serde_json::{Value, json};

use crate::support::{
    Fixture, GOAL, GOOD_DIFF, Snapshot, answering, good_answer, id_of, move_to, right, small,
    snapshot,
};

/// A verified run of the small repository.
struct Verified {
    repo: TestRepo,
    _server: FakeOpenAi,
    fixture: Fixture,
    id: String,
}

impl Verified {
    fn new() -> Self {
        let (repo, server) = (small().build(), answering(good_answer()));
        let fixture = Fixture::with(&server);
        let id = id_of(&fixture.start(repo.path()).ok().json());
        Self {
            repo,
            _server: server,
            fixture,
            id,
        }
    }

    fn run_directory(&self) -> PathBuf {
        self.fixture.data().join("runs").join(&self.id)
    }

    /// Neither goes on, both say why, and the repository is not touched.
    #[track_caller]
    fn neither_advances_nor_lands(&self, code: i32, text: &str) {
        let before = snapshot(&self.repo, &self.fixture);
        for command in ["advance", "land"] {
            let message = self
                .fixture
                .run(["run", command, &self.id, "--json"])
                .exits(code)
                .message();
            assert!(message.contains(text), "{command}: {message}");
            before.is_still(&snapshot(&self.repo, &self.fixture));
        }
    }

    #[track_caller]
    fn lands(&self) {
        self.fixture.run(["run", "land", &self.id]).ok();
        assert_eq!(
            self.repo.git(["diff", "--name-status", "HEAD^", "HEAD"]),
            "M\tsrc/area.py"
        );
    }
}

/// A run that waits for a person's patch.
fn waiting() -> (TestRepo, Fixture, String) {
    let (repo, fixture) = (small().build(), Fixture::new());
    let started = fixture
        .start_call(repo.path())
        .args(["--mode", "manual_outbox"])
        .run()
        .exits(1)
        .json();
    (repo, fixture, id_of(&started))
}

fn drop_answer(fixture: &Fixture, id: &str) {
    fs::write(
        fixture
            .data()
            .join("runs")
            .join(id)
            .join("artifacts/diff.patch"),
        GOOD_DIFF,
    )
    .unwrap();
}

#[test]
fn run_directory_becoming_repository_link_is_refused() {
    let run = Verified::new();
    let (place, inside) = (run.run_directory(), run.repo.path().join("kept"));
    move_to(&place, &inside);
    symlink(&inside, &place).unwrap();
    run.neither_advances_nor_lands(2, "inside the repository");

    // All runs, moved likewise.
    fs::remove_file(&place).unwrap();
    move_to(&inside, &place);
    let (runs, inside) = (
        run.fixture.data().join("runs"),
        run.repo.path().join("all runs"),
    );
    move_to(&runs, &inside);
    symlink(&inside, &runs).unwrap();
    run.neither_advances_nor_lands(2, "inside the repository");

    // A link to another disk is nobody's harm.
    fs::remove_file(&runs).unwrap();
    move_to(&inside, &run.fixture.path("elsewhere"));
    symlink(run.fixture.path("elsewhere"), &runs).unwrap();
    run.fixture.run(["run", "advance", &run.id]).ok();
    run.lands();
}

#[test]
fn missing_run_directory_is_named_and_replaceable() {
    let run = Verified::new();
    fs::remove_dir_all(run.run_directory()).unwrap();
    run.neither_advances_nor_lands(2, &format!("no run {}", run.id));
    run.fixture
        .run(["run", "status", &run.id, "--json"])
        .exits(2);
    assert!(!run.run_directory().exists(), "it was made again");
    // Another one's place taken by a file is not a run either.
    fs::write(run.run_directory(), "not a directory\n").unwrap();
    run.neither_advances_nor_lands(2, "no run");
    fs::remove_file(run.run_directory()).unwrap();
    let second_text = id_of(&run.fixture.start(run.repo.path()).ok().json());
    run.fixture.run(["run", "land", &second_text]).ok();
    run.fixture.run(["ledger", "verify"]).ok();
}

/// Runs the program with its data directory mounted for reading only.
fn read_only(fixture: &Fixture, words: &[&str]) -> (i32, String) {
    let program = fixture.call(["--version"]).command();
    let mut call = Command::new("bwrap");
    call.args(["--dev-bind", "/", "/", "--ro-bind"])
        .args([fixture.data(), fixture.data()])
        .arg(program.get_program());
    call.args(words).env_clear().envs(
        program
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let output = call.current_dir(fixture.home()).output().unwrap();
    let stderr = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8_lossy(&stderr).into_owned(),
    )
}

#[test]
fn read_only_disk_fails_and_run_resumes() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let path = repo.path().to_str().unwrap();
    let id = id_of(
        &fixture
            .run([
                "run",
                "new",
                GOAL,
                "--repo",
                path,
                "--sandbox",
                "off",
                "--json",
            ])
            .ok()
            .json(),
    );
    let before = Snapshot::take([repo.path(), &fixture.data()]);
    let refused = |words: &[&str]| {
        let (code, message) = read_only(&fixture, words);
        assert_ne!(code, 0, "{words:?}: {message}");
        assert!(
            !message.contains("panicked") && code != 101,
            "{words:?}: {message}"
        );
        let messages = ["read-only", "readonly", "a disk that cannot be written to"];
        assert!(
            messages
                .iter()
                .any(|text| message.to_lowercase().contains(text)),
            "{words:?}: {message}"
        );
        before.is_still(&Snapshot::take([repo.path(), &fixture.data()]));
    };
    refused(&["run", "advance", &id]);
    refused(&["run", "new", GOAL, "--repo", path]);
    assert_eq!(server.requests().len(), 0);
    fixture.run(["run", "advance", &id]).ok();
    let before = Snapshot::take([repo.path()]);
    let (code, report) = read_only(&fixture, &["run", "land", &id]);
    assert!(
        code != 0 && report.to_lowercase().contains("read"),
        "{report}"
    );
    before.is_still(&Snapshot::take([repo.path()]));
    fixture.run(["run", "land", &id]).ok();
    assert_eq!(server.requests().len(), 1);
}

/// What somebody does to the repository, and how it is undone.
type Change = (&'static str, fn(&TestRepo), fn(&TestRepo));

const NOW_OTHER: [Change; 4] = [
    (
        "a commit",
        |repo| {
            repo.write("src/other.py", "x = 1\n");
            repo.commit("Somebody was faster");
        },
        |repo| drop(repo.git(["reset", "--quiet", "--hard", "HEAD~1"])),
    ),
    (
        "a file changed",
        |repo| repo.write("src/area.py", "mine\n"),
        |repo| drop(repo.git(["checkout", "--quiet", "src/area.py"])),
    ),
    (
        "a file staged",
        |repo| {
            repo.write("src/new.py", "x = 1\n");
            repo.git(["add", "src/new.py"]);
        },
        |repo| drop(repo.git(["rm", "--quiet", "--force", "src/new.py"])),
    ),
    (
        "a branch with other commits",
        |repo| {
            repo.git(["checkout", "--quiet", "-b", "other"]);
            repo.git(["commit", "--quiet", "--allow-empty", "--message", "there"]);
        },
        |repo| {
            repo.git(["checkout", "--quiet", "main"]);
            repo.git(["branch", "--quiet", "-D", "other"]);
        },
    ),
];

#[test]
fn repository_changed_before_patch_is_refused_with_hint() {
    let (repo, fixture, id) = waiting();
    drop_answer(&fixture, &id);
    for (what, change, undo) in NOW_OTHER {
        change(&repo);
        let before = snapshot(&repo, &fixture);
        let message = fixture
            .run(["run", "advance", &id, "--json"])
            .exits(1)
            .message();
        // A repository that is elsewhere, or one with changes of the user's own.
        let parts = if message.contains("uncommitted changes") {
            [
                "src/",
                "stash or undo",
                "the run needs an unchanged base",
                "crucible run advance",
            ]
        } else {
            [
                "where the run started",
                "commit or stash",
                "crucible run advance",
                "start a new run",
            ]
        };
        for part in parts {
            assert!(message.contains(part), "{what}: {message}");
        }
        before.is_still(&snapshot(&repo, &fixture));
        undo(&repo);
    }
    let status = fixture.run(["run", "advance", &id, "--json"]).ok().json();
    assert_eq!(status["state"], "verified");
    assert_eq!(
        status["attempts"].as_array().unwrap().len(),
        1,
        "{status:#}"
    );
    assert_eq!(status["budgets"]["outbox_prompts"], 1);
    fixture.run(["run", "land", &id]).ok();
}

#[test]
fn repository_changed_before_landing_is_refused() {
    let run = Verified::new();
    let says = |what: &str| {
        let before = snapshot(&run.repo, &run.fixture);
        let message = run
            .fixture
            .run(["run", "land", &run.id, "--json"])
            .exits(1)
            .message();
        before.is_still(&snapshot(&run.repo, &run.fixture));
        assert!(message.len() > 40, "{what}: {message}");
        message
    };
    // A staged file that the change does not touch stays staged.
    for (what, change, undo) in NOW_OTHER
        .into_iter()
        .filter(|(what, ..)| *what != "a file staged")
    {
        change(&run.repo);
        says(what);
        undo(&run.repo);
    }
    run.repo.git(["checkout", "--quiet", "--detach"]);
    let message = says("detached");
    assert!(
        message.contains("main") && message.contains("land again"),
        "{message}"
    );
    run.repo.git(["checkout", "--quiet", "main"]);
    for flag in ["skip-worktree", "assume-unchanged"] {
        run.repo
            .git(["update-index", &format!("--{flag}"), "src/area.py"]);
        run.repo.write("src/area.py", "mine, and hidden\n");
        assert!(says(flag).contains("src/area.py"));
        run.repo
            .git(["update-index", &format!("--no-{flag}"), "src/area.py"]);
        run.repo.git(["checkout", "--quiet", "src/area.py"]);
    }
    run.repo.write("src/new.py", "x = 1\n");
    run.repo.git(["add", "src/new.py"]);
    run.lands();
    assert_eq!(run.repo.git(["status", "--porcelain"]), "A  src/new.py");
}

#[test]
fn base_removed_by_gc_stops_run_and_landing() {
    let throw_away = |repo: &TestRepo| {
        repo.git(["checkout", "--quiet", "--orphan", "fresh"]);
        repo.git(["commit", "--quiet", "--message", "All anew"]);
        repo.git(["branch", "--quiet", "-M", "fresh", "main"]);
        repo.git(["reflog", "expire", "--expire=now", "--all"]);
        repo.git(["gc", "--quiet", "--prune=now"]);
    };
    let run = Verified::new();
    throw_away(&run.repo);
    let before = snapshot(&run.repo, &run.fixture);
    let message = run
        .fixture
        .run(["run", "land", &run.id, "--json"])
        .exits(1)
        .message();
    assert!(
        message.contains("new run") || message.contains("start again"),
        "{message}"
    );
    before.is_still(&snapshot(&run.repo, &run.fixture));

    let (repo, fixture, id) = waiting();
    drop_answer(&fixture, &id);
    throw_away(&repo);
    let before = snapshot(&repo, &fixture);
    let message = fixture
        .run(["run", "advance", &id, "--json"])
        .exits(1)
        .message();
    assert!(message.contains("start a new run"), "{message}");
    before.is_still(&snapshot(&repo, &fixture));
}

#[test]
fn concurrent_advances_use_a_dropped_answer_once() {
    for _ in 0..3 {
        let (_repo, fixture, id) = waiting();
        drop_answer(&fixture, &id);
        let start = || {
            let mut command = fixture.call(["run", "advance", &id, "--json"]).command();
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let both = [start(), start(), start()];
        let mut ended: Vec<i32> = Vec::new();
        for child in both {
            let output = child.wait_with_output().unwrap();
            let code = output.status.code().unwrap();
            if code == 9 {
                let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(stderr.contains("advancing the run"), "{stderr}");
            }
            ended.push(code);
        }
        // Who came too late for the lock finds the work done.
        assert!(
            ended.contains(&0) && ended.iter().all(|code| [0, 9].contains(code)),
            "{ended:?}"
        );
        let status = fixture.status();
        assert_eq!(status["state"], "verified");
        assert_eq!(status["attempts"].as_array().unwrap().len(), 1);
        assert_eq!(
            (
                &status["budgets"]["calls"],
                &status["budgets"]["outbox_prompts"]
            ),
            (&json!(1), &json!(1))
        );
        fixture.run(["ledger", "verify"]).ok();
        fixture.run(["run", "land", &id]).ok();
    }
}

#[test]
fn edited_guardrails_are_refused_despite_their_content() {
    let edits = [
        ("max_files:", "max_speed: 3\nmax_files:", "max_speed"),
        (
            "max_files:",
            "max_files: 99999999999999999999999\nold:",
            "max_files",
        ),
        (
            "max_total_bytes:",
            "max_total_bytes: 18446744073709551615\nold:",
            "max_total_bytes",
        ),
        (
            "max_iterations:",
            "max_iterations: -1\nold:",
            "max_iterations",
        ),
    ];
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let path = repo.path().to_str().unwrap();
    for (from, to, names) in edits {
        // Before anything was recorded of them.
        let id = id_of(
            &fixture
                .run(["run", "new", GOAL, "--repo", path, "--json"])
                .ok()
                .json(),
        );
        let file = fixture
            .data()
            .join("runs")
            .join(&id)
            .join("artifacts/guardrails.md");
        let full_text = fs::read_to_string(&file).unwrap();
        assert!(full_text.contains(from), "{full_text}");
        fs::write(&file, full_text.replacen(from, to, 1)).unwrap();
        let ran = fixture.run(["run", "advance", &id, "--json"]);
        assert!([1, 3].contains(&ran.code.unwrap()), "{ran:?}");
        let message = ran.message();
        let is_reported =
            message.contains(names) || message.contains("was changed after it was recorded");
        assert!(
            message.contains("guardrails.md") && is_reported,
            "{message}"
        );
        assert_eq!(server.requests().len(), 0);
    }
    // And afterwards.
    let id = id_of(&fixture.start(repo.path()).ok().json());
    let file = fixture
        .data()
        .join("runs")
        .join(&id)
        .join("artifacts/guardrails.md");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        whole.replacen("max_iterations:", "max_iterations: 1000\nold:", 1),
    )
    .unwrap();
    for command in ["advance", "land"] {
        let message = fixture
            .run(["run", command, &id, "--json"])
            .exits(1)
            .message();
        assert!(
            message.contains("guardrails.md") && message.contains("was changed"),
            "{message}"
        );
    }
    fs::write(&file, whole).unwrap();
    fixture.run(["run", "land", &id]).ok();
}

/// Makes every setting that we know of lead to one program that leaves a trace.
fn trap(repo: &TestRepo, fixture: &Fixture) -> PathBuf {
    let (trace, program) = (fixture.path("trace"), fixture.path("trap"));
    fs::write(
        &program,
        format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", trace.display()),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let hooks = repo.path().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in [
        "pre-commit",
        "post-commit",
        "commit-msg",
        "prepare-commit-msg",
        "post-checkout",
        "reference-transaction",
        "post-index-change",
        "pre-applypatch",
        "post-applypatch",
        "fsmonitor-watchman",
    ] {
        fs::copy(&program, hooks.join(hook)).unwrap();
    }
    fs::create_dir_all(repo.path().join(".git/info")).unwrap();
    fs::write(
        repo.path().join(".git/info/attributes"),
        "README.md filter=evil\n* diff=evil merge=evil\n",
    )
    .unwrap();
    fs::write(repo.path().join(".git/info/exclude"), "*\n").unwrap();
    let text = program.to_str().unwrap();
    for key in [
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.textconv",
        "diff.evil.command",
        "diff.external",
        "merge.evil.driver",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "credential.helper",
        "gpg.program",
    ] {
        repo.git(["config", key, text]);
    }
    repo.git(["config", "core.hooksPath", hooks.to_str().unwrap()]);
    repo.git(["config", "commit.gpgSign", "true"]);
    repo.git(["config", "alias.status", &format!("!{text}")]);
    trace
}

fn traces(trace: &Path) -> String {
    fs::read_to_string(trace).unwrap_or_default()
}

#[test]
fn programs_in_repository_settings_never_run() {
    let repo = small().file("README.md", "# Areas\n").build();
    let fixture = Fixture::new();
    let trace = trap(&repo, &fixture);
    // The traps work: git on its own runs them.
    let _whatever = Command::new("git")
        .args(["status", "--short"])
        .current_dir(repo.path())
        .output();
    assert!(traces(&trace).contains("trap"), "no trap is set");
    fs::remove_file(&trace).unwrap();
    let quiet = |what: &str| assert_eq!(traces(&trace), "", "{what}");

    let started = fixture
        .start_call(repo.path())
        .args(["--mode", "manual_outbox"])
        .run()
        .exits(1)
        .json();
    quiet("run start");
    let id = id_of(&started);
    drop_answer(&fixture, &id);
    assert_eq!(
        fixture.run(["run", "advance", &id, "--json"]).ok().json()["state"],
        "verified"
    );
    quiet("run advance");
    fixture.run(["run", "replay", &id]).ok();
    quiet("run replay");
    let before = fs::read(repo.path().join(".git/config")).unwrap();
    fixture.run(["run", "land", &id]).ok();
    quiet("run land");
    assert_eq!(
        fs::read_to_string(repo.path().join("src/area.py")).unwrap(),
        right()
    );
    assert_eq!(fs::read(repo.path().join(".git/config")).unwrap(), before);
}

#[test]
fn git_flags_and_settings_hide_no_change() {
    let (repo, fixture, id) = waiting();
    drop_answer(&fixture, &id);
    fs::create_dir_all(repo.path().join(".git/info")).unwrap();
    fs::write(repo.path().join(".git/info/exclude"), "*\n").unwrap();
    for (key, value) in [
        ("status.showUntrackedFiles", "no"),
        ("core.checkStat", "minimal"),
    ] {
        repo.git(["config", key, value]);
    }
    for flag in ["skip-worktree", "assume-unchanged"] {
        repo.git(["update-index", &format!("--{flag}"), "check.sh"]);
        repo.write("check.sh", "exit 0\n");
        let refused = fixture.start_call(repo.path()).run().exits(2).message();
        assert!(refused.contains("check.sh"), "{flag}: {refused}");
        let refused = fixture
            .run(["run", "advance", &id, "--json"])
            .exits(1)
            .message();
        assert!(
            refused.contains("uncommitted changes: \"check.sh\""),
            "{flag}: {refused}"
        );
        repo.git(["update-index", &format!("--no-{flag}"), "check.sh"]);
        repo.git(["checkout", "--quiet", "check.sh"]);
    }
    let verified: Value = fixture.run(["run", "advance", &id, "--json"]).ok().json();
    assert_eq!(verified["state"], "verified");
}
