//! The `crucible` program.
fn main() {}
