//! What a goal names without a path: symbols, dependencies, documents.

use std::collections::BTreeSet;

use crucible_model::{PathRole, PathRoles, RepoPath};
use crucible_pack::FileClass;
use crucible_patch::{defined_names, is_lockfile};
use memchr::memmem;

use super::mention::{Mention, is_one_of};
use super::{GoalScope, Tree};

/// How much is read of all files together to find where symbols stand, in bytes.
const MAX_READ: usize = 64 << 20;

/// How many symbols of a goal are looked up.
const MAX_SYMBOLS: usize = 16;

/// Manifests that list dependencies.
const MANIFESTS: [&str; 12] = [
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "requirements.txt",
    "Pipfile",
    "go.mod",
    "Gemfile",
    "composer.json",
    "pom.xml",
    "mix.exs",
];

/// More manifests than this, and the goal does not say which of them it means.
const MAX_MANIFESTS: usize = 4;

const CHANGING: [&str; 11] = [
    "add",
    "bump",
    "upgrade",
    "update",
    "pin",
    "remove",
    "drop",
    "replace",
    "declare",
    "introduce",
    "install",
];
const DEPENDENCIES: [&str; 5] = [
    "dependency",
    "dependencies",
    "deps",
    "requirement",
    "requirements",
];

/// The sources that define each of these symbols. One that too many files define opens none of them.
pub(super) fn files_defining(symbols: &[&str], tree: &Tree<'_>, most: usize) -> Vec<Vec<RepoPath>> {
    let requested: Vec<(&str, Vec<&str>)> = symbols
        .iter()
        .take(MAX_SYMBOLS)
        .filter_map(|symbol| Some((last_part(symbol)?, parts(symbol))))
        .collect();
    if requested.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<Vec<(RepoPath, usize)>> = vec![Vec::new(); requested.len()];
    let mut read = 0;
    for path in tree
        .paths
        .iter()
        .filter(|path| FileClass::from_path(path) == FileClass::Source)
    {
        if read > MAX_READ {
            break;
        }
        let text = tree.text(path);
        read += text.len();
        let holds = |symbol: &str| memmem::find(&text, symbol.as_bytes()).is_some();
        if !requested.iter().any(|(symbol, _)| holds(symbol)) {
            continue;
        }
        let names = defined_names(path, &text);
        for (at, (symbol, parts)) in requested.iter().enumerate() {
            if names.contains(*symbol) {
                // `Parser.parse` is meant where `Parser` stands, too.
                let owners = parts
                    .iter()
                    .filter(|part| *part != symbol && names.contains(**part))
                    .count();
                found[at].push(((*path).clone(), owners));
            }
        }
    }
    let best = |files: Vec<(RepoPath, usize)>| {
        let best = files.iter().map(|(_, owners)| *owners).max().unwrap_or(0);
        let best = files
            .into_iter()
            .filter(|(_, owners)| *owners == best)
            .map(|(path, _)| path);
        best.collect::<Vec<RepoPath>>()
    };
    found
        .into_iter()
        .map(best)
        .filter(|files| files.len() <= most)
        .collect()
}

/// The files in which `name` stands as a word, but for those that a program wrote.
pub(super) fn files_mentioning(name: &str, tree: &Tree<'_>) -> Vec<RepoPath> {
    let mut read = 0;
    let mut found = Vec::new();
    for path in tree
        .paths
        .iter()
        .filter(|path| FileClass::from_path(path) != FileClass::Generated)
    {
        if read > MAX_READ {
            break;
        }
        let text = tree.text(path);
        read += text.len();
        let is_part = |at: Option<usize>| {
            at.and_then(|at| text.get(at)).is_some_and(|byte| {
                byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'$' || !byte.is_ascii()
            })
        };
        let is_present = memmem::find_iter(&text, name.as_bytes())
            .any(|at| !is_part(at.checked_sub(1)) && !is_part(Some(at + name.len())));
        if is_present {
            found.push((*path).clone());
        }
    }
    found
}

/// "Add a dependency on X" opens the manifest and its lock file.
pub(super) fn dependencies(mentions: &[Mention], tree: &Tree<'_>, scope: &mut GoalScope) {
    let is_reported = mentions.iter().any(|mention| {
        is_one_of(&mention.word, &DEPENDENCIES)
            && mentions
                .iter()
                .any(|verb| verb.clause == mention.clause && is_one_of(&verb.word, &CHANGING))
    });
    if !is_reported {
        return;
    }
    let is_listing = |path: &RepoPath| {
        MANIFESTS.contains(&path.file_name())
            || (path.file_name().starts_with("requirements") && path.file_name().ends_with(".txt"))
    };
    let named: Vec<String> = scope
        .files
        .iter()
        .map(RepoPath::to_string)
        .chain(
            scope
                .directories
                .iter()
                .map(|place| format!("{}/x", place.to_string().trim_end_matches('/'))),
        )
        .collect();
    let above = |directory: &str| {
        directory.is_empty()
            || named
                .iter()
                .any(|path| path.starts_with(&format!("{directory}/")))
    };
    let directory_of = |path: &RepoPath| path.directory().to_owned();
    let mut manifests: Vec<&RepoPath> = tree
        .paths
        .iter()
        .copied()
        .filter(|path| is_listing(path) && above(&directory_of(path)))
        .collect();
    if manifests.is_empty() {
        manifests = tree
            .paths
            .iter()
            .copied()
            .filter(|path| is_listing(path))
            .collect();
    }
    if manifests.len() > MAX_MANIFESTS {
        return;
    }
    let places: BTreeSet<String> = manifests.iter().map(|path| directory_of(path)).collect();
    manifests.into_iter().for_each(|path| scope.lift(path));
    for place in places {
        tree.files_in(&place)
            .filter(|path| is_lockfile(path))
            .for_each(|path| scope.lift(path));
    }
}

/// A goal that mentions the README or the changelog means the files of that name at the top.
pub(super) fn documents(mentions: &[Mention], tree: &Tree<'_>, scope: &mut GoalScope) {
    let has_words = |words: &[&str]| {
        mentions
            .iter()
            .any(|mention| words.contains(&mention.word.as_str()))
    };
    for path in tree
        .files_in("")
        .filter(|path| PathRoles::from_path(path).has(PathRole::Document))
    {
        let stem = path
            .file_name()
            .split('.')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let is_meant = match stem.as_str() {
            "readme" => has_words(&["readme"]),
            "changelog" | "changes" | "history" | "news" => has_words(&["changelog"]),
            "contributing" => has_words(&["contributing"]),
            _ => false,
        };
        if is_meant {
            scope.open(path);
        }
    }
}

fn parts(symbol: &str) -> Vec<&str> {
    symbol
        .split(['.', ':', '#'])
        .filter(|part| !part.is_empty())
        .collect()
}

fn last_part(symbol: &str) -> Option<&str> {
    parts(symbol).pop().filter(|name| name.len() > 1)
}
