//! Errors of GitHub requests, with what the reader can do.

use std::time::Duration;

use crucible_host::env::ProgramError;
use crucible_model::Timestamp;

/// Why GitHub gave no response. Text of `gh` is one short, redacted line. Text of GitHub is one line and not
/// redacted, so it is not cut where a secret could be divided: the caller who shows it does both.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GhError {
    /// `gh` is not installed.
    #[error(
        "cannot run GitHub's command line `gh`: {why}; install it (Debian and Ubuntu: `apt install gh`, macOS: `brew install \
         gh`, others: https://cli.github.com) and log in with `gh auth login`"
    )]
    Missing {
        /// What was found instead.
        why: ProgramError,
    },
    /// `gh` has no valid login.
    #[error(
        "not logged in to GitHub: {message}; run `gh auth login`, or set GH_TOKEN to a valid token; for a host other than github.com set GH_HOST"
    )]
    NotLoggedIn {
        /// What was said.
        message: String,
    },
    /// Too many questions were asked.
    #[error(
        "GitHub's rate limit is exhausted; wait until it resets, or log in with `gh auth login` for a higher limit"
    )]
    RateLimited(LimitReset),
    /// The login may not see it.
    #[error(
        "GitHub denied access to {what}: {message}; check your permissions with `gh auth status`"
    )]
    Forbidden {
        /// What was asked for.
        what: String,
        /// What GitHub said.
        message: String,
    },
    /// It is not there, or not shown.
    #[error(
        "GitHub has no {what}, or your login cannot see it; check the spelling, and your access if it is private"
    )]
    NotFound {
        /// What was asked for.
        what: String,
    },
    /// GitHub rejected the request.
    #[error("GitHub rejected the request {what} (HTTP {status}): {message}; change the request")]
    Invalid {
        /// What was asked for.
        what: String,
        /// The status.
        status: u16,
        /// What GitHub said.
        message: String,
    },
    /// GitHub failed.
    #[error(
        "GitHub failed (HTTP {status}): {message}; try again later, and see https://www.githubstatus.com"
    )]
    Server {
        /// The status.
        status: u16,
        /// What GitHub said.
        message: String,
    },
    /// No answer came.
    #[error("cannot reach GitHub: {message}; check the network and the proxy")]
    Unreachable {
        /// What `gh` said.
        message: String,
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
    #[error("cannot read GitHub's response for {what}: {why}; try again")]
    Unreadable {
        /// What was asked for.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The response exceeds the limit.
    #[error("GitHub's response for {what} is larger than the limit of {limit} bytes; request less")]
    TooLarge {
        /// What was asked for.
        what: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// A name is invalid in a request.
    #[error("invalid name {name:?}; write it as GitHub shows it")]
    Unusable {
        /// The name.
        name: String,
    },
    /// The machine did not let `gh` run, or its file be written.
    #[error(
        "`gh` failed on this machine: {message}; free memory or disk space, or lift the restriction, and try again"
    )]
    NotRun {
        /// What the machine said.
        message: String,
    },
}

/// When a rate limit ends, as far as GitHub reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitReset {
    /// The instant, by GitHub's clock.
    pub at: Option<Timestamp>,
    /// The time from the response on; the better value if both are known.
    pub after: Option<Duration>,
}
