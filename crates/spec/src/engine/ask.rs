//! Asks a model for the document of a phase, and requests corrections.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use crucible_llm::{
    AnswerFault, CallError, Finish, LlmError, LlmInvocation, LlmReceipt, LlmResult, Message,
    ModelClient, Origin, ReceiptWarning, SecretInRequest, SecretPlace,
};
use crucible_model::{Code, Finding, RepoPath, Untrusted, Verdict, counted};
use crucible_patch::Policy;
use serde_json::Value;
use tokio::time::Instant;

use super::receipt::{add_findings, fixup_warning, record};
use super::run::PhaseRun;
use crate::document::{Fault, Requirements, review_targets};
use crate::error::SpecError;
use crate::fixup::{
    FIXUP_DIFF, ProposedFixup, describe_fixup, fixup_changes, place_fixup, propose_fixup,
};
use crate::json_output::{ANSWER_REUSED, LLM_REPLAYED};
use crate::packet::{EntryKind, Packet, PacketEntry, build_packet};
use crate::phase::{CorrectionBrief, PhaseDocument, PhaseInput};
use crate::phase_id::PhaseId;
use crate::receipt::{FixupReceipt, FixupStage};
use crate::store::PhaseOutput;

/// The most files that a hint names.
const NAMED: usize = 10;

/// Why an answer is refused.
enum Refusal {
    /// It is not a valid document.
    Document(Verdict),
    /// It is a valid document, but the proposed fixup is refused.
    Fixup(Verdict),
}

/// A model's answer.
struct PhaseAnswer {
    answer: Untrusted,
    /// Why the answer cannot be read, if it cannot.
    fault: Option<Finding>,
}

