//! Ids of traces and spans. They follow from the run, so that each export has the same ones.

use std::fmt;

use crucible_model::{Digest, RunId};

/// The id of a trace: 16 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceId(String);

/// The id of a span: 8 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SpanId(String);

impl TraceId {
    /// Returns the id of a run's trace. The hash of its first event differs between two ledgers with a run of the same id.
    #[must_use]
    pub fn of_run(run: &RunId, first_event: Option<Digest>) -> Self {
        let first = first_event.unwrap_or(Digest::ZERO);
        Self(digits(&format!("crucible trace\n{run}\n{first}"), 32))
    }

    /// Returns the id of the span with this path, such as `attempt/2/gates`.
    #[must_use]
    pub fn span(&self, path: &str) -> SpanId {
        SpanId(digits(&format!("crucible span\n{self}\n{path}"), 16))
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        bytes_of(&self.0)
    }
}

impl SpanId {
    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        bytes_of(&self.0)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The first hexadecimal digits of the digest of a text.
fn digits(text: &str, number: usize) -> String {
    let mut digits = Digest::compute(text.as_bytes()).to_string();
    digits.truncate(number);
    digits
}

fn bytes_of(digits: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0);
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| u8::try_from(digit(pair[0]) << 4 | digit(pair[1])).unwrap_or(0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_from_run_and_path() {
        let run: RunId = "a".parse().unwrap();
        let trace = TraceId::of_run(&run, None);
        assert_eq!(trace, TraceId::of_run(&run, None));
        assert_ne!(trace, TraceId::of_run(&run, Some(Digest::compute(b"x"))));
        assert_ne!(trace, TraceId::of_run(&"b".parse().unwrap(), None));
        assert_ne!(trace.span("run"), trace.span("call/1"));
        assert_eq!(
            (trace.bytes().len(), trace.span("run").bytes().len()),
            (16, 8)
        );
        let text: String = trace
            .bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(text, trace.to_string());
    }
}
