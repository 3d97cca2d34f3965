//! Finds out what this machine offers, by trying it.

use std::path::Path;
use std::time::Duration;

use crucible_host::env::Environment;

use crate::bubblewrap::BUBBLEWRAP;
use crate::error::SandboxError;
use crate::layers::{Layer, Layers, MissingLayer, ReachedLayer};
use crate::sandbox::{run_walled, walls};
use crate::spawn::{Confinement, Launcher, Limits, Network, Profile, Spawn, Strength};
use crate::wire::Surroundings;

/// How long one trial may take.
const PATIENCE: Duration = Duration::from_secs(10);

type Trial = (Vec<ReachedLayer>, Vec<MissingLayer>);

/// Tries every layer. Runs on a thread of its own, because the caller may be inside a runtime.
pub(crate) fn layers(launcher: Option<&Launcher>, env: &Environment) -> Layers {
    let Some(launcher) = launcher else {
        return Layers::from_trial(&[], &all_missing("this program was given no way to its inner stage"));
    };
    let result = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.map(|runtime| runtime.block_on(attempt(launcher, env)))
            })
            .join()
    });
    match result {
        Ok(Ok((reached, missing))) => Layers::from_trial(&reached, &missing),
        Ok(Err(error)) => Layers::from_trial(&[], &all_missing(&error.to_string())),
        Err(_) => Layers::from_trial(&[], &all_missing("the trial ended abnormally")),
    }
}

async fn attempt(launcher: &Launcher, env: &Environment) -> Trial {
    let why = match trial(launcher, Surroundings::Namespaces, env).await {
        Ok((mut reached, missing)) => {
            if let Some(version) = version(env).await
                && let Some(found) = reached.iter_mut().find(|found| found.layer == Layer::Namespaces)
            {
                found.detail = format!("{version}: {}", found.detail);
            }
            return (reached, missing);
        }
        Err(error) => reason(&error),
    };
    // What works without namespaces? Landlock, seccomp and limits may.
    match trial(launcher, Surroundings::Machine, env).await {
        Ok((reached, mut missing)) => {
            for lost in &mut missing {
                if matches!(lost.layer, Layer::Namespaces | Layer::Masks) {
                    lost.reason.clone_from(&why);
                }
            }
            (reached, missing)
        }
        Err(error) => {
            let reason = reason(&error);
            let mut missing = all_missing(&reason);
            for lost in &mut missing {
                if lost.layer == Layer::Namespaces {
                    lost.reason.clone_from(&why);
                }
            }
            (Vec::new(), missing)
        }
    }
}

/// Starts the inner stage behind its walls, to become itself once more and do nothing.
async fn trial(
    launcher: &Launcher,
    surroundings: Surroundings,
    env: &Environment,
) -> Result<Trial, SandboxError> {
    let profile = Profile {
        strength: Strength::BestEffort,
        writable: Vec::new(),
        masked: Vec::new(),
        network: Network::None,
    };
    let mut spawn = Spawn::new("/proc/self/exe", "/", Limits::new(PATIENCE));
    spawn.args = launcher.args.iter().cloned().chain(["nothing".into()]).collect();
    spawn.confinement = Confinement::Confined(profile.clone());
    walls(&run_walled(spawn, &profile, launcher, surroundings, env).await?)
}

async fn version(env: &Environment) -> Option<String> {
    let mut spawn = Spawn::new(env.find_program(BUBBLEWRAP)?, Path::new("/"), Limits::new(PATIENCE));
    spawn.args = vec!["--version".into()];
    let target = crate::plan::target(&spawn).ok()?;
    let plan = crate::plan::direct(&spawn, target);
    let observed = crate::supervise::supervise(plan, crate::sandbox::watch(spawn)).await.ok()?;
    Some(observed.stdout.text().trim().chars().take(60).collect())
}

fn reason(error: &SandboxError) -> String {
    match error {
        SandboxError::NotFound { .. } => "bubblewrap is not installed (no `bwrap` on PATH)".to_owned(),
        SandboxError::Setup { detail } => detail.clone(),
        other => other.to_string(),
    }
}

fn all_missing(reason: &str) -> Vec<MissingLayer> {
    Layer::ALL.map(|layer| MissingLayer { layer, reason: reason.to_owned() }).to_vec()
}
