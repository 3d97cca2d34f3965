//! Finds out what this machine offers, by trying it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crucible_host::env::Environment;

use crate::bubblewrap::BUBBLEWRAP;
use crate::error::SandboxError;
use crate::guard;
use crate::identity::Identity;
use crate::layers::{ActiveLayer, Layer, Layers, MissingLayer};
use crate::sandbox::{reported_layers, run_isolated};
use crate::spawn::{
    Confinement, Launcher, Limits, Network, Profile, Spawn, Strength, SyscallClass,
};
use crate::wire::{Overlays, PrivateSize, StageFeatures, StageIsolation};

/// How long one trial may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The option that bubblewrap has had since 0.8.
const SIZE_OPTION: &str = "--size";

type LayerTrial = (Vec<ActiveLayer>, Vec<MissingLayer>);

/// What this machine offers.
#[derive(Debug)]
pub(crate) struct HostSupport {
    pub(crate) layers: Layers,
    pub(crate) private: PrivateSize,
    pub(crate) overlays: Overlays,
}

/// Tries every layer. Runs on a thread of its own, because the caller may be inside a runtime.
pub(crate) fn probe_host(launcher: Option<&Launcher>, env: &Environment) -> HostSupport {
    let nothing = |reason: &str| HostSupport {
        layers: Layers::from_trial(&[], &MissingLayer::all(reason)),
        private: PrivateSize::Unsized,
        overlays: Overlays::Missing,
    };
    let Some(launcher) = launcher else {
        return nothing("no launcher for the inner stage is configured");
    };
    guard::start(Some(launcher));
    let result = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                runtime.map(|runtime| runtime.block_on(attempt(launcher, env)))
            })
            .join()
    });
    match result {
        Ok(Ok(((reached, missing), private, overlays))) => HostSupport {
            layers: Layers::from_trial(&reached, &missing),
            private,
            overlays,
        },
        Ok(Err(error)) => nothing(&error.to_string()),
        Err(_) => nothing("the trial ended abnormally"),
    }
}

async fn attempt(launcher: &Launcher, env: &Environment) -> (LayerTrial, PrivateSize, Overlays) {
    let mut features = StageFeatures {
        isolation: StageIsolation::Namespaces,
        private: PrivateSize::Sized,
        overlays: Overlays::Tried,
    };
    let mut tried = trial(launcher, features, env).await;
    if tried.is_err() {
        features.overlays = Overlays::Missing;
        tried = trial(launcher, features, env).await;
    }
    if tried
        .as_ref()
        .is_err_and(|error| reason(error).contains(SIZE_OPTION))
    {
        features.private = PrivateSize::Unsized;
        tried = trial(launcher, features, env).await;
    }
    let overlays = match features.overlays {
        Overlays::Tried => Overlays::Available,
        other => other,
    };
    match tried {
        Ok((mut reached, missing)) => {
            if let Some(version) = version(env).await
                && let Some(found) = reached
                    .iter_mut()
                    .find(|found| found.layer == Layer::Namespaces)
            {
                found.detail = format!("{version}: {}", found.detail);
            }
            ((reached, missing), features.private, overlays)
        }
        Err(error) => (
            attempt_without(&reason(&error), launcher, env).await,
            PrivateSize::Unsized,
            Overlays::Missing,
        ),
    }
}

/// What works without namespaces, which are missing for the reason `why`? Landlock, seccomp and limits may.
async fn attempt_without(why: &str, launcher: &Launcher, env: &Environment) -> LayerTrial {
    let features = StageFeatures {
        isolation: StageIsolation::Machine,
        private: PrivateSize::Unsized,
        overlays: Overlays::Missing,
    };
    let (reached, mut missing) = match trial(launcher, features, env).await {
        Ok(trial) => trial,
        Err(error) => (Vec::new(), MissingLayer::all(&reason(&error))),
    };
    for missing_layer in &mut missing {
        if missing_layer.layer == Layer::Namespaces {
            why.clone_into(&mut missing_layer.reason);
        }
    }
    (reached, missing)
}

/// Starts the inner stage isolated, to become itself once more and do nothing.
async fn trial(
    launcher: &Launcher,
    features: StageFeatures,
    env: &Environment,
) -> Result<LayerTrial, SandboxError> {
    let profile = Profile {
        strength: Strength::BestEffort,
        writable: Vec::new(),
        masked: Vec::new(),
        read_only: Vec::new(),
        mounts: Vec::new(),
        network: Network::None,
        calls: SyscallClass::Tools,
        identity: Identity::default(),
    };
    let mut spawn = Spawn::new("/proc/self/exe", "/", Limits::new(TIMEOUT));
    spawn.args = launcher
        .args
        .iter()
        .cloned()
        .chain(["nothing".into()])
        .collect();
    spawn.confinement = Confinement::Confined(profile.clone());
    reported_layers(
        &run_isolated(
            spawn,
            &profile,
            launcher,
            features,
            None,
            env,
            Arc::default(),
        )
        .await?,
    )
}

async fn version(env: &Environment) -> Option<String> {
    let mut spawn = Spawn::new(
        env.find_program(BUBBLEWRAP).ok()?,
        Path::new("/"),
        Limits::new(TIMEOUT),
    );
    spawn.args = vec!["--version".into()];
    let target = crate::plan::target(&spawn, None).ok()?;
    let plan = crate::plan::direct(&spawn, target).ok()?;
    let observed =
        crate::supervise::supervise(plan, crate::sandbox::watch(spawn, None, Arc::default()))
            .await
            .ok()?;
    Some(observed.stdout.text().trim().chars().take(60).collect())
}

fn reason(error: &SandboxError) -> String {
    match error {
        SandboxError::NotFound { .. } => {
            "bubblewrap is not installed (no `bwrap` on PATH)".to_owned()
        }
        SandboxError::Setup { detail } => detail.clone(),
        other => other.to_string(),
    }
}
