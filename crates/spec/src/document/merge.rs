//! Merges a model's answer about requirements into the existing ones.
//!
//! An answer is the whole document or only the changes. A block with an id changes a requirement, and a
//! block with `R-NEW` or without an id adds one. `REMOVED: R-002` removes one, and `NO CHANGES` changes
//! nothing. Code assigns new ids above all earlier ones.
//!
//! Invariants: a requirement that the answer does not name, or repeats with other white space only, keeps
//! its bytes. Absence does not remove a requirement. Ids are unique, and a removed id is never reused.

use std::collections::{BTreeMap, BTreeSet};

use crucible_llm::ReceiptWarning;
use crucible_model::{Finding, counted, single_spaced};

use super::answer::{Draft, warning};
use super::fault::Fault;
use super::filler::is_filler;
use super::ids::{Lead, format_id, format_ids, is_hyphen, is_odd, leading, mentions, parse_ids};
use super::lines::{Line, LineKind, list_item, scan, tidied};
use super::requirements::{Block, Requirements, retired};
use super::stray::{Standing, headed};

/// The highest id that a model may choose, in the first document of a spec.
const HIGHEST_CHOSEN: u32 = 999;

/// The number of words from which a title is a statement.
const WORDS_OF_A_STATEMENT: usize = 3;

/// A parsed answer.
#[derive(Debug, Default)]
struct Changes {
    /// The text before the first entry.
    intro: String,
    blocks: Vec<Proposed>,
    removed: BTreeSet<u32>,
    findings: Vec<Finding>,
    warnings: Vec<ReceiptWarning>,
}

#[derive(Debug)]
struct Proposed {
    lead: Lead,
    title: String,
    /// The text without the heading.
    body: String,
}

/// Whether a line says that nothing changes.
pub(crate) fn is_no_changes(line: &str) -> bool {
    line.trim()
        .trim_matches(['*', '.', '`', '"'])
        .eq_ignore_ascii_case("no changes")
}

/// Whether a line begins an answer that changes existing requirements.
pub(crate) fn begins_changes(line: &str) -> bool {
    is_no_changes(line) || removal(line).is_some()
}

/// Merges an answer into the existing requirements. `given` is the highest id known to have been assigned, even if its document
/// no longer exists.
///
/// # Errors
///
/// The findings about the answer.
pub(crate) fn merge(
    earlier: Option<&Requirements>,
    draft: Draft,
    fallback_title: &str,
    given_count: u32,
) -> Result<(Requirements, Vec<ReceiptWarning>), Vec<Finding>> {
    let mut changes = read(&draft.body, earlier);
    changes.warnings.splice(0..0, draft.warnings);
    let mut findings = std::mem::take(&mut changes.findings);
    let mut document = match earlier {
        Some(earlier) => {
            if !single_spaced(&earlier.head).contains(&single_spaced(&changes.intro)) {
                findings.extend(
                    stray(&changes.intro, None).map(|line| Fault::LineForm.into_finding(line)),
                );
                changes.warnings.push(warning(
                    "spec_answer_trimmed",
                    "text before the first changed requirement was left out",
                ));
            }
            earlier.clone()
        }
        None => {
            findings
                .extend(stray(&changes.intro, None).map(|line| Fault::LineForm.into_finding(line)));
            let title = draft.title.as_deref().unwrap_or(fallback_title);
            let gap = if changes.intro.is_empty() { "" } else { "\n\n" };
            let head = format!("# Requirements: {title}{gap}{}", changes.intro);
            Requirements {
                head,
                blocks: Vec::new(),
                retired: BTreeSet::new(),
            }
        }
    };
    let touched = apply(
        &mut document,
        earlier,
        given_count,
        changes.blocks,
        &mut findings,
        &mut changes.warnings,
    );
    remove(
        &mut document,
        &changes.removed,
        &touched.named,
        &mut findings,
    );
    if document.blocks.is_empty() {
        findings.push(Fault::NoEntries.into_finding("no requirement"));
    }
    doubles(&document, &touched.changed, &mut findings);
    if !findings.is_empty() {
        return Err(findings);
    }
    let ids = document.ids();
    let dangling = parse_ids(&document.render(), 'R')
        .into_iter()
        .filter(|id| !ids.contains(id) && !document.retired.contains(id));
    let dangling = format_ids(dangling, 'R');
    if !dangling.is_empty() {
        changes.warnings.push(warning(
            "spec_unknown_id",
            format!("the requirements name {dangling}, which none of them is"),
        ));
    }
    Ok((document, changes.warnings))
}

