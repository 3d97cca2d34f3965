//! Measures how independent the seats of a council were, by their words; it does not judge what is true.
//!
//! All figures except the number of models use text similarity ([`crate::similarity`]): the share of word
//! pairs that two positions have in common. They detect copying, repeating and giving in, but not two
//! seats that mean the same in different words. In the sequential grammar a position is the draft that
//! was passed on, so positions are similar by design.
//!
//! Invariant: pure functions compute the figures from the positions and the model names alone, with four
//! decimals.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::grammar::LoopState;
use crate::seat::{CouncilRole, LoopGrammar, SeatId};
use crate::similarity::{SeatShingles, Shingles, rounded};

/// The margin by which a position must be closer to another seat's earlier position than before, to have
/// moved towards it. The margin allows for chance: texts about the same subject share some pairs. It is
/// chosen, not measured.
const STEP: f64 = 0.05;

/// How independent the seats were in one loop. The figures compare words: high similarity does not mean
/// that the seats were wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Independence {
    /// The similarity of each two positions at the end of the loop, from 0 (no shared word pair) to 1
    /// (the same words in the same order).
    pub pairwise_similarity: Vec<PairSimilarity>,
    /// The mean of these; absent if fewer than two seats have a position.
    pub mean_similarity: Option<f64>,
    /// The number of seats that moved towards the majority of the previous loop.
    ///
    /// A seat moved towards another seat if its position is now more similar to the other's *earlier*
    /// position than its own earlier position was, by more than 0.05. It moved towards the majority if it
    /// moved towards more than half of the other seats with a position in the previous loop. A lone seat
    /// that gives in counts. Seats that hold, that agreed from the start, or that move to a minority view
    /// do not count.
    ///
    /// Absent in the first loop; if fewer than three seats had a position in the previous loop, because
    /// two have no majority; and in a debate, where no seat reads another's position.
    pub moved_to_majority: Option<u32>,
    /// The number of different models that answered for the seats in this loop, by the names that the
    /// provider reports. In a debate both positions and defences count. The red team does not count.
    pub distinct_models: u32,
}

/// The similarity of two positions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairSimilarity {
    /// The seat of the first position.
    pub first: SeatId,
    /// The other.
    pub second: SeatId,
    /// From 0 to 1.
    pub similarity: f64,
}

/// The figures of a loop with turns. `now` and `before` are the shingles of its positions and of those of
/// the previous loop.
pub(crate) fn independence(
    current: &LoopState,
    now: &SeatShingles,
    before: Option<&SeatShingles>,
) -> Independence {
    let pairwise_similarity = pairs(now);
    let mean_similarity = mean(&pairwise_similarity);
    let of_seats = current
        .turns
        .iter()
        .filter(|turn| turn.seat.role() != CouncilRole::RedTeam);
    let models: BTreeSet<&str> = of_seats.map(|turn| turn.model.as_str()).collect();
    let moved = match current.grammar {
        LoopGrammar::Debate => None,
        LoopGrammar::Parallel | LoopGrammar::Sequential => {
            before.and_then(|before| moved_to_majority(before, now))
        }
    };
    Independence {
        pairwise_similarity: pairwise_similarity
            .into_iter()
            .map(|pair| PairSimilarity {
                similarity: rounded(pair.similarity),
                ..pair
            })
            .collect(),
        mean_similarity: mean_similarity.map(rounded),
        moved_to_majority: moved,
        distinct_models: count(models.len()),
    }
}

/// The similarity of each seat's position to its previous one, for seats that have both.
pub(crate) fn similarity_to_prior(
    now: &SeatShingles,
    before: Option<&SeatShingles>,
) -> BTreeMap<SeatId, f64> {
    let Some(before) = before else {
        return BTreeMap::new();
    };
    let both = now
        .iter()
        .filter_map(|(seat, now)| Some((*seat, rounded(now.resemblance(before.get(seat)?)))));
    both.collect()
}

fn pairs(positions: &SeatShingles) -> Vec<PairSimilarity> {
    let seats: Vec<(&SeatId, &Shingles)> = positions.iter().collect();
    let mut pairs = Vec::new();
    for (place, (first, text)) in seats.iter().enumerate() {
        for (second, other) in seats.iter().skip(place + 1) {
            pairs.push(PairSimilarity {
                first: **first,
                second: **second,
                similarity: text.resemblance(other),
            });
        }
    }
    pairs
}

fn mean(pairs: &[PairSimilarity]) -> Option<f64> {
    if pairs.is_empty() {
        return None;
    }
    let sum: f64 = pairs.iter().map(|pair| pair.similarity).sum();
    Some(sum / f64::from(count(pairs.len())))
}

