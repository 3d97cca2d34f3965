//! What a test can tell the server to do with a request; it means the same in every family's own shape.

use std::time::Duration;

use serde_json::Value;

/// What the server does with one request for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Answers well, and says that the answer is complete.
    Answer(String),
    /// Answers, and says that the answer was cut at the token limit.
    CutAnswer(String),
    /// Answers well, a few bytes (of a stream: one event) at a time with this pause before each.
    SlowAnswer(String, Duration),
    /// Answers well after this long.
    LateAnswer(String, Duration),
    /// Asks for a tool of this name with this input.
    ToolCall(String, Value),
    /// Refuses with this status and an error object whose message quotes the request's key and prompt, as
    /// some servers do.
    Status(u16),
    /// 429.
    RateLimited(RetryAfter),
    /// Sends this location with 302.
    Redirect(String),
    /// Accepts the request and never says a word.
    Hang,
    /// Closes the connection without an answer.
    Drop,
    /// Sends half of a good answer and closes the connection.
    DropHalfway,
    /// Sends half of a good answer and ends the body in good order.
    EndHalfway,
    /// Sends half of a good stream, then an error event. A request that is not streamed gets 500.
    FailHalfway,
    /// 200 with text that is not JSON.
    BadJson,
    /// 200 with an HTML page.
    Html,
    /// 200 with an empty list of choices (of content blocks, of candidates).
    EmptyChoices,
    /// 200 with a choice whose content is null.
    NullContent,
    /// 200 with content of this many bytes.
    Huge(usize),
    /// 200 with JSON that holds bytes which are not UTF-8.
    InvalidUtf8,
    /// 200 and a body that never ends.
    Endless,
    /// Exactly this body with this status.
    Raw(u16, Vec<u8>),
}

/// The `retry-after` header of a 429.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryAfter {
    /// None.
    Absent,
    /// With this value, which need not be sensible.
    Value(String),
}
