//! Fakes and fixtures for tests: real servers on loopback and real repositories, never mocks of our own types.
//!
//! [`FakeOpenAi`] plays an OpenAI-compatible model server in every mode that has been seen of real ones,
//! the broken ones included. [`repo`] builds git repositories with fixed identities and dates.
//!
//! What always holds: nothing here reaches beyond loopback or outside a temporary directory, and whatever a
//! value started ends when it is dropped. A fake that cannot do what a test asked of it panics, with the reason.
#![expect(clippy::disallowed_methods, reason = "test support starts git and writes fixture files directly")]
#![expect(clippy::expect_used, clippy::panic, reason = "a broken fixture is a failed test, said at once")]

pub mod openai;
pub mod repo;
mod server;

pub use openai::{FakeOpenAi, Reply, RetryAfter, SeenRequest};
pub use repo::{RepoBuilder, TestRepo};
