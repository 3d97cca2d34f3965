//! Whether a position was held or changed after an attack: computed from its words, without a model.
//!
//! The outcome belongs to the loop of the attack. In the parallel grammar all positions are attacked at
//! the end of their loop, so the seat's next position decides, and the last loop has no outcome. In the
//! sequential grammar a draft is attacked before the next draft, so the next draft decides, whichever
//! seat writes it. For the last draft of a loop, that is the first draft of the next loop. In a debate
//! the defence in the same loop decides.
//!
//! Invariant: each seat that has a position in a loop has an outcome there, and no other seat has one.
//! Only this module decides between held and changed.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::grammar::LoopState;
use crate::seat::{LoopGrammar, SeatId};
use crate::similarity::{LoopWords, Shingles, rounded};

/// The rounded similarity from which a position counts as held. It is chosen, not measured.
const HELD: f64 = 0.8;

/// What happened to a seat's position after an attack. Words are compared, not meanings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterAttack {
    /// The following text has a similarity of 0.8 or more.
    Held,
    /// The following text has a similarity below 0.8.
    Changed,
    /// In a debate: the attack targeted other seats.
    NotAttacked,
    /// The seat gave no answer: no defence in a debate, or no position in the next loop of the parallel
    /// grammar. It never occurs in the sequential grammar, because the next speaker continues the draft.
    NoAnswer,
    /// No loop followed the attack. It never occurs in a debate.
    NotAskedAgain,
}

/// The outcome of each seat that has a position in a loop.
pub(crate) type AfterAttacks = BTreeMap<SeatId, AfterAttack>;

/// Computes the outcomes of each loop. `words` are the shingles of these loops.
pub(crate) fn after_attacks(loops: &[LoopState], words: &[LoopWords]) -> Vec<AfterAttacks> {
    let loops: Vec<(&LoopState, &LoopWords)> = loops.iter().zip(words).collect();
    let next = loops.iter().skip(1).copied().map(Some).chain([None]);
    loops
        .iter()
        .zip(next)
        .map(|((state, words), next)| of_loop(state, words, next))
        .collect()
}

fn of_loop(
    state: &LoopState,
    words: &LoopWords,
    next: Option<(&LoopState, &LoopWords)>,
) -> AfterAttacks {
    let LoopWords {
        now: words,
        before_attack,
    } = words;
    let next = next.map(|(next, words)| (next, &words.now));
    match state.grammar {
        LoopGrammar::Parallel => words
            .iter()
            .map(|(seat, attacked)| match next {
                None => (*seat, AfterAttack::NotAskedAgain),
                Some((_, next)) => (*seat, judge_answer(attacked, next.get(seat))),
            })
            .collect(),
        LoopGrammar::Sequential => {
            let first_of_next =
                next.and_then(|(next, words)| words.get(&next.drafts.first()?.seat));
            let following = state
                .drafts
                .iter()
                .skip(1)
                .map(|draft| words.get(&draft.seat));
            let drafts = state.drafts.iter().zip(following.chain([first_of_next]));
            drafts
                .filter_map(|(draft, following)| {
                    let attacked = words.get(&draft.seat)?;
                    let became = following.map_or(AfterAttack::NotAskedAgain, |it| {
                        judge_answer(attacked, Some(it))
                    });
                    Some((draft.seat, became))
                })
                .collect()
        }
        LoopGrammar::Debate => words
            .iter()
            .map(|(seat, now)| match before_attack.get(seat) {
                Some(attacked) => (*seat, judge_answer(attacked, Some(now))),
                None if state.targets.contains(seat) => (*seat, AfterAttack::NoAnswer),
                None => (*seat, AfterAttack::NotAttacked),
            })
            .collect(),
    }
}

fn judge_answer(attacked: &Shingles, answer: Option<&Shingles>) -> AfterAttack {
    match answer {
        None => AfterAttack::NoAnswer,
        Some(answer) if rounded(attacked.resemblance(answer)) >= HELD => AfterAttack::Held,
        Some(_) => AfterAttack::Changed,
    }
}

