//! Checking the record of a long run: `crucible run verify-record` as a whole process, beside reading the same files with `cat`.
//!
//! The run is made by the program itself; its many events are then appended as a run appends them, a tenth of them with a file
//! that the ledger keeps.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crucible_ledger::{Ledger, NewEvent};
use crucible_model::{Digest, RunId, Timestamp, to_canonical_json};
use serde_json::json;

use super::bench::{Bench, Context, unmeasured};
use super::measure::{Case, Goal, side_by_side, timed};
use super::tree::scratch;
use crate::error::TaskError;

/// How many events the run has.
const EVENTS: u64 = 1_000;

/// How many events there are for each recorded file.
const FOR_EACH_FILE: u64 = 10;

const GOAL: Goal = Goal::TimeAtMost(Duration::from_millis(100));

const BENCH: &str = "run-record";

/// The bench of checking a run's record.
pub(super) struct RunRecords;

impl Bench for RunRecords {
    fn name(&self) -> &'static str {
        BENCH
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let program = context.program()?;
        let place = scratch()?;
        let run = long_run(&program, place.path()).map_err(unmeasured(BENCH))?;
        let ours = || {
            call(
                &program,
                &["run", "verify-record", run.as_str()],
                place.path(),
            )
        };
        let files =
            format!("cat home/ledger.db home/runs/{run}/events.jsonl home/runs/{run}/artifacts/*");
        let beside = || call(Path::new("/bin/sh"), &["-c", &files], place.path());
        Ok(vec![Case {
            bench: BENCH,
            ours: format!("crucible run verify-record, {EVENTS} events"),
            beside: "cat of what it reads".to_owned(),
            pair: side_by_side(context.rounds, ours, beside)?,
            goal: GOAL,
        }])
    }
}

type BenchResult<T> = Result<T, Box<dyn std::error::Error>>;

/// A run with so many events.
fn long_run(program: &Path, place: &Path) -> BenchResult<RunId> {
    let repo = place.join("repo");
    std::fs::create_dir_all(repo.join(".crucible"))?;
    std::fs::write(
        repo.join(".crucible/config.toml"),
        "[gates.tests]\ncommand = [\"true\"]\n",
    )?;
    std::fs::write(
        repo.join("area.py"),
        "def area(width, height):\n    return width + height\n",
    )?;
    let git = Path::new("git");
    let identity = [
        "-c",
        "user.name=bench",
        "-c",
        "user.email=bench@example.invalid",
    ];
    call(git, &["init", "--quiet", "repo"], place)?;
    call(git, &["-C", "repo", "add", "--all"], place)?;
    call(
        git,
        &[
            &["-C", "repo"][..],
            &identity,
            &["commit", "--quiet", "-m", "base"],
        ]
        .concat(),
        place,
    )?;
    let goal = "make area in area.py multiply width and height";
    call(
        program,
        &[
            "run",
            "new",
            goal,
            "--repo",
            "repo",
            "--provider",
            "gateway",
        ],
        place,
    )?;
    let mut ledger = Ledger::open(&place.join("home/ledger.db"))?;
    let run = ledger.runs()?.pop().ok_or("no run was made")?.id;
    let dir = place.join("home/runs").join(run.as_str());
    let ts: Timestamp = "2026-01-31T09:30:00Z".parse()?;
    let mut lines = std::fs::read_to_string(dir.join("events.jsonl"))?;
    for number in ledger.events(Some(&run))?.len() as u64..EVENTS {
        let path = format!("artifacts/{number:04}.txt");
        let mut body = json!({ "attempt": number });
        if number % FOR_EACH_FILE == 0 {
            let text = format!("the text of file {number}\n").repeat(200);
            std::fs::write(dir.join(&path), &text)?;
            ledger.put_artifact(&path, text.as_bytes())?;
            body = json!({ "digest": Digest::compute(text.as_bytes()) });
        }
        let event = NewEvent::new(run.clone(), ts, "verifier", "NOTED", body);
        let event = ledger.append(event.about(path).once(format!("noted-{number}")))?;
        let line = to_canonical_json(&json!({
            "ts": event.ts, "role": event.role, "event": event.event, "path": event.path, "seq": event.seq,
            "hash": event.hash
        }))?;
        writeln!(lines, "{}", String::from_utf8(line)?)?;
    }
    std::fs::write(dir.join("events.jsonl"), lines)?;
    // What is derived from fewer events is the story of a run that has not ended.
    Ok(run)
}

/// How long a program takes from its start to its end.
fn call(program: &Path, args: &[&str], place: &Path) -> Result<Duration, TaskError> {
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(place)
        .env("CRUCIBLE_HOME", place.join("home"));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let text = format!("{} {}", program.display(), args.join(" "));
    let (time, status) = timed(|| command.status());
    match status {
        Ok(status) if status.success() => Ok(time),
        Ok(status) => Err(unmeasured(BENCH)(format!("`{text}` ended with {status}"))),
        Err(source) => Err(TaskError::Spawn {
            command: text,
            source,
        }),
    }
}
