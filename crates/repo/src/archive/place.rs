//! Where the members of an archive go: below one directory, each name resolved part by part without following a link.
//!
//! Symbolic links are kept until the last file is written, then judged together and made. A link may point down through other
//! links and up over directories, and not up again after a link: then each step of its way stays in the top folder because
//! each link's does, and one look at its text proves it.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::entries::{Member, MemberKind};
use super::{ArchiveError, ArchiveLimits, MemberName, Refusal, Unpacked};
use crate::beneath::Root;
use crate::error::RepoError;
use crate::oid::Oid;

/// Maximum bytes of names and targets of all links, which are kept until the end.
const MAX_LINK_TEXT: u64 = 4 << 20;

/// The directory where an archive is unpacked, and its current content.
pub(super) struct Unpacker {
    root: Root,
    limits: ArchiveLimits,
    top: Option<Vec<u8>>,
    /// Every created directory, and whether an entry named it.
    directories: BTreeMap<Vec<u8>, Named>,
    links: BTreeMap<Vec<u8>, Vec<u8>>,
    link_text: u64,
    entry_count: u64,
    special_bits: u64,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    ByAnEntry,
    ByItsContent,
}

impl Unpacker {
    pub(super) fn create_in(into: &Path, limits: &ArchiveLimits) -> Result<Self, ArchiveError> {
        Ok(Self {
            root: Root::open(into)?,
            limits: *limits,
            top: None,
            directories: BTreeMap::new(),
            links: BTreeMap::new(),
            link_text: 0,
            entry_count: 0,
            special_bits: 0,
            buffer: vec![0; 64 << 10],
        })
    }

    /// Makes one member.
    pub(super) fn create(
        &mut self,
        member: Member,
        content: &mut dyn Read,
    ) -> Result<(), ArchiveError> {
        let Member {
            name,
            kind,
            has_special_bits,
        } = member;
        self.check_top(&name, &kind)?;
        self.special_bits += u64::from(has_special_bits);
        match kind {
            MemberKind::Directory => self.directory(&name, Named::ByAnEntry),
            MemberKind::File {
                size,
                is_executable,
            } => {
                self.parents(&name)?;
                self.count()?;
                self.write(&name, size, is_executable, content)
            }
            MemberKind::HardLink(target) => {
                self.parents(&name)?;
                self.count()?;
                self.hard_link(&name, &target)
            }
            MemberKind::Link(target) => {
                self.parents(&name)?;
                self.count()?;
                self.keep_link(&name, target)
            }
        }
    }

    /// Creates the links, and returns what exists.
    pub(super) fn finish(
        mut self,
        into: &Path,
        commit: Option<Oid>,
        stop: &AtomicBool,
    ) -> Result<Unpacked, ArchiveError> {
        let links = std::mem::take(&mut self.links);
        let names: HashSet<u64> = links
            .keys()
            .map(|name| steps(name).last().unwrap_or_default())
            .collect();
        for (name, target) in &links {
            self.judge_link(name, target, &names)
                .map_err(|why| why.into_error(name))?;
        }
        for (name, target) in &links {
            if stop.load(Ordering::Relaxed) {
                return Err(ArchiveError::Stopped);
            }
            let (path, target) = (crate::git::as_path(name), crate::git::as_path(target));
            self.root
                .make_link(&path, &target)
                .map_err(|errno| self.fault("link", name, errno))?;
        }
        let top = self.top.and_then(|top| String::from_utf8(top).ok());
        let top = top.ok_or_else(|| ArchiveError::Damaged {
            what: "it is empty".to_owned(),
        })?;
        Ok(Unpacked {
            tree: into.join(&top),
            top,
            commit,
            special_bits: self.special_bits,
        })
    }

    /// Checks that everything is inside the top directory of the first entry.
    fn check_top(&mut self, name: &MemberName, kind: &MemberKind) -> Result<(), ArchiveError> {
        let mut parts = name.parts();
        let first = parts.next().unwrap_or_default();
        let is_itself_the_top = parts.next().is_none();
        let is_fine = match &self.top {
            Some(top) => top == first,
            None => std::str::from_utf8(first).is_ok(),
        };
        if !is_fine || (is_itself_the_top && !matches!(kind, MemberKind::Directory)) {
            return Err(Refusal::OtherTop.into_error(name.bytes()));
        }
        if self.top.is_none() {
            self.top = Some(first.to_vec());
        }
        Ok(())
    }

    fn count(&mut self) -> Result<(), ArchiveError> {
        self.entry_count += 1;
        if self.entry_count > self.limits.entries {
            return Err(ArchiveError::TooLarge {
                what: "entries",
                limit: self.limits.entries,
            });
        }
        Ok(())
    }

