//! Ids in a text: `R-001`, `T-012`, `F-003`.
//!
//! An id is a letter, `-` and digits, as a separate word; `R-1` and `R-001` are the same id. Code assigns
//! ids; a model only repeats them.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// The highest number in a heading or an entry. A higher one is not an id.
pub(crate) const HIGHEST: u32 = 999_999;

/// The number of digits from which a letter and a number are an id, whatever surrounds them.
const CLEAR_DIGITS: usize = 3;

/// The id of a requirement, stable during the whole life of the spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RequirementId(pub(crate) u32);

impl fmt::Display for RequirementId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "R-{:03}", self.0)
    }
}

/// The id that an entry states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lead {
    /// This id.
    Numbered(u32),
    /// `R-NEW`: code assigns one.
    New,
}

/// Parses the id at the beginning of a title or an entry, and returns the text after it and its colon.
/// Any hyphen is accepted, and for requirements also `REQ-001` and `Requirement 1`. Without a separator,
/// the id of a requirement needs three digits or a colon, because `R2` may also name something else.
pub(crate) fn leading(text: &str, letter: char) -> Option<(Lead, &str)> {
    let text = unmarked(text);
    let (text, is_worded) = match worded(text).filter(|_| letter == 'R') {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let named = text
        .strip_prefix(letter)
        .or_else(|| text.strip_prefix(letter.to_ascii_lowercase()));
    let after = named.or(is_worded.then_some(text))?;
    let rest = after
        .strip_prefix(is_hyphen)
        .or_else(|| spaced(after))
        .unwrap_or(after);
    let is_dashed = rest.len() < after.len();
    let (lead, rest) = match rest
        .get(..3)
        .filter(|word| is_dashed && word.eq_ignore_ascii_case("new"))
    {
        // Models also number new ones: `R-NEW-1`.
        Some(word) => {
            let rest = rest.get(word.len()..)?;
            let numbered = number(rest.strip_prefix(is_hyphen).unwrap_or(rest));
            (Lead::New, numbered.map_or(rest, |(_, rest)| rest))
        }
        None => {
            let (number, rest) = number(rest)?;
            (Lead::Numbered(number).filter_highest()?, rest)
        }
    };
    if continues_word(rest) {
        return None;
    }
    let is_bare = letter == 'R' && !is_worded && !is_dashed;
    if is_bare && after.len() - rest.len() < CLEAR_DIGITS && !behind_marks(rest).starts_with(':') {
        return None;
    }
    let rest = rest.trim_start_matches(['*', '`', ']']).trim_start();
    let rest = rest
        .strip_prefix([':', '.', ')', '-', '–', '—'])
        .unwrap_or(rest);
    Some((lead, rest.trim_start_matches(['*', '`']).trim()))
}

/// Whether a title begins with a malformed requirement id: `R-001a`, `R-001.2`, `1.`.
pub(crate) fn is_odd(title: &str) -> bool {
    if leading(title, 'R').is_some() {
        return false;
    }
    let text = unmarked(title);
    let digit = |text: &str| text.starts_with(char::is_numeric);
    if let Some(rest) = worded(text) {
        return digit(rest) || is_odd(rest);
    }
    if let Some((_, rest)) = number(text) {
        let behind = rest.strip_prefix([':', '.', ')']);
        return behind
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '*']) || digit(rest));
    }
    let mut letters = text.chars();
    let Some(letter) = letters
        .next()
        .filter(|c| matches!(c, 'R' | 'r') || !c.is_ascii() && c.is_alphabetic())
    else {
        return false;
    };
    let rest = letters.as_str();
    let dashed = rest
        .strip_prefix(is_hyphen)
        .map(|rest| rest.trim_start_matches(is_hyphen));
    dashed.is_some_and(digit) || letter.is_ascii() && is_odd_bare(rest)
}

