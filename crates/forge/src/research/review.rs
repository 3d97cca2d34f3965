//! What stands between a failure and the next attempt: whether a person has to review it, that a person did, and what the next packet is given.
//!
//! All of it follows from the rows and from notes of forms of our own; what a model wrote stands in a field of such a note and can be none.

use std::collections::BTreeSet;

use crucible_ledger::{Ledger, LedgerError, Moment, SkillArtifactKind, SkillArtifactRow, SkillRow};
use crucible_model::{Untrusted, to_canonical_json};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::advice::{ADVICE_FORM, StoredAdvice};
use super::escalation::EscalationTrigger;
use super::note::{NOTE_FORM, NotedAdvice, ResearchNote};
use super::step::{FailureRecord, found_in_standing, load_failure};

/// The form of a review.
const REVIEW_FORM: &str = "skill-review.v1";
/// A larger note is not ours.
const MAX_BYTES: u64 = 1 << 20;

/// A person's review of a failure, as it is kept: a NOTE of the attempt that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SkillReview {
    /// `skill-review.v1`.
    pub schema_version: String,
    /// The attempt that failed.
    pub build: u64,
    /// The verification that failed, where it was the gates.
    pub verification: Option<u64>,
    /// Who looked.
    pub by: String,
    /// What they say.
    pub reason: String,
    /// What called them.
    pub triggers: Vec<EscalationTrigger>,
}

/// What the packet of the next attempt is given of the current failure. Both texts come from outside: they belong into a fence, and widen
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryMaterial {
    /// What is known of the failure, in Markdown, bounded, without secrets and without the held-out examples.
    pub failure: Untrusted,
    /// Where the newest attempt came to nothing: what the gates had found in the files that stand from an earlier one, likewise.
    pub standing: Option<Untrusted>,
    /// The packet that a model proposed, where one did; the newest.
    pub advice: Option<Untrusted>,
}

/// Why a person has to review before the next attempt at a skill; empty if no failure is current, no review is needed, or one was made
/// ([`record_review`]). It holds whether or not the failure was researched.
///
/// # Errors
///
/// Fails when the ledger cannot be read.
pub fn needs_review(
    ledger: &Ledger,
    skill: &SkillRow,
) -> Result<Vec<EscalationTrigger>, LedgerError> {
    match load_failure(ledger, skill)? {
        Some(looked) => looked.unreviewed(ledger),
        None => Ok(Vec::new()),
    }
}

/// Records a review of the current failure, and returns the reasons that required it; without such reasons, nothing is recorded. `by` and
/// `reason` hold no secret: the caller that takes them from a user has checked.
///
/// # Errors
///
/// Fails when the ledger cannot be read or written.
pub(crate) fn record_review(
    ledger: &mut Ledger,
    skill: &SkillRow,
    by: &str,
    reason: &str,
    moment: Moment,
) -> Result<Vec<EscalationTrigger>, LedgerError> {
    let Some(looked) = load_failure(ledger, skill)? else {
        return Ok(Vec::new());
    };
    let triggers = looked.unreviewed(ledger)?;
    if triggers.is_empty() {
        return Ok(triggers);
    }
    let review = SkillReview {
        schema_version: REVIEW_FORM.to_owned(),
        build: looked.note.build,
        verification: looked.note.verification,
        by: by.to_owned(),
        reason: reason.to_owned(),
        triggers: triggers.clone(),
    };
    let bytes = to_canonical_json(&review)?;
    ledger.keep_skill_artifact(
        skill.id,
        Some(review.build),
        SkillArtifactKind::Note,
        &bytes,
        moment,
    )?;
    Ok(triggers)
}

/// What the packet of the next attempt is given; nothing where no failure stands.
///
/// # Errors
///
/// Fails when the ledger cannot be read.
pub(crate) fn retry_material(
    ledger: &Ledger,
    skill: &SkillRow,
) -> Result<Option<RetryMaterial>, LedgerError> {
    let Some(looked) = load_failure(ledger, skill)? else {
        return Ok(None);
    };
    let mut advice = None;
    for row in looked.of_the_attempt(SkillArtifactKind::Note) {
        let stored_advice: Option<StoredAdvice> = read(ledger, row)?;
        let matching = stored_advice.filter(|stored_advice| {
            stored_advice.schema_version == ADVICE_FORM
                && looked.is_about(stored_advice.build, stored_advice.verification)
        });
        advice = matching
            .map(|stored_advice| stored_advice.proposed)
            .or(advice);
    }
    let standing = match looked.note.verification {
        None => found_in_standing(ledger, skill)?,
        Some(_) => None,
    };
    Ok(Some(RetryMaterial {
        failure: Untrusted::new(looked.note.text),
        standing,
        advice,
    }))
}

impl FailureRecord {
    /// What calls a person and was looked at by none: what the rows say, and what each note of this failure added. A review covers what came
    /// before it. That there was no advice counts until the next note.
    pub(super) fn unreviewed(
        &self,
        ledger: &Ledger,
    ) -> Result<Vec<EscalationTrigger>, LedgerError> {
        const OF_ADVICE: [EscalationTrigger; 2] = [
            EscalationTrigger::PermissionWidening,
            EscalationTrigger::LargeDiff,
        ];
        let mut open: BTreeSet<EscalationTrigger> = self.note.triggers.iter().copied().collect();
        let mut unanswered = false;
        for row in self
            .artifacts
            .iter()
            .filter(|row| row.build == Some(self.note.build))
        {
            match row.kind {
                SkillArtifactKind::ResearchNote => {
                    let note: Option<ResearchNote> = read(ledger, row)?;
                    let Some(note) = note.filter(|note| {
                        note.schema_version == NOTE_FORM
                            && self.is_about(note.build, note.verification)
                    }) else {
                        continue;
                    };
                    unanswered = matches!(note.advice, NotedAdvice::Missing { .. });
                    if matches!(note.advice, NotedAdvice::Kept { .. }) {
                        open.extend(
                            note.triggers
                                .into_iter()
                                .filter(|trigger| OF_ADVICE.contains(trigger)),
                        );
                    }
                }
                SkillArtifactKind::Note => {
                    let review: Option<SkillReview> = read(ledger, row)?;
                    let Some(review) = review.filter(|review| {
                        review.schema_version == REVIEW_FORM
                            && self.is_about(review.build, review.verification)
                    }) else {
                        continue;
                    };
                    unanswered &= !review.triggers.contains(&EscalationTrigger::Ambiguous);
                    open.retain(|trigger| !review.triggers.contains(trigger));
                }
                _ => {}
            }
        }
        if unanswered {
            open.insert(EscalationTrigger::Ambiguous);
        }
        Ok(open.into_iter().collect())
    }

    fn is_about(&self, build: u64, verification: Option<u64>) -> bool {
        (build, verification) == (self.note.build, self.note.verification)
    }

    fn of_the_attempt(&self, kind: SkillArtifactKind) -> impl Iterator<Item = &SkillArtifactRow> {
        self.artifacts
            .iter()
            .filter(move |row| row.kind == kind && row.build == Some(self.note.build))
    }
}

/// An artifact, where it is of this form.
fn read<T: DeserializeOwned>(
    ledger: &Ledger,
    row: &SkillArtifactRow,
) -> Result<Option<T>, LedgerError> {
    if ledger
        .artifact_size(&row.digest)?
        .is_none_or(|size| size > MAX_BYTES)
    {
        return Ok(None);
    }
    let bytes = ledger.artifact(&row.digest)?.unwrap_or_default();
    Ok(serde_json::from_slice(&bytes).ok())
}
