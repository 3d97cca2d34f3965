//! Why a command of a spec ends early.

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

/// Why a command of a spec ends early.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// There is no such spec here.
    #[error("there is no spec {spec} in this project{why}")]
    Unknown {
        /// Its id.
        spec: SpecId,
        /// What stands in its place.
        why: SpecAbsence,
        /// Specs that are there: those with the nearest names, or some.
        near: Vec<SpecId>,
        /// The project's `workspace.yaml`, where there is one.
        workspace: Option<PathBuf>,
    },
    /// Another spec is named like it but for capitals.
    #[error(
        "the id {spec} differs from {other} only in letter case, and many file systems treat the two as one \
        directory; use the existing spelling, or choose another id"
    )]
    SpelledOtherwise {
        /// The id.
        spec: SpecId,
        /// The one that is there.
        other: SpecId,
    },
    /// There is nothing to start from.
    #[error(
        "no idea to start from; pass it on standard input, or name a file with --source"
    )]
    EmptyIdea,
    /// A source of the idea or of the context cannot be used.
    #[error("{source_name}: {why}")]
    Source {
        /// The source, as it was named.
        source_name: String,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// GitHub does not show the issue that was named.
    #[error("{issue}: {error}")]
    GitHub {
        /// The issue, as `OWNER/REPO#N`.
        issue: String,
        /// Why not, free of secrets.
        error: GhError,
    },
    /// The phase may not run now.
    #[error("{phase} cannot run now: {why}; valid next phases: {}", names(valid))]
    Transition {
        /// The spec.
        spec: SpecId,
        /// The phase.
        phase: PhaseId,
        /// Why not.
        why: String,
        /// What can run.
        valid: Vec<PhaseId>,
    },
    /// What the model has to see is too large. Nothing was sent.
    #[error(
        "the packet has {} bytes and {} lines, but its limits are {} bytes and {} lines; nothing was sent",
        manifest.bytes, manifest.lines, manifest.limits.max_bytes, manifest.limits.max_lines
    )]
    PacketOverLimit {
        /// The sizes.
        manifest: Box<PacketManifest>,
    },
    /// What the model would see holds a secret. Nothing was sent.
    #[error("{}; nothing was sent", secret_told(entry, rule, *line))]
    SecretInPacket {
        /// Which entry.
        entry: String,
        /// The rule that found it.
        rule: String,
        /// The line, from 1 on; 0 where it is the entry's name.
        line: u64,
    },
    /// A living process is at work on the spec.
    #[error("another process is working on this spec ({owner})")]
    Locked {
        /// What the holder says of itself.
        owner: String,
    },
    /// Somebody took the lock by force while this process worked; from then on it changed nothing.
    #[error("another process took this spec's lock with --force; this run saved nothing after that")]
    LockLost,
    /// The model cannot be asked, or its answer cannot be recorded.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The time of the phase, for all its calls together, is over.
    #[error("the phase {phase} exceeded its limit of {seconds} s for all its calls together")]
    PhaseTimedOut {
        /// The phase.
        phase: PhaseId,
        /// Its time.
        seconds: u64,
    },
    /// The answer is not the document that was asked for, nor was its correction.
    #[error("the model's answer is not a valid document of the phase {phase}")]
    Answer {
        /// The phase.
        phase: PhaseId,
        /// What is wrong with it.
        verdict: Verdict,
    },
    /// The patch gate refuses the fixup.
    #[error("the fixup was refused; no file was changed")]
    FixupRefused {
        /// Why.
        verdict: Verdict,
    },
    /// The project's files are no longer what the fixup was made for, or cannot be changed.
    #[error("the fixup cannot be applied: {why}; no file was changed")]
    FixupBlocked {
        /// Why, and what to do.
        why: String,
    },
    /// An application of fixups was broken off, and what it left can be neither finished nor taken back, or cannot be told.
    #[error("applying fixups was interrupted: {why}")]
    FixupBrokenOff {
        /// What stands in the way, and what to do.
        why: String,
    },
    /// A hook failed that is set to `fail`.
    #[error("the hook {name} failed: {why}")]
    Hook {
        /// Its name.
        name: String,
        /// How.
        why: String,
    },
    /// A hook that is set to `fail` ran out of time.
    #[error("the hook {name} took longer than {seconds} s")]
    HookTimedOut {
        /// Its name.
        name: String,
        /// Its time.
        seconds: u64,
    },
    /// The workspace's file is not what it has to be.
    #[error("{path}: {why}")]
    Workspace {
        /// The file.
        path: String,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// A value has no canonical form.
    #[error("the record has no canonical JSON form: {0}")]
    Canonical(#[from] crucible_model::CanonicalError),
    /// The file system refused.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The ledger refused.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Why there is no spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpecAbsence {
    /// Nothing stands where it would lie.
    Nothing,
    /// The same, and the project's `workspace.yaml` lists it.
    NotBegun,
    /// On the way to it, or in its place, stands a link or a file: what a link leads to is not the project's.
    NoDirectory(PathBuf),
}

impl fmt::Display for SpecAbsence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::NotBegun => f.write_str(" yet: workspace.yaml lists it, but no command has started it"),
            Self::NoDirectory(path) => {
                write!(f, ": {} must be a directory, not a link; move it away", path.display())
            }
        }
    }
}

fn names(phases: &[PhaseId]) -> String {
    if phases.is_empty() {
        return "nothing".to_owned();
    }
    phases.iter().map(|phase| phase.as_str()).collect::<Vec<_>>().join(", ")
}

/// Where a secret is: the name is told apart from what is in there.
fn secret_told(entry: &str, rule: &str, line: u64) -> String {
    match line {
        0 if rule == crate::packet::SECRET_FILE => {
            format!("{entry} contains secrets, judging by its name (rule {rule})")
        }
        0 => format!("the name of {entry} is a secret (rule {rule})"),
        line => format!("{entry} holds a secret (rule {rule}, line {line})"),
    }
}