/// Whether digits directly after the letter look like an id: three or more, or followed by a separator.
fn is_odd_bare(rest: &str) -> bool {
    let Some((_, behind)) = number(rest) else {
        return rest.starts_with(char::is_numeric);
    };
    let marks = behind_marks(behind);
    let token = rest.split_whitespace().next().unwrap_or_default();
    rest.len() - behind.len() >= CLEAR_DIGITS
        || token.ends_with(':')
        || marks.starts_with(['.', ')', '–', '—', ',', '/', '+', '&'])
        || marks
            .strip_prefix('-')
            .is_some_and(|rest| rest.starts_with([' ', '\t']))
}

/// The text after a number, without leading emphasis and white space.
fn behind_marks(rest: &str) -> &str {
    rest.trim_start_matches(['*', '`', ']']).trim_start()
}

/// Whether a character can separate the letter of an id from its number.
pub(crate) fn is_hyphen(c: char) -> bool {
    matches!(
        c,
        '-' | '_' | '\u{ad}' | '\u{2010}'
            ..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}'
    )
}

/// A title without leading marks.
fn unmarked(text: &str) -> &str {
    text.trim_start().trim_start_matches(['*', '`', '['])
}

/// The text after `REQ` or `Requirement` and its separator.
fn worded(text: &str) -> Option<&str> {
    let rest = ["requirement", "req"].into_iter().find_map(|word| {
        let begins = text
            .get(..word.len())
            .filter(|begin| begin.eq_ignore_ascii_case(word));
        begins.and_then(|_| text.get(word.len()..))
    })?;
    let rest = rest.trim_start_matches(|c: char| is_hyphen(c) || matches!(c, ' ' | '.' | '#'));
    let letter = rest
        .strip_prefix(['R', 'r'])
        .and_then(|rest| rest.strip_prefix(is_hyphen));
    (rest.starts_with(char::is_numeric)
        || letter.is_some_and(|rest| rest.starts_with(char::is_numeric)))
    .then_some(rest)
}

/// Parses `R 001`: a letter, a space and a number that is not part of a sentence.
fn spaced(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(' ')?;
    let (_, behind) = number(rest)?;
    let is_long = rest.len() - behind.len() >= CLEAR_DIGITS;
    (is_long || behind.trim_start().starts_with(':')).then_some(rest)
}

/// Whether the text after a number continues it as another word or number.
fn continues_word(rest: &str) -> bool {
    let mut letters = rest.chars();
    match letters.next() {
        Some(c) if c.is_alphanumeric() || c == '_' => true,
        Some('.' | ',' | '/' | '+' | '&') => {
            letters.next().is_some_and(char::is_alphanumeric)
                || rest.starts_with([',', '/', '+', '&'])
        }
        Some(c) if is_hyphen(c) => letters.next().is_some_and(char::is_numeric),
        _ => false,
    }
}

/// The positions and numbers of the ids with this letter; a number above the highest is [`u32::MAX`].
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
            let Some(rest) = text.get(behind..).and_then(|rest| rest.strip_prefix('-')) else {
                continue;
            };
            let Some((number, rest)) = number(rest) else {
                continue;
            };
            from = text.len() - rest.len();
            if !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
                return Some((at..from, number));
            }
        }
    })
}

/// The numbers of the ids that a text names.
pub(crate) fn parse_ids(text: &str, letter: char) -> BTreeSet<u32> {
    mentions(text, letter).map(|(_, number)| number).collect()
}

/// The ids as a list: `R-001, R-002`.
pub(crate) fn format_ids(numbers: impl IntoIterator<Item = u32>, letter: char) -> String {
    let ids: Vec<_> = numbers
        .into_iter()
        .map(|number| format_id(number, letter))
        .collect();
    ids.join(", ")
}

/// Formats an id.
pub(crate) fn format_id(number: u32, letter: char) -> String {
    format!("{letter}-{number:03}")
}

