//! The errors of GitHub calls.

use std::time::Duration;

use crucible_repo::GhError;

/// Why a GitHub call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitHubError {
    /// The rate limit is exhausted; waiting did not help, or would take too long.
    #[error(
        "GitHub's rate limit is exhausted{}; try again later, or log in with `gh auth login` for a higher limit",
        until(*reset_in)
    )]
    RateLimited {
        /// The time until it is reset, if GitHub stated it.
        reset_in: Option<Duration>,
    },
    /// It does not exist, or is not visible.
    #[error(
        "GitHub has no {what}, or does not show it to you; check the spelling, and that your login can see it \
        if it is private"
    )]
    NotFound {
        /// The request in words.
        what: String,
    },
    /// GitHub's answer is invalid.
    #[error(
        "GitHub's answer about {what} is invalid: {why}; try again, or name another repository if it persists"
    )]
    Odd {
        /// The request in words.
        what: String,
        /// What is wrong with the answer.
        why: String,
    },
    /// Any other error: `gh` is missing or not logged in, the network failed, or GitHub refused.
    #[error(transparent)]
    Gh(GhError),
}

impl GitHubError {
    /// Converts an error of a request about `what`, a description for people.
    pub(super) fn from_gh(error: GhError, what: &str) -> Self {
        match error {
            GhError::NotFound { .. } => Self::NotFound {
                what: what.to_owned(),
            },
            // The caller knows the time; without it the value is unknown.
            GhError::RateLimited(reset) => Self::RateLimited {
                reset_in: reset.after,
            },
            other => Self::Gh(other),
        }
    }
}

fn until(reset_in: Option<Duration>) -> String {
    match reset_in.map(|left| left.as_secs()) {
        Some(0) => String::new(),
        Some(seconds @ 1..120) => format!(" for {seconds} s more"),
        Some(seconds) => format!(" for {} min more", seconds.div_ceil(60)),
        None => String::new(),
    }
}
