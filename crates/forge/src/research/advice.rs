//! What a model advises: a packet in the place of the old one, asked for within narrow limits, never needed.

use std::collections::BTreeMap;

use crucible_llm::{AdviceError, Advisor, Question};
use crucible_model::{Digest, Untrusted};
use crucible_secrets::Scanner;
use serde::{Deserialize, Serialize};

/// The form of kept advice.
pub(super) const ADVICE_FORM: &str = "skill-advice.v1";
/// The phase that a model of one's own can be named for.
const PHASE: &str = "research";
/// The most characters of advice that are kept.
const MAX_CHARS: usize = 32_000;

const TASK: &str = "\
A program was asked to write a small Python skill and its test, by the packet below, and came to nothing. Below stands first what is known of \
the failure, then the packet. Write the packet anew so that the next attempt succeeds. Keep every requirement, name, path, schema and limit of it as \
it is, and ask for nothing that it does not allow. Add what helps: the cause of the failure, and what to do differently. Answer with the text of \
the packet alone.";

/// Where advice comes from.
pub enum AdviceSource<'a> {
    /// Nobody is asked.
    NotAsked,
    /// This model.
    Of(&'a Advisor<'a>),
    /// A model was to be asked and cannot be.
    Unavailable(AdviceError),
}

/// Advice as it is kept: a NOTE of the attempt that failed. Its text comes from a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredAdvice {
    /// `skill-advice.v1`.
    pub schema_version: String,
    /// The attempt that failed.
    pub build: u64,
    /// The verification that failed, where it was the gates.
    pub verification: Option<u64>,
    /// Who advises.
    pub model: String,
    /// The packet that it would take the place of.
    pub packet: Digest,
    /// The packet that is proposed, without secrets, at most 32,000 characters.
    pub proposed: Untrusted,
    /// How many characters of failure and packet the model was not shown.
    pub left_out_chars: u64,
    /// How many characters of its answer are left out.
    pub cut_chars: u64,
}

/// What is asked about.
pub(super) struct AdviceRequest<'a> {
    pub(super) skill: &'a str,
    pub(super) build: u64,
    pub(super) verification: Option<u64>,
    pub(super) failure: &'a str,
    pub(super) packet: &'a str,
}

/// Asks once.
pub(super) async fn ask(
    advisor: &Advisor<'_>,
    request: &AdviceRequest<'_>,
) -> Result<StoredAdvice, AdviceError> {
    let free = |text: &str| Untrusted::new(Scanner::builtin().redact(text).text.into_owned());
    let material = [
        ("failure", free(request.failure)),
        ("packet", free(request.packet)),
    ];
    let question = Question {
        spec_id: request.skill,
        phase_id: PHASE,
        task: TASK,
        material: &material,
        hints: BTreeMap::new(),
    };
    let advice = advisor.advise(question).await?;
    let answer = free(advice.text.as_str());
    let proposed: String = answer.as_str().chars().take(MAX_CHARS).collect();
    let cut = answer.as_str().chars().count().saturating_sub(MAX_CHARS);
    Ok(StoredAdvice {
        schema_version: ADVICE_FORM.to_owned(),
        build: request.build,
        verification: request.verification,
        model: advice.model,
        packet: Digest::compute(request.packet.as_bytes()),
        proposed: Untrusted::new(proposed),
        left_out_chars: advice.left_out_chars as u64,
        cut_chars: cut as u64,
    })
}
