//! Which step of a skill may follow where it stands: PROPOSED, BUILT, VERIFIED, TRUSTED (K14).

use std::fmt;

use crucible_ledger::SkillStatus;
use serde::Serialize;

use crate::name::SkillName;

/// A step of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SkillStep {
    /// An attempt at building it.
    Build,
    /// Its gates.
    Verify,
    /// Looking into a failure of an attempt or a gate.
    Research,
    /// A person approves it.
    Promote,
    /// Its approval is withdrawn.
    Demote,
    /// It is run.
    Run,
}

/// The step may not follow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the skill {name} is {}: {why}", status.as_str())]
pub struct StepRefused {
    /// The skill that was to take the step.
    pub name: SkillName,
    /// Where it stands.
    pub status: SkillStatus,
    /// Why not.
    pub why: &'static str,
    /// The step that has to come before it, where one would help.
    pub first: Option<SkillStep>,
}

impl StepRefused {
    /// What to do first, where something helps.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        self.first
            .map(|step| format!("`crucible skill {step} {}` comes first", self.name))
    }
}

impl SkillStep {
    /// Every step, in the order in which a skill usually takes them.
    pub const ALL: [Self; 6] = [
        Self::Build,
        Self::Verify,
        Self::Research,
        Self::Promote,
        Self::Run,
        Self::Demote,
    ];

    /// The word of the command.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Verify => "verify",
            Self::Research => "research",
            Self::Promote => "promote",
            Self::Demote => "demote",
            Self::Run => "run",
        }
    }

    /// The steps that may follow here.
    pub fn after(status: SkillStatus) -> impl Iterator<Item = Self> {
        Self::ALL
            .into_iter()
            .filter(move |step| step.obstacle(status).is_none())
    }

    /// Judges whether the step may follow for a skill that stands here.
    ///
    /// # Errors
    ///
    /// [`StepRefused`] says what to do first.
    pub fn check(self, name: &SkillName, status: SkillStatus) -> Result<(), StepRefused> {
        match self.obstacle(status) {
            None => Ok(()),
            Some((why, first)) => Err(StepRefused {
                name: name.clone(),
                status,
                why,
                first,
            }),
        }
    }

    /// Why the step may not follow, and which one has to come before it.
    const fn obstacle(self, status: SkillStatus) -> Option<(&'static str, Option<Self>)> {
        use SkillStatus::{Built, Proposed, Trusted, Verified};
        match (self, status) {
            (Self::Build, Proposed | Built)
            | (Self::Verify, Built | Verified)
            | (Self::Research, Proposed | Built)
            | (Self::Promote, Verified)
            | (Self::Demote | Self::Run, Trusted) => None,
            (Self::Build, Verified) => Some((
                "what passed its gates is not built over; promote it, or verify it again",
                None,
            )),
            (Self::Build | Self::Verify, Trusted) => {
                Some(("exactly these files are approved", Some(Self::Demote)))
            }
            (Self::Verify, Proposed) => Some(("there is nothing to verify yet", Some(Self::Build))),
            (Self::Research, Verified | Trusted) => Some(("nothing of it failed", None)),
            (Self::Promote, Trusted) => Some((
                "it is approved already, and it can be run",
                Some(Self::Demote),
            )),
            (Self::Promote | Self::Run, Proposed) => {
                Some(("nothing of it is built", Some(Self::Build)))
            }
            (Self::Promote | Self::Run, Built) => {
                Some(("it has not passed its gates", Some(Self::Verify)))
            }
            (Self::Run, Verified) => Some(("it is not approved yet", Some(Self::Promote))),
            (Self::Demote, Proposed | Built | Verified) => Some(("it is not trusted anyway", None)),
        }
    }
}

impl fmt::Display for SkillStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_these_steps_follow_each_status() {
        use SkillStep::{Build, Demote, Promote, Research, Run, Verify};
        let table = [
            (SkillStatus::Proposed, vec![Build, Research]),
            (SkillStatus::Built, vec![Build, Verify, Research]),
            (SkillStatus::Verified, vec![Verify, Promote]),
            (SkillStatus::Trusted, vec![Run, Demote]),
        ];
        assert_eq!(table.len(), SkillStatus::ALL.len());
        for (status, steps) in table {
            assert_eq!(
                SkillStep::after(status).collect::<Vec<_>>(),
                steps,
                "{status:?}"
            );
        }
    }

    #[test]
    fn refused_step_names_a_possible_one() {
        let name: SkillName = "word_count".parse().unwrap();
        for status in SkillStatus::ALL.iter().copied() {
            for step in SkillStep::ALL {
                let Some((_, first)) = &step.obstacle(status) else {
                    assert_eq!(step.check(&name, status), Ok(()));
                    continue;
                };
                let refused = step.check(&name, status).unwrap_err();
                let message = refused.to_string();
                assert!(
                    message.starts_with(&format!("the skill word_count is {}: ", status.as_str())),
                    "{message}"
                );
                assert_eq!(refused.first, *first);
                if let Some(first) = first {
                    let hint = refused.hint().unwrap_or_default();
                    assert!(
                        hint.contains(&format!("`crucible skill {first} word_count`")),
                        "{hint}"
                    );
                    assert!(
                        first.obstacle(status).is_none(),
                        "{step} in {status:?} sends to {first}"
                    );
                }
            }
        }
    }
}
