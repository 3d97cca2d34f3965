//! What a confined program sees of the file system: which places are private, writable or hidden.
//!
//! How it works: the world is mounted read-only; over it come, parents before their children, empty private
//! places, the writable directories, and covers over what must not be seen. A cover below a writable
//! directory would be useless if the program could rename the directory around it, so each directory
//! between the two is mounted onto itself, which makes it immovable.
//!
//! What always holds: a path that does not exist is covered too where it could come to exist, that is below
//! a writable directory. The mounting leaves an empty placeholder there; it is removed after the run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crucible_host::env::Environment;

use crate::directory::Directory;
use crate::error::{PathProblem, SandboxError};
use crate::masks::{Placeholders, Presence};
use crate::spawn::{Network, Profile};
use crate::wire::Place;

/// Empty, writable, gone after the run.
const PRIVATE: [&str; 2] = ["/tmp", "/var/tmp"];
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
/// Never handed out as writable, nor anything below them.
const NEVER_WRITABLE: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Secrets below a home directory.
const HOME_SECRETS: [&str; 38] = [
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".git-credentials",
    ".docker",
    ".kube",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/git/credentials",
    ".config/gcloud",
    ".config/op",
    ".config/rclone",
    ".config/containers",
    ".config/doctl",
    ".config/configstore",
    ".local/share/keyrings",
    ".password-store",
    ".terraform.d",
    ".vault-token",
    ".gem/credentials",
    ".m2/settings-security.xml",
    ".pgpass",
    ".my.cnf",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".bash_history",
    ".zsh_history",
    ".python_history",
];
/// Secrets of the machine, which the superuser could read.
const MACHINE_SECRETS: [&str; 9] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssl/private",
    "/etc/ssh",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/var/lib/docker",
];

/// One mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// The place itself as it is around it, so that it cannot be moved.
    Anchor,
}

/// Every mount over the read-only world, by its path.
#[derive(Debug)]
pub(crate) struct Layout {
    mounts: BTreeMap<PathBuf, Mount>,
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
}

impl Layout {
    /// Plans the mounts of one run.
    pub(crate) fn new(profile: &Profile, cwd: &Directory, env: &Environment) -> Result<Self, SandboxError> {
        let mut layout =
            Self { mounts: BTreeMap::new(), writable: Vec::new(), placeholders: Placeholders::default() };
        for place in PRIVATE {
            layout.add_empty(Path::new(place), Mount::Private);
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
        for path in secrets(env) {
            match layout.add_mask(&path) {
                // What the caller hands out as writable is meant to be seen.
                Ok(()) | Err(PathProblem::Contradiction) => {}
                Err(problem) => return Err(SandboxError::Masked { path, problem }),
            }
        }
        for path in &profile.masked {
            layout.add_mask(path).map_err(|problem| SandboxError::Masked { path: path.clone(), problem })?;
        }
        layout.show_working_directory(cwd)?;
        Ok(layout)
    }

    /// The options of bubblewrap that build this, after those that mount the world.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        for (path, mount) in &self.mounts {
            let (option, source): (&str, Option<&Path>) = match mount {
                Mount::Private | Mount::CoverDirectory => ("--tmpfs", None),
                Mount::CoverFile => ("--ro-bind", Some(Path::new("/dev/null"))),
                Mount::Writable | Mount::Anchor => ("--bind", Some(path)),
                Mount::Visible => ("--ro-bind", Some(path)),
            };
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
        let refuse = |problem| SandboxError::Writable { path: path.to_owned(), problem };
        let directory = Directory::open(path).map_err(refuse)?;
        let system = NEVER_WRITABLE.iter().any(|never| directory.path.starts_with(never));
        if system || directory.path == Path::new("/") {
            return Err(refuse(PathProblem::System));
        }
        let place = Place { path: directory.path.clone().into_os_string(), identity: directory.identity };
        self.writable.push(place);
        self.mounts.insert(directory.path, Mount::Writable);
        Ok(())
    }

