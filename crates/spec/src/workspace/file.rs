//! The file `workspace.yaml`: found, read, created and changed.
//!
//! It is searched upward from a directory; the nearest one is used, and several are never merged.
//! Other tools use the same name, so outside of the repository only a valid workspace counts. A
//! change locks the file's directory, so that the second of two processes sees the first one's
//! change, and the file is replaced atomically.
//!
//! Invariant: a file that cannot be read, parsed or changed safely is left as it is, and a file is
//! changed in place, never through a link.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_host::fs::{read_regular_up_to, write_atomic, write_atomic_as};
use crucible_host::lock::{DirectoryTurn, TurnPurpose};
use crucible_model::{ByteLimit, Failure};
use crucible_secrets::Scanner;

use super::edit::{new_text, with_entry, with_replaced};
use super::model::{Flaw, SpecWorkspace, WorkspaceEntry};
use crate::error::SpecError;
use crate::project::{SpecProject, repository_of};
use crate::store::SpecStore;

/// The name of the file.
const NAME: &str = "workspace.yaml";

/// The largest file that is read, in bytes.
const MAX_SIZE: ByteLimit = ByteLimit(1024 * 1024);

/// How long to wait for another change.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The mode of new files.
const MODE: u32 = 0o644;

/// The file of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceFile {
    path: PathBuf,
}

/// What to do with a spec that is already listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnListed {
    /// Refuse the change.
    Refuse,
    /// Replace its tags and its time; its position and other keys are kept.
    Replace,
}

/// How an entry was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryChange {
    /// It is new.
    Added,
    /// It existed, and has new tags and a new time.
    Replaced,
}

