//! `crucible spec`, `crucible resume` and `crucible status`: a spec from idea to final, phase by phase.

pub(crate) mod fixups;
pub(crate) mod hooks;
pub(crate) mod ignored;
pub(crate) mod place;
mod progress;
pub(crate) mod resume;
mod show;
pub(crate) mod sources;
pub(crate) mod start;
pub(crate) mod status;
mod work;
