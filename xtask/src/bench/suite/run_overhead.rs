//! Measures a whole run against `git commit` of the same change.
//!
//! The model is a loopback server that answers at once with the right file; the gate is `true`, without a canary. So the
//! benchmark measures Crucible: its start, reading the repository, the plan, the sandbox, two runs of the gate and all
//! records. The few milliseconds of `true` and of the answer are not subtracted. A run ends at `verified`; the third
//! case also lands it. The ledger already contains runs.
//!
//! The last cases count processes and flushes until a person must answer. These counts do not depend on the machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crucible_patch::is_test_path;
use tempfile::TempDir;

use super::bench::{Bench, Context, unmeasured};
use super::measure::{Case, Goal, Pair, side_by_side, timed};
use super::model_server::ModelServer;
use super::tree::{Repository, SourceTree, read, scratch, succeed};
use crate::error::TaskError;
use crate::tools;

/// The time limit of a run, without models and gates.
const LIMIT: Duration = Duration::from_millis(300);

/// The most that the turn of an agent may take, without the agent.
const AGENT_LIMIT: Duration = Duration::from_millis(500);

/// The most processes until a person must answer, Crucible included.
const MAX_PROGRAMS: usize = 8;

/// The most flushes until a person must answer.
const MAX_FLUSHES: usize = 25;

const BESIDE: &str = "git commit of the same change";

/// The most bytes of the changed file: what a small model can rewrite completely.
const MAX_CHANGED: usize = 8000;

/// The files of the small repository.
const SMALL: [(&str, &str); 3] = [
    ("README.md", "# Areas\n\nAdds and multiplies.\n"),
    (
        "src/area.py",
        "def area(width, height):\n    return width + height\n",
    ),
    (
        "src/length.py",
        "def length(item):\n    return item.length\n",
    ),
];

/// Measures whole runs.
pub(super) struct WholeRun;

impl Bench for WholeRun {
    fn name(&self) -> &'static str {
        "run"
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let program = context.program()?;
        let (small, folder) = small_tree()?;
        let mut cases = Vec::new();
        for (tree, end) in [
            (&small, End::Verified),
            (&context.trees()?.branched, End::Verified),
            (&small, End::Landed),
        ] {
            let fixture = Fixture::new(&program, tree)?;
            let pair = side_by_side(context.rounds, || fixture.run(end), || fixture.commit())?;
            let what = match end {
                End::Verified => "run start",
                End::Landed => "run start and run land",
            };
            let own_text = format!("{what}: {}, {} files", tree.name, tree.files.len());
            cases.push(Case {
                bench: self.name(),
                ours: own_text,
                beside: BESIDE.to_owned(),
                pair,
                goal: Goal::TimeAtMost(LIMIT),
            });
        }
        cases.extend(calls(context, &program, &small)?);
        drop(folder);
        Ok(cases)
    }
}

/// Measures a run whose agent makes the change at once, beside a run whose model answers at once.
pub(super) fn agent_turn(context: &Context<'_>) -> Result<Case, TaskError> {
    let program = context.program()?;
    let (small, _folder) = small_tree()?;
    let fixture = Fixture::new(&program, &small)?;
    let agent = fixture.home.path().join("agent");
    write(
        &agent,
        &format!("#!/bin/sh\necho '# Reworded.' >> {}\n", fixture.path),
    )?;
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755))
        .map_err(TaskError::io("change", &agent))?;
    let config = fixture.home.path().join(".config/crucible/config.toml");
    let more = format!(
        "[agents.bench]\nprogram = {agent:?}\nprovider = \"gateway\"\nmodel = \"m\"\nwire = \"openai\"\n"
    );
    let text = String::from_utf8_lossy(&read(&config)?).into_owned();
    write(&config, &format!("{text}{more}"))?;
    let run = |args: &[&str]| {
        let words = [
            "run",
            "start",
            "change what it says",
            "--file",
            &fixture.path,
        ];
        let mut start = fixture.command(&words);
        start
            .args(args)
            .arg("--repo")
            .arg(fixture.repository.path());
        let (time, ended) = timed(|| succeed(start));
        ended.map(|()| time)
    };
    let pair = side_by_side(context.rounds, || run(&["--agent", "bench"]), || run(&[]))?;
    Ok(Case {
        bench: "agents",
        ours: "run of an agent that changes a file at once".to_owned(),
        beside: "run of a model that answers at once".to_owned(),
        pair,
        goal: Goal::MoreAtMost(AGENT_LIMIT),
    })
}

