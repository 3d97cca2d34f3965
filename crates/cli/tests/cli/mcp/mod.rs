//! `crucible mcp`: coding agents that call Crucible as a tool.

mod client;
mod clients;
mod http;
mod patches;
mod protocol;
mod runs;
