//! Builds the receipt of an attempt, as a pure function of its results.

use std::collections::BTreeMap;

use crucible_llm::{ExecutionStrategy, PipelineReceipt, ReceiptWarning};
use crucible_model::{ClockSource, Digest, ExitStatus, Finding, Timestamp, Verdict, short_line};

use crate::error::SpecError;
use crate::hook::HookConsequence;
use crate::id::SpecId;
use crate::receipt::{
    FileRecord, HookReceipt, PhaseEntry, PhaseStatus, RECEIPT_SCHEMA, ReceiptId, SpecReceipt,
};
use crate::store::PhaseOutput;

/// The most findings in a receipt, and the lengths of their texts.
const MAX_FINDINGS: usize = 40;
const SUBJECT: usize = 200;
const HINT: usize = 400;

/// The most warnings of a kind in a receipt, and their length. There are few kinds.
const MAX_WARNINGS: u64 = 20;
const WARNING: usize = 1_000;

/// The time of a receipt, and whether it is real.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    /// The time.
    pub(super) at: Timestamp,
    pub(super) clock: ClockSource,
}

/// The receipt of an attempt; links, sequence number and digest are added when it is promoted.
pub(super) fn receipt(
    spec: &SpecId,
    id: &ReceiptId,
    entry: PhaseEntry,
    exit: ExitStatus,
    written: Written,
) -> SpecReceipt {
    let entry = PhaseEntry {
        finished_at: Some(written.at),
        ..entry
    };
    SpecReceipt {
        schema_version: RECEIPT_SCHEMA.to_owned(),
        receipt_id: id.as_str().to_owned(),
        spec_id: spec.as_str().to_owned(),
        sequence: id.sequence(),
        emitted_at: Some(written.at),
        clock: Some(written.clock),
        dry_run: entry.status == PhaseStatus::DryRun,
        exit_code: Some(exit.code()),
        phases: vec![entry],
        pipeline: Some(PipelineReceipt {
            execution_strategy: ExecutionStrategy::Controlled,
        }),
        previous: None,
        last_real: None,
        last_success: None,
        crucible_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        digest: None,
    }
}

/// The record of an output.
pub(super) fn record(output: &PhaseOutput) -> FileRecord {
    FileRecord {
        path: output.path.clone(),
        sha256: Digest::compute(&output.bytes),
        bytes: output.bytes.len() as u64,
    }
}

/// A warning of the patch gate.
pub(super) fn fixup_warning(finding: &Finding) -> ReceiptWarning {
    ReceiptWarning {
        kind: "fixup".to_owned(),
        message: short_line(&finding.to_string(), HINT),
    }
}

/// Adds the findings about an answer, and counts in `untold` those that exceed the limit.
pub(super) fn add_findings(entry: &mut PhaseEntry, untold: &mut u64, verdict: &Verdict) {
    for finding in verdict.findings() {
        if entry.findings.len() == MAX_FINDINGS {
            *untold += 1;
            continue;
        }
        entry.findings.push(Finding {
            subject: short_line(&finding.subject, SUBJECT),
            hint: short_line(&finding.hint, HINT),
            ..finding.clone()
        });
    }
}

/// Adds hooks that ran, and their warnings.
///
/// # Errors
///
/// The error of a failed hook that is set to `fail`.
pub(super) fn add_hooks(
    entry: &mut PhaseEntry,
    hooks: Vec<HookReceipt>,
    consequence: HookConsequence,
) -> Result<(), SpecError> {
    entry.hooks.extend(hooks);
    match consequence {
        HookConsequence::GoOn(warnings) => {
            entry.warnings.extend(warnings);
            Ok(())
        }
        HookConsequence::Fail(error) => Err(error),
    }
}

