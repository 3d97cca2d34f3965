//! Reads the files of a bundle: regular files only, within limits, redacted.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crucible_model::Digest;
use crucible_secrets::{HELD_BACK, Scanner};

use super::manifest::{
    BundleCut, BundleEntry, BundleManifest, BundleOrigin, BundleVersion, OmittedEntry,
};
use super::{MANIFEST_NAME, Ready};

/// The most bytes of one file.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// The most bytes of all files.
const MAX_TOTAL: u64 = 64 * 1024 * 1024;

/// The most files.
const MAX_FILES: usize = 5_000;

/// Maximum rows for files that were left out.
const MAX_LEFT_OUT: usize = 1_000;

/// How deep directories are entered.
const MAX_DEPTH: usize = 8;

/// The important part of a file that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeptEnd {
    Beginning,
    End,
}

/// What was read so far.
pub(super) struct Collected<'a> {
    pub(super) entries: Vec<Ready>,
    names: HashSet<String>,
    left_out: Vec<OmittedEntry>,
    total: u64,
    run_dir: &'a Path,
    /// Whether something in the run's directory is known to belong to the run.
    is_told_of: &'a dyn Fn(&Path) -> bool,
}

/// Reads the named files and everything below the named directories of a run.
pub(super) fn collect<'a>(
    run_dir: &'a Path,
    is_told_of: &'a dyn Fn(&Path) -> bool,
    files: &[(&str, KeptEnd)],
    directories: &[(&str, KeptEnd)],
    scanner: &Scanner,
) -> Collected<'a> {
    let mut collected = Collected::new(run_dir, is_told_of);
    for (name, telling) in files {
        if fs::symlink_metadata(run_dir.join(name)).is_ok() {
            collected.take(&run_dir.join(name), (*name).to_owned(), *telling, scanner);
        }
    }
    for (name, telling) in directories {
        let path = run_dir.join(name);
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => collected.walk(&path, name, *telling, scanner, 0),
            Ok(_) => collected.leave_out(name, "is not a directory"),
            Err(_) => {}
        }
    }
    collected
}

impl<'a> Collected<'a> {
    fn new(run_dir: &'a Path, is_told_of: &'a dyn Fn(&Path) -> bool) -> Self {
        Self {
            entries: Vec::new(),
            names: HashSet::new(),
            left_out: Vec::new(),
            total: 0,
            run_dir,
            is_told_of,
        }
    }

    /// Whether an entry of this name is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Adds one entry.
    pub(super) fn add(
        &mut self,
        name: String,
        bytes: Vec<u8>,
        origin: BundleOrigin,
        redacted: u64,
        cut: Option<BundleCut>,
    ) {
        let digest = Digest::compute(&bytes);
        self.total += bytes.len() as u64;
        self.names.insert(name.clone());
        self.entries.push(Ready {
            name,
            bytes,
            digest,
            origin,
            redacted,
            cut,
        });
    }

    /// Describes every entry.
    pub(super) fn manifest(&self) -> BundleManifest {
        let entry = |ready: &Ready| BundleEntry {
            path: ready.name.clone(),
            origin: ready.origin,
            size: ready.bytes.len() as u64,
            sha256: ready.digest,
            redacted: ready.redacted,
            cut: ready.cut.clone(),
        };
        BundleManifest {
            schema_version: BundleVersion::V1,
            entries: self.entries.iter().map(entry).collect(),
            left_out: self.left_out.clone(),
        }
    }

    fn walk(
        &mut self,
        directory: &Path,
        name: &str,
        telling: KeptEnd,
        scanner: &Scanner,
        depth: usize,
    ) {
        if depth > MAX_DEPTH {
            self.leave_out(name, "lies too deep");
            return;
        }
        let children = match fs::read_dir(directory) {
            Ok(children) => children.map(|child| child.map(|child| child.path())),
            Err(error) => {
                self.leave_out(name, &format!("could not be read: {}", error.kind()));
                return;
            }
        };
        for child in self.sorted(name, children) {
            let file_name = child.file_name().unwrap_or_default().to_string_lossy();
            let child_name = format!("{name}/{}", normalised(&file_name));
            match fs::symlink_metadata(&child) {
                Ok(meta) if meta.is_dir() => {
                    self.walk(&child, &child_name, telling, scanner, depth + 1)
                }
                _ => self.take(&child, child_name, telling, scanner),
            }
        }
    }

