//! Turns a request into a pack.
//!
//! Mandatory documents come first and use the budget first. Then each requested path is checked in order: is
//! it valid, allowed and present, does the need make sense, is there budget left. Needs for the same path are
//! merged: the whole file if one of them wants it, else all their lines. An invalid need does not affect the
//! others; it has its own row. The budget counts the bytes of the contents as they stand in the pack.

use std::collections::{HashMap, HashSet};

use crucible_model::{Denial, RepoPath, SECRET_REACH, denied_place};

use crate::error::PackError;
use crate::mandatory::Mandatory;
use crate::pack::{
    ContextPack, MAX_CONTENT_BYTES, Omitted, OmittedReason, PackVersion, PackedFile,
};
use crate::request::{FileRequest, LineRange, Mode};
use crate::snippet::{self, Input, Picked};
use crate::source::{Entry, Source, SourceError};
use crate::text::{Decoded, Extent, decode};

mod summary;

use summary::Tally;

/// Read beyond a cut, so that a secret which the cut divides is judged as in the whole file: it may begin a little
/// before the keyword that gives it away, and that decides within its reach.
const LOOK_AHEAD: u64 = 2 * SECRET_REACH as u64;

/// Bytes of the first read of a file for its lines; doubled until they are found.
const FIRST_READ: u64 = 64 * 1024;

/// Maximum depth in bytes to which a file is searched for lines.
const MAX_READ_DEPTH: u64 = 16 * 1024 * 1024;

/// How much is read in search of the lines of all needs together, in bytes: a request may name ten thousand huge files.
const SEARCHED_IN_ALL: u64 = 256 * 1024 * 1024;

/// The longest omitted path that is repeated when it is not a path at all, in characters.
const MAX_BAD_PATH: usize = 200;

/// Builds the requested pack.
///
/// The result depends on the request, the mandatory documents, the slug and the content of the files, and on
/// nothing else. Each distinct path has exactly one row in `files` or `omitted`. A shown file with another,
/// invalid need has one more row in `omitted`.
///
/// # Errors
///
/// Fails when a mandatory document is missing, may not be shown, cannot be read, or does not fit.
pub fn build(
    request: &FileRequest,
    mandatory: &Mandatory,
    repo_slug: &str,
    source: &dyn Source,
) -> Result<ContextPack, PackError> {
    let mut packing = Packing::new(request, source);
    packing.place_mandatory(mandatory)?;
    for requested in fold(request) {
        packing.place(requested);
    }
    let mut summary = packing
        .tally
        .summary(&packing.files, &packing.omitted, packing.max_bytes);
    if request.budget.max_total_bytes.0 > MAX_CONTENT_BYTES {
        summary.push_str(&format!(
            " No pack holds more than {MAX_CONTENT_BYTES} bytes, whatever is allowed."
        ));
    }
    Ok(ContextPack {
        schema_version: PackVersion::V1,
        goal: request.goal.clone(),
        repo_slug: repo_slug.to_owned(),
        summary,
        files: packing.files,
        omitted: packing.omitted,
    })
}

/// All needs that name one path.
struct Wanted<'a> {
    path: &'a str,
    mode: Mode,
    ranges: Vec<LineRange>,
    /// Whether another need for this path is invalid.
    has_odd_need: bool,
}

/// Joins the needs that name the same path, in the order in which paths are first named.
fn fold(request: &FileRequest) -> Vec<Wanted<'_>> {
    let mut places: HashMap<&str, usize> = HashMap::with_capacity(request.needs.len());
    let mut folded: Vec<Wanted<'_>> = Vec::with_capacity(request.needs.len());
    for need in &request.needs {
        let place = *places.entry(&need.path).or_insert(folded.len());
        if place == folded.len() {
            let none = Wanted {
                path: &need.path,
                mode: Mode::Snippets,
                ranges: Vec::new(),
                has_odd_need: false,
            };
            folded.push(none);
        }
        let Some(requested) = folded.get_mut(place) else {
            continue;
        };
        match need.mode {
            Mode::Full => requested.mode = Mode::Full,
            Mode::Snippets if snippet::normalise(&need.line_ranges).is_none() => {
                requested.has_odd_need = true
            }
            Mode::Snippets => requested.ranges.extend_from_slice(&need.line_ranges),
        }
    }
    folded
}

/// Why a path has no row in `files`, with a word for the summary if the reason is not enough.
struct Refusal {
    reason: OmittedReason,
    detail: Option<String>,
}

