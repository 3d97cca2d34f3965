//! From the settings to the two models of a debate: prepared before the session starts, and opened within it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crucible_llm::configured;
use crucible_llm::{
    Backend, CallBudget, ClientOptions, ModelClient, PriceTable, ReservationStore, Selected,
    UNSPECIFIED, construct,
};
use crucible_model::Failure;
use crucible_sandbox::Runtime;
use crucible_settings::{Settings, variable_of};

use crate::debate::{DebateRounds, PlanAuthor, PlanCritic};
use crate::pipeline::Planner;

/// The planner, before the session starts.
pub enum PlannerBackends {
    /// No model: the standard steps of the build system.
    Offline,
    /// Two models.
    Both(Box<DebateBackends>),
}

/// Two backends, and the limits of their calls.
pub struct DebateBackends {
    gpt: Backend,
    claude: Backend,
    rounds: DebateRounds,
    timeout: Duration,
}

/// The planner within a session.
pub enum OpenPlannerBackends {
    /// No model.
    Offline,
    /// Two models.
    Both {
        /// Drafts and revises.
        gpt: Box<PlanAuthor>,
        /// Criticises.
        claude: Box<PlanCritic>,
        /// The most rounds.
        rounds: DebateRounds,
        /// The time limit of a call.
        timeout: Duration,
    },
}

impl PlannerBackends {
    /// Prepares both providers, so that a missing one is reported before anything is fetched. `temporary` replaces
    /// the directory for their temporary files.
    ///
    /// # Errors
    ///
    /// Fails if a setting cannot be used, or if a provider cannot be prepared.
    pub fn for_debate(
        runtime: &Runtime<'_>,
        config: &Settings,
        rounds: DebateRounds,
        temporary: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        configured::check_budget(config)?;
        let mut context = configured::context(runtime, config)?;
        if let Some(temporary) = temporary {
            context.temporary = temporary;
        }
        let (drafts, criticises) = (
            provider(config, Owner::Gpt)?,
            provider(config, Owner::Claude)?,
        );
        let Selected {
            backend: gpt,
            candidate,
            ..
        } = configured::selected_with(runtime, config, &context, drafts)?;
        // A provider that serves both roles is prepared again without repeating its warnings.
        let claude = if drafts == criticises {
            construct(&candidate.name, &candidate.settings, &context)?
        } else {
            configured::selected_with(runtime, config, &context, criticises)?.backend
        };
        let timeout = match config.llm.timeout_s {
            0 => {
                return Err(Failure::usage(
                    "llm.timeout_s is 0, which leaves no time for an answer",
                )
                .hint("Set a whole number of seconds of at least 1."));
            }
            seconds => Duration::from_secs(seconds),
        };
        Ok(Self::Both(Box::new(DebateBackends {
            gpt,
            claude,
            rounds,
            timeout,
        })))
    }

    /// Returns the debate options for the snapshot of the configuration.
    #[must_use]
    pub fn options(&self) -> Vec<(&'static str, String)> {
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

    /// Wraps both for this session with one budget, which `book` keeps if given.
    ///
    /// # Errors
    ///
    /// Fails if a price or a limit cannot be used.
    pub fn open(
        self,
        config: &Settings,
        book: Option<Arc<dyn ReservationStore>>,
    ) -> Result<OpenPlannerBackends, Failure> {
        let Self::Both(both) = self else {
            return Ok(OpenPlannerBackends::Offline);
        };
        let DebateBackends {
            gpt,
            claude,
            rounds,
            timeout,
        } = *both;
        let prices: Arc<PriceTable> = Arc::new(configured::prices(config)?);
        let limits = configured::limits(config)?;
        let budget = match book {
            Some(book) => CallBudget::with_store(limits, book),
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
            Box::new(PlanAuthor::new(client(gpt))),
            Box::new(PlanCritic::new(client(claude))),
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
    #[must_use]
    pub fn planner(&self) -> Planner<'_> {
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
fn provider(config: &Settings, owner: Owner) -> Result<&str, Failure> {
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
        return Err(Failure::usage(message).hint(format!(
            "Pass {flag}, or set {} for both.",
            variable_of("llm.provider")
        )));
    }
    own.or(everyone).ok_or_else(|| {
        Failure::usage(format!("{UNSPECIFIED}: models draft and criticise a plan"))
            .hint(format!(
                "Pass --gpt-provider and --claude-provider, or set {} for both.",
                variable_of("llm.provider")
            ))
            .hint("Or plan without a model: --offline uses the standard steps of the build system.")
    })
}