    /// Makes the directories above `name` that are not there.
    fn parents(&mut self, name: &MemberName) -> Result<(), ArchiveError> {
        let bytes = name.bytes();
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'/') else {
            return Ok(());
        };
        if self.directories.contains_key(&bytes[..end]) {
            return Ok(());
        }
        let ends = (0..=end).filter(|at| bytes[*at] == b'/');
        for end in ends {
            if !self.directories.contains_key(&bytes[..end]) {
                self.make_directory(&bytes[..end], name, Named::ByItsContent)?;
            }
        }
        Ok(())
    }

    fn directory(&mut self, name: &MemberName, named: Named) -> Result<(), ArchiveError> {
        match self.directories.get_mut(name.bytes()) {
            Some(Named::ByAnEntry) => Err(Refusal::Duplicate.into_error(name.bytes())),
            Some(known) => {
                *known = named;
                Ok(())
            }
            None => {
                self.parents(name)?;
                self.make_directory(name.bytes(), name, named)
            }
        }
    }

    fn make_directory(
        &mut self,
        path: &[u8],
        entry: &MemberName,
        named: Named,
    ) -> Result<(), ArchiveError> {
        self.count()?;
        self.root
            .make_new_dir(&crate::git::as_path(path))
            .map_err(|errno| self.fault("make", entry.bytes(), errno))?;
        self.directories.insert(path.to_vec(), named);
        Ok(())
    }

    fn write(
        &mut self,
        name: &MemberName,
        size: u64,
        is_executable: bool,
        content: &mut dyn Read,
    ) -> Result<(), ArchiveError> {
        let mode = Mode::from_raw_mode(if is_executable { 0o755 } else { 0o644 });
        let path = name.path();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let fail = |errno| self.fault("write", name.bytes(), errno);
        let fd = self.root.open_file(&path, flags, mode).map_err(fail)?;
        rustix::fs::fchmod(&fd, mode).map_err(fail)?;
        let mut file = File::from(fd);
        let mut left = size;
        while left > 0 {
            let most = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(self.buffer.len());
            let count = match content.read(&mut self.buffer[..most]) {
                Ok(count) if count > 0 => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The reader knows what is missing or broken.
                Ok(_) | Err(_) => break,
            };
            io::Write::write_all(&mut file, &self.buffer[..count])
                .map_err(|source| RepoError::io("write", &path, source))?;
            left -= count as u64;
        }
        Ok(())
    }

    fn hard_link(&mut self, name: &MemberName, target: &[u8]) -> Result<(), ArchiveError> {
        let known = MemberName::judge(target, &self.limits);
        let target = known.map_err(|_| Refusal::LeadsOut.into_error(name.bytes()))?;
        if target.parts().next() != name.parts().next() {
            return Err(Refusal::LeadsOut.into_error(name.bytes()));
        }
        match self.root.hard_link(&target.path(), &name.path()) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(Refusal::Duplicate.into_error(name.bytes())),
            // Nothing, a directory, or a link that is not created yet.
            Err(Errno::NOENT | Errno::PERM | Errno::NOTDIR | Errno::LOOP) => {
                return Err(Refusal::HardLink.into_error(name.bytes()));
            }
            Err(errno) => return Err(self.fault("link", name.bytes(), errno)),
        }
        Ok(())
    }

    fn keep_link(&mut self, name: &MemberName, target: Vec<u8>) -> Result<(), ArchiveError> {
        self.link_text += (name.bytes().len() + target.len()) as u64;
        if self.link_text > MAX_LINK_TEXT {
            return Err(ArchiveError::TooLarge {
                what: "bytes of links",
                limit: MAX_LINK_TEXT,
            });
        }
        match self.links.insert(name.bytes().to_vec(), target) {
            None => Ok(()),
            Some(_) => Err(Refusal::Duplicate.into_error(name.bytes())),
        }
    }

    /// Whether a link stays in the top folder. `names` are the last steps of every link.
    fn judge_link(&self, name: &[u8], target: &[u8], names: &HashSet<u64>) -> Result<(), Refusal> {
        if target.first() == Some(&b'/') {
            return Err(Refusal::LeadsOut);
        }
        if target.is_empty() || target.contains(&0) || target.len() > self.limits.path {
            return Err(Refusal::Contradiction);
        }
        // The current position: one step for each directory below the top.
        let mut position: Vec<u64> = steps(name).collect();
        position.pop();
        let mut is_behind_link = false;
        for part in target.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." if is_behind_link => return Err(Refusal::ThroughLink),
                b".." => {
                    position.pop();
                    if position.is_empty() {
                        return Err(Refusal::LeadsOut);
                    }
                }
                part => {
                    let step = step(position.last().copied().unwrap_or_default(), part);
                    is_behind_link |= names.contains(&step);
                    position.push(step);
                }
            }
        }
        Ok(())
    }

    /// Converts the error of a failed call: most mean that two entries have one name.
    fn fault(&self, action: &'static str, entry: &[u8], errno: Errno) -> ArchiveError {
        match errno {
            Errno::EXIST | Errno::NOTDIR | Errno::ISDIR | Errno::LOOP => {
                Refusal::Duplicate.into_error(entry)
            }
            Errno::NAMETOOLONG => Refusal::TooLong.into_error(entry),
            _ => self
                .root
                .fail(action, &crate::git::as_path(entry), errno)
                .into(),
        }
    }
}

/// Returns a number for each directory of `path`, and for `path`: equal paths have equal numbers. A collision
/// would only refuse a link.
fn steps(path: &[u8]) -> impl Iterator<Item = u64> {
    path.split(|byte| *byte == b'/').scan(0, |before, part| {
        *before = step(*before, part);
        Some(*before)
    })
}

fn step(before: u64, part: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (before, part).hash(&mut hasher);
    hasher.finish()
}
