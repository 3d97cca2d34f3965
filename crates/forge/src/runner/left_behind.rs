//! Finds residue of a run: new or changed files that other programs load automatically, or that look like secrets.
//!
//! A hook of a new `.git`, a `conftest.py`, an `.env` or a program in a writable directory affects the next user of that
//! directory. The directory is scanned before and after the run, and new or changed entries are reported. For a skill, each entry
//! is reported. For other commands, the output of a program in its own directory is reported once per directory.
//!
//! Invariants: nothing is removed or read, and an unchanged entry is never reported.

mod changed;
mod run_by_git;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crucible_host::fs::FsError;
use crucible_repo::{is_dot_git, is_git_directory, is_git_entry};
use serde::Serialize;

use super::RunnerError;
use super::call_sandbox::MAX_ENTRIES;
use crate::places::{PathSensitivity, PlaceKind, is_own, meaning};

/// The most reported entries after a skill.
const MAX_NAMED: usize = 20;
/// The most reported entries after another command.
const MAX_LISTED: usize = 10_000;
/// The most scanned entries for a command that is not a skill.
const MAX_SURVEYED: usize = 500_000;
/// More entries than this in one program directory, or directories of one name, are reported together.
const MAX_SIMILAR: usize = 3;
/// Files that mark directories with program output: caches, builds, virtual environments.
const MADE_BY_PROGRAMS: [&str; 3] = ["CACHEDIR.TAG", "pyvenv.cfg", "CMakeCache.txt"];
/// Python's directory of compiled files.
const CACHE: &str = "__pycache__";
/// Large parts of a git directory that start no program.
const GIT_DATA: [&str; 3] = ["objects", "refs", "logs"];
/// Parts of a git directory that decide which programs git starts and which objects it uses.
const GIT_ORDERS: [&str; 6] = [
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "attributes",
    "alternates",
];
/// The directory with the list of alternate object stores.
const ALTERNATES: &str = "objects/info";
/// The execute bits of a mode.
const EXECUTABLE: u32 = 0o111;
/// The mode bits of a directory that let everyone write, or change the owner of new files.
const LOOSE: u32 = 0o7002;
/// The permission bits of a mode.
const MODE: u32 = 0o7777;

/// A reported entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftBehind {
    /// The path, relative to the scanned directory.
    pub path: String,
    /// Why it matters.
    pub why: ResidueReason,
    /// The number of paths that this entry represents: itself, or more below it or of its name.
    pub paths: usize,
}

impl LeftBehind {
    /// Returns the rank by the likelihood that others run or load it, most likely first.
    fn rank(&self) -> u8 {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        match self.why {
            ResidueReason::RunByGit => 0,
            ResidueReason::Obeyed if name.starts_with('.') && !is_dot_git(name.as_ref()) => 1,
            ResidueReason::Obeyed => 0,
            ResidueReason::NamedSecret
            | ResidueReason::Mode
            | ResidueReason::Special
            | ResidueReason::Unseen => 2,
            ResidueReason::Executable | ResidueReason::More => 3,
        }
    }
}

/// Why an entry is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResidueReason {
    /// git runs or obeys it, as a setting says or because it is in a place of git.
    RunByGit,
    /// Other programs load files of this name.
    Obeyed,
    /// It has the name of a secret.
    NamedSecret,
    /// It is executable.
    Executable,
    /// A directory with changed permissions.
    Mode,
    /// Neither a file nor a directory.
    Special,
    /// There are more entries than are reported.
    More,
    /// It could not be read.
    Unseen,
}

impl ResidueReason {
    /// Returns whether the name of the entry is the reason.
    const fn is_by_name(self) -> bool {
        matches!(self, Self::Obeyed | Self::NamedSecret)
    }

    /// Returns the reason as text to print after the path.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RunByGit => "git runs this, or takes settings from it",
            Self::Obeyed => "other programs run a file of this name, or read commands from it",
            Self::NamedSecret => "it is named like a secret",
            Self::Executable => "it can be run",
            Self::Mode => "the permissions of this directory were changed",
            Self::Special => "it is neither a file nor a directory",
            Self::More => "there is more of the kind than is named",
            Self::Unseen => "it cannot be looked at",
        }
    }
}

