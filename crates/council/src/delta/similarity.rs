//! The strategy without a model: positions with nearly the same words did not change.
//!
//! Invariants: the same positions always get the same verdict. An added or missing seat is a change.

use super::{DeltaVerdict, Positions};
use crate::similarity::Shingles;

/// Returns unchanged if both loops have the same seats and each position has at least this similarity to
/// its earlier one.
pub(super) fn verdict(prior: &Positions, current: &Positions, threshold: f64) -> DeltaVerdict {
    let unchanged = prior.len() == current.len()
        && prior.iter().all(|(seat, before)| {
            current.get(seat).is_some_and(|now| {
                before == now
                    || Shingles::from_text(before.as_str())
                        .resemblance(&Shingles::from_text(now.as_str()))
                        >= threshold
            })
        });
    if unchanged {
        DeltaVerdict::Unchanged
    } else {
        DeltaVerdict::Changed
    }
}

#[cfg(test)]
mod tests {
    use crucible_model::Untrusted;

    use super::*;
    use crate::seat::{CouncilRole, SeatId};

    fn positions(texts: &[&str]) -> Positions {
        let roles = [
            CouncilRole::DomainExpert,
            CouncilRole::Pragmatist,
            CouncilRole::Creative,
        ];
        SeatId::of_roles(roles)
            .into_iter()
            .zip(texts.iter().map(|text| Untrusted::new(*text)))
            .collect()
    }

    #[test]
    fn similarity_needs_every_position_unchanged() {
        use DeltaVerdict::{Changed, Unchanged};
        // "a b c d e" and "a b c d x" have three of five pairs in common.
        let cases = [
            (
                &["a b c d e", "one two"][..],
                &["A, b, c, d, e.", "One; two!"][..],
                1.0,
                Unchanged,
            ),
            (
                &["a b c d e", "one two"],
                &["a b c d x", "one two"],
                0.6,
                Unchanged,
            ),
            (
                &["a b c d e", "one two"],
                &["a b c d x", "one two"],
                0.61,
                Changed,
            ),
            (
                &["a b c d e", "one two"],
                &["a b c d e", "two one"],
                0.6,
                Changed,
            ),
            (&["a b", "c d"], &["x", "y"], 0.0, Unchanged),
            (&["a b", "c d"], &["a b", "c d", "e f"], 0.0, Changed),
            (&["a b", "c d", "e f"], &["a b", "c d"], 0.0, Changed),
            (&[""], &[" \n"], 1.0, Unchanged),
        ];
        for (prior, current, threshold, expected) in cases {
            let found = verdict(&positions(prior), &positions(current), threshold);
            assert_eq!(found, expected, "{prior:?} to {current:?} at {threshold}");
        }
    }

    #[test]
    fn replaced_seat_counts_as_change() {
        let mut other = positions(&["a b", "c d", "c d"]);
        let seats: Vec<SeatId> = other.keys().copied().collect();
        other.remove(&seats[1]);
        assert_eq!(other.len(), 2);
        let mut prior = positions(&["a b", "c d", "c d"]);
        prior.remove(&seats[2]);
        assert_eq!(verdict(&prior, &other, 0.0), DeltaVerdict::Changed);
    }
}
