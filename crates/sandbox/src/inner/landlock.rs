//! Landlock: writing only where it was granted, enforced by the kernel beside and below the mounts.
//!
//! Where mounts cover what must not be read, reading and running are allowed everywhere, but in `/proc` to programs whose calls are
//! named by class. Where nothing can be mounted they are allowed in a list of places, which holds no home directory and no secret. Writing is
//! allowed in the writable directories, the private places, and the harmless devices. Where no network
//! namespace stands and the network is cut, TCP is refused as well; with the namespace it is left alone, so
//! that tests can use their own loopback.

use std::ffi::OsString;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope,
};

use crate::layout::{PRIVATE, SHARED_MEMORY};
use crate::spawn::{Network, SyscallClass};
use crate::wire::{StageIsolation, StageRequest};

/// The newest version this was written for; on an older kernel what it lacks is left out.
const NEWEST: ABI = ABI::V9;
/// Everything.
const ROOT: &str = "/";
/// Where the kernel reports processes, mounts and itself.
const PROCESSES: &str = "/proc";
/// Devices that may be written to.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Restricts this process. Tells the version reached, or why nothing was.
pub(crate) fn apply(order: &StageRequest) -> Result<String, String> {
    let status = restrict(order).map_err(|error| error.to_string())?;
    let version = match status.landlock {
        LandlockStatus::NotEnabled => {
            return Err("Landlock is switched off in this kernel's boot settings".to_owned());
        }
        LandlockStatus::NotImplemented => return Err("this kernel has no Landlock".to_owned()),
        LandlockStatus::Available { effective_abi, .. } => effective_abi as i32,
    };
    match status.ruleset {
        RulesetStatus::NotEnforced => Err("the kernel did not enforce the rules".to_owned()),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => {
            Ok(match order.surroundings {
                StageIsolation::Namespaces => format!("abi {version}"),
                StageIsolation::Machine => {
                    format!(
                        "abi {version}, reading only what is listed: no home directory but its tools"
                    )
                }
            })
        }
    }
}

fn restrict(order: &StageRequest) -> Result<landlock::RestrictionStatus, RulesetError> {
    let everything = AccessFs::from_all(NEWEST);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(everything)?;
    rules = rules.scope(Scope::from_all(NEWEST))?;
    if order.network != Network::Host && order.surroundings == StageIsolation::Machine {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut rules = rules.create()?;
    for (place, access) in readable(order) {
        rules = allow(rules, place, access)?;
    }
    // Devices cannot be made without privileges anyway; the rule says so a second time.
    let change = everything & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    for place in PRIVATE.into_iter().chain([SHARED_MEMORY]) {
        rules = allow(rules, place, change)?;
    }
    for home in order
        .home
        .iter()
        .filter(|_| order.surroundings == StageIsolation::Namespaces)
    {
        rules = allow(rules, home, change)?;
    }
    for place in &order.writable {
        rules = allow(rules, &place.path, change)?;
    }
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    for place in DEVICES {
        rules = allow(rules, place, device)?;
    }
    rules.restrict_self()
}

/// What may be read, and how. A program whose calls are named by class learns nothing of processes and mounts: every
/// hidden place is named there. It may list `/proc` as it lists the root, and read nothing in it.
fn readable(order: &StageRequest) -> Vec<(OsString, BitFlags<AccessFs>)> {
    let read = AccessFs::from_read(NEWEST);
    let mut places = Vec::new();
    for place in &order.readable {
        if order.calls == SyscallClass::Tools {
            places.push((place.clone(), read));
        } else if place == ROOT {
            places.push((place.clone(), AccessFs::ReadDir.into()));
            let below = std::fs::read_dir(ROOT)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path());
            places.extend(
                below
                    .filter(|path| path != Path::new(PROCESSES))
                    .map(|path| (path.into(), read)),
            );
        } else if place != PROCESSES {
            places.push((place.clone(), read));
        }
    }
    places
}

/// Allows `access` below a path; one that is not there needs no rule.
fn allow(
    rules: RulesetCreated,
    path: impl AsRef<Path>,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(handle) => rules.add_rule(PathBeneath::new(handle, access)),
        Err(_) => Ok(rules),
    }
}