/// Identifies an unchanged entry. The times of a directory change with its entries.
type Stamp = (u64, u64, i64, i64);

/// How changes in a directory are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    /// Each entry; an unreadable one is an error.
    Each,
    /// Program output once per directory; unreadable entries are skipped.
    Grouped,
}

/// A snapshot of directories before a command runs in them.
#[derive(Debug)]
pub(super) struct DirectoryState {
    root: PathBuf,
    places: Vec<PathBuf>,
    naming: Naming,
    most: usize,
    found: HashMap<PathBuf, Stamp>,
    /// The identity and mode of each directory.
    modes: HashMap<PathBuf, (u64, u32)>,
    /// Git directories, and files that point to one.
    repositories: Vec<PathBuf>,
    is_whole: bool,
}

impl DirectoryState {
    /// Scans `places` before a skill runs.
    pub(super) fn look(root: &Path, places: &[PathBuf]) -> Result<Self, RunnerError> {
        let mut state = Self::new(root, places, Naming::Each, MAX_ENTRIES);
        let mut seen = 0;
        let mut open = state.places.clone();
        while let Some(at) = open.pop() {
            for (name, path, meta) in entries(&at, &mut seen, state.most)? {
                if meta.is_dir() && !is_own(&name) {
                    state.modes.insert(path.clone(), identity_and_mode(&meta));
                    open.push(path.clone());
                }
                state.found.insert(path, stamp(&meta));
            }
        }
        Ok(state)
    }

    /// Scans these directories before a command runs that is not a skill. Names are judged and reported relative to `root`.
    /// Skips directories that cannot be listed; [`Self::is_whole`] returns whether all entries fit the limit.
    pub(super) fn survey(root: &Path, directories: &[PathBuf]) -> Self {
        let mut state = Self::new(root, directories, Naming::Grouped, MAX_SURVEYED);
        let mut seen = 0;
        let mut open = state.places.clone();
        while let Some(at) = open.pop() {
            let entries = match entries(&at, &mut seen, state.most) {
                Ok(entries) => entries,
                Err(RunnerError::TooManyPlaces { .. }) => {
                    state.is_whole = false;
                    break;
                }
                Err(_) => continue,
            };
            let is_repository = is_repository(&at, &entries);
            if is_repository {
                state.keep_orders(&at, &mut seen);
                state.repositories.push(at);
            }
            for (name, path, meta) in entries {
                // A work tree may be in a git directory, beside the entries of git.
                if is_repository && is_git_entry(name.as_ref()) {
                    continue;
                }
                if is_dot_git(name.as_ref()) {
                    state.keep_orders(&path, &mut seen);
                    state.repositories.push(path.clone());
                } else if meta.is_dir() {
                    state.modes.insert(path.clone(), identity_and_mode(&meta));
                    open.push(path.clone());
                }
                state.found.insert(path, stamp(&meta));
            }
        }
        state
    }

    fn new(root: &Path, places: &[PathBuf], naming: Naming, most: usize) -> Self {
        let meta = |place: &PathBuf| {
            Some((
                place.clone(),
                identity_and_mode(&place.symlink_metadata().ok()?),
            ))
        };
        Self {
            root: root.to_owned(),
            places: places.to_vec(),
            naming,
            most,
            found: HashMap::new(),
            modes: places.iter().filter_map(meta).collect(),
            repositories: Vec::new(),
            is_whole: true,
        }
    }

    /// Records the files of a git directory that start programs.
    fn keep_orders(&mut self, git_dir: &Path, seen: &mut usize) {
        for (path, meta) in orders(git_dir, seen, self.most) {
            self.found.insert(path, stamp(&meta));
        }
    }

    /// Returns the git directories and the files that point to one: `.git` in any case, and repositories by their content.
    pub(super) fn repositories(&self) -> &[PathBuf] {
        &self.repositories
    }

