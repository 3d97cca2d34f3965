//! Secret values that Crucible itself passed to a program. They are known, so no rule has to guess, and the
//! program's output must not contain them.
//!
//! Invariants: if one value contains another, the longer one is replaced; replacements are not scanned again;
//! the work is linear in the text.

use std::fmt;

use aho_corasick::{AhoCorasick, MatchKind};
use crucible_model::Secret;

use crate::scanner::MARKER_BEGIN;

/// Minimum length of a value in bytes, without surrounding space, that can be distinguished from other text.
pub const SHORTEST_PROVIDED: usize = 6;

/// Values that a program was handed.
#[derive(Clone)]
pub struct ProvidedValues {
    /// None where there are no values.
    finder: Option<Finder>,
}

#[derive(Clone)]
enum Finder {
    Of(AhoCorasick),
    /// It cannot be built because values are absurdly long; any text may hold one.
    Unmade,
}

impl ProvidedValues {
    /// Values to be found again, without the space around them. Those shorter than [`SHORTEST_PROVIDED`] are passed over: taking them out would
    /// only garble the text.
    #[must_use]
    pub fn new<'s>(values: impl IntoIterator<Item = &'s Secret>) -> Self {
        let values: Vec<&str> = values
            .into_iter()
            .map(|value| value.expose().trim())
            .filter(|value| value.len() >= SHORTEST_PROVIDED)
            .collect();
        if values.is_empty() {
            return Self { finder: None };
        }
        let aho_corasick = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(values);
        Self {
            finder: Some(aho_corasick.map_or(Finder::Unmade, Finder::Of)),
        }
    }

    /// Whether the bytes hold one of them.
    #[must_use]
    pub fn are_in(&self, bytes: &[u8]) -> bool {
        match &self.finder {
            None => false,
            Some(Finder::Of(finder)) => finder.is_match(bytes),
            Some(Finder::Unmade) => true,
        }
    }

    /// Returns the bytes with each value replaced by `[secret:handed-over]`.
    #[must_use]
    pub fn out_of(&self, bytes: &[u8]) -> Vec<u8> {
        let marker = format!("{MARKER_BEGIN}handed-over]");
        let finder = match &self.finder {
            None => return bytes.to_vec(),
            Some(Finder::Of(finder)) => finder,
            Some(Finder::Unmade) => return marker.into_bytes(),
        };
        let mut out = Vec::with_capacity(bytes.len());
        finder.replace_all_with_bytes(bytes, &mut out, |_, _, out| {
            out.extend_from_slice(marker.as_bytes());
            true
        });
        out
    }

    /// [`Self::out_of`] for a text.
    #[must_use]
    pub fn out_of_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.out_of(text.as_bytes())).into_owned()
    }
}

impl fmt::Debug for ProvidedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProvidedValues(…)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(values: &[&str]) -> ProvidedValues {
        let values: Vec<Secret> = values
            .iter()
            .map(|value| Secret::new((*value).to_owned()))
            .collect();
        ProvidedValues::new(&values)
    }

    #[test]
    fn values_are_replaced_whole_and_once() {
        let provided_values = keys(&["secret", "a-secret-value", "handed-over"]);
        let text = "a-secret-value, secret; a-secret";
        assert_eq!(
            provided_values.out_of_text(text),
            "[secret:handed-over], [secret:handed-over]; a-[secret:handed-over]"
        );
        assert_eq!(
            keys(&["key-of-ours"]).out_of(b"\xff key-of-ours\n"),
            b"\xff [secret:handed-over]\n"
        );
    }

    #[test]
    fn short_values_and_space_are_ignored() {
        let provided_values = keys(&["  long-enough\n", "short", "   a   ", ""]);
        assert!(provided_values.are_in(b"x=long-enough;"));
        assert!(!provided_values.are_in(b"short a  a   "));
        assert_eq!(provided_values.out_of(b"short a"), b"short a");
        assert!(!keys(&[]).are_in(b"anything"));
        assert_eq!(format!("{provided_values:?}"), "ProvidedValues(…)");
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn no_known_value_remains(values in prop::collection::vec("[ab]{6,9}", 1..4), text in "[ab ]{0,60}") {
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                let provided_values = keys(&values);
                let out = provided_values.out_of_text(&text);
                prop_assert!(!provided_values.are_in(out.as_bytes()), "{out}");
                prop_assert_eq!(provided_values.are_in(text.as_bytes()), out != text);
            }
        }
    }
}
