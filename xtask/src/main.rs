//! The project tooling.
fn main() {}
