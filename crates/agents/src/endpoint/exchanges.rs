//! The record of an agent's requests and their answers, as JSON lines.
//!
//! A line is on disk before the agent has the last byte of its answer. If the process was killed, the next session of the
//! same step gets the recorded answers to equal requests, each once, and pays for none of them again.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crucible_host::fs;
use crucible_model::{ByteLimit, Digest, to_canonical_json};
use crucible_secrets::Scanner;
use serde::{Deserialize, Serialize};

use crate::error::AgentError;

/// The largest record of one session. A request that would not fit is refused.
pub(super) const MAX_RECORD: ByteLimit = ByteLimit(256 << 20);

/// One line: a request and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exchange {
    pub(super) schema_version: ExchangeVersion,
    /// The digest of the path and of the part of the request that decides its answer.
    pub(super) key: Digest,
    pub(super) path: String,
    pub(super) model: String,
    /// The request as it was sent on; empty if it was refused.
    pub(super) request: String,
    pub(super) status: u16,
    pub(super) content_type: String,
    /// The answer, without secrets.
    pub(super) answer: String,
    /// Whether the answer came whole, and holds the very bytes that were sent on.
    pub(super) is_whole: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<(u64, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) micro_dollars: Option<u64>,
    /// Why nothing was sent, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<String>,
    /// The fields of the request that were not sent on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) dropped: Vec<String>,
}

/// The version of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ExchangeVersion {
    #[serde(rename = "crucible-exchange-v1")]
    V1,
}

/// The record of one session.
pub struct Exchanges {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    bytes: u64,
    has_failed: bool,
    answers: HashMap<Digest, VecDeque<Exchange>>,
}

impl Exchanges {
    /// Begins a record at `path`, which does not exist yet. `earlier` are records of sessions that were interrupted:
    /// their answers are used again.
    ///
    /// # Errors
    ///
    /// Fails if an earlier record cannot be read, or the new one cannot be made.
    pub fn begin(path: &Path, earlier: &[PathBuf]) -> Result<Self, AgentError> {
        let mut answers: HashMap<Digest, VecDeque<Exchange>> = HashMap::new();
        for earlier in earlier {
            let bytes = fs::read_regular_up_to(earlier, MAX_RECORD)?;
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                // The last line of a killed process may be cut.
                let Some(line) = line.strip_suffix(b"\n") else {
                    continue;
                };
                let exchange: Exchange =
                    serde_json::from_slice(line).map_err(|error| AgentError::Recording {
                        why: error.to_string(),
                    })?;
                if exchange.is_whole && (200..300).contains(&exchange.status) {
                    answers.entry(exchange.key).or_default().push_back(exchange);
                }
            }
        }
        fs::write_unflushed(path, b"", 0o644)?;
        Ok(Self {
            path: path.to_owned(),
            state: Mutex::new(State {
                bytes: 0,
                has_failed: false,
                answers,
            }),
        })
    }

    /// Takes an unused answer to this request.
    pub(super) fn take(&self, key: &Digest) -> Option<Exchange> {
        self.lock().answers.get_mut(key)?.pop_front()
    }

    /// Whether a request of this size still fits.
    pub(super) fn has_room(&self, request: usize) -> bool {
        self.lock().bytes.saturating_add(request as u64) < MAX_RECORD.0 / 2
    }

    /// Whether an exchange could not be recorded.
    pub(super) fn has_failed(&self) -> bool {
        self.lock().has_failed
    }

    /// Appends a line durably.
    pub(super) fn append(&self, exchange: Exchange, scanner: &Scanner) -> Result<(), AgentError> {
        let appended = self.append_line(exchange, scanner);
        self.lock().has_failed |= appended.is_err();
        appended
    }

    fn append_line(&self, mut exchange: Exchange, scanner: &Scanner) -> Result<(), AgentError> {
        for text in [&mut exchange.answer, &mut exchange.request] {
            let redacted = scanner.redact(text);
            if redacted.count > 0 {
                *text = redacted.text.into_owned();
                exchange.is_whole = false;
            }
        }
        let line = to_canonical_json(&exchange);
        let mut line = line.map_err(|error| AgentError::Recording {
            why: error.to_string(),
        })?;
        line.push(b'\n');
        let mut state = self.lock();
        fs::append_durable(&self.path, &line)?;
        state.bytes += line.len() as u64;
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
