//! Serves a model's request for more files: local and deterministic, as the first pack is.
//!
//! What is named is judged like every need of a pack (denied places, secrets, links) and has to be a file that git tracks. A
//! search ranks the tracked files that are not shown whole yet. Each line of the request has an equal share of what is left of
//! the bytes; a larger file is shown in part. What is not shown has its reason in a finding, which the next question repeats.
//!
//! What always holds: no more than [`MAX_FILES`] files and the allowed bytes are added; the plan stays as it is signed.

use std::path::Path;

use crucible_model::{ByteLimit, Code, Denial, FileLimit, Finding, RepoPath, denied_place};
use crucible_pack::{
    Budget, ContextPack, FileClass, FileRequest, Goal, LineRange, Mandatory, Mode, Need,
    OmittedReason, PackedFile, RequestVersion, build, is_filler,
};
use crucible_secrets::{Scanner, is_secret_file};

use super::WorkTree;
use crate::contract::{Plan, RunSettings};
use crate::error::RunError;
use crate::role::chair::lookup::{fitting_lines, search};
use crate::role::request::{MAX_LINES, MoreFiles, RequestItem};

pub(crate) const FILES_SHOWN: Code = Code::new("run-files-shown");
pub(crate) const FILES_NOT_SHOWN: Code = Code::new("run-files-not-shown");

/// The most files that one request adds.
const MAX_FILES: u64 = 8;

/// What one request may add, as one part of the bytes of the first pack in so many.
pub(crate) const PART: u64 = 3;

/// What a request is judged by.
pub(crate) struct LibrarianContext<'a> {
    /// The top directory of the repository.
    pub(crate) top: &'a Path,
    /// The repository's name.
    pub(crate) slug: &'a str,
    pub(crate) goal: &'a str,
    pub(crate) settings: &'a RunSettings,
    /// The tracked files that can be requested, with sizes.
    pub(crate) tracked: &'a [(RepoPath, u64)],
    /// What the model has seen.
    pub(crate) shown: &'a ContextPack,
    pub(crate) plan: &'a Plan,
}

/// What came of a request.
pub(crate) struct FilesResponse {
    /// What is added.
    pub(crate) pack: ContextPack,
    /// What came of each line.
    pub(crate) findings: Vec<Finding>,
}

/// The result for one line: its files, or the reason for none.
enum Found {
    Files(Vec<RepoPath>),
    Nothing(&'static str),
}

impl LibrarianContext<'_> {
    /// Packs the requested files.
    ///
    /// # Errors
    ///
    /// As [`build`], which cannot fail without mandatory documents.
    pub(crate) fn serve(&self, request: &MoreFiles) -> Result<FilesResponse, RunError> {
        let mut needs: Vec<Need> = Vec::new();
        let mut left = self.settings.max_total_bytes / PART;
        // In a growing excerpt, lines already shown stay and cost nothing.
        let mut budget = left;
        let mut found = Vec::new();
        for (at, requested) in request.wanted.iter().enumerate() {
            let lines_left = request.wanted.len().saturating_sub(at).max(1) as u64;
            let share = left / lines_left;
            let (line, added) = self.look_up(requested, share);
            for mut need in added {
                left = left.saturating_sub(self.weight(&need).min(share));
                if !needs.iter().any(|other| other.path == need.path) {
                    budget = budget.saturating_add(self.keep_shown(&mut need));
                }
                needs.push(need);
            }
            found.push((requested.line(), line));
        }
        let file_request = FileRequest {
            schema_version: RequestVersion::V1,
            goal: self.goal.to_owned(),
            needs,
            budget: Budget {
                max_files: FileLimit(MAX_FILES),
                max_total_bytes: ByteLimit(budget),
            },
            reason: "the model asked for it".to_owned(),
        };
        let pack = build(
            &file_request,
            &Mandatory::default(),
            self.slug,
            &WorkTree::new(self.top),
        )?;
        let mut findings = Vec::new();
        for (line, found) in found {
            match found {
                Found::Files(paths) => findings.extend(
                    paths
                        .iter()
                        .map(|path| self.line_finding(&pack, &line, path)),
                ),
                Found::Nothing(why) => findings.push(not_shown(&line, why)),
            }
        }
        if request.unread > 0 {
            let why = format!(
                "a request has at most {MAX_LINES} lines; {} were not read",
                request.unread
            );
            findings.push(not_shown("further lines", &why));
        }
        Ok(FilesResponse { pack, findings })
    }

    /// Returns the files that a line requests, and their needs.
    fn look_up(&self, requested: &RequestItem, share: u64) -> (Found, Vec<Need>) {
        let needs = match requested {
            RequestItem::File { path, lines } => match self.find_file(path, *lines) {
                Ok((path, size, lines)) => vec![self.need(path, size, lines, share)],
                Err(why) => return (Found::Nothing(why), Vec::new()),
            },
            RequestItem::Search { words } => {
                let unseen: Vec<&(RepoPath, u64)> = self
                    .tracked
                    .iter()
                    .filter(|(path, _)| !self.is_whole(path))
                    .collect();
                search(self.top, words, &unseen, share)
            }
        };
        let paths: Vec<RepoPath> = needs
            .iter()
            .filter_map(|need| need.path.parse().ok())
            .collect();
        match paths.is_empty() {
            true => (
                Found::Nothing("no file that is not shown yet shares anything with these words"),
                Vec::new(),
            ),
            false => (Found::Files(paths), needs),
        }
    }

