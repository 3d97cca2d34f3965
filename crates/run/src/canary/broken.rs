//! Chooses and breaks the files of a canary run.
//!
//! Invariants: tests, configuration and gate files stay unchanged, unless a gate's own program is the only
//! source and nothing else made a difference. Only a private copy is written.

use std::path::Path;

use crucible_host::fs;
use crucible_model::{ByteLimit, PathRole, PathRoles, RepoPath};
use crucible_patch::FileMode;
use crucible_repo::{FileKind, TrackedFile};

use super::BrokenKind;
use crate::error::RunError;

/// A closing bracket begins nothing in any language, and the rest cannot end a line in languages that join
/// lines.
pub(super) const BROKEN_LINE: &str = ")]} this line is broken on purpose ({[\n";

/// The largest file that is broken.
const MAX_FILE: ByteLimit = ByteLimit(8 * 1024 * 1024);
/// Languages of [`FileKind::Source`] in which a program is not written.
const DATA: [&str; 5] = ["json", "toml", "xml", "yaml", "yml"];
/// Extensions of source files that are in no list of [`FileKind`].
const MORE_SOURCES: [&str; 30] = [
    "c++", "clj", "cljs", "cr", "cts", "cxx", "dart", "el", "elm", "f90", "fsx", "groovy", "hh",
    "hs", "hxx", "jl", "lisp", "ml", "mli", "mts", "pas", "php", "pl", "pm", "pyx", "r", "rkt",
    "sol", "tcl", "vb",
];

/// The files that are broken in a copy.
pub(crate) struct BrokenSources {
    pub(super) files: Vec<(RepoPath, FileMode)>,
    pub(super) kind: BrokenKind,
}

impl BrokenSources {
    /// Chooses the files that a change could touch. Pure.
    pub(super) fn choose(tracked: &[TrackedFile], gate_files: &[RepoPath]) -> Self {
        let files: Vec<_> = changeable(tracked)
            .filter(|(path, _)| !gate_files.contains(path))
            .collect();
        let sources: Vec<_> = files
            .iter()
            .filter(|(path, _)| is_source(path))
            .cloned()
            .collect();
        if !sources.is_empty() {
            return Self {
                files: sources,
                kind: BrokenKind::Sources,
            };
        }
        let kind = if files.is_empty() {
            BrokenKind::None
        } else {
            BrokenKind::Texts
        };
        Self { files, kind }
    }

    /// Chooses sources that gates run by name, if there are no others. Pure.
    pub(super) fn of_gates(tracked: &[TrackedFile], gate_files: &[RepoPath]) -> Option<Self> {
        let sources: Vec<_> = changeable(tracked)
            .filter(|(path, _)| is_source(path))
            .collect();
        let is_of_gates =
            !sources.is_empty() && sources.iter().all(|(path, _)| gate_files.contains(path));
        is_of_gates.then_some(Self {
            files: sources,
            kind: BrokenKind::Gates,
        })
    }

    /// Breaks the files of a copy.
    pub(crate) fn write(&self, copy: &Path) -> Result<(), RunError> {
        for (path, mode) in &self.files {
            let place = copy.join(path.as_str());
            // Files that are not in the copy or too large stay unchanged.
            let Ok(content) = fs::read_regular_up_to(&place, MAX_FILE) else {
                continue;
            };
            let broken = match self.kind {
                BrokenKind::Sources | BrokenKind::Gates => broken_source(path.as_str(), &content),
                BrokenKind::Texts => {
                    (!content.contains(&0)).then(|| BROKEN_LINE.as_bytes().to_vec())
                }
                BrokenKind::None => None,
            };
            let mode = if *mode == FileMode::Executable {
                0o755
            } else {
                0o644
            };
            if let Some(broken) = broken {
                fs::write_unflushed(&place, &broken, mode)?;
            }
        }
        Ok(())
    }
}

/// The plain files that a change could touch.
fn changeable(tracked: &[TrackedFile]) -> impl Iterator<Item = (RepoPath, FileMode)> {
    let plain = tracked
        .iter()
        .filter(|file| matches!(file.mode, FileMode::Regular | FileMode::Executable));
    plain
        .filter_map(|file| Some((file.path.to_str()?.parse::<RepoPath>().ok()?, file.mode)))
        .filter(|(path, _)| !is_kept(path))
}

/// Returns whether a file stays unchanged: a test or the configuration of a tool.
fn is_kept(path: &RepoPath) -> bool {
    let roles = PathRoles::from_path(path);
    [
        PathRole::Test,
        PathRole::TestSettings,
        PathRole::Project,
        PathRole::ToolSettings,
        PathRole::Ci,
        PathRole::Lockfile,
        PathRole::GitSetting,
        PathRole::Generated,
    ]
    .into_iter()
    .any(|role| roles.has(role))
}

fn is_source(path: &RepoPath) -> bool {
    let Some((_, extension)) = path.file_name().rsplit_once('.') else {
        return false;
    };
    let extension = extension.to_ascii_lowercase();
    let is_known = FileKind::from_path(path.as_str()) == Some(FileKind::Source)
        && !DATA.contains(&extension.as_str());
    is_known || MORE_SOURCES.contains(&extension.as_str())
}

/// Returns a source file with the broken line at its top, after `#!` and after PHP's opening tag. `None` if
/// PHP text has no program.
pub(crate) fn broken_source(path: &str, content: &[u8]) -> Option<Vec<u8>> {
    let line_after = |from: usize| {
        let rest = content.get(from..).unwrap_or_default();
        rest.iter()
            .position(|byte| *byte == b'\n')
            .map_or(content.len(), |at| from + at + 1)
    };
    let at = if path.to_ascii_lowercase().ends_with(".php") {
        const TAG: &[u8] = b"<?php";
        content
            .windows(TAG.len())
            .position(|window| window.eq_ignore_ascii_case(TAG))?
            + TAG.len()
    } else if content.starts_with(b"#!") && !content.starts_with(b"#![") {
        line_after(0)
    } else {
        0
    };
    let (head, rest) = content.split_at_checked(at)?;
    let newline: &[u8] = if head.is_empty() || head.ends_with(b"\n") {
        b""
    } else {
        b"\n"
    };
    Some([head, newline, BROKEN_LINE.as_bytes(), rest].concat())
}

#[cfg(test)]
mod tests;
