//! How many small mistakes in the changed lines the gates notice. Pure.

use crucible_model::{Code, Finding, Verdict};
use serde::{Deserialize, Serialize};

/// The strength of the gates on one change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strength {
    /// Mistakes that a gate noticed.
    pub noticed: u64,
    /// Mistakes that were tried within the time budget.
    pub tried: u64,
    /// Mistakes that there are.
    pub mutants: u64,
    /// The required share in percent; 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub required: u64,
    /// Mistakes that no gate noticed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<SurvivingMutant>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A mistake that no gate noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurvivingMutant {
    /// The file and the line.
    pub at: String,
    /// What was done.
    pub what: String,
    /// The mistake as a diff against the changed file.
    pub diff: String,
}

impl Strength {
    /// Returns the share of the tried mistakes that were noticed, in percent rounded down; `None` if none was tried.
    #[must_use]
    pub fn percent(&self) -> Option<u64> {
        (self.noticed * 100).checked_div(self.tried)
    }
}

/// Returns the findings on the strength.
#[must_use]
pub fn judge_strength(strength: &Strength) -> Verdict {
    let mut verdict = Verdict::default();
    if let Some(percent) = strength
        .percent()
        .filter(|percent| *percent < strength.required)
    {
        let first = strength.survivors.first();
        let example = first.map(|first| format!("; for example {}: {}", first.at, first.what));
        verdict.push(Finding::error(
            Code::new("verify-strength-too-low"),
            "gates",
            format!(
                "the gates notice {} of {} mistakes in the changed lines ({percent} %), and `[run] min_strength` requires {} %{}; add tests for them",
                strength.noticed,
                strength.tried,
                strength.required,
                example.unwrap_or_default()
            ),
        ));
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_below_the_required_one_is_refused() {
        let strength = |noticed, tried, required| Strength {
            noticed,
            tried,
            mutants: tried,
            required,
            survivors: Vec::new(),
        };
        assert!(judge_strength(&strength(4, 5, 80)).passes());
        assert!(judge_strength(&strength(0, 5, 0)).passes());
        assert!(judge_strength(&strength(0, 0, 80)).passes());
        assert!(!judge_strength(&strength(3, 5, 80)).passes());
        assert_eq!(strength(2, 3, 0).percent(), Some(66));
    }
}