impl Refusal {
    fn plain(reason: OmittedReason) -> Self {
        Self {
            reason,
            detail: None,
        }
    }

    fn denied(detail: String) -> Self {
        Self {
            reason: OmittedReason::Denied,
            detail: Some(detail),
        }
    }

    /// Lines are requested, but none exist.
    fn no_lines() -> Self {
        let detail = "asks for snippets without lines or with reversed lines".to_owned();
        Self {
            reason: OmittedReason::InvalidRequest,
            detail: Some(detail),
        }
    }

    fn unreadable(problem: &str) -> Self {
        Self::denied(format!("could not be read ({problem})"))
    }
}

impl From<SourceError> for Refusal {
    fn from(error: SourceError) -> Self {
        Self::unreadable(&error.problem)
    }
}

/// A file that may be shown; nothing of it has been read yet.
struct Allowed {
    /// Where it really lies.
    at: RepoPath,
    size: u64,
}

/// Why a file is in, its text, and of an excerpt its lines.
type Placed = (String, Decoded, Vec<LineRange>);

struct Packing<'a> {
    source: &'a dyn Source,
    provenance: String,
    max_files: u64,
    max_bytes: u64,
    used_bytes: u64,
    searched: u64,
    placed: HashSet<RepoPath>,
    files: Vec<PackedFile>,
    omitted: Vec<Omitted>,
    tally: Tally,
}

impl<'a> Packing<'a> {
    fn new(request: &FileRequest, source: &'a dyn Source) -> Self {
        Self {
            source,
            provenance: provenance(&request.reason),
            max_files: request.budget.max_files.0,
            max_bytes: request.budget.max_total_bytes.0.min(MAX_CONTENT_BYTES),
            used_bytes: 0,
            searched: 0,
            placed: HashSet::new(),
            files: Vec::new(),
            omitted: Vec::new(),
            tally: Tally::default(),
        }
    }

    fn remaining(&self) -> u64 {
        self.max_bytes - self.used_bytes
    }

    /// Places the mandatory documents whole, or fails. Their sizes are added up before any of them is read.
    fn place_mandatory(&mut self, mandatory: &Mandatory) -> Result<(), PackError> {
        let mut present = Vec::new();
        let mut seen = HashSet::new();
        for path in &mandatory.required {
            if seen.insert(path) {
                let allowed = self
                    .judge(path)
                    .map_err(|refusal| required_refused(path, refusal))?;
                present.push((path, allowed));
            }
        }
        for path in &mandatory.optional {
            if !seen.insert(path) {
                continue;
            }
            match self.judge(path) {
                Ok(allowed) => present.push((path, allowed)),
                Err(refusal) if refusal.reason == OmittedReason::NotFound => {}
                Err(refusal) => {
                    self.omit(path.as_str().to_owned(), refusal);
                    self.placed.insert(path.clone());
                }
            }
        }
        let files_needed = present.len() as u64;
        let bytes_needed = present
            .iter()
            .fold(0u64, |sum, (_, allowed)| sum.saturating_add(allowed.size));
        let too_small = |bytes_needed| PackError::BudgetTooSmall {
            files_needed,
            files_allowed: self.max_files,
            bytes_needed,
            bytes_allowed: self.max_bytes,
        };
        if files_needed > self.max_files || bytes_needed > self.max_bytes {
            return Err(too_small(bytes_needed));
        }
        let mut unplaced = bytes_needed;
        for (path, allowed) in present {
            unplaced -= allowed.size;
            let remaining = self.remaining();
            let bytes = self.source.read(&allowed.at, remaining.saturating_add(1))?;
            if let Some(rule) = self.source.is_secret(path, &bytes) {
                return Err(PackError::MandatoryRefused {
                    path: path.clone(),
                    why: holds_secret(&rule),
                });
            }
            let decoded = decode(bytes, remaining);
            if decoded.extent == Extent::Prefix {
                // Replacements made the text longer than the file, or the file has grown since its size was asked.
                let known = self.max_bytes.saturating_add(1).saturating_add(unplaced);
                return Err(PackError::BudgetTooSmall {
                    files_needed,
                    files_allowed: self.max_files,
                    bytes_needed: known,
                    bytes_allowed: self.max_bytes,
                });
            }
            self.placed.insert(path.clone());
            self.push(
                path,
                with_replacements("mandatory_contract".to_owned(), decoded.replaced),
                decoded,
                Vec::new(),
            );
        }
        Ok(())
    }

