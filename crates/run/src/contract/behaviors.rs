//! A repository's catalogue of behaviours: `docs/behaviors/INDEX.md`, a page for each
//! behaviour, and markers in the code. The check compares all three.
//!
//! An entry of the index is a list item or a row of a table that begins with an id; a link in it, the first
//! one counts, names the page beside the index. A page is `docs/behaviors/B###-<slug>.md` and has the
//! headings `## Reason`, `## Behavior` and `## Result`. The checks are pure functions of values read
//! elsewhere, and the work is linear in the number of entries, pages and markers. The grammar is in
//! `docs/contracts/behaviors.md`.

use std::collections::{BTreeMap, HashSet};

use crucible_model::{Code, Finding, Verdict};

use crate::contract::behavior_marker::BehaviorMarker;
use crate::contract::ids::{IdKind, ids_in, is_id, is_meant_as_id};
use crate::contract::key_lines::open_lines;

/// Where a repository's catalogue begins.
pub(crate) const BEHAVIOR_INDEX: &str = "docs/behaviors/INDEX.md";
/// Where its pages lie.
pub(crate) const BEHAVIOR_PAGES: &str = "docs/behaviors";

/// The repository has no catalogue.
pub const NO_CATALOGUE: Code = Code::new("behaviors-no-catalogue");
const INDEX_MISSING: Code = Code::new("behaviors-index-missing");
const UNREADABLE: Code = Code::new("behaviors-unreadable");
const ENTRY_INVALID: Code = Code::new("behaviors-entry-invalid");
const ENTRY_REPEATED: Code = Code::new("behaviors-entry-repeated");
const ENTRY_UNMARKED: Code = Code::new("behaviors-entry-unmarked");
const LINK_OUTSIDE: Code = Code::new("behaviors-link-outside");
const PAGE_MISSING: Code = Code::new("behaviors-page-missing");
const PAGE_UNLISTED: Code = Code::new("behaviors-page-unlisted");
const PAGE_NAME: Code = Code::new("behaviors-page-name");
const PAGE_REPEATED: Code = Code::new("behaviors-page-repeated");
const PAGE_OTHER_ID: Code = Code::new("behaviors-page-other-id");
const HEADING_MISSING: Code = Code::new("behaviors-heading-missing");
const MARKER_INVALID: Code = Code::new("behaviors-marker-invalid");
const MARKER_UNLISTED: Code = Code::new("behaviors-marker-unlisted");
const SEARCH_CUT: Code = Code::new("behaviors-search-cut");

/// Maximum number of files that are reported one by one as not searched.
const MAX_TOLD: usize = 20;

/// The headings of every page.
const HEADINGS: [&str; 3] = ["Reason", "Behavior", "Result"];

/// A document of the catalogue as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CatalogueText {
    /// Its text.
    Read(String),
    /// Why it was not read: it is not a regular file, too large, or not UTF-8.
    Unreadable(String),
}

/// Everything that a catalogue consists of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BehaviorFiles {
    /// The index; `None` if absent.
    pub index: Option<CatalogueText>,
    /// The pages by their names below `docs/behaviors/`.
    pub pages: BTreeMap<String, CatalogueText>,
    /// The markers by the file that holds them.
    pub markers: BTreeMap<String, Vec<BehaviorMarker>>,
    /// Files of which only the beginning, or nothing, was searched for markers, with the reason.
    pub unsearched: BTreeMap<String, String>,
}

impl BehaviorFiles {
    /// Whether there is anything to judge.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.index.is_none() && self.pages.is_empty() && self.markers.is_empty()
    }

    /// The behaviours that the index lists.
    #[must_use]
    pub(crate) fn ids(&self) -> Vec<String> {
        let Some(CatalogueText::Read(index)) = &self.index else {
            return Vec::new();
        };
        let mut ids: Vec<String> = entries(index).filter_map(|entry| entry.id.ok()).collect();
        ids.sort();
        ids.dedup();
        ids
    }
}

