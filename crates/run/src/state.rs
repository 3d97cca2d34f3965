//! The state of a run: derived from its directory and the ledger, never stored.

use serde::{Deserialize, Serialize};

/// The states of a run, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Created; nothing was inspected.
    New,
    /// The repository was inspected and its gates ran once, before any change.
    Analysed,
    /// The context pack is made.
    Context,
    /// A plan is drafted.
    Planned,
    /// Both local reviewers have spoken.
    Reviewed,
    /// The plan is signed.
    Signed,
    /// A patch has passed the patch gate.
    Patched,
    /// The patch has passed every gate.
    Verified,
    /// The patch is a commit.
    Landed,
    /// A person must decide: Crucible can do nothing more on its own.
    Blocked,
    /// The run ended without a verified patch.
    Failed,
    /// The service that proposes changes says that the goal cannot be reached.
    Declined,
}

impl RunState {
    /// Returns whether no further model call could change anything.
    #[must_use]
    pub const fn is_end(self) -> bool {
        match self {
            Self::New
            | Self::Analysed
            | Self::Context
            | Self::Planned
            | Self::Reviewed
            | Self::Signed
            | Self::Patched
            | Self::Blocked => false,
            Self::Verified | Self::Landed | Self::Failed | Self::Declined => true,
        }
    }

    /// Every state, in order.
    pub const ALL: [Self; 12] = [
        Self::New,
        Self::Analysed,
        Self::Context,
        Self::Planned,
        Self::Reviewed,
        Self::Signed,
        Self::Patched,
        Self::Verified,
        Self::Landed,
        Self::Blocked,
        Self::Failed,
        Self::Declined,
    ];

    /// Returns the state with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// The state's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Analysed => "analysed",
            Self::Context => "context",
            Self::Planned => "planned",
            Self::Reviewed => "reviewed",
            Self::Signed => "signed",
            Self::Patched => "patched",
            Self::Verified => "verified",
            Self::Landed => "landed",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Declined => "declined",
        }
    }
}

/// What is known of a run's files; each is true only when the file is there and fits the ones before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// `analysis.json` is there.
    pub analysed: bool,
    /// `context_pack.json` is there.
    pub context: bool,
    /// `PLAN_draft.md` is there.
    pub planned: bool,
    /// Both reviews of this draft are there.
    pub reviewed: bool,
    /// A review blocks.
    pub blocked: bool,
    /// A prompt for a person has no answer yet.
    pub waiting: bool,
    /// The signature covers `PLAN.md` as it is.
    pub signed: bool,
    /// The patch gate approved `diff.patch` as it is.
    pub patched: bool,
    /// The last attempt ended verified, for this very patch, and the ledger has recorded all of it.
    pub verified: bool,
    /// The ledger has recorded the commit.
    pub landed: bool,
    /// The ledger has recorded the failure.
    pub failed: bool,
    /// The ledger has recorded that the run was declined.
    pub declined: bool,
}

impl Progress {
    /// The state these files amount to: the furthest that every earlier one supports.
    #[must_use]
    pub fn state(self) -> RunState {
        if self.declined {
            return RunState::Declined;
        }
        if self.failed {
            return RunState::Failed;
        }
        let steps = [
            (self.analysed, RunState::Analysed),
            (self.context, RunState::Context),
            (self.planned, RunState::Planned),
            (self.reviewed, RunState::Reviewed),
            (self.signed, RunState::Signed),
            (self.patched, RunState::Patched),
            (self.verified, RunState::Verified),
            (self.landed, RunState::Landed),
        ];
        let reached = steps
            .iter()
            .take_while(|(done, _)| *done)
            .last()
            .map_or(RunState::New, |(_, state)| *state);
        let ended = matches!(reached, RunState::Verified | RunState::Landed);
        if (self.blocked && reached == RunState::Reviewed) || (self.waiting && !ended) {
            RunState::Blocked
        } else {
            reached
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_needs_all_earlier_files() {
        let mut progress = Progress {
            verified: true,
            patched: true,
            ..Progress::default()
        };
        assert_eq!(progress.state(), RunState::New);
        progress = Progress {
            analysed: true,
            context: true,
            planned: true,
            reviewed: true,
            signed: true,
            ..progress
        };
        assert_eq!(progress.state(), RunState::Verified);
        assert_eq!(
            Progress {
                signed: false,
                blocked: true,
                ..progress
            }
            .state(),
            RunState::Blocked
        );
        assert_eq!(
            Progress {
                failed: true,
                ..progress
            }
            .state(),
            RunState::Failed
        );
        assert_eq!(
            Progress {
                waiting: true,
                ..progress
            }
            .state(),
            RunState::Verified
        );
        assert_eq!(
            Progress {
                waiting: true,
                planned: false,
                ..progress
            }
            .state(),
            RunState::Blocked
        );
    }
}
