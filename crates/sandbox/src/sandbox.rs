//! The door: [`Sandbox::run`].

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crucible_host::clock::Stopwatch;
use crucible_host::env::Environment;
use tokio::sync::Notify;

use crate::bubblewrap;
use crate::cgroup::{CgroupParents, Group};
use crate::completed::{Completed, End, FORBIDDEN_SIGNAL};
use crate::error::SandboxError;
use crate::guard;
use crate::hidden;
use crate::hosts;
use crate::layers::{
    ActiveLayer, IsolationReceipt, Layer, Layers, MissingLayer, RequestedConfinement,
};
use crate::mounts::{Mount, MountContent};
use crate::plan;
use crate::probe::{self, HostSupport};
use crate::spawn::{
    Cap, Caps, Confinement, Launcher, Network, Profile, Resources, Spawn, Strength, SyscallClass,
};
use crate::supervise::{ObservedProgram, Watch, supervise};
use crate::wire::{Overlays, PrivateSize, Report, StageFeatures, StageIsolation, read_report};

/// Starts processes and watches them. One for a whole command; cheap until it first confines something.
#[derive(Debug)]
pub struct Sandbox {
    launcher: Option<Launcher>,
    env: Environment,
    caps: Caps,
    offer: OnceLock<HostSupport>,
    /// Where control groups can be made, if anywhere.
    groups: OnceLock<Option<CgroupParents>>,
}

impl Sandbox {
    /// A sandbox that reaches its inner stage through `launcher`; without one it can run trusted programs,
    /// and confined ones only where their strength allows to miss every layer. `env` tells where
    /// bubblewrap and the user's secrets are; no child inherits it.
    #[must_use]
    pub fn new(launcher: Option<Launcher>, env: &Environment) -> Self {
        let (offer, groups) = (OnceLock::new(), OnceLock::new());
        Self {
            launcher,
            env: env.clone(),
            caps: Caps::DEFAULT,
            offer,
            groups,
        }
    }

    /// The same, which allows confined programs no more than this; without it [`Caps::DEFAULT`].
    #[must_use]
    pub fn with_caps(self, caps: Caps) -> Self {
        Self { caps, ..self }
    }

    /// The same, which also hides these paths from every confined program.
    #[must_use]
    pub fn with_hidden(mut self, secrets: &[PathBuf]) -> Self {
        let paths: Vec<&OsStr> = secrets.iter().map(|path| path.as_os_str()).collect();
        // A path may have every byte but this one.
        let paths = paths.join(OsStr::new("\0"));
        let pairs = self
            .env
            .pairs()
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let pairs = pairs.chain([(hidden::VARIABLE.into(), paths)]);
        self.env = Environment::from_pairs(pairs, self.env.working_directory());
        self
    }

    /// A control group for one program, where one can be made and something is to be bounded.
    fn group(&self, resources: &Resources) -> Option<Group> {
        if (resources.memory, resources.processes) == (Cap::Unlimited, Cap::Unlimited) {
            return None;
        }
        self.groups
            .get_or_init(CgroupParents::find)
            .as_ref()?
            .group(resources.memory, resources.processes)
    }

    /// What this machine offers, found out by trying on the first call (some 30 ms).
    pub fn layers(&self) -> &Layers {
        &self.offer().layers
    }

    /// The command of the inner stage.
    pub(crate) fn launcher(&self) -> Result<&Launcher, SandboxError> {
        self.launcher.as_ref().ok_or_else(|| SandboxError::Setup {
            detail: "the path of this program is unknown, so it cannot be started again".to_owned(),
        })
    }

    /// The environment that tells where things are.
    pub(crate) fn env(&self) -> &Environment {
        &self.env
    }

    fn offer(&self) -> &HostSupport {
        self.offer
            .get_or_init(|| probe::probe_host(self.launcher.as_ref(), &self.env))
    }

    /// Runs one process to its end. Nothing of it is left when this returns; dropping the future kills it
    /// and everything it started at once. Needs a tokio runtime with its I/O and time drivers.
    ///
    /// # Errors
    ///
    /// [`SandboxError`] when nothing could be run as asked. A program that fails, is killed or runs out of
    /// its limits is a [`Completed`].
    pub async fn run(&self, spawn: Spawn) -> Result<Completed, SandboxError> {
        self.run_until(spawn, Arc::default()).await
    }

