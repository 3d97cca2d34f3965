//! `crucible skill build`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use crucible_forge::configured::{AuthorKind, ModelArguments};
use crucible_forge::{
    Approval, BuildObserver, BuildRequest, FileChange, SkillBuildOutcome, SkillBuildReport,
    SkillName, build_skill, settle_interrupted,
};
use crucible_model::{ExitStatus, Failure, one_line};
use crucible_terminal::{Output, Spinner};

use super::place::{self, SkillContext};
use crate::app::App;
use crate::arguments::{provider_settings, providers};

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
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let review = match (&self.reviewed_by, &self.reason) {
            (Some(by), Some(reason)) => Some(Approval::new(by, reason)?),
            _ => None,
        };
        let flags = provider_settings(&self.provider, &self.cassette);
        let context = SkillContext::new(app, &flags)?;
        let (project, settings) = (&context.project, &context.settings);
        let world = context.world()?;
        // A skill that nobody proposed needs no agent.
        let _known = context.skill(&self.name)?;
        let arguments = ModelArguments {
            provider: self.provider.as_deref(),
            cassette: self.cassette.as_deref(),
            record: self.record.as_deref(),
        };
        let named = self.agent.map(AuthorKind::from);
        let kind = AuthorKind::from_settings(settings, named, arguments)?;
        let record = app.recording(self.record.as_deref())?;
        let agent = kind.agent(&app.runtime(), settings, record.as_ref())?;
        let (timeout, disk) = AuthorKind::bounds(settings, self.timeout)?;
        let request = BuildRequest {
            name: &self.name,
            agent: agent.as_ref(),
            timeout,
            disk,
            review: review.as_ref(),
        };
        let mut ledger = app.ledger()?;
        let mut view = View {
            output: app.output.clone(),
            spinner: Spinner::timed(),
            has_printed: false,
        };
        let built = app.block_on(async {
            build_skill(&world, project, &mut ledger, &request, &mut view)
                .await
                .map_err(Failure::from)
        });
        view.spinner.finish();
        match built {
            Ok(report) => self.show(app, kind, &report),
            Err(error) if error.status == ExitStatus::Interrupted => {
                settle_interrupted(&world, project, &mut ledger, &self.name)?;
                let hint = "The attempt is recorded as aborted, and the project is as it was.";
                Err(error.hint(hint))
            }
            Err(error) => Err(error),
        }
    }

    fn show(
        &self,
        app: &App,
        kind: AuthorKind,
        report: &SkillBuildReport,
    ) -> Result<ExitStatus, Failure> {
        let status = match &report.outcome {
            SkillBuildOutcome::Built { .. } => ExitStatus::Success,
            SkillBuildOutcome::Failed(failure) => kind.exit_status(failure),
        };
        if app.output.is_json() {
            app.output.json(&report.document(&self.name))?;
            return Ok(status);
        }
        let name = &self.name;
        app.output.diff(&report.diff);
        for finding in report.findings() {
            app.output.finding(finding);
        }
        if let Some(took) = report.usage() {
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
}

impl From<Agent> for AuthorKind {
    fn from(agent: Agent) -> Self {
        match agent {
            Agent::Claude => Self::Claude,
            Agent::Command => Self::Command,
            Agent::WholeFile => Self::WholeFile,
            Agent::AsIs => Self::AsIs,
        }
    }
}

/// Shows on standard error what an agent does.
struct View {
    output: Output,
    spinner: Spinner,
    has_printed: bool,
}

impl View {
    fn print_remark(&self, line: &str) {
        self.spinner
            .call_while_spinning(|| self.output.remark(line));
    }
}

impl BuildObserver for View {
    fn note(&mut self, line: &str) {
        self.print_remark(&one_line(line));
    }

    fn working(&mut self, agent: &str, _since: Duration) {
        let line = format!("{agent} works on the copy");
        if self.output.is_live() {
            self.spinner.turn(&line);
        } else if !self.has_printed {
            self.has_printed = true;
            self.print_remark(&one_line(&line));
        }
    }

    fn touched(&mut self, path: &Path, what: FileChange) {
        self.print_remark(&format!(
            "  {} {}",
            what.as_str(),
            one_line(&path.to_string_lossy())
        ));
    }
}
