//! Inspections of real trees.

#[cfg(test)]
mod trees;
