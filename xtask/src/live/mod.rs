//! `cargo xtask test --live`: the tests that ask a real model, which runs on this machine.
//!
//! They are asked for by `--live` or by `CRUCIBLE_REAL_LLM_TESTS=1`, and kept away by `CRUCIBLE_SKIP_LLM_TESTS=1`, which
//! is the stronger one. The model server is started for them and stopped after them; each test leaves a line of
//! summary, which is shown at the end.
//!
//! What always holds: nothing passes by skipping. `--live` where it is forbidden is an error, and so is a suite
//! that left no summary.

mod server;
mod summary;

use std::env;
use std::fs;

use self::server::Server;
use self::summary::Summary;
use crate::error::TaskError;
use crate::root::Root;
use crate::test::{Counts, Suite, nextest};
use crate::tools;

const REAL: &str = "CRUCIBLE_REAL_LLM_TESTS";
const SKIP: &str = "CRUCIBLE_SKIP_LLM_TESTS";

/// Where the tests find the server, and where they leave their summary.
const ADDRESS: &str = "CRUCIBLE_LIVE_ADDRESS";
const SUMMARY_FILE: &str = "CRUCIBLE_LIVE_SUMMARY";

/// Which suites are to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suites {
    /// All but the live one.
    Usual,
    /// All but the live one, which was asked for and is forbidden.
    UsualAsLiveIsForbidden,
    /// All, the live one last.
    Both,
    /// The live one.
    Live,
}

/// What the command line says about the live suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flag {
    /// `--live`.
    Live,
    /// Nothing.
    Absent,
}

impl Suites {
    /// What the flag and the environment ask for together.
    pub(crate) fn from_flag(flag: Flag) -> Result<Self, TaskError> {
        let value = |name| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Self::decide(flag, value(REAL).as_deref(), value(SKIP).as_deref())
    }

    fn decide(flag: Flag, real: Option<&str>, skip: Option<&str>) -> Result<Self, TaskError> {
        let (real, skip) = (is_on(REAL, real)?, is_on(SKIP, skip)?);
        match (flag, real, skip) {
            (Flag::Live, _, true) => Err(TaskError::LiveForbidden { variable: SKIP }),
            (Flag::Live, _, false) => Ok(Self::Live),
            (Flag::Absent, true, true) => Ok(Self::UsualAsLiveIsForbidden),
            (Flag::Absent, true, false) => Ok(Self::Both),
            (Flag::Absent, false, _) => Ok(Self::Usual),
        }
    }
}

fn is_on(variable: &'static str, value: Option<&str>) -> Result<bool, TaskError> {
    match value {
        None | Some("" | "0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => Err(TaskError::NoSwitch {
            variable,
            value: other.to_owned(),
        }),
    }
}

/// Runs the live suite, narrowed by these words for nextest. The client programs must be installed.
pub(crate) fn run(root: &Root, narrowed: &[String]) -> Result<Counts, TaskError> {
    let program = tools::llama(root)?;
    let weights = tools::weights(root)?;
    let folder = root.target().join("live");
    fs::create_dir_all(&folder).map_err(TaskError::io("create", &folder))?;
    let lines = folder.join("summary.jsonl");
    fs::write(&lines, "").map_err(TaskError::io("write", &lines))?;

    let server = Server::start(root, &program, &weights, &folder.join("server.log"))?;
    let packages = ["--package", "crucible-llm", "--package", "crucible"];
    let features = [
        "--features",
        "crucible-llm/live,crucible/live",
        "--test",
        "live",
    ];
    let mut words: Vec<String> = packages
        .into_iter()
        .chain(features)
        .map(str::to_owned)
        .collect();
    words.extend(narrowed.iter().cloned());
    let suite = Suite {
        profile: "live",
        words,
        env: vec![
            (REAL.into(), "1".into()),
            (ADDRESS.into(), server.address().into()),
            (SUMMARY_FILE.into(), lines.clone().into_os_string()),
        ],
    };
    let outcome = nextest(root, &suite);
    drop(server);

    let summary = Summary::read(&lines)?;
    println!(
        "\n{summary}\nthe lines of this table are in {}",
        lines.display()
    );
    let counts = outcome?;
    summary.check(counts.passed + counts.failed)?;
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_and_both_variables_decide_together() {
        use Flag::{Absent, Live};
        let on = Some("1");
        for (flag, real, skip, expected) in [
            (Absent, None, None, Suites::Usual),
            (Absent, Some("0"), Some(""), Suites::Usual),
            (Absent, None, on, Suites::Usual),
            (Absent, on, None, Suites::Both),
            (Absent, on, Some("0"), Suites::Both),
            (Absent, on, on, Suites::UsualAsLiveIsForbidden),
            (Live, None, None, Suites::Live),
            (Live, Some("0"), None, Suites::Live),
        ] {
            assert_eq!(
                Suites::decide(flag, real, skip).unwrap(),
                expected,
                "{flag:?} {real:?} {skip:?}"
            );
        }
        for real in [None, on] {
            let error = Suites::decide(Live, real, on).unwrap_err().to_string();
            assert!(error.contains(SKIP) && error.contains("--live"), "{error}");
        }
    }

    #[test]
    fn invalid_switch_value_is_refused_by_name() {
        for (real, skip, name) in [(Some("yes"), None, REAL), (None, Some("true"), SKIP)] {
            let error = Suites::decide(Flag::Absent, real, skip)
                .unwrap_err()
                .to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
