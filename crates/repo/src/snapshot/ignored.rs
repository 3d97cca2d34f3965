//! What git ignores and tests need all the same: installed packages, build output, generated files.
//!
//! How it works: git lists what it ignores, a walk looks at it once, and `use_of` says of each directory and file, by its name and by what lies
//! in it, whether it comes along. Packages are large and only read: they are [`DependencyTree`]s, for the caller to show read-only.
//! The rest is copied, the smallest entries first, within [`IgnoredLimits`]. The walk is made once for any number of copies.
//!
//! What always holds: no link is followed; a file whose name or content says that it holds secrets is neither copied nor shown in a tree;
//! what is left out is listed, but for caches that tools make again.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crucible_model::ByteLimit;
use rustix::fs::{FileType, Mode, OFlags};

use super::copy::{self, CopyChecks, Digests};
use super::kind::{self, ListedKind, ListedName};
use super::tree_copy::make_links;
use super::walk::{EntryBudget, Listing, join};
use super::{ContentCheck, FileContent, Omission, OmitReason, SecretCheck, TreeLimits, make_dirs};
use crate::beneath::Root;
use crate::error::RepoError;
use crate::git::Git;

/// Directories of installed packages, wherever they are.
const PACKAGES: [&str; 3] = ["node_modules", "bower_components", "__pypackages__"];
/// Those that count only if git ignores them separately: a build may copy sources into one of that name.
const VENDORED: [&str; 4] = ["vendor", ".bundle", ".yarn", ".pnpm-store"];
/// The same below a directory that is tracked.
const VENDORED_IN: [&str; 2] = [".yarn", "vendor/bundle"];
/// Directories that a runner fills and writes to.
const RUNNERS: [&str; 2] = [".tox", ".nox"];
/// Settings of editors and of Crucible, which are personal.
const PERSONAL: [&str; 4] = [".idea", ".vscode", ".vs", ".crucible"];
/// How many directories a split tree has at most: each is a mount.
const MAX_PARTS: usize = 300;
/// How many trees there are at most, for the same reason.
const MAX_TREES: usize = 1000;
/// Maximum size of a file in a tree whose name alone is not trusted.
const MAX_PUBLIC: u64 = 1 << 20;
/// Names of keys that are more often certificates.
const CERTIFICATES: [&str; 4] = ["pem", "crt", "cer", "key"];

/// Options for examining ignored files.
#[derive(Clone)]
pub struct IgnoredOptions {
    /// Which paths hold secrets; a directory's path ends with `/`.
    pub secret: SecretCheck,
    /// Which files are excluded by content.
    pub content: ContentCheck,
    /// How much.
    pub limits: IgnoredLimits,
    /// Which `node_modules` are split.
    pub split: SplitTrees,
}

/// Which `node_modules` become a directory of the copy with one tree for each package in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitTrees {
    /// None: each is one tree.
    Never,
    /// All, and the packages of a scope too: links to packages of the repository then lead to the copy.
    Always,
}

/// Limits on ignored files that are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IgnoredLimits {
    /// Names that are looked at.
    pub entries: usize,
    /// Files that are copied.
    pub files: u64,
    /// Bytes that are copied.
    pub bytes: ByteLimit,
    /// Places that are hidden in one tree.
    pub masks: usize,
}

impl IgnoredLimits {
    /// One million names, 50,000 files, 2 GiB, 200 hidden places in a tree. Build output is the most of it: without it,
    /// every copy is built from the beginning.
    pub const STANDARD: Self = Self {
        entries: 1_000_000,
        files: 50_000,
        bytes: ByteLimit(2 << 30),
        masks: 200,
    };
}

/// A directory of installed packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyTree {
    /// Its path from the top.
    pub path: PathBuf,
    /// Paths in it that must be hidden, from the top.
    pub masked: Vec<PathBuf>,
}

impl DependencyTree {
    /// Returns whether tools write in it: Node.js's keep caches there, and some write beside themselves.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.path.file_name() == Some(OsStr::new("node_modules"))
    }
}

/// What of the ignored files goes into a copy.
#[derive(Clone)]
pub struct IgnoredFiles {
    /// To be shown at their paths, read-only. A copy has an empty directory there.
    pub trees: Vec<DependencyTree>,
    /// What was left out, sorted by path.
    pub omitted: Vec<Omission>,
    part: Part,
    top: PathBuf,
    options: IgnoredOptions,
}