    /// Returns the directory to which reported names are relative.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns whether all entries were scanned; otherwise the limit was reached.
    pub(super) const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns the new and changed entries that matter. Those in the paths of `guarded` do, because git runs or obeys them:
    /// it does not matter who changed them.
    pub(super) fn left_behind(&self, guarded: &BTreeSet<PathBuf>) -> Vec<LeftBehind> {
        let mut left = Left {
            each: Vec::new(),
            groups: Vec::new(),
        };
        let mut seen = 0;
        self.add_run_by_git(guarded, &mut left);
        let repositories: HashSet<&Path> = self.repositories.iter().map(PathBuf::as_path).collect();
        let mut links = Vec::new();
        let mut open: Vec<(PathBuf, Option<usize>)> = self
            .places
            .iter()
            .map(|place| (place.clone(), None))
            .collect();
        while let Some((at, mut group)) = open.pop() {
            if self.naming == Naming::Each && left.each.len() > MAX_NAMED {
                break;
            }
            if self.has_another_mode(&at) {
                left.push(group, self.residue_at(&at, ResidueReason::Mode));
            }
            let entries = match entries(&at, &mut seen, self.most) {
                Ok(entries) => entries,
                Err(RunnerError::Fs(_)) if self.naming == Naming::Grouped => {
                    // For example, its path is too long. The state of an existing one is unknown.
                    if !self.modes.contains_key(&at) {
                        left.push(group, self.residue_at(&at, ResidueReason::Unseen));
                    }
                    continue;
                }
                Err(_) => {
                    left.push(group, self.residue_at(&at, ResidueReason::Unseen));
                    if self.naming == Naming::Grouped {
                        break;
                    }
                    continue;
                }
            };
            let is_repository = is_repository(&at, &entries);
            let is_known = self.naming == Naming::Grouped && repositories.contains(at.as_path());
            if is_repository && is_known {
                self.changed_orders(&at, &mut seen, &mut left);
            } else if is_repository && self.has_new(&entries) {
                left.push(None, self.residue_at(&at, ResidueReason::Obeyed));
            }
            // If an existing directory became a repository, its entries are still reported.
            let hides_entries = is_repository && (is_known || !self.modes.contains_key(&at));
            if self.naming == Naming::Grouped
                && group.is_none()
                && self.is_of_a_program(&at, &entries)
            {
                left.groups
                    .push((self.residue_at(&at, ResidueReason::Obeyed), Vec::new()));
                group = Some(left.groups.len() - 1);
            }
            for (name, path, meta) in entries {
                if hides_entries && is_git_entry(name.as_ref()) {
                    continue;
                }
                let is_new = self.is_new(&path, &meta);
                if meta.is_symlink() && !is_new {
                    links.push(path.clone());
                }
                let why = is_new.then(|| self.reason(&path, &meta)).flatten();
                let is_entered = meta.is_dir() && self.naming == Naming::Grouped;
                match why {
                    // A repository is named wherever it is.
                    Some(why) if is_dot_git(name.as_ref()) => {
                        left.push(None, self.residue_at(&path, why))
                    }
                    None if is_entered && is_dot_git(name.as_ref()) => {
                        self.changed_orders(&path, &mut seen, &mut left);
                    }
                    Some(why) if !is_entered => left.push(group, self.residue_at(&path, why)),
                    _ if is_entered || meta.is_dir() && !is_own(&name) => open.push((path, group)),
                    _ => {}
                }
            }
        }
        for link in links {
            self.changed_behind(&link, &mut seen, &mut left);
        }
        left.sorted_entries(self.naming)
    }

    /// Reports what changed behind a link, by the name under which other programs find it. A directory is searched only
    /// if its name at the link has a meaning.
    fn changed_behind(&self, link: &Path, seen: &mut usize, left: &mut Left) {
        let Some((target, meta)) = self.target_of(link) else {
            return;
        };
        let mut report = |path: &Path, found: &Path, meta: &Metadata| {
            let why = self.reason(path, meta).filter(|why| why.is_by_name());
            if let Some(why) = why.filter(|_| self.is_new(found, meta)) {
                left.push(None, self.residue_at(path, why));
            }
        };
        if !meta.is_dir() {
            report(link, &target, &meta);
            return;
        }
        if meaning(&self.relative_path(link), PlaceKind::Directory).is_none() {
            return;
        }
        let mut open = vec![target.clone()];
        while let Some(at) = open.pop() {
            for (name, path, meta) in entries(&at, seen, self.most).unwrap_or_default() {
                let below = path.strip_prefix(&target).unwrap_or(&path);
                if meta.is_dir() && !is_own(&name) {
                    open.push(path.clone());
                } else {
                    report(&link.join(below), &path, &meta);
                }
            }
        }
    }

