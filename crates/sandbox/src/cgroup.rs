//! A control group for one program and everything it starts: its memory and its processes are counted together.
//!
//! How it works: below the group of this process, or above it where that is allowed, an own group is made for each run. The child enters
//! it between its birth and its program, so nothing it starts is ever outside. Version 2 is looked for first; version 1 is used where the
//! two controllers are there. Where neither lets us make a group, limits hold for one process at a time (`inner::limits`).
//!
//! What always holds: no group but our own is changed, except that a group of our own may hand its controllers on; a group is
//! removed when its run is over, and one of a killed process by the next run.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags};

use crate::spawn::Cap;

/// What the names of our groups begin with.
const PREFIX: &str = "crucible-";
/// The file that lists the processes of a group, and takes new ones.
const MEMBERS: &str = "cgroup.procs";
/// The controllers that are needed.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// How often a group is tried to be removed: the kernel takes a moment to forget its dead.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// Tells groups of one process apart.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Where groups can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CgroupParents {
    /// One directory of version 2, or one for each controller of version 1.
    directories: Vec<(PathBuf, Version)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One(&'static str),
    Two,
}

/// The group of one run, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Group {
    directories: Vec<(PathBuf, Version)>,
    /// Where a child reports that it is in the group, and the child's end.
    report: (UnixStream, UnixStream),
}

/// What a child enters a group by.
#[derive(Debug, Default)]
pub(crate) struct CgroupEntries {
    /// Writing `0` to each of them adds the process that writes.
    pub(crate) files: Vec<OwnedFd>,
    /// Gets one byte from a child that has entered by all of them: its parent may look after its end.
    pub(crate) report: Option<OwnedFd>,
}

impl CgroupParents {
    /// Where this process can make groups, if it can anywhere.
    pub(crate) fn find() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let found =
            Self::of_version_two(&own, &mounts).or_else(|| Self::of_version_one(&own, &mounts))?;
        found
            .directories
            .iter()
            .for_each(|(directory, _)| sweep(directory));
        Some(found)
    }

    fn of_version_two(own: &str, mounts: &str) -> Option<Self> {
        let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
        let (mount, root) = mounted(mounts, "cgroup2", None)?;
        let current_dir = path_in_mount(&mount, &root, path)?;
        let above = current_dir
            .ancestors()
            .take_while(|at| at.starts_with(&mount));
        above
            .map(Path::to_owned)
            .find(|at| delegates_controllers(at, *at == current_dir))
            .map(|at| Self {
                directories: vec![(at, Version::Two)],
            })
    }

    fn of_version_one(own: &str, mounts: &str) -> Option<Self> {
        let directory = |controller: &'static str| {
            let path = own.lines().find_map(|line| {
                let (_, rest) = line.split_once(':')?;
                let (names, path) = rest.split_once(':')?;
                names
                    .split(',')
                    .any(|name| name == controller)
                    .then_some(path)
            })?;
            let (mount, root) = mounted(mounts, "cgroup", Some(controller))?;
            let current_dir = path_in_mount(&mount, &root, path)?;
            can_make(&current_dir).then_some((current_dir, Version::One(controller)))
        };
        let directories: Option<Vec<_>> = CONTROLLERS.into_iter().map(directory).collect();
        Some(Self {
            directories: directories?,
        })
    }

    /// A new group with these limits, where it can be made.
    pub(crate) fn group(&self, memory: Cap, processes: Cap) -> Option<Group> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let report = UnixStream::pair().ok()?;
        report.0.set_nonblocking(true).ok()?;
        let mut group = Group {
            directories: Vec::new(),
            report,
        };
        for (parent, version) in &self.directories {
            let directory = parent.join(&name);
            rustix::fs::mkdirat(CWD, &directory, Mode::from_raw_mode(0o755)).ok()?;
            group.directories.push((directory.clone(), *version));
            let limits = limits(*version, memory, processes);
            for (file, value, is_needed) in limits {
                // Swap is not everywhere counted.
                if write(&directory.join(file), &value).is_none() && is_needed {
                    return None;
                }
            }
        }
        Some(group)
    }
}