/// Parses the entries of an answer.
fn read(body: &str, earlier: Option<&Requirements>) -> Changes {
    let mut changes = Changes::default();
    let mut open: Option<(Lead, &str, usize)> = None;
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut group: Option<&str> = None;
    for line in scan(body).0 {
        if retired(&line).is_some() || (line.kind == LineKind::Text && is_no_changes(line.text)) {
            continue;
        }
        if let Some(removal) = removal(line.text).filter(|_| line.kind != LineKind::Fenced) {
            changes.close(open.take(), &mut lines, group.take());
            changes.remove(removal, line.text);
            continue;
        }
        let LineKind::Heading { level, title } = line.kind else {
            lines.push(line);
            continue;
        };
        let begins = match leading(title, 'R') {
            Some((lead, title)) => Some((lead, title, level)),
            None if is_odd(title) && (earlier.is_some() || title_has_letter(title)) => {
                changes.findings.push(Fault::LineForm.into_finding(title));
                lines.push(line);
                continue;
            }
            None if open.is_some_and(|(_, _, own)| level > own) => {
                lines.push(line);
                continue;
            }
            None if earlier.is_some() && level >= 3 => Some((Lead::New, title, level)),
            None => None,
        };
        changes.close(open.take(), &mut lines, group.take());
        open = begins;
        if begins.is_none() {
            group = Some(title);
        }
    }
    changes.close(open, &mut lines, group);
    changes
}

impl Changes {
    /// Records a removal. Ids outside of its list are kept, with a warning.
    fn remove(&mut self, removal: Removal, line: &str) {
        match removal.end {
            RemovalEnd::Clear => {}
            RemovalEnd::Unclear => {
                self.findings
                    .push(Fault::LineForm.into_finding(line.trim()));
                return;
            }
        }
        if !removal.reason.is_empty() {
            let message = format!(
                "{} removed; {} only named in the reason",
                format_ids(removal.ids.iter().copied(), 'R'),
                format_ids(removal.reason, 'R')
            );
            self.warnings.push(warning("spec_removal_reason", message));
        }
        self.removed.extend(removal.ids);
    }

    /// Ends the block, the group or the introduction of these lines.
    fn close(
        &mut self,
        open: Option<(Lead, &str, usize)>,
        lines: &mut Vec<Line<'_>>,
        group: Option<&str>,
    ) {
        let text = tidied(
            lines
                .drain(..)
                .map(plain_line)
                .collect::<Vec<_>>()
                .iter()
                .map(NormalizedLine::as_line),
        );
        match (open, group) {
            (Some((lead, title, _)), _) => {
                let id = match lead {
                    Lead::Numbered(id) => format_id(id, 'R'),
                    Lead::New => format!("R-NEW {title}"),
                };
                // It is unclear which of the two ids is meant.
                if leading(title, 'R').is_some() || is_odd(title) {
                    self.findings
                        .push(Fault::LineForm.into_finding(&format!("{id}: {title}")));
                }
                for missing in incomplete(title, &text) {
                    self.findings
                        .push(Fault::Incomplete.into_finding(&format!("{id}: no {missing}")));
                }
                self.blocks.push(Proposed {
                    lead,
                    title: single_spaced(title),
                    body: text,
                });
            }
            (None, Some(group)) if text.is_empty() => {
                let message = format!(
                    "the heading {:?} was left out",
                    crucible_model::short_line(group, 80)
                );
                self.warnings.push(warning("spec_answer_trimmed", message));
            }
            (None, Some(group)) => self.findings.push(Fault::Section.into_finding(group)),
            (None, None) if self.blocks.is_empty() && self.intro.is_empty() => self.intro = text,
            (None, None) if text.is_empty() => {}
            (None, None) => self
                .findings
                .push(Fault::Section.into_finding(text.lines().next().unwrap_or_default())),
        }
    }
}