/// Returns whether a name below `docs/behaviors/` is a page name, or meant as one.
#[must_use]
pub(crate) fn is_page_name(name: &str) -> bool {
    let mut chars = name.chars();
    let is_marked = chars.next().is_some_and(|c| c.eq_ignore_ascii_case(&'b'));
    let ends = name
        .get(name.len().saturating_sub(3)..)
        .is_some_and(|end| end.eq_ignore_ascii_case(".md"));
    is_marked && ends && chars.next().is_some_and(|c| c.is_ascii_digit())
}

/// Checks a catalogue in both directions. A repository without one passes with a note.
#[must_use]
pub(crate) fn check_behaviors(files: &BehaviorFiles) -> Verdict {
    let mut verdict = Verdict::default();
    if files.is_empty() {
        let hint = "This repository has no behaviour catalogue, so nothing was compared; to start one, write this index.";
        verdict.push(Finding::info(NO_CATALOGUE, BEHAVIOR_INDEX, hint));
    }
    for (path, reason) in files.unsearched.iter().take(MAX_TOLD) {
        verdict.push(Finding::warning(
            SEARCH_CUT,
            path,
            format!("Markers in it may be missed: {reason}."),
        ));
    }
    if let Some(more) = files
        .unsearched
        .len()
        .checked_sub(MAX_TOLD)
        .filter(|more| *more > 0)
    {
        let subject = format!("{more} files more");
        verdict.push(Finding::warning(
            SEARCH_CUT,
            subject,
            "Markers in them may be missed as well.",
        ));
    }
    let mut checked = Checked {
        pages: pages(files, &mut verdict),
        listed: HashSet::new(),
    };
    let marked = marked(files, &mut verdict);
    // Without an index, one finding is enough.
    let index = match &files.index {
        Some(CatalogueText::Read(index)) => index.as_str(),
        Some(CatalogueText::Unreadable(reason)) => {
            verdict.push(unreadable(BEHAVIOR_INDEX, reason));
            return verdict;
        }
        None if files.is_empty() => return verdict,
        None => {
            let hint = "Behaviour markers or pages exist but git tracks no index; write it, one entry for each behaviour.";
            verdict.push(Finding::error(INDEX_MISSING, BEHAVIOR_INDEX, hint));
            return verdict;
        }
    };
    for entry in entries(index) {
        checked.judge(&entry, files, &marked, &mut verdict);
    }
    for (id, names) in checked
        .pages
        .iter()
        .filter(|(id, _)| !checked.listed.contains(**id))
    {
        let hint = format!("The index has no entry for {id}; add it, or remove the page.");
        verdict.push(Finding::error(
            PAGE_UNLISTED,
            page_path(names.first().copied().unwrap_or(id)),
            hint,
        ));
    }
    for (id, place) in marked
        .iter()
        .filter(|(id, _)| !checked.listed.contains(**id))
    {
        let hint = format!(
            "{place} marks this behaviour but the index has no entry for it; add the entry and its page."
        );
        verdict.push(Finding::error(MARKER_UNLISTED, *id, hint));
    }
    verdict
}

/// What was seen so far.
struct Checked<'f> {
    /// The names of the pages by id.
    pages: BTreeMap<&'f str, Vec<&'f str>>,
    listed: HashSet<String>,
}