impl Group {
    /// Opens what a child enters it by.
    pub(crate) fn entries(&self) -> Option<CgroupEntries> {
        let door = |(directory, _): &(PathBuf, Version)| {
            let flags = OFlags::WRONLY | OFlags::CLOEXEC;
            rustix::fs::open(directory.join(MEMBERS), flags, Mode::empty()).ok()
        };
        let files: Option<Vec<OwnedFd>> = self.directories.iter().map(door).collect();
        Some(CgroupEntries {
            files: files?,
            report: Some(self.report.1.try_clone().ok()?.into()),
        })
    }

    /// Returns whether the child whose program has started entered it. It may be gone since.
    pub(crate) fn was_entered(&self) -> bool {
        rustix::io::read(&self.report.0, &mut [0; 1]) == Ok(1)
    }

    /// Whether the kernel ended a process in it because the memory was used up.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.directories.iter().any(|(directory, version)| {
            let file = match version {
                Version::Two => "memory.events",
                Version::One("memory") => "memory.oom_control",
                Version::One(_) => return false,
            };
            let events = fs::read_to_string(directory.join(file)).unwrap_or_default();
            events.lines().any(|line| {
                line.strip_prefix("oom_kill ")
                    .is_some_and(|count| count.trim() != "0")
            })
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for (directory, _) in &self.directories {
            for _ in 0..TRIES {
                // Who is left in it keeps it; the next run removes it.
                if fs::remove_dir(directory).is_ok() || !directory.exists() {
                    break;
                }
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// The files of a group with their values, and whether each must be there.
fn limits(version: Version, memory: Cap, processes: Cap) -> Vec<(&'static str, String, bool)> {
    let mut limits = Vec::new();
    if let Cap::At(most) = memory {
        match version {
            Version::Two => {
                limits.push(("memory.max", most.to_string(), true));
                limits.push(("memory.swap.max", "0".to_owned(), false));
            }
            Version::One("memory") => {
                limits.push(("memory.limit_in_bytes", most.to_string(), true));
                limits.push(("memory.memsw.limit_in_bytes", most.to_string(), false));
            }
            Version::One(_) => {}
        }
    }
    if let Cap::At(most) = processes
        && version != Version::One("memory")
    {
        limits.push(("pids.max", most.to_string(), true));
    }
    limits
}

/// Where a hierarchy is mounted, and which of its groups that is.
fn mounted(mounts: &str, kind: &str, controller: Option<&str>) -> Option<(PathBuf, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (place, source) = line.split_once(" - ")?;
        let mut source = source.split(' ');
        let is_of_kind = source.next() == Some(kind);
        let options = source.nth(1).unwrap_or_default();
        let has =
            controller.is_none_or(|requested| options.split(',').any(|option| option == requested));
        let mut place = place.split(' ').skip(3);
        let (root, mount) = (place.next()?, place.next()?);
        (is_of_kind && has).then(|| (PathBuf::from(mount), PathBuf::from(root)))
    })
}

/// The directory of the group `path` in a hierarchy of which `root` is mounted at `mount`.
fn path_in_mount(mount: &Path, root: &Path, path: &str) -> Option<PathBuf> {
    let inside = Path::new(path).strip_prefix(root).ok()?;
    Some(mount.join(inside))
}

/// Whether groups made in this group of version 2 have the controllers, and a process of ours may go there.
fn delegates_controllers(group: &Path, is_own: bool) -> bool {
    let lists = |file: &str| {
        let listed = fs::read_to_string(group.join(file)).unwrap_or_default();
        CONTROLLERS
            .iter()
            .all(|requested| listed.split_whitespace().any(|name| name == *requested))
    };
    if !lists("cgroup.subtree_control") {
        // Only of our own, and refused where it has processes, unless it is the topmost.
        let is_delegated = is_own
            && lists("cgroup.controllers")
            && write(&group.join("cgroup.subtree_control"), "+memory +pids").is_some();
        if !is_delegated {
            return false;
        }
    }
    can_make(group)
}

/// Whether we may make groups here and move our processes below it.
fn can_make(group: &Path) -> bool {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::open(group.join(MEMBERS), flags, Mode::empty()).is_ok()
        && rustix::fs::access(group, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Removes groups of processes that are gone.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok());
        let is_alive = |owner: u32| Path::new("/proc").join(owner.to_string()).exists();
        if owner.is_some_and(|owner: u32| !is_alive(owner)) {
            // One that holds a process stays.
            let _stays = fs::remove_dir(entry.path());
        }
    }
}

