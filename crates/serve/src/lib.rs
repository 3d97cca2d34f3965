//! The local page and the one-file report: what `view` reads, as HTML and Markdown.
//!
//! [`html_report`] and [`markdown_report`] make one file of a run. [`PageServer`] serves the same templates on loopback.
//!
//! What always holds: each value in a template is escaped, and the only text that is not is our own style sheet; nothing is
//! loaded from elsewhere; the server answers only requests for its own address that have its session's cookie. It changes
//! nothing itself: a confirmed action goes to the program that started it, and only if that allows it.

mod access;
mod actions;
mod chart;
mod connections;
mod error;
mod exit_status;
mod format;
mod live;
mod markdown;
mod pages;
mod project;
mod project_pages;
mod query;
mod report;
mod server;

pub use actions::{PageRights, RunAction, RunActionKind};
pub use error::ServeError;
pub use markdown::markdown_report;
pub use project::{
    ProjectDocument, ProjectQuery, ProjectReader, ProjectRequest, ProjectRequests, project_requests,
};
pub use report::html_report;
pub use server::{PageServer, ServeOptions};