    /// Returns the tracked file of this name, or the only one whose path ends with it.
    fn find_file(
        &self,
        name: &str,
        lines: Option<LineRange>,
    ) -> Result<(&RepoPath, u64, Option<LineRange>), &'static str> {
        let path: RepoPath = name
            .parse()
            .map_err(|_| "this is not a path inside the repository")?;
        let file = match self.tracked.iter().find(|(tracked, _)| *tracked == path) {
            Some(file) => file,
            None => {
                let ending = format!("/{path}");
                let mut fitting = self
                    .tracked
                    .iter()
                    .filter(|(tracked, _)| tracked.as_str().ends_with(&ending));
                match (fitting.next(), fitting.next()) {
                    (Some(only), None) => only,
                    (Some(_), Some(_)) => {
                        return Err("several files have this name; give the whole path");
                    }
                    (None, _) => return Err("git tracks no regular file of this name"),
                }
            }
        };
        let (path, size) = file;
        if self.is_whole(path) {
            return Err("it is shown already");
        }
        Ok((path, *size, lines))
    }

    fn need(&self, path: &RepoPath, size: u64, lines: Option<LineRange>, share: u64) -> Need {
        let line_ranges = match lines {
            Some(lines) => vec![lines],
            // Secret files are never opened; the pack says so.
            None if size > share && !is_secret_file(path.as_str()) => {
                fitting_lines(self.top, &Goal::new(self.goal), path, share)
            }
            None => Vec::new(),
        };
        let mode = if line_ranges.is_empty() {
            Mode::Full
        } else {
            Mode::Snippets
        };
        Need {
            path: path.to_string(),
            mode,
            line_ranges,
        }
    }

    /// Returns the maximum bytes of a need.
    fn weight(&self, need: &Need) -> u64 {
        let size = self
            .tracked
            .iter()
            .find(|(path, _)| path.as_str() == need.path)
            .map(|(_, size)| *size);
        size.unwrap_or_default()
    }

    /// Adds to a need for lines those that are shown already; returns how many bytes these have.
    fn keep_shown(&self, need: &mut Need) -> u64 {
        let earlier = self.shown.files.iter().find(|file| file.path == need.path);
        let Some(earlier) = earlier.filter(|_| need.mode == Mode::Snippets) else {
            return 0;
        };
        match (
            earlier.ranges.as_slice(),
            earlier.content.matches('\n').count() as u64,
        ) {
            ([], 0) => {}
            ([], lines) => need.line_ranges.push(LineRange {
                start: 1,
                end: lines,
            }),
            (ranges, _) => need.line_ranges.extend_from_slice(ranges),
        }
        earlier.content.len() as u64
    }

    fn is_whole(&self, path: &RepoPath) -> bool {
        let file = self
            .shown
            .files
            .iter()
            .find(|file| file.path == path.as_str());
        file.is_some_and(is_whole)
    }

    /// What a line came to, for one of its files.
    fn line_finding(&self, pack: &ContextPack, line: &str, path: &RepoPath) -> Finding {
        if let Some(file) = pack.files.iter().find(|file| file.path == path.as_str()) {
            let part = if is_whole(file) { "" } else { "a part of " };
            let scope = if self.plan.may_change(path) {
                "and you may change it"
            } else {
                "for reading only"
            };
            return Finding::info(
                FILES_SHOWN,
                subject(line),
                format!("{part}{path} is shown, {scope}"),
            );
        }
        let omitted = pack.omitted.iter().find(|row| row.path == path.as_str());
        let why = match omitted.map(|row| row.reason) {
            Some(OmittedReason::Denied) => "may not be shown",
            Some(OmittedReason::BudgetExceeded) => "is larger than what is left for more files",
            Some(OmittedReason::TooLarge) => "is too large",
            Some(OmittedReason::InvalidRequest) => "has no such lines",
            Some(OmittedReason::NotFound | OmittedReason::Irrelevant) | None => "is not there",
        };
        not_shown(line, &format!("{path} {why}"))
    }
}

/// Adds the requested files to a pack; a partially shown file is replaced by its new excerpt.
pub(crate) fn merge_packs(mut pack: ContextPack, more: ContextPack) -> ContextPack {
    for file in more.files {
        match pack
            .files
            .iter_mut()
            .find(|current_packed_file| current_packed_file.path == file.path)
        {
            Some(there) if is_whole(there) => {}
            Some(there) => *there = file,
            None => pack.files.push(file),
        }
    }
    pack
}

/// Returns whether more than a pack's content is worth requesting: truncated files, and files of `unasked`
/// that people wrote.
pub(crate) fn has_omitted_files(pack: &ContextPack, unasked: &[RepoPath]) -> bool {
    let is_worth = |path: &RepoPath| {
        FileClass::from_path(path) != FileClass::Generated
            && !is_filler(path)
            && !is_secret_file(path.as_str())
            && denied_place(path, Denial::Shown).is_none()
            && !pack.files.iter().any(|file| file.path == path.as_str())
    };
    let omitted = pack
        .omitted
        .iter()
        .filter(|row| row.reason == OmittedReason::BudgetExceeded);
    pack.files.iter().any(|file| !is_whole(file))
        || omitted.count() > 0
        || unasked.iter().any(is_worth)
}

fn is_whole(file: &PackedFile) -> bool {
    !file.truncated && file.ranges.is_empty()
}

fn not_shown(line: &str, why: &str) -> Finding {
    Finding::warning(FILES_NOT_SHOWN, subject(line), why)
}

/// A line as a finding names it.
fn subject(line: &str) -> String {
    Scanner::builtin()
        .redact(&line.escape_debug().to_string())
        .text
        .into_owned()
}

#[cfg(test)]
mod tests;
