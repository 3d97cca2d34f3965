//! What a confined program sees of the file system: which places are private, writable, shown or hidden.
//!
//! How it works: the world is mounted read-only; over it come, parents before their children, empty private
//! places, the writable directories, covers over every home directory and all else that must not be seen,
//! and in them the places of tools, read-only. Without mounts the same plan is a list of what may be read. A cover below a writable
//! directory would be useless if the program could rename the directory around it, so each directory
//! between the two is mounted onto itself, which makes it immovable.
//!
//! What always holds: a path that does not exist is covered too where it could come to exist, that is below
//! a writable directory. The mounting leaves an empty placeholder there; it is removed after the run. No link
//! in a writable directory, where its author may be hostile, decides about what is shown.

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
use crate::masks::{Kind, Placeholders, Presence};
use crate::mounts::{self, MountContent, MountTable};
use crate::plan::Target;
use crate::sockets;
use crate::spawn::{Network, Profile};
use crate::tools;
use crate::wire::{Place, Surroundings};

/// Empty, writable, gone after the run.
pub(crate) const PRIVATE: [&str; 2] = ["/tmp", "/var/tmp"];
/// Memory that processes share by name: private too, in the devices' own place.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";
/// Where sockets of the machine's services lie; empty inside.
const RUNTIME: [&str; 2] = ["/run", "/var/run"];
/// What is needed of them where the network is.
const RESOLVER: [&str; 3] = [
    "/run/systemd/resolve/stub-resolv.conf",
    "/run/systemd/resolve/resolv.conf",
    "/run/resolvconf/resolv.conf",
];
/// Where some systems keep their programs.
const SYSTEM_PROGRAMS: [&str; 2] = ["/run/current-system", "/run/opengl-driver"];
/// Where the memory for private layers is mounted: the first of them that nothing needed lies in.
const LAYERS: [&str; 4] = ["/var/tmp", "/mnt", "/media", "/tmp"];
/// Devices are allowed one by one where nothing is mounted over them.
const DEVICES: &str = "/dev";
/// Never handed out as writable, nor anything below them.
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
    /// The place itself, writable.
    Writable,
    /// The place itself, read-only.
    Visible,
    /// The place itself, read-only in a writable directory.
    Kept,
    /// A symbolic link in an empty place to where it leads in the end.
    Link(PathBuf),
    /// The place itself as it is around it, so that it cannot be moved.
    Anchor,
    /// This directory of the machine, writable.
    Writing(PathBuf),
    /// This directory of the machine, read-only.
    Reading(PathBuf),
    /// This directory of the machine with a private layer over it, or read-only.
    Layered(PathBuf),
}

impl Mount {
    /// Whether something of the machine is out of sight because of it.
    fn hides(&self) -> bool {
        matches!(self, Self::Private | Self::CoverDirectory | Self::CoverFile)
    }
}

/// Every mount over the read-only world, by its path.
#[derive(Debug)]
pub(crate) struct Layout {
    mounts: BTreeMap<PathBuf, Mount>,
    /// What the machine has elsewhere.
    table: MountTable,
    /// The working directory and the program as they are called inside.
    pub(crate) cwd: PathBuf,
    pub(crate) program: PathBuf,
    /// The writable directories, as the inner stage must find them.
    pub(crate) writable: Vec<Place>,
    /// What the mounting leaves behind in them.
    pub(crate) placeholders: Placeholders,
}

/// Which surroundings a path has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    /// Below the read-only world.
    World,
    /// Below an empty place: nothing of the machine is seen there.
    Empty,
    /// Below a writable directory.
    Writable,
    /// Below what stays as it is in a writable directory: nobody inside can change it, but who wrote it may be hostile.
    Kept,
}