    /// Returns where a link leads, as a path that was scanned, if it leads into a scanned directory.
    fn target_of(&self, link: &Path) -> Option<(PathBuf, Metadata)> {
        let real = link.canonicalize().ok()?;
        let target = self.places.iter().find_map(|place| {
            let below = real.strip_prefix(place.canonicalize().ok()?).ok()?;
            Some(place.join(below))
        })?;
        let meta = target.symlink_metadata().ok()?;
        Some((target, meta))
    }

    /// Reports changed files of a git directory that start programs.
    fn changed_orders(&self, git_dir: &Path, seen: &mut usize, left: &mut Left) {
        for (path, meta) in orders(git_dir, seen, self.most) {
            if self.is_new(&path, &meta) {
                left.push(None, self.residue_at(&path, ResidueReason::Obeyed));
            }
        }
    }

    /// Returns why an entry matters here, if it does.
    fn reason(&self, path: &Path, meta: &Metadata) -> Option<ResidueReason> {
        let below = self.relative_path(path);
        matters(&below, meta).or_else(|| {
            let is_listed =
                self.naming == Naming::Grouped && meta.is_file() && is_run_by_its_tool(&below);
            is_listed.then_some(ResidueReason::Obeyed)
        })
    }

    /// Returns whether a directory, other than the scanned ones, contains program output. A marker that is new in an
    /// existing directory says nothing about its other entries.
    fn is_of_a_program(&self, directory: &Path, entries: &[Entry]) -> bool {
        let means = || meaning(&self.relative_path(directory), PlaceKind::Directory);
        let is_mark = |(name, path, meta): &Entry| {
            let counts = !self.modes.contains_key(directory) || !self.is_new(path, meta);
            MADE_BY_PROGRAMS.contains(&name.as_str()) && counts
        };
        !self.places.iter().any(|place| place == directory)
            && (entries.iter().any(is_mark) || means().is_some())
    }

    fn has_new(&self, entries: &[Entry]) -> bool {
        entries
            .iter()
            .any(|(_, path, meta)| self.is_new(path, meta))
    }

    fn is_new(&self, path: &Path, meta: &Metadata) -> bool {
        self.found.get(path) != Some(&stamp(meta))
    }

    fn residue_at(&self, path: &Path, why: ResidueReason) -> LeftBehind {
        LeftBehind {
            path: self.relative_path(path),
            why,
            paths: 1,
        }
    }

    /// Returns the path relative to the scanned directory.
    fn relative_path(&self, path: &Path) -> String {
        path.strip_prefix(&self.root)
            .unwrap_or(path)
            .to_string_lossy()
            .into_owned()
    }

    /// Returns whether an existing directory has another mode, or a new one has looser permissions than its parent.
    fn has_another_mode(&self, directory: &Path) -> bool {
        let now = |path: &Path| {
            path.symlink_metadata()
                .ok()
                .map(|meta| identity_and_mode(&meta))
        };
        let Some((identity, mode)) = now(directory) else {
            return false;
        };
        match self.modes.get(directory) {
            Some((before, was)) if *before == identity => *was != mode,
            Some(_) | None => {
                let above = directory
                    .parent()
                    .and_then(now)
                    .map_or(0, |(_, above)| above);
                mode & LOOSE & !above != 0
            }
        }
    }
}

/// Names of files that run commands in their own tool, such as `latexmk` or `terraform`. They are reported, and
/// no denial: a skill may write them as it writes a source.
const RUN_BY_THEIR_TOOL: [&str; 6] = [
    ".latexmkrc",
    "dvc.yaml",
    "latexmkrc",
    "mkdocs.yaml",
    "mkdocs.yml",
    "terragrunt.hcl",
];
/// Ends of such names.
const ENDS_RUN_BY_THEIR_TOOL: [&str; 3] = [".tf", ".tf.json", ".tofu"];

fn is_run_by_its_tool(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    RUN_BY_THEIR_TOOL.contains(&name.as_str())
        || ENDS_RUN_BY_THEIR_TOOL.iter().any(|end| name.ends_with(end))
}