impl Checked<'_> {
    fn judge(
        &mut self,
        entry: &Entry<'_>,
        files: &BehaviorFiles,
        marked: &BTreeMap<&str, String>,
        verdict: &mut Verdict,
    ) {
        let id = match &entry.id {
            Ok(id) => id,
            Err(word) => {
                let hint = format!(
                    "Line {} of the index: an id is B and three digits, such as B012.",
                    entry.line
                );
                verdict.push(Finding::error(ENTRY_INVALID, word, hint));
                return;
            }
        };
        if !self.listed.insert(id.clone()) {
            let hint = format!(
                "Line {} of the index lists this behaviour again; keep one entry.",
                entry.line
            );
            verdict.push(Finding::error(ENTRY_REPEATED, id, hint));
            return;
        }
        if !marked.contains_key(id.as_str()) {
            let hint = "No source file has a comment `BEHAVIOR_ID: …` with this id; mark the implementation, or remove the entry.";
            verdict.push(Finding::error(ENTRY_UNMARKED, id, hint));
        }
        let name = match entry.link.map(|link| (link, plain_name(link))) {
            None => None,
            Some((link, None)) => {
                let hint = format!(
                    "The entry of {id} links outside {BEHAVIOR_PAGES}/; link its page beside the index."
                );
                verdict.push(Finding::error(LINK_OUTSIDE, link, hint));
                return;
            }
            Some((_, Some(name))) => Some(name),
        };
        match name {
            Some(name) if id_of_page(name).is_some_and(|other| other != id) => {
                let hint = format!("The entry of {id} links the page of another behaviour.");
                verdict.push(Finding::error(PAGE_OTHER_ID, name, hint));
            }
            Some(name) if !files.pages.contains_key(name) => verdict.push(no_page(id, name)),
            None if !self.pages.contains_key(id.as_str()) => {
                verdict.push(no_page(id, &format!("{id}-<slug>.md")));
            }
            Some(_) | None => {}
        }
    }
}

/// Checks each page by itself, and returns the page names of each id.
fn pages<'f>(files: &'f BehaviorFiles, verdict: &mut Verdict) -> BTreeMap<&'f str, Vec<&'f str>> {
    let mut pages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, text) in &files.pages {
        let path = page_path(name);
        let Some(id) = id_of_page(name) else {
            let hint = "Rename the page to `B###-<slug>.md`: an id, then a-z, 0-9 and single `-`.";
            verdict.push(Finding::error(PAGE_NAME, path, hint));
            continue;
        };
        let names = pages.entry(id).or_default();
        names.push(name);
        if names.len() == 2 {
            let hint = format!("{id} has more than one page; keep one.");
            verdict.push(Finding::error(PAGE_REPEATED, &path, hint));
        }
        match text {
            CatalogueText::Unreadable(reason) => verdict.push(unreadable(&path, reason)),
            CatalogueText::Read(text) => judge_page(id, &path, text, verdict),
        }
    }
    pages
}

fn judge_page(id: &str, path: &str, text: &str, verdict: &mut Verdict) {
    let mut found = [false; HEADINGS.len()];
    let mut title = None;
    for (_, _, line) in open_lines(text) {
        if let Some(heading) = line.strip_prefix("## ") {
            let at = HEADINGS.iter().position(|known| *known == heading.trim());
            if let Some(slot) = at.and_then(|at| found.get_mut(at)) {
                *slot = true;
            }
        } else if let Some(heading) = line.strip_prefix("# ") {
            title = title.or(Some(heading));
        }
    }
    for (heading, _) in HEADINGS.iter().zip(found).filter(|(_, is_there)| !is_there) {
        let hint = format!("Add the heading `## {heading}`, outside code blocks, and its content.");
        verdict.push(Finding::error(HEADING_MISSING, path, hint));
    }
    let other = title
        .and_then(|title| ids_in(title).next())
        .filter(|other| *other != id);
    if let Some(other) = other {
        let hint = format!("The file name has {id} but the title has {other}; use the same id.");
        verdict.push(Finding::error(PAGE_OTHER_ID, path, hint));
    }
}

/// Returns the first marker of each id. Invalid markers are reported once per file.
fn marked<'f>(files: &'f BehaviorFiles, verdict: &mut Verdict) -> BTreeMap<&'f str, String> {
    let mut marked: BTreeMap<&str, String> = BTreeMap::new();
    for (path, markers) in &files.markers {
        if let Some(marker) = markers.iter().find(|marker| marker.id.is_none()) {
            let hint = "Write exactly one id after `BEHAVIOR_ID:`, such as B012, and nothing else on the line.";
            verdict.push(Finding::error(
                MARKER_INVALID,
                format!("{path}:{}", marker.line),
                hint,
            ));
        }
        for marker in markers {
            if let Some(id) = marker.id.as_deref().filter(|id| !marked.contains_key(id)) {
                marked.insert(id, format!("{path}:{}", marker.line));
            }
        }
    }
    marked
}

/// An entry of the index.
struct Entry<'i> {
    line: u64,
    /// Its id, or the word meant as one.
    id: Result<String, String>,
    link: Option<&'i str>,
}

