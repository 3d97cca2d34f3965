//! `crucible-cassette-v1`: the calls of a run as JSON lines (`docs/formats/cassette.md`).
//!
//! The first line names the format and the speaker; each further line is one call with its request, its
//! attempts and its outcome. A call is identified by its key, the digest of its canonical request. The
//! provider, the time limit and the step are not part of it.
//!
//! Invariants: a line whose key is not the digest of its own request is refused. An unfinished last line,
//! as after a crash, is ignored and reported.

use std::collections::BTreeMap;
use std::fmt;

use crucible_host::fs::FsError;
use crucible_model::{CanonicalError, Digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::capability::Capabilities;
use crate::error::LlmError;
use crate::invocation::{LlmInvocation, LlmResult, Role};

/// The name and version of the format.
pub(crate) const CASSETTE_SCHEMA: &str = "crucible-cassette-v1";

/// The prefix of every version of the format.
const SCHEMA_FAMILY: &str = "crucible-cassette-v";

/// Why a cassette cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// A file system error.
    #[error("the recording cannot be used: {0}")]
    File(#[from] FsError),
    /// A call has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// The bytes are not a cassette.
    #[error(
        "not a recording of model calls: the first line does not name {CASSETTE_SCHEMA}; name a run's cassette.jsonl"
    )]
    NotACassette,
    /// A later version wrote it.
    #[error(
        "this recording has format {found:?}, but this version reads {CASSETTE_SCHEMA}; update Crucible"
    )]
    Newer {
        /// Its format.
        found: String,
    },
    /// A line is not a recorded call.
    #[error("line {line} of the recording is damaged: {why}; use an intact copy, or record again")]
    BadLine {
        /// The line number, from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// The task that writes the recording was cancelled.
    #[error("the recording was not written: the program is shutting down")]
    Interrupted,
}

/// The first line: the format and the speaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CassetteHeader {
    /// [`CASSETTE_SCHEMA`].
    pub schema_version: String,
    /// The provider when the recording began.
    pub provider: String,
    /// Its model.
    pub model: String,
    /// The capabilities of that backend; a replay must be called in the same way.
    pub capabilities: Capabilities,
}

/// A message as it was sent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedMessage {
    /// The role.
    pub role: Role,
    /// The text.
    pub content: String,
}

/// A request: everything that determines an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedRequest {
    /// The requested model.
    pub model: String,
    /// The conversation.
    pub messages: Vec<RecordedMessage>,
    /// The hints.
    pub metadata: BTreeMap<String, Value>,
}

/// The end of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attempt {
    /// With an answer.
    Answered,
    /// With an error.
    Failed(LlmError),
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// With an answer.
    Answered(LlmResult),
    /// With an error, after the last attempt. An unusable answer is an error as well
    /// ([`LlmError::answer_fault`]).
    Failed(LlmError),
}

/// One line: one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedCall {
    /// The digest of `request` in canonical form.
    pub key: Digest,
    /// The purpose of the call.
    pub spec_id: String,
    /// The step within it.
    pub phase_id: String,
    /// The request.
    pub request: RecordedRequest,
    /// All attempts in order.
    pub attempts: Vec<Attempt>,
    /// The outcome.
    pub outcome: CallOutcome,
    /// The number of secrets that were removed from the answer before it was written or used.
    pub redactions: u64,
}

/// Whether the last line was unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TornTail {
    /// Every line is complete.
    No,
    /// The last line was unfinished, and was ignored.
    LeftOut,
}

/// A recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Cassette {
    /// Its first line.
    pub header: CassetteHeader,
    /// Its calls, in the order of completion.
    pub calls: Vec<RecordedCall>,
    /// The digest of each call's line, without its line break.
    pub lines: Vec<Digest>,
    /// Whether an unfinished last line was ignored.
    pub tail: TornTail,
}

impl CassetteHeader {
    /// Creates the header of a new recording.
    #[must_use]
    pub fn new(
        provider: impl Into<String>,
        model: impl Into<String>,
        capabilities: Capabilities,
    ) -> Self {
        Self {
            schema_version: CASSETTE_SCHEMA.to_owned(),
            provider: provider.into(),
            model: model.into(),
            capabilities,
        }
    }
}

