//! Building without an agent: both files are taken as they are in the project, on the word of the user who builds.
//!
//! It is for what came by another way: the example that was laid, a clone, a project that was moved, a skill written by hand. What is taken
//! so is judged, verified and promoted like anything else.

use async_trait::async_trait;
use serde_json::Map;

use super::{AgentEnd, AgentError, AgentOutcome, AgentTask, SkillAgent};
use crate::answer_form::AnswerForm;

/// Takes both files as they stand, and asks nobody.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AdoptExisting;

#[async_trait]
impl SkillAgent for AdoptExisting {
    fn name(&self) -> String {
        "as-is".to_owned()
    }

    fn form(&self) -> AnswerForm {
        AnswerForm::StandsAlready
    }

    async fn work(&self, _task: &AgentTask<'_>) -> Result<AgentOutcome, AgentError> {
        Ok(AgentOutcome {
            end: AgentEnd::Done,
            log: Vec::new(),
            facts: Map::new(),
            receipt: None,
        })
    }
}
