//! The walk: level by level, so that what lies higher is listed first and a bound cuts off what lies deepest.
//!
//! Directories that are passed over and those that lie too deep are walked afterwards, for their links alone, with a bound of
//! their own. A directory counts as a whole: whether it fits is decided by how much it holds, not by which names come first.
//! Of a top that does not fit, the files that are always read are looked up by their names: they say how the whole is built.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::path::Path;

use crucible_model::is_hidden;
use rustix::fs::{AtFlags, FileType, RawDir};
use rustix::io::Errno;

use super::rules::{always_read, is_skipped_directory, is_skipped_file};
use super::{RepoSample, SampleCap, SampleCaps, join, summary};
use crate::beneath::Root;
use crate::error::RepoError;

/// Bytes that one call of the kernel may fill with names.
const BUFFER: usize = 32 << 10;

/// Lists the tree at `root`: a complete [`RepoSample`] except the read files.
pub(super) fn walk(root: &Root, caps: &SampleCaps) -> Result<RepoSample, RepoError> {
    let mut walk = Walk {
        root,
        caps,
        buffer: Vec::with_capacity(BUFFER),
        remaining: Left::new(caps),
        found: RepoSample::default(),
        odd: Vec::new(),
        skipped_directories: Vec::new(),
    };
    let mut level = vec![String::new()];
    let mut depth = 0;
    while !level.is_empty() {
        level = walk.list_level(level, depth)?;
        depth += 1;
    }
    // Each directory is in order already, so this sort finds long runs; it is much faster than an unstable one.
    walk.found.listing.sort();
    walk.found.odd_names = walk.odd.len() as u64;
    summary::write(&mut walk.found, &walk.odd, caps.names);

    walk.remaining = Left::new(caps);
    let mut level = std::mem::take(&mut walk.skipped_directories);
    while !level.is_empty() {
        level = walk.seek_links(level);
    }
    Ok(walk.found)
}

struct Walk<'a> {
    root: &'a Root,
    caps: &'a SampleCaps,
    buffer: Vec<u8>,
    remaining: Left,
    found: RepoSample,
    /// Paths that are not examined because of a name in them, escaped.
    odd: Vec<String>,
    /// Directories whose links are sought afterwards.
    skipped_directories: Vec<String>,
}

/// What may still be looked at.
struct Left {
    entries: usize,
    path_bytes: usize,
}

impl Left {
    fn new(caps: &SampleCaps) -> Self {
        Self {
            entries: caps.entries,
            path_bytes: caps.path_bytes,
        }
    }

    /// Handles a directory with more than the `seen` entries allowed. The entries seen are charged, or many
    /// such directories could keep the walk busy forever.
    fn overfull(&mut self, seen: usize, caps: &SampleCaps) -> DirectoryResult {
        self.entries -= seen;
        if seen == caps.directory_entries {
            DirectoryResult::TooLarge
        } else {
            DirectoryResult::NothingLeft
        }
    }
}

/// One entry of a directory.
struct Entry {
    /// Its name, or its escaped form if it is odd.
    name: Name,
    kind: FileType,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Plain(String),
    /// Not UTF-8, or with invisible characters.
    Odd {
        escaped: String,
        utf8: Option<String>,
    },
}

/// What became of a directory.
enum DirectoryResult {
    Entries(Vec<Entry>),
    /// It is larger than a directory may be.
    TooLarge,
    /// It would have fitted at the start, and does not any more.
    NothingLeft,
    Unreadable(Errno),
}

