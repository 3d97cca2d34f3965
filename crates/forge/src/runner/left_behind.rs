//! What a run leaves in its granted directories that acts by lying there: files that other programs obey, or that are named like secrets.
//!
//! A skill of the class FILE_WRITE writes straight into the project, below its granted directories. A hook of a new `.git`, a
//! `conftest.py`, an `.env` or a program there is run or believed by the next one who works in that place. What lay there is looked
//! at before the run and after it, and what came or changed is told by its name.
//!
//! What always holds: nothing is removed and nothing is read; what was there before and is as it was is never told of.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crucible_host::fs::FsError;
use crucible_model::RepoPath;

use super::RunnerError;
use super::walls::MOST_ENTRIES;
use crate::places::{PlaceKind, PlaceMeaning, is_own, meaning};

/// The most that are named.
const MOST_NAMED: usize = 20;
/// What a git repository is known by wherever it lies.
const REPOSITORY: [&str; 3] = ["HEAD", "objects", "refs"];
/// Bits of a mode by which a file can be run.
const EXECUTABLE: u32 = 0o111;
/// Bits of a directory's mode by which everybody may write there, or by which what is made there belongs to others.
const LOOSE: u32 = 0o7002;
/// Bits of a mode that say who may do what.
const MODE: u32 = 0o7777;

/// Something that a run left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftBehind {
    /// Where, from the project's top.
    pub path: String,
    /// Why it matters.
    pub why: LeftWhy,
}

/// Why it matters that something was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftWhy {
    /// Other programs take orders from what has this name.
    Obeyed,
    /// It is named like a secret.
    NamedSecret,
    /// It can be run.
    Executable,
    /// A directory in which others may do more than before, or less.
    Mode,
    /// Neither a file nor a directory.
    Special,
    /// More was left than is named.
    More,
    /// It could not be looked at.
    Unseen,
}

impl LeftWhy {
    /// In words that follow the path.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Obeyed => "other programs take orders from what has this name",
            Self::NamedSecret => "it is named like a secret",
            Self::Executable => "it can be run",
            Self::Mode => "who may read and write in this directory was changed",
            Self::Special => "it is neither a file nor a directory",
            Self::More => "there is more of the kind than is named",
            Self::Unseen => "it cannot be looked at",
        }
    }
}

/// By what a thing is known to be the same and unchanged; the times of a directory change with what lies in it.
type Stamp = (u64, u64, i64, i64);

/// What lies in the granted directories.
pub(super) struct Lying {
    root: PathBuf,
    places: Vec<RepoPath>,
    found: HashMap<PathBuf, Stamp>,
    /// Of each directory.
    modes: HashMap<PathBuf, (u64, u32)>,
}

impl Lying {
    /// Looks at what lies there now.
    pub(super) fn look(root: &Path, places: &[RepoPath]) -> Result<Self, RunnerError> {
        let (mut found, mut modes) = (HashMap::new(), HashMap::new());
        let mut seen = 0;
        let mut open: Vec<PathBuf> = places.iter().map(|place| root.join(place.as_str())).collect();
        for place in &open {
            modes.extend(place.symlink_metadata().ok().map(|meta| (place.clone(), identity_and_mode(&meta))));
        }
        while let Some(at) = open.pop() {
            for (name, path, meta) in entries(&at, &mut seen)? {
                if meta.is_dir() && !is_own(&name) {
                    modes.insert(path.clone(), identity_and_mode(&meta));
                    open.push(path.clone());
                }
                found.insert(path, stamp(&meta));
            }
        }
        Ok(Self { root: root.to_owned(), places: places.to_vec(), found, modes })
    }

    /// What came or changed since and matters.
    pub(super) fn left_behind(&self) -> Vec<LeftBehind> {
        let mut left = Vec::new();
        let mut seen = 0;
        let mut open: Vec<PathBuf> = self.places.iter().map(|place| self.root.join(place.as_str())).collect();
        while let Some(at) = open.pop() {
            if left.len() > MOST_NAMED {
                break;
            }
            if self.has_another_mode(&at) {
                left.push(self.told(&at, LeftWhy::Mode));
            }
            let Ok(entries) = entries(&at, &mut seen) else {
                left.push(self.told(&at, LeftWhy::Unseen));
                continue;
            };
            let is_new = |path: &Path, meta: &Metadata| self.found.get(path) != Some(&stamp(meta));
            let has = |wanted: &str| entries.iter().any(|(name, _, _)| name == wanted);
            if REPOSITORY.iter().all(|name| has(name))
                && entries.iter().any(|(_, path, meta)| is_new(path, meta))
            {
                left.push(self.told(&at, LeftWhy::Obeyed));
                continue;
            }
            for (name, path, meta) in entries {
                let new = is_new(&path, &meta);
                match matters(&self.below(&path), &meta).filter(|_| new) {
                    Some(why) => left.push(self.told(&path, why)),
                    None if meta.is_dir() && !is_own(&name) => open.push(path),
                    None => {}
                }
            }
        }
        left.sort_by(|one, other| one.path.cmp(&other.path));
        left.dedup();
        if left.len() > MOST_NAMED {
            left.truncate(MOST_NAMED);
            left.push(LeftBehind { path: "…".to_owned(), why: LeftWhy::More });
        }
        left
    }