impl PhaseRun<'_> {
    /// Asks until there is a valid document, at most `attempts` times. Refused answers are kept in `context/`.
    ///
    /// # Errors
    ///
    /// [`SpecError::Call`] if the model cannot be asked, [`SpecError::PhaseTimedOut`] if the phase's time is over,
    /// [`SpecError::Answer`] and [`SpecError::FixupRefused`] if the last answer is refused as well.
    pub(crate) async fn ask(&mut self, client: &ModelClient) -> Result<(), SpecError> {
        let deadline = Instant::now() + self.order.phase_time;
        let spec = self.lock.store().spec().clone();
        let packet = match self.packet.clone() {
            Some(packet) => packet,
            None => build_packet(Vec::new(), self.order.limits)?,
        };
        let mut refused: Option<(Untrusted, Verdict)> = None;
        let mut number = 1;
        loop {
            let correction = refused
                .as_ref()
                .map(|(answer, verdict)| CorrectionBrief { answer, verdict });
            let input = PhaseInput {
                spec: &spec,
                packet: &packet,
                edit_format: self.order.edit_format,
                highest_requirement: self.highest_requirement,
                correction,
            };
            let Some(messages) = self.definition.messages(&input) else {
                return self.without_model(&input);
            };
            let reply = self.call(client, messages.clone(), deadline).await;
            let reply = reply.map_err(|error| placed(error, &messages, &packet))?;
            let refusal = match self.read(&reply, &input) {
                Ok(()) => return Ok(()),
                Err(refusal) => refusal,
            };
            let (Refusal::Document(verdict) | Refusal::Fixup(verdict)) = &refusal;
            add_findings(&mut self.entry, &mut self.untold, verdict);
            self.lock.write_context(
                &format!("{}.answer-{number}.md", self.id()),
                reply.answer.as_str().as_bytes(),
            )?;
            if number >= self.order.attempts {
                let phase = self.order.phase;
                return Err(match refusal {
                    Refusal::Document(verdict) => SpecError::Answer { phase, verdict },
                    Refusal::Fixup(verdict) => SpecError::FixupRefused { verdict },
                });
            }
            let (Refusal::Document(verdict) | Refusal::Fixup(verdict)) = refusal;
            refused = Some((reply.answer, verdict));
            number += 1;
        }
    }

    /// Makes one call within the time left for the phase.
    async fn call(
        &mut self,
        client: &ModelClient,
        messages: Vec<Message>,
        deadline: Instant,
    ) -> Result<PhaseAnswer, SpecError> {
        let phase = self.order.phase;
        let left = deadline.saturating_duration_since(Instant::now());
        let out_of_time = || SpecError::PhaseTimedOut {
            phase,
            seconds: self.order.phase_time.as_secs(),
        };
        if left.is_zero() {
            return Err(out_of_time());
        }
        let timeout = left.min(self.order.call_time);
        let invocation = LlmInvocation {
            spec_id: self.lock.store().spec().as_str().to_owned(),
            phase_id: phase.as_str().to_owned(),
            model: self.order.model.clone(),
            timeout,
            messages,
            metadata: BTreeMap::new(),
        };
        let models = client.may_answer(&invocation);
        let primary_model = models.first().cloned().unwrap_or_default();
        let (outcome, sent) = client.call_counted(invocation).await;
        self.settled = self.begun.load(Ordering::SeqCst);
        match outcome {
            Ok(result) => {
                self.tell_origin(client.origin(), sent);
                self.tally
                    .record_call(client.receipt(&result, &models, timeout), sent);
                Ok(self.phase_answer(&result))
            }
            Err(CallError::Llm(error)) => {
                let failed =
                    LlmReceipt::of_failure(client.provider(), &primary_model, &error, timeout);
                self.tally.failed(Some(failed), sent);
                match error.answer_fault() {
                    Some(fault) => Ok(PhaseAnswer {
                        answer: Untrusted::new(""),
                        fault: Some(unreadable(fault)),
                    }),
                    None if matches!(error, LlmError::Timeout { .. })
                        && timeout < self.order.call_time =>
                    {
                        Err(out_of_time())
                    }
                    None => Err(CallError::Llm(error).into()),
                }
            }
            Err(error @ (CallError::Secret(_) | CallError::Record(_))) => {
                self.tally.failed(None, sent);
                Err(error.into())
            }
        }
    }

    /// Warns once about answers that come from a recording or an earlier attempt.
    fn tell_origin(&mut self, origin: Origin, sent: u64) {
        let (kind, message) = match origin {
            Origin::Recording => (
                LLM_REPLAYED,
                "answered from a recording; no model was called",
            ),
            Origin::Live | Origin::Unpaid if sent == 0 => (
                ANSWER_REUSED,
                "an answer that an earlier attempt received was reused",
            ),
            Origin::Live | Origin::Unpaid => return,
        };
        if !self
            .entry
            .warnings
            .iter()
            .any(|warning| warning.kind == kind)
        {
            self.warn(ReceiptWarning {
                kind: kind.to_owned(),
                message: message.to_owned(),
            });
        }
    }

    fn phase_answer(&mut self, result: &LlmResult) -> PhaseAnswer {
        let redactions = result
            .extensions
            .get(LlmResult::REDACTIONS)
            .and_then(Value::as_u64)
            .unwrap_or_default();
        if redactions > 0 {
            self.warn(ReceiptWarning {
                kind: "answer_redacted".to_owned(),
                message: format!("{} removed from the answer", counted(redactions, "secret")),
            });
        }
        let fault = match result.finish() {
            Finish::Truncated => Some(cut_by(result).into_finding(&result.model_used)),
            Finish::Other(reason) => {
                self.warn(ReceiptWarning {
                    kind: "answer_end_unclear".to_owned(),
                    message: format!(
                        "the provider ended this answer with {reason:?}, so it may be incomplete; check the \
                        end of the document"
                    ),
                });
                None
            }
            Finish::Complete | Finish::Unknown => None,
        };
        PhaseAnswer {
            answer: result.answer(),
            fault,
        }
    }

    /// Parses an answer into outputs.
    fn read(&mut self, answer: &PhaseAnswer, input: &PhaseInput<'_>) -> Result<(), Refusal> {
        if let Some(fault) = &answer.fault {
            return Err(Refusal::Document(Verdict::new(vec![fault.clone()])));
        }
        let document = self
            .definition
            .read(&answer.answer, input)
            .map_err(Refusal::Document)?;
        self.take(document, input.packet)
    }

    /// Writes the document if no model call is needed.
    fn without_model(&mut self, input: &PhaseInput<'_>) -> Result<(), SpecError> {
        let phase = self.order.phase;
        let Some(document) = self.definition.without_model(input) else {
            return Err(SpecError::Answer {
                phase,
                verdict: Verdict::default(),
            });
        };
        self.take(document, input.packet)
            .map_err(|refusal| match refusal {
                Refusal::Document(verdict) => SpecError::Answer { phase, verdict },
                Refusal::Fixup(verdict) => SpecError::FixupRefused { verdict },
            })
    }

    /// Turns the document into outputs.
    fn take(&mut self, document: PhaseDocument, packet: &Packet) -> Result<(), Refusal> {
        let PhaseDocument {
            mut text,
            warnings,
            proposal,
        } = document;
        let mut diff = None;
        if let Some(answer) = proposal {
            let files = shown_files(packet);
            let (format, choice) = (self.order.edit_format, &self.order.fixups);
            let proposed =
                propose_fixup(&answer, format, &files, &choice.policy).map_err(Refusal::Fixup)?;
            within_the_review(&proposed, packet, &choice.policy).map_err(Refusal::Fixup)?;
            let proposed = place_fixup(self.lock.store().project(), proposed, &files, choice)
                .map_err(Refusal::Fixup)?;
            text.push_str("\n## Changes\n\n");
            text.push_str(&describe_fixup(
                &fixup_changes(&proposed.diff).map_err(Refusal::Fixup)?,
            ));
            self.entry
                .warnings
                .extend(proposed.verdict.findings().iter().map(fixup_warning));
            diff = Some((proposed.diff, proposed.files));
        }
        self.entry.warnings.extend(warnings);
        if self.order.phase == PhaseId::Requirements {
            let highest = Requirements::of_artifact(&text)
                .highest()
                .max(self.highest_requirement);
            self.entry.highest_requirement = Some(highest);
        }
        let path = format!("artifacts/{}", self.order.phase.artifact());
        self.outputs = vec![PhaseOutput {
            path,
            bytes: text.into_bytes(),
        }];
        if self.order.phase == PhaseId::Fixup {
            let stage = if diff.is_some() {
                FixupStage::Pending
            } else {
                FixupStage::None
            };
            let (diff, files) = diff.unwrap_or_default();
            // An empty diff replaces one of an earlier run.
            let output = PhaseOutput {
                path: FIXUP_DIFF.to_owned(),
                bytes: diff,
            };
            self.entry.fixups = Some(FixupReceipt {
                stage,
                patch: Some(record(&output)),
                files,
            });
            self.outputs.push(output);
        }
        Ok(())
    }
}