fn entries(index: &str) -> impl Iterator<Item = Entry<'_>> {
    open_lines(index).filter_map(|(line, _, text)| {
        let text = text.trim_start();
        let item = text.strip_prefix('|').or_else(|| {
            ["- ", "* ", "+ ", "-\t", "*\t", "+\t"]
                .iter()
                .find_map(|bullet| text.strip_prefix(bullet))
        })?;
        let item = item.trim_start().trim_start_matches(['[', '`', '*', '_']);
        let end = item
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(item.len());
        let word = item.get(..end).unwrap_or_default();
        let id = match word {
            word if is_id(IdKind::Behavior, word) => Ok(word.to_owned()),
            word if is_meant_as_id(IdKind::Behavior, word) => Err(word.to_owned()),
            _ => return None,
        };
        Some(Entry {
            line,
            id,
            link: first_link(text),
        })
    })
}

/// The target of the first link of a line: `[…](target)`, `[…](<target> "title")`.
fn first_link(line: &str) -> Option<&str> {
    let target = line.split_once("](")?.1;
    let target = match target.trim_start().strip_prefix('<') {
        Some(rest) => rest.split('>').next(),
        None => target.trim_start().split([')', ' ', '\t']).next(),
    };
    let target = target.unwrap_or_default();
    Some(target.split('#').next().unwrap_or(target))
}

/// Returns the link as a file name beside the index; `None` if it points elsewhere.
fn plain_name(link: &str) -> Option<&str> {
    let name = link.strip_prefix("./").unwrap_or(link);
    let is_plain = !name.is_empty()
        && name != "."
        && name != ".."
        && !name.contains(['/', '\\', ':', '%', '?', '\0'])
        && !name.starts_with('~');
    is_plain.then_some(name)
}

/// Returns the id at the start of a page's name, if it is one.
fn id_of_page(name: &str) -> Option<&str> {
    let (id, slug) = name.strip_suffix(".md")?.split_once('-')?;
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    (is_id(IdKind::Behavior, id) && slug.split('-').all(is_word)).then_some(id)
}

fn page_path(name: &str) -> String {
    format!("{BEHAVIOR_PAGES}/{name}")
}

fn no_page(id: &str, name: &str) -> Finding {
    let hint = format!(
        "Write the page of {id} at this path and add it to git, or remove the index entry."
    );
    Finding::error(PAGE_MISSING, page_path(name), hint)
}

