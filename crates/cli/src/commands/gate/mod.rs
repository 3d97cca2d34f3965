//! `crucible gate`: judges the progress of a spec and returns one exit code.
//!
//! The judgement is the library's ([`gate_findings`]). This module holds the flags, the hooks around it
//! and the output formats: `text` for people, `json`, `sarif` for code scanning, and `github` for
//! annotations of a pull request. Nothing is changed, and the ledger is read only if it exists.
//!
//! Invariant: exit code 1 means that the verdict is `fail` and was printed.

mod github;
mod sarif;
mod text;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use crucible_model::{ExitStatus, Verdict};
use crucible_spec::{
    GateFinding, GatePolicy, GateReport, HookConsequence, HookMoment, HookOutcome, HookSubject,
    Hooks, OnPendingFixups, PhaseId, PhaseIdError, SpecId, SpecProject, fixup_under_way,
    gate_findings, gate_hook_findings, limit_words, parse_age,
};

use crate::app::App;
use crate::error::CommandError;
use crate::names::spec_id;
use crate::output::{Format, OutputMode};
use crate::spec_project::{project, spec_to_read};

/// Judge whether a spec has come far enough, for CI
///
/// Compares the newest receipt of each phase with the files on disk. Dry runs and failures do not count,
/// and a receipt that cannot be trusted refuses. Exit code 0: the gate passes; 1: it fails; 10: a
/// required hook timed out; another: no verdict was reached. For example:
/// `crucible gate export-data --min-phase tasks --max-phase-age 7d --fail-on-pending-fixups`
#[derive(Args)]
#[command(after_help = format!("Without flags it asks for {}.", policy_words(&GatePolicy::default())))]
pub(crate) struct Gate {
    /// The id of the spec
    #[arg(value_name = "SPEC-ID", value_parser = spec_id)]
    spec: SpecId,
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

/// The most findings that are printed one by one. The JSON document has its own, smaller limit.
const TOLD: usize = 5_000;

/// The findings as the text, SARIF and GitHub formats print them.
struct GateView<'a> {
    report: &'a GateReport,
    policy: &'a GatePolicy,
    /// The first findings, each complete.
    findings: &'a [GateFinding],
    /// The number of findings left out.
    left_out: usize,
    places: Places,
}

/// Maps the file of a finding to a path in the repository.
struct Places {
    /// The spec's directory relative to the repository's root, with `/` between names.
    spec: String,
}

