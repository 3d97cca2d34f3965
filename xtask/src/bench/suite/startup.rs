//! How long the program takes to start: `--version`, and the list of runs, in an empty home and with some runs.
//!
//! Beside it runs `/bin/true`, which shows what starting any process costs on this machine.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crucible_ledger::{Ledger, RunRow};
use crucible_model::Timestamp;

use super::bench::{Bench, Context, unmeasured};
use super::measure::{Case, Goal, side_by_side, timed};
use super::tree::scratch;
use crate::error::TaskError;

/// What a person waits for before anything happens.
const GOAL: Goal = Goal::TimeAtMost(Duration::from_millis(10));

/// What starting any process costs.
pub(super) const BESIDE: &str = "/bin/true";

/// How many runs the ledger holds that is listed.
const RUNS: usize = 20;

/// The start-up bench.
pub(super) struct Startup;

impl Bench for Startup {
    fn name(&self) -> &'static str {
        "startup"
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let program = context.program()?;
        let (empty, used) = (scratch()?, scratch()?);
        record_runs(used.path()).map_err(unmeasured(self.name()))?;
        let starts = [
            (
                "crucible --version".to_owned(),
                &["--version"][..],
                empty.path(),
            ),
            (
                "crucible run list, no ledger".to_owned(),
                &["run", "list"],
                empty.path(),
            ),
            (
                format!("crucible run list, {RUNS} runs"),
                &["run", "list"],
                used.path(),
            ),
        ];
        let mut cases = Vec::new();
        for (own_text, args, home) in starts {
            // A start is short and noisy: more rounds cost little.
            let pair = side_by_side(
                context.rounds.saturating_mul(4),
                || start(&program, args, home),
                || start(Path::new(BESIDE), &[], home),
            )?;
            cases.push(Case {
                bench: self.name(),
                ours: own_text,
                beside: BESIDE.to_owned(),
                pair,
                goal: GOAL,
            });
        }
        Ok(cases)
    }
}

fn record_runs(home: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut ledger = Ledger::open(&home.join("ledger.db"))?;
    for number in 0..RUNS {
        let ts: Timestamp = "2026-01-31T09:30:00Z".parse()?;
        ledger.record_run(RunRow {
            id: format!("20260131-0930{number:02}-bench").parse()?,
            goal: "fix the failing test in parser".to_owned(),
            repo: home.display().to_string(),
            state: "passed".to_owned(),
            created: ts,
            updated: ts,
        })?;
    }
    Ok(())
}

/// How long a start takes, with `home` as the program's own directory and as the working directory.
pub(super) fn start(program: &Path, args: &[&str], home: &Path) -> Result<Duration, TaskError> {
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(home)
        .env("CRUCIBLE_HOME", home);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let (time, status) = timed(|| command.status());
    let text = format!("{} {}", program.display(), args.join(" "));
    match status {
        Ok(status) if status.success() => Ok(time),
        Ok(status) => Err(TaskError::Unmeasured {
            bench: "startup",
            reason: format!("`{text}` ended with {status}"),
        }),
        Err(source) => Err(TaskError::Spawn {
            command: text,
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_is_not_measured() {
        let home = tempfile::tempdir().unwrap();
        assert!(start(Path::new(BESIDE), &[], home.path()).is_ok());
        let failed =
            start(Path::new("/bin/false"), &[], home.path()).map_err(|error| error.to_string());
        assert!(failed.is_err_and(|text| text.contains("/bin/false")));
        let missing = start(&home.path().join("no-such-program"), &[], home.path());
        assert!(matches!(missing, Err(TaskError::Spawn { .. })));
    }
}
