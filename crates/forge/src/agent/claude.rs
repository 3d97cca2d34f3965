//! The program `claude` without a terminal: it reads the packet and writes files with its own
//! tools.

use async_trait::async_trait;
use crucible_llm::{ClaudeAgent, Limit};
use crucible_model::Secret;
use crucible_sandbox::{AllowedHost, Network};

use super::sandboxed::{AgentPlaces, AgentProgram, run};
use super::{AgentError, AgentOutcome, AgentTask, SkillAgent};
use crate::answer_form::AnswerForm;

/// `claude` as the agent that writes a skill.
pub(crate) struct ClaudeSkillAgent {
    claude: ClaudeAgent,
    micro_dollars: Limit,
}

impl ClaudeSkillAgent {
    /// With this program, which may spend this much in one attempt, in millionths of a dollar.
    #[must_use]
    pub(crate) const fn new(claude: ClaudeAgent, micro_dollars: Limit) -> Self {
        Self {
            claude,
            micro_dollars,
        }
    }
}

#[async_trait]
impl SkillAgent for ClaudeSkillAgent {
    fn name(&self) -> String {
        format!("claude {}", self.claude.model())
    }

    fn form(&self) -> AnswerForm {
        AnswerForm::WritesFiles
    }

    fn keys(&self) -> Vec<Secret> {
        vec![self.claude.key().clone()]
    }

    async fn work(&self, task: &AgentTask<'_>) -> Result<AgentOutcome, AgentError> {
        let places = AgentPlaces::make(task)?;
        let (host, port) = self.claude.endpoint();
        let program = AgentProgram {
            program: self.claude.program().to_owned(),
            args: self.claude.args(self.micro_dollars),
            env: self
                .claude
                .variables(&places.home, &places.temporary, task.timeout),
            network: Network::Hosts(vec![AllowedHost {
                host: host.to_owned(),
                ports: vec![port],
            }]),
            keys: self.keys(),
        };
        run(task, program).await
    }
}
