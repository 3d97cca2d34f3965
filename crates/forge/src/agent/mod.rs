//! Who writes a skill: a program that works on the copy of the project, or a model that answers with both files.
//!
//! - [`ClaudeSkillAgent`]: the program `claude` with its tools for files, and no shell.
//! - [`CommandSkillAgent`]: any command that the user named.
//! - [`WholeFileSkillAgent`]: any model, without tools.
//! - [`AdoptExisting`]: nobody; what stands is taken.
//!
//! What always holds: an agent touches the copy and its own scratch directory and nothing else; whether it says that it
//! succeeded counts for
//! nothing. What it left in the copy is judged the same way for every agent; what it printed is kept without secrets
//! and without the keys
//! that it was handed.

mod as_is;
mod claude;
mod command;
mod sandboxed;
mod whole_file;

use std::time::Duration;

use async_trait::async_trait;
use crucible_host::fs::FsError;
use crucible_llm::CallError;
use crucible_model::{ByteLimit, Finding, PromptText, Secret};
use crucible_sandbox::{IsolationReceipt, SandboxError};
use serde_json::{Map, Value};

use crate::answer_form::AnswerForm;
use crate::context::ForgeContext;
use crate::paths::SkillPaths;
use crate::workspace::{SkillWorkspace, WorkspaceError};

pub(crate) use as_is::AdoptExisting;
pub(crate) use claude::ClaudeSkillAgent;
pub use command::AgentCommandError;
pub(crate) use command::CommandSkillAgent;
pub(crate) use sandboxed::FAILED as AGENT_FAILED;
pub(crate) use whole_file::CUT as ANSWER_CUT;
pub(crate) use whole_file::WholeFileSkillAgent;

/// An agent that writes skills.
#[async_trait]
pub trait SkillAgent: Send + Sync {
    /// What the ledger calls it: its kind, and the program or model behind it.
    fn name(&self) -> String;

    /// How it gives what it made.
    fn form(&self) -> AnswerForm;

    /// What no file that it leaves may hold, nor anything that it prints.
    fn keys(&self) -> Vec<Secret> {
        Vec::new()
    }

    /// Works once, and leaves in the copy what it made.
    ///
    /// # Errors
    ///
    /// [`AgentError`] where it could not be asked at all.
    async fn work(&self, task: &AgentTask<'_>) -> Result<AgentOutcome, AgentError>;
}

/// What an agent is asked.
pub struct AgentTask<'a> {
    /// The places and means.
    pub world: &'a ForgeContext<'a>,
    /// The copy that it works on.
    pub workspace: &'a SkillWorkspace,
    /// Where the skill lies.
    pub paths: &'a SkillPaths,
    /// What it reads.
    pub packet: &'a PromptText,
    /// How long it may work.
    pub timeout: Duration,
    /// How much it may write to the disk.
    pub disk: ByteLimit,
}

/// How an agent ended.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOutcome {
    /// How.
    pub end: AgentEnd,
    /// What it printed or answered, without secrets and bounded.
    pub log: Vec<u8>,
    /// What was measured.
    pub facts: Map<String, Value>,
    /// The isolation in force; nothing if no program ran here.
    pub receipt: Option<IsolationReceipt>,
}

/// How an agent ended.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEnd {
    /// It ended by itself and reported success.
    Done,
    /// It failed, or was ended for what it did.
    Failed(Finding),
    /// Its time was over.
    TimedOut(Finding),
}

/// Why an agent could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Its program cannot be run as it has to be.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// Its model gave no answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// What it needs cannot be written.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// What it answered cannot be put into the copy.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
}
