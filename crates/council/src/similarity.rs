//! Text similarity: the share of word pairs that two texts have in common (Broder 1997, resemblance over
//! shingles of two words).
//!
//! Words follow Unicode's text segmentation (UAX 29), in lowercase; scripts written without spaces, such
//! as Chinese, give one word per character. A symbol such as `<` or `✅` is a word. Every two neighbouring
//! words form a shingle, and a single word forms its own; repetitions do not count. Shingles are kept as
//! sorted 64-bit hashes, so that comparing two texts takes one pass.
//!
//! Invariants: the result is symmetric, from 0 to 1, and 1 for texts with the same words and symbols in
//! the same order, whatever their case, spacing, ordinary punctuation and invisible characters. It is the
//! same in every run and on every machine. Time and memory are linear in the text length. The measure
//! compares words, not meaning: a paraphrase scores low, and one added "not" changes almost nothing.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;

use crucible_model::is_hidden;
use unicode_segmentation::UnicodeSegmentation;

use crate::delta::Positions;
use crate::grammar::LoopState;
use crate::seat::SeatId;

/// The shingles of a text, computed once for many comparisons.
pub(crate) struct Shingles {
    /// Sorted, without duplicates.
    hashes: Vec<u64>,
}

impl Shingles {
    pub(crate) fn from_text(text: &str) -> Self {
        #[cfg(test)]
        crate::trace::made::shingles();
        let seen: String = text.chars().filter(|c| is_seen(*c)).collect();
        let words: Vec<u64> = seen.split_word_bounds().flat_map(word_hashes).collect();
        let mut hashes = match words.as_slice() {
            [] | [_] => words,
            several => several.windows(2).map(hash).collect(),
        };
        hashes.sort_unstable();
        hashes.dedup();
        Self { hashes }
    }

    /// The similarity, from 0 to 1. Two texts without words have 1, one text without words has 0.
    pub(crate) fn resemblance(&self, other: &Self) -> f64 {
        let shared = shared(&self.hashes, &other.hashes);
        let all = self.hashes.len() + other.hashes.len() - shared;
        if all == 0 {
            1.0
        } else {
            shared as f64 / all as f64
        }
    }
}

/// The shingles of each seat's position.
pub(crate) type SeatShingles = BTreeMap<SeatId, Shingles>;

/// The shingles of the texts of a loop.
pub(crate) struct LoopWords {
    /// Of the positions at its end.
    pub(crate) now: SeatShingles,
    /// In a debate, of the defending seats' positions before the attack.
    pub(crate) before_attack: SeatShingles,
}

impl LoopWords {
    pub(crate) fn from_state(state: &LoopState) -> Self {
        Self {
            now: of_positions(&state.positions),
            before_attack: of_positions(&state.before_attack),
        }
    }
}

/// Computes the shingles of every position.
pub(crate) fn of_positions(positions: &Positions) -> SeatShingles {
    positions
        .iter()
        .map(|(seat, text)| (*seat, Shingles::from_text(text.as_str())))
        .collect()
}

/// Rounds a similarity to four decimals.
pub(crate) fn rounded(resemblance: f64) -> f64 {
    (resemblance * 10_000.0).round() / 10_000.0
}

/// Whether a character is visible. Invisible characters must not make the same words differ.
fn is_seen(c: char) -> bool {
    c.is_whitespace() || !(is_hidden(c) || matches!(c, '\u{200c}' | '\u{200d}'))
}

/// An unkeyed hash, the same in every process.
fn hash<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The hashes of a word in lowercase, or of each symbol between words.
fn word_hashes(piece: &str) -> Vec<u64> {
    if piece.contains(char::is_alphanumeric) {
        return vec![hash(&piece.to_lowercase())];
    }
    piece
        .chars()
        .filter(|c| is_symbol(*c))
        .map(|c| hash(&c))
        .collect()
}

/// Whether a character outside of words carries meaning, as `<` and `✅` do. Spaces, punctuation and
/// markup do not.
fn is_symbol(c: char) -> bool {
    let is_structure =
        ".,;:!?'\"()-*_`#".contains(c) || STRUCTURE.contains(c) || VARIANTS.contains(&c);
    !c.is_whitespace() && !is_structure
}

/// The same signs in other scripts and in typography.
const STRUCTURE: &str =
    "‘’‚‛“”„‟«»‹›‐‑‒–—―…·•‣¡¿،؛؟।。、，．：；！？「」『』（）《》〈〉【】・～〜";

/// Variation selectors.
const VARIANTS: RangeInclusive<char> = '\u{fe00}'..='\u{fe0f}';

