//! `cargo xtask ci`: everything a change must pass, in the order of what fails fastest.
//!
//! Each step is named with the seconds it took; the first failure ends the run. The test step is the
//! same code as `cargo xtask test`, so what passes here passes for everyone who types the README's command.

use std::time::{Duration, Instant};

use crate::error::TaskError;
use crate::process::Call;
use crate::root::Root;
use crate::{test, tidy, tools};

/// What of it is run.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct CiArgs {
    /// Only these steps, in their usual order; all of them when none is named.
    #[arg(value_name = "STEP", value_parser = STEPS.map(|step| step.name))]
    only: Vec<String>,
}

#[derive(Clone, Copy)]
struct Step {
    name: &'static str,
    run: fn(&Root) -> Result<(), TaskError>,
}

const STEPS: [Step; 7] = [
    Step {
        name: "fmt",
        run: fmt,
    },
    Step {
        name: "tidy",
        run: |root| tidy::run(root, &tidy::TidyArgs::default()),
    },
    Step {
        name: "deny",
        run: deny,
    },
    Step {
        name: "clippy",
        run: |root| tools::beside_installation(root, || clippy(root)),
    },
    Step {
        name: "test",
        run: |root| test::run(root, &test::TestArgs::default()),
    },
    Step {
        name: "slow",
        run: |root| test::run(root, &test::TestArgs::slow_in_ci()),
    },
    Step {
        name: "demo",
        run: demo,
    },
];

/// Runs the steps, stops at the first that fails.
pub(crate) fn run(root: &Root, args: &CiArgs) -> Result<(), TaskError> {
    let start = Instant::now();
    let mut done = Vec::new();
    let requested =
        |step: &Step| args.only.is_empty() || args.only.iter().any(|name| name == step.name);
    for step in STEPS.into_iter().filter(requested) {
        println!("\n== ci: {}", step.name);
        let begun = Instant::now();
        let outcome = (step.run)(root);
        let took = begun.elapsed();
        done.push((step.name, took));
        if let Err(source) = outcome {
            println!("== ci: {} FAILED after {}", step.name, seconds(took));
            println!("{}", summary(&done, start.elapsed(), "FAILED"));
            return Err(TaskError::Step {
                step: step.name,
                source: Box::new(source),
            });
        }
        println!("== ci: {} ok in {}", step.name, seconds(took));
    }
    println!("\n{}", summary(&done, start.elapsed(), "ok"));
    Ok(())
}

fn fmt(root: &Root) -> Result<(), TaskError> {
    Call::cargo(root).args(["fmt", "--all", "--check"]).run()
}

fn clippy(root: &Root) -> Result<(), TaskError> {
    Call::cargo(root)
        .args(["clippy", "--locked", "--workspace", "--all-targets"])
        .args(["--features", "xtask/bench,crucible-llm/live,crucible/live"])
        .args(["--", "-D", "warnings"])
        .run()
}

/// The advisory database has to be fetched from outside, so that check is not part of this step.
fn deny(root: &Root) -> Result<(), TaskError> {
    let program = tools::deny(root)?;
    Call::new(root, program)
        .args(["deny", "--locked", "check", "bans", "licenses", "sources"])
        .run()
}

/// The program that the tests ran against: another build of it would take as long as all else.
fn demo(root: &Root) -> Result<(), TaskError> {
    Call::cargo(root)
        .args(["build", "--locked", "--quiet", "--all-targets"])
        .args(test::EVERYTHING)
        .run()?;
    Call::new(root, root.target().join("debug/crucible"))
        .args(["demo"])
        .run()
}

fn summary(done: &[(&str, Duration)], total: Duration, outcome: &str) -> String {
    let steps: Vec<String> = done
        .iter()
        .map(|(name, took)| format!("{name} {}", seconds(*took)))
        .collect();
    format!("ci {outcome} in {}: {}", seconds(total), steps.join(", "))
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_each_step_with_its_seconds() {
        let done = [
            ("fmt", Duration::from_millis(1200)),
            ("clippy", Duration::from_secs(61)),
        ];
        let line = summary(&done, Duration::from_secs(63), "ok");
        assert_eq!(line, "ci ok in 63.0 s: fmt 1.2 s, clippy 61.0 s");
    }

    #[test]
    fn ci_steps_match_the_documented_ones() {
        let mut names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["clippy", "demo", "deny", "fmt", "slow", "test", "tidy"]
        );
    }
}
