//! Runs phases one after the other, each with its receipt, as a command asks for them.
//!
//! Errors in the arguments, the settings and the sources are found before the spec's lock is taken
//! ([`SpecSession::new`]). The backend is prepared before the first phase. Each phase is then one
//! [`crate::PhaseRun`]: hooks before it, its packet, the model call, hooks after it, and its receipt. A failed
//! phase ends the command with the exit code in its receipt. Fixups are applied before any phase runs,
//! between the hooks of their phase.
//!
//! Invariants: a command never applies a fixup that it proposed itself. A new idea is stored after its
//! packet is found to be free of secrets and within limits; if a hook runs earlier, after the idea itself
//! is. An interruption leaves a receipt. All phases of a command share one budget.

mod failure;
mod fixups;
mod host;
mod idea;
mod named_files;
mod phases;
mod resume;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_llm::configured::{self, positive};
use crucible_llm::{
    Backend, CallBudget, CallObserver, PriceTable, ReceiptWarning, RecordingFile, Selected,
    UNSPECIFIED,
};
use crucible_model::{ByteLimit, Failure, RepoPath};
use crucible_patch::Policy;
use crucible_repo::LinkPolicy;
use crucible_sandbox::Runtime;
use crucible_settings::{Settings, variable_of};

pub use self::host::SessionHost;
pub use self::idea::{GivenIdea, IdeaOrigin};
use self::named_files::in_project;
pub use self::phases::{Applying, PhaseWork};
pub use self::resume::StartedPhases;
use crate::engine::Trial;
use crate::fixup::{fixup_policy, not_nameable};
use crate::hook::Hooks;
use crate::id::SpecId;
use crate::json_output::ConfigSummary;
use crate::packet::PacketLimits;
use crate::project::SpecProject;
use crate::source::{FileSelectors, check_named_files};
use crate::store::{LockClaim, SpecStore};

/// The directory, in Crucible's own directory, that records fixups while they are applied.
pub const FIXUPS: &str = "fixups";

/// What the command line says of a session, besides the settings that it overrides.
#[derive(Debug, Clone)]
pub struct SessionArguments {
    /// The spec to work on.
    pub spec: SpecId,
    /// Whether the prompt is only built.
    pub trial: Trial,
    /// The model of every phase.
    pub model: Option<String>,
    /// The recording that answers.
    pub cassette: Option<PathBuf>,
    /// The absolute path of the file that calls are recorded in.
    pub record: Option<PathBuf>,
    /// Files, directories and globs that every phase must see, relative to the working directory.
    pub context: Vec<String>,
    /// What to do with a fixup.
    pub fixups: FixupAction,
    /// Paths that a fixup may create, delete or change.
    pub allow_paths: Vec<RepoPath>,
    /// Whether a fixup follows links.
    pub links: LinkPolicy,
    /// How to take the spec's lock.
    pub claim: LockClaim,
    /// The command that starts the spec with the same sources.
    pub restart: String,
}

/// What to do with a fixup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixupAction {
    /// Show it and leave it pending.
    Preview,
    /// Change the project's files as the fixup says.
    Apply,
}

/// Everything that is known before the lock is taken.
pub struct SpecSession<'a> {
    runtime: &'a Runtime<'a>,
    /// The settings, with the overrides of the command line.
    pub settings: Settings,
    /// The project that contains the spec.
    pub project: SpecProject,
    /// The spec's files.
    pub store: SpecStore,
    arguments: SessionArguments,
    files: FileSelectors,
    hooks: Hooks,
    record: Option<RecordingFile>,
    bounds: Bounds,
}

/// The limits of each phase.
struct Bounds {
    attempts: u64,
    phase_time: Duration,
    call_time: Duration,
}

/// The backend of the phases.
pub struct PhaseModel {
    backend: Backend,
    /// The progress display.
    watch: Option<Arc<dyn CallObserver>>,
    model: String,
    warnings: Vec<ReceiptWarning>,
    budget: Arc<CallBudget>,
    prices: Arc<PriceTable>,
}

