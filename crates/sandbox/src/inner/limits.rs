//! Resource limits of the confined program.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::spawn::Cap;
use crate::wire::{PrivateSize, StageIsolation, StageRequest};

/// Applies the limits to this process and its children. Returns their description for the receipt.
pub(crate) fn apply(order: &StageRequest) -> Result<String, String> {
    let requested = order.resources;
    hold(Resource::Core, Cap::At(0))?;
    hold(Resource::Fsize, requested.file_size)?;
    hold(Resource::As, requested.address_space)?;
    hold(Resource::Nofile, requested.open_files)?;
    // Limits writable memory, not reserved address space: runtimes reserve far more than they use.
    hold(Resource::Data, order.memory_each)?;
    if order.surroundings == StageIsolation::Namespaces {
        hold(Resource::Nproc, requested.processes)?;
    }
    let writing = match (order.surroundings, order.private) {
        (StageIsolation::Namespaces, PrivateSize::Sized) => "",
        (StageIsolation::Namespaces, PrivateSize::Unsized) => ", but not of the private places",
        (StageIsolation::Machine, _) => ", but not of the machine's temporary directories",
    };
    let memory = match order.memory_each {
        Cap::At(_) => "memory of each process",
        Cap::Unlimited => "memory",
    };
    Ok(format!(
        "core files, file size, address space, {memory}, descriptors, processes, disk space{writing}"
    ))
}

/// Lowers the soft and the hard limit to the cap. A lower limit stays.
fn hold(resource: Resource, cap: Cap) -> Result<(), String> {
    let Cap::At(most) = cap else { return Ok(()) };
    let now = getrlimit(resource);
    let lower = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
    let new = Rlimit {
        current: lower(now.current),
        maximum: lower(now.maximum),
    };
    setrlimit(resource, new).map_err(|errno| format!("limiting {resource:?}: {errno}"))
}
