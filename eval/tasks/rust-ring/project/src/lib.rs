//! A ring of the last values.

use std::collections::VecDeque;

/// Holds at most `size` values.
pub struct Ring<T> {
    size: usize,
    values: VecDeque<T>,
}

impl<T> Ring<T> {
    /// An empty ring.
    pub fn new(size: usize) -> Self {
        Self { size, values: VecDeque::new() }
    }

    /// Adds a value; gives back the one that had to go.
    pub fn push(&mut self, value: T) -> Option<T> {
        if self.values.len() >= self.size {
            return Some(value);
        }
        self.values.push_back(value);
        None
    }

    /// The values, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }
}
