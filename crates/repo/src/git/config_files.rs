//! Reads the settings of many repositories and of the user at once, with every file that they include.
//!
//! git parses the files: one call reads a list of `include.path` from its standard input. A file that is included under a
//! condition counts as well, since the condition may hold later; such files are read by another call. The files need no repository.
//!
//! Invariant: a file that git would read is read, or the result is an error. Only a file that git refuses names nothing.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crucible_host::env::Environment;

use super::command::{Call, Output, Runner, as_path};
use super::config::PATIENCE;
use super::identity;
use crate::error::RepoError;

/// How many times included files may include others under a condition.
const MOST_ROUNDS: usize = 10;

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Section and name in lower case, and the subsection.
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
}

impl Entry {
    /// Returns the file that this entry of `file` includes, whether or not it exists.
    pub(super) fn included(&self, file: &Path, env: &Environment) -> Option<PathBuf> {
        let key = &self.key;
        let includes =
            key == b"include.path" || (key.starts_with(b"includeif.") && key.ends_with(b".path"));
        let base = file.parent().filter(|_| includes)?;
        path_in(&self.value, base, env)
    }
}

/// Returns the path that a setting names, relative to `base`. `~` is a home directory.
pub(super) fn path_in(value: &[u8], base: &Path, env: &Environment) -> Option<PathBuf> {
    match value.strip_prefix(b"~") {
        Some(rest) => {
            let slash = rest.iter().position(|byte| *byte == b'/');
            let below = slash.map_or(&b""[..], |at| &rest[at + 1..]);
            Some(env.home()?.join(as_path(below)))
        }
        None => Some(base.join(as_path(value))),
    }
}

/// The entries of files, by the path that git opens: a relative path in a file counts from there.
#[derive(Debug, Default)]
pub(super) struct ConfigFiles {
    entries: HashMap<PathBuf, Vec<Entry>>,
}

impl ConfigFiles {
    /// Reads `files` and all that they include. A file of `nested` that git refuses is left out: then git runs nothing there.
    pub(super) async fn read(
        runner: &Runner,
        env: &Environment,
        files: &[PathBuf],
        nested: &[PathBuf],
    ) -> Result<Self, RepoError> {
        let mut read = Self::default();
        let mut strict: BTreeSet<PathBuf> = existing(files);
        let mut lenient: BTreeSet<PathBuf> = existing(nested);
        let mut seen = HashSet::new();
        for _ in 0..MOST_ROUNDS {
            strict.retain(|file| seen.insert(file.clone()));
            lenient.retain(|file| seen.insert(file.clone()));
            if strict.is_empty() && lenient.is_empty() {
                return Ok(read);
            }
            read.add(runner, env, &strict, &lenient).await?;
            strict.clear();
            lenient = existing(&read.includes(env));
            lenient.retain(|file| !read.entries.contains_key(file));
        }
        let source = std::io::Error::other("too many files of settings include each other");
        let file = lenient.into_iter().next().unwrap_or_default();
        Err(RepoError::io("read", file, source))
    }

    /// Returns the entries that git may read from `files`, and the files that these include, which need not exist.
    pub(super) fn reachable(
        &self,
        files: &[PathBuf],
        env: &Environment,
    ) -> (Vec<PathBuf>, Vec<&Entry>) {
        let (mut included, mut entries) = (Vec::new(), Vec::new());
        let mut left = files.to_vec();
        let mut seen = HashSet::new();
        while let Some(file) = left.pop() {
            if !seen.insert(file.clone()) {
                continue;
            }
            for entry in self.of(&file) {
                if let Some(other) = entry.included(&file, env) {
                    included.push(other.clone());
                    left.push(other);
                }
                entries.push(entry);
            }
        }
        (included, entries)
    }

    /// Returns the entries of one file.
    pub(super) fn of(&self, file: &Path) -> &[Entry] {
        self.entries.get(file).map_or(&[], Vec::as_slice)
    }

    fn includes(&self, env: &Environment) -> Vec<PathBuf> {
        let of = |(file, entries): (&PathBuf, &Vec<Entry>)| -> Vec<PathBuf> {
            let included = |entry: &Entry| entry.included(file, env);
            entries.iter().filter_map(included).collect()
        };
        self.entries.iter().flat_map(of).collect()
    }

