//! Checks paths in a plan: relative, inside the workspace, through no link, and not into tool
//! configuration or installed packages.

use std::collections::BTreeSet;

use crucible_model::Code;

use super::finding::{PATH_ABSOLUTE, PATH_INVALID, PATH_LINK, PATH_PARENT, PATH_PROTECTED};
use super::workspace::Workspace;

/// Directories that configure tools or hold their secrets: no access, in any letter case.
const PROTECTED: &[&str] = &[
    ".git",
    ".github",
    ".gitlab",
    ".circleci",
    ".cargo",
    ".crucible",
    ".husky",
    ".githooks",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".claude",
    ".hg",
    ".svn",
    ".ssh",
    ".gnupg",
    ".aws",
    ".yarn",
];

/// Directories that package managers fill: foreign code, with links out and files shared with the user's
/// own store. No step works in them, reads or writes them, in any letter case.
const INSTALLED: &[&str] = &[
    "node_modules",
    "bower_components",
    "jspm_packages",
    ".pnpm-store",
    ".venv",
    "venv",
    ".virtualenv",
    ".tox",
    ".nox",
    "site-packages",
    "dist-packages",
    "__pypackages__",
];

/// Names that are allowed for a new virtual environment: those in [`INSTALLED`], and [`ENV`].
const ENVIRONMENTS: &[&str] = &[".venv", "venv", ".virtualenv", ENV];

/// A usual name of a virtual environment, and of other directories as well.
const ENV: &str = "env";

/// Hidden names that builds write; any other hidden file may configure a tool.
const HIDDEN_OUTPUT: &[&str] = &[
    ".env",
    ".build",
    ".cache",
    ".next",
    ".output",
    ".nyc_output",
];

/// Directories that usually contain source code, in any letter case: no command may clear them.
const SOURCES: &[&str] = &[
    "cmd", "crates", "doc", "docs", "examples", "include", "internal", "lib", "libs", "packages",
    "scripts", "source", "sources", "src", "test", "tests",
];

/// The deepest path.
const MAX_DEPTH: usize = 64;

/// What a command does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// It reads or executes it.
    Read,
    /// It creates it: one file, or a directory whose content is kept.
    Make,
    /// It writes there, or anywhere below.
    Write,
    /// It may clear everything below.
    Own,
}

/// Why a path is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathRefusal {
    pub(super) code: Code,
    pub(super) hint: &'static str,
}

impl PathRefusal {
    const fn new(code: Code, hint: &'static str) -> Self {
        Self { code, hint }
    }
}

const ABSOLUTE: PathRefusal = PathRefusal::new(
    PATH_ABSOLUTE,
    "paths are relative to the workspace; write it without the leading `/`",
);
const PARENT: PathRefusal = PathRefusal::new(
    PATH_PARENT,
    "`..` may lead out of the workspace; set `cwd` instead",
);
const IN_PROTECTED: PathRefusal = PathRefusal::new(
    PATH_PROTECTED,
    "this folder configures other tools and is not part of a build; do not touch it",
);
const IN_INSTALLED: PathRefusal = PathRefusal::new(
    PATH_PROTECTED,
    "installed packages are not part of the repository and may link out of it; leave the folder to its \
    package manager",
);
const HIDDEN: PathRefusal = PathRefusal::new(
    PATH_PROTECTED,
    "a hidden file may configure a tool; write to a name without the leading dot",
);
const THROUGH_LINK: PathRefusal = PathRefusal::new(
    PATH_LINK,
    "the path leads through a symbolic link of the repository; name the real path",
);
const HOLDS_LINK: PathRefusal = PathRefusal::new(
    PATH_LINK,
    "the directory contains a symbolic link of the repository, and writes could follow it; name a new directory",
);
const NO_OWN: PathRefusal = PathRefusal::new(
    PATH_INVALID,
    "existing files would be overwritten or deleted; name a separate directory such as `build` or `stage`",
);
const NO_ENVIRONMENT: PathRefusal = PathRefusal::new(
    PATH_INVALID,
    "a virtual environment contains links out of the workspace, so only these names are allowed: `.venv`, \
    `venv`, `env` or `.virtualenv`",
);
const NO_PATH: PathRefusal = PathRefusal::new(
    PATH_INVALID,
    "this is not a plain path; paths consist of letters, digits and - _ . + @ /, and do not begin with - or @",
);
const TOO_DEEP: PathRefusal = PathRefusal::new(PATH_INVALID, "the path has more than 64 parts");

