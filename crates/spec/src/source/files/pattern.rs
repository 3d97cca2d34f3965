//! Paths and globs, and the files that they match.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crucible_host::walk::{self, WalkedEntry};
use crucible_model::{RepoPath, short_line};
use globset::{GlobBuilder, GlobSet};

use super::read::{Found, Project};
use crate::error::SpecError;
use crate::packet::{Omission, OmissionReason};
use crate::project::is_own;

/// The longest pattern, in bytes.
const MAX_LEN: usize = 1024;

/// The matching files, in the order of the patterns, then of the names.
pub(super) type Matches = Vec<RepoPath>;

/// The meaning of a pattern.
#[derive(Debug)]
pub(super) enum Pattern {
    /// Exactly this file, whether it exists or not.
    Plain(RepoPath),
    /// All files that match.
    Glob(Glob),
}

/// A glob, and the directory that contains its matches.
#[derive(Debug)]
pub(super) struct Glob {
    text: String,
    /// The directory that contains every match; none means the project's own.
    base: Option<RepoPath>,
    matcher: GlobSet,
}

impl Pattern {
    /// Parses a path, a directory or a glob. If a file has exactly this name, the text means that file,
    /// whatever characters it contains.
    pub(super) fn read(project: &Project, text: &str) -> Result<Self, SpecError> {
        if text.len() > MAX_LEN {
            return Err(refused(
                text,
                &format!("it is longer than {MAX_LEN} bytes; write a shorter one"),
            ));
        }
        let plain = shortest(text);
        if plain.is_empty() && !text.is_empty() {
            return Ok(Self::Glob(Glob::in_directory(None)?));
        }
        match plain.parse::<RepoPath>() {
            Ok(path) if project.root().join(&path).is_dir() => {
                return Ok(Self::Glob(Glob::in_directory(Some(path))?));
            }
            Ok(path)
                if !has_meta(plain) || project.root().join(&path).symlink_metadata().is_ok() =>
            {
                return Ok(Self::Plain(path));
            }
            Err(why) if !has_meta(plain) => return Err(refused(text, &why.to_string())),
            Ok(_) | Err(_) => {}
        }
        let literal = plain.split(is_meta).next().unwrap_or_default();
        let base = literal
            .rsplit_once('/')
            .map(|(base, _)| base.parse::<RepoPath>())
            .transpose();
        let base = base.map_err(|why| refused(text, &why.to_string()))?;
        Ok(Self::Glob(Glob {
            text: text.to_owned(),
            base,
            matcher: compile(text, plain)?,
        }))
    }

    /// The pattern as it was written.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Plain(path) => path.to_string(),
            Self::Glob(glob) => glob.text.clone(),
        }
    }
}

impl Glob {
    /// A glob for the whole content of a directory.
    fn in_directory(base: Option<RepoPath>) -> Result<Self, SpecError> {
        let text = base.as_ref().map_or_else(
            || "**".to_owned(),
            |base| format!("{}/**", globset::escape(base.as_str())),
        );
        Ok(Self {
            matcher: compile(&text, &text)?,
            base,
            text,
        })
    }
}

/// The matching files without duplicates and excluded ones. Directories that cannot be walked are
/// reported.
pub(super) fn matching(
    project: &Project,
    patterns: &[Pattern],
    excludes: &Excludes,
    most: usize,
    passed_over: &mut Vec<Omission>,
) -> Result<Matches, SpecError> {
    let mut found: BTreeSet<(usize, RepoPath)> = BTreeSet::new();
    let mut walked: BTreeSet<Option<&RepoPath>> = BTreeSet::new();
    // Links, pipes and the like; one that a plain path also names is handled there.
    let mut others: Vec<(RepoPath, OmissionReason)> = Vec::new();
    for (place, pattern) in patterns.iter().enumerate() {
        let base = match pattern {
            Pattern::Plain(path) => {
                if excludes.forbid(path).is_none() {
                    found.insert((place, path.clone()));
                }
                continue;
            }
            Pattern::Glob(glob) => glob.base.as_ref(),
        };
        if !walked.insert(base) {
            continue;
        }
        let globs: Vec<(usize, &Glob)> = (patterns.iter().enumerate())
            .filter_map(|(place, pattern)| match pattern {
                Pattern::Glob(glob) if glob.base.as_ref() == base => Some((place, glob)),
                Pattern::Glob(_) | Pattern::Plain(_) => None,
            })
            .collect();
        let Some(directory) = directory(project, base, passed_over) else {
            continue;
        };
        for entry in walk::entries(&directory) {
            let (file, is_file) = match entry {
                Ok(WalkedEntry::File(path)) => (path, true),
                Ok(WalkedEntry::Other(path)) => (path, false),
                Err(error) => {
                    let name = base.map_or(".", RepoPath::as_str).to_owned();
                    let error = error.replace(&project.root().display().to_string(), ".");
                    passed_over.push(Omission {
                        name,
                        why: OmissionReason::Unreadable(error),
                    });
                    continue;
                }
            };
            let Some(path) = project.path_of(&file) else {
                let name = file
                    .strip_prefix(project.root())
                    .unwrap_or(&file)
                    .to_string_lossy()
                    .into_owned();
                passed_over.push(Omission {
                    name,
                    why: OmissionReason::NotAFile,
                });
                continue;
            };
            if is_own(&path) || excludes.forbid(&path).is_some() {
                continue;
            }
            let matching = globs.iter().find(|(_, glob)| glob.matcher.is_match(&path));
            if !is_file {
                // Any name in a linked directory could match, whatever the link is called.
                if matching.is_some() || file.is_dir() {
                    let why = match project.place(&path) {
                        Err(Found::Refused(why)) => why,
                        Ok(_) | Err(_) => OmissionReason::NotAFile,
                    };
                    others.push((path, why));
                }
                continue;
            }
            if let Some((place, _)) = matching {
                found.insert((*place, path));
            }
            if found.len() > most {
                return Err(refused(
                    &patterns
                        .iter()
                        .map(Pattern::text)
                        .collect::<Vec<_>>()
                        .join(" "),
                    &format!("more than {most} files match; write narrower patterns"),
                ));
            }
        }
    }
    let mut once = BTreeSet::new();
    let is_named =
        |path: &RepoPath| (0..patterns.len()).any(|place| found.contains(&(place, path.clone())));
    let others = others.into_iter().filter(|(path, _)| !is_named(path));
    passed_over.extend(others.map(|(path, why)| Omission {
        name: path.to_string(),
        why,
    }));
    Ok(found
        .into_iter()
        .map(|(_, path)| path)
        .filter(|path| once.insert(path.clone()))
        .collect())
}

