//! The outside world, as values that are passed in.
//!
//! This crate owns every write to the file system, the environment, the clock, randomness from the
//! kernel and HTTP. No other crate does these things, so the reader of a
//! signature elsewhere sees what the code behind it can touch.
//!
//! What always holds: a file written for others to read is written whole or not at all; a limit that
//! is hit is an error, not a shorter answer.

pub mod clock;
pub mod env;
mod exit_status;
pub mod fs;
pub mod http;
pub mod lock;
pub mod process;
pub mod random;
pub mod walk;
pub mod words;
mod work_dir;

pub use work_dir::WorkDir;
