//! `crucible skill research`.

use std::path::PathBuf;

use clap::Args;
use crucible_forge::SkillName;
use crucible_forge::configured::ConfiguredAdviser;
use crucible_model::{ExitStatus, Failure};

use super::place::{self, SkillContext};
use crate::app::App;
use crate::arguments::{provider_settings, providers};

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

impl Research {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let flags = provider_settings(&self.provider, &self.cassette);
        let context = SkillContext::new(app, &flags)?;
        let world = context.world()?;
        let _known = context.skill(&self.name)?;
        let record = app.recording(self.record.as_deref())?;
        let adviser = ConfiguredAdviser::from_settings(
            &app.runtime(),
            &context.settings,
            self.advice,
            self.cassette.as_deref(),
            record.as_ref(),
        )?;
        let mut ledger = app.ledger()?;
        if let Some(provider) = adviser.provider() {
            app.output.remark(&format!("asking {provider} for advice"));
        }
        let outcome = app.block_on(async {
            let project = &context.project;
            let outcome = adviser.research(&world, project, &self.name, &mut ledger);
            Ok(outcome.await?)
        })?;
        app.output.show(
            || outcome.document(&self.name),
            || {
                let lines = outcome.lines(&self.name);
                lines.iter().for_each(|line| app.output.line(line));
            },
        )
    }
}
