//! Building a context pack, beside reading the same files into memory.
//!
//! The pack is built from a plain folder. Its secret scan is measured as a case of its own: reading from a warm
//! cache runs at gigabytes a second and no scan does, so the second case says what looking costs, and the third
//! whether the pack adds anything to reading and looking.

use std::path::Path;
use std::time::Duration;

use crucible_host::fs::read_prefix;
use crucible_model::{ByteLimit, FileLimit, RepoPath};
use crucible_pack::{
    Budget, ContextPack, Entry, FileRequest, Mandatory, Mode, Need, RequestVersion, Source, SourceError,
    build,
};
use crucible_secrets::{Scanner, is_secret_file};

use super::measure::{Case, Goal, side_by_side, timed};
use super::tree::{SourceTree, read};
use super::{Bench, Context, unmeasured};
use crate::error::TaskError;

/// The most times that reading takes.
const MOST: f64 = 1.5;

/// The bench of the context pack.
pub(super) struct Pack;

impl Bench for Pack {
    fn name(&self) -> &'static str {
        "pack"
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let mut cases = Vec::new();
        for tree in context.trees()?.both() {
            let packed = Packed::choose(tree)?;
            let what = packed.describe();
            let shapes = [
                (Looks::Away, Looks::Away, "pack, no secret scan", "reading"),
                (Looks::ForSecrets, Looks::Away, "pack", "reading"),
                (Looks::ForSecrets, Looks::ForSecrets, "pack", "reading and scanning"),
            ];
            for (ours, beside, name, beside_name) in shapes {
                cases.push(Case {
                    bench: self.name(),
                    ours: format!("{name}: {what}"),
                    beside: beside_name.to_owned(),
                    pair: side_by_side(context.rounds, || packed.build(ours), || packed.read(beside))?,
                    goal: Goal::TimesAtMost(MOST),
                });
            }
        }
        Ok(cases)
    }
}

/// Whether file contents are searched for secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looks {
    ForSecrets,
    Away,
}

/// The files of a tree that a pack takes whole, and the request for them.
struct Packed<'a> {
    tree: &'a SourceTree,
    request: FileRequest,
}

impl<'a> Packed<'a> {
    /// Builds one pack to see which files it takes: both sides are then about exactly these.
    fn choose(tree: &'a SourceTree) -> Result<Self, TaskError> {
        let all = request(tree.files.iter().map(ToString::to_string));
        let pack = pack(tree, &all, Looks::ForSecrets)?;
        let request = request(pack.files.into_iter().map(|file| file.path));
        Ok(Self { tree, request })
    }

    fn describe(&self) -> String {
        match self.tree.files.len() - self.request.needs.len() {
            0 => self.tree.name.clone(),
            refused => format!("{} without {refused} files that look like secrets", self.tree.name),
        }
    }

    fn build(&self, looks: Looks) -> Result<Duration, TaskError> {
        let (time, pack) = timed(|| pack(self.tree, &self.request, looks));
        let files = pack?.files.len();
        if files == self.request.needs.len() {
            Ok(time)
        } else {
            Err(unmeasured("pack")(format!("it holds {files} of {} files", self.request.needs.len())))
        }
    }

    /// Everything is kept until the end, as a pack keeps it.
    fn read(&self, looks: Looks) -> Result<Duration, TaskError> {
        let read = || -> Result<(Vec<Vec<u8>>, usize), TaskError> {
            let mut contents = Vec::with_capacity(self.request.needs.len());
            let mut found = 0;
            for need in &self.request.needs {
                let content = read(&self.tree.folder.join(&need.path))?;
                if looks == Looks::ForSecrets {
                    found += Scanner::builtin().scan(&content).len();
                }
                contents.push(content);
            }
            Ok((contents, found))
        };
        let (time, contents) = timed(read);
        contents.map(|_| time)
    }
}

fn request(paths: impl Iterator<Item = String>) -> FileRequest {
    FileRequest {
        schema_version: RequestVersion::V1,
        goal: "measure".to_owned(),
        needs: paths.map(|path| Need { path, mode: Mode::Full, line_ranges: Vec::new() }).collect(),
        budget: Budget { max_files: FileLimit(u64::MAX), max_total_bytes: ByteLimit(1 << 40) },
        reason: "every file".to_owned(),
    }
}

fn pack(tree: &SourceTree, request: &FileRequest, looks: Looks) -> Result<ContextPack, TaskError> {
    let source = Folder { top: &tree.folder, looks };
    build(request, &Mandatory::default(), &tree.name, &source).map_err(unmeasured("pack"))
}

/// A folder as a pack sees it.
struct Folder<'a> {
    top: &'a Path,
    looks: Looks,
}

impl Source for Folder<'_> {
    fn entry(&self, path: &RepoPath) -> Entry {
        match std::fs::symlink_metadata(self.top.join(path)) {
            Ok(meta) if meta.is_file() => Entry::File { size: meta.len() },
            Ok(_) => Entry::NotAFile,
            Err(_) => Entry::Missing,
        }
    }

    fn read(&self, path: &RepoPath, max: u64) -> Result<Vec<u8>, SourceError> {
        read_prefix(&self.top.join(path), ByteLimit(max))
            .map(|prefix| prefix.bytes)
            .map_err(|error| SourceError { path: path.clone(), problem: error.to_string() })
    }

    fn is_secret(&self, path: &RepoPath, content: &[u8]) -> Option<String> {
        if is_secret_file(path.as_str()) {
            return Some("secret-file".to_owned());
        }
        if self.looks == Looks::Away {
            return None;
        }
        Scanner::builtin().scan(content).first().map(|found| found.rule.to_string())
    }
}