/// Limits an entry for a receipt: omitted findings are counted in the last finding, omitted warnings in
/// one of each kind.
pub(super) fn bounded(mut entry: PhaseEntry, untold: u64) -> PhaseEntry {
    if untold > 0
        && let Some(last) = entry.findings.last_mut()
    {
        last.hint = format!(
            "{untold} more findings are not listed here; the refused answers are in context/."
        );
    }
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let mut reported = Vec::new();
    for warning in std::mem::take(&mut entry.warnings) {
        let count = kinds.entry(warning.kind.clone()).or_default();
        *count += 1;
        if *count <= MAX_WARNINGS {
            reported.push(ReceiptWarning {
                message: short_line(&warning.message, WARNING),
                ..warning
            });
        }
    }
    let more = kinds.into_iter().filter_map(|(kind, count)| {
        let over = count.checked_sub(MAX_WARNINGS).filter(|over| *over > 0)?;
        Some(ReceiptWarning {
            kind,
            message: format!("{over} more of these are not listed here"),
        })
    });
    reported.extend(more);
    entry.warnings = reported;
    entry
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use crucible_llm::{Fault, FellBack, LlmError, LlmReceipt, LlmResult};
    use crucible_model::{Code, to_canonical_json};
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::Value;

    use super::super::tally::Tally;
    use super::*;
    use crate::phase_id::PhaseId;
    use crate::receipt::PhaseFailure;

    /// A call of a phase, as its client reports it.
    #[derive(Debug, Clone)]
    enum Call {
        Answered {
            provider: String,
            model: String,
            tokens: Option<u32>,
        },
        Failed(LlmError),
    }

    fn calls() -> impl Strategy<Value = Vec<Call>> {
        let answered =
            (".{1,40}", ".{1,40}", any::<Option<u32>>()).prop_map(|(provider, model, tokens)| {
                Call::Answered {
                    provider,
                    model,
                    tokens,
                }
            });
        let failed = any::<String>().prop_map(|what| {
            Call::Failed(LlmError::ProviderOutage(Fault::new(
                "gateway", "m", what, "next",
            )))
        });
        prop::collection::vec(prop_oneof![answered, failed], 0..5)
    }

    fn tally(calls: &[Call]) -> Tally {
        let mut tally = Tally::default();
        let allowed = Duration::from_secs(300);
        for call in calls {
            match call {
                Call::Answered {
                    provider,
                    model,
                    tokens,
                } => {
                    let result = LlmResult {
                        raw_response: String::new(),
                        provider: provider.clone(),
                        model_used: model.clone(),
                        tokens_input: tokens.map(u64::from),
                        tokens_output: None,
                        timed_out: Some(false),
                        extensions: BTreeMap::new(),
                    };
                    tally.record_call(LlmReceipt::of_answer(&result, allowed, None), 1);
                }
                Call::Failed(error) => {
                    tally.failed(
                        Some(LlmReceipt::of_failure("gateway", "m", error, allowed)),
                        1,
                    );
                }
            }
        }
        tally
    }

    /// The receipt of an attempt with these calls, as written.
    fn attempt_receipt(
        phase: PhaseId,
        status: PhaseStatus,
        exit: ExitStatus,
        tally: &Tally,
        text: &str,
    ) -> Value {
        let at: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let error = (status == PhaseStatus::Failed).then(|| PhaseFailure {
            class: "provider".to_owned(),
            message: text.to_owned(),
        });
        let phase_entry = PhaseEntry {
            status,
            llm: tally.receipt(),
            attempts: tally.attempts(),
            error,
            ..PhaseEntry::begun(phase, at)
        };
        let id = ReceiptId::new(phase, at, 1);
        let spec = "export-data".parse().unwrap();
        let spec_receipt = receipt(
            &spec,
            &id,
            phase_entry,
            exit,
            Written {
                at,
                clock: ClockSource::System,
            },
        );
        serde_json::from_slice(&to_canonical_json(&spec_receipt).unwrap()).unwrap()
    }

    mod properties {
        use super::*;

        proptest! {
            /// For any attempt and any end.
            #[test]
            fn p2_every_receipt_names_the_execution_strategy(
                phase in select(PhaseId::ALL.to_vec()),
                status in select(vec![PhaseStatus::Success, PhaseStatus::Failed, PhaseStatus::DryRun]),
                exit in select(ExitStatus::ALL.to_vec()),
                calls in calls(),
                said in any::<String>(),
            ) {
                let json = attempt_receipt(phase, status, exit, &tally(&calls), &said);
                prop_assert_eq!(&json["pipeline"]["execution_strategy"], "controlled");
                prop_assert_eq!(&json["exit_code"], exit.code());
                prop_assert_eq!(&json["dry_run"], status == PhaseStatus::DryRun);
                prop_assert_eq!(&json["phases"][0]["phase_id"], phase.as_str());
            }

            /// For any calls of which the last was answered.
            #[test]
            fn success_with_model_names_provider_and_model(
                phase in select(PhaseId::ALL.to_vec()),
                earlier in calls(),
                (provider, model) in (".{1,40}", ".{1,40}"),
            ) {
                let mut calls = earlier;
                calls.push(Call::Answered { provider: provider.clone(), model: model.clone(), tokens: Some(1) });
                let json = attempt_receipt(phase, PhaseStatus::Success, ExitStatus::Success, &tally(&calls), "");
                let llm = &json["phases"][0]["llm"];
                prop_assert_eq!(llm["provider"].as_str(), Some(provider.as_str()));
                prop_assert_eq!(llm["model_used"].as_str(), Some(model.as_str()));
                prop_assert!(llm["error"].is_null());
                prop_assert_eq!(json["phases"][0]["attempts"].as_u64(), Some(calls.len() as u64));
            }

            /// The warning of a fallback is in the receipt, with both names and the class of the
            /// failure.
            #[test]
            fn fallback_is_warned_of_in_the_receipt(
                (primary, fallback) in ("[a-z-]{1,20}", "[a-z-]{1,20}"),
                reason in any::<String>(),
                category in select(vec!["misconfiguration", "transport", "provider_auth"]),
            ) {
                let fell_back = FellBack { primary: primary.clone(), category, reason, fallback: fallback.clone() };
                let at: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
                let mut phase_entry = PhaseEntry::begun(PhaseId::Design, at);
                phase_entry.warnings.push(ReceiptWarning::fallback(&fell_back));
                let id = ReceiptId::new(PhaseId::Design, at, 1);
                let written = Written { at, clock: ClockSource::System };
                let spec_receipt = receipt(&"s".parse().unwrap(), &id, phase_entry, ExitStatus::Success, written);
                let json: Value = serde_json::from_slice(&to_canonical_json(&spec_receipt).unwrap()).unwrap();
                let warning = &json["phases"][0]["warnings"][0];
                prop_assert_eq!(&warning["type"], "llm_fallback");
                let message = warning["message"].as_str().unwrap();
                prop_assert!(message.contains(&primary) && message.contains(&fallback) && message.contains(category));
            }
        }
    }

    #[test]
    fn findings_are_short_and_few_and_say_so() {
        let mut phase_entry =
            PhaseEntry::begun(PhaseId::Design, "2026-01-31T12:00:00Z".parse().unwrap());
        let finding = Finding::error(
            Code::new("spec-answer-empty"),
            "x".repeat(9_000),
            "y\u{1b}".repeat(9_000),
        );
        let mut untold = 0;
        for _ in 0..3 {
            add_findings(
                &mut phase_entry,
                &mut untold,
                &Verdict::new(vec![finding.clone(); 30]),
            );
        }
        let made = bounded(phase_entry, untold);
        assert_eq!(made.findings.len(), MAX_FINDINGS);
        assert!(
            made.findings
                .iter()
                .all(|finding| finding.subject.chars().count() <= SUBJECT)
        );
        assert!(
            made.findings[0].hint.chars().count() <= HINT
                && !made.findings[0].hint.contains('\u{1b}')
        );
        assert!(
            made.findings[MAX_FINDINGS - 1]
                .hint
                .starts_with("50 more findings")
        );
    }

    #[test]
    fn warnings_in_receipt_are_limited_and_counted() {
        let mut phase_entry =
            PhaseEntry::begun(PhaseId::Design, "2026-01-31T12:00:00Z".parse().unwrap());
        let warning = |kind: &str, message: &str| ReceiptWarning {
            kind: kind.to_owned(),
            message: message.to_owned(),
        };
        phase_entry.warnings = vec![warning("file_passed_over", &"\u{1b}x".repeat(9_000)); 9_900];
        phase_entry.warnings.push(warning(
            "hook_failed",
            "the hook lint ended with exit code 1",
        ));
        let made = bounded(phase_entry, 0);
        assert!(to_canonical_json(&made).unwrap().len() < 100_000);
        assert_eq!(made.warnings.len(), 22);
        assert_eq!(made.warnings[20].kind, "hook_failed");
        assert_eq!(
            made.warnings[21],
            warning("file_passed_over", "9880 more of these are not listed here")
        );
        assert_eq!(bounded(made.clone(), 0).warnings[..20], made.warnings[..20]);
    }
}