impl fmt::Debug for RecordedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "RecordedMessage({}, {} bytes)",
            self.role.as_str(),
            self.content.len()
        )
    }
}

impl RecordedRequest {
    /// The request of an invocation, without the parts that do not determine its answer.
    #[must_use]
    pub fn from_invocation(inv: &LlmInvocation) -> Self {
        let messages = inv.messages.iter();
        Self {
            model: inv.model.clone(),
            messages: messages
                .map(|message| RecordedMessage {
                    role: message.role,
                    content: message.content.as_str().to_owned(),
                })
                .collect(),
            metadata: inv.metadata.clone(),
        }
    }

    /// The digest that identifies the request.
    ///
    /// # Errors
    ///
    /// Fails if the metadata has no canonical form.
    pub fn key(&self) -> Result<Digest, CanonicalError> {
        Digest::of_canonical(self)
    }
}

impl Cassette {
    /// Parses a recording.
    ///
    /// # Errors
    ///
    /// See [`CassetteError`]; an unfinished last line is not an error.
    pub fn parse(bytes: &[u8]) -> Result<Self, CassetteError> {
        let full_content = whole_lines(bytes);
        let tail = if full_content.len() == bytes.len() {
            TornTail::No
        } else {
            TornTail::LeftOut
        };
        let mut lines = full_content
            .strip_suffix(b"\n")
            .unwrap_or(full_content)
            .split(|&byte| byte == b'\n');
        let header = parse_header(lines.next().ok_or(CassetteError::NotACassette)?)?;
        let (mut calls, mut digests) = (Vec::new(), Vec::new());
        for (line, bytes) in (2..).zip(lines) {
            calls.push(parse_call(line, bytes)?);
            digests.push(Digest::compute(bytes));
        }
        Ok(Self {
            header,
            calls,
            lines: digests,
            tail,
        })
    }
}

impl CallOutcome {
    /// Whether the model answered, even if the answer was unusable. Calling again would be a second
    /// question.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        match self {
            Self::Answered(_) => true,
            Self::Failed(error) => error.answer_fault().is_some(),
        }
    }

    /// Converts the outcome into the result of the call.
    ///
    /// # Errors
    ///
    /// The recorded error.
    pub(crate) fn into_result(self) -> Result<LlmResult, LlmError> {
        match self {
            Self::Answered(result) => Ok(result),
            Self::Failed(error) => Err(error),
        }
    }
}

/// The bytes up to and including the last line break.
pub(crate) fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |last| last + 1);
    &bytes[..end]
}

fn parse_header(line: &[u8]) -> Result<CassetteHeader, CassetteError> {
    // The version is checked first: a later header may differ in everything else.
    let value: Value = serde_json::from_slice(line).map_err(|_| CassetteError::NotACassette)?;
    match value.get("schema_version").and_then(Value::as_str) {
        Some(CASSETTE_SCHEMA) => {}
        Some(found) if found.starts_with(SCHEMA_FAMILY) => {
            return Err(CassetteError::Newer {
                found: found.chars().take(64).collect(),
            });
        }
        Some(_) | None => return Err(CassetteError::NotACassette),
    }
    serde_json::from_value(value).map_err(|error| CassetteError::BadLine {
        line: 1,
        why: error.to_string(),
    })
}

fn parse_call(line: u64, bytes: &[u8]) -> Result<RecordedCall, CassetteError> {
    let bad = |why: String| CassetteError::BadLine { line, why };
    let call: RecordedCall =
        serde_json::from_slice(bytes).map_err(|error| bad(shape_of(&error)))?;
    if call.request.key()? == call.key {
        Ok(call)
    } else {
        Err(bad(
            "its key does not match the digest of its request".to_owned()
        ))
    }
}

/// Describes a malformed line without quoting it.
fn shape_of(error: &serde_json::Error) -> String {
    let class = match error.classify() {
        serde_json::error::Category::Data => "it is JSON, but not a recorded call",
        serde_json::error::Category::Syntax
        | serde_json::error::Category::Eof
        | serde_json::error::Category::Io => "it is not JSON",
    };
    format!("{class} (column {})", error.column())
}
