//! The llm crate against real servers on loopback, real files and real processes.
#![expect(clippy::disallowed_methods, reason = "tests write fixtures and read back what was written")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper of a test fails the test that calls it")]

mod budget;
mod cassette;
mod claude_cli;
mod gateway;
mod retry;
mod secrets;
mod selection;
mod support;
