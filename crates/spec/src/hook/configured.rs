//! The hooks of a project, read from its settings and run around phases and gates.
//!
//! A command reads its hooks once ([`Hooks::read`]) and runs those of a moment with [`Hooks::run`]; both
//! are free if none is configured. An invalid setting is a configuration error before anything runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_llm::configured::strength;
use crucible_model::{ExitStatus, Failure};
use crucible_repo::Git;
use crucible_sandbox::{Runtime, Strength, base_env, toolchain_env};
use crucible_secrets::{SecretInName, free_of_secrets};
use crucible_settings::{
    ConfigFiles, HookEntry, HookPoint, OnHookFailure, OneOf, SettingSource, Settings, Switch,
    Words, variable_of,
};

use super::{
    Hook, HookConsequence, HookIsolation, HookMoment, HookPlace, HookSubject, OnFail, run_hooks,
    weigh_hooks,
};
use crate::phase_id::PhaseId;
use crate::project::SpecProject;
use crate::receipt::HookReceipt;

/// The longest timeout of a hook, in seconds.
const MAX_SECONDS: u64 = 3_600;

/// What helps if it is unknown what a hook must not change.
const WITHOUT_SANDBOX: &str =
    "or run the hook without a sandbox (hooks.NAME.sandbox = \"off\" in your own configuration)";

/// The hooks of a project, ready to run.
pub struct Hooks {
    hooks: Vec<Hook>,
    project: PathBuf,
    strength: Strength,
    masked: Vec<PathBuf>,
}

/// The results of hooks, and whether the work continues.
pub struct HookOutcome {
    /// One receipt for each hook that was tried.
    pub receipts: Vec<HookReceipt>,
    /// Whether the work continues.
    pub consequence: HookConsequence,
}

impl Hooks {
    /// Reads the hooks that these settings define for the project.
    ///
    /// # Errors
    ///
    /// Fails if a hook has a value that is not allowed.
    pub fn read(
        runtime: &Runtime<'_>,
        config: &Settings,
        project: &SpecProject,
    ) -> Result<Self, Failure> {
        let hooks = config.hooks.iter();
        // The sandbox knows Crucible's own directory; only the configuration knows another place of the
        // runs.
        let runs = config
            .paths
            .runs_root
            .as_deref()
            .map(|root| runtime.absolute(root.as_ref()).join(""));
        let root = project.root();
        Ok(Self {
            hooks: hooks
                .map(|(name, entry)| hook(runtime, config, project, name, entry))
                .collect::<Result<_, _>>()?,
            // A symbolic link to the project would be refused as a working directory.
            project: root.canonicalize().unwrap_or_else(|_| root.to_owned()),
            strength: strength(config)?,
            masked: runs.into_iter().collect(),
        })
    }

    /// Returns whether a hook exists for this moment of this phase.
    #[must_use]
    pub fn any(&self, moment: HookMoment, phase: PhaseId) -> bool {
        self.hooks.iter().any(|hook| hook.runs_at(moment, phase))
    }

    /// Runs the hooks of this moment, if any. Dropping the future ends them.
    pub async fn run(
        &self,
        runtime: &Runtime<'_>,
        moment: HookMoment,
        subject: &HookSubject,
    ) -> HookOutcome {
        if !self.any(moment, subject.phase) {
            return HookOutcome {
                receipts: Vec::new(),
                consequence: HookConsequence::GoOn(Vec::new()),
            };
        }
        let mut env = base_env(runtime.env);
        env.extend(toolchain_env(runtime.env));
        let place = HookPlace {
            sandbox: &runtime.sandbox,
            project: &self.project,
            env,
            home: runtime.env.home(),
            strength: self.strength,
            masked: self.masked.clone(),
            read_only: guarded(runtime, &self.project).await,
        };
        let receipts = run_hooks(&self.hooks, moment, subject, &place).await;
        let consequence = weigh_hooks(&self.hooks, &receipts);
        HookOutcome {
            receipts,
            consequence,
        }
    }
}

/// Other files of the project through which git runs programs, or why git cannot list them.
async fn guarded(runtime: &Runtime<'_>, project: &Path) -> Result<Vec<PathBuf>, String> {
    let sandbox = Arc::clone(&runtime.sandbox);
    let guards = Git::guarded_places(sandbox, runtime.env, &[project.to_owned()], &[])
        .await
        .map_err(|error| format!("{error}, {WITHOUT_SANDBOX}"))?;
    match guards.conflicts.first() {
        Some(conflict) => Err(format!("{conflict}; remove it, {WITHOUT_SANDBOX}")),
        None => Ok(guards.places),
    }
}

