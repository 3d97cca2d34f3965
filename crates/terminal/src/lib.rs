//! Standard input, output and error of the program, and the signals that end it.
//!
//! This crate owns the three streams: [`Output`] prints results and remarks, [`input`] reads, [`prompt`] asks,
//! and [`Spinner`] shows progress. [`EventLoop`] runs the work of a command until a signal interrupts it.
//!
//! Invariants: text from outside is escaped before it is printed. Nothing here knows a use case.

mod attached;
mod blocked_write;
mod event_loop;
pub mod input;
mod output;
pub mod prompt;
mod raw_mode;
mod spinner;
mod streams;
mod table;

pub use attached::{UserInput, run_attached, user_input};
pub use blocked_write::watched;
pub use event_loop::{EventLoop, interrupted};
pub use output::{Format, Output, OutputMode, Voice};
pub use spinner::{Shared, Spinner};
pub use streams::{InputStream, OutputStream};
pub use table::{lines_of, table, wrap_to_terminal};
