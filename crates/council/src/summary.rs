//! Selects the parts of the deliberation that the synthesis sees: bounded in characters, with more room
//! for the last loop where it builds on the others.
//!
//! The last loop gets up to half of the characters, and the earlier loops share the rest evenly. A loop
//! that needs less than its share leaves the surplus to the others, and the remaining surplus goes to the
//! last loop. In a debate, where each loop starts afresh (decision 0029), all loops share evenly. Within
//! a loop the texts share in the same way. A text that is too long keeps its beginning and end, with a
//! note of the omitted length between them. If there is no room for that, the whole text is omitted.
//!
//! A position precedes its attack. Drafts of the sequential grammar are in writing order, each before its
//! attack. The outcomes follow ([`crate::after_attack`]).
//!
//! Invariants: the texts never exceed the limit, apart from labels and fences. Nothing is omitted if
//! everything fits. The same loops give the same pieces.

use std::borrow::Cow;

use crucible_model::Untrusted;

use crate::after_attack::{AfterAttack, AfterAttacks};
use crate::grammar::LoopState;
use crate::seat::{LoopGrammar, SeatId};

/// A piece of the deliberation, with its label.
pub(crate) struct Piece {
    pub(crate) name: String,
    pub(crate) text: Untrusted,
}

/// The deliberation in at most `limit` characters of text, and the number of omitted characters.
pub(crate) fn summary(
    loops: &[LoopState],
    outcomes: &[AfterAttacks],
    limit: usize,
) -> (Vec<Piece>, usize) {
    let parts_by_loop: Vec<Vec<SummaryPart<'_>>> = loops
        .iter()
        .zip(outcomes)
        .map(|(state, outcomes)| summary_parts(state, outcomes))
        .collect();
    let needs: Vec<usize> = parts_by_loop
        .iter()
        .map(|part| part.iter().map(|part| part.length).sum())
        .collect();
    let rooms = match loops.first().map(|first| first.grammar) {
        Some(LoopGrammar::Debate) => share(&needs, limit),
        Some(LoopGrammar::Parallel | LoopGrammar::Sequential) | None => {
            share_of_loops(&needs, limit)
        }
    };
    let mut pieces = Vec::new();
    let mut left_out = 0;
    for (parts, loop_limit) in parts_by_loop.into_iter().zip(rooms) {
        let lengths: Vec<usize> = parts.iter().map(|part| part.length).collect();
        for (part, part_limit) in parts.into_iter().zip(share(&lengths, loop_limit)) {
            let (text, missing) = cut(part, part_limit);
            left_out += missing;
            pieces.extend(text);
        }
    }
    (pieces, left_out)
}

/// A text of a loop.
struct SummaryPart<'l> {
    name: String,
    text: Cow<'l, str>,
    /// Its length in characters.
    length: usize,
}

impl<'l> SummaryPart<'l> {
    fn new(number: u32, what: &str, text: impl Into<Cow<'l, str>>) -> Self {
        let text = text.into();
        let length = text.chars().count();
        Self {
            name: format!("loop {number}, {what}"),
            text,
            length,
        }
    }
}

/// The texts of a loop, in reading order.
fn summary_parts<'l>(state: &'l LoopState, outcomes: &AfterAttacks) -> Vec<SummaryPart<'l>> {
    let number = state.number;
    let part = |what: &str, text: &'l Untrusted| SummaryPart::new(number, what, text.as_str());
    let mut all = Vec::new();
    match state.grammar {
        LoopGrammar::Parallel => {
            let positions = state.positions.iter();
            all.extend(
                positions.map(|(seat, position)| part(&format!("position of {seat}"), position)),
            );
            all.push(part("attack of the red team", &state.critique));
        }
        LoopGrammar::Sequential => {
            for (place, draft) in (1..).zip(&state.drafts) {
                let ended = if place == state.drafts.len() {
                    ", with which the loop ended"
                } else {
                    ""
                };
                all.push(part(
                    &format!("draft of {}{ended}", draft.seat),
                    &draft.text,
                ));
                all.push(part(
                    &format!("attack on the draft of {}", draft.seat),
                    &draft.attack,
                ));
            }
            all.push(part("attack on the loop as a whole", &state.critique));
        }
        LoopGrammar::Debate => {
            for (seat, position) in &state.positions {
                all.push(match state.before_attack.get(seat) {
                    Some(before) => part(&format!("{seat} before the attack"), before),
                    None => part(&format!("position of {seat}"), position),
                });
            }
            all.push(part("attack of the red team", &state.critique));
            let defended = state
                .positions
                .iter()
                .filter(|(seat, _)| state.before_attack.contains_key(seat));
            all.extend(defended.map(|(seat, now)| part(&format!("{seat} after the attack"), now)));
        }
    }
    all.push(SummaryPart::new(
        number,
        "who held and who changed",
        outcome(state, outcomes),
    ));
    all
}

