//! Numbers of things, as people write them.

/// Formats a count with its noun: `1 file`, `0 files`, `12 files`. Only for nouns whose plural adds an `s`.
#[must_use]
pub fn counted(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_all_else_plural() {
        let texts: Vec<String> = [0, 1, 2, 11, u64::MAX]
            .map(|number| counted(number, "gate"))
            .into();
        assert_eq!(
            texts,
            [
                "0 gates",
                "1 gate",
                "2 gates",
                "11 gates",
                "18446744073709551615 gates"
            ]
        );
    }
}
