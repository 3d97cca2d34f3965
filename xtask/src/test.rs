//! `cargo xtask test`: installs what the tests need, runs every test, and ends with one line of counts.
//!
//! The tests run under nextest, each in its own process; documentation examples under `cargo test --doc`. The slow suite (`--slow`) is the tests in modules called `slow` or `exhaustive`, and those
//! in modules called `properties` with many cases; CI runs it smaller. How many cases a property tries is set here and nowhere else.
//! No test needs a real model but those of the live suite, which runs where it is asked for. The counts come from the runner's own report, never from a guess: no report is an error.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::error::TaskError;
use crate::live::{self, Flag, Suites};
use crate::memory;
use crate::process::Call;
use crate::root::Root;
use crate::tools;

/// What the tests are run with.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct TestArgs {
    /// Run the live suite instead: start a model server on this machine (built and fetched at first, about 500 MB)
    /// and ask a real model. `CRUCIBLE_REAL_LLM_TESTS=1` runs it after the others; `CRUCIBLE_SKIP_LLM_TESTS=1` forbids it.
    #[arg(long)]
    live: bool,
    /// Run the slow suite instead: the tests in modules called `slow`, every real client program in every mode, and every property
    /// with 4096 cases. `cargo xtask ci` runs it after the others, without the client programs and with 256 cases.
    /// `PROPTEST_CASES` sets another number of cases.
    #[arg(long, conflicts_with = "live")]
    slow: bool,
    #[arg(skip)]
    extent: Extent,
    /// Handed to `cargo nextest run`: `-p crucible-patch`, a name filter. Narrows the run to what it selects.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "NEXTEST ARGS"
    )]
    nextest: Vec<String>,
}

impl TestArgs {
    /// The slow suite as CI runs it.
    pub(crate) fn slow_in_ci() -> Self {
        Self {
            slow: true,
            extent: Extent::Ci,
            ..Self::default()
        }
    }
}

/// How much of the slow suite is run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Extent {
    /// All of it.
    #[default]
    Full,
    /// What every change must pass: two minutes.
    Ci,
}

impl Extent {
    fn profile(self) -> &'static str {
        match self {
            Self::Full => "slow",
            Self::Ci => "slow-in-ci",
        }
    }

    fn cases(self) -> u32 {
        match self {
            Self::Full => 4096,
            Self::Ci => 256,
        }
    }
}

/// How many cases a property tries in the usual suite.
const USUAL_CASES: u32 = 32;

/// The variable that proptest reads, and `expensive_cases` of testkit. One that the caller set is left alone.
fn cases(count: u32) -> Vec<(OsString, OsString)> {
    const NAME: &str = "PROPTEST_CASES";
    if env::var_os(NAME).is_some() {
        return Vec::new();
    }
    vec![(NAME.into(), count.to_string().into())]
}

/// Runs the tests.
pub(crate) fn run(root: &Root, args: &TestArgs) -> Result<(), TaskError> {
    let suites = Suites::from_flag(if args.live { Flag::Live } else { Flag::Absent })?;
    let start = Instant::now();
    // Tests look at the sources of every dependency, also of those that this machine does not build.
    Call::cargo(root)
        .args(["fetch", "--locked", "--quiet"])
        .run()?;
    tools::for_tests(root)?;
    if args.slow {
        tools::for_slow_suite(root)?;
    }
    if args.slow && args.extent == Extent::Full {
        tools::for_full_suite(root)?;
    }

    let mut counts = Counts::default();
    let mut examples = "not run: narrowed".to_owned();
    if args.slow {
        let suite = Suite {
            profile: args.extent.profile(),
            words: usual_words(args),
            env: cases(args.extent.cases()),
        };
        counts = nextest(root, &suite)?;
        examples = "not run: slow suite alone".to_owned();
    } else if suites != Suites::Live {
        let suite = Suite {
            profile: "default",
            words: usual_words(args),
            env: cases(USUAL_CASES),
        };
        counts = nextest(root, &suite)?;
        if args.nextest.is_empty() {
            run_examples(root)?;
            "passed".clone_into(&mut examples);
        }
    }
    match suites {
        // It is asked for alone; a variable that asks for the live one as well is for the usual tests.
        _ if args.slow => {}
        Suites::Live => {
            examples = "not run: live suite alone".to_owned();
            counts = live::run(root, &args.nextest)?;
        }
        Suites::Both => {
            let live = live::run(root, &[])?;
            counts = Counts {
                passed: counts.passed + live.passed,
                failed: counts.failed + live.failed,
            };
        }
        Suites::UsualAsLiveIsForbidden => {
            println!(
                "the live suite was asked for and left out: CRUCIBLE_SKIP_LLM_TESTS is stronger"
            );
        }
        Suites::Usual => {}
    }
    println!(
        "all tests passed in {:.1} s (documentation examples: {examples})",
        start.elapsed().as_secs_f64(),
    );
    println!("{counts}");
    Ok(())
}

/// Tests that are run together.
#[derive(Debug)]
pub(crate) struct Suite {
    /// The profile of `.config/nextest.toml`, which also names where the report lies.
    pub(crate) profile: &'static str,
    /// What `cargo nextest run` gets besides.
    pub(crate) words: Vec<String>,
    /// Variables for the tests.
    pub(crate) env: Vec<(OsString, OsString)>,
}