/// The directory to walk, if it belongs to the project.
fn directory(
    project: &Project,
    base: Option<&RepoPath>,
    passed_over: &mut Vec<Omission>,
) -> Option<PathBuf> {
    let Some(base) = base else {
        return Some(project.root().to_owned());
    };
    match project.place(base) {
        // Use its own path, so that files are reported under the requested names.
        Ok(place) if place == project.root().join(base) => Some(place),
        Ok(_) => {
            passed_over.push(Omission {
                name: base.to_string(),
                why: OmissionReason::NotAFile,
            });
            None
        }
        Err(Found::Refused(why)) => {
            passed_over.push(Omission {
                name: base.to_string(),
                why,
            });
            None
        }
        Err(Found::Missing | Found::Text(_) | Found::Larger(_)) => None,
    }
}

/// The patterns of excluded files.
#[derive(Debug)]
pub(super) struct Excludes(Vec<(String, GlobSet)>);

impl Excludes {
    pub(super) fn read(patterns: &[String]) -> Result<Self, SpecError> {
        let read = |text: &String| {
            let plain = shortest(text);
            // Deliberately broad: an excluded name is excluded at any depth.
            let full_text = if plain.contains('/') {
                plain.to_owned()
            } else {
                format!("**/{plain}")
            };
            if plain.is_empty() || text.len() > MAX_LEN {
                return Err(refused(text, "it names nothing to exclude"));
            }
            Ok((text.clone(), compile(text, &full_text)?))
        };
        patterns
            .iter()
            .map(read)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The pattern that excludes this path, or a directory above it.
    pub(super) fn forbid(&self, path: &RepoPath) -> Option<&str> {
        if self.0.is_empty() {
            return None;
        }
        let text = path.as_str();
        let ends = text
            .match_indices('/')
            .map(|(end, _)| end)
            .chain([text.len()]);
        let ways: Vec<&str> = ends.filter_map(|end| text.get(..end)).collect();
        let hit = self
            .0
            .iter()
            .find(|(_, matcher)| ways.iter().any(|spelling| matcher.is_match(spelling)));
        hit.map(|(pattern, _)| pattern.as_str())
    }
}

/// Removes leading `./` and trailing `/`; `.` becomes empty.
fn shortest(text: &str) -> &str {
    let mut text = text;
    while let Some(rest) = text.strip_prefix("./") {
        text = rest.trim_start_matches('/');
    }
    let text = text.strip_suffix('/').unwrap_or(text);
    if text == "." { "" } else { text }
}

/// Compiles a glob; an error shows it as it was `written`.
fn compile(written: &str, glob: &str) -> Result<GlobSet, SpecError> {
    // A set of one: a single matcher assumes that its regex compiles, which is not so for a deeply nested
    // one.
    let built = GlobBuilder::new(glob).literal_separator(true).build();
    built.and_then(|glob| GlobSet::builder().add(glob).build()).map_err(|error| {
        let why = short_line(&error.kind().to_string(), 100);
        refused(
            written,
            &format!("it is not a valid glob: {why}; put a `\\` before a character that is meant as it is"),
        )
    })
}

fn has_meta(text: &str) -> bool {
    text.contains(is_meta)
}

fn is_meta(c: char) -> bool {
    matches!(c, '*' | '?' | '[' | '{' | '\\')
}

fn refused(pattern: &str, why: &str) -> SpecError {
    SpecError::Source {
        source_name: format!("{:?}", short_line(pattern, 100)),
        why: why.to_owned(),
    }
}