/// What the walk of one entry found.
#[derive(Debug, Clone, Default)]
struct Part {
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
    links: Vec<PathBuf>,
    bytes: u64,
    trees: Vec<DependencyTree>,
    omitted: Vec<Omission>,
}

/// What becomes of an ignored path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Use {
    /// It is shown read-only.
    Show,
    /// It is copied.
    Copy,
    /// It stays out, for this reason.
    Omit(OmitReason),
    /// It is excluded without being listed.
    Forget,
}

/// Decides the use of the directory at `path` with these names in it, or of a file. `is_entry` means that git
/// listed it separately.
fn use_of(path: &Path, names: Option<&[ListedName]>, is_entry: bool) -> Use {
    let lower = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    let is_one = |names: &[&str]| names.contains(&lower.as_str());
    let Some(names) = names else {
        return match kind::of_name(&lower) {
            Some(OmitReason::Database) => Use::Omit(OmitReason::Database),
            _ => Use::Copy,
        };
    };
    let has = |name: &str| names.iter().any(|listed| listed.name == name);
    let is_within = |place: &&str| {
        path.ends_with(place) || path.parent().is_some_and(|above| above.ends_with(place))
    };
    let is_vendored = is_entry && (is_one(&VENDORED) || VENDORED_IN.iter().any(is_within));
    let is_packages = is_one(&PACKAGES) || is_vendored;
    match kind::of_directory(names, || false) {
        Some(OmitReason::VirtualEnvironment) => return Use::Show,
        Some(reason) => return Use::Omit(reason),
        None if has(".git") && !is_packages => return Use::Omit(OmitReason::Repository),
        None => {}
    }
    if is_packages {
        return Use::Show;
    }
    if is_one(&PERSONAL) {
        return Use::Forget;
    }
    match kind::of_name(&lower) {
        Some(OmitReason::Repository) => Use::Omit(OmitReason::Repository),
        // A runner's environments are private: it writes beside them.
        Some(OmitReason::Cache) if !is_one(&RUNNERS) && lower != ".cache" => Use::Forget,
        _ => Use::Copy,
    }
}

/// Whether a directory of build output only makes the next build of changed crates faster: Cargo's incremental data, which it
/// makes again.
fn is_remade(names: &[ListedName], listed: &ListedName) -> bool {
    let has = |name: &str| names.iter().any(|listed| listed.name == name);
    listed.name == "incremental" && has(".fingerprint") && has("deps")
}

impl Git {
    /// Examines ignored files, and installed packages that are neither ignored nor tracked.
    ///
    /// # Errors
    ///
    /// Fails when git fails, or when the work tree cannot be listed.
    pub async fn ignored_files(&self, options: &IgnoredOptions) -> Result<IgnoredFiles, RepoError> {
        let (ignored, others) = if self.holds_only_tracked().await? {
            (Vec::new(), Vec::new())
        } else {
            tokio::try_join!(
                self.untracked_entries(&["--ignored"]),
                self.untracked_entries(&[])
            )?
        };
        let (top, options) = (self.top().to_owned(), options.clone());
        let looked =
            tokio::task::spawn_blocking(move || look(top, &ignored, &others, options)).await;
        looked.map_err(|error| RepoError::io("look at", self.top(), io::Error::other(error)))?
    }
}

