//! The step: look into the failure that stands, ask a model where that is wanted, and keep the note.

use crucible_host::lock::LockError;
use crucible_ledger::{
    Ledger, LedgerError, Moment, SkillArtifactKind, SkillArtifactRow, SkillGateRow, SkillRow,
};
use crucible_model::{CanonicalError, Digest, Untrusted, short_line, to_canonical_json};
use crucible_secrets::Scanner;

use super::advice::{AdviceRequest, AdviceSource, StoredAdvice, ask};
use super::diagnose::diagnose;
use super::escalation::{EscalationAdvice, escalation};
use super::excerpt::{log_of, read_end};
use super::failed::{FailedStep, StandingFailure, standing_failure, standing_gates};
use super::note::{NotedAdvice, ResearchNote};
use super::review::needs_review;
use crate::agent::ANSWER_CUT;
use crate::build::{SettleError, settle_builds};
use crate::context::ForgeContext;
use crate::name::SkillName;
use crate::project::ForgeProject;
use crate::status::{SkillStep, StepRefused};

/// Why nothing is looked into.
#[derive(Debug, thiserror::Error)]
pub enum ResearchError {
    /// Another process works on the skill, or its lock cannot be taken.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The ledger cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The project has no such skill.
    #[error("this project has no skill {name}")]
    Unknown {
        /// The name as given.
        name: SkillName,
    },
    /// What a killed build left cannot be settled.
    #[error(transparent)]
    Unsettled(#[from] SettleError),
    /// The skill stands elsewhere.
    #[error(transparent)]
    Refused(#[from] StepRefused),
    /// Nothing failed since something last succeeded.
    #[error(
        "nothing of the skill {name} failed, or it has succeeded since; `crucible skill show {name}` tells what may follow"
    )]
    NothingFailed {
        /// The skill without an open failure.
        name: SkillName,
    },
    /// A note has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
}

/// What came of looking.
#[derive(Debug, Clone, PartialEq)]
pub struct ResearchOutcome {
    /// The note, as the ledger stores it.
    pub note: ResearchNote,
    /// Its digest in the ledger.
    pub digest: Digest,
    /// The packet that a model proposes, where one did.
    pub proposed: Option<Untrusted>,
    /// Whether a person has to look before the next attempt, with all that is known of this failure; empty where nobody has to, or
    /// a person did.
    pub unreviewed: Vec<super::EscalationTrigger>,
}

/// What the rows of a skill say of the failure that stands.
pub(super) struct FailureRecord {
    pub(super) note: ResearchNote,
    pub(super) artifacts: Vec<SkillArtifactRow>,
}

/// Reads the failure of a skill that stands, and judges it. Nothing where none stands.
pub(super) fn load_failure(
    ledger: &Ledger,
    skill: &SkillRow,
) -> Result<Option<FailureRecord>, LedgerError> {
    let builds = ledger.skill_builds(skill.id)?;
    let verifications = ledger.verifications(skill.id)?;
    let Some(failure) = standing_failure(&builds, &verifications) else {
        return Ok(None);
    };
    let artifacts = ledger.skill_artifacts(skill.id)?;
    let mut note = note_of(ledger, skill, &failure, &artifacts)?;
    note.triggers = escalation(
        &note.diagnosis,
        note.failures_in_a_row,
        EscalationAdvice::NotAsked,
    );
    Ok(Some(FailureRecord { note, artifacts }))
}

fn note_of(
    ledger: &Ledger,
    skill: &SkillRow,
    failure: &StandingFailure<'_>,
    artifacts: &[SkillArtifactRow],
) -> Result<ResearchNote, LedgerError> {
    let gates: Vec<SkillGateRow> = match failure.step {
        FailedStep::Build(_) => Vec::new(),
        FailedStep::Gates(_, verification) => ledger.skill_gates(verification.id)?,
    };
    let log = log_of(&failure.step, &gates, artifacts);
    let excerpt = log.map(|log| read_end(ledger, &log)).transpose()?.flatten();
    let diagnosis = diagnose(
        &failure.step,
        &gates,
        excerpt.as_ref().map(Untrusted::as_str),
    );
    let is_cut = diagnosis
        .facts
        .iter()
        .any(|fact| fact.code == ANSWER_CUT.as_str());
    Ok(ResearchNote::new(
        &skill.name,
        failure,
        diagnosis,
        log,
        excerpt.filter(|_| !is_cut),
    ))
}

