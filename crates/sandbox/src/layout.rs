//! Plans the file system of a confined program: which paths are private, writable, visible or hidden.
//!
//! The root is mounted read-only. Over it come, parents before children: empty private directories, the writable
//! directories, and covers over every home directory and other hidden paths. Directories of tools are mounted read-only
//! into the covers. Without mounts, the same plan yields the list of readable paths. A program could rename a directory
//! to escape a cover below it. So each directory between a cover and its writable directory is mounted onto itself,
//! which makes it immovable.
//!
//! Invariants: below a writable directory, a missing path is covered too, because the program could create it. The
//! mount leaves an empty placeholder there, which is removed after the run. A link in a writable directory, whose
//! author may be hostile, never decides what is visible.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crucible_host::env::Environment;

use crate::directory::Directory;
use crate::error::{PathProblem, SandboxError};
use crate::hidden;
use crate::inner::overlay::merged;
use crate::masks::{PlaceholderKind, Placeholders, Presence};
use crate::mounts::{self, MountContent, MountTable};
use crate::plan::Target;
use crate::sockets;
use crate::spawn::{Network, Profile};
use crate::tools;
use crate::wire::{IdentifiedDir, StageIsolation};

/// Temporary directories: empty, writable, removed after the run.
pub(crate) const PRIVATE: [&str; 2] = ["/tmp", "/var/tmp"];
/// Shared memory: private too, below `/dev`.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";
/// Directories with the sockets of system services; empty inside.
const RUNTIME: [&str; 2] = ["/run", "/var/run"];
/// Their files that name resolution needs; visible with the host's network.
const RESOLVER: [&str; 3] = [
    "/run/systemd/resolve/stub-resolv.conf",
    "/run/systemd/resolve/resolv.conf",
    "/run/resolvconf/resolv.conf",
];
/// Program directories of some systems, such as NixOS.
const SYSTEM_PROGRAMS: [&str; 2] = ["/run/current-system", "/run/opengl-driver"];
/// Where private layers are mounted: the first one that contains no needed path.
const LAYERS: [&str; 4] = ["/var/tmp", "/mnt", "/media", "/tmp"];
/// Without mounts, devices are allowed one by one.
const DEVICES: &str = "/dev";
/// Never writable, nor anything below them.
const NEVER_WRITABLE: [&str; 3] = ["/proc", "/sys", "/dev"];

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mount {
    /// An empty private directory that may be written to.
    Private,
    /// An empty directory, read-only in the end.
    CoverDirectory,
    /// A file that cannot be opened.
    CoverFile,
    /// The path itself, writable.
    Writable,
    /// The path itself, read-only.
    Visible,
    /// The path itself, read-only inside a writable directory.
    Kept,
    /// A symbolic link to its final target, inside an empty directory.
    Link(PathBuf),
    /// A directory mounted onto itself, so that it cannot be moved.
    Anchor,
    /// This host directory, writable.
    Writing(PathBuf),
    /// This host directory, read-only.
    Reading(PathBuf),
    /// This host directory with a private layer over it, or read-only.
    Layered(PathBuf),
}

impl Mount {
    /// Returns whether it hides a path of the host.
    fn hides(&self) -> bool {
        matches!(self, Self::Private | Self::CoverDirectory | Self::CoverFile)
    }
}

/// All mounts over the read-only root, by path.
#[derive(Debug)]
pub(crate) struct Layout {
    mounts: BTreeMap<PathBuf, Mount>,
    /// The host paths of mounts whose source is elsewhere.
    table: MountTable,
    /// The working directory and the program, as paths inside the sandbox.
    pub(crate) cwd: PathBuf,
    pub(crate) program: PathBuf,
    /// The writable directories; the inner stage checks their identities.
    pub(crate) writable: Vec<IdentifiedDir>,
    /// The placeholders that mounts leave in them.
    pub(crate) placeholders: Placeholders,
}

