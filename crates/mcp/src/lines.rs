//! Messages as lines: one JSON document each, on a pair of streams.
//!
//! What always holds: no more than [`MAX_MESSAGE`] bytes of a line are kept. A line that is not a message is answered with an
//! error, with the id of the request if it has one, and the next line is read. Before a client has begun, notifications are
//! passed over, because the protocol has no answer for them.

use std::io;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, Notify};

/// The longest message, in bytes.
const MAX_MESSAGE: usize = 8 << 20;

/// A transport of lines.
pub(crate) struct Lines<R, W> {
    input: BufReader<R>,
    output: Arc<Mutex<W>>,
    /// The line so far. It is kept here, because reading may be broken off and begun again.
    line: Vec<u8>,
    excess: Excess,
    lifecycle: Lifecycle,
    /// Notified when the input has ended.
    ended: Arc<Notify>,
}

/// Whether the line is longer than a message may be.
#[derive(PartialEq, Eq)]
enum Excess {
    None,
    /// Its rest is skipped.
    Skipped,
}

/// Whether the client has begun.
#[derive(PartialEq, Eq)]
enum Lifecycle {
    InputNotice,
    Begun,
}

/// What was read.
enum Read {
    Line(Vec<u8>),
    TooLong,
    End,
}

impl<R: AsyncRead + Unpin, W> Lines<R, W> {
    /// Reads and writes these streams. `ended` is notified when the input has ended.
    pub(crate) fn new(input: R, output: W, ended: Arc<Notify>) -> Self {
        Self {
            input: BufReader::new(input),
            output: Arc::new(Mutex::new(output)),
            line: Vec::new(),
            excess: Excess::None,
            lifecycle: Lifecycle::InputNotice,
            ended,
        }
    }

    /// Reads the next line. Can be dropped and called again.
    async fn read(&mut self) -> Read {
        loop {
            // An input that fails brings nothing more, as one that has ended.
            let Ok(chunk @ [_, ..]) = self.input.fill_buf().await else {
                return Read::End;
            };
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            if self.line.len() + part.len() > MAX_MESSAGE {
                self.excess = Excess::Skipped;
                self.line = Vec::new();
            } else if self.excess == Excess::None {
                self.line.extend_from_slice(part);
            }
            let consumed = end.map_or(chunk.len(), |end| end + 1);
            self.input.consume(consumed);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                return match std::mem::replace(&mut self.excess, Excess::None) {
                    Excess::None => Read::Line(line),
                    Excess::Skipped => Read::TooLong,
                };
            }
        }
    }

    /// Returns the message of a line; `None` if it is passed over.
    fn message(&mut self, line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Box<Fault>> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(None);
        }
        let value: Value = serde_json::from_slice(line).map_err(|error| {
            Box::new(Fault {
                id: None,
                error: ErrorData::parse_error(format!("the line is not JSON: {error}"), None),
            })
        })?;
        let id = id_of(&value);
        let has_method = value.get("method").is_some_and(Value::is_string);
        let is_notification = has_method && value.get("id").is_none();
        if has_method && !is_notification && id.is_none() {
            return Err(Box::new(Fault {
                id,
                error: ErrorData::invalid_request("the id is not text and no whole number", None),
            }));
        }
        let message = serde_json::from_value(value);
        match message {
            Ok(message) => Ok(self.in_order(message)),
            // A notification is never answered.
            Err(_) if is_notification => Ok(None),
            Err(error) => Err(Box::new(Fault {
                id,
                error: ErrorData::invalid_request(
                    format!("the line is not a message of the protocol: {error}"),
                    None,
                ),
            })),
        }
    }

    /// Passes over what cannot come before the client has begun.
    fn in_order(&mut self, message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        if let ClientJsonRpcMessage::Request(request) = &message {
            if !matches!(
                request.request,
                ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_)
            ) {
                self.lifecycle = Lifecycle::Begun;
            }
            return Some(message);
        }
        (self.lifecycle == Lifecycle::Begun).then_some(message)
    }
}

/// Why a line is not a message.
struct Fault {
    id: Option<RequestId>,
    error: ErrorData,
}

/// The id of a request, if it is one that the protocol has.
fn id_of(value: &Value) -> Option<RequestId> {
    serde_json::from_value(value.get("id")?.clone()).ok()
}

/// Writes a message and flushes it.
async fn write<W: AsyncWrite + Unpin>(
    output: &Mutex<W>,
    message: &ServerJsonRpcMessage,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let output = Arc::clone(&self.output);
        async move { write(&output, &message).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let fault = match self.read().await {
                Read::End => {
                    self.ended.notify_one();
                    return None;
                }
                Read::TooLong => Box::new(Fault {
                    id: None,
                    error: ErrorData::invalid_request(
                        format!("the message is longer than {MAX_MESSAGE} bytes"),
                        None,
                    ),
                }),
                Read::Line(line) => match self.message(&line) {
                    Ok(Some(message)) => return Some(message),
                    Ok(None) => continue,
                    Err(fault) => fault,
                },
            };
            let answer = ServerJsonRpcMessage::error(fault.error, fault.id);
            if write(&self.output, &answer).await.is_err() {
                return None;
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.output.lock().await.flush().await
    }
}
