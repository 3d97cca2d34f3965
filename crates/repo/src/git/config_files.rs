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
use super::config::TIMEOUT;
use super::identity;
use super::shell::Script;
use crate::error::RepoError;

/// Where the users of a machine are listed.
const PASSWORDS: &str = "/etc/passwd";
/// How many times included files may include others under a condition.
const MAX_ROUNDS: usize = 10;

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

/// Returns the path that a setting names, relative to `base`, as git expands it: `~`, `~user`, `%(prefix)` and `:(optional)`.
pub(super) fn path_in(value: &[u8], base: &Path, env: &Environment) -> Option<PathBuf> {
    let value = value.strip_prefix(b":(optional)").unwrap_or(value);
    if let Some(below) = value.strip_prefix(b"%(prefix)/") {
        return Some(prefix_of_git(env)?.join(as_path(below)));
    }
    let Some(rest) = value.strip_prefix(b"~") else {
        return Some(base.join(as_path(value)));
    };
    let slash = rest.iter().position(|byte| *byte == b'/');
    let (user, below) = rest.split_at(slash.unwrap_or(rest.len()));
    let home = if user.is_empty() {
        env.home()
    } else {
        home_of(user)
    };
    Some(home?.join(as_path(below.strip_prefix(b"/").unwrap_or(below))))
}

/// Returns the directory that git was installed in.
pub(super) fn prefix_of_git(env: &Environment) -> Option<PathBuf> {
    let git = env.find_program("git").ok()?;
    Some(git.parent()?.parent()?.to_owned())
}

/// Returns the home directory of a user of this machine.
fn home_of(user: &[u8]) -> Option<PathBuf> {
    let users = std::fs::read(PASSWORDS).ok()?;
    let home = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b':');
        (fields.next()? == user).then(|| fields.nth(4).map(as_path))?
    };
    users.split(|byte| *byte == b'\n').find_map(home)
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
        files: BTreeSet<PathBuf>,
        nested: BTreeSet<PathBuf>,
    ) -> Result<Self, RepoError> {
        let mut read = Self::default();
        let mut strict = existing(files);
        let mut lenient = existing(nested);
        let mut seen = HashSet::new();
        for _ in 0..MAX_ROUNDS {
            strict.retain(|file| seen.insert(file.clone()));
            lenient.retain(|file| seen.insert(file.clone()));
            if strict.is_empty() && lenient.is_empty() {
                return Ok(read);
            }
            read.add(runner, env, &strict, &lenient).await?;
            strict.clear();
            lenient = existing(read.includes(env));
            lenient.retain(|file| !read.entries.contains_key(file));
        }
        let source = std::io::Error::other("too many files of settings include each other");
        let file = lenient.into_iter().next().unwrap_or_default();
        Err(RepoError::io("read", file, source))
    }

    /// Returns the entries that git may read from `files`, and the files that these include, which need not exist.
    pub(super) fn reachable(
        &self,
        files: Vec<PathBuf>,
        env: &Environment,
    ) -> (Vec<PathBuf>, Vec<&Entry>) {
        let (mut included, mut entries) = (Vec::new(), Vec::new());
        let mut left = files;
        let mut seen = HashSet::new();
        while let Some(file) = left.pop() {
            if !seen.insert(file.clone()) {
                continue;
            }
            for entry in self.entries(&file) {
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
    pub(super) fn entries(&self, file: &Path) -> &[Entry] {
        self.entries.get(file).map_or(&[], Vec::as_slice)
    }

    fn includes(&self, env: &Environment) -> BTreeSet<PathBuf> {
        let files_of = |(file, entries): (&PathBuf, &Vec<Entry>)| -> Vec<PathBuf> {
            let included = |entry: &Entry| entry.included(file, env);
            entries.iter().filter_map(included).collect()
        };
        self.entries.iter().flat_map(files_of).collect()
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
            return Err(output.into_error());
        }
        for file in strict.iter().chain(lenient) {
            let output = self.call(runner, listing(file, env)).await?;
            if output.code != 0 && strict.contains(file) {
                return Err(output.into_error());
            }
        }
        Ok(())
    }

    /// Keeps the entries that a successful call prints.
    async fn call(&mut self, runner: &Runner, call: Call) -> Result<Output, RepoError> {
        let root = Path::new("/");
        let output = runner
            .run(root, None, &[], call.with_timeout(TIMEOUT))
            .await?;
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
fn existing(files: BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let has_content = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|meta| meta.is_file() && meta.len() > 0)
    };
    files.into_iter().filter(has_content).collect()
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

/// Returns the settings in the environment: `GIT_CONFIG_KEY_n` and `GIT_CONFIG_PARAMETERS`.
pub(super) fn in_environment(env: &Environment) -> Vec<Entry> {
    let numbered = |(name, key): (&OsStr, &OsStr)| {
        let number = name.to_str()?.strip_prefix("GIT_CONFIG_KEY_")?;
        let value = env.get_os(&format!("GIT_CONFIG_VALUE_{number}"))?;
        Some(Entry {
            key: canonical(key.as_bytes()),
            value: value.as_bytes().to_owned(),
        })
    };
    let mut entries: Vec<Entry> = env.pairs().filter_map(numbered).collect();
    let parameters = env.get_os("GIT_CONFIG_PARAMETERS").unwrap_or_default();
    for word in Script::parse(parameters.as_bytes()).words() {
        // A subsection may contain the sign that ends the key.
        let ends = word.iter().enumerate().filter(|(_, byte)| **byte == b'=');
        entries.extend(ends.map(|(end, _)| Entry {
            key: canonical(&word[..end]),
            value: word[end + 1..].to_owned(),
        }));
    }
    entries
}

/// Returns a key with section and name in lower case.
pub(super) fn canonical(key: &[u8]) -> Vec<u8> {
    let first = key
        .iter()
        .position(|byte| *byte == b'.')
        .unwrap_or(key.len());
    let last = key.iter().rposition(|byte| *byte == b'.').unwrap_or(0);
    let mut key = key.to_owned();
    key[..first].make_ascii_lowercase();
    key[last..].make_ascii_lowercase();
    key
}
