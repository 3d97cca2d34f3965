//! `crucible skill build`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use crucible_forge::{
    AdoptExisting, AgentCommandError, AgentError, Approval, BuildRequest, BuildWitness,
    ClaudeSkillAgent, CommandSkillAgent, CopyBackError, FailureKind, SkillAgent, SkillBuildError,
    SkillBuildOutcome, SkillBuildReport, SkillFailure, SkillName, Touched, UnsettledBuild,
    WholeFileSkillAgent, WorkspaceError, build_skill, settle_interrupted,
};
use crucible_llm::{
    CallBudget, ClaudeAgent, ClientOptions, CostBasis, Limit, ModelClient, Recording,
    RecordingFile, configured,
};
use crucible_model::{ByteLimit, ExitStatus, Finding, one_line};
use crucible_sandbox::AllowedHost;
use crucible_settings::{Settings, SkillAuthor};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::place;
use crate::app::App;
use crate::arguments::{provider_settings, providers};
use crate::error::CommandError;
use crate::output::Output;
use crate::phase_text::{cost, tokens};
use crate::spinner::Spinner;

/// The form of the document.
const FORM: &str = "skill-build.v1";
/// The section of the program that writes.
const CLAUDE: &str = "claude-cli";

/// Let an agent write a skill and its test, on a copy of the project
///
/// The agent gets one packet: what was proposed, the base class, an example, the rules, and after a failure what is known of it. It works in a
/// sandbox, on a copy without secrets; then both files, and nothing else, are brought to the project. What it does is shown while it
/// works, and at the end the diff.
///
/// `claude` is the program of that name with its tools for files, and reaches its provider alone. `command` is the command of [forge]
/// agent_command. `whole-file` asks any model that Crucible knows, for example a local one:
///
/// `crucible skill build word_count --agent whole-file --provider gateway`
///
/// `as-is` asks nobody: both files are taken as they stand in the project, for a skill that came by another way. A clone and a project that
/// was moved know no trusted skills; they are proposed and taken so, and verified like any others:
///
/// `crucible skill build word_count --agent as-is`
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 built, 1 it came to nothing or a person has to look first, 2 usage or configuration, 8 secret found, 9 another \
    process is at work on it, 10 its time was over, 70 the provider or its program failed, 130 interrupted."
)]
pub(crate) struct Build {
    /// The name of the skill
    #[arg(value_name = "NAME", value_parser = place::skill_name)]
    name: SkillName,
    /// Who writes; without it as configured ([forge] agent)
    #[arg(long, value_name = "AGENT")]
    agent: Option<Agent>,
    /// Who answers, for `whole-file`; without it the configured one (llm.provider)
    #[arg(long, alias = "llm-provider", value_name = "NAME", value_parser = providers())]
    provider: Option<String>,
    /// The recording that answers, for the provider `replay`
    #[arg(long, value_name = "FILE")]
    cassette: Option<PathBuf>,
    /// Write the call of `whole-file` to this new file; the provider `replay` answers the same packet from it again
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Seconds until the agent is ended, instead of [forge] agent_timeout_s
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: Option<u64>,
    /// Who looked at what failed before, where a person has to
    #[arg(long, value_name = "WHO", requires = "reason")]
    reviewed_by: Option<String>,
    /// What they say of it
    #[arg(long, value_name = "TEXT", requires = "reviewed_by")]
    reason: Option<String>,
}

/// Who writes a skill
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Agent {
    /// The program `claude`
    Claude,
    /// The command of [forge] agent_command
    Command,
    /// A model that answers with both files
    WholeFile,
    /// Nobody: both files as they stand
    AsIs,
}