    fn add_mask(&mut self, path: &Path) -> Result<(), PathProblem> {
        if !path.is_absolute() {
            return Err(PathProblem::Relative);
        }
        let Some((place, kind)) = locate(path) else {
            return Ok(());
        };
        match self.mounts.get(&place) {
            Some(Mount::Writable) => return Err(PathProblem::Contradiction),
            Some(Mount::Visible | Mount::Anchor) | None => {}
            Some(Mount::Private | Mount::CoverDirectory | Mount::CoverFile) => return Ok(()),
        }
        let around = self.around(&place);
        if around == Around::Empty {
            return Ok(());
        }
        let presence = match around {
            Around::Writable => self.placeholders.hold(&place),
            Around::World | Around::Empty => Presence::Real,
        };
        let cover = match (place.symlink_metadata(), around) {
            (Ok(meta), _) if meta.is_dir() => Mount::CoverDirectory,
            (Ok(meta), Around::Writable) if meta.is_symlink() => return Err(PathProblem::IsLink),
            (Ok(meta), _) if meta.is_symlink() => {
                // Nobody inside can change the link, so covering what it names is enough.
                return place.canonicalize().map_or(Ok(()), |target| self.add_mask(&target));
            }
            (Ok(_), _) => Mount::CoverFile,
            (Err(_), _) => match (presence, kind) {
                // Nobody inside can create it.
                (Presence::Real, _) => return Ok(()),
                (Presence::Held, Kind::Directory) => Mount::CoverDirectory,
                (Presence::Held, Kind::File) => Mount::CoverFile,
            },
        };
        for between in place.ancestors().skip(1) {
            if around != Around::Writable || self.mounts.get(between) == Some(&Mount::Writable) {
                break;
            }
            self.mounts.entry(between.to_owned()).or_insert(Mount::Anchor);
        }
        self.mounts.insert(place, cover);
        Ok(())
    }

    /// A working directory that would be hidden is shown read-only; one that is itself replaced by an
    /// empty place cannot be shown.
    fn show_working_directory(&mut self, cwd: &Directory) -> Result<(), SandboxError> {
        match self.mounts.get(&cwd.path) {
            Some(Mount::Private | Mount::CoverDirectory | Mount::CoverFile) => {
                Err(SandboxError::WorkingDirectory { path: cwd.path.clone(), problem: PathProblem::Hidden })
            }
            Some(Mount::Writable | Mount::Visible | Mount::Anchor) => Ok(()),
            None => {
                if self.around(&cwd.path) == Around::Empty {
                    self.mounts.insert(cwd.path.clone(), Mount::Visible);
                }
                Ok(())
            }
        }
    }

    /// What the nearest mount above `path` makes of its surroundings.
    fn around(&self, path: &Path) -> Around {
        match path.ancestors().skip(1).find_map(|above| self.mounts.get(above)) {
            None | Some(Mount::Visible) => Around::World,
            Some(Mount::Writable | Mount::Anchor) => Around::Writable,
            Some(Mount::Private | Mount::CoverDirectory | Mount::CoverFile) => Around::Empty,
        }
    }
}

/// What a cover over a path that does not exist looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
}

/// Where a path to hide really is: links on the way resolved, and where directories on the way are missing,
/// the first missing one instead, because as long as it is covered nothing below can come to exist. Nothing
/// where the way is barred anyhow.
fn locate(path: &Path) -> Option<(PathBuf, Kind)> {
    let mut kind = if path.as_os_str().as_bytes().ends_with(b"/") { Kind::Directory } else { Kind::File };
    let mut place: PathBuf = path.components().collect();
    loop {
        let name = place.file_name()?.to_owned();
        let parent = place.parent()?.to_owned();
        match parent.canonicalize() {
            Ok(real) => return Some((real.join(name), kind)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                place = parent;
                kind = Kind::Directory;
            }
            Err(_) => return None,
        }
    }
}

/// The places that are always hidden.
fn secrets(env: &Environment) -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = env.home().into_iter().collect();
    if rustix::process::geteuid().is_root() {
        homes.push(PathBuf::from("/root"));
    }
    let mut places: Vec<PathBuf> = MACHINE_SECRETS.iter().map(PathBuf::from).collect();
    for home in homes.iter().filter(|home| home.is_absolute()) {
        places.extend(HOME_SECRETS.iter().map(|name| home.join(name)));
    }
    let named = |name: &str| env.get_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(cargo) = named("CARGO_HOME") {
        places.extend([cargo.join("credentials"), cargo.join("credentials.toml")]);
    }
    places.extend(
        ["GNUPGHOME", "GH_CONFIG_DIR", "DOCKER_CONFIG", "CRUCIBLE_RUNS_ROOT"]
            .iter()
            .filter_map(|name| named(name)),
    );
    let data = named("XDG_DATA_HOME").or_else(|| env.home().map(|home| home.join(".local/share")));
    places.extend(named("CRUCIBLE_HOME").or_else(|| data.map(|data| data.join("crucible"))));
    // Links among them must not hide one behind another: the shortest first.
    places.sort();
    places.dedup();
    places
}
