//! The exit codes of the `crucible` program, in one list.
//!
//! Every error maps to one of these beside its definition, without a wildcard. The numbers are a contract
//! with scripts and CI: a meaning is never moved to another number.

use serde::Serialize;

/// The result of a command, expressed by its process exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// 0: done.
    Success,
    /// 1: refused by a policy (patch, plan, gate, verify), or a general error.
    Refused,
    /// 2: the command line or the configuration is wrong; under `crawl` this is [`Self::Refused`].
    Usage,
    /// 2, under `crawl` alone: the safety rules reject a plan.
    PlanRejected,
    /// 3: an artifact does not match its schema.
    Schema,
    /// 4: a rate limit is exhausted.
    RateLimited,
    /// 7: a packet or a context is over its limit.
    OverLimit,
    /// 8: a secret was detected.
    SecretDetected,
    /// 9: a lock is held by someone else.
    LockHeld,
    /// 10: a phase, hook or gate timed out.
    TimedOut,
    /// 70: the model provider failed, an exhausted budget included.
    Provider,
    /// 130: interrupted; the state is saved and the next command resumes.
    Interrupted,
}

impl ExitStatus {
    /// Every status, in the order of its number.
    pub const ALL: [Self; 12] = [
        Self::Success,
        Self::Refused,
        Self::Usage,
        Self::PlanRejected,
        Self::Schema,
        Self::RateLimited,
        Self::OverLimit,
        Self::SecretDetected,
        Self::LockHeld,
        Self::TimedOut,
        Self::Provider,
        Self::Interrupted,
    ];

    /// The process exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Refused => 1,
            Self::Usage | Self::PlanRejected => 2,
            Self::Schema => 3,
            Self::RateLimited => 4,
            Self::OverLimit => 7,
            Self::SecretDetected => 8,
            Self::LockHeld => 9,
            Self::TimedOut => 10,
            Self::Provider => 70,
            Self::Interrupted => 130,
        }
    }

    /// Maps to the codes of the `crawl` family, where 2 means a rejected plan and 7 and 10 do not exist
    /// (decision 0012). There, usage errors, size limits and timeouts are general errors.
    #[must_use]
    pub const fn under_crawl(self) -> Self {
        match self {
            Self::Usage | Self::OverLimit | Self::TimedOut => Self::Refused,
            Self::Success
            | Self::Refused
            | Self::PlanRejected
            | Self::Schema
            | Self::RateLimited
            | Self::SecretDetected
            | Self::LockHeld
            | Self::Provider
            | Self::Interrupted => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crawl_uses_only_its_own_exit_codes() {
        let numbers = |all: &[ExitStatus]| {
            let mut numbers: Vec<u8> = all.iter().map(|status| status.code()).collect();
            numbers.dedup();
            numbers
        };
        assert_eq!(
            numbers(&ExitStatus::ALL),
            [0, 1, 2, 3, 4, 7, 8, 9, 10, 70, 130]
        );
        let mut crawl = ExitStatus::ALL.map(|status| status.under_crawl().code());
        crawl.sort_unstable();
        let mut seen = crawl.to_vec();
        seen.dedup();
        assert_eq!(seen, [0, 1, 2, 3, 4, 8, 9, 70, 130]);
        assert_eq!(ExitStatus::Usage.under_crawl().code(), 1);
        assert_eq!(ExitStatus::PlanRejected.under_crawl().code(), 2);
    }
}