    fn told(&self, path: &Path, why: LeftWhy) -> LeftBehind {
        LeftBehind { path: self.below(path), why }
    }

    /// The path from the project's top.
    fn below(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// Whether a directory that was there has another mode now, or one that came lets everybody in where the one above it does not.
    fn has_another_mode(&self, directory: &Path) -> bool {
        let now = |path: &Path| path.symlink_metadata().ok().map(|meta| identity_and_mode(&meta));
        let Some((identity, mode)) = now(directory) else { return true };
        match self.modes.get(directory) {
            Some((before, was)) if *before == identity => *was != mode,
            Some(_) | None => {
                let above = directory.parent().and_then(now).map_or(0, |(_, above)| above);
                mode & LOOSE & !above != 0
            }
        }
    }
}

/// Why it matters that this lies below a granted directory, if it does; its path is that from the project's top.
fn matters(path: &str, meta: &Metadata) -> Option<LeftWhy> {
    let kind = meta.file_type();
    let means = meaning(path, if kind.is_dir() { PlaceKind::Directory } else { PlaceKind::File });
    match means {
        Some(PlaceMeaning::Secret) => return Some(LeftWhy::NamedSecret),
        Some(PlaceMeaning::Own | PlaceMeaning::Obeyed) => return Some(LeftWhy::Obeyed),
        None => {}
    }
    if kind.is_file() {
        (meta.permissions().mode() & EXECUTABLE != 0).then_some(LeftWhy::Executable)
    } else {
        (!kind.is_dir()).then_some(LeftWhy::Special)
    }
}

/// Which directory it is, and who may do what there.
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

fn entries(directory: &Path, seen: &mut usize) -> Result<Vec<(String, PathBuf, Metadata)>, RunnerError> {
    let fail = |source| FsError::Io { action: "list", path: directory.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        *seen += 1;
        if *seen > MOST_ENTRIES {
            let place = format!("in {}", directory.display());
            return Err(RunnerError::TooManyPlaces { place, most: MOST_ENTRIES });
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        found.push((name, entry.path(), entry.metadata().map_err(fail)?));
    }
    Ok(found)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out what a skill left by hand")]
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

        fn look(&self) -> Lying {
            Lying::look(self.dir.path(), &["notes".parse().unwrap()]).unwrap()
        }
    }

    fn told(left: &[LeftBehind]) -> Vec<(&str, LeftWhy)> {
        left.iter().map(|one| (one.path.as_str(), one.why)).collect()
    }

    #[test]
    fn what_other_programs_obey_is_told_at_whatever_depth() {
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
            "a.dylib",
            "b.pyd",
            "c.so.1",
            "d.desktop",
        ];
        for path in obeyed {
            let room = Room::new();
            let before = room.look();
            room.put(&format!("notes/{path}"), 0o644);
            let left = before.left_behind();
            assert!(matches!(told(&left).as_slice(), [(_, LeftWhy::Obeyed)]), "{path}: {left:?}");
            // The same, when it was there before.
            assert_eq!(room.look().left_behind(), [], "{path}");
        }
        for path in [".kube/x", ".env", "a/.env.local", "id_rsa", "a/server.pem", ".ssh/known_hosts"] {
            let room = Room::new();
            let before = room.look();
            room.put(&format!("notes/{path}"), 0o644);
            let left = before.left_behind();
            assert!(matches!(told(&left).as_slice(), [(_, LeftWhy::NamedSecret)]), "{path}: {left:?}");
        }
    }

    #[test]
    fn ordinary_files_are_no_ones_orders() {
        let room = Room::new();
        room.put("notes/old.py", 0o755);
        let before = room.look();
        let plain =
            ["a.md", "b/c/d.txt", "data.json", "e.csv", "build/x.txt", "runs/y", "module.py", "na\nme", "c:"];
        for path in plain {
            room.put(&format!("notes/{path}"), 0o644);
        }
        // What lies elsewhere is no business of the run.
        room.put("Makefile", 0o755);
        assert_eq!(before.left_behind(), []);
    }

