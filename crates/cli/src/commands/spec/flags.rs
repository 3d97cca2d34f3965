//! The flags of the commands that run phases.

use std::path::PathBuf;

use clap::Args;
use crucible_model::Failure;
use crucible_sandbox::Runtime;
use crucible_spec::session::{FixupAction, SessionArguments, SpecSession, applies_nothing};
use crucible_spec::{LockClaim, PhaseId, SpecId, Trial};

use super::fixups::FixupFlags;
use super::sources::SourceFlags;
use crate::app::App;
use crate::arguments::{overrides, path_text, providers};
use crate::spec_project::project;

/// The flags for running phases
#[derive(Args, Default)]
pub(crate) struct PhaseFlags {
    #[command(flatten)]
    pub(crate) sources: SourceFlags,
    #[command(flatten)]
    fixups: FixupFlags,
    /// Build and check the prompt without calling a model; `gate` ignores the receipt
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Provider of all calls [default: llm.provider]
    #[arg(long, alias = "llm-provider", value_name = "NAME", value_parser = providers())]
    provider: Option<String>,
    /// Fallback if the provider is unavailable [default: llm.fallback_provider]
    #[arg(long, value_name = "NAME", value_parser = providers())]
    fallback_provider: Option<String>,
    /// The recording to answer from, for the provider `replay`
    #[arg(long, value_name = "FILE")]
    cassette: Option<PathBuf>,
    /// Model of every phase [default: the phase's in [phases], else the provider's]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Who may act on a model's answer; only `controlled`, Crucible alone, is supported
    #[arg(long, value_name = "STRATEGY")]
    execution_strategy: Option<String>,
    /// Record every call in this new file, for the provider `replay`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Take the spec's lock from another process
    ///
    /// That process then saves nothing more.
    #[arg(long)]
    force: bool,
    /// The workspace.yaml of the project [default: the project of the working directory]
    #[arg(long, value_name = "FILE")]
    workspace: Option<PathBuf>,
}

impl PhaseFlags {
    /// Reads the settings, and checks what the command line names. Changes nothing.
    pub(crate) fn session<'a>(
        &self,
        app: &App,
        runtime: &'a Runtime<'a>,
        spec: &SpecId,
    ) -> Result<SpecSession<'a>, Failure> {
        let project = project(app, self.workspace.as_deref())?;
        let config = app.config(project.root(), &self.settings())?;
        let arguments = SessionArguments {
            spec: spec.clone(),
            trial: if self.dry_run {
                Trial::Dry
            } else {
                Trial::Real
            },
            model: self.model.clone(),
            cassette: self.cassette.clone(),
            record: self.record.as_deref().map(|path| app.absolute(path)),
            context: self.sources.context.clone(),
            fixups: self.fixups.wish(),
            allow_paths: self.fixups.allow_paths.clone(),
            links: self.fixups.links(),
            claim: if self.force {
                LockClaim::Force
            } else {
                LockClaim::IfFree
            },
            restart: self.sources.repeat_command(spec),
        };
        SpecSession::new(runtime, config, project, &app.home()?, arguments)
    }

    /// The settings that the options override.
    fn settings(&self) -> Vec<(&'static str, String)> {
        overrides([
            ("llm.provider", self.provider.clone()),
            ("llm.fallback_provider", self.fallback_provider.clone()),
            ("llm.execution_strategy", self.execution_strategy.clone()),
            ("llm.replay.cassette", path_text(&self.cassette)),
        ])
    }

    /// Whether to apply fixups.
    pub(crate) fn applies(&self) -> bool {
        self.fixups.wish() == FixupAction::Apply
    }

    /// Refuses the fixup flags if no phase of the command proposes or applies a fixup.
    pub(crate) fn check_fixups(&self, first: PhaseId, last: PhaseId) -> Result<(), Failure> {
        let proposes = !self.dry_run && (first..=last).contains(&PhaseId::Fixup);
        match self.fixups.widening().filter(|_| !proposes && !self.applies()) {
            Some(flag) => Err(Failure::usage(format!(
                "no fixup is proposed or applied here, so {flag} has no effect"
            ))
            .hint(format!(
                "Pass {flag} to the command that runs the phase fixup, and to the one that applies it."
            ))),
            None => Ok(()),
        }
    }

    /// Refuses `--apply-fixups` in a dry run, where it has no effect.
    pub(crate) fn check_applying(&self, spec: &SpecId) -> Result<(), Failure> {
        match self.applies() && self.dry_run {
            true => Err(applies_nothing(
                "a dry run changes nothing, so --apply-fixups has no effect",
                spec,
            )),
            false => Ok(()),
        }
    }
}
