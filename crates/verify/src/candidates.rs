//! Chooses among changes that all passed their gates. Pure.

use serde::{Deserialize, Serialize};

/// What is compared of one change that passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateRow {
    /// The attempt that proposed it.
    pub attempt: u64,
    /// Objections against it that have a witness.
    pub witnesses: u64,
    /// The share of mistakes in its lines that the gates notice, in percent; absent if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strength: Option<u64>,
    /// Lines that it adds and removes.
    pub lines: u64,
}

/// Which change was chosen, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateChoice {
    /// The attempt that proposed it.
    pub chosen: u64,
    /// What decided, in words.
    pub reason: String,
    /// Every change that passed.
    pub compared: Vec<CandidateRow>,
}

/// Chooses the change with the fewest witnesses against it, then the one whose mistakes the gates notice best, then the smallest,
/// then the first. Returns nothing without a change.
#[must_use]
pub fn choose_candidate(rows: &[CandidateRow]) -> Option<CandidateChoice> {
    let key = |row: &CandidateRow| {
        // An unmeasured strength counts as none.
        let unnoticed = 100 - row.strength.unwrap_or_default().min(100);
        (row.witnesses, unnoticed, row.lines, row.attempt)
    };
    let mut ordered: Vec<&CandidateRow> = rows.iter().collect();
    ordered.sort_by_key(|row| key(row));
    let (best, next) = (*ordered.first()?, ordered.get(1));
    let reason = match next {
        None => "it is the only one that passed".to_owned(),
        Some(next) if next.witnesses != best.witnesses => format!(
            "{} objections with a witness; the next one has {}",
            best.witnesses, next.witnesses
        ),
        Some(next) if key(next).1 != key(best).1 => format!(
            "the gates notice {} % of the mistakes in it; of the next one {} %",
            best.strength.unwrap_or_default(),
            next.strength.unwrap_or_default()
        ),
        Some(next) if next.lines != best.lines => {
            format!(
                "it changes {} lines; the next one {}",
                best.lines, next.lines
            )
        }
        Some(_) => "it is the first of equals".to_owned(),
    };
    Some(CandidateChoice {
        chosen: best.attempt,
        reason,
        compared: rows.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(attempt: u64, witnesses: u64, strength: Option<u64>, lines: u64) -> CandidateRow {
        CandidateRow {
            attempt,
            witnesses,
            strength,
            lines,
        }
    }

    #[test]
    fn witnesses_then_strength_then_size_decide() {
        for (rows, chosen, reason) in [
            (vec![row(1, 0, None, 9)], 1, "only one"),
            (
                vec![row(1, 1, Some(100), 1), row(2, 0, None, 9)],
                2,
                "witness",
            ),
            (
                vec![row(1, 0, Some(50), 1), row(2, 0, Some(90), 9)],
                2,
                "90 %",
            ),
            (
                vec![row(1, 0, None, 1), row(2, 0, Some(1), 9)],
                2,
                "notice 1 %",
            ),
            (
                vec![row(1, 0, Some(50), 9), row(2, 0, Some(50), 4)],
                2,
                "4 lines",
            ),
            (
                vec![row(1, 0, Some(50), 4), row(2, 0, Some(50), 4)],
                1,
                "first of equals",
            ),
        ] {
            let choice = choose_candidate(&rows).unwrap();
            assert_eq!(choice.chosen, chosen, "{rows:?}");
            assert!(choice.reason.contains(reason), "{}", choice.reason);
            let mut turned = rows.clone();
            turned.reverse();
            assert_eq!(
                choose_candidate(&turned).unwrap().chosen,
                chosen,
                "{rows:?}"
            );
        }
        assert_eq!(choose_candidate(&[]), None);
    }
}
