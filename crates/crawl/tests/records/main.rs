//! What a crawl remembers and writes down, with real databases, real directories, the real `gh` and real processes.

#[cfg(test)]
mod common;
#[cfg(test)]
#[path = "../common/ears.rs"]
mod ears;
#[cfg(test)]
mod export;
#[cfg(test)]
#[path = "../common/fake_github.rs"]
mod fake_github;
#[cfg(test)]
mod search;
#[cfg(test)]
mod session;
