//! Lookups in the tracked files: by path, by the end of a path, by directory, by module and by glob.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::{PathPrefix, RepoPath};
use crucible_pack::FileClass;
use globset::GlobBuilder;

/// The longest glob that is read, in bytes.
const MAX_GLOB: usize = 256;

/// How many alternatives a glob may hold.
const MAX_ALTERNATIVES: usize = 8;

/// The tracked files of a commit, and how their texts are read.
pub(crate) struct Tree<'a> {
    /// Every tracked file, sorted.
    pub(crate) paths: Vec<&'a RepoPath>,
    known: BTreeSet<&'a str>,
    directories: BTreeSet<&'a str>,
    by_name: BTreeMap<&'a str, Vec<&'a RepoPath>>,
    text: &'a dyn Fn(&RepoPath) -> Vec<u8>,
}

/// What a path, a directory or a glob stands for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expansion {
    /// Files that are there.
    Files(Vec<RepoPath>),
    /// A directory that is there.
    Directory(RepoPath),
    /// A file that is not there.
    New(RepoPath),
    /// No path; why.
    NotAPath(String),
}

impl<'a> Tree<'a> {
    /// A tree of these files. `text` gives the beginning of a file's text, nothing where it cannot be read.
    pub(crate) fn new(
        paths: impl IntoIterator<Item = &'a RepoPath>,
        text: &'a dyn Fn(&RepoPath) -> Vec<u8>,
    ) -> Self {
        let mut paths: Vec<&RepoPath> = paths.into_iter().collect();
        paths.sort_unstable();
        let mut directories = BTreeSet::new();
        let mut by_name: BTreeMap<&str, Vec<&RepoPath>> = BTreeMap::new();
        for path in &paths {
            by_name.entry(path.file_name()).or_default().push(path);
            let mut rest = path.as_str();
            while let Some((directory, _)) = rest.rsplit_once('/') {
                if !directories.insert(directory) {
                    break;
                }
                rest = directory;
            }
        }
        let known = paths.iter().map(|path| path.as_str()).collect();
        Self {
            paths,
            known,
            directories,
            by_name,
            text,
        }
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.known.contains(path)
    }

    pub(super) fn has_directory(&self, path: &str) -> bool {
        self.directories.contains(path)
    }

    pub(super) fn directories(&self) -> impl Iterator<Item = &'a str> {
        self.directories.iter().copied()
    }

    pub(crate) fn text(&self, path: &RepoPath) -> Vec<u8> {
        (self.text)(path)
    }

    /// The files directly in a directory; `""` is the top.
    pub(super) fn files_in(&self, directory: &str) -> impl Iterator<Item = &'a RepoPath> {
        let prefix = if directory.is_empty() {
            String::new()
        } else {
            format!("{directory}/")
        };
        let start = self
            .paths
            .partition_point(|path| path.as_str() < prefix.as_str());
        let mut found = Vec::new();
        for path in &self.paths[start..] {
            let Some(rest) = path.as_str().strip_prefix(&prefix) else {
                break;
            };
            if !rest.contains('/') {
                found.push(*path);
            }
        }
        found.into_iter()
    }

    /// The files that `text` names: by their whole path, or by its end. An absolute path of another machine is read by its end.
    pub(super) fn files(&self, text: &str) -> Vec<RepoPath> {
        let mut rest = text;
        loop {
            if rest.is_empty() || rest.len() > 1024 {
                return Vec::new();
            }
            if let Some(path) = self.exact(rest) {
                return vec![path.clone()];
            }
            let name = rest.rsplit('/').next().unwrap_or(rest);
            // A plain word is not a file: `parser` may be anything.
            if name.contains('.') || rest.contains('/') {
                let ending = format!("/{rest}");
                let named = self.by_name.get(name).into_iter().flatten();
                let found: Vec<RepoPath> = named
                    .filter(|path| path.as_str().ends_with(&ending))
                    .map(|path| (*path).clone())
                    .collect();
                if !found.is_empty() {
                    return found;
                }
            }
            // `a/b/src/x.py` of a traceback: what lies above the repository is dropped.
            match rest.split_once('/') {
                Some((_, shorter)) if shorter.contains('/') => rest = shorter,
                _ => return Vec::new(),
            }
        }
    }

    /// The directory that `text` names.
    pub(super) fn directory(&self, text: &str, may_be: bool) -> Option<PathPrefix> {
        if !may_be || text.is_empty() {
            return None;
        }
        if self.has_directory(text) {
            return text.parse().ok();
        }
        let ending = format!("/{text}");
        let mut found = self
            .directories
            .iter()
            .filter(|directory| directory.ends_with(&ending));
        match (found.next(), found.next()) {
            (Some(only), None) => only.parse().ok(),
            _ => None,
        }
    }

    /// The source files of a dotted or scoped module: `pkg.mod.func` is `pkg/mod.py`.
    pub(super) fn module(&self, text: &str) -> Vec<RepoPath> {
        let parts: Vec<&str> = text
            .split(['.', ':'])
            .filter(|part| !part.is_empty())
            .collect();
        let is_name = |part: &&str| crate::may_drop::is_definition_name(part);
        if parts.len() < 2 || parts.len() > 16 || !parts.iter().all(is_name) {
            return Vec::new();
        }
        let parts = if parts[0] == "crate" {
            &parts[1..]
        } else {
            &parts[..]
        };
        for end in (1..=parts.len()).rev() {
            let stem = parts[..end].join("/");
            let found: Vec<RepoPath> = self
                .paths
                .iter()
                .filter(|path| {
                    is_module(path, &stem) && FileClass::from_path(path) == FileClass::Source
                })
                .map(|path| (*path).clone())
                .collect();
            if !found.is_empty() {
                return if found.len() <= 2 { found } else { Vec::new() };
            }
        }
        Vec::new()
    }

    fn exact(&self, text: &str) -> Option<&'a RepoPath> {
        let at = self
            .paths
            .binary_search_by(|path| path.as_str().cmp(text))
            .ok()?;
        self.paths.get(at).copied()
    }
}