/// Returns why an entry below a granted directory matters, if it does. The path is relative to the scanned directory.
fn matters(path: &str, meta: &Metadata) -> Option<ResidueReason> {
    let kind = meta.file_type();
    let means = meaning(
        path,
        if kind.is_dir() {
            PlaceKind::Directory
        } else {
            PlaceKind::File
        },
    );
    match means {
        Some(PathSensitivity::Secret) => return Some(ResidueReason::NamedSecret),
        Some(PathSensitivity::Own | PathSensitivity::Obeyed) => return Some(ResidueReason::Obeyed),
        None => {}
    }
    if kind.is_file() {
        (meta.permissions().mode() & EXECUTABLE != 0).then_some(ResidueReason::Executable)
    } else {
        (!kind.is_dir()).then_some(ResidueReason::Special)
    }
}

/// Returns the inode and the permissions of a directory.
fn identity_and_mode(meta: &Metadata) -> (u64, u32) {
    (meta.ino(), meta.permissions().mode() & MODE)
}

fn stamp(meta: &Metadata) -> Stamp {
    if meta.is_dir() {
        (meta.dev(), meta.ino(), 0, 0)
    } else {
        (meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec())
    }
}

/// The found entries: single ones, and those in program directories.
struct Left {
    each: Vec<LeftBehind>,
    groups: Vec<(LeftBehind, Vec<LeftBehind>)>,
}

impl Left {
    fn push(&mut self, group: Option<usize>, one: LeftBehind) {
        match group.and_then(|index| self.groups.get_mut(index)) {
            Some((_, inside)) => inside.push(one),
            None => self.each.push(one),
        }
    }

    /// Returns the entries in the order of their paths, up to the limit.
    fn sorted_entries(self, naming: Naming) -> Vec<LeftBehind> {
        let mut left = self.each;
        for (directory, inside) in self.groups {
            let is_cache = directory.path.ends_with(CACHE);
            if inside.len() > MAX_SIMILAR || is_cache && !inside.is_empty() {
                left.push(LeftBehind {
                    paths: inside.len(),
                    ..directory
                });
            } else {
                left.extend(inside);
            }
        }
        let of_git = |one: &&LeftBehind| one.why == ResidueReason::RunByGit;
        let of_git: HashSet<String> = left
            .iter()
            .filter(of_git)
            .map(|one| one.path.clone())
            .collect();
        left.retain(|one| one.why == ResidueReason::RunByGit || !of_git.contains(&one.path));
        left.sort_by(|one, other| one.path.cmp(&other.path));
        left.dedup();
        let most = match naming {
            Naming::Each => MAX_NAMED,
            Naming::Grouped => {
                left = alike_together(left);
                // Entries with a telling name come first, so that many unspecific ones do not displace them.
                left.sort_by_key(LeftBehind::rank);
                MAX_LISTED
            }
        };
        if left.len() > most {
            let paths = left.drain(most..).map(|one| one.paths).sum();
            left.push(LeftBehind {
                path: "…".to_owned(),
                why: ResidueReason::More,
                paths,
            });
        }
        left
    }
}

/// Merges many entries of one name, such as `__pycache__`, into the first of them.
fn alike_together(left: Vec<LeftBehind>) -> Vec<LeftBehind> {
    let name = |one: &LeftBehind| one.path.rsplit('/').next().map(str::to_owned);
    let mut paths: HashMap<_, usize> = HashMap::new();
    let mut alike: HashMap<_, usize> = HashMap::new();
    for one in &left {
        *paths.entry((name(one), one.why)).or_default() += one.paths;
        *alike.entry((name(one), one.why)).or_default() += 1;
    }
    let mut together = Vec::new();
    for one in left {
        let key = (name(&one), one.why);
        match (alike.get(&key), paths.remove(&key)) {
            (Some(count), _) if *count <= MAX_SIMILAR => together.push(one),
            (_, Some(paths)) => together.push(LeftBehind { paths, ..one }),
            (_, None) => {}
        }
    }
    together
}

/// Returns the files of a git directory that decide which programs git starts, including submodules.
fn orders(git_dir: &Path, seen: &mut usize, most: usize) -> Vec<(PathBuf, Metadata)> {
    let mut found = Vec::new();
    let mut open = vec![git_dir.to_owned(), git_dir.join(ALTERNATES)];
    while let Some(at) = open.pop() {
        let is_hooks = at.file_name().is_some_and(|name| name == "hooks");
        for (name, path, meta) in entries(&at, seen, most).unwrap_or_default() {
            if meta.is_dir() {
                if is_repository_part(&at, git_dir, &name) {
                    open.push(path);
                }
            } else if is_hooks || meta.is_symlink() || GIT_ORDERS.contains(&name.as_str()) {
                found.push((path, meta));
            }
        }
    }
    found
}