fn write(file: &Path, value: &str) -> Option<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(file, flags, Mode::empty()).ok()?;
    (rustix::io::write(&file, value.as_bytes()).ok()? == value.len()).then_some(())
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests lay out a hierarchy by hand"
)]
mod tests {
    use super::*;

    /// A directory that looks like a hierarchy of version 2, and what the kernel says of it.
    struct Hierarchy {
        dir: tempfile::TempDir,
    }

    impl Hierarchy {
        fn new() -> Self {
            Self {
                dir: tempfile::tempdir().unwrap(),
            }
        }

        fn group(&self, path: &str, controllers: &str, handed_on: &str) {
            let group = self.dir.path().join(path);
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("cgroup.controllers"), controllers).unwrap();
            fs::write(group.join("cgroup.subtree_control"), handed_on).unwrap();
            fs::write(group.join(MEMBERS), "").unwrap();
        }

        fn found(&self, own: &str) -> Option<String> {
            let mounts = format!(
                "30 23 0:26 / {} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
                self.dir.path().display()
            );
            let parents = CgroupParents::of_version_two(&format!("0::{own}\n"), &mounts)?;
            let [(at, Version::Two)] = parents.directories.as_slice() else {
                panic!("{parents:?}")
            };
            Some(
                at.strip_prefix(self.dir.path())
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned(),
            )
        }
    }

    #[test]
    fn nearest_group_with_delegated_controllers_is_used() {
        let hierarchy = Hierarchy::new();
        hierarchy.group("", "cpu memory pids", "cpu memory pids");
        hierarchy.group("user", "memory pids", "memory pids");
        hierarchy.group("user/session", "memory", "");
        assert_eq!(hierarchy.found("/user/session").as_deref(), Some("user"));
        // Its own, where it can be told to.
        hierarchy.group("user/delegated", "memory pids", "");
        assert_eq!(
            hierarchy.found("/user/delegated").as_deref(),
            Some("user/delegated")
        );
        hierarchy.group("alone", "", "");
        fs::write(hierarchy.dir.path().join("cgroup.subtree_control"), "cpu").unwrap();
        fs::write(hierarchy.dir.path().join("cgroup.controllers"), "cpu").unwrap();
        assert_eq!(hierarchy.found("/alone"), None);
        assert_eq!(hierarchy.found("/elsewhere/not/mounted"), None);
    }

    #[test]
    fn limits_of_each_version() {
        let names = |version, memory, processes| -> Vec<&str> {
            limits(version, memory, processes)
                .into_iter()
                .map(|(file, ..)| file)
                .collect()
        };
        let (some, none) = (Cap::At(5), Cap::Unlimited);
        assert_eq!(
            names(Version::Two, some, some),
            ["memory.max", "memory.swap.max", "pids.max"]
        );
        assert_eq!(names(Version::Two, none, some), ["pids.max"]);
        let one = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"];
        assert_eq!(names(Version::One("memory"), some, some), one);
        assert_eq!(names(Version::One("pids"), some, some), ["pids.max"]);
        assert_eq!(names(Version::One("pids"), some, none), [""; 0]);
    }

    #[test]
    fn mounts_of_each_version_are_found() {
        let mounts = "35 30 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
            36 30 0:32 /a /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
            37 30 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let place = |kind, controller| mounted(mounts, kind, controller);
        let expected = |mount: &str, root: &str| Some((PathBuf::from(mount), PathBuf::from(root)));
        assert_eq!(
            place("cgroup", Some("memory")),
            expected("/sys/fs/cgroup/memory", "/")
        );
        assert_eq!(
            place("cgroup", Some("pids")),
            expected("/sys/fs/cgroup/pids", "/a")
        );
        assert_eq!(place("cgroup", Some("cpu")), None);
        assert_eq!(
            place("cgroup2", None),
            expected("/sys/fs/cgroup/unified", "/")
        );
        assert_eq!(
            path_in_mount(Path::new("/m"), Path::new("/a"), "/a/b"),
            Some(PathBuf::from("/m/b"))
        );
        assert_eq!(path_in_mount(Path::new("/m"), Path::new("/a"), "/b"), None);
    }
}
