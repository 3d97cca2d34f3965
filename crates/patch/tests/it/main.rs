//! The patch crate from outside: scenarios in folders, and the real git beside ours.

mod fuzz;
mod git;
mod scenarios;
mod splices;
