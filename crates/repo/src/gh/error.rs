//! Why GitHub has no answer, with what the reader can do about it.

use std::time::Duration;

use crucible_host::env::ProgramError;
use crucible_model::Timestamp;

/// Why GitHub has no answer. What `gh` said is on one line, short and redacted; what GitHub said is on one line and not
/// redacted, so it is not cut where a secret could be divided: whoever shows it does both.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GhError {
    /// `gh` is not installed.
    #[error(
        "GitHub's command line `gh` cannot be run: {why}; install it (Debian and Ubuntu: `apt install gh`, macOS: `brew install \
         gh`, others: https://cli.github.com) and log in with `gh auth login`"
    )]
    Missing {
        /// What was found instead.
        why: ProgramError,
    },
    /// `gh` has no login that GitHub takes.
    #[error(
        "GitHub does not know you: {said}; run `gh auth login`, or set GH_TOKEN to a token that is valid; for another host than \
         github.com set GH_HOST"
    )]
    NotLoggedIn {
        /// What was said.
        said: String,
    },
    /// Too many questions were asked.
    #[error(
        "GitHub's rate limit is exhausted; wait until it is reset, or log in with `gh auth login` for a higher one"
    )]
    RateLimited(LimitReset),
    /// The login may not see it.
    #[error("GitHub refuses {what}: {said}; does your login have the right to it (`gh auth status`)?")]
    Forbidden {
        /// What was asked for.
        what: String,
        /// What GitHub said.
        said: String,
    },
    /// It is not there, or not shown.
    #[error(
        "GitHub has no {what}, or does not show it to you; is it spelled right, and if it is private, does your login see it?"
    )]
    NotFound {
        /// What was asked for.
        what: String,
    },
    /// GitHub does not take the question.
    #[error("GitHub does not take the question {what} (HTTP {status}): {said}; change what is asked for")]
    Invalid {
        /// What was asked for.
        what: String,
        /// The status.
        status: u16,
        /// What GitHub said.
        said: String,
    },
    /// GitHub failed.
    #[error(
        "GitHub failed (HTTP {status}): {said}; try again later, https://www.githubstatus.com tells how it is"
    )]
    Server {
        /// The status.
        status: u16,
        /// What GitHub said.
        said: String,
    },
    /// No answer came.
    #[error("GitHub cannot be reached: {said}; check the network and the proxy")]
    Unreachable {
        /// What `gh` said.
        said: String,
    },
    /// The answer took too long.
    #[error("GitHub did not answer {what} within {} s; check the network, and try again", after.as_secs())]
    TimedOut {
        /// What was asked for.
        what: String,
        /// How long it was given.
        after: Duration,
    },
    /// The answer is broken or cut.
    #[error("GitHub's answer about {what} cannot be read: {why}; try again")]
    Unreadable {
        /// What was asked for.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The answer is larger than can be taken.
    #[error(
        "GitHub's answer about {what} is larger than {limit} bytes, more than Crucible takes; ask for less"
    )]
    TooLarge {
        /// What was asked for.
        what: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// A name cannot stand in a question.
    #[error("{name:?} cannot be asked for; write the name as GitHub shows it")]
    Unusable {
        /// The name.
        name: String,
    },
    /// The machine did not let `gh` run, or its file be written.
    #[error(
        "`gh` could not do its work on this machine: {said}; make room or lift what forbids it, and try again"
    )]
    NotRun {
        /// What the machine said.
        said: String,
    },
}

/// When a rate limit ends, as far as GitHub said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitReset {
    /// The instant, by GitHub's clock.
    pub at: Option<Timestamp>,
    /// The time from the answer on; it is the better one where both are known.
    pub after: Option<Duration>,
}
