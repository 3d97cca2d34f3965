//! Shares of a whole.

/// The share of `part` in `whole`, in whole percent.
pub fn percent(part: u64, whole: u64) -> u8 {
    (part * 100 / whole) as u8
}
