//! The two models of a debate: chosen before the session starts, and opened within it.

use std::sync::Arc;
use std::time::Duration;

use crucible_crawl::{Claude, DebateRounds, Gpt, Planner};
use crucible_host::clock::clock_from;
use crucible_ledger::Ledger;
use crucible_llm::{
    Backend, CallBudget, ClientOptions, Limit, ModelClient, PriceTable, Selected, UNSPECIFIED,
    construct,
};
use crucible_run::LedgerBook;
use crucible_settings::{Settings, variable_of};

use super::context::CrawlContext;
use super::flags::{Debating, Trace};
use crate::app::App;
use crate::commands::model;
use crate::commands::run::shared_sandbox;
use crate::error::CommandError;

/// The planner, before the session starts.
pub(crate) enum PlannerBackends {
    Offline,
    Both(Box<Both>),
}

/// Two backends, and the limits of their calls.
pub(crate) struct Both {
    gpt: Backend,
    claude: Backend,
    rounds: DebateRounds,
    timeout: Duration,
}

/// The planner within a session.
pub(crate) enum OpenPlannerBackends {
    Offline,
    Both {
        gpt: Box<Gpt>,
        claude: Box<Claude>,
        rounds: DebateRounds,
        timeout: Duration,
    },
}

impl PlannerBackends {
    /// Prepares both providers, so that a missing one is reported before anything is fetched.
    pub(crate) fn choose(
        app: &App,
        config: &Settings,
        debating: &Debating,
        trace: &Trace,
    ) -> Result<Self, CommandError> {
        if debating.offline {
            return Ok(Self::Offline);
        }
        let rounds = debating.rounds(app);
        model::check_budget(config)?;
        let sandbox = shared_sandbox(app);
        let mut context = model::context(app, config, &sandbox)?;
        if trace.dry_run {
            context.temporary = app.env.temporary_directory();
        }
        let (drafts, criticises) = (
            provider(config, Owner::Gpt)?,
            provider(config, Owner::Claude)?,
        );
        let Selected {
            backend: gpt,
            candidate,
            ..
        } = model::selected_with(app, config, &context, drafts)?;
        // A provider that serves both roles is prepared again without repeating its warnings.
        let claude = if drafts == criticises {
            construct(&candidate.name, &candidate.settings, &context)?
        } else {
            model::selected_with(app, config, &context, criticises)?.backend
        };
        let timeout = match config.llm.timeout_s {
            0 => {
                return Err(CommandError::usage(
                    "llm.timeout_s is 0, which leaves no time for an answer",
                )
                .hint("Set a whole number of seconds of at least 1."));
            }
            seconds => Duration::from_secs(seconds),
        };
        Ok(Self::Both(Box::new(Both {
            gpt,
            claude,
            rounds,
            timeout,
        })))
    }

    /// The debate options for the snapshot of the configuration.
    pub(crate) fn options(&self) -> Vec<(&'static str, String)> {
        let offline = |is: bool| ("--offline", is.to_string());
        match self {
            Self::Offline => vec![offline(true)],
            Self::Both(both) => {
                vec![
                    offline(false),
                    ("--max-debate-rounds", both.rounds.get().to_string()),
                ]
            }
        }
    }

    /// Wraps both for this session with one budget, which is in the ledger except in a dry run.
    pub(crate) fn open(
        self,
        context: &CrawlContext<'_>,
    ) -> Result<OpenPlannerBackends, CommandError> {
        let Self::Both(both) = self else {
            return Ok(OpenPlannerBackends::Offline);
        };
        let Both {
            gpt,
            claude,
            rounds,
            timeout,
        } = *both;
        let (app, config) = (context.app, context.config);
        let prices: Arc<PriceTable> = Arc::new(model::prices(config)?);
        let mut limits = model::limits(config)?;
        limits.calls = Limit::At(config.budget.calls);
        let budget = match context.run_id() {
            Some(run) => {
                let ledger = Ledger::open(&app.ledger_path()?)?;
                CallBudget::kept(
                    limits,
                    Arc::new(LedgerBook::new(ledger, run, clock_from(&app.env)?)),
                )
            }
            None => CallBudget::new(limits),
        };
        let client = |backend: Backend| {
            let options = ClientOptions::new(Arc::clone(&budget));
            ModelClient::new(
                backend,
                ClientOptions {
                    prices: Arc::clone(&prices),
                    ..options
                },
            )
        };
        let (gpt, claude) = (
            Box::new(Gpt::new(client(gpt))),
            Box::new(Claude::new(client(claude))),
        );
        Ok(OpenPlannerBackends::Both {
            gpt,
            claude,
            rounds,
            timeout,
        })
    }
}

impl OpenPlannerBackends {
    /// Borrows this as the planner of the pipeline.
    pub(crate) fn planner(&self) -> Planner<'_> {
        match self {
            Self::Offline => Planner::Offline,
            Self::Both {
                gpt,
                claude,
                rounds,
                timeout,
            } => Planner::Debate {
                gpt,
                claude,
                rounds: *rounds,
                timeout: *timeout,
            },
        }
    }
}

/// The two sides of a debate.
#[derive(Clone, Copy)]
enum Owner {
    Gpt,
    Claude,
}

/// The provider of an owner.
fn provider(config: &Settings, owner: Owner) -> Result<&str, CommandError> {
    let (gpt, claude) = (
        config.crawl.gpt_provider.as_deref(),
        config.crawl.claude_provider.as_deref(),
    );
    let (own, flag, set, other, does) = match owner {
        Owner::Gpt => (
            gpt,
            "--gpt-provider",
            claude,
            "crawl.claude_provider",
            "drafts the plan",
        ),
        Owner::Claude => (
            claude,
            "--claude-provider",
            gpt,
            "crawl.gpt_provider",
            "criticises the plan",
        ),
    };
    let everyone = config.llm.provider.as_deref();
    if own.is_none() && everyone.is_none() && set.is_some() {
        let message = format!("{UNSPECIFIED}: no provider is set that {does}; only {other} is set");
        return Err(CommandError::usage(message).hint(format!(
            "Pass {flag}, or set {} for both.",
            variable_of("llm.provider")
        )));
    }
    own.or(everyone).ok_or_else(|| {
        CommandError::usage(format!("{UNSPECIFIED}: models draft and criticise a plan"))
            .hint(format!(
                "Pass --gpt-provider and --claude-provider, or set {} for both.",
                variable_of("llm.provider")
            ))
            .hint("Or plan without a model: --offline uses the standard steps of the build system.")
    })
}