/// What surrounds a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Enclosure {
    /// Below the read-only root.
    World,
    /// Below an empty directory: nothing of the host is visible there.
    Empty,
    /// Below a writable directory.
    Writable,
    /// Below a read-only path in a writable directory: the program cannot change it, but its author may be hostile.
    Kept,
}

impl Layout {
    /// Plans the mounts of one run of `target` with the environment variables `given`.
    pub(crate) fn new(
        profile: &Profile,
        target: &Target,
        given: &[(OsString, OsString)],
        surroundings: StageIsolation,
        env: &Environment,
    ) -> Result<Self, SandboxError> {
        let mut layout = Self {
            mounts: BTreeMap::new(),
            table: MountTable::default(),
            cwd: target.cwd.path.clone(),
            program: target.program.clone(),
            writable: Vec::new(),
            placeholders: Placeholders::default(),
        };
        for place in PRIVATE {
            layout.add_empty(Path::new(place), Mount::Private);
        }
        if let Some(homes) = profile.identity.homes() {
            layout.add_empty(homes, Mount::Private);
        }
        for place in RUNTIME {
            layout.add_empty(Path::new(place), Mount::CoverDirectory);
        }
        for place in SYSTEM_PROGRAMS {
            layout.add_visible(Path::new(place));
        }
        if profile.network == Network::Host {
            for place in RESOLVER {
                layout.add_visible(Path::new(place));
            }
        }
        for path in &profile.writable {
            layout.add_writable(path)?;
        }
        for mount in &profile.mounts {
            match (surroundings, mount.writable_source()) {
                (StageIsolation::Namespaces, _) => layout
                    .add_mount(mount, &profile.identity.home, env)
                    .map_err(|problem| SandboxError::Mounted {
                        path: mount.target.clone(),
                        problem,
                    })?,
                (StageIsolation::Machine, Some(source)) => layout.add_writable(source)?,
                (StageIsolation::Machine, None) => {}
            }
        }
        layout.cwd = layout.table.to_sandbox(&target.cwd.path);
        layout.program = layout.table.to_sandbox(&target.program);
        // Before the masks: below a read-only path, a mask needs no placeholder.
        for path in &profile.read_only {
            layout
                .add_read_only(path)
                .map_err(|problem| SandboxError::ReadOnly {
                    path: path.clone(),
                    problem,
                })?;
        }
        layout.add_own_masks(hidden::homes(env))?;
        for place in tools::visible_tool_paths(env, given, &layout.program) {
            layout.show(&place);
        }
        // Before the secrets, so that those in a working directory are covered.
        layout.show(&layout.cwd.clone());
        layout.add_own_masks(hidden::secrets(env))?;
        layout.add_own_masks(sockets::of_services())?;
        if surroundings == StageIsolation::Namespaces {
            layout.add_own_masks(hidden::kernel_secrets())?;
            let sockets = sockets::of_directories(&layout.handed_out());
            layout.add_own_masks(
                sockets
                    .iter()
                    .map(|path| layout.table.to_sandbox(path))
                    .collect(),
            )?;
        }
        for path in &profile.masked {
            layout
                .add_mask(path)
                .map_err(|problem| SandboxError::Masked {
                    path: path.clone(),
                    problem,
                })?;
        }
        layout.show_working_directory()?;
        Ok(layout)
    }

    /// Returns the directories with a private layer, in the order of [`Layout::arguments`].
    pub(crate) fn overlay_directories(&self) -> Vec<&Path> {
        self.mounts
            .values()
            .filter_map(|mount| match mount {
                Mount::Layered(lower) => Some(lower.as_path()),
                _ => None,
            })
            .collect()
    }

