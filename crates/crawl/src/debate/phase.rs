//! Who speaks in a debate, about what, and how much: the constants that no prompt and no setting changes (seed 000 §6.1).

use std::fmt;

/// Tokens that a draft may take.
pub const DRAFT_TOKENS: u64 = 2000;
/// Tokens that a critique may take.
pub const CRITIQUE_TOKENS: u64 = 2000;
/// Tokens that a revision may take.
pub const REVISION_TOKENS: u64 = 2000;
/// Tokens that a synthesis may take.
pub const SYNTHESIS_TOKENS: u64 = 4000;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DebateOwner {
    /// Drafts, revises and synthesises.
    Gpt,
    /// Criticises and approves.
    Claude,
}

impl DebateOwner {
    /// Its name in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gpt => "gpt",
            Self::Claude => "claude",
        }
    }
}

impl fmt::Display for DebateOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DebatePhase {
    /// A first plan.
    Draft,
    /// What is wrong with a plan.
    Critique,
    /// A plan that answers its critique.
    Revision,
    /// The last word.
    Synthesis,
}

impl DebatePhase {
    /// All, in the order in which they come first.
    pub const ALL: [Self; 4] = [Self::Draft, Self::Critique, Self::Revision, Self::Synthesis];

    /// Its name in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Critique => "critique",
            Self::Revision => "revision",
            Self::Synthesis => "synthesis",
        }
    }

    /// Its name in calls, and in a provider's table of models by phase.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Draft => "crawl-draft",
            Self::Critique => "crawl-critique",
            Self::Revision => "crawl-revision",
            Self::Synthesis => "crawl-synthesis",
        }
    }

    /// Whose it is.
    #[must_use]
    pub const fn owner(self) -> DebateOwner {
        match self {
            Self::Draft | Self::Revision | Self::Synthesis => DebateOwner::Gpt,
            Self::Critique => DebateOwner::Claude,
        }
    }

    /// Tokens that its answer may take: put on the call as `max_tokens`, and checked against what the provider counted.
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

/// How many rounds a debate may take: 1 to 4, by default 2. A round is a draft or a revision, and a critique of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DebateRounds(u32);

impl DebateRounds {
    /// The most there are.
    pub const MOST: u32 = 4;

    /// This many, held to 1 and the most.
    #[must_use]
    pub fn capped(rounds: u32) -> Self {
        Self(rounds.clamp(1, Self::MOST))
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
    fn rounds_default_to_two_and_are_held_to_four() {
        assert_eq!(DebateRounds::default().get(), 2);
        for (asked, given) in [(0, 1), (1, 1), (3, 3), (4, 4), (5, 4), (u32::MAX, 4)] {
            assert_eq!(DebateRounds::capped(asked).get(), given);
        }
    }

    #[test]
    fn budgets_and_owners_are_those_of_the_seed() {
        let table = DebatePhase::ALL.map(|phase| (phase.id(), phase.owner(), phase.tokens()));
        assert_eq!(
            table,
            [
                ("crawl-draft", DebateOwner::Gpt, 2000),
                ("crawl-critique", DebateOwner::Claude, 2000),
                ("crawl-revision", DebateOwner::Gpt, 2000),
                ("crawl-synthesis", DebateOwner::Gpt, 4000),
            ]
        );
    }
}