/// The links of a workspace, for lookups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Links(BTreeSet<String>);

impl Links {
    pub(super) fn from_workspace(workspace: &Workspace) -> Self {
        Self(
            workspace
                .links
                .iter()
                .map(|link| normal(link).to_ascii_lowercase())
                .collect(),
        )
    }

    /// The same with the environments called [`ENV`] that steps of the plan create: they hold links out of the workspace, and
    /// no other step may follow them. `directories` are relative to the workspace.
    pub(super) fn with_environments(&self, directories: impl Iterator<Item = String>) -> Self {
        let is_env = |path: &String| path.rsplit('/').next() == Some(ENV);
        let made = directories
            .map(|directory| normal(&directory).to_ascii_lowercase())
            .filter(is_env);
        Self(self.0.iter().cloned().chain(made).collect())
    }
}

/// The directory in which a step runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepDirectory<'a> {
    links: &'a Links,
    cwd: &'a str,
    /// The directory to which the program changes before it interprets its other words.
    program_dir: &'a str,
    /// The packages that package.json declares here and an earlier step has installed.
    installed: Option<&'a BTreeSet<String>>,
}

impl<'a> StepDirectory<'a> {
    /// A directory in the workspace; `cwd` was checked with [`StepDirectory::top`].
    pub(super) fn new(links: &'a Links, cwd: &'a str) -> Self {
        Self {
            links,
            cwd,
            program_dir: ".",
            installed: None,
        }
    }

    /// The workspace's top level.
    pub(super) fn top(links: &'a Links) -> Self {
        Self {
            links,
            cwd: ".",
            program_dir: ".",
            installed: None,
        }
    }

    /// Sets the packages that are installed here.
    pub(super) fn with_installed(self, installed: Option<&'a BTreeSet<String>>) -> Self {
        Self { installed, ..self }
    }

    /// Whether package.json declares this package here and an earlier step has installed it.
    pub(super) fn has_installed(self, package: &str) -> bool {
        self.installed
            .is_some_and(|installed| installed.contains(package))
    }

    /// The directory to which an option of the program changes; `directory` was checked with this place.
    pub(super) fn within<'b>(self, directory: &'b str) -> StepDirectory<'b>
    where
        'a: 'b,
    {
        StepDirectory {
            program_dir: directory,
            ..self
        }
    }

    /// Checks a whole path, relative to this place.
    pub(super) fn check(self, path: &str, access: Access) -> Result<(), PathRefusal> {
        if path.starts_with('/') {
            return Err(ABSOLUTE);
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+@/".contains(&byte);
        if path.is_empty() || path.starts_with(['-', '@']) || !path.bytes().all(is_plain) {
            return Err(NO_PATH);
        }
        if path.split('/').count() > MAX_DEPTH {
            return Err(TOO_DEEP);
        }
        for segment in path.split('/') {
            if segment == ".." {
                return Err(PARENT);
            }
            if is_protected(segment) {
                return Err(IN_PROTECTED);
            }
            if is_installed(segment) {
                return Err(IN_INSTALLED);
            }
            if access != Access::Read && is_hidden_setting(segment) {
                return Err(HIDDEN);
            }
        }
        if access == Access::Own && is_source_dir(path) {
            return Err(NO_OWN);
        }
        if self.leads_through_link(path) {
            return Err(THROUGH_LINK);
        }
        let is_below_written = matches!(access, Access::Write | Access::Own);
        if is_below_written && self.holds_link(path) {
            Err(HOLDS_LINK)
        } else {
            Ok(())
        }
    }

    /// Checks the directory of a virtual environment: one of [`ENVIRONMENTS`] in a directory of the
    /// workspace, without a link in it or in its path. No other step may access a directory with such a
    /// name, or into such an environment, so the links that Python creates in it do no harm.
    pub(super) fn check_environment(self, path: &str) -> Result<(), PathRefusal> {
        let path = path.trim_end_matches('/');
        let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
        if !ENVIRONMENTS.contains(&name) {
            return Err(NO_ENVIRONMENT);
        }
        self.check(parent, Access::Make)?;
        if self.leads_through_link(path) || self.holds_link(path) {
            Err(HOLDS_LINK)
        } else {
            Ok(())
        }
    }

    /// Whether the repository has a link here that a shell pattern of `.` and one more character would
    /// match.
    pub(super) fn has_short_hidden_link(self) -> bool {
        let start = normal(&format!("{}/{}", self.cwd, self.program_dir)).to_ascii_lowercase();
        let start = if start.is_empty() {
            start
        } else {
            format!("{start}/")
        };
        self.links.0.contains("")
            || self.links.0.iter().any(|link| {
                let name = link
                    .strip_prefix(&start)
                    .and_then(|name| name.strip_prefix('.'));
                name.is_some_and(|rest| rest.chars().count() == 1)
            })
    }

    /// Whether the tree at `path` contains a link, or is one: a copy of it could contain that link, too.
    pub(super) fn holds_link(self, path: &str) -> bool {
        let path = self.in_workspace(path);
        if path.is_empty() {
            return !self.links.0.is_empty();
        }
        let below = format!("{path}/");
        self.links.0.contains(&path)
            || self
                .links
                .0
                .range(below.clone()..)
                .next()
                .is_some_and(|link| link.starts_with(&below))
    }

    /// Whether `path` is a link, or leads through one.
    pub(super) fn leads_through_link(self, path: &str) -> bool {
        if self.links.0.is_empty() {
            return false;
        }
        let path = self.in_workspace(path);
        // An empty name means that the tree was too large to search: then any name may be a link, except
        // the top level.
        if path.is_empty() || self.links.0.contains("") {
            return !path.is_empty();
        }
        let mut ends = path
            .match_indices('/')
            .map(|(end, _)| end)
            .chain([path.len()]);
        ends.any(|end| {
            path.get(..end)
                .is_some_and(|prefix| self.links.0.contains(prefix))
        })
    }

    fn in_workspace(self, path: &str) -> String {
        normal(&format!("{}/{}/{path}", self.cwd, self.program_dir)).to_ascii_lowercase()
    }
}