/// The outcomes of a loop, one line per seat, in display order.
fn outcome(state: &LoopState, outcomes: &AfterAttacks) -> String {
    let seats: Vec<SeatId> = match state.grammar {
        LoopGrammar::Sequential => state.drafts.iter().map(|draft| draft.seat).collect(),
        LoopGrammar::Parallel | LoopGrammar::Debate => state.positions.keys().copied().collect(),
    };
    let line = |seat: SeatId| Some(became(state.grammar, seat, *outcomes.get(&seat)?));
    seats
        .into_iter()
        .filter_map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

fn became(grammar: LoopGrammar, seat: SeatId, outcome: AfterAttack) -> String {
    use AfterAttack::{Changed, Held, NoAnswer, NotAskedAgain, NotAttacked};
    if grammar == LoopGrammar::Sequential {
        return match outcome {
            Held => format!("the next draft keeps to the draft of {seat}"),
            Changed => format!("the next draft departs from the draft of {seat}"),
            NotAttacked | NoAnswer | NotAskedAgain => {
                format!("no draft follows the draft of {seat}")
            }
        };
    }
    match outcome {
        Held => format!("{seat} held"),
        Changed => format!("{seat} changed"),
        NotAttacked => format!("{seat} was not attacked"),
        NoAnswer if grammar == LoopGrammar::Debate => {
            format!("{seat} was attacked and gave no defence")
        }
        NoAnswer => format!("{seat} gave no answer in the next loop"),
        NotAskedAgain => format!("{seat} was not asked again after this attack"),
    }
}

/// The room of each loop; the last one gets the most.
fn share_of_loops(needs: &[usize], limit: usize) -> Vec<usize> {
    let Some((last, earlier)) = needs.split_last() else {
        return Vec::new();
    };
    let half = if earlier.is_empty() {
        limit
    } else {
        limit.div_ceil(2)
    };
    let mut rooms = share(earlier, limit - half.min(*last));
    rooms.push(limit - rooms.iter().sum::<usize>());
    rooms
}

/// Shares room evenly among needs; the surplus of one goes to the others, the later ones first.
fn share(needs: &[usize], mut limit: usize) -> Vec<usize> {
    let mut by_need: Vec<usize> = (0..needs.len()).collect();
    by_need.sort_by_key(|index| needs.get(*index));
    let mut rooms = vec![0; needs.len()];
    let mut left = needs.len();
    for index in by_need {
        if let (Some(need), Some(given_count)) = (needs.get(index), rooms.get_mut(index)) {
            *given_count = (limit / left).min(*need);
            limit -= *given_count;
        }
        left -= 1;
    }
    rooms
}

/// Cuts a text to this room, or omits it if there is no room; also returns the number of omitted characters.
fn cut(part: SummaryPart<'_>, limit: usize) -> (Option<Piece>, usize) {
    let SummaryPart { name, text, length } = part;
    if length <= limit {
        let text = Untrusted::new(text);
        return (Some(Piece { name, text }), 0);
    }
    // The mark is never longer than one that states the whole length.
    let Some(kept_chars) = limit.checked_sub(mark(length).chars().count()) else {
        return (None, length);
    };
    let missing = length - kept_chars;
    let (head, tail) = (kept_chars.div_ceil(2), kept_chars / 2);
    let beginning = text.get(..start_of(&text, head)).unwrap_or_default();
    let end = text
        .get(start_of(&text, length - tail)..)
        .unwrap_or_default();
    let text = Untrusted::new(format!("{beginning}{}{end}", mark(missing)));
    (Some(Piece { name, text }), missing)
}

fn mark(missing: usize) -> String {
    format!("\n[… {missing} characters left out …]\n")
}

/// The byte offset of the nth character.
fn start_of(text: &str, number: usize) -> usize {
    text.char_indices()
        .nth(number)
        .map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::after_attack::after_attacks;
    use crate::delta::Positions;
    use crate::grammar::Draft;
    use crate::grammar::shown::{said_in, seats};
    use crate::similarity::LoopWords;

    fn positions(texts: &[&str]) -> Positions {
        seats()
            .into_iter()
            .zip(texts)
            .map(|(seat, text)| (seat, Untrusted::new(*text)))
            .collect()
    }

    fn parallel(number: u32, texts: &[&str], critique: &str) -> LoopState {
        sample_loop(LoopGrammar::Parallel, number, texts, critique)
    }

    fn sample_loop(grammar: LoopGrammar, number: u32, texts: &[&str], critique: &str) -> LoopState {
        LoopState {
            positions: positions(texts),
            critique: Untrusted::new(critique),
            ..said_in(grammar, number, &[])
        }
    }

    /// A sequential loop in which the seats at these indexes write these drafts and receive these
    /// attacks.
    fn drafted(number: u32, drafts: &[(usize, &str, &str)], critique: &str) -> LoopState {
        let mut state = sample_loop(LoopGrammar::Sequential, number, &[], critique);
        for (place, text, attack) in drafts {
            let seat = seats()[*place];
            let (text, attack) = (Untrusted::new(*text), Untrusted::new(*attack));
            state.positions.insert(seat, text.clone());
            state.drafts.push(Draft { seat, text, attack });
        }
        state
    }

    fn summed(loops: &[LoopState], limit: usize) -> (Vec<Piece>, usize) {
        let words: Vec<_> = loops.iter().map(LoopWords::from_state).collect();
        summary(loops, &after_attacks(loops, &words), limit)
    }

    fn render(loops: &[LoopState], limit: usize) -> String {
        let (pieces, left_out) = summed(loops, limit);
        let pieces = pieces
            .iter()
            .map(|piece| format!("{}: {}\n", piece.name, piece.text.as_str()));
        pieces.chain([format!("left out: {left_out}")]).collect()
    }

    fn length(pieces: &[Piece]) -> usize {
        pieces
            .iter()
            .map(|piece| piece.text.as_str().chars().count())
            .sum()
    }

    #[test]
    fn summary_has_positions_attack_and_outcomes() {
        let first = [
            "We should split the program into services now.",
            "Keep it whole.",
            "Split the mail part off first, then look.",
        ];
        // Other punctuation, other words, and one other word out of eight (six of eight pairs are shared:
        // 0.75).
        let second = [
            "we should split the program, into services, now",
            "Split one part off.",
            "Split the mail part off first, then stop.",
        ];
        let loops = [
            parallel(1, &first, "Who runs it?"),
            parallel(2, &second, "At night?"),
        ];
        insta::assert_snapshot!(render(&loops, 10_000), @r"
        loop 1, position of synthesizer: We should split the program into services now.
        loop 1, position of domain_expert: Keep it whole.
        loop 1, position of pragmatist: Split the mail part off first, then look.
        loop 1, attack of the red team: Who runs it?
        loop 1, who held and who changed: synthesizer held
        domain_expert changed
        pragmatist changed
        loop 2, position of synthesizer: we should split the program, into services, now
        loop 2, position of domain_expert: Split one part off.
        loop 2, position of pragmatist: Split the mail part off first, then stop.
        loop 2, attack of the red team: At night?
        loop 2, who held and who changed: synthesizer was not asked again after this attack
        domain_expert was not asked again after this attack
        pragmatist was not asked again after this attack
        left out: 0
        ");
    }

    #[test]
    fn debate_summary_has_positions_before_and_after() {
        let texts = [
            "Split it, but only the mail part.",
            "Keep it whole.",
            "Wait.",
        ];
        let mut debate = sample_loop(LoopGrammar::Debate, 1, &texts, "Weak.");
        debate.before_attack = positions(&["Split it into twenty services."]);
        debate.targets = debate.positions.keys().copied().take(2).collect();
        insta::assert_snapshot!(render(&[debate], 10_000), @r"
        loop 1, synthesizer before the attack: Split it into twenty services.
        loop 1, position of domain_expert: Keep it whole.
        loop 1, position of pragmatist: Wait.
        loop 1, attack of the red team: Weak.
        loop 1, synthesizer after the attack: Split it, but only the mail part.
        loop 1, who held and who changed: synthesizer changed
        domain_expert was attacked and gave no defence
        pragmatist was not attacked
        left out: 0
        ");
    }

    #[test]
    fn sequential_summary_has_drafts_with_attacks() {
        let first = [
            (2, "Split it now.", "Who runs it?"),
            (
                0,
                "Split the mail part off, and keep the rest whole.",
                "When?",
            ),
            (
                1,
                "Split the mail part off and keep the rest whole!",
                "Who pays?",
            ),
        ];
        let second = [
            (
                2,
                "Split the mail part off and keep the rest whole.",
                "Thin.",
            ),
            (1, "Wait for a year.", "Why a year?"),
        ];
        let loops = [
            drafted(1, &first, "Nothing is counted."),
            drafted(2, &second, "Still nothing."),
        ];
        insta::assert_snapshot!(render(&loops, 10_000), @r"
        loop 1, draft of pragmatist: Split it now.
        loop 1, attack on the draft of pragmatist: Who runs it?
        loop 1, draft of synthesizer: Split the mail part off, and keep the rest whole.
        loop 1, attack on the draft of synthesizer: When?
        loop 1, draft of domain_expert, with which the loop ended: Split the mail part off and keep the rest whole!
        loop 1, attack on the draft of domain_expert: Who pays?
        loop 1, attack on the loop as a whole: Nothing is counted.
        loop 1, who held and who changed: the next draft departs from the draft of pragmatist
        the next draft keeps to the draft of synthesizer
        the next draft keeps to the draft of domain_expert
        loop 2, draft of pragmatist: Split the mail part off and keep the rest whole.
        loop 2, attack on the draft of pragmatist: Thin.
        loop 2, draft of domain_expert, with which the loop ended: Wait for a year.
        loop 2, attack on the draft of domain_expert: Why a year?
        loop 2, attack on the loop as a whole: Still nothing.
        loop 2, who held and who changed: the next draft departs from the draft of pragmatist
        no draft follows the draft of domain_expert
        left out: 0
        ");
    }

    #[test]
    fn omitted_sequential_attacks_are_counted() {
        let long = "word ".repeat(200);
        let loops = [drafted(
            1,
            &[(1, "Short.", &long), (0, "Short too.", &long)],
            "Thin.",
        )];
        let (pieces, left_out) = summed(&loops, 600);
        let whole: usize = length(&summed(&loops, usize::MAX).0);
        let marks: usize = pieces
            .iter()
            .filter(|piece| piece.text.as_str().contains("left out"))
            .count();
        assert_eq!((marks, pieces.len()), (2, 6));
        let signs = pieces
            .iter()
            .map(|piece| piece.text.as_str().matches("[…").count())
            .sum::<usize>();
        assert_eq!(signs, 2);
        assert!(
            left_out > whole - 600 && length(&pieces) <= 600,
            "the marks take some room themselves"
        );
    }

    #[test]
    fn debate_loops_share_room_evenly() {
        let long = "word ".repeat(500);
        let room = |grammar| {
            let loops: Vec<LoopState> = (1..=3)
                .map(|number| sample_loop(grammar, number, &[&long, &long], &long))
                .collect();
            let (pieces, _) = summed(&loops, 3000);
            let of_loop = |number: u32| {
                let name = format!("loop {number},");
                let lengths = pieces.iter().filter(|piece| piece.name.starts_with(&name));
                lengths
                    .map(|piece| piece.text.as_str().chars().count())
                    .sum::<usize>()
            };
            [1, 2, 3].map(of_loop)
        };
        let [first, second, third] = room(LoopGrammar::Debate);
        assert!(
            first.abs_diff(1000) < 10 && second.abs_diff(1000) < 10 && third.abs_diff(1000) < 10
        );
        let [first, second, third] = room(LoopGrammar::Parallel);
        assert!(first.abs_diff(750) < 10 && second.abs_diff(750) < 10 && third.abs_diff(1500) < 10);
    }

    #[test]
    fn last_loop_gets_half_and_surplus() {
        assert_eq!(share_of_loops(&[900, 900, 900], 600), [150, 150, 300]);
        assert_eq!(share_of_loops(&[900, 10, 900], 600), [290, 10, 300]);
        assert_eq!(share_of_loops(&[10, 10, 900], 600), [10, 10, 580]);
        assert_eq!(share_of_loops(&[900, 900, 100], 600), [250, 250, 100]);
        assert_eq!(share_of_loops(&[900, 900], 601), [300, 301]);
        assert_eq!(share_of_loops(&[900], 600), [600]);
        assert_eq!(share_of_loops(&[], 600), [0; 0]);
        assert_eq!(
            share(&[50, 5, 50], 56),
            [25, 5, 26],
            "an odd character goes to the later one"
        );
    }

    #[test]
    fn cut_text_keeps_both_ends() {
        let long = format!("beginning {} end", "ä".repeat(1000));
        let (pieces, left_out) = summed(&[parallel(1, &[&long, "short"], "attack")], 300);
        let [cut, short, attack, ..] = &pieces[..] else {
            panic!("pieces are missing")
        };
        assert!(
            cut.text.as_str().starts_with("beginning ä"),
            "{}",
            cut.text.as_str()
        );
        assert!(
            cut.text.as_str().ends_with("ä end"),
            "{}",
            cut.text.as_str()
        );
        assert!(
            cut.text
                .as_str()
                .contains(&format!("\n[… {left_out} characters left out …]\n"))
        );
        let stored_count =
            cut.text.as_str().matches('ä').count() + "beginning  end".chars().count();
        assert_eq!(stored_count + left_out, long.chars().count());
        assert_eq!(
            (short.text.as_str(), attack.text.as_str()),
            ("short", "attack")
        );
    }

    #[test]
    fn short_last_loop_is_kept_whole() {
        let long = "word ".repeat(500);
        let last = "The last word of all. ".repeat(10);
        let texts = [long.as_str(), long.as_str()];
        let loops = [
            parallel(1, &texts, &long),
            parallel(2, &texts, &long),
            parallel(3, &[&last, &last], "Weak."),
        ];
        let (pieces, left_out) = summed(&loops, 2000);
        let of_last: Vec<&Piece> = pieces
            .iter()
            .filter(|piece| piece.name.starts_with("loop 3"))
            .collect();
        assert_eq!(of_last.len(), 4);
        assert!(
            of_last
                .iter()
                .all(|piece| !piece.text.as_str().contains("left out"))
        );
        assert!(left_out > 0 && length(&pieces) <= 2000);
    }

    /// Loops of one grammar, in the form that it produces.
    fn states() -> impl Strategy<Value = Vec<LoopState>> {
        let text = || prop_oneof!["[a-z äß漢\u{1f600}]{0,80}", "\\PC{0,300}"];
        let state = (
            prop::collection::vec((text(), text()), 2..=4),
            text(),
            0usize..=4,
        );
        let grammar = prop::sample::select(LoopGrammar::ALL);
        (grammar, prop::collection::vec(state, 1..=5)).prop_map(|(grammar, loops)| {
            let numbered = (1..)
                .zip(loops)
                .map(|(number, (turns, critique, defended))| {
                    let texts: Vec<&str> = turns.iter().map(|(text, _)| text.as_str()).collect();
                    let others: Vec<&str> = turns.iter().map(|(_, other)| other.as_str()).collect();
                    if grammar == LoopGrammar::Sequential {
                        let drafts_in_reverse = texts.iter().zip(&others).enumerate().rev();
                        let drafts: Vec<_> = drafts_in_reverse
                            .map(|(place, (text, attack))| (place, *text, *attack))
                            .collect();
                        return drafted(number, &drafts, &critique);
                    }
                    let mut state = sample_loop(grammar, number, &texts, &critique);
                    if grammar == LoopGrammar::Debate {
                        state.before_attack = positions(&others[..defended.min(others.len())]);
                        state.targets = state.positions.keys().copied().collect();
                    }
                    state
                });
            numbered.collect()
        })
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn summary_never_exceeds_limit(loops in states(), limit in 0usize..4000) {
                let (all, none_missing) = summed(&loops, usize::MAX);
                prop_assert_eq!(none_missing, 0);
                let (pieces, left_out) = summed(&loops, limit);
                prop_assert!(length(&pieces) <= limit);
                let fits = length(&all) <= limit;
                prop_assert_eq!(left_out == 0, fits);
                if fits {
                    prop_assert_eq!(pieces.len(), all.len());
                }
                let texts = loops.iter();
                let texts = texts.map(|state| state.positions.len() + state.before_attack.len() + state.drafts.len() + 2);
                prop_assert_eq!(all.len(), texts.sum::<usize>());
            }
        }
    }
}
