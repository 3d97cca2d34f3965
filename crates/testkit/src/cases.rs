//! The number of cases for properties whose cases are expensive.
//!
//! `cargo xtask test` sets `PROPTEST_CASES`, which proptest reads itself. A property that starts a process or flushes files in
//! each case takes a fixed share of that number instead.

/// Cases of ordinary properties for one expensive case.
const SHARE: u32 = 32;

/// Expensive cases at least.
const MINIMUM: u32 = 4;

/// proptest's own default, where the variable is not set.
const DEFAULT: u32 = 256;

/// Returns how many cases a property tries that starts a process or flushes files in each case.
///
/// # Panics
///
/// When `PROPTEST_CASES` is not a number.
#[must_use]
pub fn expensive_cases() -> u32 {
    expensive_of(std::env::var("PROPTEST_CASES").ok().as_deref())
}

fn expensive_of(cases: Option<&str>) -> u32 {
    let cases = cases.map_or(DEFAULT, |text| {
        text.parse().expect("PROPTEST_CASES is a number")
    });
    (cases / SHARE).max(MINIMUM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expensive_cases_follow_proptest_cases_with_a_minimum() {
        assert_eq!(expensive_of(Some("32")), MINIMUM);
        assert_eq!(expensive_of(None), 8);
        assert_eq!(expensive_of(Some("4096")), 128);
    }
}
