//! The six phases and their order.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A phase. Phases compare by their order in the pipeline, not by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PhaseId {
    /// What to build, with an id for each requirement.
    Requirements,
    /// How to build it.
    Design,
    /// The steps of the work.
    Tasks,
    /// Problems in these three documents and in the files that they name.
    Review,
    /// Changes to the project's files that the review requests.
    Fixup,
    /// A summary of the decisions, and the tasks of each requirement.
    Final,
}

/// The name is not a phase.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not a phase; use one of {}", PhaseId::ALL.map(PhaseId::as_str).join(", "))]
pub struct PhaseIdError {
    name: String,
}

impl PhaseId {
    /// Every phase, in order.
    pub const ALL: [Self; 6] = [
        Self::Requirements,
        Self::Design,
        Self::Tasks,
        Self::Review,
        Self::Fixup,
        Self::Final,
    ];

    /// The name, as in commands, receipts and settings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requirements => "requirements",
            Self::Design => "design",
            Self::Tasks => "tasks",
            Self::Review => "review",
            Self::Fixup => "fixup",
            Self::Final => "final",
        }
    }

    /// The file name of its artifact.
    #[must_use]
    pub const fn artifact(self) -> &'static str {
        match self {
            Self::Requirements => "00-requirements.md",
            Self::Design => "10-design.md",
            Self::Tasks => "20-tasks.md",
            Self::Review => "30-review.md",
            Self::Fixup => "40-fixup.md",
            Self::Final => "50-final.md",
        }
    }

    /// The phase that must have succeeded before this one may run; none for the first.
    #[must_use]
    pub fn predecessor(self) -> Option<Self> {
        let place = Self::ALL.iter().position(|phase| *phase == self)?;
        place.checked_sub(1).map(|before| Self::ALL[before])
    }

    /// The phases up to and including this one, in order.
    pub fn up_to(self) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |phase| *phase <= self)
    }
}

impl FromStr for PhaseId {
    type Err = PhaseIdError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|phase| phase.as_str() == name);
        found.ok_or_else(|| PhaseIdError {
            name: name.chars().take(40).collect(),
        })
    }
}

impl fmt::Display for PhaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phase_ids_compare_by_order_not_name() {
        assert!(PhaseId::Requirements < PhaseId::Design && PhaseId::Design < PhaseId::Tasks);
        assert!(
            PhaseId::Tasks < PhaseId::Review
                && PhaseId::Review < PhaseId::Fixup
                && PhaseId::Fixup < PhaseId::Final
        );
        for pair in PhaseId::ALL.windows(2) {
            assert_eq!(pair[1].predecessor(), Some(pair[0]));
            assert!(pair[0].artifact() < pair[1].artifact());
        }
        assert_eq!(PhaseId::Requirements.predecessor(), None);
        for phase in PhaseId::ALL {
            assert_eq!(phase.as_str().parse(), Ok(phase));
        }
        assert!("Design".parse::<PhaseId>().is_err());
    }
}
