//! The patch crate from outside: scenarios in folders, and the real git beside ours.

mod definitions;
mod fuzz;
mod git;
mod seed_policy;