/// Writes the lines of a block in the canonical form: sub-headings as bold text, every list with `- `.
struct NormalizedLine<'a> {
    kind: LineKind<'a>,
    text: std::borrow::Cow<'a, str>,
}

fn plain_line(line: Line<'_>) -> NormalizedLine<'_> {
    let text = match line.kind {
        LineKind::Heading { title, .. } => format!("**{title}**").into(),
        LineKind::Text => {
            match list_item(line.text).filter(|_| !line.text.starts_with([' ', '\t'])) {
                Some(item) => format!("- {item}").into(),
                None => line.text.into(),
            }
        }
        LineKind::Fenced | LineKind::Blank | LineKind::Rule => line.text.into(),
    };
    let kind = if matches!(line.kind, LineKind::Heading { .. }) {
        LineKind::Text
    } else {
        line.kind
    };
    NormalizedLine { kind, text }
}

impl NormalizedLine<'_> {
    fn as_line(&self) -> Line<'_> {
        Line {
            text: &self.text,
            kind: self.kind,
        }
    }
}

/// The required parts that a requirement lacks.
fn incomplete(title: &str, body: &str) -> impl Iterator<Item = &'static str> {
    let (lines, _) = scan(body);
    let text = |line: &&Line<'_>| line.kind == LineKind::Text;
    let criterion = lines
        .iter()
        .filter(text)
        .any(|line| list_item(line.text).is_some_and(|item| !is_filler(item)));
    let statement = lines.iter().filter(text).any(|line| {
        list_item(line.text).is_none()
            && !line.text.starts_with(' ')
            && !is_label(line.text)
            && !is_filler(line.text)
    });
    // Small models write the statement into the title.
    let is_titled = !is_filler(title);
    let statement =
        statement || (is_titled && title.split_whitespace().count() >= WORDS_OF_A_STATEMENT);
    let parts = [
        (!is_titled, "title"),
        (!statement, "statement"),
        (!criterion, "list of checks"),
    ];
    parts
        .into_iter()
        .filter_map(|(missing, part)| missing.then_some(part))
}

/// Whether a line is a label such as `**Acceptance criteria:**`.
fn is_label(line: &str) -> bool {
    let line = line.trim();
    line.ends_with(':') && line.len() < 40 || (line.starts_with("**") && line.ends_with("**"))
}

/// The ids that an answer names.
#[derive(Debug, Default)]
struct Touched {
    /// All of them.
    named: BTreeSet<u32>,
    /// Ids of requirements that are new or changed.
    changed: BTreeSet<u32>,
}