/// Whether a file is the module of this path: `a/b.py`, `src/a/b.rs`, `a/b/__init__.py`, `a/b/mod.rs`.
fn is_module(path: &RepoPath, stem: &str) -> bool {
    let Some((own, _)) = path.as_str().rsplit_once('.') else {
        return false;
    };
    let own = ["/__init__", "/mod", "/index"]
        .iter()
        .find_map(|end| own.strip_suffix(end))
        .unwrap_or(own);
    own == stem
        || own
            .strip_suffix(stem)
            .is_some_and(|before| before.ends_with('/'))
}

/// What `text` stands for in a tree: what is there under exactly this name is that, whatever characters are in it.
pub(crate) fn expand(text: &str, tree: &Tree<'_>) -> Expansion {
    let plain = text.trim_start_matches("./");
    let bare = plain.trim_end_matches('/');
    if tree.has_directory(bare) {
        return bare
            .parse()
            .map_or_else(|error| not_a_path(&error), Expansion::Directory);
    }
    if !tree.has(plain) && plain.contains(['*', '?', '[', '{']) {
        return match glob(plain) {
            Ok(glob) => {
                let matching = tree
                    .paths
                    .iter()
                    .filter(|path| glob.is_match(path.as_str()));
                Expansion::Files(matching.map(|path| (*path).clone()).collect())
            }
            Err(why) => Expansion::NotAPath(why),
        };
    }
    if bare.len() != plain.len() {
        return Expansion::NotAPath("there is no such directory".to_owned());
    }
    match plain.parse::<RepoPath>() {
        Ok(path) if tree.has(plain) => Expansion::Files(vec![path]),
        Ok(path) => Expansion::New(path),
        Err(error) => not_a_path(&error),
    }
}

fn not_a_path(error: &dyn std::fmt::Display) -> Expansion {
    Expansion::NotAPath(error.to_string())
}

fn glob(text: &str) -> Result<globset::GlobMatcher, String> {
    if text.len() > MAX_GLOB || text.matches(['{', '[']).count() > MAX_ALTERNATIVES {
        return Err(format!(
            "the glob has more than {MAX_GLOB} bytes or {MAX_ALTERNATIVES} alternatives"
        ));
    }
    let built = GlobBuilder::new(text).literal_separator(true).build();
    built
        .map(|glob| glob.compile_matcher())
        .map_err(|error| format!("it is not a glob: {}", error.kind()))
}
