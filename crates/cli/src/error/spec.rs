//! The errors of a spec, as commands end with them.

use crucible_crawl::GitHubError;
use crucible_host::config::variable_of;
use crucible_model::{ExitStatus, Verdict};
use crucible_spec::{PacketManifest, PacketRow, SpecError};

use super::CommandError;
use crate::text::one_line;

/// How many findings, and how many entries of a packet, an error tells one by one.
const TOLD: usize = 5;

impl From<SpecError> for CommandError {
    fn from(error: SpecError) -> Self {
        let message = error.to_string();
        match error {
            SpecError::Unknown { .. } => Self::usage(message)
                .hint("`crucible project list` shows the specs there are; `crucible spec ID` begins one."),
            SpecError::EmptyIdea => {
                Self::usage(message).hint("For example: echo \"users can export their data\" | crucible spec export-data")
            }
            SpecError::Transition { .. } => {
                Self::usage(message).hint("`crucible status ID` shows where the spec stands and what comes next.")
            }
            SpecError::Source { .. } | SpecError::Workspace { .. } => Self::usage(message),
            // GitHub's answers end every command in the same way.
            SpecError::GitHub { error, .. } => Self { message, ..Self::from(GitHubError::Gh(error)) },
            SpecError::PacketOverLimit { manifest } => over_limit(message, &manifest),
            SpecError::SecretInPacket { .. } => Self::new(ExitStatus::SecretDetected, message).hint(
                "Take it out of there and say where it comes from instead; a file can be left out with [spec] exclude.",
            ),
            SpecError::Locked { .. } => Self::new(ExitStatus::LockHeld, message),
            SpecError::LockLost => Self::new(ExitStatus::LockHeld, message)
                .hint("Answers that this run was given are kept and taken by the next one."),
            SpecError::Call(error) => {
                let command = Self::from(error);
                if command.budget_exhausted { command.hint(more()) } else { command }
            }
            SpecError::PhaseTimedOut { .. } => Self::new(ExitStatus::TimedOut, message).hint(format!(
                "Raise spec.phase_timeout_s ({}), or choose a faster model with --model.",
                variable_of("spec.phase_timeout_s"),
            )),
            SpecError::Answer { verdict, .. } => findings(Self::new(ExitStatus::Schema, message), &verdict)
                .hint("The refused answers lie in the spec's context/; run the phase again, or choose a stronger model with --model."),
            SpecError::FixupRefused { verdict } => findings(Self::new(ExitStatus::Refused, message), &verdict)
                .hint("A path that a fixup may touch all the same is named with --allow-path."),
            SpecError::FixupBlocked { .. } | SpecError::Hook { .. } | SpecError::Canonical(_) => {
                Self::new(ExitStatus::Refused, message)
            }
            SpecError::HookTimedOut { .. } => Self::new(ExitStatus::TimedOut, message),
            SpecError::Fs(error) => error.into(),
            SpecError::Ledger(error) => error.into(),
        }
    }
}

/// The largest entries, and what makes them fewer.
fn over_limit(message: String, manifest: &PacketManifest) -> CommandError {
    let mut rows: Vec<&PacketRow> = manifest.entries.iter().collect();
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    let row =
        |row: &&PacketRow| format!("{} ({} bytes, {} lines)", one_line(&row.name), row.bytes, row.lines);
    let largest: Vec<String> = rows.iter().take(TOLD).map(row).collect();
    CommandError::new(ExitStatus::OverLimit, message).hint(format!("The largest: {}.", largest.join(", "))).hint(format!(
        "Say the idea shorter, or name less with --context; or raise spec.max_packet_bytes ({}) and spec.max_packet_lines ({}).",
        variable_of("spec.max_packet_bytes"),
        variable_of("spec.max_packet_lines"),
    ))
}

/// What was found, the first few.
fn findings(command: CommandError, verdict: &Verdict) -> CommandError {
    let told = verdict.findings().iter().take(TOLD);
    let command = told.fold(command, |command, finding| command.hint(finding.to_string()));
    match verdict.findings().len().saturating_sub(TOLD) {
        0 => command,
        more => command.hint(format!("and {more} more; the receipt tells them.")),
    }
}

/// How a command may take more.
fn more() -> String {
    format!(
        "Allow a command more with {} (calls), {} (tokens) or {} (dollars); phases that are done stay done.",
        variable_of("llm.budget.calls"),
        variable_of("llm.budget.tokens"),
        variable_of("llm.budget.dollars")
    )
}
