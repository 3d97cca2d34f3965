//! How long the program takes to start: `--version`, and the list of runs in an empty home.
//!
//! Beside it runs `/bin/true`, which shows what starting any process costs on this machine.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::measure::{Case, Goal, side_by_side, timed};
use super::{Bench, Context};
use crate::error::TaskError;
use crate::process::Call;

/// What a person waits for before anything happens.
const GOAL: Goal = Goal::TimeAtMost(Duration::from_millis(10));

const BESIDE: &str = "/bin/true";

/// The start-up bench.
pub(super) struct Startup;

impl Bench for Startup {
    fn name(&self) -> &'static str {
        "startup"
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        Call::cargo(context.root)
            .args(["build", "--quiet", "--release", "--package", "crucible"])
            .run()?;
        let program = context.root.target().join("release/crucible");
        let home = tempfile::tempdir().map_err(TaskError::io("create", "a temporary folder"))?;
        let mut cases = Vec::new();
        for args in [&["--version"][..], &["run", "list"]] {
            // A start is short and noisy: more rounds cost little.
            let pair = side_by_side(
                context.rounds.saturating_mul(4),
                || start(&program, args, home.path()),
                || start(Path::new(BESIDE), &[], home.path()),
            )?;
            let ours = format!("crucible {}", args.join(" "));
            cases.push(Case {
                bench: self.name(),
                ours,
                beside: BESIDE.to_owned(),
                pair,
                goal: GOAL,
            });
        }
        Ok(cases)
    }
}

fn start(program: &Path, args: &[&str], home: &Path) -> Result<Duration, TaskError> {
    let mut command = Command::new(program);
    command.args(args).current_dir(home).env("CRUCIBLE_HOME", home);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let (time, status) = timed(|| command.status());
    let shown = format!("{} {}", program.display(), args.join(" "));
    match status {
        Ok(status) if status.success() => Ok(time),
        Ok(status) => Err(TaskError::Unmeasured {
            bench: "startup",
            reason: format!("`{shown}` ended with {status}"),
        }),
        Err(source) => Err(TaskError::Spawn {
            command: shown,
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
        let failed = start(Path::new("/bin/false"), &[], home.path()).map_err(|error| error.to_string());
        assert!(failed.is_err_and(|text| text.contains("/bin/false")));
        let missing = start(&home.path().join("no-such-program"), &[], home.path());
        assert!(matches!(missing, Err(TaskError::Spawn { .. })));
    }
}
