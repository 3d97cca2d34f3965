//! A span, before it is encoded.

use crucible_model::Timestamp;

use crate::id::SpanId;

/// The longest text of an attribute, in bytes; the rest is cut off.
const MAX_TEXT: usize = 64 * 1024;
/// The most events of a span; the rest is counted.
const MAX_EVENTS: usize = 100;

/// A part of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its id.
    pub id: SpanId,
    /// The span around it; absent for the run.
    pub parent: Option<SpanId>,
    /// Its name.
    pub name: String,
    /// Whether it waits for another service.
    pub kind: SpanKind,
    /// When it began.
    pub started: Timestamp,
    /// When it ended; not before it began.
    pub ended: Timestamp,
    /// What is known about it.
    pub attributes: Vec<Attribute>,
    /// What happened in it.
    pub events: Vec<SpanEvent>,
    /// Events that are left out because there are too many.
    pub dropped_events: u32,
    /// Whether it failed.
    pub status: SpanStatus,
    /// The number of the event of the ledger that shows that it is over; absent while it is open.
    pub closed_by: Option<u64>,
}

/// Whether a span waits for another service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// It does not.
    Internal,
    /// It waits for a model.
    Client,
}

/// Whether a span failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanStatus {
    /// It did not.
    Unset,
    /// It failed, for this reason.
    Error(String),
}

/// A name with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Number(i64),
    /// Yes or no.
    Bool(bool),
    /// Several texts.
    Texts(Vec<String>),
}

/// Something that happened in a span.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanEvent {
    /// When.
    pub at: Timestamp,
    /// What.
    pub name: String,
    /// What is known about it.
    pub attributes: Vec<Attribute>,
}

impl Span {
    /// Creates a span without attributes.
    pub(crate) fn new(
        id: SpanId,
        parent: Option<&SpanId>,
        name: impl Into<String>,
        times: (Timestamp, Timestamp),
        closed_by: Option<u64>,
    ) -> Self {
        Self {
            id,
            parent: parent.cloned(),
            name: name.into(),
            kind: SpanKind::Internal,
            started: times.0,
            ended: times.1.max(times.0),
            attributes: Vec::new(),
            events: Vec::new(),
            dropped_events: 0,
            status: SpanStatus::Unset,
            closed_by,
        }
    }

    /// Adds an attribute.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.attributes.push(Attribute::new(name, value));
        self
    }

    /// Adds an attribute if it has a value.
    pub(crate) fn with_some<V: Into<Value>>(self, name: &str, value: Option<V>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Marks the span as failed.
    pub(crate) fn failed(mut self, reason: &str) -> Self {
        self.status = SpanStatus::Error(limited(reason));
        self
    }

    /// Adds an event; too many are counted.
    pub(crate) fn push_event(&mut self, event: SpanEvent) {
        if self.events.len() < MAX_EVENTS {
            self.events.push(event);
        } else {
            self.dropped_events = self.dropped_events.saturating_add(1);
        }
    }
}

impl Attribute {
    pub(crate) fn new(name: &str, value: impl Into<Value>) -> Self {
        Self {
            name: name.to_owned(),
            value: value.into(),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(limited(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value {
    fn from(boolean: bool) -> Self {
        Self::Bool(boolean)
    }
}

impl From<Vec<String>> for Value {
    fn from(texts: Vec<String>) -> Self {
        let texts = texts.iter().take(MAX_EVENTS).map(|text| limited(text));
        Self::Texts(texts.collect())
    }
}

/// The beginning of a text; a text that is cut off ends with `…`.
fn limited(text: &str) -> String {
    if text.len() <= MAX_TEXT {
        return text.to_owned();
    }
    let mut end = MAX_TEXT;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_off_between_characters() {
        let text = "é".repeat(MAX_TEXT);
        let cut = limited(&text);
        assert!(cut.len() <= MAX_TEXT + 3 && cut.ends_with("é…"));
        assert_eq!(limited("short"), "short");
    }

    #[test]
    fn events_beyond_the_limit_are_counted() {
        let at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let id = crate::id::TraceId::of_run(&"r".parse().unwrap(), None).span("run");
        let mut span = Span::new(id, None, "run", (at, at), None);
        for _ in 0..MAX_EVENTS + 3 {
            span.push_event(SpanEvent {
                at,
                name: "e".to_owned(),
                attributes: Vec::new(),
            });
        }
        assert_eq!((span.events.len(), span.dropped_events), (MAX_EVENTS, 3));
    }
}
