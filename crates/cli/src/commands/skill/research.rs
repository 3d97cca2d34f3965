//! `crucible skill research`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use crucible_forge::{
    AdviceSource, EscalationTrigger, NotedAdvice, ResearchError, ResearchOutcome, SkillName,
    research,
};
use crucible_llm::{
    AdviceError, AdviceLimits, Advisor, CallBudget, ClientOptions, Fallback, Limit, ModelClient,
    Recording, RecordingFile, UNSPECIFIED, configured, select,
};
use crucible_model::{ExitStatus, Untrusted};
use crucible_settings::{Settings, Switch};
use serde_json::{Value, json};

use super::place;
use crate::app::App;
use crate::arguments::{provider_settings, providers};
use crate::error::CommandError;

/// Look into what failed last: of which kind it is, what is known, and whether a person has to look before the next attempt
///
/// The kind follows from what Crucible recorded itself, not from what was printed. With --advice a model is asked for a packet that does better; it
/// is shown the failure and the packet, in at most [forge] advice_prompt_chars characters. Without its answer the packet stays what it was, and a
/// person is called. The note is kept in the ledger.
///
/// For example: `crucible skill research word_count --advice --provider gateway`
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 looked into, 1 the skill stands elsewhere, 2 usage, no such skill, or nothing failed, 9 another process is at work on it, 130 interrupted."
)]
pub(crate) struct Research {
    /// The name of the skill
    #[arg(value_name = "NAME", value_parser = place::skill_name)]
    name: SkillName,
    /// Ask a model what to do differently; without it as configured ([forge] advise)
    #[arg(long)]
    advice: bool,
    /// Who is asked; without it the configured one (llm.provider, which has no default)
    #[arg(long, alias = "llm-provider", value_name = "NAME", value_parser = providers(), requires = "advice")]
    provider: Option<String>,
    /// The recording that answers, for the provider `replay`
    #[arg(long, value_name = "FILE", requires = "advice")]
    cassette: Option<PathBuf>,
    /// Write the call to this new file; the provider `replay` answers the same question from it again
    #[arg(long, value_name = "FILE", requires = "advice")]
    record: Option<PathBuf>,
}

/// Who is asked for advice.
enum AdviceModel {
    Nobody,
    Model(Box<ModelClient>, AdviceLimits),
    Unavailable(AdviceError),
}