/// Runs a suite under nextest, and reads the report. When a test fails, the counts are shown before the error.
pub(crate) fn nextest(root: &Root, suite: &Suite) -> Result<Counts, TaskError> {
    let report = root
        .target()
        .join("nextest")
        .join(suite.profile)
        .join("junit.xml");
    remove_old(&report)?;
    let mut call = memory::with_temporary_files(root, tools::nextest(root)?)?
        .args(["nextest", "run", "--profile", suite.profile])
        .args(threads(suite))
        .args(&suite.words);
    for (name, value) in &suite.env {
        call = call.env(name, value);
    }
    let outcome = call.run();
    let counts = fs::read_to_string(&report)
        .ok()
        .and_then(|xml| Counts::read(&xml));
    if let Err(error) = outcome {
        if let Some(counts) = counts {
            println!("{counts}");
        }
        return Err(error);
    }
    counts.ok_or_else(|| TaskError::Missing {
        what: format!("the test runner's report, {}", report.display()),
        fix: format!(
            "Check `[profile.{}.junit]` in .config/nextest.toml.",
            suite.profile
        ),
    })
}

/// Most tests wait for processes, signals and deadlines: more of them at once than there are processors keep these busy.
const TESTS_PER_PROCESSOR: usize = 3;

/// How many tests run at once, unless the profile or the command line says so.
fn threads(suite: &Suite) -> Option<String> {
    let is_chosen = suite.profile == "live"
        || suite
            .words
            .iter()
            .any(|word| word.starts_with("-j") || word.starts_with("--test-threads"));
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (!is_chosen).then(|| format!("--test-threads={}", processors * TESTS_PER_PROCESSOR))
}

fn usual_words(args: &TestArgs) -> Vec<String> {
    let mut words = vec!["--all-targets".to_owned()];
    let picks_packages = args
        .nextest
        .iter()
        .any(|arg| arg.starts_with("-p") || arg.starts_with("--package") || arg == "--workspace");
    if !picks_packages {
        words.extend(EVERYTHING.map(str::to_owned));
    }
    words.extend(args.nextest.iter().cloned());
    words
}

/// A report of an earlier run must not be counted for this one.
fn remove_old(report: &Path) -> Result<(), TaskError> {
    match fs::remove_file(report) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(TaskError::io("remove", report)(error))
        }
        _ => Ok(()),
    }
}

/// Compiles and runs the documentation examples of all crates.
fn run_examples(root: &Root) -> Result<(), TaskError> {
    Call::cargo(root)
        .args(["test", "--locked", "--doc"])
        .args(EVERYTHING)
        .run()
}

/// Selects every crate with the features that all steps share: with others, cargo would compile most dependencies once more.
pub(crate) const EVERYTHING: [&str; 3] = ["--workspace", "--features", "xtask/bench"];

/// How many tests passed and failed, in the form that other programs look for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Counts {
    /// Reads the totals from the opening tag of a JUnit report.
    fn read(xml: &str) -> Option<Self> {
        let tag = xml.split_once("<testsuites ")?.1.split_once('>')?.0;
        let number = |name: &str| -> Option<u64> {
            let rest = tag.split_once(&format!("{name}=\""))?.1;
            rest.split_once('"')?.0.parse().ok()
        };
        let failed = number(" failures")? + number(" errors")?;
        let total = number("tests")?;
        Some(Self {
            passed: total.checked_sub(failed)?,
            failed,
        })
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "tests: {} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_from_the_report() {
        let xml = r#"<?xml version="1.0"?><testsuites name="nextest-run" tests="12" failures="2" errors="1" time="1">"#;
        let counts = Counts::read(xml);
        assert_eq!(
            counts,
            Some(Counts {
                passed: 9,
                failed: 3
            })
        );
        assert_eq!(
            Counts {
                passed: 9,
                failed: 3
            }
            .to_string(),
            "tests: 9 passed, 3 failed"
        );
        assert_eq!(Counts::read("<html>"), None);
    }

    #[test]
    fn live_flag_is_distinguished_from_runner_arguments() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: TestArgs,
        }
        let parse =
            |words: &[&str]| <Line as clap::Parser>::parse_from([&["test"], words].concat()).args;
        assert!(parse(&["--live"]).live && parse(&["--live", "gateway"]).nextest == ["gateway"]);
        let narrowed = parse(&["-p", "crucible-llm"]);
        assert!(!narrowed.live && narrowed.nextest == ["-p", "crucible-llm"]);
    }

    #[test]
    fn threads_chosen_by_profile_or_user_stay() {
        let suite = |profile, words: &[&str]| Suite {
            profile,
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            env: Vec::new(),
        };
        assert!(threads(&suite("default", &["-p", "xtask"])).is_some());
        assert_eq!(threads(&suite("default", &["-j1"])), None);
        assert_eq!(threads(&suite("slow", &["--test-threads", "2"])), None);
        assert_eq!(threads(&suite("live", &[])), None);
    }

    #[test]
    fn a_chosen_package_replaces_the_whole_workspace() {
        let all = usual_words(&TestArgs::default());
        assert!(all.contains(&"--workspace".to_owned()));
        let one = TestArgs {
            nextest: vec!["-p".to_owned(), "crucible-patch".to_owned()],
            ..TestArgs::default()
        };
        let words = usual_words(&one);
        assert!(!words.contains(&"--workspace".to_owned()));
        assert!(words.ends_with(&one.nextest));
    }
}
