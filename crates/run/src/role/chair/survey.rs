//! Reads the files to rank, in parallel.
//!
//! One limit applies to each file and another to all files together; later files are ranked by their path alone.
//! Generated files, files at denied paths and files with a secret's name are never opened. The result depends on the
//! files and their order, not on the number of threads.

use std::collections::HashSet;
use std::path::Path;
use std::thread;

use crucible_model::{ByteLimit, Denial, RepoPath, denied_place};
use crucible_pack::{Candidate, FileClass, Goal};
use crucible_repo::{PathState, TreeReader};
use crucible_secrets::is_secret_file;

/// The reason that the pack records when it omits a file with a secret's name.
pub(crate) const SECRET: &str = "is secret by its name";

/// The most bytes of a file that are read to rank it.
const READ: ByteLimit = ByteLimit(256 * 1024);

/// The number of files between two checks of the total limit.
const BATCH: usize = 1024;

/// The fewest files for which a thread is started.
const MIN_FILES_PER_THREAD: usize = 64;

/// The most reading threads; more would only wait for the disk.
const MAX_THREADS: usize = 8;

/// A file to rank, with its size in bytes if it is known.
#[derive(Debug, Clone)]
pub(crate) struct ListedFile {
    pub(crate) path: RepoPath,
    pub(crate) size: Option<u64>,
}

/// A file with its rank.
#[derive(Debug)]
pub(crate) struct RankedCandidate {
    pub(crate) candidate: Candidate,
    /// The size of the file in bytes.
    pub(crate) size: u64,
    pub(crate) read_extent: ReadExtent,
}

/// How much of a file was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadExtent {
    /// This many bytes from the beginning.
    Text(u64),
    /// Nothing: its content is not needed, denied or unreadable.
    PathOnly,
    /// Nothing: the total limit was reached before.
    Unread,
    /// Nothing: git tracks it, but it does not exist.
    Gone,
}

/// Ranks `files` below `top`, in their order. Reads their text until `most` bytes are reached; the last file is read
/// whole. Files in `free` are already in the pack.
pub(crate) fn survey(
    top: &Path,
    goal: &Goal,
    files: &[ListedFile],
    most: ByteLimit,
    free: &HashSet<RepoPath>,
) -> Vec<RankedCandidate> {
    let surveyor = FileSurvey {
        reader: TreeReader::open(top).ok(),
        goal,
        free,
    };
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MAX_THREADS);
    let mut looks = Vec::with_capacity(files.len());
    let mut read = 0;
    for batch in files.chunks(BATCH) {
        if read >= most.0 {
            looks.extend(batch.iter().map(|file| surveyor.pass_over(file)));
            continue;
        }
        for (look, file) in surveyor.look_at_all(batch, threads).into_iter().zip(batch) {
            match look.read_extent {
                ReadExtent::Text(_) if read >= most.0 => looks.push(surveyor.pass_over(file)),
                ReadExtent::Text(bytes) => {
                    read = read.saturating_add(bytes);
                    looks.push(look);
                }
                ReadExtent::PathOnly | ReadExtent::Unread | ReadExtent::Gone => looks.push(look),
            }
        }
    }
    looks
}

/// The state that the reading threads share.
struct FileSurvey<'a> {
    reader: Option<TreeReader>,
    goal: &'a Goal,
    free: &'a HashSet<RepoPath>,
}

