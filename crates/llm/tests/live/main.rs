//! The llm crate with a real local model: `cargo xtask test --live` starts its server and runs these
//! tests.
//!
//! Questions are short (at most 256 tokens) and answers bounded. The tests check Crucible's handling of
//! an answer, and as little as possible of a small model's knowledge. Each test prints a summary line,
//! even if it fails. Without the server, or where real models are forbidden, every test fails with that
//! message; none is skipped.
#![expect(
    clippy::disallowed_methods,
    reason = "tests read where the server is and write their summary"
)]
#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test that calls it"
)]

mod claude_cli;
mod gateway;
mod support;
