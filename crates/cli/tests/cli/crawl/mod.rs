//! `crucible crawl` as a user meets it: the real binary, the real `gh` before a GitHub on a unix socket, the real git
//! before repositories of this machine, and model servers on loopback for both owners.

mod command_line;
mod ends;
mod menu;
mod network;
mod output;
mod pipeline;
pub(crate) mod support;
pub(crate) mod terminal;
mod traces;
mod validate;