/// Counts the processes and flushes until a person must answer, with strace.
fn calls(context: &Context<'_>, program: &Path, tree: &SourceTree) -> Result<[Case; 2], TaskError> {
    tools::strace(context.root)?;
    let fixture = Fixture::new(program, tree)?;
    let words = [
        "run",
        "start",
        "change what it says",
        "--mode",
        "manual_outbox",
        "--repo",
    ];
    let start = || {
        let mut start = fixture.command(&words);
        start.arg(fixture.repository.path());
        timed(|| start.status().map_err(TaskError::io("start", program)))
    };
    // The first run creates the ledger.
    start().1?;
    let (time, ended) = start();
    ended?;
    let log = fixture.home.path().join("calls");
    let mut traced = fixture.command_of(
        Path::new("strace"),
        &["-f", "-qq", "-e", "trace=execve,fsync,fdatasync", "-o"],
    );
    traced
        .arg(&log)
        .arg(program)
        .args(words)
        .arg(fixture.repository.path());
    // The run waits for a person, so its exit code is not 0.
    traced.status().map_err(TaskError::io("start", "strace"))?;
    let log = String::from_utf8_lossy(&read(&log)?).into_owned();
    let counted = |names: &[&str]| log.lines().filter(|line| began(line, names)).count();
    let case = |what: &str, seen, most| Case {
        bench: "run",
        ours: format!("{what} of run start until a person is asked: {}", tree.name),
        beside: "the same run, untraced".to_owned(),
        pair: Pair {
            ours: vec![time],
            beside: vec![time],
        },
        goal: Goal::CallsAtMost { seen, most },
    };
    Ok([
        case("programs started", counted(&["execve"]), MAX_PROGRAMS),
        case("flushes", counted(&["fsync", "fdatasync"]), MAX_FLUSHES),
    ])
}

/// Returns whether a strace line, `PID NAME(…) = RESULT`, begins one of these calls. Failed `PATH` lookups do not count.
fn began(line: &str, names: &[&str]) -> bool {
    let call = line
        .split_once(' ')
        .map_or("", |(_, call)| call.trim_start());
    let name = call.split_once('(').map_or("", |(name, _)| name);
    names.contains(&name) && !call.contains("ENOENT")
}

/// The state in which a run ends.
#[derive(Clone, Copy)]
enum End {
    Verified,
    Landed,
}

/// A repository, a change to one of its files, and a model that proposes it.
struct Fixture<'a> {
    program: &'a Path,
    repository: Repository,
    home: TempDir,
    server: ModelServer,
    /// The file that is changed, in the repository.
    path: String,
    /// The content of that file after the change.
    after: Vec<u8>,
}

impl<'a> Fixture<'a> {
    fn new(program: &'a Path, tree: &SourceTree) -> Result<Self, TaskError> {
        let repository = tree.repository()?;
        let (path, after) = change(tree)?;
        let answer = format!(
            "FILE: {path}\n```\n{}```\n",
            String::from_utf8_lossy(&after)
        );
        let server = ModelServer::saying(Duration::ZERO, move |_| answer.clone())
            .map_err(TaskError::io("start", "the model server"))?;
        let home = scratch()?;
        let config = home.path().join(".config/crucible");
        fs::create_dir_all(&config).map_err(TaskError::io("create", &config))?;
        write(
            &config.join("config.toml"),
            "[gates.nothing]\ncommand = [\"true\"]\ncanary = false\n",
        )?;
        write(
            &home.path().join(".gitconfig"),
            "[user]\n\tname = bench\n\temail = bench@example.invalid\n",
        )?;
        Ok(Self {
            program,
            repository,
            home,
            server,
            path,
            after,
        })
    }

    /// Runs until `end` and returns the time.
    fn run(&self, end: End) -> Result<Duration, TaskError> {
        let mut start =
            self.command(&["run", "start", "change what it says", "--file", &self.path]);
        start.arg("--repo").arg(self.repository.path());
        let (mut time, started) = timed(|| succeed(start));
        started?;
        match end {
            End::Verified => {}
            End::Landed => {
                let newest = self.newest()?;
                let land = self.command(&["run", "land", &newest]);
                let (more, landed) = timed(|| succeed(land));
                landed?;
                time += more;
                self.take_back()?;
            }
        }
        Ok(time)
    }

