//! Crucible as a server of the Model Context Protocol: a coding agent calls it as a tool.
//!
//! A tool is what a command is: arguments, one call of a use case, a document. [`serve_stdio`] speaks on a pair of streams,
//! [`serve_http`] on a loopback port. The protocol runs on tasks of its own ([`server`]); calls of tools come through a channel
//! to one loop ([`calls`]), because use cases borrow the program that calls them. A change is started as a process of its own
//! (`work`), so that it goes on after the server.
//!
//! What always holds: arguments with unknown fields are refused; a tool reaches the repositories of [`Reach`] and no others;
//! text from repositories and models is fenced ([`Answer`]); nothing lands unless the user's settings allow it; when the server
//! ends, nothing that a tool ran is left, except runs that were started.

mod answer;
mod arguments;
mod calls;
mod host;
mod http;
mod lines;
mod reach;
mod server;
mod session;
mod stdio;
mod tool;
mod tools;
mod work;

pub use answer::Answer;
pub use host::ToolHost;
pub use http::{HttpAccess, HttpServer, serve_http};
pub use reach::Reach;
pub use server::Server;
pub use stdio::serve_stdio;
