//! Shapes.

use std::fmt;

pub struct Shape {
    width: u32,
    height: u32,
}

impl Shape {
    pub fn area(&self) -> u32 {
        self.width * self.height
    }
}
