//! Why GitHub has no answer for a crawl.

use std::time::Duration;

use crucible_repo::GhError;

/// Why GitHub has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitHubError {
    /// The rate limit is exhausted and waiting did not help, or would take too long.
    #[error(
        "GitHub's rate limit is exhausted{}; try again later, or log in with `gh auth login` for a higher limit",
        until(*reset_in)
    )]
    RateLimited {
        /// How long until it is reset, where GitHub said so.
        reset_in: Option<Duration>,
    },
    /// It is not there, or not shown.
    #[error(
        "GitHub has no {what}, or does not show it to you; check the spelling, and that your login can see it \
        if it is private"
    )]
    NotFound {
        /// What was asked for.
        what: String,
    },
    /// GitHub answered with something that cannot be true.
    #[error(
        "GitHub's answer about {what} is invalid: {why}; try again, or name another repository if it persists"
    )]
    Odd {
        /// What was asked for.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// `gh` is missing or not logged in, the network does not work, or GitHub refuses: everything else.
    #[error(transparent)]
    Gh(GhError),
}

impl GitHubError {
    /// The same error of a question about `what`, a thing as people name it.
    pub(super) fn from_gh(error: GhError, what: &str) -> Self {
        match error {
            GhError::NotFound { .. } => Self::NotFound { what: what.to_owned() },
            // The caller knows the time; whoever comes here without it does not.
            GhError::RateLimited(reset) => Self::RateLimited { reset_in: reset.after },
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