/// Returns whether a subdirectory of a git directory may contain files that start programs.
fn is_repository_part(at: &Path, git_dir: &Path, name: &str) -> bool {
    !at.starts_with(git_dir.join("objects")) && !GIT_DATA.contains(&name)
}

/// Returns whether a directory with these entries is a git directory.
fn is_repository(directory: &Path, entries: &[Entry]) -> bool {
    entries.iter().any(|(name, _, _)| name == "HEAD") && is_git_directory(directory)
}

type Entry = (String, PathBuf, Metadata);

fn entries(directory: &Path, seen: &mut usize, most: usize) -> Result<Vec<Entry>, RunnerError> {
    let fail = |source| FsError::Io {
        action: "list",
        path: directory.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        *seen += 1;
        if *seen > most {
            let place = format!("in {}", directory.display());
            return Err(RunnerError::TooManyPlaces { place, most });
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        // An entry that disappears meanwhile is not an error.
        match entry.metadata() {
            Ok(meta) => found.push((name, entry.path(), meta)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail(error).into()),
        }
    }
    Ok(found)
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests lay out what a skill left by hand"
)]
mod tests {
    use super::*;

    struct Room {
        dir: tempfile::TempDir,
    }

    impl Room {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir(dir.path().join("notes")).unwrap();
            Self { dir }
        }

