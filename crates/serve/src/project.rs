//! Documents of the project that the server was started in. The program that starts the server reads them, because that
//! takes its environment, its settings and git; the same documents are what its commands print with `--json`.
//!
//! Invariant: one request is answered at a time, in order, and each gets its own answer.

use crucible_model::Failure;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::actions::RunAction;

/// How many requests wait.
const WAITING: usize = 64;

/// A document of the project, or of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectDocument {
    /// The specs.
    Specs,
    /// The phases of a spec.
    Spec(String),
    /// The requirements of a spec with their tests.
    Evidence(String),
    /// The skills.
    Skills,
    /// The history of a skill.
    Skill(String),
    /// Past crawls.
    Crawls,
    /// A past crawl.
    Crawl(u64),
}

/// What the server asks the program that started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectQuery {
    /// A document.
    Document(ProjectDocument),
    /// A confirmed action on a run, and its result as a document. Only a server with the right to land asks this.
    Action(RunAction),
}

/// A request.
#[derive(Debug)]
pub struct ProjectRequest {
    /// What is asked.
    pub ask: ProjectQuery,
    reply: oneshot::Sender<Result<Value, Failure>>,
}

/// Where the server sends its requests.
#[derive(Debug, Clone)]
pub struct ProjectReader {
    requests: mpsc::Sender<ProjectRequest>,
}

/// The requests that wait for an answer.
#[derive(Debug)]
pub struct ProjectRequests {
    requests: mpsc::Receiver<ProjectRequest>,
}

/// Creates both ends.
#[must_use]
pub fn project_requests() -> (ProjectReader, ProjectRequests) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (
        ProjectReader { requests: sender },
        ProjectRequests { requests: receiver },
    )
}

impl ProjectRequests {
    /// Waits for the next request; `None` once the server has ended.
    pub async fn next(&mut self) -> Option<ProjectRequest> {
        self.requests.recv().await
    }
}

impl ProjectRequest {
    /// Answers it. A reader that no longer waits is no error.
    pub fn answer(self, document: Result<Value, Failure>) {
        let _left = self.reply.send(document);
    }
}

impl ProjectReader {
    pub(crate) async fn read(&self, document: ProjectDocument) -> Result<Value, Failure> {
        self.ask(ProjectQuery::Document(document)).await
    }

    pub(crate) async fn ask(&self, ask: ProjectQuery) -> Result<Value, Failure> {
        let ended = || {
            Failure::refused("the program that reads the project has ended")
                .hint("Start `crucible serve` again.")
        };
        let (reply, answer) = oneshot::channel();
        let request = ProjectRequest { ask, reply };
        self.requests.send(request).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}
