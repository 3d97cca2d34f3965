//! Names that are there and like the one that was asked for.

use similar::get_close_matches;

/// How many names of a directory are looked at.
pub(crate) const MOST_NAMES: usize = 2_000;

/// How many names are told.
pub(crate) const TOLD: usize = 5;

/// How alike two names have to be.
const ALIKE: f32 = 0.6;

/// The names, among `there`, that are most like `wanted`, capitals aside: five at most, in the order of `there`; none where none is like it.
pub(crate) fn nearest<'a>(wanted: &str, there: &[&'a str]) -> Vec<&'a str> {
    let lower: Vec<String> = there.iter().map(|name| name.to_lowercase()).collect();
    let all: Vec<&str> = lower.iter().map(String::as_str).collect();
    let near = get_close_matches(wanted.to_lowercase().as_str(), &all, TOLD, ALIKE);
    let told = there.iter().zip(&all).filter(|(_, lower)| near.contains(lower));
    told.map(|(name, _)| *name).take(TOLD).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_alike_are_told_whatever_their_capitals_and_no_others() {
        let there = ["Export-Date", "export-data", "zebra"];
        assert_eq!(nearest("EXPROT-DATA", &there), ["Export-Date", "export-data"]);
        assert_eq!(nearest("zebras", &there), ["zebra"]);
        assert!(nearest("q", &there).is_empty());
        let many: Vec<String> = (0..30).map(|number| format!("many-{number:02}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(nearest("many-x", &many).len(), TOLD);
    }
}