/// Applies the proposed blocks.
fn apply(
    document: &mut Requirements,
    earlier: Option<&Requirements>,
    given_count: u32,
    proposed: Vec<Proposed>,
    findings: &mut Vec<Finding>,
    warnings: &mut Vec<ReceiptWarning>,
) -> Touched {
    let places: BTreeMap<u32, usize> = document
        .blocks
        .iter()
        .enumerate()
        .map(|(place, block)| (block.id, place))
        .collect();
    let titles: BTreeMap<String, u32> = document
        .blocks
        .iter()
        .map(|block| (folded(&block.title), block.id))
        .collect();
    // The ids of each earlier text. Identical blocks belong to either id.
    let mut texts: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    let mut ids_by_part: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for block in &document.blocks {
        texts
            .entry(normal(&block.text))
            .or_default()
            .insert(block.id);
        for part in RequirementText::parse(behind_heading(&block.text)).parts() {
            ids_by_part.entry(part).or_default().insert(block.id);
        }
    }
    let mut touched = Touched::default();
    let mut new = Vec::new();
    for block in proposed {
        let known = match block.lead {
            Lead::Numbered(id) if places.contains_key(&id) => Some(id),
            Lead::Numbered(id) => {
                if earlier.is_none() && given_count == 0 && (1..=HIGHEST_CHOSEN).contains(&id) {
                    if !touched.named.insert(id) {
                        findings.push(Fault::DoubleId.into_finding(&format_id(id, 'R')));
                    }
                    touched.changed.insert(id);
                    document.blocks.push(render(id, &block, findings, warnings));
                    continue;
                }
                titles.get(&folded(&block.title)).copied()
            }
            Lead::New => titles.get(&folded(&block.title)).copied(),
        };
        let Some(id) = known else {
            new.push(block);
            continue;
        };
        if !touched.named.insert(id) {
            findings.push(Fault::DoubleId.into_finding(&format_id(id, 'R')));
            continue;
        }
        let proposed = normal(&render_section(id, &block.title, &block.body));
        let moved = [
            texts.get(&proposed).and_then(|ids| ids.first()),
            titles.get(&folded(&block.title)),
        ];
        let is_own = texts.get(&proposed).is_some_and(|ids| ids.contains(&id));
        if let Some(other) = moved
            .into_iter()
            .flatten()
            .find(|other| **other != id && !is_own)
        {
            findings.push(Fault::DoubleId.into_finding(&format!(
                "{} is now what {} was: {}",
                format_id(id, 'R'),
                format_id(*other, 'R'),
                block.title
            )));
            continue;
        }
        let place = places
            .get(&id)
            .and_then(|place| document.blocks.get_mut(*place));
        // Existing text is compared with the whole answer, repetitions included, and keeps its bytes.
        if let Some(old) = place.filter(|old| normal(&old.text) != proposed) {
            let (was, is) = (
                RequirementText::parse(behind_heading(&old.text)),
                RequirementText::parse(&block.body),
            );
            if let Some(other) = is.taken_from(&was, &ids_by_part).filter(|_| !is_own) {
                findings.push(Fault::DoubleId.into_finding(&format!(
                    "{} says now what {} says: {}",
                    format_id(id, 'R'),
                    format_id(other, 'R'),
                    block.title
                )));
                continue;
            }
            if !is.shares(&was) {
                let message = format!("every sentence of {} was changed", format_id(id, 'R'));
                warnings.push(warning("spec_id_reused", message));
            }
            *old = render(id, &block, findings, warnings);
            touched.changed.insert(id);
        }
    }
    let mut fresh = document.fresh(given_count);
    for block in new {
        let Some(next) = fresh.next() else {
            findings.push(Fault::IdsUsedUp.into_finding(&block.title));
            continue;
        };
        if let Lead::Numbered(wanted) = block.lead
            && wanted != next
        {
            let message = format!(
                "{} is {} now: code gives the ids",
                format_id(wanted, 'R'),
                format_id(next, 'R')
            );
            warnings.push(warning("spec_id_assigned", message));
        }
        touched.named.insert(next);
        touched.changed.insert(next);
        document
            .blocks
            .push(render(next, &block, findings, warnings));
    }
    touched
}

/// The words of a requirement, by part, to recognise it under another title.
#[derive(Debug, Default)]
struct RequirementText {
    /// Everything except checks and labels.
    statement: String,
    checks: BTreeSet<String>,
}

impl RequirementText {
    fn parse(body: &str) -> Self {
        let mut content = Self::default();
        for line in scan(body).0 {
            if line.kind != LineKind::Text || is_label(line.text) {
                continue;
            }
            match list_item(line.text) {
                Some(check) => {
                    content.checks.insert(words(check));
                }
                None => {
                    content.statement.push(' ');
                    content.statement.push_str(line.text);
                }
            }
        }
        content.statement = words(&content.statement);
        content.checks.remove("");
        content
    }

    /// The parts that identify it: the statement, and all checks together.
    fn parts(&self) -> impl Iterator<Item = String> {
        let statement = (!self.statement.is_empty()).then(|| format!("s {}", self.statement));
        let checks: Vec<&str> = self.checks.iter().map(String::as_str).collect();
        let checks = (!checks.is_empty()).then(|| format!("c {}", checks.join("\n")));
        statement.into_iter().chain(checks)
    }

    /// The requirement whose statement or checks this one has taken, if it gave up its own statement.
    fn taken_from(&self, was: &Self, ids_by_part: &BTreeMap<String, BTreeSet<u32>>) -> Option<u32> {
        if self.statement == was.statement {
            return None;
        }
        let own: BTreeSet<String> = was.parts().collect();
        // At least one of its earlier checks belongs to no other requirement.
        let keeps_checks = !self.checks.is_disjoint(&was.checks);
        let others = self
            .parts()
            .filter(|part| !own.contains(part) && (!keeps_checks || part.starts_with("s ")));
        others
            .filter_map(|part| ids_by_part.get(&part)?.first().copied())
            .next()
    }

