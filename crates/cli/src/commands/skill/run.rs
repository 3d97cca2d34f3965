//! `crucible skill run`.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use crucible_forge::configured::PythonPlaces;
use crucible_forge::{
    MAX_INPUT_BYTES, SkillEnd, SkillName, SkillRunReport, UnhashedPolicy, run_skill,
};
use crucible_host::fs::read_regular_up_to;
use crucible_model::{ByteLimit, ExitStatus, Failure, UniqueJson, one_line};
use crucible_sandbox::Extent;
use crucible_terminal::input::InputNotice;
use serde_json::Value;

use super::place::{self, SkillContext};
use crate::app::App;

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
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let context = SkillContext::new(app, &[])?;
        let (project, settings) = (&context.project, &context.settings);
        let input = self.input(app)?;
        let world = context.world()?;
        let places = PythonPlaces::from_settings(settings)?;
        let unhashed = match self.allow_unhashed {
            true => UnhashedPolicy::Allowed,
            false => UnhashedPolicy::Refused,
        };
        let request = places.run_request(settings, &self.name, &input, self.timeout, unhashed)?;
        let mut ledger = app.ledger()?;
        let report = app.drive(run_skill(&world, &mut ledger, project, &request))?;
        self.show(app, &report)?;
        Ok(report.exit_status())
    }

    fn input(&self, app: &App) -> Result<Value, Failure> {
        let bytes = match (&self.input, &self.input_file) {
            (Some(text), _) => text.clone().into_bytes(),
            (None, Some(path)) if path != Path::new(STANDARD_INPUT) => {
                read_regular_up_to(&app.absolute(path), ByteLimit(MAX_INPUT_BYTES))
                    .map_err(|error| error.unreadable_input())?
            }
            (None, _) => {
                let awaited =
                    InputNotice::Saying("waiting for the input on standard input (Ctrl-D ends it)");
                let most = usize::try_from(MAX_INPUT_BYTES).unwrap_or(usize::MAX);
                app.read_input(most, awaited)?.map_err(|error| {
                    Failure::usage(format!("standard input cannot be read: {error}"))
                })?
            }
        };
        if bytes.len() as u64 > MAX_INPUT_BYTES {
            let message = format!("the input has more than {MAX_INPUT_BYTES} bytes");
            return Err(Failure::new(ExitStatus::OverLimit, message)
                .hint("Pass less data, or a file path."));
        }
        UniqueJson::exact(&bytes).map_err(|error| {
            Failure::new(
                ExitStatus::Schema,
                format!("the input is not valid JSON: {error}"),
            )
            .hint("It is one object of named values, such as {\"text\": \"one two\"}.")
        })
    }

    fn show(&self, app: &App, report: &SkillRunReport) -> Result<(), Failure> {
        if app.output.is_json() {
            return app.output.json(&report.document(&self.name));
        }
        let printed = &report.printed;
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
        report
            .result()
            .map_or(Ok(()), |value| app.output.json(value))
    }
}