impl<'a> SpecSession<'a> {
    /// Checks the settings and what the command line names. `home` is Crucible's own directory. Changes nothing.
    ///
    /// # Errors
    ///
    /// Fails if a setting, an argument or a named file cannot be used.
    pub fn new(
        runtime: &'a Runtime<'a>,
        settings: Settings,
        project: SpecProject,
        home: &Path,
        arguments: SessionArguments,
    ) -> Result<Self, Failure> {
        configured::require_controlled(&settings)?;
        configured::check_cassette(
            arguments.cassette.as_deref(),
            settings.llm.provider.as_deref().unwrap_or_default(),
        )?;
        configured::check_budget(&settings)?;
        let seconds = |key: &str, value: u64| positive(key, value).map(Duration::from_secs);
        let spec = &settings.spec;
        let bounds = Bounds {
            attempts: positive("spec.attempts", spec.attempts)?,
            phase_time: seconds("spec.phase_timeout_s", spec.phase_timeout_s)?,
            call_time: seconds("llm.timeout_s", settings.llm.timeout_s)?,
        };
        positive("spec.max_packet_bytes", spec.max_packet_bytes)?;
        positive("spec.max_packet_lines", spec.max_packet_lines)?;
        let hooks = Hooks::read(runtime, &settings, &project)?;
        let refused = |path| not_nameable(project.root(), path);
        if let Some(why) = arguments.allow_paths.iter().find_map(refused) {
            return Err(Failure::usage(format!("--allow-path: {why}")));
        }
        let record = match &arguments.record {
            // A dry run has no calls to record.
            Some(_) if arguments.trial == Trial::Dry => {
                return Err(Failure::usage(
                    "a dry run makes no model call, so --record has nothing to write",
                )
                .hint("Omit one of the two."));
            }
            Some(path) => Some(RecordingFile::new(path.clone())?),
            None => None,
        };
        // A mistyped name is found before any hook runs and any model is called.
        let directory = runtime.env.working_directory();
        let named = arguments
            .context
            .iter()
            .map(|text| in_project(text, directory, project.root()));
        let files = FileSelectors {
            root: project.root().to_owned(),
            named: named.collect::<Result<_, _>>()?,
            include: spec.include.clone(),
            exclude: spec.exclude.clone(),
        };
        check_named_files(&files)?;
        let store = SpecStore::new(&project, arguments.spec.clone())
            .with_records(home.join(FIXUPS))
            .with_calls(home.join("calls"));
        Ok(Self {
            runtime,
            settings,
            project,
            store,
            arguments,
            files,
            hooks,
            record,
            bounds,
        })
    }

    /// Returns the size limit of an idea.
    #[must_use]
    pub fn idea_limit(&self) -> ByteLimit {
        ByteLimit(self.packet_limits().max_bytes)
    }

    /// Prepares the backend. Changes nothing. The host watches the calls.
    ///
    /// # Errors
    ///
    /// Fails if no provider is chosen or if it cannot be prepared.
    pub fn prepare_model<H: SessionHost>(&self, host: &H) -> Result<PhaseModel, Failure> {
        let settings = &self.settings;
        let provider = settings.llm.provider.as_deref().ok_or_else(no_provider)?;
        let Selected {
            backend, fell_back, ..
        } = configured::selected(self.runtime, settings, provider)?;
        // A fallback provider does not know the model name of another provider.
        let model = self
            .arguments
            .model
            .clone()
            .filter(|_| fell_back.is_none())
            .unwrap_or_default();
        if let (Some(requested), Some(_)) = (&self.arguments.model, &fell_back) {
            let own = backend.default_model();
            self.runtime.notices.notice(&format!(
                "note: the fallback uses its own model {own}, not {requested}"
            ));
        }
        let name = if model.is_empty() {
            backend.default_model()
        } else {
            &model
        };
        let watch = host.watch(&format!("{} ({name})", backend.provider()));
        let limits = configured::limits(settings)?;
        Ok(PhaseModel {
            watch,
            model,
            warnings: fell_back.iter().map(ReceiptWarning::fallback).collect(),
            budget: CallBudget::new(limits),
            prices: Arc::new(configured::prices(settings)?),
            backend,
        })
    }

    /// Returns a summary of the settings for JSON documents.
    #[must_use]
    pub fn summary(&self) -> ConfigSummary {
        ConfigSummary::from_provider(self.settings.llm.provider.as_deref().unwrap_or_default())
    }

    /// Returns whether fixups are to be applied.
    #[must_use]
    pub(crate) fn applies_fixups(&self) -> bool {
        self.arguments.fixups == FixupAction::Apply
    }

    fn packet_limits(&self) -> PacketLimits {
        PacketLimits {
            max_bytes: self.settings.spec.max_packet_bytes,
            max_lines: self.settings.spec.max_packet_lines,
        }
    }

    /// Returns the policy of fixups: the configured limits, and the paths of this command only.
    fn fixup_policy(&self) -> Policy {
        fixup_policy(
            self.settings.patch.max_files,
            self.settings.patch.max_added_lines,
            self.arguments.allow_paths.clone(),
        )
    }
}

/// Returns the error of `--apply-fixups` if the command ends before the fixup phase and none is pending.
#[must_use]
pub fn no_fixup_pending(spec: &SpecId) -> Failure {
    applies_nothing(
        "no fixup is pending, and this command proposes none, so --apply-fixups has no effect",
        spec,
    )
}

/// Returns the error of `--apply-fixups` if it cannot apply anything.
#[must_use]
pub fn applies_nothing(why: &str, spec: &SpecId) -> Failure {
    Failure::usage(why.to_owned()).hint(format!(
        "`crucible resume {spec} --phase fixup --apply-fixups` applies pending fixups; without --apply-fixups \
        this command does the rest."
    ))
}

fn no_provider() -> Failure {
    Failure::usage(UNSPECIFIED).hint(format!(
        "Pass --provider NAME, or set {} for every command; `crucible doctor` shows which providers are ready.",
        variable_of("llm.provider")
    ))
}