    fn place(&mut self, requested: Wanted<'_>) {
        let path: RepoPath = match requested.path.parse() {
            Ok(path) => path,
            Err(error) => {
                self.omit(
                    printable(requested.path),
                    Refusal::denied(format!("is refused: {error}")),
                );
                return;
            }
        };
        if self.placed.contains(&path) {
            self.tally.already_mandatory += 1;
            return;
        }
        let judged = self.judge(&path);
        let placed = judged.and_then(|allowed| match requested.mode {
            Mode::Full => self.read_full(&path, &allowed),
            Mode::Snippets => self.read_lines(&path, &allowed, &requested.ranges),
        });
        match placed {
            Ok((why, decoded, ranges)) => {
                self.push(&path, why, decoded, ranges);
                if requested.has_odd_need {
                    self.omit(path.as_str().to_owned(), Refusal::no_lines());
                }
            }
            Err(refusal) => self.omit(path.as_str().to_owned(), refusal),
        }
    }

    /// Checks the path and its place only; reads nothing.
    fn judge(&self, path: &RepoPath) -> Result<Allowed, Refusal> {
        self.judge_name(path)?;
        match self.source.entry(path) {
            Entry::File { size } => Ok(Allowed {
                at: path.clone(),
                size,
            }),
            Entry::Linked { through, to, size } => {
                for place in through.iter().chain([&to]) {
                    self.judge_name(place).map_err(|refusal| {
                        let why = refusal.detail.unwrap_or_default();
                        Refusal::denied(format!("is a link to {:?}, which {why}", place.as_str()))
                    })?;
                }
                Ok(Allowed { at: to, size })
            }
            Entry::Missing => Err(Refusal::plain(OmittedReason::NotFound)),
            Entry::NotAFile => Err(Refusal {
                reason: OmittedReason::InvalidRequest,
                detail: Some("is not a regular file".to_owned()),
            }),
            Entry::LeavesRepository => Err(Refusal::denied(
                "is a link out of the repository".to_owned(),
            )),
            Entry::LinkCycle => Err(Refusal::denied(
                "is a link that leads in circles or over too many links".to_owned(),
            )),
            Entry::LinkToNothing => Err(Refusal::denied("is a link to nothing".to_owned())),
            Entry::Unreadable { problem } => Err(Refusal::unreadable(&problem)),
        }
    }

    fn judge_name(&self, path: &RepoPath) -> Result<(), Refusal> {
        if let Some(directory) = denied_place(path, Denial::Shown) {
            return Err(Refusal::denied(format!("lies below {directory}/")));
        }
        match self.source.is_secret(path, &[]) {
            Some(rule) => Err(Refusal::denied(holds_secret(&rule))),
            None => Ok(()),
        }
    }

    fn read_full(&self, path: &RepoPath, allowed: &Allowed) -> Result<Placed, Refusal> {
        let remaining = self.remaining_budget()?;
        if remaining == 0 && allowed.size > 0 {
            return Err(Refusal::plain(OmittedReason::BudgetExceeded));
        }
        let bytes = self
            .source
            .read(&allowed.at, remaining.saturating_add(1 + LOOK_AHEAD))?;
        self.refuse_secrets(path, &bytes)?;
        let decoded = decode(bytes, remaining);
        if decoded.text.is_empty() && decoded.extent == Extent::Prefix {
            return Err(Refusal::plain(OmittedReason::BudgetExceeded));
        }
        Ok((
            with_replacements(self.provenance.clone(), decoded.replaced),
            decoded,
            Vec::new(),
        ))
    }