impl WorkspaceFile {
    /// Uses exactly this file.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The file of this name in a directory, whether or not it exists.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        Self::at(directory.join(NAME))
    }

    /// The file of this name in a directory, if it exists.
    #[must_use]
    pub fn within(directory: &Path) -> Option<Self> {
        Some(Self::in_directory(directory)).filter(Self::exists)
    }

    /// The nearest `workspace.yaml` upward from a directory, itself included, up to the root of the file
    /// system. A directory of that name is ignored; anything else of that name is used, even if it cannot
    /// be read. Above the repository that contains the directory, the name may belong to other tools:
    /// there only a valid workspace is used.
    #[must_use]
    pub fn discover(start: &Path) -> Option<Self> {
        let repository = repository_of(start);
        let is_ours =
            |place: &Path| repository.is_none_or(|repository| place.starts_with(repository));
        start.ancestors().find_map(|place| {
            Self::within(place).filter(|file| is_ours(place) || file.load().is_ok())
        })
    }

    /// The file of `--workspace FILE`.
    ///
    /// # Errors
    ///
    /// Fails if it is not a file.
    pub fn from_path(file: PathBuf) -> Result<Self, Failure> {
        if file.is_file() {
            return Ok(Self::at(file));
        }
        Err(
            Failure::usage(format!("--workspace: {} is not a file", file.display()))
                .hint("Name the file workspace.yaml itself; `crucible project init` creates one."),
        )
    }

    /// The file that [`WorkspaceFile::discover`] finds.
    ///
    /// # Errors
    ///
    /// Fails if no file is found.
    pub fn required(start: &Path) -> Result<Self, Failure> {
        Self::discover(start).ok_or_else(|| {
            let message = format!(
                "no workspace.yaml in {} or any parent directory",
                start.display()
            );
            Failure::usage(message)
                .hint("Create one with `crucible project init`, or name one with --workspace FILE.")
        })
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The project whose specs it lists: the one in the file's directory.
    #[must_use]
    pub fn project(&self) -> SpecProject {
        SpecProject::at(self.directory())
    }

    /// Reads it for display: its name and tags are redacted.
    ///
    /// # Errors
    ///
    /// [`SpecError::Workspace`] if it is not a valid workspace; a file system error if it cannot be read.
    pub fn load(&self) -> Result<SpecWorkspace, SpecError> {
        let workspace = SpecWorkspace::read(&self.text()?).map_err(|flaw| self.refuse(flaw))?;
        Ok(workspace.redacted())
    }

    /// Creates it with this name and no spec.
    ///
    /// # Errors
    ///
    /// [`SpecError::Workspace`] if something with its name already exists.
    pub fn create(&self, name: &str) -> Result<(), SpecError> {
        let _alone = self.turn()?;
        if self.path.symlink_metadata().is_ok() {
            return Err(self.refuse(Flaw("it already exists and was not changed".to_owned())));
        }
        Ok(write_atomic(&self.path, new_text(name).as_bytes())?)
    }

    /// Lists a spec. Comments, unknown keys, order, quotes and line endings of the file are preserved.
    ///
    /// # Errors
    ///
    /// [`SpecError::SpelledOtherwise`] if another spec, in the list or on disk, has the same name in another case;
    /// [`SpecError::Workspace`] if the spec is already listed and must not be replaced, or if the file is a link, is read-only, or is laid
    /// out so that the change would affect other text. The file is then unchanged.
    pub fn add(&self, entry: &WorkspaceEntry, listed: OnListed) -> Result<EntryChange, SpecError> {
        let _alone = self.turn()?;
        let meta = self.path.symlink_metadata();
        if meta.as_ref().is_ok_and(std::fs::Metadata::is_symlink) {
            return Err(self.refuse(Flaw(
                "it is a link; name the file that it leads to with --workspace".to_owned(),
            )));
        }
        let text = self.text()?;
        let workspace = SpecWorkspace::read(&text).map_err(|flaw| self.refuse(flaw))?;
        // A listed spec is accepted as it is; a new one must not collide with another on a
        // case-insensitive disk.
        if workspace.entry(&entry.id).is_none() {
            let listed = workspace.spelled_otherwise(&entry.id).cloned();
            let there = || SpecStore::new(&self.project(), entry.id.clone()).other_spelling();
            if let Some(other) = listed.or_else(there) {
                return Err(SpecError::SpelledOtherwise {
                    spec: entry.id.clone(),
                    other,
                });
            }
        }
        let (change, new) = match (workspace.entry(&entry.id), listed) {
            (None, _) => (EntryChange::Added, with_entry(&text, entry)),
            (Some(_), OnListed::Replace) => (EntryChange::Replaced, with_replaced(&text, entry)),
            (Some(_), OnListed::Refuse) => {
                let id = &entry.id;
                return Err(self.refuse(Flaw(format!(
                    "the spec {id} is already listed; give it new tags with --force, or name another one"
                ))));
            }
        };
        let new = new.map_err(|flaw| self.refuse(flaw))?;
        if new.len() as u64 > MAX_SIZE.0 {
            return Err(self.refuse(Flaw(format!(
                "it would become larger than {} bytes",
                MAX_SIZE.0
            ))));
        }
        let mode = meta.map_or(MODE, |meta| meta.permissions().mode() & 0o7777);
        if mode & 0o222 == 0 {
            return Err(self.refuse(Flaw(
                "it is read-only; make it writable (chmod u+w) first".to_owned(),
            )));
        }
        write_atomic_as(&self.path, new.as_bytes(), mode)?;
        Ok(change)
    }

    fn exists(&self) -> bool {
        match self.path.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => !self.path.is_dir(),
            Ok(meta) => !meta.is_dir(),
            Err(_) => false,
        }
    }

    fn directory(&self) -> &Path {
        self.path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."))
    }

    fn text(&self) -> Result<String, SpecError> {
        let bytes = read_regular_up_to(&self.path, MAX_SIZE)?;
        String::from_utf8(bytes).map_err(|error| {
            let good = error
                .as_bytes()
                .get(..error.utf8_error().valid_up_to())
                .unwrap_or_default();
            let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
            self.refuse(Flaw(format!(
                "line {line} is not UTF-8; save the file as UTF-8"
            )))
        })
    }

    fn refuse(&self, flaw: Flaw) -> SpecError {
        let why = Scanner::builtin().redact(&flaw.0).text.into_owned();
        SpecError::Workspace {
            path: self.path.display().to_string(),
            why,
        }
    }

    /// The lock for changing the file, held until drop.
    fn turn(&self) -> Result<DirectoryTurn, SpecError> {
        let turn = DirectoryTurn::take(self.directory(), TurnPurpose::Change, TIMEOUT);
        turn.map_err(|error| self.refuse(Flaw(error.to_string())))?
            .ok_or_else(|| {
                let why = "another process is still changing it; try again later";
                self.refuse(Flaw(why.to_owned()))
            })
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make the files that the workspace meets"
)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use crucible_host::fs::set_mode;

    use proptest::prelude::*;

    use super::*;

    fn entry(id: &str) -> WorkspaceEntry {
        let added = Some("2024-12-01T10:00:00Z".parse().unwrap());
        WorkspaceEntry {
            id: id.parse().unwrap(),
            tags: vec!["t".to_owned()],
            added,
        }
    }

    fn error_text(result: Result<impl std::fmt::Debug, SpecError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_workspace_is_made_once_and_grows() {
        let dir = tempfile::tempdir().unwrap();
        let file = WorkspaceFile::in_directory(dir.path());
        file.create("x").unwrap();
        assert!(error_text(file.create("y")).contains("already exists"));
        assert_eq!(
            file.add(&entry("a"), OnListed::Refuse).unwrap(),
            EntryChange::Added
        );
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert!(error_text(file.add(&entry("a"), OnListed::Refuse)).contains("--force"));
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), text);
        assert_eq!(
            file.add(&entry("a"), OnListed::Replace).unwrap(),
            EntryChange::Replaced
        );
        assert_eq!(
            file.add(&entry("b"), OnListed::Replace).unwrap(),
            EntryChange::Added
        );
        let loaded = file.load().unwrap();
        assert_eq!(loaded.specs, [entry("a"), entry("b")]);
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            1,
            "nothing is left beside it"
        );
    }

    #[test]
    fn secret_in_workspace_is_hidden_but_kept() {
        let dir = tempfile::tempdir().unwrap();
        let file = WorkspaceFile::in_directory(dir.path());
        let secret = format!("gh{}_{}", 'p', "16C7e42F292c6912E7710c838347Ae178B4a");
        let text = format!(
            "version: \"1\"\nname: {secret}\nspecs:\n- id: a\n  tags: [ok, \"{secret}\"]\n"
        );
        std::fs::write(file.path(), &text).unwrap();
        let loaded = file.load().unwrap();
        assert_eq!(
            loaded.specs[0].tags,
            ["ok", "[secret:github-personal-token]"]
        );
        assert!(!format!("{loaded:?}").contains(&secret));
        file.add(&entry("b"), OnListed::Refuse).unwrap();
        assert!(
            std::fs::read_to_string(file.path())
                .unwrap()
                .starts_with(&text),
            "what it says stays"
        );
        std::fs::write(file.path(), format!("version: \"{secret}\"\nname: x\n")).unwrap();
        assert!(!error_text(file.load()).contains(&secret));
    }

    #[test]
    fn non_text_file_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = WorkspaceFile::in_directory(dir.path());
        assert!(error_text(file.load()).contains("No such file"));
        std::fs::write(file.path(), b"version: \"1\"\nname: \xff\n").unwrap();
        assert!(error_text(file.load()).contains("line 2 is not UTF-8"));
        std::fs::write(file.path(), vec![b'#'; 2 << 20]).unwrap();
        assert!(error_text(file.load()).contains("larger than"));
        std::fs::remove_file(file.path()).unwrap();
        symlink("/dev/zero", file.path()).unwrap();
        assert!(error_text(file.load()).contains("not a regular file"));
    }

    #[test]
    fn a_link_is_read_and_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let real = WorkspaceFile::at(dir.path().join("real.yaml"));
        real.create("x").unwrap();
        let file = WorkspaceFile::in_directory(dir.path());
        symlink("real.yaml", file.path()).unwrap();
        assert_eq!(file.load().unwrap().name, "x");
        assert!(error_text(file.add(&entry("a"), OnListed::Refuse)).contains("is a link"));
        assert!(file.path().is_symlink() && real.load().unwrap().specs.is_empty());
        std::fs::remove_file(real.path()).unwrap();
        assert!(
            error_text(file.create("y")).contains("already exists"),
            "not made through a link"
        );
    }

    #[test]
    fn file_mode_and_read_only_state_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let file = WorkspaceFile::in_directory(dir.path());
        file.create("x").unwrap();
        for mode in [0o600, 0o664] {
            set_mode(file.path(), mode).unwrap();
            file.add(&entry(&format!("a{mode}")), OnListed::Refuse)
                .unwrap();
            assert_eq!(
                file.path().metadata().unwrap().permissions().mode() & 0o7777,
                mode
            );
        }
        set_mode(file.path(), 0o444).unwrap();
        assert!(error_text(file.add(&entry("b"), OnListed::Refuse)).contains("read-only"));
        assert_eq!(file.load().unwrap().specs.len(), 2);
    }

    #[test]
    fn private_workspace_stays_private_during_change() {
        let dir = tempfile::tempdir().unwrap();
        let file = WorkspaceFile::in_directory(dir.path());
        file.create("x").unwrap();
        set_mode(file.path(), 0o600).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watching = scope.spawn(|| {
                let mut seen = Vec::new();
                while !is_over.load(Ordering::SeqCst) {
                    let mode = file.path().metadata().unwrap().permissions().mode() & 0o777;
                    if !seen.contains(&mode) {
                        seen.push(mode);
                    }
                }
                seen
            });
            for number in 0..20 {
                file.add(&entry(&format!("a{number}")), OnListed::Refuse)
                    .unwrap();
            }
            is_over.store(true, Ordering::SeqCst);
            assert_eq!(watching.join().unwrap(), [0o600]);
        });
    }

    #[test]
    fn concurrent_changes_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        let file = WorkspaceFile::in_directory(dir.path());
        file.create("x").unwrap();
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let file = file.clone();
                std::thread::spawn(move || {
                    for turn in 0..5 {
                        file.add(&entry(&format!("s{number}-{turn}")), OnListed::Refuse)
                            .unwrap();
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(file.load().unwrap().specs.len(), 40);
    }

    #[test]
    fn workspace_directory_is_ignored_dangling_link_counts() {
        let dir = tempfile::tempdir().unwrap();
        let (upper, lower) = (dir.path().join("a"), dir.path().join("a/b"));
        std::fs::create_dir_all(lower.join(NAME)).unwrap();
        WorkspaceFile::in_directory(dir.path()).create("x").unwrap();
        assert_eq!(
            WorkspaceFile::discover(&lower),
            Some(WorkspaceFile::in_directory(dir.path()))
        );
        symlink("nowhere", upper.join(NAME)).unwrap();
        let found = WorkspaceFile::discover(&lower).unwrap();
        assert_eq!(found, WorkspaceFile::in_directory(&upper));
        assert!(
            error_text(found.load()).contains("No such file"),
            "the one above is not taken instead"
        );
    }

    mod properties {
        use super::*;

        proptest! {
            /// The nearest one upward, whatever other files exist, and none if there is none.
            #[test]
            fn only_nearest_workspace_upward_is_used(
                depth in 1usize..7,
                above in prop::collection::vec(any::<bool>(), 7),
                beside in prop::collection::vec(any::<bool>(), 7),
            ) {
                let dir = tempfile::tempdir().unwrap();
                let mut place = dir.path().to_owned();
                let mut nearest = None;
                for level in 0..depth {
                    place = place.join(format!("d{level}"));
                    std::fs::create_dir_all(place.join("beside")).unwrap();
                    if above[level] {
                        let file = WorkspaceFile::in_directory(&place);
                        // Without flushing each to disk, which would take most of the time here.
                        let text = format!("version: \"1\"\nname: level {level}\nspecs:\n- id: only-{level}\n");
                        std::fs::write(file.path(), text).unwrap();
                        nearest = Some((file, level));
                    }
                    // A file in a sibling directory is not found, and neither is one with a similar name.
                    if beside[level] {
                        std::fs::write(place.join("beside").join(NAME), "version: \"1\"\nname: beside\n").unwrap();
                        std::fs::write(place.join("Workspace.yaml.bak"), "version: 1\n").unwrap();
                    }
                }
                let found = WorkspaceFile::discover(&place);
                match nearest {
                    Some((file, level)) => {
                        prop_assert_eq!(found.as_ref(), Some(&file));
                        let workspace = file.load().unwrap();
                        prop_assert_eq!(workspace.name, format!("level {level}"));
                        // Files further up are not merged into it.
                        prop_assert_eq!(workspace.specs.len(), 1);
                        let project = file.project();
                        prop_assert_eq!(project.root(), file.path().parent().unwrap());
                    }
                    // The search continues to the root of the file system.
                    None => prop_assert_eq!(found, WorkspaceFile::discover(dir.path())),
                }
            }
        }
    }
}