fn look(
    top: PathBuf,
    ignored: &[PathBuf],
    others: &[PathBuf],
    options: IgnoredOptions,
) -> Result<IgnoredFiles, RepoError> {
    let root = Root::open(&top)?;
    let limits = TreeLimits {
        entries: options.limits.entries,
        ..TreeLimits::STANDARD
    };
    let mut walk = Walk {
        root: &root,
        options: &options,
        allowance: EntryBudget::from_limits(&limits),
    };
    let mut paths = BTreeSet::new();
    let mut parts = Vec::new();
    for path in others {
        // Untracked files that are not ignored are a person's work, except packages.
        if let Some(names) = walk.names(path)
            && use_of(path, Some(&names), false) == Use::Show
        {
            parts.push((path, walk.entry(path)));
            paths.insert(path.as_path());
        }
    }
    let is_shown =
        |path: &Path, shown: &BTreeSet<&Path>| path.ancestors().any(|above| shown.contains(above));
    let mut ignored: Vec<&PathBuf> = ignored.iter().collect();
    ignored.sort();
    for path in ignored {
        // git lists some directories together with their contents, and a directory that ignores all of its
        // contents in both lists.
        if !is_shown(path, &paths) {
            parts.push((path, walk.entry(path)));
            paths.insert(path.as_path());
        }
    }
    parts.sort_by_key(|(path, part)| (part.bytes, part.files.len(), path.to_owned()));
    let mut full_part = Part::default();
    for (path, mut part) in parts {
        let files = (full_part.files.len() + part.files.len()) as u64;
        let bytes = full_part.bytes + part.bytes;
        let is_over = files > options.limits.files || bytes > options.limits.bytes.0;
        if is_over || full_part.trees.len() + part.trees.len() > MAX_TREES {
            let reason = OmitReason::TooMuch {
                files: part.files.len() as u64,
                bytes: part.bytes,
            };
            full_part.omitted.push(Omission {
                path: path.clone(),
                reason,
            });
            continue;
        }
        full_part.bytes = bytes;
        full_part.directories.append(&mut part.directories);
        full_part.files.append(&mut part.files);
        full_part.links.append(&mut part.links);
        full_part.trees.append(&mut part.trees);
        full_part.omitted.append(&mut part.omitted);
    }
    full_part.files.sort_unstable();
    full_part.omitted.sort();
    let mut trees = std::mem::take(&mut full_part.trees);
    trees.sort_by(|a, b| a.path.cmp(&b.path));
    let omitted = std::mem::take(&mut full_part.omitted);
    Ok(IgnoredFiles {
        trees,
        omitted,
        part: full_part,
        top,
        options,
    })
}

struct Walk<'a> {
    root: &'a Root,
    options: &'a IgnoredOptions,
    allowance: EntryBudget,
}

