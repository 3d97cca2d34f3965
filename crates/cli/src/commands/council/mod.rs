//! `crucible ask` and `crucible chat`: the council on the command line.
//!
//! Both are thin clients of `crucible_council` and offer only what the engine offers.
//! This module holds the flags that they share. Each question gets its own engine and budget.

pub(crate) mod ask;
pub(crate) mod chat;
mod progress;
mod show;

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, RangedI64ValueParser};
use crucible_council::configured::{
    ConfiguredCouncil, CouncilSession, DELTAS, MIN_CALLS, ModelArguments, provider,
};
use crucible_llm::configured::check_cassette;
use crucible_model::Failure;

use crate::app::App;
use crate::arguments::{overrides, path_text, providers};

/// The flags that choose the models and limits of a council.
#[derive(Args)]
pub(crate) struct CouncilFlags {
    /// Provider of every call [default: council.provider, else llm.provider]
    #[arg(long, alias = "llm-provider", value_name = "NAME", value_parser = providers())]
    provider: Option<String>,
    /// The recording to answer from, for the provider `replay`
    #[arg(long, value_name = "FILE")]
    cassette: Option<PathBuf>,
    /// Model that configures the council [default: council.triage_model, else as for other calls]
    #[arg(long, value_name = "MODEL")]
    triage_model: Option<String>,
    /// Model of all other calls [default: the phase's model in [phases], council.default_model or the
    /// provider's]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Fallback model for OpenRouter, tried in order (repeatable)
    #[arg(long = "fallback-model", value_name = "MODEL", value_parser = model_name)]
    fallback_models: Vec<String>,
    /// Model that the triage may choose; `*` allows any (repeatable)
    #[arg(long = "hint-model", value_name = "MODEL", value_parser = model_name)]
    hinted_models: Vec<String>,
    /// How to detect that a loop changed nothing [default: council.delta, judge]
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(DELTAS))]
    delta: Option<String>,
    /// Maximum calls per question, retries included, at least 2 [default: council.calls, 64]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = RangedI64ValueParser::<u64>::new().range(MIN_CALLS as i64..))]
    max_calls: Option<u64>,
    /// Record every call in this new file, for the provider `replay`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl CouncilFlags {
    /// The settings that the options override. Lists of models are not among them, because a model name
    /// may contain the comma that separates list entries.
    fn settings(&self) -> Vec<(&'static str, String)> {
        overrides([
            ("council.provider", self.provider.clone()),
            ("council.triage_model", self.triage_model.clone()),
            ("council.default_model", self.model.clone()),
            ("council.delta", self.delta.clone()),
            (
                "council.calls",
                self.max_calls.map(|calls| calls.to_string()),
            ),
            ("llm.replay.cassette", path_text(&self.cassette)),
        ])
    }
}

/// Reads the settings and prepares the council. Sends nothing.
fn session(app: &App, flags: &CouncilFlags) -> Result<CouncilSession, Failure> {
    let config = app.config(app.env.working_directory(), &flags.settings())?;
    let provider = provider(&config)?;
    check_cassette(flags.cassette.as_deref(), provider)?;
    let arguments = ModelArguments {
        model: flags.model.clone(),
        fallback_models: flags.fallback_models.clone(),
        hinted_models: flags.hinted_models.clone(),
    };
    let council = ConfiguredCouncil::new(&app.runtime(), &config, &arguments, provider)?;
    let record = app.recording(flags.record.as_deref())?;
    Ok(CouncilSession::new(council, record))
}

/// Parses the name of a model.
fn model_name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("expected the name of a model".to_owned()),
        name => Ok(name.to_owned()),
    }
}
