//! The vocabulary shared by all other crates.
//!
//! This crate has digests, canonical JSON, repository paths, untrusted text, findings and verdicts,
//! timestamps, ids and exit codes.
//!
//! Invariant: no I/O, no clock, no environment. Everything here is a value.

mod canonical;
mod code_fence;
mod code_page;
mod count;
mod digest;
mod edit_format;
mod escape;
mod exit;
mod failure;
mod finding;
mod id;
mod limit;
mod nearest;
mod path_class;
mod prompt;
mod repo_path;
mod sarif;
mod secret;
mod source_pattern;
pub mod strict_json;
mod text;
mod time;
mod unique_json;

pub use canonical::{CanonicalError, to_canonical_json, to_canonical_line};
pub use code_fence::{CodeFence, unfenced};
pub use code_page::{CodeSection, code_sections, find_code};
pub use count::counted;
pub use digest::{Digest, DigestError, DigestWriter};
pub use edit_format::EditFormat;
pub use escape::{escaped, escaped_json, json_document, one_line};
pub use exit::ExitStatus;
pub use failure::Failure;
pub use finding::{Code, Finding, Level, Outcome, Verdict, VerdictReport};
pub use id::{IdError, RunId};
pub use limit::{ByteLimit, FileLimit, SECRET_REACH};
pub use nearest::{MAX_NAMES, MAX_SUGGESTIONS, nearest};
pub use path_class::{Denial, PathRole, PathRoles, denied_place};
pub use prompt::{PromptBuilder, PromptText, UNTRUSTED_BANNER, Untrusted};
pub use repo_path::{PathPrefix, RepoPath, RepoPathError};
pub use sarif::{SarifRule, SarifRun, sarif_unjudged};
pub use secret::Secret;
pub use source_pattern::{SourcePattern, SourcePatternError, is_source};
pub use text::{is_hidden, says_nothing, short_line, single_spaced};
pub use time::{Clock, ClockSource, Timestamp, TimestampError};
pub use unique_json::UniqueJson;