fn hook(
    runtime: &Runtime<'_>,
    config: &Settings,
    project: &SpecProject,
    name: &str,
    entry: &HookEntry,
) -> Result<Hook, Failure> {
    free_of_secrets("the name of a hook in the configuration", name).map_err(|error| {
        Failure::new(ExitStatus::SecretDetected, error.to_string()).hint(SecretInName::HINT)
    })?;
    let key = |field: &str| format!("hooks.{name}.{field}");
    let command = entry.command.clone();
    if command
        .first()
        .is_none_or(|program| program.trim().is_empty())
    {
        return Err(Failure::usage(format!("hooks.{name} has no command")).hint(
            "Write it as a list with one string for each argument: command = [\"make\", \"lint\"]",
        ));
    }
    let phases = entry.phases.iter().map(|phase| phase.parse::<PhaseId>());
    let seconds = entry.timeout_s;
    if !(1..=MAX_SECONDS).contains(&seconds) {
        return Err(Failure::usage(format!(
            "hooks.{name}.timeout_s is {seconds}; use 1 to {MAX_SECONDS} seconds"
        )));
    }
    let hook = Hook {
        name: name.to_owned(),
        moment: match parse_word(&key("on"), &entry.on)? {
            HookPoint::PrePhase => HookMoment::PrePhase,
            HookPoint::PostPhase => HookMoment::PostPhase,
            HookPoint::PreGate => HookMoment::PreGate,
            HookPoint::PostGate => HookMoment::PostGate,
        },
        phases: phases
            .collect::<Result<_, _>>()
            .map_err(|error| Failure::usage(format!("hooks.{name}.phases: {error}")))?,
        command,
        on_fail: match parse_word(&key("on_fail"), &entry.on_fail)? {
            OnHookFailure::Warn => OnFail::Warn,
            OnHookFailure::Fail => OnFail::Fail,
        },
        timeout: Duration::from_secs(seconds),
        isolation: match parse_word(&key("sandbox"), &entry.sandbox)? {
            Switch::On => HookIsolation::Required,
            Switch::Off => HookIsolation::Off,
        },
    };
    if hook.isolation == HookIsolation::Off {
        check_whose_hook(runtime, config, project, &hook)?;
    }
    Ok(hook)
}

/// Parses a setting that takes one of a few words.
fn parse_word<T: Words>(key: &str, value: &OneOf<T>) -> Result<T, Failure> {
    value.get().map_err(|text| {
        Failure::usage(format!(
            "{key} is {text:?}; use one of {}",
            T::WORDS.join(", ")
        ))
    })
}

/// Refuses to run project files without a sandbox because the user's own file says so. That file applies
/// to every project, including a cloned one that uses the same hook name or has a program at the same
/// path. A variable or a flag applies to one command, and so to a project that its user has chosen.
fn check_whose_hook(
    runtime: &Runtime<'_>,
    config: &Settings,
    project: &SpecProject,
    hook: &Hook,
) -> Result<(), Failure> {
    let prefix = format!("hooks.{}.", hook.name);
    let sandbox_key = format!("{prefix}sandbox");
    let Some(SettingSource::File(file)) = config.source(&sandbox_key) else {
        return Ok(());
    };
    let refuse = |why: String| {
        Err(Failure::usage(format!("{sandbox_key} = \"off\" in {}: {why}", file.display())).hint(format!(
            "Define the whole hook in your own configuration, under another name and with the program's \
            absolute path, or set {}=off once.",
            variable_of(&sandbox_key)
        )))
    };
    let of_project = ConfigFiles::discover(runtime.env, project.root()).project;
    let brought = config.effective().find(|(key, setting)| {
        key.starts_with(&prefix)
            && matches!(&setting.source, SettingSource::File(file) if Some(file) == of_project.as_ref())
    });
    if let Some((key, _)) = brought {
        return refuse(format!(
            "the project's own file sets {key}, and must not control what runs without a sandbox"
        ));
    }
    let program = hook.command.first().map_or("", String::as_str);
    if program.contains('/') && !program.starts_with('/') {
        return refuse(format!(
            "{program:?} is a file of the project, which may be untrusted"
        ));
    }
    Ok(())
}
