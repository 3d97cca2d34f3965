//! What an inspection says of real trees.

#[cfg(test)]
mod trees;