fn moved_to_majority(prior: &SeatShingles, current: &SeatShingles) -> Option<u32> {
    if prior.len() < 3 {
        return None;
    }
    let moved = current.iter().filter(|(seat, now)| {
        let Some(before) = prior.get(seat) else {
            return false;
        };
        let others = prior.iter().filter(|(other, _)| other != seat);
        let towards = others.filter(|(_, position)| {
            now.resemblance(position) - before.resemblance(position) > STEP
        });
        towards.count() * 2 > prior.len() - 1
    });
    Some(count(moved.count()))
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use crucible_model::Untrusted;

    use super::*;
    use crate::caller::{CallAnswer, Ending};
    use crate::grammar::shown::said_in;
    use crate::similarity::of_positions;
    use crate::turn::{Turn, TurnKind};
    use crate::usage::CallUsage;

    const SPLIT: &str = "split the program into services now because teams block each other";
    const KEEP: &str = "keep one program and draw clear borders inside of it first";
    const WAIT: &str = "measure for a quarter before anybody decides anything at all";

    /// Up to five seats with these positions, an empty text for none, and the models that answered.
    fn state(grammar: LoopGrammar, texts: &[&str], models: &[(CouncilRole, &str)]) -> LoopState {
        let mut state = said_in(grammar, 1, texts);
        state.turns = models
            .iter()
            .map(|(role, model)| turn(*role, model))
            .collect();
        state
    }

    fn turn(role: CouncilRole, model: &str) -> Turn {
        let text = Untrusted::new("Words.");
        let answer = CallAnswer {
            text: text.clone(),
            model: model.to_owned(),
            ending: Ending::Whole,
            usage: CallUsage::default(),
        };
        Turn::new(
            SeatId::of_roles([role])[0],
            TurnKind::Position,
            &text,
            &answer,
        )
    }

    fn figures(prior: Option<&LoopState>, current: &LoopState) -> Independence {
        let words = |state: &LoopState| of_positions(&state.positions);
        independence(current, &words(current), prior.map(words).as_ref())
    }

    fn moved(prior: &[&str], current: &[&str]) -> Option<u32> {
        moved_in(LoopGrammar::Parallel, prior, current)
    }

    fn moved_in(grammar: LoopGrammar, prior: &[&str], current: &[&str]) -> Option<u32> {
        figures(
            Some(&state(grammar, prior, &[])),
            &state(grammar, current, &[]),
        )
        .moved_to_majority
    }

    #[test]
    fn identical_positions_have_full_similarity() {
        use CouncilRole::{Creative, Pragmatist};
        let clones = state(
            LoopGrammar::Parallel,
            &[KEEP; 5],
            &[(Pragmatist, "m"), (Creative, "m")],
        );
        let found = figures(None, &clones);
        assert_eq!(found.pairwise_similarity.len(), 10);
        assert!(
            found
                .pairwise_similarity
                .iter()
                .all(|pair| (pair.similarity - 1.0).abs() < 1e-12)
        );
        assert_eq!(found.mean_similarity, Some(1.0));
        assert_eq!(found.moved_to_majority, None);
        assert_eq!(found.distinct_models, 1);
        assert_eq!(figures(Some(&clones), &clones).moved_to_majority, Some(0));
    }

    #[test]
    fn distinct_models_and_positions_are_counted() {
        let found = figures(
            None,
            &state(LoopGrammar::Parallel, &[KEEP, SPLIT, WAIT, KEEP], &[]),
        );
        let pairs: Vec<(String, f64)> = found
            .pairwise_similarity
            .iter()
            .map(|pair| (format!("{} {}", pair.first, pair.second), pair.similarity))
            .collect();
        let expected = [
            ("synthesizer domain_expert", 0.0),
            ("synthesizer pragmatist", 0.0),
            ("synthesizer creative", 1.0),
            ("domain_expert pragmatist", 0.0),
            ("domain_expert creative", 0.0),
            ("pragmatist creative", 0.0),
        ];
        assert_eq!(
            pairs,
            expected.map(|(names, similarity)| (names.to_owned(), similarity))
        );
        assert_eq!(found.mean_similarity, Some(0.1667));
    }

    #[test]
    fn distinct_models_exclude_the_red_team() {
        use CouncilRole::{Creative, Pragmatist, RedTeam};
        let turns = [
            (Creative, "a"),
            (Pragmatist, "b"),
            (RedTeam, "d"),
            (Pragmatist, "c"),
            (Creative, "a"),
        ];
        let found = figures(None, &state(LoopGrammar::Debate, &[KEEP, SPLIT], &turns));
        assert_eq!(
            found.distinct_models, 3,
            "a defence by another model hides nobody"
        );
    }

    #[test]
    fn debate_has_no_majority_figure() {
        let (apart, alike) = ([KEEP, KEEP, KEEP, SPLIT], [KEEP; 4]);
        assert_eq!(moved_in(LoopGrammar::Debate, &apart, &alike), None);
        assert_eq!(moved_in(LoopGrammar::Parallel, &apart, &alike), Some(1));
        assert_eq!(moved_in(LoopGrammar::Sequential, &apart, &alike), Some(1));
    }

    #[test]
    fn moved_to_majority_counts_expected_seats() {
        let half =
            "keep one program and draw clear borders but split the program into services later";
        type Case<'c> = (&'c str, &'c [&'c str], &'c [&'c str], Option<u32>);
        let cases: [Case<'_>; 12] = [
            (
                "one gives in to four",
                &[KEEP, KEEP, KEEP, KEEP, SPLIT],
                &[KEEP; 5],
                Some(1),
            ),
            (
                "one goes half of the way",
                &[KEEP, KEEP, KEEP, KEEP, SPLIT],
                &[KEEP, KEEP, KEEP, KEEP, half],
                Some(1),
            ),
            (
                "one holds",
                &[KEEP, KEEP, KEEP, KEEP, SPLIT],
                &[KEEP, KEEP, KEEP, KEEP, SPLIT],
                Some(0),
            ),
            (
                "four follow one",
                &[KEEP, KEEP, KEEP, KEEP, SPLIT],
                &[SPLIT; 5],
                Some(0),
            ),
            (
                "three against two, who give in",
                &[KEEP, KEEP, KEEP, SPLIT, SPLIT],
                &[KEEP; 5],
                Some(2),
            ),
            (
                "one of three joins the two",
                &[KEEP, KEEP, KEEP, SPLIT, SPLIT],
                &[SPLIT, KEEP, KEEP, SPLIT, SPLIT],
                Some(0),
            ),
            (
                "one takes a minority's view",
                &[KEEP, KEEP, SPLIT, WAIT],
                &[KEEP, KEEP, SPLIT, SPLIT],
                Some(0),
            ),
            (
                "another view that nobody held",
                &[KEEP, KEEP, SPLIT, SPLIT],
                &[KEEP, KEEP, WAIT, WAIT],
                Some(0),
            ),
            ("two have no majority", &[KEEP, SPLIT], &[KEEP, KEEP], None),
            (
                "a seat that was missing moved nowhere",
                &[KEEP, KEEP, KEEP, "", ""],
                &[KEEP, KEEP, KEEP, KEEP, ""],
                Some(0),
            ),
            (
                "a seat that is missing now",
                &[KEEP, KEEP, KEEP, SPLIT],
                &[KEEP, KEEP, KEEP, ""],
                Some(0),
            ),
            (
                "two of three were missing",
                &[KEEP, SPLIT, ""],
                &[KEEP, KEEP, KEEP],
                None,
            ),
        ];
        for (name, prior, current, expected) in cases {
            assert_eq!(moved(prior, current), expected, "{name}");
        }
    }

    #[test]
    fn small_similarity_rise_is_ignored() {
        // The last seat's new position shares one pair more with the others than its old one: 1 of 29
        // pairs.
        let others = (0..15)
            .map(|number| format!("w{number}"))
            .collect::<Vec<_>>()
            .join(" ");
        let difference = (0..16)
            .map(|number| format!("x{number}"))
            .collect::<Vec<_>>()
            .join(" ");
        let nearer = difference.replace("x0 x1", "w0 w1");
        let prior = [others.as_str(), others.as_str(), difference.as_str()];
        assert_eq!(moved(&prior, &[&others, &others, &nearer]), Some(0));
        let nearer = difference.replace("x0 x1 x2 x3", "w0 w1 w2 w3");
        assert_eq!(moved(&prior, &[&others, &others, &nearer]), Some(1));
    }

    #[test]
    fn resemblance_needs_both_positions() {
        let words =
            |texts: &[&str]| of_positions(&said_in(LoopGrammar::Parallel, 1, texts).positions);
        let (prior, current) = (
            words(&[KEEP, SPLIT, "", WAIT]),
            words(&[KEEP, KEEP, WAIT, ""]),
        );
        assert!(similarity_to_prior(&current, None).is_empty());
        let found: Vec<(String, f64)> = similarity_to_prior(&current, Some(&prior))
            .into_iter()
            .map(|(seat, resemblance)| (seat.to_string(), resemblance))
            .collect();
        assert_eq!(
            found,
            [
                ("synthesizer".to_owned(), 1.0),
                ("domain_expert".to_owned(), 0.0)
            ]
        );
    }

    #[test]
    fn fewer_than_two_positions_have_no_pairs() {
        for texts in [&[][..], &[KEEP][..]] {
            let found = figures(None, &state(LoopGrammar::Parallel, texts, &[]));
            assert_eq!(
                (found.pairwise_similarity.len(), found.mean_similarity),
                (0, None)
            );
        }
    }
}