    /// The same, but a notification to `stop` ends the process as the end of its time does ([`End::TimedOut`]), so that its
    /// output is kept.
    ///
    /// # Errors
    ///
    /// As [`Self::run`].
    pub async fn run_until(
        &self,
        mut spawn: Spawn,
        stop: Arc<Notify>,
    ) -> Result<Completed, SandboxError> {
        let watch = Stopwatch::start();
        guard::start(self.launcher.as_ref());
        let resources = &mut spawn.limits.resources;
        resources.memory = resources.memory.min(self.caps.memory);
        resources.processes = resources.processes.min(self.caps.processes);
        let (observed, receipt) = match &spawn.confinement {
            Confinement::Trusted => {
                let receipt = IsolationReceipt::new(
                    RequestedConfinement::Trusted,
                    Network::Host,
                    Vec::new(),
                    Vec::new(),
                );
                // What waits for a process is large, and whoever waits holds it: it lies on the heap, once for each process.
                (Box::pin(run_direct(spawn, None, stop)).await?, receipt)
            }
            Confinement::Confined(profile) => {
                let profile = profile.clone();
                Box::pin(self.run_confined(spawn, &profile, stop)).await?
            }
        };
        let ObservedProgram {
            end,
            stdout,
            stderr,
            contacts,
            resources,
            stopped,
            ran_out_of_memory,
            ..
        } = observed;
        let (duration, receipt) = (watch.elapsed(), receipt.with(resources));
        Ok(Completed {
            end,
            stdout,
            stderr,
            duration,
            receipt,
            stopped,
            ran_out_of_memory,
            contacts,
        })
    }

    async fn run_confined(
        &self,
        spawn: Spawn,
        profile: &Profile,
        stop: Arc<Notify>,
    ) -> Result<(ObservedProgram, IsolationReceipt), SandboxError> {
        let requested = RequestedConfinement::from(profile.strength);
        let unwalled = |missing| {
            IsolationReceipt::new(requested, profile.network.clone(), Vec::new(), missing)
        };
        if let Network::Hosts(hosts) = &profile.network {
            // Also where nothing comes of it.
            hosts::routes(hosts)?;
        }
        if profile.strength == Strength::Off {
            let receipt = unwalled(MissingLayer::all("the sandbox is switched off"));
            let group = self.group(&spawn.limits.resources);
            return Ok((run_direct(spawn, group, stop).await?, receipt));
        }
        if let Some(completed) = self.run_untried(&spawn, profile, &stop).await? {
            return Ok(completed);
        }
        let layers = self.layers();
        let mut missing = layers.missing();
        if profile.network == Network::Host {
            missing.retain(|missing_layer| missing_layer.layer != Layer::NetworkCut);
        }
        if profile.strength == Strength::Required && !missing.is_empty() {
            return Err(SandboxError::LayersMissing { missing });
        }
        let Some(launcher) = &self.launcher else {
            let receipt = unwalled(missing);
            let group = self.group(&spawn.limits.resources);
            return Ok((run_direct(spawn, group, stop).await?, receipt));
        };
        let surroundings = bubblewrap::stage_isolation(layers);
        let group = self.group(&spawn.limits.resources);
        let observed = run_isolated(
            spawn,
            profile,
            launcher,
            StageFeatures {
                isolation: surroundings,
                private: self.offer().private,
                overlays: self.offer().overlays,
            },
            group,
            &self.env,
            stop,
        )
        .await?;
        let (reached, mut missing_layers) = reported_layers(&observed)?;
        // The inner stage knows what it reached; why the namespaces are missing only the trial knows. Which places of this
        // run are open without masks only the inner stage knows.
        for known in missing
            .into_iter()
            .filter(|missing_layer| missing_layer.layer != Layer::Masks)
        {
            if let Some(found) = missing_layers
                .iter_mut()
                .find(|found| found.layer == known.layer)
            {
                found.reason = known.reason;
            }
        }
        if surroundings == StageIsolation::Machine && profile.network == Network::Host {
            missing_layers.retain(|missing_layer| missing_layer.layer != Layer::NetworkCut);
        }
        Ok((
            observed,
            IsolationReceipt::new(requested, profile.network.clone(), reached, missing_layers),
        ))
    }

