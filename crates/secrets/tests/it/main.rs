//! The secrets crate from outside: hostile input, and streams that are cut anywhere.

mod hostile;
mod streams;
