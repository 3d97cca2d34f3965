//! The real `claude`, `gemini` and `codex` programs, run by their providers with a local server that
//! simulates every mode of the real APIs: the result of a call, its cost, and what is never sent.
//!
//! `cargo xtask test` installs the programs. None of these tests needs a key or leaves the machine.
#![expect(
    clippy::disallowed_methods,
    reason = "tests write fixtures, and read which processes are left"
)]
#![expect(
    clippy::expect_used,
    reason = "a helper of a test fails the test that calls it"
)]

mod exhaustive;
mod smoke;
mod support;
