//! The loop that runs calls of tools.
//!
//! Use cases borrow the program and are not bound to threads, so they run here and not on the tasks of the protocol. A call
//! whose client has given up is dropped, and its processes end with it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crucible_model::{Failure, RunId};
use crucible_run::World;
use crucible_sandbox::{BackgroundProcess, Runtime};
use crucible_settings::Settings;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rmcp::model::{CallToolResult, JsonObject};
use tokio::sync::{mpsc, oneshot};

use crate::answer::failed;
use crate::host::ToolHost;
use crate::reach::{Reach, ReachedRun};
use crate::tool::{Effect, Landing, ToolKind};

/// Calls that run side by side; further ones wait.
pub(crate) const SIDE_BY_SIDE: usize = 8;

/// A call on its way to the loop.
pub(crate) struct Call {
    pub(crate) tool: &'static dyn ToolKind,
    pub(crate) arguments: JsonObject,
    pub(crate) answer: oneshot::Sender<CallToolResult>,
}

/// What a call works with.
pub(crate) struct Session<'a> {
    pub(crate) host: &'a dyn ToolHost,
    pub(crate) reach: &'a Reach,
    pub(crate) landing: Landing,
    /// The processes that this server started, by the run that they advance.
    pub(crate) at_work: RefCell<BTreeMap<RunId, BackgroundProcess>>,
}

impl Session<'_> {
    /// Returns the outside world, the settings of the first repository, and the world of runs.
    pub(crate) fn runs_here(&self) -> Result<(Runtime<'_>, Settings, World<'_>), Failure> {
        let directory = self.reach.directory(self.host, None)?;
        let settings = self.host.settings(&directory, &[])?;
        let runtime = self.host.runtime();
        let world = self.host.world(&runtime.sandbox, &settings)?;
        Ok((runtime, settings, world))
    }

    /// Returns the run of this id or prefix.
    pub(crate) fn run(&self, world: &World<'_>, named: &str) -> Result<ReachedRun, Failure> {
        self.reach.run(self.host, world, named)
    }

    async fn call(&self, tool: &dyn ToolKind, arguments: JsonObject) -> CallToolResult {
        if tool.effect() == Effect::Lands && self.landing == Landing::Refused {
            let refused = Failure::refused("the user's settings do not allow clients to land")
                .hint("Ask the user to run `crucible run land`. `[mcp] land = true` in the user's own settings allows clients to.");
            return failed(&refused);
        }
        match tool.call(self, arguments).await {
            Ok(answer) => answer.into_result(),
            Err(failure) => failed(&failure),
        }
    }
}

/// Runs calls until nobody can send any more.
pub(crate) async fn run_calls(session: &Session<'_>, mut calls: mpsc::Receiver<Call>) {
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            call = calls.recv(), if running.len() < SIDE_BY_SIDE => match call {
                Some(call) => running.push(answered(session, call)),
                None => break,
            },
            Some(()) = running.next(), if !running.is_empty() => {}
        }
    }
    while running.next().await.is_some() {}
}

/// Runs a call until it has an answer, or until nobody waits for one.
async fn answered(session: &Session<'_>, call: Call) {
    let Call {
        tool,
        arguments,
        mut answer,
    } = call;
    let result = tokio::select! {
        biased;
        () = answer.closed() => return,
        result = session.call(tool, arguments) => result,
    };
    // Whoever gave up in this moment needs none.
    let _ = answer.send(result);
}
