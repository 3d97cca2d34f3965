//! Versions of programs.

use std::cmp::Ordering;

/// Compares two versions such as `1.2.3`.
pub fn compare(first: &str, second: &str) -> Ordering {
    first.cmp(second)
}
