//! Tests of the council with a real server on loopback.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of a test fails the test that calls it"
)]
#![expect(
    clippy::expect_used,
    reason = "a helper of a test fails the test that calls it"
)]

mod adapter;
mod debate;
mod loops;
mod observability;
mod parallel;
mod readme;
mod red_team;
mod sequential;
mod support;
mod surface;
mod synthesis;
mod transport;
mod triage;