impl Research {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let project = place::project(app)?;
        let config = app.config(
            project.root(),
            &provider_settings(&self.provider, &self.cassette),
        )?;
        let world = place::world(app, &project)?;
        let _known = place::skill(app, &project, &self.name)?;
        let record = self
            .record
            .as_deref()
            .map(|path| RecordingFile::new(app.absolute(path)))
            .transpose()?;
        let asked = self.asked(app, &config, record.as_ref())?;
        let mut ledger = app.ledger()?;
        let outcome = app.block_on(async {
            let looked = match asked {
                AdviceModel::Nobody => {
                    research(
                        &world,
                        &project,
                        &self.name,
                        &mut ledger,
                        AdviceSource::NotAsked,
                    )
                    .await
                }
                AdviceModel::Unavailable(error) => {
                    let none = AdviceSource::Unavailable(error);
                    research(&world, &project, &self.name, &mut ledger, none).await
                }
                AdviceModel::Model(client, limits) => {
                    app.output
                        .remark(&format!("asking {} for advice", client.provider()));
                    let advisor = Advisor::new(&client, limits);
                    research(
                        &world,
                        &project,
                        &self.name,
                        &mut ledger,
                        AdviceSource::Of(&advisor),
                    )
                    .await
                }
            };
            Ok(looked?)
        })?;
        if app.output.is_json() {
            app.output.json(&self.document(&outcome))?;
        } else {
            self.tell(app, &outcome);
        }
        Ok(ExitStatus::Success)
    }

    /// Makes the adviser ready. One that cannot be made ready gives no advice, and that is all.
    fn asked(
        &self,
        app: &App,
        config: &Settings,
        record: Option<&RecordingFile>,
    ) -> Result<AdviceModel, CommandError> {
        let configured = match config.forge.advise.get() {
            Ok(Switch::On) => true,
            Ok(Switch::Off) | Err("") => false,
            Err(other) => {
                return Err(CommandError::usage(format!(
                    "forge.advise: {other:?} is neither on nor off"
                )));
            }
        };
        if !self.advice && !configured {
            return Ok(AdviceModel::Nobody);
        }
        let named = config.llm.provider.as_deref().ok_or_else(|| {
            CommandError::usage(format!("{UNSPECIFIED}: advice is asked of a model"))
                .hint("Say whom to ask: --provider NAME.")
        })?;
        let chars = config.forge.advice_prompt_chars;
        let seconds = config.forge.advice_timeout_s;
        for (key, number) in [
            ("forge.advice_prompt_chars", chars),
            ("forge.advice_timeout_s", seconds),
        ] {
            if number == 0 {
                return Err(CommandError::usage(format!(
                    "{key} is 0, with which nobody can be asked"
                ))
                .hint("It takes a whole number from 1."));
            }
        }
        configured::check_budget(config)?;
        configured::check_cassette(self.cassette.as_deref(), named)?;
        let runtime = app.runtime();
        let context = configured::context(&runtime, config)?;
        let selected = match select(
            configured::named_provider(&runtime, config, named),
            Fallback::None,
            &context,
        ) {
            Ok(selected) => selected,
            Err(error) => return Ok(AdviceModel::Unavailable(error.into())),
        };
        let mut limits = configured::limits(config)?;
        limits.calls = Limit::At(config.budget.calls);
        let recording = record
            .map(|record| record.recording(&selected.backend))
            .transpose()?;
        let options = ClientOptions {
            recording: recording.unwrap_or(Recording::Off),
            prices: Arc::new(configured::prices(config)?),
            ..ClientOptions::new(CallBudget::new(limits))
        };
        let bounds = AdviceLimits {
            max_prompt_chars: usize::try_from(chars).unwrap_or(usize::MAX),
            timeout: Duration::from_secs(seconds),
        };
        Ok(AdviceModel::Model(
            Box::new(ModelClient::new(selected.backend, options)),
            bounds,
        ))
    }

    fn document(&self, outcome: &ResearchOutcome) -> Value {
        let ResearchOutcome {
            note,
            digest,
            proposed,
            unreviewed,
        } = outcome;
        let diagnosis = &note.diagnosis;
        let mut advice = json!(note.advice);
        if let Some(proposed) = proposed {
            advice["proposed"] = json!(proposed);
        }
        json!({
            "schema_version": "skill-research.v1",
            "name": self.name, "attempt": note.attempt, "verification": note.verification,
            "failures_in_a_row": note.failures_in_a_row,
            "kind": diagnosis.kind, "basis": diagnosis.basis, "why": diagnosis.why,
            "facts": diagnosis.facts, "facts_left_out": diagnosis.facts_left_out, "measured": diagnosis.measured,
            "log": note.log, "excerpt": note.excerpt, "advice": advice, "triggers": note.triggers, "needs_review": unreviewed,
            "note": digest, "next": self.next(unreviewed),
        })
    }

    fn tell(&self, app: &App, outcome: &ResearchOutcome) {
        let ResearchOutcome {
            note,
            digest,
            proposed,
            unreviewed,
        } = outcome;
        app.output.line(&note.text);
        match &note.advice {
            NotedAdvice::NotAsked => {}
            NotedAdvice::Missing { why } => app.output.line(&format!(
                "There is no advice, and the packet stays what it was: {why}"
            )),
            NotedAdvice::Kept {
                note,
                model,
                left_out_chars,
            } => {
                app.output
                    .line(&format!("## What {model} advises (kept as {note})\n"));
                if *left_out_chars > 0 {
                    app.output.line(&format!(
                        "It was not shown {left_out_chars} characters of failure and packet.\n"
                    ));
                }
                let proposed = proposed.as_ref().map_or("", Untrusted::as_str);
                let indented: Vec<String> =
                    proposed.lines().map(|line| format!("    {line}")).collect();
                app.output.line(&indented.join("\n"));
                app.output.line("");
            }
        }
        for trigger in unreviewed {
            app.output.line(&format!(
                "a person has to look: {trigger}: {}",
                trigger.why()
            ));
        }
        app.output.line(&format!("note {digest}"));
        app.output.line(&format!("next: {}", self.next(unreviewed)));
    }

    fn next(&self, unreviewed: &[EscalationTrigger]) -> String {
        let name = &self.name;
        match unreviewed {
            [] => format!("crucible skill build {name}"),
            _ => format!("crucible skill build {name} --reviewed-by WHO --reason TEXT"),
        }
    }
}

impl From<ResearchError> for CommandError {
    fn from(error: ResearchError) -> Self {
        match error {
            ResearchError::Unknown { .. } => {
                Self::usage(error.to_string()).hint("`crucible skill list` shows those there are.")
            }
            ResearchError::NothingFailed { .. } => Self::usage(error.to_string()),
            ResearchError::Refused(refused) => refused.into(),
            ResearchError::Lock(error) => error.into(),
            ResearchError::Unsettled(error) => error.into(),
            ResearchError::Ledger(error) => error.into(),
            ResearchError::Canonical(error) => Self::new(ExitStatus::Refused, error.to_string()),
        }
    }
}
