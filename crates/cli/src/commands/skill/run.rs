//! `crucible skill run`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Args};
use crucible_forge::{
    Listed, MAX_INPUT_BYTES, REGISTRY_FILE, RunRequest, RunStepError, RunnerError, SkillEnd,
    SkillName, SkillRunReport, UnhashedEntry, run_skill,
};
use crucible_host::fs::read_regular_up_to;
use crucible_ledger::SkillRunOutcome;
use crucible_model::{ByteLimit, ExitStatus, UniqueJson, one_line};
use crucible_sandbox::Extent;
use serde_json::{Value, json};

use super::place;
use crate::app::App;
use crate::error::CommandError;
use crate::input::{Awaited, whole};

/// The name of a file that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Run a trusted skill: only its approved bytes, sandboxed by its effect class
///
/// Its result, one JSON object, is printed on standard output; what it prints itself goes to standard error.
///
/// For example: `crucible skill run word_count --input '{"text": "one two"}'`, or `… | crucible skill run word_count --input-file -`
#[derive(Args)]
#[command(
    group = ArgGroup::new("what goes in").required(true).args(["input", "input_file"]),
    after_help = "Exit codes: 0 it gave a result, 1 refused, denied or failed, 2 usage, no such skill, or it could not be started, \
    3 the input does not fit its schema, 7 the input is too large, 8 its result held a secret, 10 its time was over."
)]
pub(crate) struct Run {
    /// The name of the skill
    #[arg(value_name = "NAME", value_parser = place::skill_name)]
    name: SkillName,
    /// What goes in: a JSON object
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// A file that holds what goes in; `-` for standard input
    #[arg(long, value_name = "FILE")]
    input_file: Option<PathBuf>,
    /// Run it although its entry in the registry has no digest; the ledger's is checked all the same
    #[arg(long)]
    allow_unhashed: bool,
    /// Seconds until it is ended, instead of [forge] run_timeout_s
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: Option<u64>,
}

impl Run {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let project = place::project(app)?;
        let config = app.config(project.root(), &[])?;
        let input = self.input(app)?;
        let world = place::world(app, &project)?;
        let python = config.forge.python.clone().map(PathBuf::from);
        let site_packages = place::site_packages(&config)?;
        let seconds = match self.timeout.unwrap_or(config.forge.run_timeout_s) {
            0 => {
                return Err(CommandError::usage(
                    "forge.run_timeout_s: a skill needs at least one second",
                ));
            }
            seconds => seconds,
        };
        let request = RunRequest {
            name: &self.name,
            input: &input,
            timeout: Duration::from_secs(seconds),
            unhashed: if self.allow_unhashed {
                UnhashedEntry::Allowed
            } else {
                UnhashedEntry::Refused
            },
            python: python.as_deref(),
            site_packages: &site_packages,
            demote_after: u32::try_from(config.forge.demote_after_failures).unwrap_or(u32::MAX),
        };
        let mut ledger = app.ledger()?;
        let report =
            app.block_on(async { Ok(run_skill(&world, &mut ledger, &project, &request).await?) })?;
        self.tell(app, &report)?;
        Ok(status_of(&report))
    }

    fn input(&self, app: &App) -> Result<Value, CommandError> {
        let bytes = match (&self.input, &self.input_file) {
            (Some(text), _) => text.clone().into_bytes(),
            (None, Some(path)) if path != Path::new(STANDARD_INPUT) => {
                read_regular_up_to(&app.absolute(path), ByteLimit(MAX_INPUT_BYTES))
                    .map_err(CommandError::unreadable)?
            }
            (None, _) => {
                let awaited =
                    Awaited::Saying("waiting for the input on standard input (Ctrl-D ends it)");
                let most = usize::try_from(MAX_INPUT_BYTES).unwrap_or(usize::MAX);
                whole(app, most, awaited)?.map_err(|error| {
                    CommandError::usage(format!("standard input cannot be read: {error}"))
                })?
            }
        };
        if bytes.len() as u64 > MAX_INPUT_BYTES {
            let message = format!("the input has more than {MAX_INPUT_BYTES} bytes");
            return Err(CommandError::new(ExitStatus::OverLimit, message)
                .hint("Hand over less, or the name of where it lies."));
        }
        UniqueJson::exact(&bytes).map_err(|error| {
            CommandError::new(
                ExitStatus::Schema,
                format!("the input is no JSON that can be handed over as it is: {error}"),
            )
            .hint("It is one object of named values, such as {\"text\": \"one two\"}.")
        })
    }

    fn tell(&self, app: &App, report: &SkillRunReport) -> Result<(), CommandError> {
        let result = match &report.end {
            Some(SkillEnd::Returned(value)) => Some(value),
            Some(_) | None => None,
        };
        let printed = &report.printed;
        if app.output.is_json() {
            let verdict = report.verdict.report("skill-run.v1");
            let traceback = match &report.end {
                Some(SkillEnd::Raised { traceback, .. }) => Some(traceback),
                Some(_) | None => None,
            };
            return app.output.json(&json!({
                "schema_version": verdict.schema_version, "verdict": verdict.verdict, "findings": verdict.findings,
                "name": self.name, "outcome": report.outcome, "result": result, "traceback": traceback,
                "skill_digest": report.skill, "promotion": report.promotion,
                "duration_ms": u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
                "printed": { "text": printed.text(), "bytes": printed.total, "extent": printed.extent },
                "isolation": report.receipt,
            }));
        }
        // Whose words these are is said of each line, and no line steers a terminal or whoever shows a log.
        for line in printed.text().lines() {
            app.output.remark(&format!("[skill] {}", one_line(line)));
        }
        if printed.extent == Extent::Cut {
            app.output.remark(&format!(
                "[skill] it printed {} bytes; only the first are shown",
                printed.total
            ));
        }
        if let Some(SkillEnd::Raised { traceback, .. }) = &report.end {
            for line in traceback.lines() {
                app.output.remark(&format!("[skill] {}", one_line(line)));
            }
        }
        for finding in report.verdict.findings() {
            app.output
                .remark(&format!("{}: {}", finding.code, finding.hint));
        }
        result.map_or(Ok(()), |value| app.output.json(value))
    }
}