    async fn add(
        &mut self,
        runner: &Runner,
        env: &Environment,
        strict: &BTreeSet<PathBuf>,
        lenient: &BTreeSet<PathBuf>,
    ) -> Result<(), RepoError> {
        let all = list(strict.iter().chain(lenient));
        let together = listing(Path::new("-"), env).reading(all);
        let output = self.call(runner, together).await?;
        if output.code == 0 {
            return Ok(());
        }
        if lenient.is_empty() {
            return Err(output.failed());
        }
        for file in strict.iter().chain(lenient) {
            let output = self.call(runner, listing(file, env)).await?;
            if output.code != 0 && strict.contains(file) {
                return Err(output.failed());
            }
        }
        Ok(())
    }

    /// Keeps the entries that a successful call prints.
    async fn call(&mut self, runner: &Runner, call: Call) -> Result<Output, RepoError> {
        let root = Path::new("/");
        let output = runner.run(root, None, &[], call.within(PATIENCE)).await?;
        if output.code == 0 {
            let mut records = output.stdout.split(|byte| *byte == 0);
            while let (Some(origin), Some(entry)) = (records.next(), records.next()) {
                let Some(file) = origin.strip_prefix(b"file:") else {
                    continue;
                };
                let line = entry.iter().position(|byte| *byte == b'\n');
                let (key, value) = entry.split_at(line.unwrap_or(entry.len()));
                self.entries.entry(as_path(file)).or_default().push(Entry {
                    key: key.to_owned(),
                    value: value.get(1..).unwrap_or_default().to_owned(),
                });
            }
        }
        Ok(output)
    }
}

/// Creates the call that lists the settings of a file and of those that it includes.
fn listing(file: &Path, env: &Environment) -> Call {
    let words = [
        "config",
        "--list",
        "-z",
        "--show-origin",
        "--includes",
        "--file",
    ];
    let words = words.map(OsString::from).into_iter();
    Call::new(words.chain([file.into()])).with_envs(&identity::user_config(env))
}

/// Returns the regular files that are not empty.
fn existing(files: &[PathBuf]) -> BTreeSet<PathBuf> {
    let has_content = |path: &&PathBuf| {
        path.metadata()
            .is_ok_and(|meta| meta.is_file() && meta.len() > 0)
    };
    files.iter().filter(has_content).cloned().collect()
}

/// Returns a file of settings that includes all these.
fn list<'f>(files: impl Iterator<Item = &'f PathBuf>) -> Vec<u8> {
    let mut text = b"[include]\n".to_vec();
    for file in files {
        text.extend(b"path = \"");
        for byte in file.as_os_str().as_bytes() {
            match byte {
                b'"' | b'\\' => text.extend([b'\\', *byte]),
                b'\n' => text.extend(b"\\n"),
                _ => text.push(*byte),
            }
        }
        text.extend(b"\"\n");
    }
    text
}

/// Returns the settings in the environment: `GIT_CONFIG_KEY_n`, and every other variable that may name a program or a file of git.
pub(super) fn in_environment(env: &Environment) -> Vec<Entry> {
    const PROGRAMS: [&str; 4] = ["EDITOR", "PAGER", "SSH_ASKPASS", "VISUAL"];
    let entry = |(name, value): (&OsStr, &OsStr)| {
        let name = name.to_str()?;
        let key = match name.strip_prefix("GIT_CONFIG_KEY_") {
            Some(number) => {
                let (key, value) = (value, env.get_os(&format!("GIT_CONFIG_VALUE_{number}"))?);
                return Some(Entry {
                    key: key.as_bytes().to_ascii_lowercase(),
                    value: value.as_bytes().to_owned(),
                });
            }
            None if name.starts_with("GIT_CONFIG_VALUE_") => return None,
            None if name.starts_with("GIT_") || PROGRAMS.contains(&name) => name,
            None => return None,
        };
        Some(Entry {
            key: key.to_ascii_lowercase().into_bytes(),
            value: value.as_bytes().to_owned(),
        })
    };
    env.pairs().filter_map(entry).collect()
}