    /// Whether anything of the earlier text remains: the statement, a check, or most of the words.
    fn shares(&self, was: &Self) -> bool {
        let words = |content: &Self| -> BTreeSet<String> {
            let checks = content.checks.iter().flat_map(|check| check.split(' '));
            content
                .statement
                .split(' ')
                .chain(checks)
                .filter(|word| word.chars().count() > 3)
                .map(str::to_owned)
                .collect()
        };
        let (now, before) = (words(self), words(was));
        self.statement == was.statement
            || !self.checks.is_disjoint(&was.checks)
            || now.intersection(&before).count() * 3 >= now.len().min(before.len()).max(1)
    }
}

/// The lowercase words of a text, without punctuation and extra spaces.
fn words(text: &str) -> String {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// A block without its first line.
fn behind_heading(block: &str) -> &str {
    block.split_once('\n').map_or("", |(_, body)| body)
}

/// Lines in a block that look like a requirement with another id.
fn stray(body: &str, own: Option<u32>) -> impl Iterator<Item = &str> {
    let mut goes_on = false;
    scan(body).0.into_iter().filter_map(move |line| {
        let is_text = line.kind == LineKind::Text;
        let begins = is_text && !goes_on && list_item(line.text).is_none();
        goes_on = is_text;
        let standing = if begins {
            Standing::Paragraph
        } else {
            Standing::Within
        };
        let lead = headed(line.text, 'R', standing).filter(|_| is_text)?;
        (Some(lead) != own.map(Lead::Numbered)).then_some(line.text)
    })
}

fn remove(
    document: &mut Requirements,
    removed: &BTreeSet<u32>,
    touched: &BTreeSet<u32>,
    findings: &mut Vec<Finding>,
) {
    let ids = document.ids();
    for id in removed {
        if touched.contains(id) {
            findings.push(
                Fault::Contradiction
                    .into_finding(&format!("{} is removed and written", format_id(*id, 'R'))),
            );
        } else if ids.contains(id) {
            document.retired.insert(*id);
        } else if !document.retired.contains(id) {
            findings
                .push(Fault::UnknownId.into_finding(&format!("REMOVED: {}", format_id(*id, 'R'))));
        }
    }
    document
        .blocks
        .retain(|block| !removed.contains(&block.id) || touched.contains(&block.id));
}

/// Reports two requirements with the same title: a model that renumbers would otherwise duplicate all of
/// them.
fn doubles(document: &Requirements, changed: &BTreeSet<u32>, findings: &mut Vec<Finding>) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for block in &document.blocks {
        if let Some(other) = seen.insert(folded(&block.title), block.id)
            && (changed.contains(&other) || changed.contains(&block.id))
        {
            let ids = format_ids([other, block.id], 'R');
            findings.push(
                Fault::DoubleId.into_finding(&format!("{ids} have one title: {}", block.title)),
            );
        }
    }
}

/// Formats a proposed block. A line that looks like another requirement is reported, because it would be
/// lost in this one. Repeated checks, which small models produce, are written once, with a warning.
fn render(
    id: u32,
    block: &Proposed,
    findings: &mut Vec<Finding>,
    warnings: &mut Vec<ReceiptWarning>,
) -> Block {
    let own = match block.lead {
        Lead::Numbered(lead) => lead,
        Lead::New => id,
    };
    findings.extend(stray(&block.body, Some(own)).map(|line| Fault::LineForm.into_finding(line)));
    let (body, repeats) = without_repeats(&block.body);
    if repeats > 0 {
        let message = format!(
            "{}: {} of a check left out",
            format_id(id, 'R'),
            counted(repeats, "repetition")
        );
        warnings.push(warning("spec_answer_trimmed", message));
    }
    Block {
        id,
        title: block.title.clone(),
        text: render_section(id, &block.title, &body),
    }
}

fn render_section(id: u32, title: &str, body: &str) -> String {
    format!("### {}: {title}\n\n{body}", format_id(id, 'R'))
        .trim_end()
        .to_owned()
}

