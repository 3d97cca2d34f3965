//! Shapes.

use std::fmt;

/// A shape.
#[derive(Debug, Clone)]
pub struct Shape {
    width: u32,
    height: u32,
}

impl Shape {
    /// Makes one.
    pub fn new(width: u32, height: u32) -> Self {
        Self { width, height }
    }

    /// Its area.
    #[must_use]
    pub fn area(&self) -> u32 {
        self.width + self.height // wrong
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.width)
    }
}

/// Doubles.
pub fn double(x: u32) -> u32 {
    x + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn helper() -> Shape {
        Shape::new(2, 3)
    }

    #[test]
    fn area_is_a_product() {
        assert_eq!(helper().area(), 6);
    }
}
