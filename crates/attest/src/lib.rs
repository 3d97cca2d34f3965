//! Attestation: signed statements about landed commits, and the judgement of commits by a policy.
//!
//! A landed commit has three [`Statement`]s (in-toto v1): Crucible's own [`Change`], a test result and a verification
//! summary. Each is the payload of a DSSE envelope in a Sigstore [`Bundle`], signed with an SSH key. The bundles of a
//! commit are the lines of one git note or file.
//!
//! - [`statements`] makes the statements of a change, [`Signer`] signs them with `ssh-keygen`.
//! - [`Policy`] names the keys that may sign and what a change must have.
//! - [`judge_commit`] judges one commit with its note. It is a pure function.
//! - [`RefUpdate`] and [`judge_notes_update`] are the parts of the door that need no repository.
//!
//! What always holds: the key comes from the policy, never from the envelope. A bundle is accepted only in its
//! canonical form, so no byte of it can change. Statements and commits are signed in different namespaces, so the
//! signature of one never passes as that of the other.

mod approval;
mod base64;
mod bundle;
mod change;
mod commit;
mod door;
mod dsse;
mod error;
mod exit_status;
mod judge;
mod note;
mod policy;
mod public_key;
mod pushed_program;
mod run_use;
mod signature;
mod signer;
mod statement;
mod wire;

pub use approval::{APPROVAL_NAMESPACE, Approval, ApprovedPlan};
pub use bundle::{BUNDLE_MEDIA_TYPE, Bundle};
pub use change::{
    CHANGE_PREDICATE, CHANGE_PREDICATE_V2, Call, CarriedFrom, Change, GATES_WITHOUT_COMMAND,
    GateIsolationLevel, GateResult, GateVerdict, LedgerHead, PlanApproval, Producer, SpecProof,
    Strength, Verification,
};
pub use commit::{SignedCommit, trailer_values};
pub use door::{
    NOTES_REF, NotesUpdate, RefUpdate, RefUpdateError, judge_notes_update, judge_old_value,
    judge_ref_name, judge_repeated_refs, judge_replacement,
};
pub use dsse::{Envelope, EnvelopeSignature, PAYLOAD_TYPE, pre_authentication_encoding};
pub use error::AttestError;
pub use judge::{
    Admission, CommitFacts, CommitJudgement, MergeKind, NoteRead, is_complete_note, judge_commit,
    judge_file,
};
pub use note::{MAX_NOTE, payload_of, subject_commit};
pub use policy::{Policy, PolicyError, RerunGate};
pub use public_key::{KeyError, PublicKey};
pub use pushed_program::{TreeLink, judge_pushed_programs};
pub use run_use::{
    RunUse, judge_repeated_runs, judge_run_claim, run_use, signed_run_use, unreadable_run_claim,
};
pub use signature::{COMMIT_NAMESPACE, STATEMENT_NAMESPACE, SshSignature};
pub use signer::{Signer, create_key, key_in};
pub use statement::{
    DigestSet, RESULT_PREDICATE, SUMMARY_PREDICATE, Statement, Subject, carried, statements,
};
