//! Maps each class of side effects to its sandbox.
//!
//! | class | calls | writes | reaches | works in |
//! |---|---|---|---|---|
//! | READ_ONLY, SECRET_READ | compute | nothing | nothing | an empty directory |
//! | READ_ONLY with paths to read | read | nothing | nothing | the project, of which it sees these alone |
//! | FILE_WRITE | files | a copy of its granted directories | nothing | the project, of which it sees these alone |
//! | NETWORK, MONEY, MESSAGING | connect | nothing | its granted hosts | an empty directory |
//!
//! Invariants: every class hides the project except for the granted directories. In these it hides `.git`, `.crucible`, and files
//! with a secret's name or in a directory of secrets. No link decides where a skill may write.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use crucible_host::WorkDir;
use crucible_host::fs::{FsError, create_dir_beneath};
use crucible_ledger::SideEffect;
use crucible_model::RepoPath;
use crucible_sandbox::{
    AllowedHost, Identity, Layer, LayerState, Mount, MountContent, Network, Profile, Strength,
    SyscallClass,
};
use crucible_secrets::{is_secret_directory, is_secret_file};

use super::staging::Staging;
use super::{RunnerError, SkillCall, granted};
use crate::context::ForgeContext;
use crate::grants::HostName;
use crate::places::is_own;

/// The permitted ports of granted hosts.
const PORTS: [u16; 2] = [443, 80];
/// The most directory entries that are checked.
pub(super) const MAX_ENTRIES: usize = 20_000;
/// The most paths of a project that are hidden one by one.
const MAX_HIDDEN: usize = 2_000;

/// The sandbox of one call, and its directories.
pub(super) struct CallSandbox {
    pub(super) profile: Profile,
    pub(super) cwd: PathBuf,
    /// The copies that it writes to; `None` for a class that does not write.
    pub(super) staging: Option<Staging>,
    /// The empty working directory of other classes; removed when dropped.
    _empty: Option<WorkDir>,
}

/// Prepares the sandbox of this call. `empty` is a private directory for its copy, or its working directory without one. Missing
/// granted directories are created.
pub(super) fn prepare_sandbox(
    world: &ForgeContext<'_>,
    call: &SkillCall<'_>,
    empty: WorkDir,
) -> Result<CallSandbox, RunnerError> {
    let root = real(call.project_root)?;
    if real(call.python)?.starts_with(&root) {
        return Err(RunnerError::PythonInProject {
            python: call.python.to_owned(),
        });
    }
    let mut profile = Profile {
        strength: world.strength,
        writable: Vec::new(),
        masked: vec![root.clone()],
        read_only: Vec::new(),
        mounts: Vec::new(),
        network: Network::None,
        calls: SyscallClass::Compute,
        identity: Identity::default(),
    };
    match call.class {
        SideEffect::ReadOnly if !call.grants.read_paths.is_empty() => {
            call.grants.check_places()?;
            let places: Vec<RepoPath> = call.grants.read_paths.iter().filter_map(granted).collect();
            places
                .iter()
                .try_for_each(|place| refuse_links(&root, place))?;
            profile.masked = hidden(&root, &places)?;
            profile.calls = SyscallClass::Read;
            return Ok(CallSandbox {
                profile,
                cwd: root,
                staging: None,
                _empty: Some(empty),
            });
        }
        SideEffect::ReadOnly | SideEffect::SecretRead => {}
        SideEffect::FileWrite => {
            call.grants.check_places()?;
            let places: Vec<RepoPath> =
                call.grants.write_paths.iter().filter_map(granted).collect();
            for place in &places {
                make(&root, place)?;
            }
            profile.calls = SyscallClass::Files;
            let staging = Staging::copy(&root, &places, empty)?;
            let top = real(staging.top())?;
            let writable = |place: &RepoPath| top.join(place.as_str());
            if !stands_at_its_place(world) {
                // Below the copy's top, which holds nothing else.
                profile.writable = staging.places().iter().map(writable).collect();
                return Ok(CallSandbox {
                    profile,
                    cwd: top,
                    staging: Some(staging),
                    _empty: None,
                });
            }
            let mount = |place: &RepoPath| Mount {
                target: root.join(place.as_str()),
                content: MountContent::Writable(writable(place)),
            };
            profile.mounts = staging.places().iter().map(mount).collect();
            profile.masked = hidden(&root, &places)?;
            return Ok(CallSandbox {
                profile,
                cwd: root,
                staging: Some(staging),
                _empty: None,
            });
        }
        SideEffect::Network | SideEffect::Money | SideEffect::Messaging => {
            profile.calls = SyscallClass::Connect;
            profile.network = Network::Hosts(call.grants.hosts.iter().map(allowed).collect());
        }
    }
    Ok(CallSandbox {
        profile,
        cwd: real(empty.path())?,
        staging: None,
        _empty: Some(empty),
    })
}

