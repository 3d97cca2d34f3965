//! The roles of a run that Crucible serves itself, and the prompts for roles served by models.
//!
//! A role is a contract: it reads named artifacts and writes one. No role judges its own work.

pub(crate) mod agent_prompt;
pub(crate) mod chair;
pub(crate) mod declined;
pub(crate) mod format;
pub(crate) mod librarian;
pub(crate) mod objector;
pub(crate) mod patchmaker;
pub(crate) mod prompts;
pub(crate) mod request;
pub(crate) mod reviewers;