    /// Commits the same change with git and returns the time.
    fn commit(&self) -> Result<Duration, TaskError> {
        let path = self.repository.path().join(&self.path);
        fs::write(&path, &self.after).map_err(TaskError::io("write", &path))?;
        let (time, committed) = timed(|| {
            succeed(
                self.repository
                    .git(&["commit", "--quiet", "--all", "--message", "Change it"]),
            )
        });
        committed?;
        self.take_back()?;
        Ok(time)
    }

    fn take_back(&self) -> Result<(), TaskError> {
        succeed(
            self.repository
                .git(&["reset", "--quiet", "--hard", "HEAD~1"]),
        )
    }

    /// Returns the name of the newest run, by modification time.
    fn newest(&self) -> Result<String, TaskError> {
        let runs = self.home.path().join("data/runs");
        let listed = fs::read_dir(&runs).map_err(TaskError::io("list", &runs))?;
        let named: Vec<(std::time::SystemTime, PathBuf)> = listed
            .flatten()
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        let newest = named
            .into_iter()
            .max()
            .and_then(|(_, path)| Some(path.file_name()?.to_str()?.to_owned()));
        newest.ok_or_else(|| unmeasured("run")("no run was made"))
    }

    fn command(&self, words: &[&str]) -> Command {
        self.command_of(self.program, words)
    }

    fn command_of(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(words)
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env("CRUCIBLE_HOME", self.home.path().join("data"))
            .env("CRUCIBLE_LLM_PROVIDER", "gateway")
            .env(
                "CRUCIBLE_GATEWAY_BASE_URL",
                format!("http://{}/v1", self.server.address()),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

/// Returns the first small source file that is not a test, with a line appended.
fn change(tree: &SourceTree) -> Result<(String, Vec<u8>), TaskError> {
    for path in tree
        .files
        .iter()
        .filter(|path| matches!(path.extension(), Some("rs" | "py")) && !is_test_path(path))
    {
        let mut content = read(&tree.folder.join(path))?;
        // An answer puts the whole file between two fences.
        let fits = (1..=MAX_CHANGED).contains(&content.len());
        if fits && content.ends_with(b"\n") && !content.windows(3).any(|three| three == b"```") {
            let comment = if path.extension() == Some("py") {
                "# Reworded.\n"
            } else {
                "// Reworded.\n"
            };
            content.extend_from_slice(comment.as_bytes());
            return Ok((path.as_str().to_owned(), content));
        }
    }
    Err(unmeasured("run")(format!(
        "{} has no small source file",
        tree.name
    )))
}

fn small_tree() -> Result<(SourceTree, TempDir), TaskError> {
    let folder = scratch()?;
    let mut files = Vec::new();
    let mut bytes = 0;
    for (name, text) in SMALL {
        let path = folder.path().join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(TaskError::io("create", parent))?;
        }
        write(&path, text)?;
        files.push(name.parse().map_err(unmeasured("run"))?);
        bytes += text.len() as u64;
    }
    let tree = SourceTree {
        name: "a small repository".to_owned(),
        folder: folder.path().to_owned(),
        files,
        bytes,
    };
    Ok((tree, folder))
}

fn write(path: &Path, text: &str) -> Result<(), TaskError> {
    fs::write(path, text).map_err(TaskError::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_appends_line_to_source_file() {
        let (tree, _folder) = small_tree().unwrap();
        let (path, after) = change(&tree).unwrap();
        assert_eq!(path, "src/area.py");
        assert!(after.starts_with(SMALL[1].1.as_bytes()) && after.ends_with(b"Reworded.\n"));
        let none = SourceTree {
            files: Vec::new(),
            ..tree
        };
        assert!(change(&none).is_err());
    }

    #[test]
    fn resumed_and_failed_calls_are_not_counted() {
        let started = r#"12 execve("/usr/bin/git", ["git"], 0x7ffd /* 20 vars */) = 0"#;
        assert!(began(started, &["execve"]) && !began(started, &["fsync"]));
        assert!(began("12 fsync(7 <unfinished ...>", &["fsync"]));
        assert!(!began("12 <... fsync resumed>) = 0", &["fsync"]));
        assert!(!began(
            r#"12 execve("/a/git", ["git"], 0x7ffd) = -1 ENOENT (No such file)"#,
            &["execve"]
        ));
    }

    #[test]
    fn git_commit_case_restores_repository() {
        let (tree, _folder) = small_tree().unwrap();
        let fixture = Fixture::new(Path::new("/bin/true"), &tree).unwrap();
        fixture.commit().unwrap();
        fixture.commit().unwrap();
        let now = read(&fixture.repository.path().join("src/area.py")).unwrap();
        assert_eq!(now, SMALL[1].1.as_bytes());
    }
}