fn number(text: &str) -> Option<(u32, &str)> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text
        .get(..text.len() - rest.len())
        .filter(|digits| !digits.is_empty())?;
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
    fn id_inside_word_is_ignored() {
        let text = "R-001, (R-2) **R-003**: USR-4 PR-5 xR-6 R-7a R-8_b r-9 R- R-x R-010R-011 R-99999999999. äR-12 R-13";
        assert_eq!(
            parse_ids(text, 'R'),
            BTreeSet::from([1, 2, 3, 13, u32::MAX])
        );
        assert_eq!(parse_ids("T-001 R-001", 'T'), BTreeSet::from([1]));
    }

    #[test]
    fn title_begins_with_id_in_many_spellings() {
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
            assert_eq!(
                leading(text, 'R'),
                Some((Lead::Numbered(1), "A b")),
                "{text:?}"
            );
        }
        assert_eq!(leading("R-NEW: A", 'R'), Some((Lead::New, "A")));
        assert_eq!(leading("R-001", 'R'), Some((Lead::Numbered(1), "")));
        for text in [
            "Rnew: A",
            "Reset",
            "R",
            "",
            "R-9999999: A",
            "R-1st",
            "T-001: A",
            "Rä",
            "R-né",
        ] {
            assert_eq!(leading(text, 'R'), None, "{text:?}");
        }
    }

    #[test]
    fn variant_ids_parse_if_unambiguous() {
        for text in [
            "R‑001: A b",
            "R–001: A b",
            "R−1: A b",
            "R_001: A b",
            "R 001: A b",
            "R 1: A b",
            "REQ-001: A b",
            "Req 1: A b",
            "Requirement R-001: A b",
            "Requirement #1 - A b",
            "**Requirement R‑1**: A b",
        ] {
            assert_eq!(
                leading(text, 'R'),
                Some((Lead::Numbered(1), "A b")),
                "{text:?}"
            );
            assert!(!is_odd(text), "{text:?}");
        }
        for text in ["R‑NEW: A", "R_NEW: A", "R-NEW-1: A", "R-NEW2: A"] {
            assert_eq!(leading(text, 'R'), Some((Lead::New, "A")), "{text:?}");
        }
        for text in [
            "R-001a: A",
            "R-001.2: A",
            "R-001-2: A",
            "R-001, R-002: A",
            "R-99999999999: A",
            "R--001: A",
            "REQ-001b: A",
            "1. A",
            "001: A",
            "2) A",
            "1.2 A",
            "Р-001: A",
            "R-００１: A",
            "Requirement R-001a: A",
        ] {
            assert_eq!(leading(text, 'R'), None, "{text:?}");
            assert!(is_odd(text), "{text:?}");
        }
        for text in [
            "A b",
            "R is supported",
            "R 4 is supported",
            "S3 uploads",
            "T-shirts",
            "24 hours",
            "2-factor login",
            "Requirements of old",
            "Requests are few",
            "Resume",
            "é-mail",
            "",
        ] {
            assert!(!is_odd(text) && leading(text, 'R').is_none(), "{text:?}");
        }
    }

    #[test]
    fn name_resembling_an_id_is_a_title() {
        for text in [
            "R2 buckets are private",
            "R2D2 speaks",
            "r4 is supported",
            "R34 engines",
            "R2-D2 speaks",
            "R2",
        ] {
            assert_eq!(leading(text, 'R'), None, "{text:?}");
            assert!(!is_odd(text), "{text:?}");
        }
        for text in ["R2: A b", "R002 A b", "**R2**: A b", "r2 : A b", "R002"] {
            assert_eq!(
                leading(text, 'R').map(|(lead, _)| lead),
                Some(Lead::Numbered(2)),
                "{text:?}"
            );
        }
        for text in [
            "R2. A b",
            "R2 - A b",
            "R2 — A b",
            "R2) A b",
            "R1, R2: A b",
            "R2a: A b",
            "R002a A b",
        ] {
            assert_eq!(leading(text, 'R'), None, "{text:?}");
            assert!(is_odd(text), "{text:?}");
        }
        // A task or a finding always begins with its id.
        assert_eq!(
            leading("T2 write it", 'T'),
            Some((Lead::Numbered(2), "write it"))
        );
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn whatever_is_read_is_written_the_same(number in 0..=HIGHEST, text in "\\PC{0,60}") {
                prop_assert_eq!(parse_ids(&format_id(number, 'R'), 'R'), BTreeSet::from([number]));
                for (range, _) in mentions(&text, 'R') {
                    prop_assert!(text.get(range).unwrap().starts_with("R-"));
                }
                let _ = leading(&text, 'R');
            }
        }
    }
}