impl Layout {
    /// Plans the mounts of one run of `target`, which is given the variables `given`.
    pub(crate) fn new(
        profile: &Profile,
        target: &Target,
        given: &[(OsString, OsString)],
        surroundings: Surroundings,
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
                (Surroundings::Namespaces, _) => layout
                    .add_mount(mount, &profile.identity.home, env)
                    .map_err(|problem| SandboxError::Mounted {
                        path: mount.target.clone(),
                        problem,
                    })?,
                (Surroundings::Machine, Some(source)) => layout.add_writable(source)?,
                (Surroundings::Machine, None) => {}
            }
        }
        layout.cwd = layout.table.inside(&target.cwd.path);
        layout.program = layout.table.inside(&target.program);
        // Before the masks: below what nobody can change they need no placeholder.
        for path in &profile.read_only {
            layout
                .add_read_only(path)
                .map_err(|problem| SandboxError::ReadOnly {
                    path: path.clone(),
                    problem,
                })?;
        }
        layout.add_own_masks(hidden::homes(env))?;
        for place in tools::places(env, given, &layout.program) {
            layout.show(&place);
        }
        // Before the secrets, so that those in a working directory are covered.
        layout.show(&layout.cwd.clone());
        layout.add_own_masks(hidden::secrets(env))?;
        layout.add_own_masks(sockets::of_services())?;
        if surroundings == Surroundings::Namespaces {
            layout.add_own_masks(hidden::kernel_secrets())?;
            let sockets = sockets::of_directories(&layout.handed_out());
            layout.add_own_masks(
                sockets
                    .iter()
                    .map(|path| layout.table.inside(path))
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

    /// The directories that are to have a private layer, in the order of [`Layout::arguments`].
    pub(crate) fn layered(&self) -> Vec<&Path> {
        self.mounts
            .values()
            .filter_map(|mount| match mount {
                Mount::Layered(lower) => Some(lower.as_path()),
                _ => None,
            })
            .collect()
    }

    /// A directory over which something may be mounted before anything else is: nothing that this plan shows, and none of
    /// `others`, lies in it.
    pub(crate) fn layers_place(&self, others: &[&Path]) -> Option<&'static Path> {
        let holds = |place: &Path, path: &Path| path != place && path.starts_with(place);
        let is_free = |place: &&Path| {
            let mut shown = self.mounts.keys();
            place.is_dir()
                && !others.iter().any(|path| holds(place, path))
                && !shown.any(|path| holds(place, path) || holds(place, &self.table.outside(path)))
        };
        LAYERS.into_iter().map(Path::new).find(is_free)
    }

    /// The options of bubblewrap that build this, after those that mount the world.
    /// `bounds` gives the private places among them a size; private layers lie at `layers`.
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
                    ("--bind", Some(self.table.outside(path)))
                }
                Mount::Visible | Mount::Kept | Mount::Reading(_) | Mount::Layered(_) => {
                    ("--ro-bind", Some(self.table.outside(path)))
                }
            };
            if *mount == Mount::Private {
                words.extend(bounds(path));
            }
            words.push(option.into());
            words.extend(source.map(OsString::from));
            words.push(path.into());
        }
        // Only now: mounting below a cover needs it to be writable.
        for (path, mount) in &self.mounts {
            if *mount == Mount::CoverDirectory {
                words.extend(["--remount-ro".into(), path.into()]);
            }
        }
        words
    }

    /// What may be read where nothing can be mounted: the world without what is hidden. A directory that
    /// holds something hidden is not in the list, but all else in it is.
    pub(crate) fn readable(&self) -> Vec<OsString> {
        let mut places = Vec::new();
        self.collect_readable(Path::new("/"), &mut places);
        for (path, mount) in &self.mounts {
            match mount {
                // What is covered in it stays so.
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

    /// Whether something at or below `directory` is out of sight.
    fn hides_below(&self, directory: &Path) -> bool {
        let below = self.mounts.range(directory.to_owned()..);
        below
            .take_while(|(path, _)| path.starts_with(directory))
            .any(|(_, mount)| mount.hides())
    }

    fn collect_below(&self, directory: &Path, places: &mut Vec<OsString>) {
        // What cannot be listed cannot be read either.
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && path != Path::new(DEVICES) => {
                    self.collect_readable(&path, places);
                }
                Ok(kind) if kind.is_file() && !self.mounts.contains_key(&path) => {
                    places.push(path.into())
                }
                // A link shows nothing by itself: what it leads to is decided where that lies.
                _ => {}
            }
        }
    }

    /// The machine's directories that the program may write to.
    fn handed_out(&self) -> Vec<PathBuf> {
        let source = |(path, mount): (&PathBuf, &Mount)| match mount {
            Mount::Writable => Some(path.clone()),
            Mount::Writing(source) => Some(source.clone()),
            _ => None,
        };
        self.mounts.iter().filter_map(source).collect()
    }

    /// Masks places of our own list.
    fn add_own_masks(&mut self, places: Vec<PathBuf>) -> Result<(), SandboxError> {
        for path in places {
            match self.add_mask(&path) {
                // What the caller hands out as writable is meant to be seen.
                Ok(()) | Err(PathProblem::Contradiction) => {}
                Err(problem) => return Err(SandboxError::Masked { path, problem }),
            }
        }
        Ok(())
    }

    /// Shows `path` read-only where it would be hidden, with the links that lead to it. What is not there is
    /// not shown, and neither is what a link in a writable directory leads to.
    fn show(&mut self, path: &Path) {
        let mut at = PathBuf::new();
        for part in path.components() {
            if part == Component::ParentDir {
                return;
            }
            let next = at.join(part);
            if self.table.around(&next).is_some() {
                // It is there as the mount shows it.
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
                Around::Writable | Around::Kept => return,
                Around::Empty => {
                    self.mounts.entry(next).or_insert(Mount::Link(real.clone()));
                }
                Around::World => {}
            }
            at = real;
        }
        if self.around(&at) == Around::Empty {
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
        let place = Place {
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
        let real = self.table.outside(&place);
        if around != Around::Writable && real.is_symlink() {
            // Nobody inside can change the link, so covering what it names is enough.
            let named = real.canonicalize().map(|target| self.table.inside(&target));
            return named.map_or(Ok(()), |target| self.add_mask(&target));
        }
        if around == Around::Empty && !self.mounts.contains_key(&place) {
            return Ok(());
        }
        let presence = match around {
            Around::Writable => self.placeholders.hold(&real, kind),
            Around::World | Around::Empty | Around::Kept => Presence::Real,
        };
        let cover = match (presence, real.symlink_metadata()) {
            (Presence::Held(kind), _) => kind.cover(),
            (Presence::Real, Ok(meta)) if meta.is_dir() => Mount::CoverDirectory,
            (Presence::Real, Ok(meta)) if meta.is_symlink() && around == Around::Writable => {
                return Err(PathProblem::IsLink);
            }
            (Presence::Real, Ok(_)) => Mount::CoverFile,
            // Nobody inside can create it.
            (Presence::Real, Err(_)) => return Ok(()),
        };
        if around == Around::Writable {
            self.anchor(&place);
        }
        self.mounts.insert(place, cover);
        Ok(())
    }

    /// Keeps a path as it is. Only in a writable directory that takes anything: elsewhere nothing can be written.
    fn add_read_only(&mut self, path: &Path) -> Result<(), PathProblem> {
        if !path.is_absolute() {
            return Err(PathProblem::Relative);
        }
        // Where the way is barred to us, who runs inside may be able to clear it.
        let (place, kind) = self.locate(path)?;
        if matches!(
            self.mounts.get(&place),
            Some(Mount::Writable | Mount::Writing(_))
        ) {
            return Err(PathProblem::Contradiction);
        }
        if self.around(&place) != Around::Writable {
            return Ok(());
        }
        let (place, kind) = self.with_missing_parents(place, kind, path);
        let real = self.table.outside(&place);
        let mount = match self.placeholders.hold(&real, kind) {
            Presence::Held(kind) => kind.cover(),
            Presence::Real if real.is_symlink() => return Err(PathProblem::IsLink),
            Presence::Real => Mount::Kept,
        };
        self.anchor(&place);
        self.mounts.insert(place, mount);
        Ok(())
    }

    /// Creates the missing directories above `path`, of which `place` is the first, so that other files can be created in them.
    /// Returns where the path itself is then.
    fn with_missing_parents(&mut self, place: PathBuf, kind: Kind, path: &Path) -> (PathBuf, Kind) {
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
            let real = self.table.outside(&place);
            // A placeholder of another run may be a file.
            if self.placeholders.hold(&real, Kind::Directory) != Presence::Held(Kind::Directory) {
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

    /// Makes each directory between `place` and the writable directory around it immovable.
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

    /// A working directory that would be hidden is shown read-only; one that is itself replaced by an
    /// empty place cannot be shown.
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
                if self.around(&self.cwd) == Around::Empty {
                    self.mounts.insert(self.cwd.clone(), Mount::Visible);
                }
                Ok(())
            }
        }
    }

    /// Puts a directory of the machine, or an empty one, over a path. Nothing else is planned at or above it but what hides.
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
                self.writable.push(Place {
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

    /// The same as [`locate`], for what a mount shows.
    fn locate(&self, path: &Path) -> io::Result<(PathBuf, Kind)> {
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

    /// What the nearest mount above `path` makes of its surroundings.
    fn around(&self, path: &Path) -> Around {
        match path
            .ancestors()
            .skip(1)
            .find_map(|above| self.mounts.get(above))
        {
            None | Some(Mount::Visible) => Around::World,
            Some(Mount::Writable | Mount::Anchor | Mount::Writing(_)) => Around::Writable,
            // What a layer takes lies over what is covered: nothing below moves away from its cover.
            Some(Mount::Kept | Mount::Reading(_) | Mount::Layered(_)) => Around::Kept,
            Some(Mount::Private | Mount::CoverDirectory | Mount::CoverFile | Mount::Link(_)) => {
                Around::Empty
            }
        }
    }
}

impl Kind {
    /// What is mounted over a placeholder of this kind.
    fn cover(self) -> Mount {
        match self {
            Self::Directory => Mount::CoverDirectory,
            Self::File => Mount::CoverFile,
        }
    }
}

/// Which placeholder is made for a path that does not exist.
fn kind_of(path: &Path) -> Kind {
    if path.as_os_str().as_bytes().ends_with(b"/") {
        Kind::Directory
    } else {
        Kind::File
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

/// Where a path to hide or to keep really is: links on the way resolved, and where directories on the way are missing,
/// the first missing one instead, because as long as it is covered nothing below can come to exist. An error
/// where the way is barred.
fn locate(path: &Path) -> io::Result<(PathBuf, Kind)> {
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
                kind = Kind::Directory;
            }
            Err(error) => return Err(error),
        }
    }
}