    fn read_lines(
        &mut self,
        path: &RepoPath,
        allowed: &Allowed,
        ranges: &[LineRange],
    ) -> Result<Placed, Refusal> {
        let Some(ranges) = snippet::normalise(ranges) else {
            return Err(Refusal::no_lines());
        };
        let remaining = self.remaining_budget()?;
        let mut reach = FIRST_READ;
        let (bytes, line_ranges) = loop {
            let bytes = self
                .source
                .read(&allowed.at, reach.saturating_add(LOOK_AHEAD))?;
            self.searched = self.searched.saturating_add(bytes.len() as u64);
            let known = bytes
                .len()
                .min(usize::try_from(reach).unwrap_or(usize::MAX));
            let input = if known == bytes.len() {
                Input::Whole
            } else {
                Input::Prefix
            };
            match snippet::pick(&bytes[..known], input, &ranges, remaining) {
                Picked::Lines {
                    bytes: lines,
                    ranges,
                } => {
                    self.refuse_secrets(path, &bytes)?;
                    break (lines, ranges);
                }
                Picked::OverBudget => return Err(Refusal::plain(OmittedReason::BudgetExceeded)),
                Picked::NeedsMore
                    if reach >= MAX_READ_DEPTH || self.searched >= SEARCHED_IN_ALL =>
                {
                    let detail = format!(
                        "has {} bytes and its lines lie deeper than are looked for",
                        allowed.size
                    );
                    return Err(Refusal {
                        reason: OmittedReason::TooLarge,
                        detail: Some(detail),
                    });
                }
                Picked::NeedsMore => reach = reach.saturating_mul(2).min(MAX_READ_DEPTH),
            }
        };
        let decoded = decode(bytes, remaining);
        if decoded.extent == Extent::Prefix {
            return Err(Refusal::plain(OmittedReason::BudgetExceeded));
        }
        let why = format!("{}; {}", self.provenance, lines_of(&line_ranges));
        Ok((
            with_replacements(why, decoded.replaced),
            decoded,
            line_ranges,
        ))
    }

    /// The bytes that are left, if another file is allowed at all.
    fn remaining_budget(&self) -> Result<u64, Refusal> {
        if self.files.len() as u64 >= self.max_files {
            return Err(Refusal::plain(OmittedReason::BudgetExceeded));
        }
        Ok(self.remaining())
    }

    fn refuse_secrets(&self, path: &RepoPath, bytes: &[u8]) -> Result<(), Refusal> {
        match self.source.is_secret(path, bytes) {
            Some(rule) => Err(Refusal::denied(holds_secret(&rule))),
            None => Ok(()),
        }
    }

    fn push(&mut self, path: &RepoPath, why: String, decoded: Decoded, ranges: Vec<LineRange>) {
        self.used_bytes += decoded.text.len() as u64;
        self.files.push(PackedFile {
            path: path.as_str().to_owned(),
            why,
            content: decoded.text,
            truncated: decoded.extent == Extent::Prefix,
            ranges,
        });
    }

    fn omit(&mut self, path: String, refusal: Refusal) {
        self.tally.note(&path, &refusal);
        self.omitted.push(Omitted {
            path,
            reason: refusal.reason,
        });
    }
}

fn required_refused(path: &RepoPath, refusal: Refusal) -> PackError {
    match refusal {
        Refusal {
            reason: OmittedReason::NotFound,
            ..
        } => PackError::MandatoryMissing { path: path.clone() },
        Refusal { reason, detail } => PackError::MandatoryRefused {
            path: path.clone(),
            why: detail.unwrap_or_else(|| reason.as_str().to_owned()),
        },
    }
}

fn holds_secret(rule: &str) -> String {
    format!("holds a secret ({rule})")
}

/// `requested:` and the reason on one short line.
fn provenance(reason: &str) -> String {
    let words = reason
        .chars()
        .take(200)
        .map(|c| if c.is_control() { ' ' } else { c });
    format!("requested:{}", words.collect::<String>().trim())
}

fn with_replacements(why: String, replaced: u64) -> String {
    match replaced {
        0 => why,
        1 => format!("{why}; replaced 1 invalid byte"),
        _ => format!("{why}; replaced {replaced} invalid bytes"),
    }
}

/// `lines 1-3, 7-9`, at most twenty ranges.
fn lines_of(ranges: &[LineRange]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<String> = ranges
        .iter()
        .take(SHOWN)
        .map(|range| format!("{}-{}", range.start, range.end))
        .collect();
    match ranges.len().saturating_sub(SHOWN) {
        0 if shown.is_empty() => "no lines".to_owned(),
        0 => format!("lines {}", shown.join(", ")),
        more => format!("lines {} and {more} more ranges", shown.join(", ")),
    }
}

/// An invalid path, escaped for a report.
fn printable(path: &str) -> String {
    let mut text: String = path
        .chars()
        .take(MAX_BAD_PATH)
        .flat_map(|c| c.escape_debug())
        .collect();
    if path.chars().nth(MAX_BAD_PATH).is_some() {
        text.push('…');
    }
    text
}
