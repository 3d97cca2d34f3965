//! Describes the failure of an attempt for its receipt.

use crucible_llm::{CallError, LlmError};
use crucible_model::{short_line, single_spaced};
use crucible_secrets::Scanner;

use crate::error::SpecError;
use crate::receipt::PhaseFailure;

/// The most characters of a message in a receipt.
const MESSAGE: usize = 600;

/// The machine-readable class of an error, as in the receipt.
#[must_use]
pub(crate) fn failure_class(error: &SpecError) -> &'static str {
    match error {
        SpecError::PacketOverLimit { .. } => "packet_over_limit",
        SpecError::SecretInPacket { .. } | SpecError::Call(CallError::Secret(_)) => "secret",
        SpecError::Call(CallError::Llm(LlmError::Timeout { .. }))
        | SpecError::PhaseTimedOut { .. } => "timeout",
        SpecError::Call(CallError::Llm(LlmError::BudgetExceeded { .. })) => "budget",
        SpecError::Call(CallError::Llm(
            LlmError::Transport(_)
            | LlmError::ProviderAuth(_)
            | LlmError::ProviderQuota(_)
            | LlmError::ProviderOutage(_),
        )) => "provider",
        SpecError::Call(CallError::Llm(
            LlmError::Misconfiguration(_) | LlmError::Unsupported(_),
        )) => "configuration",
        SpecError::Call(CallError::Record(_)) | SpecError::Fs(_) => "disk",
        SpecError::Answer { .. } => "answer",
        SpecError::FixupRefused { .. } => "fixup_refused",
        SpecError::FixupBlocked { .. } | SpecError::FixupBrokenOff { .. } => "fixup_blocked",
        SpecError::Hook { .. } => "hook",
        SpecError::HookTimedOut { .. } => "hook_timeout",
        SpecError::Locked { .. } | SpecError::LockLost => "lock",
        SpecError::Ledger(_) => "ledger",
        SpecError::Canonical(_) => "record",
        SpecError::Unknown { .. }
        | SpecError::SpelledOtherwise { .. }
        | SpecError::EmptyIdea
        | SpecError::Source { .. }
        | SpecError::GitHub { .. }
        | SpecError::Transition { .. }
        | SpecError::Folder { .. }
        | SpecError::Workspace { .. } => "usage",
    }
}

/// The failure for a receipt: one short line without secrets.
pub(super) fn failure(class: &str, message: &str) -> PhaseFailure {
    let clean = Scanner::builtin().redact(message);
    PhaseFailure {
        class: class.to_owned(),
        message: short_line(&single_spaced(&clean.text), MESSAGE),
    }
}

/// Whether an attempt with this failure has used up its answers: the same answers would end it in the
/// same way.
pub(super) fn answers_are_spent(class: &str) -> bool {
    matches!(class, "answer" | "fixup_refused" | "hook" | "hook_timeout")
}
