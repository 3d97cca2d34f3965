//! The note of a failure: what the ledger keeps as RESEARCH_NOTE.

use crucible_model::{CanonicalError, Digest, Untrusted, short_line, to_canonical_json};
use serde::{Deserialize, Serialize};

use super::diagnose::FailureDiagnosis;
use super::escalation::EscalationTrigger;
use super::failed::{FailedStep, StandingFailure};

/// The form of a note.
pub(super) const NOTE_FORM: &str = "skill-research-note.v1";

/// What came of asking a model, as a note tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum NotedAdvice {
    /// Nobody was asked.
    NotAsked,
    /// No note was made; the next packet is made without it.
    Missing {
        /// Why there is no note.
        why: String,
    },
    /// It is kept as a NOTE of the attempt.
    Kept {
        /// The digest of the note.
        note: Digest,
        /// Who advises.
        model: String,
        /// How many characters of failure and packet the model was not shown.
        left_out_chars: u64,
    },
}

/// What is known of a failure, and whether a person has to look. It holds no secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResearchNote {
    /// `skill-research-note.v1`.
    pub schema_version: String,
    /// The skill.
    pub name: String,
    /// Which attempt it was.
    pub attempt: u64,
    /// Its number in the ledger.
    pub build: u64,
    /// The verification that failed, where it was the gates.
    pub verification: Option<u64>,
    /// How many attempts in a row came to nothing.
    pub failures_in_a_row: u64,
    /// Kind and facts.
    pub diagnosis: FailureDiagnosis,
    /// What was printed: an artifact.
    pub log: Option<Digest>,
    /// The end of it.
    pub excerpt: Option<Untrusted>,
    /// What came of asking a model.
    pub advice: NotedAdvice,
    /// Why a person has to look before the next attempt; empty where nobody has to.
    pub triggers: Vec<EscalationTrigger>,
    /// The same for people, in Markdown.
    pub text: String,
}

impl ResearchNote {
    /// A note that was not written down yet.
    pub(super) fn new(
        name: &str,
        failure: &StandingFailure<'_>,
        diagnosis: FailureDiagnosis,
        log: Option<Digest>,
        excerpt: Option<Untrusted>,
    ) -> Self {
        let text = failure_text(
            name,
            &failure.step,
            failure.in_a_row,
            &diagnosis,
            excerpt.as_ref(),
        );
        Self {
            schema_version: NOTE_FORM.to_owned(),
            name: name.to_owned(),
            attempt: failure.step.build().attempt,
            build: failure.step.build().id,
            verification: failure.step.verification(),
            failures_in_a_row: failure.in_a_row,
            diagnosis,
            log,
            excerpt,
            advice: NotedAdvice::NotAsked,
            triggers: Vec::new(),
            text,
        }
    }

    /// Its bytes.
    ///
    /// # Errors
    ///
    /// Never in practice: a note has a canonical form.
    pub fn document(&self) -> Result<Vec<u8>, CanonicalError> {
        to_canonical_json(self)
    }
}

/// What is known, for people and for the packet of the next attempt.
fn failure_text(
    name: &str,
    step: &FailedStep<'_>,
    in_a_row: u64,
    diagnosis: &FailureDiagnosis,
    excerpt: Option<&Untrusted>,
) -> String {
    let attempt = step.build().attempt;
    let what = match step {
        FailedStep::Build(_) => "the attempt itself",
        FailedStep::Gates(..) => "its gates",
    };
    let kind = serde_json::to_value(diagnosis.kind).unwrap_or_default();
    let mut text = format!(
        "# Why {name} failed\n\nAttempt {attempt}: {what} failed ({}), because {}.\n",
        kind.as_str().unwrap_or("UNKNOWN"),
        diagnosis.why
    );
    if in_a_row > 1 {
        text.push_str(&format!("{in_a_row} attempts in a row came to nothing.\n"));
    }
    if !diagnosis.measured.is_empty() {
        text.push_str("\n## Measured\n\n");
        for (what, value) in &diagnosis.measured {
            text.push_str(&format!(
                "- {what}: {}\n",
                short_line(&value.to_string(), 300)
            ));
        }
    }
    if !diagnosis.facts.is_empty() {
        text.push_str("\n## Found\n\n");
        for fact in &diagnosis.facts {
            text.push_str(&format!(
                "- {} {} {}: {}\n",
                fact.source, fact.code, fact.subject, fact.hint
            ));
        }
        if diagnosis.facts_left_out > 0 {
            text.push_str(&format!("- and {} more\n", diagnosis.facts_left_out));
        }
    }
    if let Some(excerpt) = excerpt {
        text.push_str("\n## The end of what was printed\n\n");
        for line in excerpt.as_str().lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text
}
