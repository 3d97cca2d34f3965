//! The keywords of all rules, and two equivalent ways to find them.
//!
//! A small table says whether a keyword may begin with three given bytes. If so, the keywords with the same
//! first two bytes are compared. The table is cheap to build and enough for a receipt or a command line. An
//! automaton over all keywords is faster per byte but takes some milliseconds to build. It is built once
//! enough bytes were searched.
//!
//! Invariants: ASCII case is ignored, the work is linear in the text, and which of the two ways was taken
//! changes nothing but the time.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

/// From this many bytes on, all searches together, the automaton pays.
const PAYS: usize = 256 * 1024;

/// The table has two to this many places.
const PLACES: u32 = 15;

/// A keyword match and one of its rules.
pub(crate) type Hit = (Range<usize>, usize);

/// The keywords of all rules.
pub(crate) struct Keywords {
    /// In lower case, each once, in order, with the rules that each belongs to.
    known: Vec<(Vec<u8>, Vec<usize>)>,
    longest: usize,
    /// A bit for each place of three bytes with which a keyword begins.
    begins: Box<[u64]>,
    /// `None` inside if the automaton cannot be built; the table is used then.
    automaton: OnceLock<Option<AhoCorasick>>,
    searched: AtomicUsize,
}

impl Keywords {
    /// The keywords of these rules, in their order; each has at least two bytes.
    pub(crate) fn new<'k>(rules: impl IntoIterator<Item = &'k [String]>) -> Self {
        let mut rules_of: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
        for (index, keywords) in rules.into_iter().enumerate() {
            for keyword in keywords {
                let rules = rules_of
                    .entry(keyword.to_ascii_lowercase().into_bytes())
                    .or_default();
                // Two spellings of one keyword are one keyword.
                if rules.last() != Some(&index) {
                    rules.push(index);
                }
            }
        }
        let mut begins = vec![0_u64; 1 << (PLACES - u64::BITS.ilog2())].into_boxed_slice();
        let mut mark = |three: [u8; 3]| {
            let (word, bit) = place(three);
            begins[word] |= bit;
        };
        for keyword in rules_of.keys() {
            match keyword[..] {
                [first, second, third, ..] => mark([first, second, third]),
                [first, second] => (0..=u8::MAX).for_each(|third| mark([first, second, third])),
                _ => {}
            }
        }
        Self {
            longest: rules_of.keys().map(Vec::len).max().unwrap_or(0),
            known: rules_of.into_iter().collect(),
            begins,
            automaton: OnceLock::new(),
            searched: AtomicUsize::new(0),
        }
    }

    /// Appends every keyword that begins within `within`, with each rule that it belongs to, ordered by begin and rule.
    pub(crate) fn find(&self, buffer: &[u8], within: Range<usize>, hits: &mut Vec<Hit>) {
        match self.automaton_if_it_pays(within.len()) {
            Some(automaton) => self.run(automaton, buffer, within, hits),
            None => self.compare(buffer, within, hits),
        }
        hits.sort_unstable_by_key(|(range, rule)| (range.start, *rule, range.end));
    }

    fn automaton_if_it_pays(&self, more: usize) -> Option<&AhoCorasick> {
        if let Some(made) = self.automaton.get() {
            return made.as_ref();
        }
        let before = self.searched.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) < PAYS {
            return None;
        }
        self.automaton.get_or_init(|| self.automaton()).as_ref()
    }

    fn automaton(&self) -> Option<AhoCorasick> {
        AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(self.known.iter().map(|(keyword, _)| keyword))
            .ok()
    }

    fn run(
        &self,
        automaton: &AhoCorasick,
        buffer: &[u8],
        within: Range<usize>,
        hits: &mut Vec<Hit>,
    ) {
        let reach = buffer.len().min(within.end + self.longest);
        for hit in automaton.find_overlapping_iter(&buffer[within.start..reach]) {
            let range = within.start + hit.start()..within.start + hit.end();
            if range.start < within.end {
                let (_, rules) = &self.known[hit.pattern().as_usize()];
                hits.extend(rules.iter().map(|rule| (range.clone(), *rule)));
            }
        }
    }

    fn compare(&self, buffer: &[u8], within: Range<usize>, hits: &mut Vec<Hit>) {
        let text = &buffer[within.start..buffer.len().min(within.end + 2)];
        for (at, three) in text.windows(3).enumerate() {
            let (word, bit) = place([three[0], three[1], three[2]]);
            if self.begins[word] & bit != 0 {
                self.compare_at(buffer, within.start + at, hits);
            }
        }
        // The last two bytes of the buffer are not followed by a third one.
        for at in within.start + text.len().saturating_sub(2)..within.end {
            self.compare_at(buffer, at, hits);
        }
    }

    fn compare_at(&self, buffer: &[u8], at: usize, hits: &mut Vec<Hit>) {
        let [first, second, ..] = buffer[at..] else {
            return;
        };
        let two = [first.to_ascii_lowercase(), second.to_ascii_lowercase()];
        let from = self
            .known
            .partition_point(|(keyword, _)| keyword[..2] < two[..]);
        for (keyword, rules) in self.known[from..]
            .iter()
            .take_while(|(keyword, _)| keyword[..2] == two)
        {
            let range = at..at + keyword.len();
            if buffer
                .get(range.clone())
                .is_some_and(|found| found.eq_ignore_ascii_case(keyword))
            {
                hits.extend(rules.iter().map(|rule| (range.clone(), *rule)));
            }
        }
    }
}

