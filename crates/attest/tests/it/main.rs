//! Statements signed by the real `ssh-keygen`, and everything that must not pass as one.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start ssh-keygen and an agent, and look at files"
)]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod approval;
mod hardware;
mod keys;
mod mutations;
mod sample;
mod schema;