    #[test]
    fn what_can_be_run_or_is_no_file_is_told_and_a_change_is_as_good_as_new() {
        let room = Room::new();
        room.put("notes/deep/kept.sh", 0o755);
        room.put("notes/conftest.py", 0o644);
        room.put("notes/plain.txt", 0o644);
        let before = room.look();
        assert_eq!(before.left_behind(), []);
        room.put("notes/deep/tool", 0o700);
        std::fs::set_permissions(room.dir.path().join("notes/plain.txt"), PermissionsExt::from_mode(0o645))
            .unwrap();
        room.put("notes/conftest.py", 0o644);
        let socket = std::os::unix::net::UnixListener::bind(room.dir.path().join("notes/pipe")).unwrap();
        let left = before.left_behind();
        assert_eq!(
            told(&left),
            [
                ("notes/conftest.py", LeftWhy::Obeyed),
                ("notes/deep/tool", LeftWhy::Executable),
                ("notes/pipe", LeftWhy::Special),
                ("notes/plain.txt", LeftWhy::Executable),
            ]
        );
        drop(socket);
        // Moved, it is somewhere else than it was.
        let room = Room::new();
        room.put("notes/a/conftest.py", 0o644);
        let before = room.look();
        std::fs::rename(room.dir.path().join("notes/a"), room.dir.path().join("notes/b")).unwrap();
        assert_eq!(told(&before.left_behind()), [("notes/b/conftest.py", LeftWhy::Obeyed)]);
    }

    #[test]
    fn a_repository_without_the_name_of_one_is_known_by_what_it_holds() {
        let room = Room::new();
        let before = room.look();
        for path in ["notes/r/HEAD", "notes/r/config", "notes/r/objects/x", "notes/r/refs/x"] {
            room.put(path, 0o644);
        }
        assert_eq!(told(&before.left_behind()), [("notes/r", LeftWhy::Obeyed)]);
        assert_eq!(room.look().left_behind(), []);
    }

    #[test]
    fn what_was_left_is_judged_by_its_whole_path() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/.aws")).unwrap();
        std::fs::create_dir_all(dir.path().join("scripts")).unwrap();
        let places = ["a/.aws", "scripts"].map(|place| place.parse().unwrap());
        let before = Lying::look(dir.path(), &places).unwrap();
        std::fs::write(dir.path().join("a/.aws/credentials"), "x").unwrap();
        std::fs::create_dir(dir.path().join("scripts/ci")).unwrap();
        std::fs::write(dir.path().join("scripts/x.txt"), "x").unwrap();
        assert_eq!(
            told(&before.left_behind()),
            [("a/.aws/credentials", LeftWhy::NamedSecret), ("scripts/ci", LeftWhy::Obeyed)]
        );
    }

    #[test]
    fn a_directory_with_another_mode_is_told() {
        let mode = |room: &Room, path: &str, mode: u32| {
            let path = room.dir.path().join(path);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        let room = Room::new();
        mode(&room, "notes", 0o755);
        mode(&room, "notes/old", 0o777);
        mode(&room, "notes/kept", 0o2777);
        let before = room.look();
        for (path, bits) in [("notes/new", 0o775), ("notes/old/deep", 0o777), ("notes/kept/deep", 0o2775)] {
            mode(&room, path, bits);
        }
        assert_eq!(before.left_behind(), []);
        mode(&room, "notes", 0o777);
        assert_eq!(told(&before.left_behind()), [("notes", LeftWhy::Mode)]);
        mode(&room, "notes", 0o755);
        mode(&room, "notes/old", 0o755);
        mode(&room, "notes/new/open", 0o757);
        mode(&room, "notes/sticky", 0o1755);
        assert_eq!(
            told(&before.left_behind()),
            [
                ("notes/new/open", LeftWhy::Mode),
                ("notes/old", LeftWhy::Mode),
                ("notes/old/deep", LeftWhy::Mode),
                ("notes/sticky", LeftWhy::Mode),
            ]
        );
    }

    #[test]
    fn more_than_can_be_named_is_said_to_be_more() {
        let room = Room::new();
        let before = room.look();
        for number in 0..100 {
            room.put(&format!("notes/{number}.pth"), 0o644);
        }
        let left = before.left_behind();
        assert_eq!(left.len(), MOST_NAMED + 1);
        assert_eq!(left.last().unwrap().why, LeftWhy::More);
    }
}