/// Returns the table bit for three bytes. Both cases of a letter share a bit and other bytes may too: a set
/// bit only means that a keyword may begin here.
fn place(three: [u8; 3]) -> (usize, u64) {
    let number = u32::from_be_bytes([0, three[0], three[1], three[2]]) | 0x20_2020;
    let place = number.wrapping_mul(0x9e37_79b1) >> (u32::BITS - PLACES);
    ((place / u64::BITS) as usize, 1 << (place % u64::BITS))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::rule;
    use crate::scanner::BUILTIN_RULES;

    /// Returns the keywords of the built-in rules, one of which has two bytes.
    fn builtin() -> Keywords {
        let rules = rule::built_in_rules(BUILTIN_RULES);
        Keywords::new(rules.iter().map(|rule| &rule.keywords[..]))
    }

    fn words() -> Vec<String> {
        rule::built_in_rules(BUILTIN_RULES)
            .into_iter()
            .flat_map(|rule| rule.keywords)
            .collect()
    }

    /// Every keyword by looking at every place for each.
    fn naive(words: &Keywords, buffer: &[u8], within: Range<usize>) -> Vec<Hit> {
        let mut hits = Vec::new();
        let lower = buffer.to_ascii_lowercase();
        for at in within {
            for (keyword, rules) in &words.known {
                if lower[at..].starts_with(keyword) {
                    hits.extend(rules.iter().map(|rule| (at..at + keyword.len(), *rule)));
                }
            }
        }
        hits.sort_unstable_by_key(|(range, rule)| (range.start, *rule, range.end));
        hits
    }

    fn sorted(find: impl FnOnce(&mut Vec<Hit>)) -> Vec<Hit> {
        let mut hits = Vec::new();
        find(&mut hits);
        hits.sort_unstable_by_key(|(range, rule)| (range.start, *rule, range.end));
        hits
    }

    /// Keywords in any case, whole and cut off, among filler, one after another.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let word = (proptest::sample::select(words()), any::<u64>(), 1_usize..80).prop_map(
            |(word, upper, length)| {
                let of = |(at, byte): (usize, u8)| match upper >> (at % 64) & 1 {
                    0 => byte.to_ascii_lowercase(),
                    _ => byte.to_ascii_uppercase(),
                };
                word.bytes()
                    .enumerate()
                    .map(of)
                    .take(length)
                    .collect::<Vec<u8>>()
            },
        );
        let filler = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..6),
            "[ -~]{0,8}".prop_map(String::into_bytes),
        ];
        proptest::collection::vec(prop_oneof![3 => word, 1 => filler], 0..12)
            .prop_map(|parts| parts.concat())
    }

    mod properties {
        use super::*;

        proptest! {
            #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

            #[test]
            fn both_ways_find_every_keyword(text in text(), from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()) {
                static BOTH: LazyLock<(Keywords, AhoCorasick)> = LazyLock::new(|| {
                    let words = builtin();
                    let automaton = words.automaton().unwrap();
                    (words, automaton)
                });
                let (words, automaton) = &*BOTH;
                let (from, to) = (from.index(text.len() + 1), to.index(text.len() + 1));
                for within in [0..text.len(), from.min(to)..from.max(to)] {
                    let all = naive(words, &text, within.clone());
                    prop_assert_eq!(&sorted(|hits| words.compare(&text, within.clone(), hits)), &all);
                    prop_assert_eq!(&sorted(|hits| words.run(automaton, &text, within.clone(), hits)), &all);
                }
            }
        }
    }

    #[test]
    fn keyword_at_end_is_found_in_any_case() {
        let words = builtin();
        for word in self::words() {
            for word in [word.to_ascii_lowercase(), word.to_ascii_uppercase()] {
                for before in ["", "a", "ab", "abc"] {
                    let text = format!("{before}{word}");
                    let hits = sorted(|hits| words.compare(text.as_bytes(), 0..text.len(), hits));
                    let full_range = before.len()..text.len();
                    assert!(
                        hits.iter().any(|(range, _)| *range == full_range),
                        "{text}: {hits:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_automaton_is_made_only_when_it_pays() {
        let words = builtin();
        let piece = vec![b'x'; PAYS / 4];
        for _ in 0..3 {
            words.find(&piece, 0..piece.len(), &mut Vec::new());
            assert!(words.automaton.get().is_none());
        }
        words.find(&piece, 0..piece.len(), &mut Vec::new());
        assert!(words.automaton.get().is_some());
    }
}
