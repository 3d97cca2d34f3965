//! `crucible stats`: outcome, cost and time of all runs, and their replay under another policy.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use crucible_ledger::{Page, RunFilter};
use crucible_llm::dollars;
use crucible_model::{ExitStatus, Failure, counted, one_line};
use crucible_run::{ReplayPolicy, RuleAnswer};
use crucible_settings::{ConfigFiles, Settings};
use crucible_terminal::{lines_of, table};
use crucible_view::{
    ListQuery, PolicyRun, PolicyView, RunList, RunOutcome, StatsGroup, StatsKey, StatsRow,
    StatsView, duration,
};

use crate::app::App;

/// Show outcome, cost and time of runs by model, agent, repository and week
///
/// The numbers are sums over `crucible run list`. The time of a run is from its start to its last change. With --policy, the
/// command judges which verified runs would pass other settings, from their records: no gate and no model runs. What a record
/// does not say is `unknown`. For example: `crucible stats --policy .crucible/config.toml`
#[derive(Args)]
pub(crate) struct Stats {
    /// Only groups by this [default: all of them]
    #[arg(long, value_enum, value_name = "KEY")]
    by: Option<By>,
    /// Only runs of the repository around this directory
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Only runs that called this model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Only the newest runs of them, this many
    #[arg(long, value_name = "N")]
    last: Option<u64>,
    /// Judge the runs by the settings in this file and the defaults [default: the settings of this directory]
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with = "by")]
    policy: Option<Option<PathBuf>>,
}

/// What the runs of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// The configured model
    Model,
    /// The coding agent
    Agent,
    /// The repository
    Repository,
    /// The week in which they were started
    Week,
}

impl By {
    fn key(self) -> StatsKey {
        match self {
            Self::Model => StatsKey::Model,
            Self::Agent => StatsKey::Agent,
            Self::Repository => StatsKey::Repository,
            Self::Week => StatsKey::Week,
        }
    }
}

impl Stats {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let query = ListQuery {
            filter: RunFilter {
                repo: self
                    .repo
                    .as_deref()
                    .map(|dir| repository(app, dir))
                    .transpose()?,
                model: self.model.clone(),
                ..RunFilter::default()
            },
            page: self.last.map(|most| Page { skip: 0, most }),
        };
        if let Some(file) = &self.policy {
            return replay(app, &query, file.as_deref());
        }
        let keys = self
            .by
            .map_or_else(|| StatsKey::ALL.to_vec(), |by| vec![by.key()]);
        let list = match app.existing_ledger()? {
            Some(ledger) => RunList::read(&ledger, &query)?,
            None => RunList::empty(),
        };
        let stats = StatsView::new(&list.runs, &keys);
        app.output.show(
            || &stats,
            || {
                app.output.line(&summary(&stats.all));
                for group in stats.groups.iter().filter(|group| !group.rows.is_empty()) {
                    app.output.line(&format!("\n{}", table_of(group)));
                }
            },
        )
    }
}

/// The path of a repository, as the list of runs has it.
fn repository(app: &App, directory: &Path) -> Result<String, Failure> {
    let directory = app.directory(directory)?;
    let top = app.repository_of(&directory).unwrap_or(directory);
    let top = std::fs::canonicalize(&top).unwrap_or(top);
    Ok(top.to_string_lossy().into_owned())
}

fn summary(all: &StatsRow) -> String {
    let outcomes: Vec<String> = all
        .outcomes
        .iter()
        .map(|(outcome, runs)| format!("{runs} {}", outcome.name()))
        .collect();
    let mut text = counted(all.runs, "run");
    if !outcomes.is_empty() {
        text = format!("{text}: {}", outcomes.join(", "));
    }
    let calls = counted(all.totals.calls, "call");
    format!(
        "{text}\n{}, {calls}, {} tokens; {} in all, median {}",
        dollars(all.totals.micro_dollars),
        all.totals.tokens,
        duration(all.elapsed_ms),
        all.median_elapsed_ms.map_or("-".to_owned(), duration),
    )
}

fn table_of(group: &StatsGroup) -> String {
    let mut rows = table([
        group.by.name(),
        "runs",
        "verified",
        "failed",
        "open",
        "cost",
        "per verified",
        "median time",
    ]);
    for row in &group.rows {
        let runs = |outcomes: &[RunOutcome]| {
            let numbers = outcomes
                .iter()
                .filter_map(|outcome| row.outcomes.get(outcome));
            numbers.sum::<u64>().to_string()
        };
        let verified = runs(&[RunOutcome::Verified, RunOutcome::Landed]);
        let share = row.verified_percent.map_or(verified.clone(), |percent| {
            format!("{verified} ({percent} %)")
        });
        let key = match row.key.as_str() {
            "" => "-".to_owned(),
            key => one_line(key),
        };
        rows.add_row([
            key,
            row.runs.to_string(),
            share,
            runs(&[RunOutcome::Failed, RunOutcome::Declined]),
            runs(&[RunOutcome::Open, RunOutcome::Blocked]),
            dollars(row.totals.micro_dollars),
            row.micro_dollars_per_verified
                .map_or("-".to_owned(), dollars),
            row.median_elapsed_ms.map_or("-".to_owned(), duration),
        ]);
    }
    lines_of(&rows)
}

fn replay(app: &App, query: &ListQuery, file: Option<&Path>) -> Result<ExitStatus, Failure> {
    let here = app.config(app.env.working_directory(), &[])?;
    let settings = match file {
        None => None,
        Some(file) => Some(policy_file(app, file)?),
    };
    let policy = ReplayPolicy::from_settings(settings.as_ref().unwrap_or(&here))?;
    let ledger = app.required_ledger()?;
    let view = PolicyView::read(&ledger, &app.runs_root(&here)?, query, &policy)?;
    app.output.show(
        || &view,
        || {
            for run in &view.runs {
                for line in lines_of_run(run) {
                    app.output.line(&one_line(&line));
                }
            }
            app.output.line(&format!(
                "{} pass, {} unknown, {} refused; {} without a verified change",
                view.passing, view.unknown, view.refused, view.not_verified
            ));
        },
    )
}

/// The settings of one file and the defaults, without the environment, so that equal files are equal policies.
fn policy_file(app: &App, file: &Path) -> Result<Settings, Failure> {
    let path = app.absolute(file);
    if !path.is_file() {
        let message = format!("cannot read the policy {}: no such file", path.display());
        return Err(
            Failure::usage(message).hint("Name a file of settings, such as .crucible/config.toml.")
        );
    }
    let files = ConfigFiles {
        over: vec![path],
        ..ConfigFiles::default()
    };
    let nothing = crucible_host::env::Environment::default();
    Ok(Settings::load(&files, &nothing, &[])?)
}

fn lines_of_run(run: &PolicyRun) -> Vec<String> {
    let answer = match run.answer {
        None => return Vec::new(),
        Some(RuleAnswer::Passes) => "passes",
        Some(RuleAnswer::Unknown) => "unknown",
        Some(RuleAnswer::Refuses) => "refused",
    };
    let mut lines = vec![format!("{answer:8} {}  {}", run.run_id, run.goal.as_str())];
    let others = run
        .rules
        .iter()
        .filter(|rule| rule.answer != RuleAnswer::Passes);
    lines.extend(others.map(|rule| {
        let (setting, reason) = (rule.setting.as_str(), rule.reason.as_str());
        let word = match rule.answer {
            RuleAnswer::Refuses => "refuses",
            RuleAnswer::Passes | RuleAnswer::Unknown => "unknown",
        };
        format!("         {setting} {word}: {reason}")
    }));
    lines
}
