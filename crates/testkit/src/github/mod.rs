//! A GitHub for the real `gh`: a real HTTP server on a unix socket that plays the part of the REST interface that a crawl uses,
//! and misbehaves on request.
//!
//! ```text
//! let github = FakeGitHub::start([
//!     FakeRepo::new("acme/widget").stars(250).topics(&["cargo"]).release("v1.0", &[("Cargo.toml", "[package]")]),
//!     FakeRepo::new("acme/other").of_organization(),
//! ]);
//! // For a child process or an `Environment`: GH_CONFIG_DIR and GH_TOKEN. Add PATH and HOME yourself; nothing else is needed.
//! let variables: Vec<(OsString, OsString)> = github.env();
//! // The next request whose path and query contain this text gets this answer instead, once (or `Times::Always`).
//! github.misbehave("/search/repositories", Times::Once, Misbehaviour::primary_limit(reset_in_unix_seconds));
//! github.misbehave("?page=2&", Times::Always, Misbehaviour::status(500));
//! // What was asked, in order:
//! assert_eq!(github.count("/releases"), 1);
//! ```
//!
//! Played: `search/repositories` (30 a page unless `per_page` says otherwise; every word of `q` must stand in name, description or
//! topics; the most stars first, or exactly what [`FakeGitHub::search_finds`] lists, repeated names included),
//! `repos/O/R`, `repos/O/R/releases`, `repos/O/R/releases/latest`, `repos/O/R/issues/N`, `repos/O/R/commits/REF`, `repos/O/R/tarball/REF` (302 to
//! `codeload.github.com`, which serves the bytes), `rate_limit`. What is not there is 404, an unknown ref 422. Another host than these
//! two is asked below `/api/v3`, and answers the same.
//! `gh` sends its query sorted by name: `?page=2&per_page=30&q=...`.
//!
//! What always holds: every request is recorded before it is answered, and everything ends when the value is dropped.

mod archive;
mod misbehaviour;
mod repository;
mod server;

pub use archive::{tarball, tarball_of_mode};
pub use misbehaviour::{Misbehaviour, Times};
pub use repository::{FakeRelease, FakeReleaseKind, FakeRepo, fake_sha};
pub use server::{FakeGitHub, SeenGitHubRequest};