/// What the gates found in the current files, as a note reports it. An attempt that failed since then has fixed none of it.
pub(super) fn found_in_standing(
    ledger: &Ledger,
    skill: &SkillRow,
) -> Result<Option<Untrusted>, LedgerError> {
    let builds = ledger.skill_builds(skill.id)?;
    let verifications = ledger.verifications(skill.id)?;
    let Some(step) = standing_gates(&builds, &verifications) else {
        return Ok(None);
    };
    let failure = StandingFailure { step, in_a_row: 1 };
    let note = note_of(ledger, skill, &failure, &ledger.skill_artifacts(skill.id)?)?;
    Ok(Some(Untrusted::new(note.text)))
}

/// Looks into the failure that stands and keeps a note of it; with `advice` a model is asked for a packet that does better. Without an answer the
/// packet stays what it was, and a person is called.
///
/// # Errors
///
/// See [`ResearchError`]. Missing advice is not an error.
pub async fn research(
    world: &ForgeContext<'_>,
    project: &ForgeProject,
    name: &SkillName,
    ledger: &mut Ledger,
    advice: AdviceSource<'_>,
) -> Result<ResearchOutcome, ResearchError> {
    let _alone = project.lock(&world.home, name, "crucible skill research")?;
    settle_builds(world, project, ledger, name)?;
    let skill = ledger
        .skill(project.key(), name.as_str())?
        .ok_or_else(|| ResearchError::Unknown { name: name.clone() })?;
    SkillStep::Research.check(name, skill.status)?;
    let Some(FailureRecord {
        mut note,
        artifacts,
    }) = load_failure(ledger, &skill)?
    else {
        return Err(ResearchError::NothingFailed { name: name.clone() });
    };
    let mut proposed = None;
    if !matches!(advice, AdviceSource::NotAsked) {
        let packet = packet_of(ledger, &artifacts, note.build)?;
        let given_stored_advice = advised(advice, &note, &packet).await;
        let state = match &given_stored_advice {
            Ok(stored_advice) => EscalationAdvice::Proposed {
                old: &packet,
                new: stored_advice.proposed.as_str(),
            },
            Err(_) => EscalationAdvice::Missing,
        };
        note.triggers = escalation(&note.diagnosis, note.failures_in_a_row, state);
        note.advice = match given_stored_advice {
            Ok(stored_advice) => {
                let bytes = to_canonical_json(&stored_advice)?;
                let moment = Moment::now(world.clock);
                let kind = SkillArtifactKind::Note;
                let digest =
                    ledger.keep_skill_artifact(skill.id, Some(note.build), kind, &bytes, moment)?;
                proposed = Some(stored_advice.proposed);
                NotedAdvice::Kept {
                    note: digest,
                    model: stored_advice.model,
                    left_out_chars: stored_advice.left_out_chars,
                }
            }
            Err(why) => NotedAdvice::Missing { why },
        };
    }
    let bytes = note.document()?;
    let kind = SkillArtifactKind::ResearchNote;
    let digest = ledger.keep_skill_artifact(
        skill.id,
        Some(note.build),
        kind,
        &bytes,
        Moment::now(world.clock),
    )?;
    let unreviewed = needs_review(ledger, &skill)?;
    Ok(ResearchOutcome {
        note,
        digest,
        proposed,
        unreviewed,
    })
}

/// Asks, or tells why there is no advice: without secrets.
async fn advised(
    advice: AdviceSource<'_>,
    note: &ResearchNote,
    packet: &str,
) -> Result<StoredAdvice, String> {
    let request = AdviceRequest {
        skill: &note.name,
        build: note.build,
        verification: note.verification,
        failure: &note.text,
        packet,
    };
    let given_stored_advice = match advice {
        AdviceSource::Of(advisor) => ask(advisor, &request)
            .await
            .map_err(|error| error.to_string()),
        AdviceSource::Unavailable(error) => Err(error.to_string()),
        AdviceSource::NotAsked => Err("nobody was asked".to_owned()),
    };
    given_stored_advice.map_err(|why| short_line(&Scanner::builtin().redact(&why).text, 500))
}

/// The packet of an attempt; empty where none is kept.
fn packet_of(
    ledger: &Ledger,
    artifacts: &[SkillArtifactRow],
    build: u64,
) -> Result<String, LedgerError> {
    let is_build_packet = |row: &&SkillArtifactRow| {
        row.kind == SkillArtifactKind::BuildPacket && row.build == Some(build)
    };
    let bytes = match artifacts.iter().rfind(is_build_packet) {
        Some(row) => ledger.artifact(&row.digest)?.unwrap_or_default(),
        None => Vec::new(),
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
