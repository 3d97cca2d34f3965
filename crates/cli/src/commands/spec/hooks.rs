//! The hooks of a project, read from its configuration and run around phases and gates.
//!
//! A command reads its hooks once ([`Hooks::read`]) and runs those of a moment with [`Hooks::run`]; both
//! are free if none is configured. An invalid setting is a configuration error before anything runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_repo::Git;
use crucible_sandbox::{Sandbox, Strength, base_env, toolchain_env};
use crucible_settings::{
    ConfigFiles, HookEntry, HookPoint, OnHookFailure, OneOf, SettingSource, Settings, Switch,
    Words, variable_of,
};
use crucible_spec::{
    Hook, HookConsequence, HookMoment, HookPlace, HookReceipt, HookSubject, HookWalls, OnFail,
    PhaseId, SpecProject, run_hooks, weigh_hooks,
};

use super::place;
use crate::app::{App, strength};
use crate::error::CommandError;

/// The longest timeout of a hook, in seconds.
const MAX_SECONDS: u64 = 3_600;

/// The hooks of a project, ready to run.
pub(crate) struct Hooks {
    hooks: Vec<Hook>,
    project: PathBuf,
    strength: Strength,
    masked: Vec<PathBuf>,
}

/// The results of hooks, and whether the work continues.
pub(crate) struct HookOutcome {
    /// One receipt for each hook that was tried.
    pub(crate) receipts: Vec<HookReceipt>,
    /// Whether the work continues.
    pub(crate) consequence: HookConsequence,
}

impl Hooks {
    /// Reads the hooks that this configuration defines for the project.
    pub(crate) fn read(
        app: &App,
        config: &Settings,
        project: &SpecProject,
    ) -> Result<Self, CommandError> {
        let hooks = config.hooks.iter();
        // The sandbox knows Crucible's own directory; only the configuration knows another place of the
        // runs.
        let runs = config
            .paths
            .runs_root
            .as_deref()
            .map(|root| app.absolute(root.as_ref()).join(""));
        let root = project.root();
        Ok(Self {
            hooks: hooks
                .map(|(name, entry)| hook(app, config, project, name, entry))
                .collect::<Result<_, _>>()?,
            // A symbolic link to the project would be refused as a working directory.
            project: root.canonicalize().unwrap_or_else(|_| root.to_owned()),
            strength: strength(config)?,
            masked: runs.into_iter().collect(),
        })
    }

    /// Whether a hook exists for this moment of this phase.
    pub(crate) fn any(&self, moment: HookMoment, phase: PhaseId) -> bool {
        self.hooks.iter().any(|hook| hook.runs_at(moment, phase))
    }

    /// Runs the hooks of this moment, if any. Dropping the future ends them.
    pub(crate) async fn run(
        &self,
        app: &App,
        sandbox: &Arc<Sandbox>,
        moment: HookMoment,
        subject: &HookSubject,
    ) -> HookOutcome {
        if !self.any(moment, subject.phase) {
            return HookOutcome {
                receipts: Vec::new(),
                consequence: HookConsequence::GoOn(Vec::new()),
            };
        }
        let mut env = base_env(&app.env);
        env.extend(toolchain_env(&app.env));
        let place = HookPlace {
            sandbox,
            project: &self.project,
            env,
            home: app.env.home(),
            strength: self.strength,
            masked: self.masked.clone(),
            read_only: guarded(app, sandbox, &self.project).await,
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
async fn guarded(
    app: &App,
    sandbox: &Arc<Sandbox>,
    project: &Path,
) -> Result<Vec<PathBuf>, String> {
    Git::guarded_places(Arc::clone(sandbox), &app.env, project)
        .await
        .map_err(|error| error.to_string())
}

fn hook(
    app: &App,
    config: &Settings,
    project: &SpecProject,
    name: &str,
    entry: &HookEntry,
) -> Result<Hook, CommandError> {
    place::free_of_secrets("the name of a hook in the configuration", name)
        .map_err(|error| CommandError::from(&error))?;
    let key = |field: &str| format!("hooks.{name}.{field}");
    let command = entry.command.clone();
    if command
        .first()
        .is_none_or(|program| program.trim().is_empty())
    {
        return Err(CommandError::usage(format!("hooks.{name} has no command"))
            .hint("Write it as a list with one string for each argument: command = [\"make\", \"lint\"]"));
    }
    let phases = entry.phases.iter().map(|phase| phase.parse::<PhaseId>());
    let seconds = entry.timeout_s;
    if !(1..=MAX_SECONDS).contains(&seconds) {
        return Err(CommandError::usage(format!(
            "hooks.{name}.timeout_s is {seconds}; use 1 to {MAX_SECONDS} seconds"
        )));
    }
    let hook = Hook {
        name: name.to_owned(),
        moment: match listed(&key("on"), &entry.on)? {
            HookPoint::PrePhase => HookMoment::PrePhase,
            HookPoint::PostPhase => HookMoment::PostPhase,
            HookPoint::PreGate => HookMoment::PreGate,
            HookPoint::PostGate => HookMoment::PostGate,
        },
        phases: phases
            .collect::<Result<_, _>>()
            .map_err(|error| CommandError::usage(format!("hooks.{name}.phases: {error}")))?,
        command,
        on_fail: match listed(&key("on_fail"), &entry.on_fail)? {
            OnHookFailure::Warn => OnFail::Warn,
            OnHookFailure::Fail => OnFail::Fail,
        },
        timeout: Duration::from_secs(seconds),
        walls: match listed(&key("sandbox"), &entry.sandbox)? {
            Switch::On => HookWalls::Standing,
            Switch::Off => HookWalls::Off,
        },
    };
    if hook.walls == HookWalls::Off {
        check_whose_hook(app, config, project, &hook)?;
    }
    Ok(hook)
}

/// Parses a setting that takes one of a few words.
fn listed<T: Words>(key: &str, value: &OneOf<T>) -> Result<T, CommandError> {
    value.get().map_err(|text| {
        CommandError::usage(format!(
            "{key} is {text:?}; use one of {}",
            T::WORDS.join(", ")
        ))
    })
}

/// Refuses to run project files without a sandbox because the user's own file says so. That file applies
/// to every project, including a cloned one that uses the same hook name or has a program at the same
/// path. A variable or a flag applies to one command, and so to a project that its user has chosen.
fn check_whose_hook(
    app: &App,
    config: &Settings,
    project: &SpecProject,
    hook: &Hook,
) -> Result<(), CommandError> {
    let prefix = format!("hooks.{}.", hook.name);
    let walls = format!("{prefix}sandbox");
    let Some(SettingSource::File(file)) = config.source(&walls) else {
        return Ok(());
    };
    let refuse = |why: String| {
        Err(CommandError::usage(format!("{walls} = \"off\" in {}: {why}", file.display())).hint(format!(
            "Define the whole hook in your own configuration, under another name and with the program's \
            absolute path, or set {}=off once.",
            variable_of(&walls)
        )))
    };
    let of_project = ConfigFiles::discover(&app.env, project.root()).project;
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