impl Build {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let review = match (&self.reviewed_by, &self.reason) {
            (Some(by), Some(reason)) => Some(Approval::new(by, reason)?),
            _ => None,
        };
        let project = place::project(app)?;
        let config = app.config(
            project.root(),
            &provider_settings(&self.provider, &self.cassette),
        )?;
        let world = place::world(app, &project)?;
        // A skill that nobody proposed needs neither an agent nor a ledger.
        let _known = place::skill(app, &project, &self.name)?;
        let kind = self.kind(&config)?;
        let record = self
            .record
            .as_deref()
            .map(|path| RecordingFile::new(app.absolute(path)))
            .transpose()?;
        let agent = self.agent(app, &config, kind, record.as_ref())?;
        let seconds = self.timeout.unwrap_or(config.forge.agent_timeout_s);
        let mebibytes = config.forge.agent_disk_mib;
        for (key, number) in [
            ("forge.agent_timeout_s", seconds),
            ("forge.agent_disk_mib", mebibytes),
        ] {
            if number == 0 {
                return Err(CommandError::usage(format!(
                    "{key} is 0, with which no agent can work"
                ))
                .hint("It takes a whole number from 1."));
            }
        }
        let request = BuildRequest {
            name: &self.name,
            agent: agent.as_ref(),
            timeout: Duration::from_secs(seconds),
            disk: ByteLimit(mebibytes.saturating_mul(1 << 20)),
            review: review.as_ref(),
        };
        let mut ledger = app.ledger()?;
        let mut view = View {
            output: app.output.clone(),
            spinner: Spinner::timed(),
            told: false,
        };
        let built = app.block_on(async {
            build_skill(&world, &project, &mut ledger, &request, &mut view)
                .await
                .map_err(CommandError::from)
        });
        view.spinner.finish();
        match built {
            Ok(report) => self.tell(app, kind, &report),
            Err(error) if error.status == ExitStatus::Interrupted => {
                settle_interrupted(&world, &project, &mut ledger, &self.name)?;
                let hint = "The attempt is recorded as aborted, and the project is as it was.";
                Err(error.hint(hint))
            }
            Err(error) => Err(error),
        }
    }

    fn kind(&self, config: &Settings) -> Result<Agent, CommandError> {
        let kind = match self.agent {
            Some(agent) => agent,
            // That nobody is asked, only the command line says.
            None => match config.forge.agent.get() {
                Ok(SkillAuthor::Claude) => Agent::Claude,
                Ok(SkillAuthor::Command) => Agent::Command,
                Ok(SkillAuthor::WholeFile) => Agent::WholeFile,
                Err(named) => {
                    let message = format!(
                        "forge.agent: unknown agent {named:?}; use claude, command or whole-file"
                    );
                    return Err(CommandError::usage(message));
                }
            },
        };
        let of_models = [
            ("--provider", self.provider.is_some()),
            ("--cassette", self.cassette.is_some()),
            ("--record", self.record.is_some()),
        ];
        if let Some((flag, _)) = of_models
            .iter()
            .find(|(_, given)| *given && kind != Agent::WholeFile)
        {
            let message = format!("{flag} is of use to the agent whole-file alone");
            return Err(
                CommandError::usage(message).hint("Add --agent whole-file, or leave it out.")
            );
        }
        if kind == Agent::WholeFile {
            configured::check_cassette(
                self.cassette.as_deref(),
                config.llm.provider.as_deref().unwrap_or_default(),
            )?;
        }
        Ok(kind)
    }

    fn agent(
        &self,
        app: &App,
        config: &Settings,
        kind: Agent,
        record: Option<&RecordingFile>,
    ) -> Result<Box<dyn SkillAgent>, CommandError> {
        let runtime = app.runtime();
        let mut limits = configured::limits(config)?;
        match kind {
            Agent::AsIs => Ok(Box::new(AdoptExisting)),
            Agent::Claude => {
                let claude = ClaudeAgent::find(
                    &configured::provider_settings(&runtime, config, CLAUDE),
                    &app.env,
                )?;
                Ok(Box::new(ClaudeSkillAgent::new(
                    claude,
                    limits.micro_dollars,
                )))
            }
            Agent::Command => {
                let hosts: Vec<AllowedHost> = config
                    .forge
                    .agent_network
                    .iter()
                    .map(|host| host.parse::<AllowedHost>())
                    .collect::<Result<_, _>>()
                    .map_err(|error| {
                        CommandError::usage(format!("forge.agent_network: {error}"))
                    })?;
                let forge = &config.forge;
                Ok(Box::new(CommandSkillAgent::new(
                    &forge.agent_command,
                    hosts,
                    &forge.agent_env,
                    &app.env,
                )?))
            }
            Agent::WholeFile => {
                let named = config.llm.provider.as_deref().unwrap_or_default();
                let selected = configured::selected(&runtime, config, named)?;
                limits.calls = Limit::At(config.budget.calls);
                let recording = record
                    .map(|record| record.recording(&selected.backend))
                    .transpose()?;
                let options = ClientOptions {
                    recording: recording.unwrap_or(Recording::Off),
                    prices: Arc::new(configured::prices(config)?),
                    ..ClientOptions::new(CallBudget::new(limits))
                };
                Ok(Box::new(WholeFileSkillAgent::new(ModelClient::new(
                    selected.backend,
                    options,
                ))))
            }
        }
    }

    fn tell(
        &self,
        app: &App,
        kind: Agent,
        report: &SkillBuildReport,
    ) -> Result<ExitStatus, CommandError> {
        let (status, findings) = match &report.outcome {
            SkillBuildOutcome::Built { findings, .. } => (ExitStatus::Success, findings),
            SkillBuildOutcome::Failed(failure) => (status_of(kind, failure), &failure.findings),
        };
        if app.output.is_json() {
            app.output.json(&self.document(report, findings))?;
            return Ok(status);
        }
        let name = &self.name;
        app.output.diff(&report.diff);
        for finding in findings {
            app.output.finding(finding);
        }
        if let Some(took) = took(&report.facts) {
            app.output.line(&took);
        }
        match &report.outcome {
            SkillBuildOutcome::Built { skill, test, .. } => {
                app.output
                    .line(&format!("built {name}: skill {skill}  test {test}"));
                app.output
                    .line(&format!("next: crucible skill verify {name}"));
            }
            SkillBuildOutcome::Failed(_) => {
                let attempt = report.build.attempt;
                app.output.line(&format!(
                    "attempt {attempt} at {name} came to nothing; the project is as it was"
                ));
                app.output
                    .line(&format!("next: crucible skill research {name}"));
            }
        }
        Ok(status)
    }

    fn document(&self, report: &SkillBuildReport, findings: &[Finding]) -> Value {
        let (verdict, failure, skill, test) = match &report.outcome {
            SkillBuildOutcome::Built { skill, test, .. } => ("pass", None, Some(skill), Some(test)),
            SkillBuildOutcome::Failed(failure) => ("fail", Some(failure.kind), None, None),
        };
        json!({
            "schema_version": FORM, "verdict": verdict, "findings": findings,
            "name": self.name, "attempt": report.build.attempt, "agent": report.build.agent,
            "status": if verdict == "pass" { "SUCCEEDED" } else { "FAILED" },
            "failure": failure, "measured": report.facts, "skill_digest": skill, "test_digest": test,
            "diff": String::from_utf8_lossy(&report.diff), "packet": report.packet, "log": report.log,
            "isolation": report.receipt,
        })
    }
}