/// Attributes a secret in a message to the packet entry that contains it.
fn placed(error: SpecError, messages: &[Message], packet: &Packet) -> SpecError {
    let SpecError::Call(CallError::Secret(SecretInRequest {
        rule,
        place: SecretPlace::Message(index),
        line,
    })) = &error
    else {
        return error;
    };
    let number = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    let text = messages
        .get(*index)
        .and_then(|message| message.content.as_str().lines().nth(number));
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return error;
    };
    let found = packet.entries.iter().find_map(|entry| {
        let line = entry
            .content
            .as_str()
            .lines()
            .position(|line| line == text)?;
        Some((entry.place(), line as u64 + 1))
    });
    match found {
        Some((entry, line)) => SpecError::SecretInPacket {
            entry,
            rule: rule.clone(),
            line,
        },
        None => error,
    }
}

/// Refuses files that neither a finding of the review nor the user names: the model sees more files than
/// it may change.
fn within_the_review(
    proposed: &ProposedFixup,
    packet: &Packet,
    policy: &Policy,
) -> Result<(), Verdict> {
    let review = packet
        .entries
        .iter()
        .find(|entry| entry.kind == EntryKind::Artifact(PhaseId::Review));
    let targets = review
        .map(|review| review_targets(&review.content))
        .unwrap_or_default();
    let may = |path: &str| {
        targets
            .iter()
            .chain(&policy.named)
            .any(|named| named.as_str() == path)
    };
    let names: Vec<&str> = targets.iter().map(RepoPath::as_str).take(NAMED).collect();
    let refused = proposed.files.iter().filter(|file| !may(&file.path)).map(|file| {
        let hint = format!(
            "no finding of the review names this file, so it stays as it is; change only what findings name: {}",
            names.join(", ")
        );
        Finding::error(Code::new("fixup-file-not-named"), &file.path, hint)
    });
    let refused: Vec<Finding> = refused.collect();
    if refused.is_empty() {
        Ok(())
    } else {
        Err(Verdict::new(refused))
    }
}

