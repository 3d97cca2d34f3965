//! The ids of behaviours (`B012`) and of results (`R001`): a letter and three digits, or up to six without a zero in front.
//!
//! Each id has one spelling, so two texts that mean the same one are equal. Pure, and linear in the text.

/// What an id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdKind {
    /// A behaviour of the catalogue.
    Behavior,
    /// A result that is expected.
    Outcome,
}

impl IdKind {
    const fn letter(self) -> char {
        match self {
            Self::Behavior => 'B',
            Self::Outcome => 'R',
        }
    }
}

/// Whether the text is an id of this kind, to the letter.
pub(crate) fn is_id(kind: IdKind, text: &str) -> bool {
    let Some(digits) = text.strip_prefix(kind.letter()) else {
        return false;
    };
    let is_short = digits.len() == 3;
    let is_long = (4..=6).contains(&digits.len()) && !digits.starts_with('0');
    (is_short || is_long) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether the text is meant as an id of this kind: the letter, in any case, and digits.
pub(crate) fn is_meant_as_id(kind: IdKind, text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|first| first.eq_ignore_ascii_case(&kind.letter()))
        && text.len() > 1
        && chars.all(|c| c.is_ascii_digit())
}

/// Returns every id of either kind that is a separate word of the text.
pub(crate) fn ids_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| is_id(IdKind::Behavior, word) || is_id(IdKind::Outcome, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        for good in ["B000", "B012", "B999", "B1000", "B100000"] {
            assert!(
                is_id(IdKind::Behavior, good) && is_meant_as_id(IdKind::Behavior, good),
                "{good}"
            );
        }
        for bad in [
            "",
            "B",
            "B1",
            "B12",
            "B0012",
            "b012",
            "R012",
            "B1234567",
            "B01a",
            "B０１２",
            "B012 ",
        ] {
            assert!(!is_id(IdKind::Behavior, bad), "{bad}");
        }
        assert!(is_meant_as_id(IdKind::Behavior, "b7") && !is_meant_as_id(IdKind::Behavior, "B2B"));
        assert!(is_id(IdKind::Outcome, "R001") && !is_meant_as_id(IdKind::Outcome, "R"));
    }

    #[test]
    fn ids_are_words_of_their_own() {
        let found: Vec<&str> = ids_in("R001, (B012): xB013 B014_a R002.B015-B016 R1").collect();
        assert_eq!(found, ["R001", "B012", "R002", "B015", "B016"]);
    }
}