/// Returns whether the copy can be mounted at the path of the original, which needs namespaces.
fn stands_at_its_place(world: &ForgeContext<'_>) -> bool {
    match world.strength {
        Strength::Required => true,
        Strength::BestEffort => {
            world.sandbox.layers().state(Layer::Namespaces) == LayerState::Available
        }
        Strength::Off => false,
    }
}

fn allowed(host: &HostName) -> AllowedHost {
    AllowedHost {
        host: host.as_str().to_owned(),
        ports: PORTS.to_vec(),
    }
}

/// Refuses a granted path that is a link or below one. A missing path is not an error.
fn refuse_links(root: &Path, place: &RepoPath) -> Result<(), RunnerError> {
    let mut at = root.to_owned();
    for part in place.as_str().split('/') {
        at.push(part);
        if at.is_symlink() {
            let why = "it is a symbolic link or behind one; grant what it leads to".to_owned();
            return Err(RunnerError::GrantedPath {
                path: place.to_string(),
                why,
            });
        }
    }
    Ok(())
}

/// Creates a granted directory. Its parents must be directories.
fn make(root: &Path, place: &RepoPath) -> Result<(), RunnerError> {
    let mut at = root.to_owned();
    for part in place.as_str().split('/') {
        at.push(part);
        let what = match at.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => "a symbolic link or behind one",
            Ok(meta) if !meta.is_dir() => "no directory or behind a file",
            Ok(_) | Err(_) => continue,
        };
        let why = format!("it is {what}; put a directory there, or remove it, and one is made");
        return Err(RunnerError::GrantedPath {
            path: place.to_string(),
            why,
        });
    }
    Ok(create_dir_beneath(root, place.as_str())?)
}

/// Returns the paths to hide: the project except for the granted directories, and in these secrets, `.crucible` and `.git`.
fn hidden(root: &Path, places: &[RepoPath]) -> Result<Vec<PathBuf>, RunnerError> {
    let mut hidden = Vec::new();
    let mut seen = 0;
    let mut beside: VecDeque<String> = VecDeque::from([String::new()]);
    let mut inside: Vec<(String, PathBuf)> = Vec::new();
    while let Some(at) = beside.pop_front() {
        for (name, path, kind) in entries(&root.join(&at), &mut seen)? {
            let below = if at.is_empty() {
                name
            } else {
                format!("{at}/{name}")
            };
            let is_granted = |place: &RepoPath| place.as_str() == below;
            let leads_there = |place: &RepoPath| {
                place
                    .as_str()
                    .strip_prefix(&below)
                    .is_some_and(|rest| rest.starts_with('/'))
            };
            if places.iter().any(is_granted) {
                if kind.is_dir() {
                    inside.push((below, path));
                }
            } else if kind.is_dir() && places.iter().any(leads_there) {
                beside.push_back(below);
            } else if !kind.is_symlink() {
                // The target of a link is hidden at its own path, or is outside of the project.
                hidden.push(path);
            }
        }
    }
    if hidden.len() > MAX_HIDDEN {
        return Err(RunnerError::TooManyPlaces {
            place: "beside what is granted".to_owned(),
            most: MAX_HIDDEN,
        });
    }
    while let Some((at, directory)) = inside.pop() {
        for (name, path, kind) in entries(&directory, &mut seen)? {
            let below = format!("{at}/{name}");
            let is_hidden = if kind.is_dir() {
                is_own(&name) || is_secret_directory(&below)
            } else {
                // The target of a link is hidden at its own path.
                !kind.is_symlink() && is_own(&name) || kind.is_file() && is_secret_file(&below)
            };
            if is_hidden {
                // The copy does not contain it, so a trailing slash marks a directory.
                hidden.push(if kind.is_dir() { path.join("") } else { path });
            } else if kind.is_dir() {
                inside.push((below, path));
            }
        }
    }
    Ok(hidden)
}

type Entry = (String, PathBuf, std::fs::FileType);

fn entries(directory: &Path, seen: &mut usize) -> Result<Vec<Entry>, RunnerError> {
    let fail = |source| FsError::Io {
        action: "list",
        path: directory.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        *seen += 1;
        if *seen > MAX_ENTRIES {
            return Err(RunnerError::TooManyPlaces {
                place: format!("in {}", directory.display()),
                most: MAX_ENTRIES,
            });
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        found.push((name, entry.path(), entry.file_type().map_err(fail)?));
    }
    Ok(found)
}

/// Returns the canonical path.
fn real(path: &Path) -> Result<PathBuf, FsError> {
    path.canonicalize().map_err(|source| FsError::Io {
        action: "find",
        path: path.to_owned(),
        source,
    })
}
