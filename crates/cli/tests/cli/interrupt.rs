//! Ctrl-C, a polite end and a rude one, while a gate sleeps and while the model hangs: the program is gone at once, so
//! is everything it started, and the next command goes on.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the program, send it signals and look for what it leaves"
)]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crucible_testkit::{FakeOpenAi, Reply, RepoBuilder, TestRepo};
use serde_json::Value;

const WRONG: &str = "def area(width, height):\n    return width + height\n";
const RIGHT: &str = "def area(width, height):\n    return width * height\n";

/// How long anything may take before a test calls it a failure.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A home, a repository, and the program between them.
struct Fixture {
    directory: tempfile::TempDir,
    repo: TestRepo,
    model: FakeOpenAi,
    /// What the sleeping gate is known by among all processes of the machine.
    marker: String,
}

impl Fixture {
    /// A repository whose gate sleeps on the wrong code, and a model that speaks so.
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let unique = directory.path().as_os_str().as_encoded_bytes().iter();
        let unique = unique.fold(u64::from(std::process::id()), |sum, byte| {
            sum.wrapping_mul(131).wrapping_add(u64::from(*byte))
        });
        let marker = format!("31557.{unique}");
        let check =
            format!("grep -q 'width \\* height' src/area.py && exit 0\nsleep {marker}\nexit 1\n");
        let repo = RepoBuilder::new()
            .file(
                ".crucible/config.toml",
                "[gates.tests]\ncommand = [\"sh\", \"./check.sh\"]\ntimeout_s = 2\n",
            )
            .file("check.sh", check)
            .file("src/area.py", WRONG)
            .build();
        repo.git(["config", "user.name", "Operator"]);
        repo.git(["config", "user.email", "operator@example.invalid"]);
        Self {
            directory,
            repo,
            model: FakeOpenAi::start(replies),
            marker,
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crucible"));
        command
            .args(words)
            .current_dir(self.repo.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.directory.path())
            .env("CRUCIBLE_HOME", self.directory.path().join("data"))
            .env("CRUCIBLE_LLM_PROVIDER", "gateway")
            .env("CRUCIBLE_GATEWAY_BASE_URL", self.model.base_url());
        command
    }

    fn start(&self, words: &[&str]) -> Child {
        self.command(words).spawn().unwrap()
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn start_run(&self) -> Child {
        self.start(&[
            "run",
            "start",
            "area must multiply",
            "--file",
            "src/area.py",
            "--json",
        ])
    }

    /// The processes that carry the marker, or work somewhere in this fixture.
    fn left_behind(&self) -> Vec<String> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            let place = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            if command.contains(&self.marker) || place.starts_with(self.directory.path()) {
                found.push(format!("{} {command}", entry.file_name().display()));
            }
        }
        found
    }

    fn wait_for_the_gate(&self) {
        wait_for("the gate to sleep", || {
            self.left_behind()
                .iter()
                .any(|process| process.contains(&self.marker))
        });
    }

    fn wait_for_request(&self, number: usize) {
        wait_for("the model to be asked", || {
            self.model.requests().len() >= number
        });
    }

    /// The run goes on, is verified and lands; the ledger holds all of it.
    fn goes_on(&self) {
        let advanced = self.run(&["run", "advance", "--json"]);
        assert_eq!(advanced.status.code(), Some(0), "{advanced:?}");
        let status: Value = serde_json::from_slice(&advanced.stdout).unwrap();
        assert_eq!(status["state"], "verified");
        assert_eq!(self.repo.status(), "");
        let id = status["run"]["run_id"].as_str().unwrap();
        assert_eq!(self.run(&["run", "land", id]).status.code(), Some(0));
        assert_eq!(self.repo.git(["rev-list", "--count", "HEAD"]), "2");
        assert_eq!(
            std::fs::read_to_string(self.repo.path().join("src/area.py")).unwrap(),
            RIGHT
        );
        let verified = self.run(&["ledger", "verify"]);
        assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    }

    fn run_directory(&self) -> PathBuf {
        let runs = self.directory.path().join("data/runs");
        let mut runs = std::fs::read_dir(runs).unwrap();
        runs.next().unwrap().unwrap().path()
    }
}

fn right() -> Reply {
    Reply::Answer(format!("FILE: src/area.py\n```\n{RIGHT}```\n"))
}

#[track_caller]
fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < TIMEOUT, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, name: &str) {
    let number = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", name, &number])
            .status()
            .unwrap()
            .success()
    );
}

/// Sends the signal, and tells how and how soon the program ended.
fn end_with(child: Child, name: &str) -> Output {
    let begun = Instant::now();
    signal(&child, name);
    let output = child.wait_with_output().unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "it took {:?} to end",
        begun.elapsed()
    );
    output
}

fn assert_interrupted(output: &Output) {
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("interrupted") && stderr.contains("crucible run advance"),
        "{stderr}"
    );
}