/// What a call took: its tokens and what they cost; nothing where nobody counted any.
fn took(facts: &Map<String, Value>) -> Option<String> {
    let number = |name: &str| facts.get(name).and_then(Value::as_u64);
    let counted = tokens(number("tokens_input"), number("tokens_output"));
    if counted.is_empty() {
        return None;
    }
    let basis = facts
        .get("cost_basis")
        .and_then(|basis| CostBasis::deserialize(basis).ok());
    let cost = match cost(number("cost_micro_dollars"), basis) {
        unknown if unknown.is_empty() => "cost unknown".to_owned(),
        cost => cost,
    };
    Some(format!("took tokens: {counted}; {cost}"))
}

/// How a command ends whose attempt came to nothing.
fn status_of(kind: Agent, failure: &SkillFailure) -> ExitStatus {
    if failure.holds_secret() {
        ExitStatus::SecretDetected
    } else if failure.kind == FailureKind::Timeout {
        ExitStatus::TimedOut
    } else if kind == Agent::Claude && failure.agent_failed() {
        ExitStatus::Provider
    } else {
        ExitStatus::Refused
    }
}

/// Shows on standard error what an agent does.
struct View {
    output: Output,
    spinner: Spinner,
    told: bool,
}

impl View {
    fn say(&self, line: &str) {
        self.spinner.beside(|| self.output.remark(line));
    }
}