        fn put(&self, path: &str, mode: u32) {
            let path = self.dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "x").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        }

        fn look(&self) -> DirectoryState {
            DirectoryState::look(self.dir.path(), &[self.dir.path().join("notes")]).unwrap()
        }
    }

    fn paths_and_reasons(left: &[LeftBehind]) -> Vec<(&str, ResidueReason)> {
        left.iter()
            .map(|one| (one.path.as_str(), one.why))
            .collect()
    }

    #[test]
    fn control_files_are_reported_at_any_depth() {
        let obeyed = [
            ".git/hooks/pre-commit",
            "a/b/.GIT/config",
            "git~1/config",
            ".crucible/config.toml",
            "conftest.py",
            "a/Conftest.py",
            "sitecustomize.py",
            "usercustomize.py",
            "a/evil.pth",
            "__pycache__/json.cpython-312.pyc",
            "a/native.so",
            "pyproject.toml",
            "setup.py",
            "pytest.ini",
            "Makefile",
            "package.json",
            ".gitattributes",
            ".vscode/tasks.json",
            ".github/workflows/x.yml",
            ".pre-commit-config.yaml",
            "we\\ird/.mcp.json",
            "test_evil.py",
            "a/evil_test.py",
            "__main__.py",
            "tasks.py",
            "x.dist-info/entry_points.txt",
            "x.egg-info/entry_points.txt",
            "a.dylib",
            "b.pyd",
            "c.so.1",
            "d.desktop",
        ];
        for path in obeyed {
            let fixture = Room::new();
            let before = fixture.look();
            fixture.put(&format!("notes/{path}"), 0o644);
            let left = before.left_behind(&BTreeSet::new());
            assert!(
                matches!(
                    paths_and_reasons(&left).as_slice(),
                    [(_, ResidueReason::Obeyed)]
                ),
                "{path}: {left:?}"
            );
            // The same, when it was there before.
            assert_eq!(fixture.look().left_behind(&BTreeSet::new()), [], "{path}");
        }
        for path in [
            ".kube/x",
            ".env",
            "a/.env.local",
            "id_rsa",
            "a/server.pem",
            ".ssh/known_hosts",
        ] {
            let fixture = Room::new();
            let before = fixture.look();
            fixture.put(&format!("notes/{path}"), 0o644);
            let left = before.left_behind(&BTreeSet::new());
            assert!(
                matches!(
                    paths_and_reasons(&left).as_slice(),
                    [(_, ResidueReason::NamedSecret)]
                ),
                "{path}: {left:?}"
            );
        }
    }

    #[test]
    fn changes_behind_links_are_reported_by_link() {
        let fixture = Room::new();
        for path in [
            "envrc.txt",
            "build/mk",
            "cfg/a.json",
            "agents/a.md",
            "docs/x.txt",
            "src/a.txt",
        ] {
            fixture.put(&format!("notes/{path}"), 0o644);
        }
        let link = |name: &str, target: &str| {
            std::os::unix::fs::symlink(target, fixture.dir.path().join("notes").join(name))
                .unwrap();
        };
        link(".envrc", "envrc.txt");
        link("Makefile", "build/mk");
        link(".vscode", "cfg");
        link(".claude", "agents");
        link("plain", "docs");
        link("outside.mk", "/etc/hostname");
        link("missing.mk", "nothing");
        let before = fixture.look();
        assert_eq!(before.left_behind(&BTreeSet::new()), []);
        let all = [
            "envrc.txt",
            "build/mk",
            "cfg/tasks.json",
            "agents/settings.json",
            "docs/y.txt",
            "src/a.txt",
        ];
        for path in all {
            std::fs::write(fixture.dir.path().join("notes").join(path), "changed").unwrap();
        }
        let left = before.left_behind(&BTreeSet::new());
        let mut paths: Vec<&str> = left.iter().map(|one| one.path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(
            paths,
            [
                "notes/.claude/settings.json",
                "notes/.envrc",
                "notes/.vscode/tasks.json",
                "notes/Makefile"
            ]
        );
    }

    #[test]
    fn files_that_their_own_tool_runs_are_reported_and_no_denial() {
        let listed = [
            "latexmkrc",
            "sub/dvc.yaml",
            "mkdocs.yml",
            "infra/Main.tf",
            "infra/main.tf.json",
        ];
        let fixture = Room::new();
        let notes = fixture.dir.path().join("notes");
        let skill = fixture.look();
        let command = DirectoryState::survey(fixture.dir.path(), &[notes]);
        for path in listed.iter().chain(&["main.tf.txt", "my-dvc.yaml"]) {
            fixture.put(&format!("notes/{path}"), 0o644);
        }
        let left = command.left_behind(&BTreeSet::new());
        let mut found: Vec<_> = paths_and_reasons(&left);
        found.sort_by_key(|(path, _)| *path);
        let mut expected: Vec<_> = listed.map(|path| format!("notes/{path}")).into();
        expected.sort();
        assert!(found.iter().all(|(_, why)| *why == ResidueReason::Obeyed));
        assert!(
            found.iter().map(|(path, _)| *path).eq(&expected),
            "{found:?}"
        );
        assert_eq!(skill.left_behind(&BTreeSet::new()), []);
    }

    #[test]
    fn ordinary_files_are_not_control_files() {
        let fixture = Room::new();
        fixture.put("notes/old.py", 0o755);
        let before = fixture.look();
        let plain = [
            "a.md",
            "b/c/d.txt",
            "data.json",
            "e.csv",
            "build/x.txt",
            "runs/y",
            "module.py",
            "na\nme",
            "c:",
        ];
        for path in plain {
            fixture.put(&format!("notes/{path}"), 0o644);
        }
        // What lies elsewhere is no business of the run.
        fixture.put("Makefile", 0o755);
        assert_eq!(before.left_behind(&BTreeSet::new()), []);
    }

    #[test]
    fn new_or_changed_executables_and_pipes_are_reported() {
        let fixture = Room::new();
        fixture.put("notes/deep/kept.sh", 0o755);
        fixture.put("notes/conftest.py", 0o644);
        fixture.put("notes/plain.txt", 0o644);
        let before = fixture.look();
        assert_eq!(before.left_behind(&BTreeSet::new()), []);
        fixture.put("notes/deep/tool", 0o700);
        std::fs::set_permissions(
            fixture.dir.path().join("notes/plain.txt"),
            PermissionsExt::from_mode(0o645),
        )
        .unwrap();
        fixture.put("notes/conftest.py", 0o644);
        let socket =
            std::os::unix::net::UnixListener::bind(fixture.dir.path().join("notes/pipe")).unwrap();
        let left = before.left_behind(&BTreeSet::new());
        assert_eq!(
            paths_and_reasons(&left),
            [
                ("notes/conftest.py", ResidueReason::Obeyed),
                ("notes/deep/tool", ResidueReason::Executable),
                ("notes/pipe", ResidueReason::Special),
                ("notes/plain.txt", ResidueReason::Executable),
            ]
        );
        drop(socket);
        // Moved, it is somewhere else than it was.
        let fixture = Room::new();
        fixture.put("notes/a/conftest.py", 0o644);
        let before = fixture.look();
        std::fs::rename(
            fixture.dir.path().join("notes/a"),
            fixture.dir.path().join("notes/b"),
        )
        .unwrap();
        assert_eq!(
            paths_and_reasons(&before.left_behind(&BTreeSet::new())),
            [("notes/b/conftest.py", ResidueReason::Obeyed)]
        );
    }

    #[test]
    fn unnamed_repository_is_recognized_by_its_contents() {
        let fixture = Room::new();
        let before = fixture.look();
        for path in ["notes/r/config", "notes/r/objects/x", "notes/r/refs/x"] {
            fixture.put(path, 0o644);
        }
        // git takes it for none without a valid HEAD.
        fixture.put("notes/r/HEAD", 0o644);
        assert_eq!(before.left_behind(&BTreeSet::new()), []);
        let head = fixture.dir.path().join("notes/r/HEAD");
        std::fs::write(head, "ref: refs/heads/main\n").unwrap();
        assert_eq!(
            paths_and_reasons(&before.left_behind(&BTreeSet::new())),
            [("notes/r", ResidueReason::Obeyed)]
        );
        assert_eq!(fixture.look().left_behind(&BTreeSet::new()), []);
    }

    #[test]
    fn leftover_is_judged_by_its_whole_path() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/.aws")).unwrap();
        std::fs::create_dir_all(dir.path().join("scripts")).unwrap();
        let places = ["a/.aws", "scripts"].map(|place| dir.path().join(place));
        let before = DirectoryState::look(dir.path(), &places).unwrap();
        std::fs::write(dir.path().join("a/.aws/credentials"), "x").unwrap();
        std::fs::create_dir(dir.path().join("scripts/ci")).unwrap();
        std::fs::write(dir.path().join("scripts/x.txt"), "x").unwrap();
        assert_eq!(
            paths_and_reasons(&before.left_behind(&BTreeSet::new())),
            [
                ("a/.aws/credentials", ResidueReason::NamedSecret),
                ("scripts/ci", ResidueReason::Obeyed)
            ]
        );
    }

    #[test]
    fn changed_directory_mode_is_reported() {
        let mode = |fixture: &Room, path: &str, mode: u32| {
            let path = fixture.dir.path().join(path);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        let fixture = Room::new();
        mode(&fixture, "notes", 0o755);
        mode(&fixture, "notes/old", 0o777);
        mode(&fixture, "notes/kept", 0o2777);
        let before = fixture.look();
        for (path, bits) in [
            ("notes/new", 0o775),
            ("notes/old/deep", 0o777),
            ("notes/kept/deep", 0o2775),
        ] {
            mode(&fixture, path, bits);
        }
        assert_eq!(before.left_behind(&BTreeSet::new()), []);
        mode(&fixture, "notes", 0o777);
        assert_eq!(
            paths_and_reasons(&before.left_behind(&BTreeSet::new())),
            [("notes", ResidueReason::Mode)]
        );
        mode(&fixture, "notes", 0o755);
        mode(&fixture, "notes/old", 0o755);
        mode(&fixture, "notes/new/open", 0o757);
        mode(&fixture, "notes/sticky", 0o1755);
        assert_eq!(
            paths_and_reasons(&before.left_behind(&BTreeSet::new())),
            [
                ("notes/new/open", ResidueReason::Mode),
                ("notes/old", ResidueReason::Mode),
                ("notes/old/deep", ResidueReason::Mode),
                ("notes/sticky", ResidueReason::Mode),
            ]
        );
    }

    #[test]
    fn omitted_leftovers_are_counted() {
        let fixture = Room::new();
        let before = fixture.look();
        for number in 0..100 {
            fixture.put(&format!("notes/{number}.pth"), 0o644);
        }
        let left = before.left_behind(&BTreeSet::new());
        assert_eq!(left.len(), MAX_NAMED + 1);
        assert_eq!(left.last().unwrap().why, ResidueReason::More);
    }
}