/// The number of common elements of two sorted lists without duplicates.
fn shared(first: &[u64], second: &[u64]) -> usize {
    let (mut left, mut right, mut shared) = (0, 0, 0);
    while let (Some(a), Some(b)) = (first.get(left), second.get(right)) {
        left += usize::from(a <= b);
        right += usize::from(b <= a);
        shared += usize::from(a == b);
    }
    shared
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn resemblance(first: &str, second: &str) -> f64 {
        Shingles::from_text(first).resemblance(&Shingles::from_text(second))
    }

    #[test]
    fn similarity_is_share_of_common_pairs() {
        let cases = [
            ("the cat sat", "the cat sat", 1.0),
            ("the cat sat", "the cat ran", 1.0 / 3.0),
            ("a b c d e", "a b c d x", 3.0 / 5.0),
            ("a b", "b a", 0.0),
            ("yes", "yes", 1.0),
            ("yes", "no", 0.0),
            ("yes", "yes indeed", 0.0),
            ("", "", 1.0),
            ("", "word", 0.0),
            ("?!", "…", 1.0),
            ("✅", "❌", 0.0),
            ("✔", "✔\u{fe0f}", 1.0),
            ("", "✅", 0.0),
            // Of the pairs x< <= =y and x> >= =y one is shared.
            ("x <= y", "x >= y", 1.0 / 5.0),
            ("x<=y", " x\n<= (y).", 1.0),
            ("it costs 5 €", "it costs 5 $", 2.0 / 4.0),
            ("a b a b a b", "a b a", 1.0),
        ];
        for (first, second, expected) in cases {
            assert!(
                (resemblance(first, second) - expected).abs() < 1e-12,
                "{first:?} and {second:?}"
            );
        }
    }

    #[test]
    fn case_spacing_and_punctuation_do_not_count() {
        let plain = "we should keep one program and measure it";
        let dressed = "  WE should,\n\tkeep — “One” program; and MEASURE it!!\r\n";
        assert!((resemblance(plain, dressed) - 1.0).abs() < 1e-12);
        assert!((resemblance("ΟΔΟΣ ΑΘΗΝΩΝ", "οδος αθηνων") - 1.0).abs() < 1e-12);
    }

    #[test]
    fn invisible_characters_do_not_count() {
        let plain = "keep one program\nand measure it";
        let dressed = "ke\u{200b}ep o\u{ad}ne \u{202e}pro\u{200d}gram\nand\u{2028}mea\u{feff}sure it\u{e0041}";
        assert!((resemblance(plain, dressed) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn unspaced_script_is_compared_by_character() {
        let original = "我们应该保留一个程序";
        assert!((resemblance(original, "我们应该保留一个程序。") - 1.0).abs() < 1e-12);
        let turned = resemblance(original, "我们应该拆分一个程序");
        assert!(turned > 0.3 && turned < 0.7, "{turned}");
        assert!(resemblance(original, "今天天气很好") < 0.01);
    }

    #[test]
    fn megabyte_texts_compare_in_linear_time() {
        // A quadratic comparison of this many shingles would exceed the test's time limit.
        let long: String = (0..160_000_u32)
            .map(|number| format!("{number} "))
            .collect();
        assert!(long.len() > 1_000_000);
        let first = Shingles::from_text(&long);
        let second = Shingles::from_text(&format!("{long} and more"));
        assert_eq!(first.hashes.len(), 159_999);
        assert!(first.resemblance(&second) > 0.999);
    }

    #[test]
    fn similarity_rounds_to_four_decimals() {
        assert_eq!(rounded(1.0 / 3.0).to_string(), "0.3333");
        assert_eq!(rounded(2.0 / 3.0).to_string(), "0.6667");
        assert_eq!(rounded(1.0).to_string(), "1");
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn similarity_is_symmetric_and_bounded(first in "\\PC{0,80}", second in "([a-c] ?){0,20}", third in "([a-c] ?){0,20}") {
                for (one, other) in [(&first, &second), (&second, &third)] {
                    let there = resemblance(one, other);
                    prop_assert!((0.0..=1.0).contains(&there));
                    prop_assert!((there - resemblance(other, one)).abs() < f64::EPSILON);
                }
            }

            #[test]
            fn every_text_equals_itself(text in any::<String>()) {
                prop_assert!((resemblance(&text, &text) - 1.0).abs() < f64::EPSILON);
            }

            #[test]
            fn only_words_count(words in prop::collection::vec("[a-z]{1,6}", 0..30)) {
                let plain = words.join(" ");
                let dressed = words.iter().map(|word| word.to_uppercase()).collect::<Vec<_>>().join(" ,\n\u{2014} ");
                prop_assert!((resemblance(&plain, &dressed) - 1.0).abs() < f64::EPSILON);
            }
        }
    }
}