impl FileSurvey<'_> {
    fn look_at_all(&self, batch: &[ListedFile], threads: usize) -> Vec<RankedCandidate> {
        let part = batch.len().div_ceil(threads).max(MIN_FILES_PER_THREAD);
        let mut parts = batch.chunks(part);
        let first = parts.next().unwrap_or_default();
        thread::scope(|scope| {
            let others: Vec<_> = parts
                .map(|part| scope.spawn(|| self.look_at_each(part)))
                .collect();
            let mut looks = self.look_at_each(first);
            for other in others {
                match other.join() {
                    Ok(more) => looks.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            looks
        })
    }

    fn look_at_each(&self, files: &[ListedFile]) -> Vec<RankedCandidate> {
        let mut text = Vec::new();
        files
            .iter()
            .map(|file| self.look_at(file, &mut text))
            .collect()
    }

    fn look_at(&self, file: &ListedFile, text: &mut Vec<u8>) -> RankedCandidate {
        let class = FileClass::from_path(&file.path);
        if !is_wanted(&file.path, class) {
            return self.by_path(file, class, ReadExtent::PathOnly);
        }
        let read = self
            .reader
            .as_ref()
            .map(|reader| reader.read_prefix(&file.path, READ, text));
        match read {
            Some(Ok(size)) => RankedCandidate {
                candidate: self.with_name(self.goal.look_at(
                    file.path.clone(),
                    class,
                    size,
                    Some(text),
                )),
                size,
                read_extent: ReadExtent::Text(text.len() as u64),
            },
            Some(Err(_)) | None => self.by_path(file, class, ReadExtent::PathOnly),
        }
    }

    /// Ranks a file by its path, because the total limit was reached.
    fn pass_over(&self, file: &ListedFile) -> RankedCandidate {
        let class = FileClass::from_path(&file.path);
        self.by_path(
            file,
            class,
            if is_wanted(&file.path, class) {
                ReadExtent::Unread
            } else {
                ReadExtent::PathOnly
            },
        )
    }

    fn by_path(
        &self,
        file: &ListedFile,
        class: FileClass,
        mut seen: ReadExtent,
    ) -> RankedCandidate {
        let size = file.size.unwrap_or_else(|| {
            match self.reader.as_ref().map(|it| it.state(&file.path)) {
                Some(PathState::File { size } | PathState::ViaLink { size, .. }) => size,
                Some(PathState::Missing) => {
                    seen = ReadExtent::Gone;
                    0
                }
                Some(
                    PathState::NotAFile
                    | PathState::Outside
                    | PathState::LinkLoop
                    | PathState::DanglingLink
                    | PathState::Unreadable { .. },
                )
                | None => 0,
            }
        });
        RankedCandidate {
            candidate: self.with_name(self.goal.look_at(file.path.clone(), class, size, None)),
            size,
            read_extent: seen,
        }
    }

    fn with_name(&self, candidate: Candidate) -> Candidate {
        let path = candidate.path();
        if is_secret_file(path.as_str()) {
            candidate.withheld(SECRET)
        } else if self.free.contains(path) {
            candidate.already_in()
        } else {
            candidate
        }
    }
}

/// Returns whether the text of a file at this path may be read and helps to rank it.
fn is_wanted(path: &RepoPath, class: FileClass) -> bool {
    class != FileClass::Generated
        && denied_place(path, Denial::Shown).is_none()
        && !is_secret_file(path.as_str())
}

#[cfg(test)]
mod tests {
    use crucible_host::fs::{create_dir_all, write_atomic};

    use super::*;

    fn tree(files: &[(String, String)]) -> (tempfile::TempDir, Vec<ListedFile>) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let at = dir.path().join(path);
            create_dir_all(at.parent().unwrap()).unwrap();
            write_atomic(&at, text.as_bytes()).unwrap();
        }
        let listed = files.iter().map(|(path, _)| ListedFile {
            path: path.parse().unwrap(),
            size: None,
        });
        let listed = listed.collect();
        (dir, listed)
    }

    #[test]
    fn thread_count_does_not_change_result() {
        let files: Vec<(String, String)> = (0..300)
            .map(|n| {
                (
                    format!("d{}/f{n}.rs", n % 7),
                    format!("fn parser{n}() {{}}\n"),
                )
            })
            .collect();
        let (dir, listed) = tree(&files);
        let goal = Goal::new("mend parser7 and parser");
        let free = HashSet::new();
        let surveyor = FileSurvey {
            reader: TreeReader::open(dir.path()).ok(),
            goal: &goal,
            free: &free,
        };
        let survey_with = |threads| format!("{:?}", surveyor.look_at_all(&listed, threads));
        let alone = survey_with(1);
        assert_eq!(alone.matches("Text(").count(), 300);
        for threads in [2, 3, 8, 300] {
            assert_eq!(survey_with(threads), alone, "{threads}");
        }
    }

    #[test]
    fn denied_files_stay_closed_and_missing_is_reported() {
        let files = ["a.rs", "conf/.env", "build/b.rs", "Cargo.lock"]
            .map(|path| (path.to_owned(), "x".to_owned()));
        let (dir, mut listed) = tree(&files);
        listed.push(ListedFile {
            path: "gone.rs".parse().unwrap(),
            size: None,
        });
        let looks = survey(
            dir.path(),
            &Goal::new("x"),
            &listed,
            ByteLimit(1000),
            &HashSet::new(),
        );
        let seen: Vec<ReadExtent> = looks.iter().map(|look| look.read_extent).collect();
        assert_eq!(
            seen,
            [
                ReadExtent::Text(1),
                ReadExtent::PathOnly,
                ReadExtent::PathOnly,
                ReadExtent::PathOnly,
                ReadExtent::Gone
            ]
        );
        assert_eq!(
            looks.iter().map(|look| look.size).collect::<Vec<_>>(),
            [1, 1, 1, 1, 0]
        );
    }
}