#[cfg(test)]
mod tests {
    use crucible_model::Untrusted;

    use super::*;
    use crate::grammar::Draft;
    use crate::grammar::shown::{said_in, seats};
    use AfterAttack::{Changed, Held, NoAnswer, NotAskedAgain, NotAttacked};

    const KEEP: &str = "keep one program and draw clear borders inside of it first";
    const SPLIT: &str = "split the program into services now because teams block each other";

    /// What became of the seats' positions in each loop, in the order in which [`seats`] names the seats that have one.
    fn became(loops: &[LoopState]) -> Vec<Vec<AfterAttack>> {
        let words: Vec<LoopWords> = loops.iter().map(LoopWords::from_state).collect();
        let found = after_attacks(loops, &words);
        found
            .iter()
            .map(|outcomes| {
                seats()
                    .iter()
                    .filter_map(|seat| outcomes.get(seat).copied())
                    .collect()
            })
            .collect()
    }

    #[test]
    fn parallel_outcome_comes_from_next_loop() {
        let first = said_in(LoopGrammar::Parallel, 1, &[KEEP, SPLIT, SPLIT]);
        let second = said_in(LoopGrammar::Parallel, 2, &[KEEP, KEEP]);
        assert_eq!(
            became(&[first, second]),
            [vec![Held, Changed, NoAnswer], vec![NotAskedAgain; 2]]
        );
    }

    #[test]
    fn sequential_outcome_comes_from_next_draft() {
        let drafts = |number, texts: &[(usize, &str)]| {
            let mut state = said_in(LoopGrammar::Sequential, number, &[]);
            for (seat, text) in texts {
                let draft = Draft {
                    seat: seats()[*seat],
                    text: Untrusted::new(*text),
                    attack: Untrusted::new("It fails."),
                };
                state.positions.insert(draft.seat, draft.text.clone());
                state.drafts.push(draft);
            }
            state
        };
        // The speaking order differs from the order of the roles.
        let first = drafts(1, &[(2, KEEP), (0, KEEP), (1, SPLIT)]);
        let second = drafts(2, &[(2, SPLIT), (1, KEEP)]);
        // Seat 0 keeps seat 2's draft, seat 1 replaces seat 0's, and seat 1's is kept at the beginning of
        // the next loop.
        assert_eq!(
            became(&[first, second]),
            [vec![Changed, Held, Held], vec![NotAskedAgain, Changed]]
        );
    }

    #[test]
    fn debate_outcome_comes_from_same_loop() {
        let debated = |number| {
            let mut state = said_in(LoopGrammar::Debate, number, &[KEEP, KEEP, SPLIT, SPLIT]);
            state.targets = seats()[..3].to_vec();
            state.before_attack.insert(seats()[0], Untrusted::new(KEEP));
            state
                .before_attack
                .insert(seats()[1], Untrusted::new(SPLIT));
            state
        };
        let expected = vec![Held, Changed, NoAnswer, NotAttacked];
        assert_eq!(became(&[debated(1)]), std::slice::from_ref(&expected));
        assert_eq!(
            became(&[debated(1), debated(2)]),
            [expected.clone(), expected]
        );
    }

    #[test]
    fn rounded_similarity_of_four_fifths_is_held() {
        // Shared pairs of all pairs: 4 of 5; 7 of 9.
        for (before, now, expected) in [
            ("a b c d e f", "a b c d e", Held),
            ("a b c d e f g h i", "a b c d e f g h x", Changed),
        ] {
            let [before, now] = [before, now].map(Shingles::from_text);
            assert_eq!(judge_answer(&before, Some(&now)), expected);
        }
        // 79,996 of 100,000 rounds to 0.8, so it counts as held.
        let words = |count: usize| {
            (0..=count)
                .map(|word| format!("{word} "))
                .collect::<String>()
        };
        let [whole, most] = [100_000, 79_996].map(|count| Shingles::from_text(&words(count)));
        assert!(whole.resemblance(&most) < HELD);
        assert_eq!(judge_answer(&whole, Some(&most)), Held);
    }
}
