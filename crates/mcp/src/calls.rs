//! The loop that runs calls of tools.
//!
//! Use cases borrow the program and are not bound to threads, so they run here and not on the tasks of the protocol. A call
//! whose client has given up is dropped, and its processes end with it.

use crucible_model::Failure;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rmcp::model::{CallToolResult, JsonObject};
use tokio::sync::{mpsc, oneshot};

use crate::answer::failed;
use crate::session::{Landing, Session};
use crate::tool::{Effect, ToolKind};

/// Calls that run side by side; further ones wait.
pub(crate) const SIDE_BY_SIDE: usize = 8;

/// A call on its way to the loop.
pub(crate) struct Call {
    pub(crate) tool: &'static dyn ToolKind,
    pub(crate) arguments: JsonObject,
    pub(crate) answer: oneshot::Sender<CallToolResult>,
}

/// Runs calls until nobody can send any more.
pub(crate) async fn run_calls(session: &Session<'_>, mut calls: mpsc::Receiver<Call>) {
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            call = calls.recv(), if running.len() < SIDE_BY_SIDE => match call {
                Some(call) => running.push(answer_call(session, call)),
                None => break,
            },
            Some(()) = running.next(), if !running.is_empty() => {}
        }
    }
    while running.next().await.is_some() {}
}

/// Runs a call until it has an answer, or until nobody waits for one.
async fn answer_call(session: &Session<'_>, call: Call) {
    let Call {
        tool,
        arguments,
        mut answer,
    } = call;
    let result = tokio::select! {
        biased;
        () = answer.closed() => return,
        result = call_tool(session, tool, arguments) => result,
    };
    // Whoever gave up in this moment needs none.
    let _ = answer.send(result);
}

/// Calls a tool, unless it is not allowed.
async fn call_tool(
    session: &Session<'_>,
    tool: &dyn ToolKind,
    arguments: JsonObject,
) -> CallToolResult {
    if tool.effect() == Effect::Lands && session.landing == Landing::Refused {
        let refused = Failure::refused("the user's settings do not allow clients to land")
            .hint("Ask the user to run `crucible run land`. `[mcp] land = true` in the user's own settings allows clients to.");
        return failed(&refused);
    }
    match tool.call(session, arguments).await {
        Ok(answer) => answer.into_result(),
        Err(failure) => failed(&failure),
    }
}