    /// Returns the children of a directory in order, and reports those that could not be listed.
    fn sorted(
        &mut self,
        name: &str,
        children: impl Iterator<Item = io::Result<PathBuf>>,
    ) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for child in children {
            match child {
                Ok(path) => paths.push(path),
                Err(error) => {
                    self.leave_out(
                        name,
                        &format!("an entry of it could not be read: {}", error.kind()),
                    );
                }
            }
        }
        paths.sort();
        paths
    }

    fn take(&mut self, path: &Path, name: String, telling: KeptEnd, scanner: &Scanner) {
        let is_file = fs::symlink_metadata(path).map(|meta| meta.is_file());
        let obstacle = match is_file {
            Ok(true)
                if path
                    .strip_prefix(self.run_dir)
                    .is_ok_and(|path| !(self.is_told_of)(path)) =>
            {
                Some("is recorded by no event of the run".to_owned())
            }
            Ok(true) if name.ends_with("failure_bundle.zip") => {
                Some("is a bundle itself".to_owned())
            }
            Ok(true) if self.entries.len() >= MAX_FILES => {
                Some(format!("comes after {MAX_FILES} files"))
            }
            Ok(true) if self.total >= MAX_TOTAL => Some(format!("comes after {MAX_TOTAL} bytes")),
            Ok(true) => None,
            Ok(false) => Some("is a link, a device or a pipe".to_owned()),
            Err(error) => Some(format!("could not be read: {}", error.kind())),
        };
        if let Some(reason) = obstacle {
            self.leave_out(&name, &reason);
            return;
        }
        match read(path, telling) {
            Ok((bytes, cut)) => {
                let (bytes, redacted) = redact(&bytes, cut.is_some(), telling, scanner);
                let name = self.unused(name);
                self.add(name, bytes, BundleOrigin::File, redacted, cut);
            }
            Err(error) => self.leave_out(&name, &format!("could not be read: {}", error.kind())),
        }
    }

    fn leave_out(&mut self, name: &str, reason: &str) {
        if self.left_out.len() < MAX_LEFT_OUT {
            self.left_out.push(OmittedEntry {
                path: name.to_owned(),
                reason: reason.to_owned(),
            });
        } else if self.left_out.len() == MAX_LEFT_OUT {
            let reason =
                format!("more than {MAX_LEFT_OUT} files were left out; the rest is not listed");
            self.left_out.push(OmittedEntry {
                path: "…".to_owned(),
                reason,
            });
        }
    }

    /// Returns the name, or a numbered one if normalising made two names equal.
    fn unused(&self, name: String) -> String {
        if !self.has(&name) && name != MANIFEST_NAME {
            return name;
        }
        let numbered = |n: u64| format!("{name}~{n}");
        (2..)
            .map(numbered)
            .find(|candidate| !self.has(candidate))
            .unwrap_or(name)
    }
}

/// A file name that every system can unpack: no control character, separator or character that some reserve.
fn normalised(name: &str) -> String {
    let safe = |c: char| {
        if c.is_control() || matches!(c, '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|') {
            '_'
        } else {
            c
        }
    };
    name.chars().map(safe).collect()
}

/// The file, or its telling part and some bytes beyond the cut, so that a secret there is still found.
fn read(path: &Path, telling: KeptEnd) -> io::Result<(Vec<u8>, Option<BundleCut>)> {
    let mut file = File::open(path)?;
    let of_bytes = file.metadata()?.len();
    let reach = MAX_FILE + HELD_BACK as u64;
    let cut = (of_bytes > MAX_FILE).then(|| BundleCut {
        kept: match telling {
            KeptEnd::Beginning => "beginning".to_owned(),
            KeptEnd::End => "end".to_owned(),
        },
        of_bytes,
    });
    if cut.is_some() && telling == KeptEnd::End {
        file.seek(SeekFrom::Start(of_bytes.saturating_sub(reach)))?;
    }
    let mut bytes = Vec::new();
    file.take(reach).read_to_end(&mut bytes)?;
    Ok((bytes, cut))
}

/// Replaces secrets. The bytes next to a cut are dropped afterwards, because half a secret at the cut is not
/// recognised.
fn redact(bytes: &[u8], is_cut: bool, telling: KeptEnd, scanner: &Scanner) -> (Vec<u8>, u64) {
    let (mut redacted, count) = scanner.redact_bytes(bytes);
    if is_cut {
        let spare = HELD_BACK.min(redacted.len());
        match telling {
            KeptEnd::Beginning => redacted.truncate(redacted.len() - spare),
            KeptEnd::End => {
                redacted.drain(..spare);
            }
        }
    }
    (redacted, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlistable_entry_is_reported() {
        let mut collected = Collected::new(Path::new(""), &|_| true);
        let broken = io::Error::from(io::ErrorKind::PermissionDenied);
        let children = [Ok("b".into()), Err(broken), Ok("a".into())];
        let paths = collected.sorted("logs", children.into_iter());
        assert_eq!(paths, [PathBuf::from("a"), PathBuf::from("b")]);
        let left_out = &collected.manifest().left_out;
        assert_eq!(left_out.len(), 1);
        assert_eq!(
            (
                left_out[0].path.as_str(),
                left_out[0].reason.contains("permission denied")
            ),
            ("logs", true)
        );
    }
}
