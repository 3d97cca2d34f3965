//! The rules, one file each; the list that runs is [`RULES`](super::RULES).

pub(super) mod circles;
pub(super) mod codes;
pub(super) mod conformance;
pub(super) mod dependencies;
pub(super) mod edges;
pub(super) mod effects;
pub(super) mod file_length;
pub(super) mod lints;
pub(super) mod module_docs;
pub(super) mod names;
pub(super) mod prose;
pub(super) mod reachability;
pub(super) mod words;
