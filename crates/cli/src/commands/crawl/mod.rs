//! `crucible crawl`: finds a repository, inspects it and derives a build plan that is safe to run.

mod ask;
mod export;
mod flags;
mod history;
mod host;
mod inspect;
mod menu;
mod plan;
mod progress;
mod search;
mod show;
mod validate;
mod wanted;

use std::io::IsTerminal;

use clap::{Args, Subcommand};
use crucible_model::{ExitStatus, Failure};
use crucible_terminal::{Format, OutputMode, Voice};
use flags::{FormatName, OutputArgs};

use crate::app::App;

/// The exit codes, as the help lists them.
const ENDS: &str = "Exit codes: 0 done, 1 refused, usage errors included, 2 the safety rules reject the plan, \
3 a document or a model's JSON does not match its schema, 4 GitHub's rate limit, 8 secret found, 9 locked, 70 no usable model answer, 130 interrupted.";

/// Inspect a repository and derive a safe build plan
///
/// Without a subcommand on a terminal, this opens a menu. Crucible contacts GitHub only through `gh` and
/// `git clone`, and executes nothing from a repository. For example:
///
/// `crucible crawl search ripgrep`, then `crucible crawl plan BurntSushi/ripgrep --offline`, or
/// `crucible crawl inspect ./my-project` for a local repository.
///
/// The result goes to standard output, as one JSON document unless that is a terminal. Everything else
/// goes to standard error, each line prefixed with `[crawl]`.
#[derive(Args)]
#[command(after_help = ENDS, args_conflicts_with_subcommands = true)]
pub(crate) struct Crawl {
    #[command(subcommand)]
    command: Option<CrawlCommand>,
    #[command(flatten)]
    menu: menu::Menu,
}

#[derive(Subcommand)]
enum CrawlCommand {
    Search(search::Search),
    Inspect(inspect::Inspect),
    Plan(plan::Plan),
    Export(export::Export),
    History(history::History),
    Validate(validate::Validate),
}

impl Crawl {
    /// The output mode: JSON if standard output is not a terminal, unless text is requested.
    pub(crate) fn mode(&self, json: bool) -> OutputMode {
        let requested_format = if json || self.wants_lines() {
            Some(FormatName::Json)
        } else {
            self.output_args().format
        };
        let (format, errors) = match requested_format {
            Some(FormatName::Json) => (Format::Json, Format::Json),
            Some(FormatName::Pretty) => (Format::Human, Format::Human),
            None if std::io::stdout().is_terminal() => (Format::Human, Format::Human),
            None => (Format::Json, Format::Human),
        };
        OutputMode {
            format,
            errors,
            voice: Voice::Crawl,
        }
    }

    fn output_args(&self) -> &OutputArgs {
        match &self.command {
            None => &self.menu.output_args,
            Some(CrawlCommand::Search(command)) => &command.output_args,
            Some(CrawlCommand::Inspect(command)) => &command.output_args,
            Some(CrawlCommand::Plan(command)) => &command.output_args,
            Some(CrawlCommand::Export(command)) => &command.output_args,
            Some(CrawlCommand::History(command)) => &command.output_args,
            Some(CrawlCommand::Validate(command)) => &command.output_args,
        }
    }

    /// Whether the result is JSON with one item per line.
    fn wants_lines(&self) -> bool {
        matches!(&self.command, Some(CrawlCommand::Search(search)) if search.ndjson)
    }

    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        match &self.command {
            None => self.menu.run(app),
            Some(CrawlCommand::Search(command)) => command.run(app),
            Some(CrawlCommand::Inspect(command)) => command.run(app),
            Some(CrawlCommand::Plan(command)) => command.run(app),
            Some(CrawlCommand::Export(command)) => command.run(app),
            Some(CrawlCommand::History(command)) => command.run(app),
            Some(CrawlCommand::Validate(command)) => command.run(app),
        }
    }
}
