//! The roles of a run that Crucible serves itself, and the words with which it asks a model to serve the others.
//!
//! A role is a contract: it reads named artifacts and writes one. None of them judges its own work.

pub(crate) mod chair;
pub(crate) mod format;
pub(crate) mod librarian;
pub(crate) mod patchmaker;
pub(crate) mod prompts;
pub(crate) mod request;
pub(crate) mod reviewers;