/// Checks a word wherever a path may be hidden in it: after `=`, `:`, `,`, or directly after an option's
/// letter.
pub(super) fn check_word(word: &str) -> Result<(), PathRefusal> {
    let is_option = word.starts_with('-');
    for piece in word.split(['=', ':', ',', '@']) {
        // Only a one-letter option has its value directly after it.
        let mut letters = piece.strip_prefix('-').unwrap_or_default().chars();
        let is_glued =
            letters.next().is_some_and(|letter| letter != '-') && letters.next() == Some('/');
        if piece.starts_with('/') || is_glued {
            return Err(ABSOLUTE);
        }
        for segment in piece.split('/') {
            let is_glued =
                |name: &str| is_option && segment.starts_with('-') && ends_with(segment, name);
            if segment == ".." || is_glued("..") {
                return Err(PARENT);
            }
            if is_protected(segment) || PROTECTED.iter().any(|name| is_glued(name)) {
                return Err(IN_PROTECTED);
            }
        }
    }
    Ok(())
}

fn ends_with(segment: &str, name: &str) -> bool {
    let start = segment.len().checked_sub(name.len());
    start
        .and_then(|start| segment.get(start..))
        .is_some_and(|end| end.eq_ignore_ascii_case(name))
}

fn is_protected(segment: &str) -> bool {
    // Some file systems ignore trailing dots of a name.
    let name = segment.trim_end_matches('.');
    PROTECTED
        .iter()
        .any(|protected| protected.eq_ignore_ascii_case(name))
}

fn is_installed(segment: &str) -> bool {
    let name = segment.trim_end_matches('.');
    INSTALLED
        .iter()
        .any(|installed| installed.eq_ignore_ascii_case(name))
}

/// Whether a directory is the working directory itself, or a common source directory.
fn is_source_dir(path: &str) -> bool {
    let path = normal(path);
    path.is_empty() || SOURCES.iter().any(|name| name.eq_ignore_ascii_case(&path))
}

/// Whether a name begins with a dot and is not one that builds write.
pub(super) fn is_hidden_setting(segment: &str) -> bool {
    let is_output = HIDDEN_OUTPUT.contains(&segment) || segment.starts_with(".env.");
    segment.starts_with('.') && segment != "." && !is_output
}

/// The path without empty and `.` parts; empty for the top level.
pub(super) fn normal(path: &str) -> String {
    let mut parts = String::with_capacity(path.len());
    for part in path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
    {
        if !parts.is_empty() {
            parts.push('/');
        }
        parts.push_str(part);
    }
    parts
}
