//! Shapes.

use std::fmt;

/// A shape.
#[derive(Debug, Clone)]
pub struct Shape {
    width: u32,
    height: u32,
}

impl Shape {

    /// Its area.
    #[must_use]
    pub fn area(&self) -> u32 {
        self.width * self.height
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.width)
    }
}
