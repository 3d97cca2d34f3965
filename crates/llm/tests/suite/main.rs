//! The llm crate against real servers on loopback, real files and real processes.
#![expect(
    clippy::disallowed_methods,
    reason = "tests write fixtures and read back what was written"
)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of a test fails the test that calls it"
)]

mod advice;
mod anthropic;
mod budget;
mod cassette;
mod claude_cli;
mod codex_cli;
mod controlled;
mod doctor;
mod fallback;
mod gateway;
mod gemini_cli;
mod hostile_programs;
mod http_bad_input;
mod http_pool;
mod http_secrets;
mod offered;
mod openai;
mod openrouter;
mod raw_server;
mod real_clients;
mod retry;
mod secrets;
mod selection;
mod stand;
mod support;
mod watch;
mod wire_order;