    /// Returns a directory that can be mounted over before all others: it contains no path of this plan and none of
    /// `others`.
    pub(crate) fn overlay_mount_point(&self, others: &[&Path]) -> Option<&'static Path> {
        let holds = |place: &Path, path: &Path| path != place && path.starts_with(place);
        let is_free = |place: &&Path| {
            let mut keys = self.mounts.keys();
            place.is_dir()
                && !others.iter().any(|path| holds(place, path))
                && !keys.any(|path| holds(place, path) || holds(place, &self.table.to_host(path)))
        };
        LAYERS.into_iter().map(Path::new).find(is_free)
    }

    /// Returns bubblewrap's options for these mounts. They follow the options that mount the root.
    /// `bounds` returns the size options of a private directory; private layers are below `layers`.
    pub(crate) fn arguments(
        &self,
        bounds: impl Fn(&Path) -> Vec<OsString>,
        layers: Option<&Path>,
    ) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut layered = 0..;
        for (path, mount) in &self.mounts {
            let overlay = match (mount, layers) {
                (Mount::Layered(_), Some(place)) => {
                    layered.next().map(|index| merged(place, index))
                }
                _ => None,
            };
            let (option, source): (&str, Option<PathBuf>) = match mount {
                Mount::Layered(_) if overlay.is_some() => ("--bind", overlay),
                Mount::Private | Mount::CoverDirectory => ("--tmpfs", None),
                Mount::Link(to) => ("--symlink", Some(to.clone())),
                Mount::CoverFile => ("--ro-bind", Some(PathBuf::from("/dev/null"))),
                Mount::Writable | Mount::Anchor | Mount::Writing(_) => {
                    ("--bind", Some(self.table.to_host(path)))
                }
                Mount::Visible | Mount::Kept | Mount::Reading(_) | Mount::Layered(_) => {
                    ("--ro-bind", Some(self.table.to_host(path)))
                }
            };
            if *mount == Mount::Private {
                words.extend(bounds(path));
            }
            words.push(option.into());
            words.extend(source.map(OsString::from));
            words.push(path.into());
        }
        // Last, because a cover must be writable while paths below it are mounted.
        for (path, mount) in &self.mounts {
            if *mount == Mount::CoverDirectory {
                words.extend(["--remount-ro".into(), path.into()]);
            }
        }
        words
    }

    /// Returns the readable paths for a sandbox without mounts: everything that is not hidden. A directory that contains
    /// a hidden path is not listed itself; its other entries are.
    pub(crate) fn readable(&self) -> Vec<OsString> {
        let mut places = Vec::new();
        self.collect_readable(Path::new("/"), &mut places);
        for (path, mount) in &self.mounts {
            match mount {
                // Covered paths in it stay covered.
                Mount::Visible if self.hides_below(path) => self.collect_below(path, &mut places),
                Mount::Visible | Mount::Anchor => places.push(path.into()),
                _ => {}
            }
        }
        places
    }

    fn collect_readable(&self, directory: &Path, places: &mut Vec<OsString>) {
        if !self.hides_below(directory) {
            places.push(directory.into());
        } else if !self.mounts.contains_key(directory) {
            self.collect_below(directory, places);
        }
    }

    /// Returns whether a path at or below `directory` is hidden.
    fn hides_below(&self, directory: &Path) -> bool {
        let below = self.mounts.range(directory.to_owned()..);
        below
            .take_while(|(path, _)| path.starts_with(directory))
            .any(|(_, mount)| mount.hides())
    }

    fn collect_below(&self, directory: &Path, places: &mut Vec<OsString>) {
        // A directory that cannot be listed cannot be read either.
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && path != Path::new(DEVICES) => {
                    self.collect_readable(&path, places);
                }
                Ok(kind) if kind.is_file() && !self.mounts.contains_key(&path) => {
                    places.push(path.into())
                }
                // Links are skipped: their targets are listed at their own paths.
                _ => {}
            }
        }
    }

    /// Returns the host directories that the program may write to.
    fn handed_out(&self) -> Vec<PathBuf> {
        let source = |(path, mount): (&PathBuf, &Mount)| match mount {
            Mount::Writable => Some(path.clone()),
            Mount::Writing(source) => Some(source.clone()),
            _ => None,
        };
        self.mounts.iter().filter_map(source).collect()
    }

    /// Masks paths of the built-in lists.
    fn add_own_masks(&mut self, places: Vec<PathBuf>) -> Result<(), SandboxError> {
        for path in places {
            match self.add_mask(&path) {
                // A path that the caller makes writable is meant to be visible.
                Ok(()) | Err(PathProblem::Contradiction) => {}
                Err(problem) => return Err(SandboxError::Masked { path, problem }),
            }
        }
        Ok(())
    }

    /// Makes `path` visible, read-only, if it would be hidden, with the links that lead to it. Skips missing paths and
    /// the targets of links in writable directories.
    fn show(&mut self, path: &Path) {
        let mut at = PathBuf::new();
        for part in path.components() {
            if part == Component::ParentDir {
                return;
            }
            let next = at.join(part);
            if self.table.around(&next).is_some() {
                // A mount already shows it.
                return;
            }
            let Ok(meta) = next.symlink_metadata() else {
                return;
            };
            if !meta.is_symlink() {
                at = next;
                continue;
            }
            let Ok(real) = next.canonicalize() else {
                return;
            };
            match self.around(&next) {
                Enclosure::Writable | Enclosure::Kept => return,
                Enclosure::Empty => {
                    self.mounts.entry(next).or_insert(Mount::Link(real.clone()));
                }
                Enclosure::World => {}
            }
            at = real;
        }
        if self.around(&at) == Enclosure::Empty {
            self.mounts.entry(at).or_insert(Mount::Visible);
        }
    }

    fn add_empty(&mut self, place: &Path, mount: Mount) {
        if let Ok(real) = place.canonicalize()
            && real.is_dir()
        {
            self.mounts.entry(real).or_insert(mount);
        }
    }

    fn add_visible(&mut self, place: &Path) {
        if place.exists() {
            self.mounts.insert(place.to_owned(), Mount::Visible);
        }
    }

    fn add_writable(&mut self, path: &Path) -> Result<(), SandboxError> {
        let refuse = |problem| SandboxError::Writable {
            path: path.to_owned(),
            problem,
        };
        let directory = Directory::open(path).map_err(refuse)?;
        let system = NEVER_WRITABLE
            .iter()
            .any(|never| directory.path.starts_with(never));
        if system || directory.path == Path::new("/") {
            return Err(refuse(PathProblem::System));
        }
        let place = IdentifiedDir {
            path: directory.path.clone().into_os_string(),
            identity: directory.identity,
        };
        self.writable.push(place);
        self.mounts.insert(directory.path, Mount::Writable);
        Ok(())
    }

    fn add_mask(&mut self, path: &Path) -> Result<(), PathProblem> {
        if !path.is_absolute() {
            return Err(PathProblem::Relative);
        }
        let Ok((place, kind)) = self.locate(path) else {
            return Ok(());
        };
        match self.mounts.get(&place) {
            Some(Mount::Writable | Mount::Writing(_) | Mount::Reading(_) | Mount::Layered(_)) => {
                return Err(PathProblem::Contradiction);
            }
            Some(Mount::Visible | Mount::Kept | Mount::Anchor | Mount::Link(_)) | None => {}
            Some(Mount::Private | Mount::CoverDirectory | Mount::CoverFile) => return Ok(()),
        }
        let around = self.around(&place);
        let real = self.table.to_host(&place);
        if around != Enclosure::Writable && real.is_symlink() {
            // The program cannot change the link, so covering its target is enough.
            let named = real
                .canonicalize()
                .map(|target| self.table.to_sandbox(&target));
            return named.map_or(Ok(()), |target| self.add_mask(&target));
        }
        if around == Enclosure::Empty && !self.mounts.contains_key(&place) {
            return Ok(());
        }
        let presence = match around {
            Enclosure::Writable => self.placeholders.hold(&real, kind),
            Enclosure::World | Enclosure::Empty | Enclosure::Kept => Presence::Real,
        };
        let cover = match (presence, real.symlink_metadata()) {
            (Presence::Held(kind), _) => kind.cover(),
            (Presence::Real, Ok(meta)) if meta.is_dir() => Mount::CoverDirectory,
            (Presence::Real, Ok(meta)) if meta.is_symlink() && around == Enclosure::Writable => {
                return Err(PathProblem::IsLink);
            }
            (Presence::Real, Ok(_)) => Mount::CoverFile,
            // The program cannot create it.
            (Presence::Real, Err(_)) => return Ok(()),
        };
        if around == Enclosure::Writable {
            self.anchor(&place);
        }
        self.mounts.insert(place, cover);
        Ok(())
    }

    /// Makes a path read-only. Does nothing outside of writable directories, where nothing can be written.
    fn add_read_only(&mut self, path: &Path) -> Result<(), PathProblem> {
        if !path.is_absolute() {
            return Err(PathProblem::Relative);
        }
        // Fails if a parent is inaccessible: the program may be able to change that.
        let (place, kind) = self.locate(path)?;
        if matches!(
            self.mounts.get(&place),
            Some(Mount::Writable | Mount::Writing(_))
        ) {
            return Err(PathProblem::Contradiction);
        }
        if self.around(&place) != Enclosure::Writable {
            return Ok(());
        }
        let (place, kind) = self.with_missing_parents(place, kind, path);
        let real = self.table.to_host(&place);
        let mount = match self.placeholders.hold(&real, kind) {
            Presence::Held(kind) => kind.cover(),
            Presence::Real if real.is_symlink() => return Err(PathProblem::IsLink),
            Presence::Real => Mount::Kept,
        };
        self.anchor(&place);
        self.mounts.insert(place, mount);
        Ok(())
    }

    /// Creates the missing directories above `path`, so that other files can be created in them; `place` is the first.
    /// Returns the location of the path itself.
    fn with_missing_parents(
        &mut self,
        place: PathBuf,
        kind: PlaceholderKind,
        path: &Path,
    ) -> (PathBuf, PlaceholderKind) {
        let rest = missing_names(path);
        let mut place = place;
        for name in &rest {
            if self
                .mounts
                .get(&place)
                .is_some_and(|mount| *mount != Mount::Anchor)
            {
                break;
            }
            let real = self.table.to_host(&place);
            // A placeholder of another run may be a file.
            if self.placeholders.hold(&real, PlaceholderKind::Directory)
                != Presence::Held(PlaceholderKind::Directory)
            {
                break;
            }
            self.mounts.entry(place.clone()).or_insert(Mount::Anchor);
            place.push(name);
        }
        let is_whole = rest
            .last()
            .is_some_and(|name| place.file_name() == Some(name));
        let kind = if is_whole { kind_of(path) } else { kind };
        (place, kind)
    }

    /// Makes each directory between `place` and the writable directory above it immovable.
    fn anchor(&mut self, place: &Path) {
        for between in place.ancestors().skip(1) {
            if matches!(
                self.mounts.get(between),
                Some(Mount::Writable | Mount::Writing(_))
            ) {
                break;
            }
            self.mounts
                .entry(between.to_owned())
                .or_insert(Mount::Anchor);
        }
    }

    /// Makes a hidden working directory visible, read-only. Fails if the directory itself is replaced by an empty one
    /// or a link.
    fn show_working_directory(&mut self) -> Result<(), SandboxError> {
        match self.mounts.get(&self.cwd) {
            Some(Mount::Private | Mount::CoverDirectory | Mount::CoverFile | Mount::Link(_)) => {
                Err(SandboxError::WorkingDirectory {
                    path: self.cwd.clone(),
                    problem: PathProblem::Hidden,
                })
            }
            Some(_) => Ok(()),
            None => {
                if self.around(&self.cwd) == Enclosure::Empty {
                    self.mounts.insert(self.cwd.clone(), Mount::Visible);
                }
                Ok(())
            }
        }
    }

    /// Mounts a host directory, or an empty one, at a path. At or above it only hiding mounts are planned.
    fn add_mount(
        &mut self,
        mount: &mounts::Mount,
        home: &Path,
        env: &Environment,
    ) -> Result<(), PathProblem> {
        if self.mounts.contains_key(&mount.target) {
            return Err(PathProblem::Contradiction);
        }
        let directory = self.table.add(mount, home, env)?;
        let planned = match &mount.content {
            MountContent::Writable(_) => {
                let path = mount.target.clone().into_os_string();
                self.writable.push(IdentifiedDir {
                    path,
                    identity: directory.identity,
                });
                Mount::Writing(directory.path)
            }
            MountContent::ReadOnly(_) => Mount::Reading(directory.path),
            MountContent::Overlay(_) => Mount::Layered(directory.path),
        };
        self.mounts.insert(mount.target.clone(), planned);
        Ok(())
    }

    /// Like [`locate`], but resolves a path below a mount in its source.
    fn locate(&self, path: &Path) -> io::Result<(PathBuf, PlaceholderKind)> {
        let through = |table: &MountTable, inside: &Path| {
            let (target, source, mut real) = table
                .around(inside)
                .filter(|(target, ..)| *target != inside)?;
            if path.as_os_str().as_bytes().ends_with(b"/") {
                real.push("");
            }
            Some(
                locate(&real).and_then(|(real, kind)| match real.strip_prefix(source) {
                    Ok(rest) => Ok((target.join(rest), kind)),
                    Err(_) => Err(io::Error::new(
                        io::ErrorKind::InvalidInput,
                        "a link leads out of the mount",
                    )),
                }),
            )
        };
        if let Some(found) = through(&self.table, &path.components().collect::<PathBuf>()) {
            return found;
        }
        let (place, kind) = locate(path)?;
        through(&self.table, &place).unwrap_or(Ok((place, kind)))
    }

    /// Returns what surrounds `path`, by the nearest mount above it.
    fn around(&self, path: &Path) -> Enclosure {
        match path
            .ancestors()
            .skip(1)
            .find_map(|above| self.mounts.get(above))
        {
            None | Some(Mount::Visible) => Enclosure::World,
            Some(Mount::Writable | Mount::Anchor | Mount::Writing(_)) => Enclosure::Writable,
            // Writes go to the layer, so no path below can be moved away from its cover.
            Some(Mount::Kept | Mount::Reading(_) | Mount::Layered(_)) => Enclosure::Kept,
            Some(Mount::Private | Mount::CoverDirectory | Mount::CoverFile | Mount::Link(_)) => {
                Enclosure::Empty
            }
        }
    }
}