    /// Where every layer is required and nobody has asked yet what this machine offers, the run is its own trial: the inner
    /// stage starts nothing unless all of them stand. `None` where it started nothing, and the trial has to tell why.
    async fn run_untried(
        &self,
        spawn: &Spawn,
        profile: &Profile,
        stop: &Arc<Notify>,
    ) -> Result<Option<(ObservedProgram, IsolationReceipt)>, SandboxError> {
        let Some(launcher) = &self.launcher else {
            return Ok(None);
        };
        let is_layered = |mount: &Mount| matches!(mount.content, MountContent::Overlay(_));
        if profile.strength != Strength::Required
            || self.offer.get().is_some()
            || profile.mounts.iter().any(is_layered)
        {
            return Ok(None);
        }
        let features = StageFeatures {
            isolation: StageIsolation::Namespaces,
            private: PrivateSize::Sized,
            overlays: Overlays::Missing,
        };
        let group = self.group(&spawn.limits.resources);
        let completed = run_isolated(
            spawn.clone(),
            profile,
            launcher,
            features,
            group,
            &self.env,
            Arc::clone(stop),
        )
        .await
        .and_then(|observed| {
            reported_layers(&observed).map(|(reached, missing)| (observed, reached, missing))
        });
        match completed {
            Ok((observed, reached, missing)) => {
                let requested = RequestedConfinement::from(profile.strength);
                let receipt =
                    IsolationReceipt::new(requested, profile.network.clone(), reached, missing);
                Ok(Some((observed, receipt)))
            }
            Err(
                SandboxError::LayersMissing { .. }
                | SandboxError::Setup { .. }
                | SandboxError::NotFound { .. },
            ) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Starts the program through the stages that isolate it.
pub(crate) async fn run_isolated(
    spawn: Spawn,
    profile: &Profile,
    launcher: &Launcher,
    features: StageFeatures,
    group: Option<Group>,
    env: &Environment,
    stop: Arc<Notify>,
) -> Result<ObservedProgram, SandboxError> {
    let target = plan::target(&spawn, group.as_ref())?;
    let program = target.program.clone();
    let plan = bubblewrap::plan(&spawn, profile, target, launcher, features, env)?;
    let observed = supervise(plan, watch(spawn, group, stop)).await?;
    match read_report(&observed.report).pop() {
        Some(Report::NotStarted { errno }) => {
            let source = std::io::Error::from_raw_os_error(errno);
            Err(SandboxError::Exec { program, source })
        }
        Some(Report::Failed { detail }) => Err(SandboxError::Setup { detail }),
        Some(Report::Ready { reached, .. }) if was_forbidden(profile, &reached, observed.end) => {
            Ok(ObservedProgram {
                end: End::Forbidden,
                ..observed
            })
        }
        _ => Ok(observed),
    }
}

/// Whether a program ended by a system call that is not of its class. Under such a filter nothing else lives in the sandbox whose
/// signal the first process could pass on.
fn was_forbidden(profile: &Profile, reached: &[ActiveLayer], end: End) -> bool {
    let named = profile.calls != SyscallClass::Tools
        && reached.iter().any(|found| found.layer == Layer::Seccomp);
    named && (end == End::Signalled(FORBIDDEN_SIGNAL) || end == End::Exited(128 + FORBIDDEN_SIGNAL))
}

async fn run_direct(
    spawn: Spawn,
    group: Option<Group>,
    stop: Arc<Notify>,
) -> Result<ObservedProgram, SandboxError> {
    let target = plan::target(&spawn, group.as_ref())?;
    let plan = plan::direct(&spawn, target)?;
    supervise(plan, watch(spawn, group, stop)).await
}

pub(crate) fn watch(spawn: Spawn, group: Option<Group>, stop: Arc<Notify>) -> Watch {
    let writable = match spawn.confinement {
        Confinement::Trusted => Vec::new(),
        Confinement::Confined(profile) => {
            let mounted = profile
                .mounts
                .iter()
                .filter_map(Mount::writable_source)
                .map(Path::to_owned);
            profile.writable.into_iter().chain(mounted).collect()
        }
    };
    let Spawn {
        limits,
        stdin,
        stdout,
        keep,
        redaction,
        ..
    } = spawn;
    Watch {
        limits,
        stdin,
        stdout,
        keep,
        redaction,
        writable,
        group,
        stop,
    }
}

/// The isolation layers that the inner stage reported, or why it reported none.
pub(crate) fn reported_layers(
    observed: &ObservedProgram,
) -> Result<(Vec<ActiveLayer>, Vec<MissingLayer>), SandboxError> {
    match read_report(&observed.report).into_iter().next() {
        Some(Report::Ready { reached, missing }) => Ok((reached, missing)),
        Some(Report::Refused { missing }) => Err(SandboxError::LayersMissing { missing }),
        Some(Report::Failed { detail }) => Err(SandboxError::Setup { detail }),
        Some(Report::NotStarted { errno }) => {
            let source = std::io::Error::from_raw_os_error(errno);
            Err(SandboxError::Supervision {
                action: "starting the confined program",
                source,
            })
        }
        None => {
            // Bubblewrap, or the kernel on its behalf, ended before the inner stage could speak.
            let stderr = observed.stderr.text();
            let stderr = stderr.trim();
            let detail = match (stderr.is_empty(), observed.end) {
                (false, _) => stderr.chars().take(500).collect(),
                (true, end) => format!("the inner stage said nothing and ended with {end:?}"),
            };
            Err(SandboxError::Setup { detail })
        }
    }
}
