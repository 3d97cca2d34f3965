//! The llm crate against a real model, on this machine: `cargo xtask test --live` starts its server and runs this.
//!
//! Questions are short (at most 256 tokens) and answers bounded. What is checked is what Crucible makes of an answer,
//! and as little as possible of what a small model knows. Each test leaves a line of summary, also when it fails.
//! Started without the server, or where real models are forbidden, every test fails and says so; none skips.
#![expect(clippy::disallowed_methods, reason = "tests read where the server is and write their summary")]
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test that calls it")]

mod claude_cli;
mod gateway;
mod support;
