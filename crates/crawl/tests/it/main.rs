//! The crawl crate from outside: real trees and databases, the real `gh` and git, shells, and servers
//! that simulate the models.
#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test that calls it"
)]

mod debate;
mod ears;
mod fake_github;
mod fetch;
mod github;
mod inspect;
mod records;
mod safety;