impl PlaceholderKind {
    /// Returns the mount that covers a placeholder of this kind.
    fn cover(self) -> Mount {
        match self {
            Self::Directory => Mount::CoverDirectory,
            Self::File => Mount::CoverFile,
        }
    }
}

/// Returns the kind of placeholder for a missing path; a trailing slash means a directory.
fn kind_of(path: &Path) -> PlaceholderKind {
    if path.as_os_str().as_bytes().ends_with(b"/") {
        PlaceholderKind::Directory
    } else {
        PlaceholderKind::File
    }
}

/// Returns the names of a path below the first one that is missing.
fn missing_names(path: &Path) -> Vec<OsString> {
    let mut names = Vec::new();
    let mut above = path;
    while let (Some(name), Some(parent)) = (above.file_name(), above.parent()) {
        match parent.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => names.push(name.to_owned()),
            Ok(_) | Err(_) => break,
        }
        above = parent;
    }
    names.reverse();
    names
}

/// Returns the real location of a path to hide or protect, with links in its parents resolved. If parents are missing,
/// returns the first missing one: while it is covered, nothing below can be created. Fails if a parent is
/// inaccessible.
fn locate(path: &Path) -> io::Result<(PathBuf, PlaceholderKind)> {
    let mut kind = kind_of(path);
    let mut place: PathBuf = path.components().collect();
    loop {
        let (Some(name), Some(parent)) = (place.file_name(), place.parent()) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the path names no entry of a directory",
            ));
        };
        match parent.canonicalize() {
            Ok(real) => return Ok((real.join(name), kind)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                place = parent.to_owned();
                kind = PlaceholderKind::Directory;
            }
            Err(error) => return Err(error),
        }
    }
}
