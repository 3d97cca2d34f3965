//! The inputs and outcomes of checking a gate.

use std::collections::BTreeMap;
use std::time::Duration;

use crucible_host::words::command_line;
use crucible_model::{ByteLimit, RepoPath, Verdict};
use crucible_sandbox::{Captured, Extent, IsolationReceipt};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::id::GateId;
use crate::results::TestResults;

/// Which set of gates was checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GateLevel {
    /// The quick set.
    #[default]
    Lite,
    /// Everything.
    Full,
}

impl GateLevel {
    /// Whether it is the quick set.
    #[must_use]
    pub fn is_lite(&self) -> bool {
        *self == Self::Lite
    }
}

/// A command of the repository that must exit with code 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateSpec {
    /// Its name.
    pub id: GateId,
    /// The program and its arguments; no shell is between.
    pub command: Vec<String>,
    /// Commands to try in its place, if it was detected and cannot run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Vec<String>>,
    /// Commands that build what its tests run, if it was detected and does not test the sources as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<Vec<String>>,
    /// Its time limit; in JSON `timeout_ms`, milliseconds.
    #[serde(
        rename = "timeout_ms",
        serialize_with = "to_millis",
        deserialize_with = "from_millis"
    )]
    pub timeout: Duration,
    /// Where it was found: `Cargo.toml`, `.crucible/config.toml`.
    pub source: String,
    /// Whether a user named it.
    #[serde(default, skip_serializing_if = "GateOrigin::is_named")]
    pub origin: GateOrigin,
    /// Which set it belongs to: the quick one, which every attempt at a change is tried with, or only the full one.
    #[serde(default, skip_serializing_if = "GateLevel::is_lite")]
    pub level: GateLevel,
    /// Its own environment variables; [`check_variable`](super::check_variable) defines valid names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The directory in which it runs; absent for the repository's top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<RepoPath>,
    /// Commands that run before it, in the same copy and under the same limits. If one fails, the gate could not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<Vec<String>>,
    /// Whether it takes part in the canary run.
    #[serde(default, skip_serializing_if = "GateCanary::is_on")]
    pub canary: GateCanary,
}

/// Where a gate comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateOrigin {
    /// A user named it: on the command line or in a configuration. It has to run.
    #[default]
    Named,
    /// A build file of the repository mentions it. If another gate runs, it may fail to run.
    Found,
}

impl GateOrigin {
    /// Returns whether a user named it.
    #[must_use]
    pub fn is_named(&self) -> bool {
        *self == Self::Named
    }
}

/// Whether a canary run must show that a gate tests the sources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateCanary {
    /// It has to notice broken sources.
    #[default]
    On,
    /// It counts without a canary run, by configuration.
    Off,
}

impl GateCanary {
    /// Returns whether it has to.
    #[must_use]
    pub fn is_on(&self) -> bool {
        *self == Self::On
    }
}

impl GateSpec {
    /// Creates a gate of the `lite` set that runs `command` at the repository's top, with default settings.
    #[must_use]
    pub fn new(
        id: GateId,
        command: Vec<String>,
        timeout: Duration,
        source: impl Into<String>,
    ) -> Self {
        Self {
            id,
            command,
            alternatives: Vec::new(),
            builds: Vec::new(),
            timeout,
            source: source.into(),
            origin: GateOrigin::Named,
            level: GateLevel::Lite,
            env: BTreeMap::new(),
            cwd: None,
            setup: Vec::new(),
            canary: GateCanary::On,
        }
    }

    /// Returns the command on one line, with shell quoting.
    #[must_use]
    pub fn command_line(&self) -> String {
        command_line(&self.command)
    }
}

/// A gate to be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateInput {
    /// By running a command.
    Command(GateSpec),
    /// By passing on a verdict that was reached elsewhere.
    Verdict {
        /// The gate's name.
        id: GateId,
        /// What was decided.
        verdict: Verdict,
    },
}

/// What came of a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateOutcome {
    /// A command was run, or could not be.
    Ran(Box<GateRun>),
    /// A judge decided.
    Judged {
        /// The gate's name.
        id: GateId,
        /// What was decided.
        verdict: Verdict,
    },
}

