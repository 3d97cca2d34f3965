//! Any command as an agent: the packet comes on its standard input, and it writes into its working directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use crucible_host::env::Environment;
use crucible_host::fs::write_atomic;
use crucible_model::Secret;
use crucible_sandbox::{AllowedHost, Network};

use super::sandboxed::{AgentPlaces, AgentProgram, run};
use super::{AgentError, AgentOutcome, AgentTask, SkillAgent};
use crate::answer_form::AnswerForm;

/// The word of an argument that stands for the packet's file.
const PACKET: &str = "{packet}";
/// What the packet's file is called, in the scratch directory.
const PACKET_FILE: &str = "PACKET.md";

/// A command as the agent that writes a skill.
#[derive(Debug)]
pub(crate) struct CommandSkillAgent {
    program: PathBuf,
    args: Vec<String>,
    hosts: Vec<AllowedHost>,
    passed_env: Vec<(OsString, OsString)>,
}

/// Why the configured command cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentCommandError {
    /// No command is configured.
    #[error(
        "no command is configured that could write the skill; set [forge] agent_command in your own configuration, ~/.config/crucible/config.toml"
    )]
    NotSet,
    /// It would be a file of the project.
    #[error(
        "the agent's program {program:?} is named by a relative path; name one on the PATH, or one by its absolute path"
    )]
    Relative {
        /// As it is configured.
        program: String,
    },
}

impl CommandSkillAgent {
    /// The command of these words, that reaches these hosts and is handed those variables of the environment that are named.
    ///
    /// # Errors
    ///
    /// [`AgentCommandError`] if the command cannot be used.
    pub(crate) fn new(
        words: &[String],
        hosts: Vec<AllowedHost>,
        variables: &[String],
        env: &Environment,
    ) -> Result<Self, AgentCommandError> {
        let Some((program, args)) = words
            .split_first()
            .filter(|(program, _)| !program.trim().is_empty())
        else {
            return Err(AgentCommandError::NotSet);
        };
        if program.contains('/') && !Path::new(program).is_absolute() {
            return Err(AgentCommandError::Relative {
                program: program.clone(),
            });
        }
        let variable = |name: &String| Some((OsString::from(name), env.get_os(name)?.to_owned()));
        Ok(Self {
            program: PathBuf::from(program),
            args: args.to_vec(),
            hosts,
            passed_env: variables.iter().filter_map(variable).collect(),
        })
    }
}

#[async_trait]
impl SkillAgent for CommandSkillAgent {
    fn name(&self) -> String {
        let name = self.program.file_name().unwrap_or(self.program.as_os_str());
        format!("command {}", name.to_string_lossy())
    }

    fn form(&self) -> AnswerForm {
        AnswerForm::WritesFiles
    }

    fn keys(&self) -> Vec<Secret> {
        self.passed_env
            .iter()
            .filter_map(|(_, value)| Some(Secret::new(value.to_str()?.to_owned())))
            .collect()
    }

    async fn work(&self, task: &AgentTask<'_>) -> Result<AgentOutcome, AgentError> {
        let places = AgentPlaces::make(task)?;
        let packet = task.workspace.scratch().join(PACKET_FILE);
        write_atomic(&packet, task.packet.as_str().as_bytes())?;
        let mut env = self.passed_env.clone();
        env.push(("HOME".into(), places.home.into()));
        env.push(("TMPDIR".into(), places.temporary.into()));
        env.push(("CRUCIBLE_PACKET".into(), packet.clone().into()));
        let named = packet.to_string_lossy();
        let program = AgentProgram {
            program: self.program.clone(),
            args: self
                .args
                .iter()
                .map(|argument| argument.replace(PACKET, &named).into())
                .collect(),
            env,
            network: match self.hosts.as_slice() {
                [] => Network::None,
                hosts => Network::Hosts(hosts.to_vec()),
            },
            keys: self.keys(),
        };
        run(task, program).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_command_must_exist_outside_the_project() {
        let env = Environment::from_pairs([("TOKEN", "a-value"), ("OTHER", "x")], "/");
        let agent = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            CommandSkillAgent::new(
                &words,
                Vec::new(),
                &["TOKEN".to_owned(), "UNSET".to_owned()],
                &env,
            )
        };
        assert_eq!(agent(&[]).unwrap_err(), AgentCommandError::NotSet);
        assert_eq!(agent(&[" "]).unwrap_err(), AgentCommandError::NotSet);
        assert!(matches!(
            agent(&["tools/x"]).unwrap_err(),
            AgentCommandError::Relative { .. }
        ));
        let good = agent(&["/opt/agents/writer", "--packet={packet}"]).unwrap();
        assert_eq!(good.name(), "command writer");
        assert_eq!(good.keys(), [Secret::new("a-value".to_owned())]);
    }
}
