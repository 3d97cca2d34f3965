//! `crucible gate`: judges the progress of a spec and returns one exit code.
//!
//! The judgement is the library's ([`SpecGate`]), with the formats `json`, `sarif` for code scanning, and
//! `github` for annotations of a pull request. This module has the flags and the format `text` for people.
//! Nothing is changed, and the ledger is read only if it exists.
//!
//! Invariant: exit code 1 means that the verdict is `fail` and was printed.

mod text;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use crucible_model::{ExitStatus, Failure};
use crucible_spec::gate_output::{GateView, Places, SpecGate, github, sarif};
use crucible_spec::{GatePolicy, OnPendingFixups, PhaseId, PhaseIdError, parse_age};
use crucible_terminal::{Format, OutputMode};

use crate::app::App;
use crate::names::spec_name;
use crate::requirement_report::{ReportFormat, report};
use crate::spec_project::{NamedSpec, named_spec, project, spec_to_read};

/// Judge whether a spec has come far enough, for CI
///
/// Compares the newest receipt of each phase with the files on disk. Dry runs and failures do not count,
/// and a receipt that cannot be trusted refuses. Exit code 0: the gate passes; 1: it fails; 10: a
/// required hook timed out; another: no verdict was reached. For example:
/// `crucible gate export-data --min-phase tasks --max-phase-age 7d --fail-on-pending-fixups`
#[derive(Args)]
#[command(after_help = format!("Without flags it asks for {}.", GatePolicy::default()))]
pub(crate) struct Gate {
    /// The id of the spec; or the name or folder of a spec of Spec Kit, OpenSpec or Kiro, whose requirements must be proven
    #[arg(value_name = "SPEC-ID", value_parser = spec_name)]
    spec: String,
    /// The phase that must have succeeded, with every phase before it
    #[arg(long, value_name = "PHASE", default_value_t = GatePolicy::default().min_phase, value_parser = phases())]
    min_phase: PhaseId,
    /// Maximum age of that phase's last success: 90s, 30m, 12h, 7d, 2w
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    max_phase_age: Option<Duration>,
    /// Refuse if a proposed fixup is not applied
    #[arg(long)]
    fail_on_pending_fixups: bool,
    /// Output format; `--json` is the same as `--format json`
    #[arg(long, value_name = "FORMAT")]
    format: Option<GateFormat>,
    /// The project's workspace.yaml, instead of searching upward
    #[arg(long, value_name = "FILE")]
    workspace: Option<PathBuf>,
}

/// The output format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GateFormat {
    /// For people
    Text,
    /// One document, gate-json.v1
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations that GitHub shows in a pull request
    Github,
}

impl Gate {
    /// The output mode of the command.
    pub(crate) fn mode(&self, json: bool) -> OutputMode {
        let json = json || self.format == Some(GateFormat::Json);
        OutputMode::plain(if json { Format::Json } else { Format::Human })
    }

    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let judged = self.judge(app).map_err(|error| match error.status {
            // Exit code 1 is reserved for a verdict; an input that cannot be read is another error.
            ExitStatus::Refused => Failure {
                status: ExitStatus::Usage,
                ..error
            },
            _ => error,
        });
        if let Err(error) = &judged {
            // A log or an annotation must show that no verdict was reached.
            match self.format {
                Some(GateFormat::Sarif) if !app.output.is_json() => {
                    app.output
                        .json(&sarif::unjudged(&self.spec, app.clock.now(), error))?;
                }
                Some(GateFormat::Github) if !app.output.is_json() => {
                    app.output.line(&github::unjudged(&error.message));
                }
                _ => {}
            }
        }
        judged
    }

    fn judge(&self, app: &App) -> Result<ExitStatus, Failure> {
        let format = self.format(app)?;
        let project = project(app, self.workspace.as_deref())?;
        let id = match named_spec(app, &project, &self.spec)? {
            NamedSpec::Own(id) => id,
            NamedSpec::Folder(folder) => {
                return report(app, &project, &folder.read(), self.of_folder(format)?);
            }
        };
        let store = spec_to_read(app, &project, id.clone());
        if !store.exists()? {
            return Err(store.unknown_spec().into());
        }
        let policy = self.policy();
        let config = app.config(project.root(), &[])?;
        let runtime = app.runtime();
        let gate = SpecGate {
            settings: &config,
            project: &project,
            store: &store,
            policy: &policy,
        };
        let (report, findings) = app.block_on(gate.judge(&runtime, || app.optional_ledger()))?;
        let places = Places::new(&project, &id);
        let view = GateView::new(&report, &policy, &findings, places);
        match format {
            GateFormat::Text => text::print(&app.output, &view),
            GateFormat::Json => app.output.json(&report)?,
            GateFormat::Sarif => app.output.json(&sarif::log(&view))?,
            GateFormat::Github => {
                github::annotations(&view).for_each(|line| app.output.line(&line));
                text::conclude(&app.output, &view);
            }
        }
        Ok(report.exit_status())
    }

    fn format(&self, app: &App) -> Result<GateFormat, Failure> {
        match (self.format, app.output.is_json()) {
            (None | Some(GateFormat::Json), true) => Ok(GateFormat::Json),
            (Some(GateFormat::Text | GateFormat::Sarif | GateFormat::Github), true) => {
                Err(Failure::usage("--json and --format contradict each other")
                    .hint("Give one of them: --json is the same as --format json."))
            }
            (format, false) => Ok(format.unwrap_or(GateFormat::Text)),
        }
    }

    /// The format for a spec without phases. Options about phases have no meaning there.
    fn of_folder(&self, format: GateFormat) -> Result<ReportFormat, Failure> {
        if self.policy() != GatePolicy::default() {
            return Err(Failure::usage("this spec has no phases and no fixups")
                .hint("Leave out --min-phase, --max-phase-age and --fail-on-pending-fixups."));
        }
        match format {
            GateFormat::Text => Ok(ReportFormat::Text),
            GateFormat::Json => Ok(ReportFormat::Json),
            GateFormat::Sarif | GateFormat::Github => Err(Failure::usage(
                "the evidence of this spec is printed as text or JSON only",
            )
            .hint("Leave out --format.")),
        }
    }

    fn policy(&self) -> GatePolicy {
        let default = GatePolicy::default();
        GatePolicy {
            min_phase: self.min_phase,
            max_phase_age: self.max_phase_age.or(default.max_phase_age),
            pending_fixups: match self.fail_on_pending_fixups {
                true => OnPendingFixups::Refuse,
                false => default.pending_fixups,
            },
        }
    }
}

/// Parses the name of a phase.
fn phases() -> impl TypedValueParser<Value = PhaseId> {
    PossibleValuesParser::new(PhaseId::ALL.map(PhaseId::as_str))
        .try_map(|name| -> Result<PhaseId, PhaseIdError> { name.parse() })
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    fn command() -> Command {
        Gate::augment_args(Command::new("gate"))
    }

    #[test]
    fn gate_help_default_matches_the_library() {
        let default = GatePolicy::default();
        let help = command()
            .render_long_help()
            .to_string()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(
            help.contains(&format!("Without flags it asks for {}.", default)),
            "{help}"
        );
        assert!(
            help.contains(&format!("[default: {}]", default.min_phase)),
            "{help}"
        );
        let matches = command().get_matches_from(["gate", "export-data"]);
        assert_eq!(Gate::from_arg_matches(&matches).unwrap().policy(), default);
    }
}