impl Walk<'_> {
    /// Looks at one entry of git's list, and at all that it holds.
    fn entry(&mut self, entry: &Path) -> Part {
        let mut part = Part::default();
        let mut left = vec![entry.to_owned()];
        while let Some(path) = left.pop() {
            let is_entry = path == entry;
            self.look_at(path, is_entry, &mut part, &mut left);
            let limits = &self.options.limits;
            if part.files.len() as u64 > limits.files || part.bytes > limits.bytes.0 {
                break;
            }
        }
        part
    }

    fn look_at(&mut self, path: PathBuf, is_entry: bool, part: &mut Part, left: &mut Vec<PathBuf>) {
        let mut omit = |path: PathBuf, reason| part.omitted.push(Omission { path, reason });
        let Ok(stat) = self.root.stat(&path) else {
            return omit(path, OmitReason::Unreadable);
        };
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let queried_path = if is_directory {
            path.join("")
        } else {
            path.clone()
        };
        if let Some(why) = (self.options.secret)(&queried_path) {
            return omit(path, OmitReason::Secret(why));
        }
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {}
            FileType::RegularFile => match use_of(&path, None, is_entry) {
                Use::Omit(reason) => return omit(path, reason),
                _ => {
                    part.bytes += u64::try_from(stat.st_size).unwrap_or_default();
                    return part.files.push(path);
                }
            },
            FileType::Symlink => return part.links.push(path),
            _ => return omit(path, OmitReason::Special),
        }
        let Some(names) = self.names(&path) else {
            return omit(path, OmitReason::Unreadable);
        };
        match use_of(&path, Some(&names), is_entry) {
            Use::Show => self.show(path, &names, part),
            Use::Omit(reason) => omit(path, reason),
            Use::Forget => {}
            Use::Copy => {
                let remaining = names.iter().filter(|listed| !is_remade(&names, listed));
                left.extend(remaining.rev().map(|listed| join(&path, &listed.name)));
                part.directories.push(path);
            }
        }
    }

    /// Returns the names in a directory; `None` if it is not one, is unreadable, or has too many.
    fn names(&mut self, path: &Path) -> Option<Vec<ListedName>> {
        match self.allowance.list(self.root, path) {
            Listing::Names(names) => Some(names),
            Listing::TooMany | Listing::Closed(_) => None,
        }
    }

    /// Plans a tree of packages, as one or in parts.
    fn show(&mut self, path: PathBuf, names: &[ListedName], part: &mut Part) {
        let is_node = path.file_name() == Some(OsStr::new("node_modules"));
        let parts = names
            .iter()
            .filter(|listed| listed.kind == ListedKind::Directory)
            .count();
        if is_node && self.options.split == SplitTrees::Always && parts <= MAX_PARTS {
            return self.split(path, names, part);
        }
        self.tree(path, part);
    }

    /// A directory of the copy with a tree for each directory in it.
    fn split(&mut self, path: PathBuf, names: &[ListedName], part: &mut Part) {
        part.directories.push(path.clone());
        for listed in names {
            let below = join(&path, &listed.name);
            match listed.kind {
                ListedKind::Link => part.links.push(below),
                ListedKind::File if (self.options.secret)(&below).is_none() => {
                    let size = self.root.stat(&below).map_or(0, |stat| stat.st_size);
                    part.bytes += u64::try_from(size).unwrap_or_default();
                    part.files.push(below);
                }
                ListedKind::Directory if listed.name.to_string_lossy().starts_with('@') => {
                    match self.names(&below) {
                        Some(names) if names.len() <= MAX_PARTS => self.split(below, &names, part),
                        _ => self.tree(below, part),
                    }
                }
                ListedKind::Directory => self.tree(below, part),
                ListedKind::File | ListedKind::Special => {}
            }
        }
    }

    /// Adds one tree after a search for what must be hidden in it.
    fn tree(&mut self, path: PathBuf, part: &mut Part) {
        let mut masked = Vec::new();
        let mut left = vec![path.clone()];
        while let Some(directory) = left.pop() {
            let names = match self.allowance.list(self.root, &directory) {
                Listing::Names(names) => names,
                // Nobody inside can list it either.
                Listing::Closed(_) => continue,
                Listing::TooMany => {
                    let reason = OmitReason::TooMuch {
                        files: self.options.limits.entries as u64,
                        bytes: 0,
                    };
                    return part.omitted.push(Omission { path, reason });
                }
            };
            for listed in names {
                let below = join(&directory, &listed.name);
                if listed.name == ".git" || self.is_secret(&below, listed.kind) {
                    masked.push(below);
                } else if listed.kind == ListedKind::Directory {
                    left.push(below);
                }
            }
            if masked.len() > self.options.limits.masks {
                let why = "it has more files with secret names than can be hidden".to_owned();
                return part.omitted.push(Omission {
                    path,
                    reason: OmitReason::Secret(why),
                });
            }
        }
        masked.sort();
        part.trees.push(DependencyTree { path, masked });
    }

    /// Returns whether a file of a tree holds secrets. A name that also fits certificates is decided by
    /// content.
    fn is_secret(&self, path: &Path, listed: ListedKind) -> bool {
        if listed != ListedKind::File || (self.options.secret)(path).is_none() {
            return false;
        }
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        let is_public = || -> Option<bool> {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
            let mut bytes = Vec::new();
            let file = File::from(self.root.open_file(path, flags, Mode::empty()).ok()?);
            file.take(MAX_PUBLIC + 1).read_to_end(&mut bytes).ok()?;
            let found = (self.options.content)(FileContent::Whole(&bytes)).ok()?;
            Some(bytes.len() as u64 <= MAX_PUBLIC && found.is_none())
        };
        !CERTIFICATES.iter().any(|known| extension == *known) || is_public() != Some(true)
    }
}

