//! `cargo xtask bench`: the product beside what it is compared with, in one run on one machine.
//!
//! A number of its own says little; a ratio measured side by side holds on any machine. What is measured stands in
//! `suite`, which calls the product's crates and is therefore built with the `bench` feature alone; without it this
//! task builds itself again, in release, and hands over.
//!
//! What always holds: a goal that is not reached is printed and written as such; it is a result, not an error. A
//! bench that cannot be measured is an error.

#[cfg(feature = "bench")]
mod suite;

#[cfg(feature = "bench")]
pub(crate) use suite::run;

/// What is measured, and how often.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Which benches to run; all of them when none is named.
    names: Vec<String>,
    /// How often each side of a case runs; the median counts.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Be the process that asks the model's server at this address, as the bench `council` starts it.
    #[cfg(feature = "bench")]
    #[arg(long, hide = true, requires = "about", value_name = "ADDRESS")]
    ask_at_once: Option<String>,
    /// The file it asks about.
    #[cfg(feature = "bench")]
    #[arg(long, hide = true, requires = "ask_at_once", value_name = "FILE")]
    about: Option<std::path::PathBuf>,
    /// Be the process that inspects this tree once, as the bench `crawl` starts it.
    #[cfg(feature = "bench")]
    #[arg(long, hide = true, value_name = "TREE")]
    inspect_once: Option<std::path::PathBuf>,
    /// Be the process that asks a council of the model's server at this address, as the bench `deliberation` starts it.
    #[cfg(feature = "bench")]
    #[arg(long, hide = true, requires = "question", value_name = "ADDRESS")]
    deliberate_once: Option<String>,
    /// What it asks.
    #[cfg(feature = "bench")]
    #[arg(long, hide = true, requires = "deliberate_once", value_name = "TEXT")]
    question: Option<String>,
}

/// Builds this tool in release with its benches, and runs those.
#[cfg(not(feature = "bench"))]
pub(crate) fn run(
    root: &crate::root::Root,
    args: &BenchArgs,
) -> Result<(), crate::error::TaskError> {
    crate::process::Call::cargo(root)
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
        .args(["--rounds", &args.rounds.to_string()])
        .args(&args.names)
        .run()
}