/// Removes list entries that repeat an earlier one word for word, and counts them. An entry with
/// continuation lines is kept.
fn without_repeats(body: &str) -> (String, u64) {
    let (lines, _) = scan(body);
    let mut seen = BTreeSet::new();
    let mut repeats = 0;
    let mut unique_lines = Vec::with_capacity(lines.len());
    for (place, line) in lines.iter().enumerate() {
        let goes_on = lines.get(place + 1).is_some_and(|next| {
            next.kind == LineKind::Fenced
                || (next.kind == LineKind::Text && next.text.starts_with([' ', '\t']))
        });
        let is_entry =
            line.kind == LineKind::Text && !line.text.starts_with([' ', '\t']) && !goes_on;
        if let Some(item) = list_item(line.text).filter(|_| is_entry)
            && !seen.insert(item)
        {
            repeats += 1;
        } else {
            unique_lines.push(*line);
        }
    }
    if repeats == 0 {
        (body.to_owned(), 0)
    } else {
        (tidied(unique_lines), repeats)
    }
}

/// Normalises a block for comparison: one list marker, one heading form, no extra white space.
fn normal(text: &str) -> String {
    let (lines, _) = scan(text);
    let mut all = String::new();
    for (place, line) in lines.into_iter().enumerate() {
        match (place, line.kind) {
            (0, LineKind::Heading { title, .. }) => {
                all.push_str(leading(title, 'R').map_or(title, |(_, title)| title))
            }
            (_, LineKind::Rule) => {}
            _ => all.push_str(&plain_line(line).text),
        }
        all.push('\n');
    }
    single_spaced(&all)
}

/// In a first document `R-001a` is an id, while `1. Functional` is a group.
fn title_has_letter(title: &str) -> bool {
    !title.trim_start().starts_with(|c: char| c.is_ascii_digit())
}

fn folded(title: &str) -> String {
    single_spaced(title).to_lowercase()
}

/// A parsed line `REMOVED: R-002, R-003 (nobody wants them)`.
struct Removal {
    /// The removed ids: only those in the list.
    ids: BTreeSet<u32>,
    /// Ids after the list. They belong to the reason and are kept.
    reason: BTreeSet<u32>,
    end: RemovalEnd,
}

/// Whether the end of the list of ids is clear.
enum RemovalEnd {
    Clear,
    /// A word follows several ids without a separator: `R-002, R-003 covers it` may be about the
    /// second one.
    Unclear,
}

/// Words that begin a reason.
const REASONS: [&str; 9] = [
    "because", "since", "as", "due", "for", "per", "which", "these", "they",
];

/// Parses a removal. Ids count while the line is a list of them; the rest is a reason.
fn removal(line: &str) -> Option<Removal> {
    let line = list_item(line)
        .unwrap_or(line)
        .trim_start_matches(['#', '*', ' ', '`']);
    let rest = line
        .get(..8)
        .filter(|word| word.eq_ignore_ascii_case("removed:"))
        .and_then(|word| line.get(word.len()..))?;
    let text = rest
        .trim_start_matches(['*', '`', ' '])
        .replace(is_hyphen, "-");
    let (mut ids, mut rest) = (BTreeSet::new(), text.as_str());
    let mut is_parted = true;
    while let Some((range, id)) = mentions(rest, 'R')
        .next()
        .filter(|(range, _)| range.start == 0)
    {
        ids.insert(id);
        let behind = rest
            .get(range.end..)
            .unwrap_or_default()
            .trim_start_matches(['*', '`']);
        rest = behind.trim_start_matches([' ', '\t', ',', ';', '&', '+', '/', '*', '`']);
        rest = rest
            .strip_prefix("and ")
            .map_or(rest, |next| next.trim_start_matches([' ', '*', '`']));
        is_parted =
            !rest.starts_with(char::is_alphanumeric) || behind.trim_start().starts_with([',', ';']);
    }
    if ids.is_empty() {
        return None;
    }
    let word = rest
        .split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default()
        .to_lowercase();
    let is_clear = is_parted || ids.len() == 1 || REASONS.contains(&word.as_str());
    let mut reason = parse_ids(rest, 'R');
    reason.retain(|id| !ids.contains(id));
    Some(Removal {
        ids,
        reason,
        end: if is_clear {
            RemovalEnd::Clear
        } else {
            RemovalEnd::Unclear
        },
    })
}

#[cfg(test)]
mod tests;
