//! The phases, roles and token limits of a debate: constants that no prompt and no setting changes.

use std::fmt;

/// The token limit of a draft.
pub const DRAFT_TOKENS: u64 = 2000;
/// The token limit of a critique.
pub const CRITIQUE_TOKENS: u64 = 2000;
/// The token limit of a revision.
pub const REVISION_TOKENS: u64 = 2000;
/// The token limit of a synthesis.
pub const SYNTHESIS_TOKENS: u64 = 4000;

/// A role in a debate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DebateRole {
    /// Drafts, revises and synthesises.
    Gpt,
    /// Criticises and approves.
    Claude,
}

impl DebateRole {
    /// The name in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gpt => "gpt",
            Self::Claude => "claude",
        }
    }
}

impl fmt::Display for DebateRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A phase of a debate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DebatePhase {
    /// The first plan.
    Draft,
    /// The review of a plan.
    Critique,
    /// A plan that answers its critique.
    Revision,
    /// The final plan.
    Synthesis,
}

impl DebatePhase {
    /// All phases, in the order of their first occurrence.
    pub const ALL: [Self; 4] = [Self::Draft, Self::Critique, Self::Revision, Self::Synthesis];

    /// The name in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Critique => "critique",
            Self::Revision => "revision",
            Self::Synthesis => "synthesis",
        }
    }

    /// The name in calls, and in a provider's table of models by phase.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Draft => "crawl-draft",
            Self::Critique => "crawl-critique",
            Self::Revision => "crawl-revision",
            Self::Synthesis => "crawl-synthesis",
        }
    }

    /// The role that answers.
    #[must_use]
    pub const fn owner(self) -> DebateRole {
        match self {
            Self::Draft | Self::Revision | Self::Synthesis => DebateRole::Gpt,
            Self::Critique => DebateRole::Claude,
        }
    }

    /// The token limit of its answer: sent as `max_tokens`, and compared with the provider's count.
    #[must_use]
    pub const fn tokens(self) -> u64 {
        match self {
            Self::Draft => DRAFT_TOKENS,
            Self::Critique => CRITIQUE_TOKENS,
            Self::Revision => REVISION_TOKENS,
            Self::Synthesis => SYNTHESIS_TOKENS,
        }
    }
}

impl fmt::Display for DebatePhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The number of debate rounds: 1 to 4, by default 2. A round is a draft or a revision, and its critique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DebateRounds(u32);

impl DebateRounds {
    /// The largest number.
    pub const LIMIT: u32 = 4;

    /// This number, clamped to the allowed range.
    #[must_use]
    pub fn capped(rounds: u32) -> Self {
        Self(rounds.clamp(1, Self::LIMIT))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for DebateRounds {
    fn default() -> Self {
        Self(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_default_to_two_and_clamp_to_four() {
        assert_eq!(DebateRounds::default().get(), 2);
        for (requested, given_count) in [(0, 1), (1, 1), (3, 3), (4, 4), (5, 4), (u32::MAX, 4)] {
            assert_eq!(DebateRounds::capped(requested).get(), given_count);
        }
    }

    #[test]
    fn budgets_and_owners_are_those_of_the_seed() {
        let table = DebatePhase::ALL.map(|phase| (phase.id(), phase.owner(), phase.tokens()));
        assert_eq!(
            table,
            [
                ("crawl-draft", DebateRole::Gpt, 2000),
                ("crawl-critique", DebateRole::Claude, 2000),
                ("crawl-revision", DebateRole::Gpt, 2000),
                ("crawl-synthesis", DebateRole::Gpt, 4000),
            ]
        );
    }
}