impl BuildWitness for View {
    fn note(&mut self, line: &str) {
        self.say(&one_line(line));
    }

    fn working(&mut self, agent: &str, _since: Duration) {
        let line = format!("{agent} works on the copy");
        if self.output.live {
            self.spinner.turn(&line);
        } else if !self.told {
            self.told = true;
            self.say(&one_line(&line));
        }
    }

    fn touched(&mut self, path: &Path, what: Touched) {
        self.say(&format!(
            "  {} {}",
            what.as_str(),
            one_line(&path.to_string_lossy())
        ));
    }
}

impl From<AgentCommandError> for CommandError {
    fn from(error: AgentCommandError) -> Self {
        Self::usage(error.to_string())
            .hint("`crucible skill build --help` shows which agents there are.")
    }
}

impl From<SkillBuildError> for CommandError {
    fn from(error: SkillBuildError) -> Self {
        let message = error.to_string();
        match error {
            SkillBuildError::Unknown { .. } => {
                Self::usage(message).hint("`crucible skill list` shows those there are.")
            }
            SkillBuildError::Step(refused) => refused.into(),
            SkillBuildError::NeedsReview { name, .. } => Self::new(ExitStatus::Refused, message).hint(format!(
                "`crucible skill research {name}` reports what is known. The reviewer confirms it with --reviewed-by WHO --reason TEXT"
            )),
            SkillBuildError::SecretInPacket { .. } => Self::new(ExitStatus::SecretDetected, message).hint(
                "Look at the skill's files and at .crucible/skills/policy.yaml, and take it out. If it is a real one, revoke it.",
            ),
            SkillBuildError::Lock(error) => error.into(),
            SkillBuildError::Ledger(error) => error.into(),
            SkillBuildError::Workspace(error) | SkillBuildError::Agent(AgentError::Workspace(error)) => {
                no_workspace(error)
            }
            SkillBuildError::Read(_) => Self::new(ExitStatus::Refused, message),
            SkillBuildError::Unsettled(error) => error.into(),
            SkillBuildError::Agent(AgentError::Sandbox(error)) => error.into(),
            SkillBuildError::Agent(AgentError::Call(error)) => error.into(),
            SkillBuildError::Agent(AgentError::Fs(error)) => error.into(),
            SkillBuildError::Path(error) => place::no_path(&error),
        }
    }
}

impl From<UnsettledBuild> for CommandError {
    fn from(error: UnsettledBuild) -> Self {
        match error {
            UnsettledBuild::CopyBack(CopyBackError::Own(error)) => error.into(),
            UnsettledBuild::CopyBack(error) => Self::new(ExitStatus::Refused, error.to_string())
                .hint("A build that was killed left it. Look at both files of the skill, and put them right by hand."),
            UnsettledBuild::Fs(error) => error.into(),
            UnsettledBuild::Ledger(error) => error.into(),
            UnsettledBuild::Path(error) => place::no_path(&error),
        }
    }
}

fn no_workspace(error: WorkspaceError) -> CommandError {
    match error {
        WorkspaceError::InsideProject { .. } => CommandError::usage(error.to_string()),
        WorkspaceError::Repo(error) => error.into(),
        WorkspaceError::Fs(error) => error.into(),
    }
}
