//! Fakes and fixtures for tests: real servers on loopback and real repositories, never mocks of our own types.
//!
//! [`FakeApi`] plays the model providers' APIs (OpenAI, Anthropic and Gemini, plain and streamed) in every mode
//! that has been seen of real ones, the broken ones included; the real client programs, which [`real_client`]
//! finds, talk to it as they would to their provider. [`FakeGitHub`] does the same for GitHub and the real `gh`.
//! [`repo`] builds git repositories with fixed identities and dates. [`fenced_blocks`] reads what was sent as a model is to read it.
//! [`run_scenarios`] runs folders of cases, one test each.
//! [`in_browser`] looks at pages in a real Chromium.
//! [`LiveLine`] is what a test leaves that asks a real model. [`expensive_cases`] bounds properties that start processes.
//!
//! What always holds: nothing here reaches beyond loopback or outside a temporary directory, and whatever a
//! value started ends when it is dropped. A fake that cannot do what a test asked of it panics, with the reason.
#![expect(
    clippy::disallowed_methods,
    reason = "test support starts git and writes fixture files directly"
)]
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a broken fixture is a failed test, said at once"
)]

mod anthropic;
mod browser;
mod cases;
mod clients;
mod collector;
mod council;
mod fences;
mod gemini;
mod github;
mod live;
mod loopback;
mod openai;
mod reply;
pub mod repo;
mod responses;
mod scenarios;
mod secret;
mod seen;
mod server;
mod small_disk;
mod wire;

pub use browser::{BrowserJob, in_browser};
pub use cases::expensive_cases;
pub use clients::{
    code_ipi_dir, python_agents_dir, python_tools_dir, real_client, real_clients_dir,
};
pub use collector::{CollectorManner, TraceCollector};
pub use council::{CouncilCall, council_call, simple_triage, triage};
pub use fences::{fenced_blocks, outside_of_fences};
pub use github::{
    FakeGitHub, FakeRelease, FakeReleaseKind, FakeRepo, Misbehaviour, SeenGitHubRequest, Times,
    fake_sha, tarball, tarball_of_mode,
};
pub use live::{LiveLine, live_address};
pub use reply::{Reply, RetryAfter};
pub use repo::{RepoBuilder, TestRepo};
pub use scenarios::{ScenarioSet, run_scenarios};
pub use secret::made_up_token;
pub use seen::{Endpoint, Family, SeenRequest};
pub use server::{FakeApi, FakeOpenAi};
pub use small_disk::on_a_small_disk;