/// The project files that the model was shown, by path.
fn shown_files(packet: &Packet) -> BTreeMap<RepoPath, Vec<u8>> {
    let file = |entry: &PacketEntry| {
        Some((
            entry.name.parse().ok()?,
            entry.content.as_str().as_bytes().to_vec(),
        ))
    };
    packet.files().filter_map(file).collect()
}

/// The fault of an answer that was cut off.
fn cut_by(result: &LlmResult) -> Fault {
    match result
        .extensions
        .get(LlmResult::FINISH_REASON)
        .and_then(Value::as_str)
    {
        Some("content_filter" | "refusal") => Fault::Filtered,
        _ => Fault::CutOff,
    }
}

/// The finding about an answer that cannot be used.
fn unreadable(fault: AnswerFault) -> Finding {
    match fault {
        AnswerFault::Empty => Fault::Empty.into_finding("the answer"),
        AnswerFault::TooLarge => {
            Fault::TooLong.into_finding("the answer is longer than what is read of one")
        }
    }
}

#[cfg(test)]
mod tests {
    use crucible_model::PromptBuilder;

    use super::*;
    use crate::packet::PacketLimits;

    /// A secret that only the client finds, because it is one only together with the text around it.
    #[test]
    fn secret_in_message_is_attributed_to_entry() {
        let entry = |kind, name: &str, text: &str| PacketEntry {
            kind,
            name: name.to_owned(),
            content: Untrusted::new(text),
        };
        let entries = vec![
            entry(
                EntryKind::Idea,
                "context/idea.md",
                "users can export\n\ntheir data\n",
            ),
            entry(EntryKind::Named, "src/keys.py", "one = 1\ntwo = 2\n"),
        ];
        let packet = build_packet(entries, PacketLimits::default()).unwrap();
        let user = packet.entries.iter().fold(
            PromptBuilder::new().fixed_text("The material:\n"),
            |prompt, entry| prompt.untrusted(&entry.name, &entry.content),
        );
        let messages = vec![
            Message::system(PromptBuilder::new().fixed_text("You write.").build()),
            Message::user(user.build()),
        ];
        let placed_message = |line: u64, message: usize| {
            let place = SecretPlace::Message(message);
            let error = CallError::Secret(SecretInRequest {
                rule: "made-up".to_owned(),
                place,
                line,
            });
            match placed(error.into(), &messages, &packet) {
                SpecError::SecretInPacket { entry, rule, line } => Some((entry, rule, line)),
                _ => None,
            }
        };
        let at = |text: &str| {
            let found = messages[1]
                .content
                .as_str()
                .lines()
                .position(|line| line == text)
                .unwrap();
            found as u64 + 1
        };
        let expected = |entry: &str, line| Some((entry.to_owned(), "made-up".to_owned(), line));
        assert_eq!(placed_message(at("two = 2"), 1), expected("src/keys.py", 2));
        assert_eq!(
            placed_message(at("their data"), 1),
            expected("context/idea.md", 3)
        );
        // Our own words, an empty line and a line that does not exist belong to no entry.
        for (line, message) in [
            (1, 0),
            (at("The material:"), 1),
            (at(""), 1),
            (9_999, 1),
            (0, 1),
            (1, 7),
        ] {
            assert_eq!(
                placed_message(line, message),
                None,
                "line {line} of message {message}"
            );
        }
    }
}