fn unreadable(path: &str, reason: &str) -> Finding {
    Finding::error(
        UNREADABLE,
        path,
        format!("It must be a regular text file of the repository: {reason}."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# B001: totals\n\n## Reason\n\n## Behavior\n\n## Result\n";

    /// A catalogue of one behaviour that is whole.
    fn sample_files() -> BehaviorFiles {
        let marker = BehaviorMarker {
            line: 3,
            id: Some("B001".to_owned()),
        };
        BehaviorFiles {
            index: Some(CatalogueText::Read(
                "# Behaviours\n\n- [B001](B001-totals.md): totals\n".to_owned(),
            )),
            pages: BTreeMap::from([(
                "B001-totals.md".to_owned(),
                CatalogueText::Read(PAGE.to_owned()),
            )]),
            markers: BTreeMap::from([("src/a.py".to_owned(), vec![marker])]),
            unsearched: BTreeMap::new(),
        }
    }

    fn finding_texts(files: &BehaviorFiles) -> Vec<String> {
        let verdict = check_behaviors(files);
        verdict
            .findings()
            .iter()
            .map(|finding| format!("{} {}", finding.code, finding.subject))
            .collect()
    }

    fn with_index(index: &str) -> BehaviorFiles {
        BehaviorFiles {
            index: Some(CatalogueText::Read(index.to_owned())),
            ..sample_files()
        }
    }

    #[test]
    fn complete_catalogue_passes() {
        for index in [
            "- [B001](B001-totals.md): totals\n",
            "* B001 - totals\r\n",
            "+ **B001** [page](./B001-totals.md#reason)\n",
            "| ID | Page |\n|---|---|\n| `B001` | [totals](<B001-totals.md>) |\n",
            "  - B001: [totals](B001-totals.md \"the totals\"), see [web](https://example.invalid)\n",
            "\u{feff}- B001\n\n```\n- B002\n```\nB003 in words, and - B004\n- B2B and Behaviour\n",
        ] {
            assert_eq!(finding_texts(&with_index(index)), [""; 0], "{index:?}");
            assert_eq!(with_index(index).ids(), ["B001"], "{index:?}");
        }
    }

    #[test]
    fn partial_catalogue_is_refused() {
        assert!(check_behaviors(&BehaviorFiles::default()).passes());
        assert_eq!(
            finding_texts(&BehaviorFiles::default()),
            ["behaviors-no-catalogue docs/behaviors/INDEX.md"]
        );
        let files = BehaviorFiles {
            index: None,
            ..sample_files()
        };
        assert_eq!(
            finding_texts(&files),
            ["behaviors-index-missing docs/behaviors/INDEX.md"]
        );
        let files = BehaviorFiles {
            index: None,
            pages: BTreeMap::new(),
            ..sample_files()
        };
        assert_eq!(
            finding_texts(&files),
            ["behaviors-index-missing docs/behaviors/INDEX.md"]
        );
        let files = BehaviorFiles {
            index: None,
            markers: BTreeMap::new(),
            ..sample_files()
        };
        assert_eq!(
            finding_texts(&files),
            ["behaviors-index-missing docs/behaviors/INDEX.md"]
        );
    }

    #[test]
    fn marker_entry_and_page_require_each_other() {
        let mut files = sample_files();
        files.markers.clear();
        assert_eq!(finding_texts(&files), ["behaviors-entry-unmarked B001"]);
        let mut files = sample_files();
        files.pages.clear();
        assert_eq!(
            finding_texts(&files),
            ["behaviors-page-missing docs/behaviors/B001-totals.md"]
        );
        let mut files = with_index("- B001\n");
        files.pages.clear();
        assert_eq!(
            finding_texts(&files),
            ["behaviors-page-missing docs/behaviors/B001-<slug>.md"]
        );
        assert_eq!(
            finding_texts(&with_index("none\n")),
            [
                "behaviors-page-unlisted docs/behaviors/B001-totals.md",
                "behaviors-marker-unlisted B001"
            ]
        );
    }

    #[test]
    fn duplicates_are_reported() {
        assert_eq!(
            finding_texts(&with_index("- B001\n- B001\n")),
            ["behaviors-entry-repeated B001"]
        );
        let mut files = sample_files();
        files.pages.insert(
            "B001-sums.md".to_owned(),
            CatalogueText::Read(PAGE.to_owned()),
        );
        assert_eq!(
            finding_texts(&files),
            ["behaviors-page-repeated docs/behaviors/B001-totals.md"]
        );
    }

    #[test]
    fn page_name_must_match_its_id() {
        let mut files = sample_files();
        let other = PAGE.replace("B001", "B002");
        files
            .pages
            .insert("B001-totals.md".to_owned(), CatalogueText::Read(other));
        assert_eq!(
            finding_texts(&files),
            ["behaviors-page-other-id docs/behaviors/B001-totals.md"]
        );
        assert_eq!(
            finding_texts(&with_index("- [B001](B002-totals.md)\n")),
            ["behaviors-page-other-id B002-totals.md"]
        );
        for name in [
            "B1-a.md",
            "B001.md",
            "B001-A.md",
            "b001-a.md",
            "B001-a--b.md",
            "B001-a.MD",
        ] {
            let mut files = sample_files();
            assert!(is_page_name(name), "{name}");
            files
                .pages
                .insert(name.to_owned(), CatalogueText::Read(PAGE.to_owned()));
            assert_eq!(
                finding_texts(&files),
                [format!("behaviors-page-name docs/behaviors/{name}")]
            );
        }
        assert!(
            !is_page_name("README.md") && !is_page_name("Basics.md") && !is_page_name("B001-a.txt")
        );
    }

    #[test]
    fn link_elsewhere_is_reported() {
        for link in [
            "../B001-totals.md",
            "/etc/B001-totals.md",
            "https://example.invalid/B001-totals.md",
            "sub/B001-totals.md",
            "..\\B001-totals.md",
            "file:B001-totals.md",
            "%2e%2e/B001-totals.md",
            "",
            "#anchor",
        ] {
            let files = with_index(&format!("- [B001]({link})\n"));
            let link = link.split('#').next().unwrap();
            assert_eq!(
                finding_texts(&files),
                [format!("behaviors-link-outside {link}")],
                "{link:?}"
            );
        }
    }

    #[test]
    fn a_page_has_its_headings_outside_of_code() {
        for heading in ["Reason", "Behavior", "Result"] {
            for text in [
                PAGE.replace(&format!("## {heading}\n"), ""),
                PAGE.replace(
                    &format!("## {heading}\n"),
                    &format!("~~~\n## {heading}\n~~~\n"),
                ),
                PAGE.replace(&format!("## {heading}\n"), &format!("### {heading}\n")),
                PAGE.replace(
                    &format!("## {heading}\n"),
                    &format!("## {}\n", heading.to_lowercase()),
                ),
            ] {
                let mut files = sample_files();
                files
                    .pages
                    .insert("B001-totals.md".to_owned(), CatalogueText::Read(text));
                assert_eq!(
                    finding_texts(&files),
                    ["behaviors-heading-missing docs/behaviors/B001-totals.md"]
                );
            }
        }
    }

    #[test]
    fn invalid_ids_and_unread_files_are_reported() {
        assert_eq!(
            finding_texts(&with_index("- B001\n- B12: x\n")),
            ["behaviors-entry-invalid B12"]
        );
        let mut files = sample_files();
        let bad = BehaviorMarker { line: 7, id: None };
        files
            .markers
            .insert("src/b.py".to_owned(), vec![bad.clone(), bad]);
        assert_eq!(
            finding_texts(&files),
            ["behaviors-marker-invalid src/b.py:7"]
        );
        let mut files = sample_files();
        files.pages.insert(
            "B001-totals.md".to_owned(),
            CatalogueText::Unreadable("it is a link".to_owned()),
        );
        assert_eq!(
            finding_texts(&files),
            ["behaviors-unreadable docs/behaviors/B001-totals.md"]
        );
        let unreadable = Some(CatalogueText::Unreadable("it is a link".to_owned()));
        let files = BehaviorFiles {
            index: unreadable,
            ..sample_files()
        };
        assert_eq!(
            finding_texts(&files),
            ["behaviors-unreadable docs/behaviors/INDEX.md"]
        );
        let mut files = sample_files();
        files
            .unsearched
            .insert("src/big.c".to_owned(), "it is large".to_owned());
        assert_eq!(finding_texts(&files), ["behaviors-search-cut src/big.c"]);
        assert!(check_behaviors(&files).passes());
        files.unsearched = (0..100)
            .map(|n| (format!("src/{n}.c"), "it is large".to_owned()))
            .collect();
        assert_eq!(
            finding_texts(&files).last().unwrap(),
            "behaviors-search-cut 80 files more"
        );
    }

    #[test]
    fn ten_thousand_entries_are_judged_in_one_go() {
        let mut files = BehaviorFiles::default();
        let mut index = String::new();
        for number in 1000..11_000 {
            let id = format!("B{number}");
            index.push_str(&format!("- [{id}]({id}-x.md)\n"));
            let page = format!("# {id}\n## Reason\n## Behavior\n## Result\n");
            files
                .pages
                .insert(format!("{id}-x.md"), CatalogueText::Read(page));
            let markers = files
                .markers
                .entry(format!("src/{}.rs", number % 7))
                .or_default();
            markers.push(BehaviorMarker {
                line: number,
                id: Some(id),
            });
        }
        files.index = Some(CatalogueText::Read(index));
        assert_eq!(finding_texts(&files), [""; 0]);
        assert_eq!(files.ids().len(), 10_000);
        files.markers.clear();
        assert_eq!(check_behaviors(&files).findings().len(), 10_000);
    }
}
