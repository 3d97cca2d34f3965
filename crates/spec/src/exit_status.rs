//! The exit status and the hints of each error of this crate.

use std::path::Path;

use crucible_model::{ExitStatus, Failure, Verdict, one_line};
use crucible_settings::variable_of;

use crate::error::{SpecAbsence, SpecError};
use crate::id::SpecId;
use crate::packet::{PacketManifest, PacketRow};

/// The most findings, and entries of a packet, that a hint names.
const SHOWN: usize = 5;

/// Findings that go away if the user names the path.
const NAMING_HELPS: [&str; 8] = [
    "fixup-file-not-named",
    "patch-test-edited",
    "patch-manifest-edited",
    "patch-ci-edited",
    "patch-lockfile-edited",
    "patch-git-attributes",
    "patch-new-file-unnamed",
    "patch-deletes-file",
];

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Self {
        let message = error.to_string();
        match error {
            SpecError::Unknown { why: SpecAbsence::NoDirectory(_), .. } => Self::usage(message),
            SpecError::Unknown { spec, near, workspace, .. } => {
                unknown_spec(message, &spec, &near, workspace.as_deref())
            }
            SpecError::EmptyIdea => {
                Self::usage(message).hint("For example: echo \"users can export their data\" | crucible spec export-data")
            }
            SpecError::Transition { spec, .. } => Self::usage(message)
                .hint(format!("`crucible status {spec}` shows where the spec stands and what comes next.")),
            SpecError::Folder { .. } | SpecError::Source { .. } | SpecError::Workspace { .. } | SpecError::SpelledOtherwise { .. } => {
                Self::usage(message)
            }
            // GitHub's answers end every command in the same way.
            SpecError::GitHub { error, .. } => Self { message, ..Self::from(error) },
            SpecError::PacketOverLimit { manifest } => over_limit(message, &manifest),
            SpecError::SecretInPacket { line: 0, .. } => Self::new(ExitStatus::SecretDetected, message).hint(
                "Give the file another name, or leave it out with [spec] exclude; if the name is a real secret, revoke it.",
            ),
            SpecError::SecretInPacket { .. } => Self::new(ExitStatus::SecretDetected, message).hint(
                "Remove it and write where it comes from instead, or omit the file with [spec] exclude.",
            ),
            SpecError::Locked { .. } => Self::new(ExitStatus::LockHeld, message)
                .hint("Wait for it to end, or take its lock with --force; its unsaved work is then lost."),
            SpecError::LockLost => Self::new(ExitStatus::LockHeld, message)
                .hint("The answers of this run are saved; the next run uses them."),
            SpecError::Call(error) => {
                let command = Self::from(error);
                if command.budget_exhausted { command.hint(limit_hint()) } else { command }
            }
            SpecError::PhaseTimedOut { .. } => Self::new(ExitStatus::TimedOut, message).hint(format!(
                "Raise spec.phase_timeout_s ({}), or choose a faster model with --model.",
                variable_of("spec.phase_timeout_s"),
            )),
            SpecError::Answer { verdict, .. } => findings(Self::new(ExitStatus::Schema, message), &verdict)
                .hint("The refused answers are in the spec's context/; run the phase again, or choose a stronger model with --model."),
            SpecError::FixupRefused { verdict } => {
                let command = findings(Self::refused(message), &verdict);
                match verdict.findings().iter().any(|finding| NAMING_HELPS.contains(&finding.code.as_str())) {
                    true => command.hint("To let a fixup change such a path, name it with --allow-path."),
                    false => command,
                }
            }
            SpecError::FixupBlocked { .. }
            | SpecError::FixupBrokenOff { .. }
            | SpecError::Hook { .. }
            | SpecError::Canonical(_) => Self::refused(message),
            SpecError::HookTimedOut { .. } => Self::new(ExitStatus::TimedOut, message),
            SpecError::Fs(error) => error.into(),
            SpecError::Ledger(error) => error.into(),
        }
    }
}

/// Lists the known specs, and says how to begin one.
fn unknown_spec(
    message: String,
    spec: &SpecId,
    near: &[SpecId],
    workspace: Option<&Path>,
) -> Failure {
    let names: Vec<&str> = near.iter().map(SpecId::as_str).collect();
    let error = match names.is_empty() {
        true => Failure::usage(message),
        false => Failure::usage(message).hint(format!("There is: {}.", names.join(", "))),
    };
    let error = match workspace {
        Some(file) => error.hint(format!(
            "`crucible project list` shows the specs that {} lists.",
            one_line(&file.display().to_string())
        )),
        None => error,
    };
    error.hint(format!("`crucible spec {spec}` begins it."))
}

/// The largest entries, and what makes them fewer.
fn over_limit(message: String, manifest: &PacketManifest) -> Failure {
    let mut rows: Vec<&PacketRow> = manifest.entries.iter().collect();
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    let row = |row: &&PacketRow| {
        format!(
            "{} ({} bytes, {} lines)",
            one_line(&row.name),
            row.bytes,
            row.lines
        )
    };
    let largest: Vec<String> = rows.iter().take(SHOWN).map(row).collect();
    Failure::new(ExitStatus::OverLimit, message).hint(format!("The largest: {}.", largest.join(", "))).hint(format!(
        "Say the idea shorter, or name less with --context; or raise spec.max_packet_bytes ({}) and spec.max_packet_lines ({}).",
        variable_of("spec.max_packet_bytes"),
        variable_of("spec.max_packet_lines"),
    ))
}

/// What was found, the first few.
fn findings(failure: Failure, verdict: &Verdict) -> Failure {
    let shown = verdict.findings().iter().take(SHOWN);
    let failure = shown.fold(failure, |failure, finding| {
        failure.hint(finding.to_string())
    });
    match verdict.findings().len().saturating_sub(SHOWN) {
        0 => failure,
        more => failure.hint(format!("and {more} more; the receipt tells them.")),
    }
}

/// How a command may take more.
fn limit_hint() -> String {
    format!(
        "Allow a command more with {} (calls), {} (tokens) or {} (dollars); phases that are done stay done.",
        variable_of("llm.budget.calls"),
        variable_of("llm.budget.tokens"),
        variable_of("llm.budget.dollars")
    )
}

#[cfg(test)]
mod tests {
    use crucible_model::{Code, Finding};

    use super::*;

    #[test]
    fn allow_path_is_advised_only_where_useful() {
        let hints = |code: &'static str| {
            let finding = Finding::error(Code::new(code), "src/a.rs", "Leave it.");
            let verdict = Verdict::new(vec![finding]);
            Failure::from(SpecError::FixupRefused { verdict })
                .hints
                .join("\n")
        };
        assert!(hints("patch-test-edited").contains("--allow-path"));
        for code in [
            "fixup-unchanged",
            "answer-no-edit",
            "patch-path-denied",
            "patch-too-many-files",
        ] {
            assert!(!hints(code).contains("--allow-path"), "{code}");
        }
    }
}
