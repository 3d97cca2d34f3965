//! The author of a skill: an agent's program, a model, or nobody.

use std::path::Path;
use std::time::Duration;

use crucible_llm::{ClaudeAgent, RecordingFile, configured};
use crucible_model::{ByteLimit, ExitStatus, Failure};
use crucible_sandbox::{AllowedHost, Runtime};
use crucible_settings::{Settings, SkillAuthor};

use super::{all_positive, client};
use crate::agent::{
    AdoptExisting, ClaudeSkillAgent, CommandSkillAgent, SkillAgent, WholeFileSkillAgent,
};
use crate::failure::{FailureKind, SkillFailure};

/// The settings section of the program `claude`.
const CLAUDE: &str = "claude-cli";

/// Who writes a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorKind {
    /// The program `claude`.
    Claude,
    /// The command of `forge.agent_command`.
    Command,
    /// A model that answers with both files.
    WholeFile,
    /// Nobody: both files are taken as they are.
    AsIs,
}

/// Arguments that only [`AuthorKind::WholeFile`] takes.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelArguments<'a> {
    /// The model provider; `None` takes the configured one.
    pub provider: Option<&'a str>,
    /// The recording that answers.
    pub cassette: Option<&'a Path>,
    /// The file that the call is recorded in.
    pub record: Option<&'a Path>,
}

impl AuthorKind {
    /// Returns the author that the command line names, else the configured one.
    ///
    /// # Errors
    ///
    /// Fails if the configured author is unknown, or if it does not take one of the arguments.
    pub fn from_settings(
        settings: &Settings,
        named: Option<Self>,
        arguments: ModelArguments<'_>,
    ) -> Result<Self, Failure> {
        let kind = match (named, settings.forge.agent.get()) {
            (Some(named), _) => named,
            (None, Ok(SkillAuthor::Claude)) => Self::Claude,
            (None, Ok(SkillAuthor::Command)) => Self::Command,
            (None, Ok(SkillAuthor::WholeFile)) => Self::WholeFile,
            (None, Err(named)) => {
                return Err(Failure::usage(format!(
                    "forge.agent: unknown agent {named:?}; use claude, command or whole-file"
                )));
            }
        };
        if kind == Self::WholeFile {
            let provider = settings.llm.provider.as_deref().unwrap_or_default();
            configured::check_cassette(arguments.cassette, provider)?;
            return Ok(kind);
        }
        let of_models = [
            ("--provider", arguments.provider.is_some()),
            ("--cassette", arguments.cassette.is_some()),
            ("--record", arguments.record.is_some()),
        ];
        match of_models.into_iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(Failure::usage(format!(
                "{flag} is of use to the agent whole-file alone"
            ))
            .hint("Add --agent whole-file, or leave it out.")),
            None => Ok(kind),
        }
    }

    /// Prepares the agent.
    ///
    /// # Errors
    ///
    /// Fails if a setting cannot be used, or if the program or the provider cannot be prepared.
    pub fn agent(
        self,
        runtime: &Runtime<'_>,
        settings: &Settings,
        record: Option<&RecordingFile>,
    ) -> Result<Box<dyn SkillAgent>, Failure> {
        let limits = configured::limits(settings)?;
        let forge = &settings.forge;
        Ok(match self {
            Self::AsIs => Box::new(AdoptExisting),
            Self::Claude => {
                let of_claude = configured::provider_settings(runtime, settings, CLAUDE);
                let claude = ClaudeAgent::find(&of_claude, runtime.env)?;
                Box::new(ClaudeSkillAgent::new(claude, limits.micro_dollars))
            }
            Self::Command => {
                let hosts = forge
                    .agent_network
                    .iter()
                    .map(|host| host.parse::<AllowedHost>())
                    .collect::<Result<_, _>>()
                    .map_err(|error| Failure::usage(format!("forge.agent_network: {error}")))?;
                let (command, env) = (&forge.agent_command, &forge.agent_env);
                Box::new(CommandSkillAgent::new(command, hosts, env, runtime.env)?)
            }
            Self::WholeFile => {
                let named = settings.llm.provider.as_deref().unwrap_or_default();
                let selected = configured::selected(runtime, settings, named)?;
                let client = client(settings, selected.backend, record)?;
                Box::new(WholeFileSkillAgent::new(client))
            }
        })
    }

    /// Returns the time and the disk space of an agent. `seconds` replaces `forge.agent_timeout_s`.
    ///
    /// # Errors
    ///
    /// Fails if one of them is zero.
    pub fn bounds(
        settings: &Settings,
        seconds: Option<u64>,
    ) -> Result<(Duration, ByteLimit), Failure> {
        let forge = &settings.forge;
        let seconds = seconds.unwrap_or(forge.agent_timeout_s);
        let mebibytes = forge.agent_disk_mib;
        let named = [
            ("forge.agent_timeout_s", seconds),
            ("forge.agent_disk_mib", mebibytes),
        ];
        all_positive(named, "no agent can work")?;
        let disk = ByteLimit(mebibytes.saturating_mul(1 << 20));
        Ok((Duration::from_secs(seconds), disk))
    }

    /// Returns how a command ends after a failed attempt of this author.
    #[must_use]
    pub fn exit_status(self, failure: &SkillFailure) -> ExitStatus {
        if failure.holds_secret() {
            ExitStatus::SecretDetected
        } else if failure.kind == FailureKind::Timeout {
            ExitStatus::TimedOut
        } else if self == Self::Claude && failure.agent_failed() {
            ExitStatus::Provider
        } else {
            ExitStatus::Refused
        }
    }
}