fn no_temporary_copy_is_left(run: &Path) {
    let left: Vec<_> = std::fs::read_dir(run.join("tmp"))
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn interrupted_while_a_gate_sleeps() {
    let fixture = Fixture::new([right()]);
    let program = fixture.start_run();
    fixture.wait_for_the_gate();
    assert_interrupted(&end_with(program, "INT"));
    assert_eq!(fixture.left_behind(), Vec::<String>::new());
    no_temporary_copy_is_left(&fixture.run_directory());
    fixture.goes_on();
    assert_eq!(fixture.model.requests().len(), 1);
}

#[test]
fn asked_to_end_while_a_gate_sleeps() {
    let fixture = Fixture::new([right()]);
    let program = fixture.start_run();
    fixture.wait_for_the_gate();
    assert_interrupted(&end_with(program, "TERM"));
    assert_eq!(fixture.left_behind(), Vec::<String>::new());
    fixture.goes_on();
}

/// Nobody is there to clean up; what was started ends all the same.
#[test]
fn run_killed_during_gate_resumes() {
    let fixture = Fixture::new([right()]);
    let program = fixture.start_run();
    fixture.wait_for_the_gate();
    assert_eq!(end_with(program, "KILL").status.signal(), Some(9));
    wait_for("the gate to end with the program", || {
        fixture.left_behind().is_empty()
    });
    fixture.goes_on();
    no_temporary_copy_is_left(&fixture.run_directory());
}

#[test]
fn interrupted_while_the_model_hangs() {
    let fixture = Fixture::new([Reply::Hang, right()]);
    let program = fixture.start_run();
    fixture.wait_for_request(1);
    assert_interrupted(&end_with(program, "INT"));
    assert_eq!(fixture.left_behind(), Vec::<String>::new());
    fixture.goes_on();
    assert_eq!(fixture.model.requests().len(), 2);
}

/// The server may have done all the work: a question that was cut off counts, however often the run goes on.
#[test]
fn interrupted_call_keeps_its_budget_reservation() {
    let fixture = Fixture::new([Reply::Hang, Reply::Hang, right()]);
    let mut program = fixture
        .command(&[
            "run",
            "start",
            "area must multiply",
            "--file",
            "src/area.py",
            "--json",
        ])
        .env("CRUCIBLE_OPENROUTER_BUDGET", "2")
        .spawn()
        .unwrap();
    for number in 1..=2 {
        fixture.wait_for_request(number);
        assert_interrupted(&end_with(program, "INT"));
        program = fixture.start(&["run", "advance", "--json"]);
    }
    let output = program.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(70), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("budget"),
        "{output:?}"
    );
    assert_eq!(fixture.model.requests().len(), 2);
}

#[test]
fn second_process_at_one_run_exits_9() {
    let fixture = Fixture::new([Reply::Hang, right()]);
    let program = fixture.start_run();
    fixture.wait_for_request(1);
    let second = fixture.run(&["run", "advance", "--json"]);
    assert_eq!(second.status.code(), Some(9), "{second:?}");
    assert!(
        String::from_utf8_lossy(&second.stderr).contains("another process is at work here"),
        "{second:?}"
    );
    assert_interrupted(&end_with(program, "INT"));
    fixture.goes_on();
}

/// However soon `run start` is killed, what others see is listed and can be gone on with, and the next one clears the rest away.
#[test]
fn start_killed_early_leaves_no_unlisted_run() {
    let fixture = Fixture::new(std::iter::repeat_with(right).take(60));
    let runs = fixture.directory.path().join("data/runs");
    let names = || -> Vec<String> {
        let entries = std::fs::read_dir(&runs).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect()
    };
    let listed = || -> Vec<String> {
        let list = fixture.run(&["run", "list", "--json"]);
        let list: Value = serde_json::from_slice(&list.stdout).unwrap();
        let runs = list["runs"].as_array().unwrap().iter();
        runs.map(|run| run["run_id"].as_str().unwrap().to_owned())
            .collect()
    };
    for wait in (0..130).step_by(5).map(Duration::from_millis) {
        let mut child = fixture.start_run();
        std::thread::sleep(wait);
        child.kill().unwrap();
        child.wait().unwrap();
        let listed = listed();
        for name in names().iter().filter(|name| !name.starts_with('.')) {
            assert!(
                listed.contains(name),
                "after {wait:?}: {name} is not listed"
            );
        }
        for id in &listed {
            let status = fixture.run(&["run", "status", id]);
            assert_eq!(status.status.code(), Some(0), "after {wait:?}: {status:?}");
        }
    }
    let ended = fixture.start_run().wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let (mut names, mut listed) = (names(), listed());
    names.sort();
    listed.sort();
    assert_eq!(names, listed);
    assert_eq!(fixture.run(&["ledger", "verify"]).status.code(), Some(0));
    let home = std::fs::read_dir(runs.parent().unwrap()).unwrap().flatten();
    let left: Vec<_> = home
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert!(
        !left.iter().any(|name| name.starts_with(".tmp-")),
        "{left:?}"
    );
}