impl IgnoredFiles {
    /// Returns whether a copy has nothing beside the tracked files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.trees.is_empty() && self.part.files.is_empty() && self.part.links.is_empty()
    }

    /// Copies the files into `copy`, which has the tracked files, and creates the mount points of the trees.
    /// Returns what else was left out.
    ///
    /// # Errors
    ///
    /// Fails when `copy` cannot be written.
    pub async fn copy_to(&self, copy: &Path) -> Result<Vec<Omission>, RepoError> {
        let (from, to) = (Root::open(&self.top)?, Root::open(copy)?);
        let all = self.clone();
        let copied = tokio::task::spawn_blocking(move || all.copy_all(&from, &to)).await;
        copied.map_err(|error| RepoError::io("copy to", copy, io::Error::other(error)))?
    }

    /// Replaces each empty mount point in `copy` by a link to the original's tree, for a program without
    /// mounts.
    ///
    /// # Errors
    ///
    /// Fails when `copy` cannot be written.
    pub fn link_trees(&self, copy: &Path) -> Result<(), RepoError> {
        let to = Root::open(copy)?;
        for DependencyTree { path, .. } in &self.trees {
            to.remove_dir(path)
                .map_err(|errno| to.fail("remove", path, errno))?;
            to.make_link(path, &self.top.join(path))
                .map_err(|errno| to.fail("make the link", path, errno))?;
        }
        Ok(())
    }

    fn copy_all(&self, from: &Root, to: &Root) -> Result<Vec<Omission>, RepoError> {
        // Each means its parent directory.
        let directories = self
            .trees
            .iter()
            .map(|tree| &tree.path)
            .chain(&self.part.directories);
        let mut content_paths: Vec<PathBuf> = directories.map(|path| path.join("it")).collect();
        content_paths.extend(self.part.files.iter().chain(&self.part.links).cloned());
        let paths = make_dirs(to, &content_paths)?;
        let limits = TreeLimits {
            total: ByteLimit(u64::MAX),
            ..TreeLimits::STANDARD
        };
        let other_name = |omission: &Omission| {
            let stat = from
                .stat(&omission.path)
                .ok()
                .filter(|stat| stat.st_nlink > 1)?;
            matches!(omission.reason, OmitReason::Secret(_)).then_some((stat.st_dev, stat.st_ino))
        };
        let judging = CopyChecks {
            check: &self.options.content,
            digests: Digests::Unwanted,
            other_names: self.omitted.iter().filter_map(other_name).collect(),
            limits,
        };
        let copied = copy::copy_all(from, to, &self.part.files, Some(&judging))?;
        let mut omitted = copied.omitted;
        let mounted = self.trees.iter().map(|tree| tree.path.as_path()).collect();
        for (path, outcome) in make_links(from, to, &self.part.links, &mounted)? {
            if let Err(reason) = outcome {
                omitted.push(Omission { path, reason });
            }
        }
        copy::keep_directory_times(from, to, &paths);
        omitted.sort();
        Ok(omitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(path: &str, names: &[&str], is_entry: bool) -> Use {
        let listed = |name: &&str| ListedName {
            name: name.into(),
            kind: ListedKind::Directory,
        };
        let names: Vec<ListedName> = names.iter().map(listed).collect();
        use_of(Path::new(path), Some(&names), is_entry)
    }

    #[test]
    fn each_kind_of_directory_has_its_use() {
        for path in ["node_modules", "a/b/node_modules", "a/__pypackages__"] {
            assert_eq!(used(path, &[], false), Use::Show, "{path}");
        }
        for path in [
            "vendor",
            ".bundle",
            ".yarn",
            ".yarn/cache",
            "api/vendor/bundle",
        ] {
            assert_eq!(
                (used(path, &[], true), used(path, &[], false)),
                (Use::Show, Use::Copy),
                "{path}"
            );
        }
        for path in [
            "target",
            "build",
            "dist",
            ".tox",
            ".nox",
            ".gradle",
            "a.egg-info",
            ".cache",
            "vendor/lib/build",
        ] {
            assert_eq!(used(path, &["x"], true), Use::Copy, "{path}");
        }
        for path in ["__pycache__", ".pytest_cache", ".idea", ".crucible"] {
            assert_eq!(used(path, &["x"], true), Use::Forget, "{path}");
        }
        let repository = Use::Omit(OmitReason::Repository);
        assert_eq!(used("nested", &[".git"], true), repository);
        assert_eq!(used(".hg", &[], true), repository);
        assert_eq!(used("vendor", &[".git"], true), Use::Show);
        assert_eq!(
            use_of(Path::new("data/app.sqlite3"), None, false),
            Use::Omit(OmitReason::Database)
        );
        assert_eq!(use_of(Path::new("_version.py"), None, true), Use::Copy);
        let environment = ListedName {
            name: "pyvenv.cfg".into(),
            kind: ListedKind::File,
        };
        assert_eq!(
            use_of(Path::new("any"), Some(&[environment]), false),
            Use::Show
        );
    }
}
