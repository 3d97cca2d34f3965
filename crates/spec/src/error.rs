//! The error type of spec commands.

use std::fmt;
use std::path::PathBuf;

use crucible_host::fs::FsError;
use crucible_ledger::LedgerError;
use crucible_llm::CallError;
use crucible_model::Verdict;
use crucible_repo::GhError;

use crate::id::SpecId;
use crate::packet::PacketManifest;
use crate::phase_id::PhaseId;

/// An error of a spec command.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// The spec does not exist.
    #[error("there is no spec {spec} in this project{why}")]
    Unknown {
        /// The id of the spec.
        spec: SpecId,
        /// What is found in its place.
        why: SpecAbsence,
        /// Existing specs: those with the most similar names, or some.
        near: Vec<SpecId>,
        /// The project's `workspace.yaml`, if there is one.
        workspace: Option<PathBuf>,
    },
    /// Another spec has the same id except for letter case.
    #[error(
        "the id {spec} differs from {other} only in letter case, and many file systems treat the two as one \
        directory; use the existing spelling, or choose another id"
    )]
    SpelledOtherwise {
        /// The given id.
        spec: SpecId,
        /// The existing id.
        other: SpecId,
    },
    /// There is no idea.
    #[error("no idea to start from; pass it on standard input, or name a file with --source")]
    EmptyIdea,
    /// A source of the idea or of the context cannot be used.
    #[error("{source_name}: {why}")]
    Source {
        /// The source, as given.
        source_name: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The GitHub issue cannot be read.
    #[error("{issue}: {error}")]
    GitHub {
        /// The issue, as `OWNER/REPO#N`.
        issue: String,
        /// The cause, without secrets.
        error: GhError,
    },
    /// The phase may not run now.
    #[error("{phase} cannot run now: {why}; valid next phases: {}", names(valid))]
    Transition {
        /// The spec whose phase was requested.
        spec: SpecId,
        /// The requested phase, which cannot run now.
        phase: PhaseId,
        /// The reason.
        why: String,
        /// The phases that may run.
        valid: Vec<PhaseId>,
    },
    /// The packet exceeds its limits. Nothing was sent.
    #[error(
        "the packet has {} bytes and {} lines, but its limits are {} bytes and {} lines; nothing was sent",
        manifest.bytes, manifest.lines, manifest.limits.max_bytes, manifest.limits.max_lines
    )]
    PacketOverLimit {
        /// The sizes and the limits.
        manifest: Box<PacketManifest>,
    },
    /// The packet contains a secret. Nothing was sent.
    #[error("{}; nothing was sent", describe_secret(entry, rule, *line))]
    SecretInPacket {
        /// The packet entry.
        entry: String,
        /// The rule that matched.
        rule: String,
        /// The line, from 1; 0 if it is the entry's name.
        line: u64,
    },
    /// A running process holds the lock of the spec.
    #[error("another process is working on this spec ({owner})")]
    Locked {
        /// The description that the holder gives of itself.
        owner: String,
    },
    /// Another process took the lock by force; this one changed nothing after that.
    #[error(
        "another process took this spec's lock with --force; this run saved nothing after that"
    )]
    LockLost,
    /// The model call failed, or it cannot be recorded.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The phase exceeded its time limit for all calls together.
    #[error("the phase {phase} exceeded its limit of {seconds} s for all its calls together")]
    PhaseTimedOut {
        /// The phase that was running.
        phase: PhaseId,
        /// The limit in seconds.
        seconds: u64,
    },
    /// Neither the answer nor its corrections are a valid document.
    #[error("the model's answer is not a valid document of the phase {phase}")]
    Answer {
        /// The phase that called the model.
        phase: PhaseId,
        /// The findings about the answer.
        verdict: Verdict,
    },
    /// The patch gate refused the fixup.
    #[error("the fixup was refused; no file was changed")]
    FixupRefused {
        /// The findings of the gate.
        verdict: Verdict,
    },
    /// The project's files have changed since the fixup was made, or cannot be changed.
    #[error("the fixup cannot be applied: {why}; no file was changed")]
    FixupBlocked {
        /// The reason, and what to do.
        why: String,
    },
    /// Applying fixups was interrupted, and can be neither completed nor rolled back, or its state is
    /// unclear.
    #[error("applying fixups was interrupted: {why}")]
    FixupBrokenOff {
        /// The reason, and what to do.
        why: String,
    },
    /// A hook that is set to `fail` failed.
    #[error("the hook {name} failed: {why}")]
    Hook {
        /// The hook's name.
        name: String,
        /// The reason.
        why: String,
    },
    /// A hook that is set to `fail` timed out.
    #[error("the hook {name} took longer than {seconds} s")]
    HookTimedOut {
        /// The hook's name.
        name: String,
        /// The limit in seconds.
        seconds: u64,
    },
    /// No spec has this name or folder, or several have.
    #[error("cannot find the spec {named:?}: {why}")]
    Folder {
        /// The name or path.
        named: String,
        /// What is wrong.
        why: String,
    },
    /// The workspace file is invalid.
    #[error("{path}: {why}")]
    Workspace {
        /// The file.
        path: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A value has no canonical form.
    #[error("the record has no canonical JSON form: {0}")]
    Canonical(#[from] crucible_model::CanonicalError),
    /// A file system error.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The ledger could not be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Why a spec does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpecAbsence {
    /// There is no directory.
    Nothing,
    /// There is no directory, but the project's `workspace.yaml` lists the spec.
    NotBegun,
    /// A link or a file is in its path. The target of a link does not belong to the project.
    NoDirectory(PathBuf),
}

impl fmt::Display for SpecAbsence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::NotBegun => {
                f.write_str(" yet: workspace.yaml lists it, but no command has started it")
            }
            Self::NoDirectory(path) => {
                write!(
                    f,
                    ": {} must be a directory, not a link; move it away",
                    path.display()
                )
            }
        }
    }
}

fn names(phases: &[PhaseId]) -> String {
    if phases.is_empty() {
        return "nothing".to_owned();
    }
    phases
        .iter()
        .map(|phase| phase.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Describes where a secret is. A secret in the name is distinguished from one in the content.
fn describe_secret(entry: &str, rule: &str, line: u64) -> String {
    match line {
        0 if rule == crate::packet::SECRET_FILE => {
            format!("{entry} contains secrets, judging by its name (rule {rule})")
        }
        0 => format!("the name of {entry} is a secret (rule {rule})"),
        line => format!("{entry} holds a secret (rule {rule}, line {line})"),
    }
}
