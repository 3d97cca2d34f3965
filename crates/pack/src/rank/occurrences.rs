//! Finds all occurrences of patterns in a text, overlapping ones included.
//!
//! An automaton reads one byte after the other, and each step waits for the one before it. So a text is read
//! as four parts side by side: the processor takes a step in each of them while it would wait for one. Each
//! part but the first begins so much earlier that no pattern can lie across its beginning unseen; what ends
//! before the part belongs to the part before it.
//!
//! What always holds: every occurrence is reported once, whatever the parts, in no particular order.

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, MatchKind};

/// How many parts are read side by side.
const PARTS: usize = 4;

/// Patterns in lower case, ready to be looked for. ASCII letters match in either case.
#[derive(Debug)]
pub(super) struct Occurrences {
    automaton: DFA,
}

impl Occurrences {
    /// Nothing where there are no patterns, or more than an automaton holds.
    pub(super) fn from_patterns<'a>(
        patterns: impl ExactSizeIterator<Item = &'a str>,
    ) -> Option<Self> {
        if patterns.len() == 0 {
            return None;
        }
        let automaton = DFA::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .prefilter(false)
            .build(patterns)
            .ok()?;
        Some(Self { automaton })
    }

    /// Tells the number of the pattern, its beginning and its end for every occurrence in `text`.
    pub(super) fn each(&self, text: &[u8], mut found: impl FnMut(usize, usize, usize)) {
        let Ok(start) = self.automaton.start_state(Anchored::No) else {
            return;
        };
        let mut part = text.len() / PARTS;
        if part <= self.automaton.max_pattern_len() {
            part = 0;
        }
        let mut states = [start; PARTS];
        for (number, state) in states.iter_mut().enumerate() {
            *state = self.after(start, self.up_to(text, number * part));
        }
        let [one, two, three, four] = std::array::from_fn(|number| &text[number * part..][..part]);
        for (at, (((one, two), three), four)) in
            one.iter().zip(two).zip(three).zip(four).enumerate()
        {
            for (state, byte) in states.iter_mut().zip([one, two, three, four]) {
                *state = self.automaton.next_state(Anchored::No, *state, *byte);
            }
            // Nearly every step ends here, so all four are asked at once.
            if states
                .into_iter()
                .fold(false, |any, state| any | self.automaton.is_special(state))
            {
                for (number, state) in states.into_iter().enumerate() {
                    self.report_matches(state, number * part + at + 1, &mut found);
                }
            }
        }
        // What is left behind the parts: a few bytes, or a short text.
        let mut state = self.after(start, self.up_to(text, PARTS * part));
        for (at, byte) in text.iter().enumerate().skip(PARTS * part) {
            state = self.automaton.next_state(Anchored::No, state, *byte);
            if self.automaton.is_special(state) {
                self.report_matches(state, at + 1, &mut found);
            }
        }
    }

    /// The bytes before `at` in which a pattern may begin that ends behind it.
    fn up_to<'t>(&self, text: &'t [u8], at: usize) -> &'t [u8] {
        &text[at.saturating_sub(self.automaton.max_pattern_len())..at]
    }

    fn after(&self, start: StateID, bytes: &[u8]) -> StateID {
        bytes.iter().fold(start, |state, byte| {
            self.automaton.next_state(Anchored::No, state, *byte)
        })
    }

    /// Tells what ends at `end`.
    fn report_matches(
        &self,
        state: StateID,
        end: usize,
        found: &mut impl FnMut(usize, usize, usize),
    ) {
        if !self.automaton.is_match(state) {
            return;
        }
        for index in 0..self.automaton.match_len(state) {
            let pattern = self.automaton.match_pattern(state, index);
            found(
                pattern.as_usize(),
                end - self.automaton.pattern_len(pattern),
                end,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_occurrence_is_reported_once(
            patterns in proptest::collection::vec("[abé]{1,5}", 1..6),
            text in "[abABé ]{0,90}",
        ) {
            let mut told = Vec::new();
            let all = Occurrences::from_patterns(patterns.iter().map(String::as_str)).unwrap();
            all.each(text.as_bytes(), |pattern, start, end| told.push((pattern, start, end)));
            told.sort_unstable();
            let mut there = Vec::new();
            for (number, pattern) in patterns.iter().enumerate() {
                for start in 0..text.len() {
                    let at = text.as_bytes().get(start..start + pattern.len());
                    if at.is_some_and(|at| at.eq_ignore_ascii_case(pattern.as_bytes())) {
                        there.push((number, start, start + pattern.len()));
                    }
                }
            }
            prop_assert_eq!(told, there);
        }
    }

    #[test]
    fn no_patterns_find_nothing() {
        assert!(Occurrences::from_patterns([].into_iter()).is_none());
    }
}