impl Gate {
    /// The output mode of the command.
    pub(crate) fn mode(&self, json: bool) -> OutputMode {
        let json = json || self.format == Some(GateFormat::Json);
        OutputMode::plain(if json { Format::Json } else { Format::Human })
    }

    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let judged = self.judge(app).map_err(|error| match error.status {
            // Exit code 1 is reserved for a verdict; an input that cannot be read is another error.
            ExitStatus::Refused => CommandError {
                status: ExitStatus::Usage,
                ..error
            },
            _ => error,
        });
        if let Err(error) = &judged {
            // A log or an annotation must show that no verdict was reached.
            match self.format {
                Some(GateFormat::Sarif) if !app.output.is_json() => {
                    app.output.json(&sarif::unjudged(
                        self.spec.as_str(),
                        app.clock.now(),
                        error,
                    ))?;
                }
                Some(GateFormat::Github) if !app.output.is_json() => {
                    app.output.line(&github::unjudged(&error.message));
                }
                _ => {}
            }
        }
        judged
    }

    fn judge(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let format = self.format(app)?;
        let project = project(app, self.workspace.as_deref())?;
        let store = spec_to_read(app, &project, self.spec.clone());
        if !store.exists()? {
            return Err(store.unknown().into());
        }
        let policy = self.policy();
        let config = app.config(project.root(), &[])?;
        let hooks = Hooks::read(&app.runtime(), &config, &project)?;
        let mut subject = HookSubject::before(self.spec.clone(), policy.min_phase);
        let before = self.hooks(app, &hooks, HookMoment::PreGate, &subject)?;

        let ledger = app.ledger_to_ask()?;
        let state = store.state(ledger.as_ref())?;
        let (now, clock) = (app.clock.now(), app.clock.source());
        let mut findings = gate_findings(&state, &policy, now, clock);
        findings.extend(fixup_under_way(&store)?.map(|under_way| under_way.finding()));

        let mut receipts = before.receipts;
        // After a required hook has failed, no other hook runs.
        if let HookConsequence::GoOn(_) = before.consequence {
            let verdict =
                Verdict::new(findings.iter().map(|found| found.finding.clone()).collect());
            subject.verdict = Some(verdict.outcome());
            receipts.extend(
                self.hooks(app, &hooks, HookMoment::PostGate, &subject)?
                    .receipts,
            );
        }
        findings.extend(gate_hook_findings(&receipts));
        let report = GateReport::new(&state, &policy, now, clock, &findings, &receipts);

        let told = GateView {
            report: &report,
            policy: &policy,
            findings: &findings[..findings.len().min(TOLD)],
            left_out: findings.len().saturating_sub(TOLD),
            places: Places::of(&project, &self.spec),
        };
        match format {
            GateFormat::Text => text::print(&app.output, &told),
            GateFormat::Json => app.output.json(&report)?,
            GateFormat::Sarif => app.output.json(&sarif::log(&told))?,
            GateFormat::Github => github::print(&app.output, &told),
        }
        Ok(report.exit_status())
    }

    fn format(&self, app: &App) -> Result<GateFormat, CommandError> {
        match (self.format, app.output.is_json()) {
            (None | Some(GateFormat::Json), true) => Ok(GateFormat::Json),
            (Some(GateFormat::Text | GateFormat::Sarif | GateFormat::Github), true) => Err(
                CommandError::usage("--json and --format contradict each other")
                    .hint("Give one of them: --json is the same as --format json."),
            ),
            (format, false) => Ok(format.unwrap_or(GateFormat::Text)),
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

    /// Runs the hooks of a moment, and warns about failures that are allowed.
    fn hooks(
        &self,
        app: &App,
        hooks: &Hooks,
        moment: HookMoment,
        subject: &HookSubject,
    ) -> Result<HookOutcome, CommandError> {
        if !hooks.any(moment, subject.phase) {
            return Ok(HookOutcome {
                receipts: Vec::new(),
                consequence: HookConsequence::GoOn(Vec::new()),
            });
        }
        let runtime = app.runtime();
        let outcome = app.block_on(async { Ok(hooks.run(&runtime, moment, subject).await) })?;
        if let HookConsequence::GoOn(warnings) = &outcome.consequence {
            for warning in warnings {
                app.output.remark(&format!("warning: {}", warning.message));
            }
        }
        Ok(outcome)
    }
}

impl Places {
    fn of(project: &SpecProject, spec: &SpecId) -> Self {
        let root = project.root();
        let dir = project.spec(spec);
        let repository = crucible_spec::repository_of(root).unwrap_or(root);
        let below: &Path = dir.strip_prefix(repository).unwrap_or(&dir);
        let names = below
            .components()
            .map(|name| name.as_os_str().to_string_lossy().into_owned());
        Self {
            spec: names.collect::<Vec<_>>().join("/"),
        }
    }

    /// The file of a finding relative to the repository's root. If a receipt names no possible file of
    /// the spec, it is the spec's directory.
    fn file(&self, finding: &GateFinding) -> String {
        match finding.file.parse::<crucible_model::RepoPath>() {
            Ok(path) => format!("{}/{path}", self.spec),
            Err(_) => self.spec.clone(),
        }
    }
}

/// Parses the name of a phase.
fn phases() -> impl TypedValueParser<Value = PhaseId> {
    PossibleValuesParser::new(PhaseId::ALL.map(PhaseId::as_str))
        .try_map(|name| -> Result<PhaseId, PhaseIdError> { name.parse() })
}

/// Describes the requirements of a policy.
fn policy_words(policy: &GatePolicy) -> String {
    let GatePolicy {
        min_phase,
        pending_fixups,
        max_phase_age,
    } = policy;
    let before = if min_phase.predecessor().is_some() {
        " and every phase before it"
    } else {
        ""
    };
    let age = max_phase_age.map_or_else(
        || "of any age".to_owned(),
        |age| format!("at most {} old", limit_words(age)),
    );
    let fixups = match pending_fixups {
        OnPendingFixups::Allow => "with or without pending fixups",
        OnPendingFixups::Refuse => "without pending fixups",
    };
    format!("{min_phase}{before}, {age}, {fixups}")
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    fn command() -> Command {
        Gate::augment_args(Command::new("gate"))
    }

    #[test]
    fn the_help_tells_the_default_that_the_library_has() {
        let default = GatePolicy::default();
        let help = command()
            .render_long_help()
            .to_string()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(
            help.contains(&format!(
                "Without flags it asks for {}.",
                policy_words(&default)
            )),
            "{help}"
        );
        assert!(
            help.contains(&format!("[default: {}]", default.min_phase)),
            "{help}"
        );
        let matches = command().get_matches_from(["gate", "export-data"]);
        assert_eq!(Gate::from_arg_matches(&matches).unwrap().policy(), default);
    }

    #[test]
    fn each_part_of_a_policy_has_its_words() {
        let day = Duration::from_secs(86_400);
        let strict = GatePolicy {
            min_phase: PhaseId::Final,
            max_phase_age: Some(7 * day),
            pending_fixups: OnPendingFixups::Refuse,
        };
        assert_eq!(
            policy_words(&strict),
            "final and every phase before it, at most 7d old, without pending fixups"
        );
        let first = GatePolicy {
            min_phase: PhaseId::Requirements,
            ..GatePolicy::default()
        };
        assert_eq!(
            policy_words(&first),
            "requirements, of any age, with or without pending fixups"
        );
    }
}