/// What came of running one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRun {
    /// The gate's name.
    pub id: GateId,
    /// The command as it was given.
    pub command: Vec<String>,
    /// How it ended.
    pub end: GateEnd,
    /// Its duration. For people only; not in any artifact.
    pub duration: Duration,
    /// The end of its standard output, redacted.
    pub stdout: Captured,
    /// The end of its standard error, redacted.
    pub stderr: Captured,
    /// Its runner's report per test; absent if not requested.
    pub report: Option<RunnerReport>,
    /// Its sandbox; absent if nothing was started.
    pub isolation: Option<IsolationReceipt>,
    /// Its results per test; absent if it reports none.
    pub results: Option<TestResults>,
}

/// A runner's report, apart from the output for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerReport {
    /// The runner that can read it, by the name of its gate.
    pub runner: String,
    /// The report, redacted and without the copy's path; empty if the output is the report.
    pub bytes: Vec<u8>,
    /// Whether all of it was read.
    pub extent: Extent,
}

/// How a gate's command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateEnd {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// By us, after this time.
    TimedOut {
        /// The time it had.
        after: Duration,
    },
    /// By Crucible, because it exceeded the output limit.
    OutputLimit,
    /// By us, because it wrote more to the disk than it may.
    DiskLimit {
        /// What it may write, in bytes.
        most: ByteLimit,
    },
    /// It never started.
    NotStarted {
        /// What stood in the way.
        why: NotStarted,
        /// The same in words.
        message: String,
    },
}

/// Why a command never started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotStarted {
    /// The command has no words.
    EmptyCommand,
    /// The program does not exist or is not executable.
    ToolMissing,
    /// The sandbox could not be set up as demanded.
    Sandbox,
    /// Its directory is missing, or one of its setup commands failed.
    Setup,
}

impl GateOutcome {
    /// The gate's name.
    #[must_use]
    pub fn id(&self) -> &GateId {
        match self {
            Self::Ran(run) => &run.id,
            Self::Judged { id, .. } => id,
        }
    }
}

impl GateRun {
    /// Returns the command on one line, with shell quoting.
    #[must_use]
    pub fn command_line(&self) -> String {
        command_line(&self.command)
    }

    /// Returns the exit code as in shells: the command's own; 128 plus the signal; 124 for a timeout, 125 for
    /// the output or disk limit, 126 for a sandbox refusal or a failed setup, 127 for a missing program.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        match &self.end {
            GateEnd::Exited(code) => *code,
            GateEnd::Signalled(signal) => 128 + signal,
            GateEnd::TimedOut { .. } => 124,
            GateEnd::OutputLimit | GateEnd::DiskLimit { .. } => 125,
            GateEnd::NotStarted {
                why: NotStarted::Sandbox | NotStarted::Setup,
                ..
            } => 126,
            GateEnd::NotStarted {
                why: NotStarted::ToolMissing | NotStarted::EmptyCommand,
                ..
            } => 127,
        }
    }
}

fn to_millis<S: Serializer>(timeout: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
}

fn from_millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_is_plain_json() {
        let command = vec!["true".to_owned()];
        let spec = GateSpec::new(
            "lite".parse().unwrap(),
            command,
            Duration::from_secs(2),
            "Cargo.toml",
        );
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(
            text,
            r#"{"id":"lite","command":["true"],"timeout_ms":2000,"source":"Cargo.toml"}"#
        );
        assert_eq!(serde_json::from_str::<GateSpec>(&text).unwrap(), spec);
        assert!(serde_json::from_str::<GateSpec>(&text.replace("lite", "../x")).is_err());
    }

    #[test]
    fn spec_with_settings_round_trips() {
        let command = vec!["true".to_owned()];
        let spec = GateSpec {
            env: BTreeMap::from([("MODE".to_owned(), "fast".to_owned())]),
            cwd: Some("packages/x".parse().unwrap()),
            setup: vec![vec!["make".to_owned(), "gen".to_owned()]],
            ..GateSpec::new(
                "x".parse().unwrap(),
                command,
                Duration::from_secs(2),
                "test",
            )
        };
        let text = serde_json::to_string(&spec).unwrap();
        assert!(
            text.ends_with(r#""env":{"MODE":"fast"},"cwd":"packages/x","setup":[["make","gen"]]}"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<GateSpec>(&text).unwrap(), spec);
        assert!(serde_json::from_str::<GateSpec>(&text.replace("packages/x", "../x")).is_err());
    }
}