fn status_of(report: &SkillRunReport) -> ExitStatus {
    match (report.outcome, &report.end) {
        (SkillRunOutcome::Succeeded, _) => ExitStatus::Success,
        (SkillRunOutcome::Failed, Some(SkillEnd::TimedOut)) => ExitStatus::TimedOut,
        (SkillRunOutcome::Failed, Some(SkillEnd::HoldsSecret { .. })) => ExitStatus::SecretDetected,
        (SkillRunOutcome::Failed | SkillRunOutcome::Denied | SkillRunOutcome::Refused, _) => {
            ExitStatus::Refused
        }
    }
}

impl From<RunStepError> for CommandError {
    fn from(error: RunStepError) -> Self {
        let message = error.to_string();
        match error {
            RunStepError::Unknown { listed: Listed::Nowhere, .. } => Self::usage(message)
                .hint("`crucible skill list` shows those there are; `crucible skill propose` asks for another."),
            RunStepError::Unknown { listed: Listed::InRegistry, .. } => {
                Self::new(ExitStatus::Refused, format!("{message} in the ledger of this machine, and {REGISTRY_FILE} alone makes none trusted"))
                    .hint("The registry is the word of the author of the repository, and what the ledger knows belongs to the place where the project lay. In a clone, or \
                           after a move: propose the skill here, take its files with `crucible skill build NAME --agent as-is`, verify it, and approve it yourself.")
            }
            RunStepError::Input { .. } => Self::new(ExitStatus::Schema, message),
            RunStepError::Record { .. } => Self::new(ExitStatus::Refused, message),
            RunStepError::Runner(error) => error.into(),
            RunStepError::Staging(_) => Self::new(ExitStatus::Refused, message),
            RunStepError::Ledger(error) => error.into(),
            RunStepError::Trust(error) => error.into(),
            RunStepError::Path(error) => place::no_path(&error),
        }
    }
}

impl From<RunnerError> for CommandError {
    fn from(error: RunnerError) -> Self {
        match error {
            RunnerError::Sandbox(error) => error.into(),
            RunnerError::Fs(error) => error.into(),
            RunnerError::InputTooLarge { .. } => {
                Self::new(ExitStatus::OverLimit, error.to_string())
            }
            RunnerError::NotText
            | RunnerError::GrantedPath { .. }
            | RunnerError::TooManyPlaces { .. }
            | RunnerError::TooMuchToCopy { .. }
            | RunnerError::SecretMissing { .. }
            | RunnerError::SecretUnfit { .. }
            | RunnerError::NoPython { .. }
            | RunnerError::PythonInProject { .. } => Self::usage(error.to_string()),
        }
    }
}
