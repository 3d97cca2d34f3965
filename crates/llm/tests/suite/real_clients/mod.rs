//! The real `claude`, `gemini` and `codex` programs, run by their providers against a server on loopback that plays
//! the APIs in every mode that real ones have: what a call returns, what it costs, and what never leaves.
//!
//! `cargo xtask test` installs the programs. None of these tests needs a key or reaches beyond loopback.
#![expect(clippy::disallowed_methods, reason = "tests write fixtures, and read which processes are left")]
#![expect(clippy::expect_used, reason = "a helper of a test fails the test that calls it")]

mod exhaustive;
mod smoke;
mod support;
