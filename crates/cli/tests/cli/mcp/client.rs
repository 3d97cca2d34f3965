//! A client that says exactly what a test wants.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Call, Fixture};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server on a pair of pipes.
pub(super) struct Client {
    pub(super) child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last_id: u64,
}

impl Client {
    /// Starts `crucible mcp` in a directory. No revision is agreed on yet.
    pub(super) fn silent(fixture: &Fixture, directory: &Path) -> Self {
        Self::from_call(fixture.call(["mcp"]).current_dir(directory))
    }

    /// The same, for a call that a test put together.
    pub(super) fn from_call(call: Call) -> Self {
        let mut command = call.command();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self {
            child,
            input,
            lines,
            last_id: 0,
        }
    }

    /// Starts the server and agrees on a revision that has a handshake.
    pub(super) fn begun(fixture: &Fixture, directory: &Path) -> Self {
        let mut client = Self::silent(fixture, directory);
        client.begin("2025-11-25");
        client
    }

    /// Shakes hands, and returns the result.
    pub(super) fn begin(&mut self, revision: &str) -> Value {
        let params = json!({
            "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        });
        let result = self.request("initialize", params)["result"].clone();
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        result
    }

    /// Writes one line.
    pub(super) fn say(&mut self, line: &str) {
        self.bytes(format!("{line}\n").as_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    /// The next line, which has to be a message.
    #[track_caller]
    pub(super) fn next(&mut self) -> Value {
        let line = self.lines.recv_timeout(TIMEOUT).unwrap();
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    /// Asserts that nothing comes for a moment.
    #[track_caller]
    pub(super) fn is_silent(&mut self) {
        let line = self.lines.recv_timeout(Duration::from_millis(300));
        assert_eq!(line, Err(RecvTimeoutError::Timeout));
    }

    /// Sends a request, and returns its response.
    #[track_caller]
    pub(super) fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.say(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(),
        );
        let response = self.next();
        assert_eq!(response["id"], id, "{response}");
        response
    }

    /// Calls a tool, and returns its texts, joined.
    #[track_caller]
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> String {
        let response = self.request(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        );
        let result = &response["result"];
        assert_ne!(result["isError"], true, "{response:#}");
        text_of(result)
    }

    /// Calls a tool that has to refuse, and returns its error.
    #[track_caller]
    pub(super) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let response = self.request(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        );
        assert_eq!(response["result"]["isError"], true, "{response:#}");
        text_of(&response["result"])
    }

    /// Ends the input, and returns the exit code.
    #[track_caller]
    pub(super) fn end(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        let _gone_already = self.child.kill();
        let _waited_for = self.child.wait();
    }
}

fn text_of(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap();
    let texts = blocks.iter().map(|block| block["text"].as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n")
}

/// What stands in the first fence of an answer.
#[track_caller]
pub(super) fn fenced(answer: &str) -> &str {
    let (_, rest) = answer.split_once("\n<<<DATA ").unwrap();
    let (head, rest) = rest.split_once('\n').unwrap();
    let marker = head.rsplit(' ').next().unwrap();
    let (content, _) = rest.split_once(&format!("\n>>>END {marker}")).unwrap();
    content
}

/// The document in the first fence.
#[track_caller]
pub(super) fn document(answer: &str) -> Value {
    serde_json::from_str(fenced(answer)).unwrap()
}
