//! Ids in a text: `R-001`, `T-012`, `F-003`.
//!
//! An id is a letter, `-` and digits, standing by itself; `R-1` and `R-001` are the same one. Code gives ids out; a model only
//! repeats them.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// The highest number that a heading or an entry can carry. Longer ones are no ids of ours.
pub(crate) const HIGHEST: u32 = 999_999;

/// The id of a requirement, stable for as long as the spec lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequirementId(pub(crate) u32);

impl fmt::Display for RequirementId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "R-{:03}", self.0)
    }
}

/// What an entry says that its id is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lead {
    /// This one.
    Numbered(u32),
    /// `R-NEW`: code is to give it one.
    New,
}

/// The id that a title or an entry begins with, and what follows it and its colon.
pub(crate) fn leading(text: &str, letter: char) -> Option<(Lead, &str)> {
    let text = text.trim_start().trim_start_matches(['*', '`', '[']);
    let rest = text.strip_prefix(letter).or_else(|| text.strip_prefix(letter.to_ascii_lowercase()))?;
    let dashed = rest.strip_prefix('-');
    let rest = dashed.unwrap_or(rest);
    let (lead, rest) = match rest.get(..3).filter(|word| dashed.is_some() && word.eq_ignore_ascii_case("new"))
    {
        Some(word) => (Lead::New, rest.get(word.len()..)?),
        None => {
            let (number, rest) = number(rest)?;
            (Lead::Numbered(number).filter_highest()?, rest)
        }
    };
    if rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let rest = rest.trim_start_matches(['*', '`', ']']).trim_start();
    let rest = rest.strip_prefix([':', '.', '-', '–', '—']).unwrap_or(rest);
    Some((lead, rest.trim_start_matches(['*', '`']).trim()))
}

/// Where a text names ids with this letter, and which; a number beyond all of ours is [`u32::MAX`].
pub(crate) fn mentions(text: &str, letter: char) -> impl Iterator<Item = (Range<usize>, u32)> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let at = from + text.get(from..)?.find(letter)?;
            let behind = at + letter.len_utf8();
            from = behind;
            let before = text.get(..at).and_then(|text| text.chars().next_back());
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '-' | '_')) {
                continue;
            }
            let Some(rest) = text.get(behind..).and_then(|rest| rest.strip_prefix('-')) else { continue };
            let Some((number, rest)) = number(rest) else { continue };
            from = text.len() - rest.len();
            if !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
                return Some((at..from, number));
            }
        }
    })
}

/// The numbers of the ids that a text names.
pub(crate) fn named(text: &str, letter: char) -> BTreeSet<u32> {
    mentions(text, letter).map(|(_, number)| number).collect()
}

/// The ids as a list: `R-001, R-002`.
pub(crate) fn listed(numbers: impl IntoIterator<Item = u32>, letter: char) -> String {
    let ids: Vec<_> = numbers.into_iter().map(|number| shown(number, letter)).collect();
    ids.join(", ")
}

/// An id as it is written.
pub(crate) fn shown(number: u32, letter: char) -> String {
    format!("{letter}-{number:03}")
}

fn number(text: &str) -> Option<(u32, &str)> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.get(..text.len() - rest.len()).filter(|digits| !digits.is_empty())?;
    Some((digits.parse().unwrap_or(u32::MAX), rest))
}

impl Lead {
    fn filter_highest(self) -> Option<Self> {
        (!matches!(self, Self::Numbered(number) if number > HIGHEST)).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_stands_by_itself() {
        let text = "R-001, (R-2) **R-003**: USR-4 PR-5 xR-6 R-7a R-8_b r-9 R- R-x R-010R-011 R-99999999999. äR-12 R-13";
        assert_eq!(named(text, 'R'), BTreeSet::from([1, 2, 3, 13, u32::MAX]));
        assert_eq!(named("T-001 R-001", 'T'), BTreeSet::from([1]));
    }

    #[test]
    fn a_title_begins_with_its_id_in_many_spellings() {
        for text in [
            "R-001: A b",
            "R-1 - A b",
            "**R-001**: A b",
            "R-001 — A b",
            "[R-001] A b",
            "r-001. A b",
            "R001: A b",
            "`R-001` A b",
        ] {
            assert_eq!(leading(text, 'R'), Some((Lead::Numbered(1), "A b")), "{text:?}");
        }
        assert_eq!(leading("R-NEW: A", 'R'), Some((Lead::New, "A")));
        assert_eq!(leading("R-001", 'R'), Some((Lead::Numbered(1), "")));
        for text in ["Rnew: A", "Reset", "R", "", "R-9999999: A", "R-1st", "T-001: A", "Rä", "R-né"] {
            assert_eq!(leading(text, 'R'), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_written_the_same(number in 0..=HIGHEST, text in "\\PC{0,60}") {
            prop_assert_eq!(named(&shown(number, 'R'), 'R'), BTreeSet::from([number]));
            for (range, _) in mentions(&text, 'R') {
                prop_assert!(text.get(range).unwrap().starts_with("R-"));
            }
            let _ = leading(&text, 'R');
        }
    }
}
