//! `cargo xtask bench`: the product beside what it is compared with, in one run on one machine.
//!
//! A number of its own says little; a ratio measured side by side holds on any machine. Each bench is
//! one file and one entry of [`BENCHES`]. Benches that call the product's crates stand behind the
//! `bench` feature, so that the other tasks build without them; `bench` builds itself again in
//! release with that feature.
//!
//! What always holds: a goal that is not reached is printed and written as such; it is a result, not
//! an error. A bench that cannot be measured is an error.

mod measure;
mod report;
mod startup;

use std::env;

use crate::error::TaskError;
use crate::process::Call;
use crate::root::Root;
use measure::Case;

/// What is measured, and how often.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Which benches to run; all of them when none is named.
    names: Vec<String>,
    /// How often each side of a case runs; the median counts.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
}

/// What a bench may use.
#[derive(Debug)]
struct Context<'a> {
    root: &'a Root,
    rounds: u32,
}

/// One subject that is measured.
trait Bench {
    /// The word that selects it.
    fn name(&self) -> &'static str;
    /// Measures every case of it.
    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError>;
}

/// Every bench. One that calls a crate of the product stands under `#[cfg(feature = "bench")]`.
const BENCHES: &[&dyn Bench] = &[&startup::Startup];

/// Set for the run in release that this tool starts.
const IN_RELEASE: &str = "XTASK_BENCH_IN_RELEASE";

/// Measures, prints a table and writes `target/bench.json`.
pub(crate) fn run(root: &Root, args: &BenchArgs) -> Result<(), TaskError> {
    let chosen = choose(&args.names)?;
    if env::var_os(IN_RELEASE).is_none() {
        let rounds = args.rounds.to_string();
        return Call::cargo(root)
            .args([
                "run",
                "--quiet",
                "--release",
                "--package",
                "xtask",
                "--features",
                "bench",
                "--",
                "bench",
            ])
            .args(["--rounds", &rounds])
            .args(&args.names)
            .env(IN_RELEASE, "1")
            .run();
    }
    let context = Context {
        root,
        rounds: args.rounds,
    };
    let mut cases = Vec::new();
    for bench in chosen {
        eprintln!("measuring {}", bench.name());
        cases.extend(bench.run(&context)?);
    }
    println!("{}", report::table(&cases));
    let path = root.target().join("bench.json");
    report::write(&path, &cases, args.rounds)?;
    println!("written to {}", path.display());
    Ok(())
}

fn choose(names: &[String]) -> Result<Vec<&'static dyn Bench>, TaskError> {
    if names.is_empty() {
        return Ok(BENCHES.to_vec());
    }
    names
        .iter()
        .map(|name| {
            BENCHES
                .iter()
                .copied()
                .find(|bench| bench.name() == name)
                .ok_or_else(|| TaskError::UnknownBench {
                    name: name.clone(),
                    known: BENCHES
                        .iter()
                        .map(|bench| bench.name())
                        .collect::<Vec<_>>()
                        .join(", "),
                })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benches_are_chosen_by_name() {
        assert_eq!(choose(&[]).map(|all| all.len()).ok(), Some(BENCHES.len()));
        assert_eq!(choose(&["startup".to_owned()]).map(|one| one.len()).ok(), Some(1));
        let unknown = choose(&["no-such".to_owned()])
            .err()
            .map(|error| error.to_string());
        assert!(unknown.is_some_and(|text| text.contains("no-such") && text.contains("startup")));
    }
}