impl Walk<'_> {
    /// Lists the directories of one level, and gives back those of the next.
    fn list_level(
        &mut self,
        mut level: Vec<String>,
        depth: usize,
    ) -> Result<Vec<String>, RepoError> {
        level.sort_unstable();
        let mut next = Vec::new();
        let mut directories = level.into_iter();
        while let Some(directory) = directories.next() {
            let listed = self.list(&directory);
            if directory.is_empty()
                && matches!(
                    listed,
                    DirectoryResult::TooLarge | DirectoryResult::NothingLeft
                )
            {
                self.look_up_known(depth, &mut next);
            }
            let entries = match listed {
                DirectoryResult::Entries(entries) => entries,
                DirectoryResult::TooLarge => {
                    self.found.caps_hit.insert(SampleCap::Walk);
                    self.found.unseen.insert(directory);
                    continue;
                }
                DirectoryResult::NothingLeft => {
                    self.found.caps_hit.insert(SampleCap::Walk);
                    self.found.unseen.insert(directory);
                    self.found.unseen.extend(directories);
                    self.found.unseen.extend(next);
                    return Ok(Vec::new());
                }
                DirectoryResult::Unreadable(errno) if directory.is_empty() => {
                    return Err(self.root.fail("list", Path::new(""), errno));
                }
                DirectoryResult::Unreadable(_) => {
                    self.found.unreadable += 1;
                    self.found.unseen.insert(directory);
                    continue;
                }
            };
            for Entry { name, kind } in entries {
                self.take(&directory, name, kind, depth, &mut next);
            }
        }
        Ok(next)
    }

    /// Takes the files at the top that are always read, one by one.
    fn look_up_known(&mut self, depth: usize, next: &mut Vec<String>) {
        for name in always_read() {
            match self.root.stat(Path::new(name)) {
                Ok(stat) => {
                    let kind = FileType::from_raw_mode(stat.st_mode);
                    self.take("", Name::Plain(name.to_owned()), kind, depth, next);
                }
                Err(Errno::NOENT) => {}
                Err(_) => self.found.unreadable += 1,
            }
        }
    }

    fn take(
        &mut self,
        directory: &str,
        name: Name,
        kind: FileType,
        depth: usize,
        next: &mut Vec<String>,
    ) {
        let name = match name {
            Name::Plain(name) => name,
            Name::Odd { escaped, utf8 } => {
                self.odd.push(join(directory, &escaped));
                if let Some(name) = utf8 {
                    self.keep_away(join(directory, &name), kind);
                }
                return;
            }
        };
        match kind {
            FileType::RegularFile if is_skipped_file(&name) => {}
            FileType::RegularFile => self.found.listing.push(join(directory, &name)),
            FileType::Symlink => {
                self.found.links.insert(join(directory, &name));
            }
            FileType::Directory if name == ".git" => {}
            FileType::Directory if is_skipped_directory(&name) => {
                self.skipped_directories.push(join(directory, &name))
            }
            FileType::Directory if depth >= self.caps.depth => {
                self.found.caps_hit.insert(SampleCap::Depth);
                self.skipped_directories.push(join(directory, &name));
            }
            FileType::Directory => next.push(join(directory, &name)),
            _ => {}
        }
    }

    /// Looks for links in the directories of one level, and gives back those of the next.
    fn seek_links(&mut self, mut level: Vec<String>) -> Vec<String> {
        level.sort_unstable();
        let mut next = Vec::new();
        let mut directories = level.into_iter();
        while let Some(directory) = directories.next() {
            let entries = match self.list(&directory) {
                DirectoryResult::Entries(entries) => entries,
                DirectoryResult::TooLarge | DirectoryResult::Unreadable(_) => {
                    self.found.unseen.insert(directory);
                    continue;
                }
                DirectoryResult::NothingLeft => {
                    self.found.unseen.insert(directory);
                    self.found.unseen.extend(directories);
                    self.found.unseen.extend(next);
                    return Vec::new();
                }
            };
            for Entry { name, kind } in entries {
                match (name, kind) {
                    (Name::Plain(name), FileType::Directory) if name != ".git" => {
                        next.push(join(&directory, &name))
                    }
                    (
                        Name::Plain(name)
                        | Name::Odd {
                            utf8: Some(name), ..
                        },
                        kind,
                    ) if name != ".git" => {
                        self.keep_away(join(&directory, &name), kind);
                    }
                    _ => {}
                }
            }
        }
        next
    }

    /// Records what no path may lead through.
    fn keep_away(&mut self, path: String, kind: FileType) {
        match kind {
            FileType::Symlink => self.found.links.insert(path),
            FileType::Directory => self.found.unseen.insert(path),
            _ => false,
        };
    }

    fn list(&mut self, directory: &str) -> DirectoryResult {
        match self.read_entries(directory) {
            Ok(listed) => listed,
            Err(errno) => DirectoryResult::Unreadable(errno),
        }
    }

    fn read_entries(&mut self, directory: &str) -> Result<DirectoryResult, Errno> {
        let fd = self.root.open_dir(Path::new(directory))?;
        let mut entries = Vec::new();
        let mut path_bytes = 0;
        let buffer: &mut [MaybeUninit<u8>] = self.buffer.spare_capacity_mut();
        let mut dir = RawDir::new(&fd, buffer);
        while let Some(entry) = dir.next() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if entries.len() == self.caps.directory_entries.min(self.remaining.entries) {
                return Ok(self.remaining.overfull(entries.len(), self.caps));
            }
            path_bytes += directory.len() + 1 + name.to_bytes().len();
            if path_bytes > self.remaining.path_bytes {
                self.remaining = Left {
                    entries: 0,
                    path_bytes: 0,
                };
                return Ok(DirectoryResult::NothingLeft);
            }
            let kind = match entry.file_type() {
                // Some file systems do not say it while they list.
                FileType::Unknown => {
                    let stat = rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(stat.st_mode)
                }
                kind => kind,
            };
            entries.push(Entry {
                name: read_name(name),
                kind,
            });
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        self.remaining.entries -= entries.len();
        self.remaining.path_bytes -= path_bytes;
        Ok(DirectoryResult::Entries(entries))
    }
}

fn read_name(name: &CStr) -> Name {
    // Nearly every name is of this kind.
    let is_plain = name
        .to_bytes()
        .iter()
        .all(|byte| matches!(byte, b' '..=b'~'));
    match name.to_str() {
        Ok(text) if is_plain => Name::Plain(text.to_owned()),
        Ok(text) if !text.chars().any(is_hidden) => Name::Plain(text.to_owned()),
        Ok(text) => Name::Odd {
            escaped: summary::escaped(text),
            utf8: Some(text.to_owned()),
        },
        Err(_) => {
            let escaped = name.to_bytes().utf8_chunks().map(|chunk| {
                let bytes: String = chunk
                    .invalid()
                    .iter()
                    .map(|byte| format!("\\x{byte:02x}"))
                    .collect();
                summary::escaped(chunk.valid()) + &bytes
            });
            Name::Odd {
                escaped: escaped.collect(),
                utf8: None,
            }
        }
    }
}
