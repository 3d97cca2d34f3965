//! Which step of a skill failed last, with nothing that succeeded since. Pure.
//!
//! The order is that of the attempts and not of the clock: a verification belongs to an attempt, comes after it, and ends before the next
//! attempt begins.

use crucible_ledger::{SkillBuildRow, SkillBuildStatus, VerificationRow, VerificationStatus};

/// The step that failed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FailedStep<'a> {
    /// An attempt at building.
    Build(&'a SkillBuildRow),
    /// The gates of an attempt whose files were built.
    Gates(&'a SkillBuildRow, &'a VerificationRow),
}

/// A failure that stands: nothing succeeded since.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StandingFailure<'a> {
    /// What failed.
    pub step: FailedStep<'a>,
    /// How many attempts in a row came to nothing, in building or in their gates; this one among them.
    pub in_a_row: u64,
}

impl<'a> FailedStep<'a> {
    /// The attempt.
    #[must_use]
    pub(crate) const fn build(&self) -> &'a SkillBuildRow {
        match self {
            Self::Build(build) | Self::Gates(build, _) => build,
        }
    }

    /// The number of the verification, where it was the gates that failed.
    #[must_use]
    pub(crate) fn verification(&self) -> Option<u64> {
        match self {
            Self::Build(_) => None,
            Self::Gates(_, verification) => Some(verification.id),
        }
    }
}

/// The newest failure, where nothing succeeded since. Attempts and verifications that were interrupted, or still run, tell nothing.
#[must_use]
pub(crate) fn standing_failure<'a>(
    builds: &'a [SkillBuildRow],
    verifications: &'a [VerificationRow],
) -> Option<StandingFailure<'a>> {
    let mut attempts: Vec<&SkillBuildRow> = builds.iter().collect();
    attempts.sort_by_key(|build| std::cmp::Reverse(build.attempt));
    let mut newest = None;
    let mut in_a_row = 0;
    for build in attempts {
        let failed = match build.status {
            SkillBuildStatus::Running | SkillBuildStatus::Aborted => continue,
            SkillBuildStatus::Failed => FailedStep::Build(build),
            SkillBuildStatus::Succeeded => match newest_end(verifications, build.id) {
                Some(gates) if gates.status == VerificationStatus::Failed => {
                    FailedStep::Gates(build, gates)
                }
                Some(_) | None => break,
            },
        };
        in_a_row += 1;
        newest.get_or_insert(failed);
    }
    newest.map(|step| StandingFailure { step, in_a_row })
}

/// The gates that the files which stand now did not pass: those of the newest attempt that left files, whatever failed since.
pub(super) fn standing_gates<'a>(
    builds: &'a [SkillBuildRow],
    verifications: &'a [VerificationRow],
) -> Option<FailedStep<'a>> {
    let made = |build: &&SkillBuildRow| build.status == SkillBuildStatus::Succeeded;
    let build = builds
        .iter()
        .filter(made)
        .max_by_key(|build| build.attempt)?;
    let gates = newest_end(verifications, build.id)?;
    (gates.status == VerificationStatus::Failed).then_some(FailedStep::Gates(build, gates))
}

/// The newest verification of an attempt that came to an end by itself.
fn newest_end(verifications: &[VerificationRow], build: u64) -> Option<&VerificationRow> {
    let ended = |row: &&VerificationRow| {
        row.build == build
            && matches!(
                row.status,
                VerificationStatus::Passed | VerificationStatus::Failed
            )
    };
    verifications.iter().filter(ended).max_by_key(|row| row.id)
}
