//! The protocol as the official conformance suite sees it.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the suite and look at the files it leaves"
)]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod adapter;
mod conformance;
mod forward;
