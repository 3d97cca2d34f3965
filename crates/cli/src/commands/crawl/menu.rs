//! `crucible crawl` without a subcommand, on a terminal: the menu.
//!
//! Each choice runs the subcommand of its name and asks for the arguments it needs. An error is printed,
//! and the menu returns. It ends with choice 0, at the end of the input, and on Ctrl-C.

use std::path::PathBuf;

use clap::Args;
use crucible_model::{ExitStatus, Failure};

use super::flags::{Debating, OutputArgs, OutputFlag, Searching, Trace, Which};
use super::{ask, export, history, inspect, plan, search};
use crate::app::App;

/// The menu as users see it.
const MENU: &str = "\
═══ Crucible Git Crawler ══════════════════════
1) Search repository
2) Inspect repository
3) Generate build plan
4) Export plan (Vivian-compatible)
5) View crawl history
0) Exit
···············································";

/// The state that the menu's choices share.
#[derive(Args, Default)]
pub(crate) struct Menu {
    #[command(flatten)]
    searching: Searching,
    #[command(flatten)]
    debating: Debating,
    #[command(flatten)]
    place: OutputFlag,
    #[command(flatten)]
    pub(crate) output_args: OutputArgs,
    #[command(flatten)]
    trace: Trace,
}

impl Menu {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        if !ask::may_ask(&self.output_args) {
            return Err(Failure::usage(
                "the menu needs a terminal, and no subcommand was given",
            )
            .hint("Name a subcommand: search, inspect, plan, export, history or validate; `crucible crawl --help` describes them."));
        }
        loop {
            app.output.remark(MENU);
            let Some(answer) = ask::ask(app, "Choice [0-5]:")? else {
                return Ok(ExitStatus::Success);
            };
            let done = match answer.as_str() {
                "0" => return Ok(ExitStatus::Success),
                "1" => self.search().run(app),
                "2" => self.inspect().run(app),
                "3" => self.plan(app).and_then(|plan| plan.run(app)),
                "4" => self.export(app).and_then(|export| export.run(app)),
                "5" => history::show(app),
                _ => {
                    app.output.remark("Write a number from 0 to 5.");
                    continue;
                }
            };
            match done {
                Ok(_) => {}
                Err(error) if error.status == ExitStatus::Interrupted => return Err(error),
                Err(error) => app.output.error(&error),
            }
        }
    }

    fn search(&self) -> search::Search {
        search::Search {
            searching: self.searching,
            trace: self.trace,
            ..Default::default()
        }
    }

    fn inspect(&self) -> inspect::Inspect {
        inspect::Inspect {
            which: self.which(),
            trace: self.trace,
            ..Default::default()
        }
    }

    fn plan(&self, app: &App) -> Result<plan::Plan, Failure> {
        let debating = self.debating(app)?;
        Ok(plan::Plan {
            which: self.which(),
            debating,
            trace: self.trace,
            ..Default::default()
        })
    }

    fn export(&self, app: &App) -> Result<export::Export, Failure> {
        let (which, debating, mut place) = (self.which(), self.debating(app)?, self.place.clone());
        if place.output_dir.is_none() {
            let question = "Directory to write to (leave empty for exports/SESSION in Crucible's own directory):";
            place.output_dir = ask::ask(app, question)?
                .filter(|named| !named.is_empty())
                .map(PathBuf::from);
        }
        Ok(export::Export {
            which,
            debating,
            place,
            trace: self.trace,
            ..Default::default()
        })
    }

    fn which(&self) -> Which {
        Which {
            searching: self.searching,
            ..Which::default()
        }
    }

    /// The debate options. If no model is configured, asks whether to use the standard steps.
    fn debating(&self, app: &App) -> Result<Debating, Failure> {
        let mut debating = self.debating.clone();
        if !debating.offline && !debating.somebody_plans(app)? {
            debating.offline = ask::confirm(
                app,
                "No model is configured. Plan with the standard steps, without one?",
            )?;
        }
        Ok(debating)
    }
}
