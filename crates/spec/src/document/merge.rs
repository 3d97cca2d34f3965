//! What a model answers about requirements, and what that makes of those there are.
//!
//! An answer is the whole document or only what changes: blocks with an id are changed, blocks with `R-NEW` or without an
//! id are new, `REMOVED: R-002` removes, `NO CHANGES` changes nothing. Code gives new ids, above all that ever were.
//!
//! What always holds: a requirement that the answer does not name, or repeats with other white space alone, keeps its
//! bytes; what is absent is not removed; ids are unique; a removed id never comes back.

use std::collections::{BTreeMap, BTreeSet};

use crucible_llm::ReceiptWarning;
use crucible_model::{Finding, counted, single_spaced};

use super::answer::{Draft, warning};
use super::fault::Fault;
use super::filler::is_filler;
use super::ids::{Lead, is_hyphen, is_odd, leading, listed, mentions, named, shown};
use super::lines::{Line, LineKind, list_item, scan, tidied};
use super::requirements::{Block, Requirements, retired};
use super::stray::{Standing, headed};

/// The highest id that a model may choose itself, in the first document of a spec.
const HIGHEST_CHOSEN: u32 = 999;

/// Words from which on a title is a statement itself.
const WORDS_OF_A_STATEMENT: usize = 3;

/// What an answer says.
#[derive(Debug, Default)]
struct Changes {
    /// What stands before the first entry.
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
    /// Without the heading.
    body: String,
}

/// Whether a line says that nothing changes.
pub(crate) fn is_no_changes(line: &str) -> bool {
    line.trim().trim_matches(['*', '.', '`', '"']).eq_ignore_ascii_case("no changes")
}

/// Whether a line begins an answer about requirements that there are.
pub(crate) fn begins_changes(line: &str) -> bool {
    is_no_changes(line) || removal(line).is_some()
}

/// Makes the document of an answer, and of the requirements that there were. `given` is the highest id that is known to have been given,
/// also where the document that it stood in is gone.
///
/// # Errors
///
/// What is wrong with the answer.
pub(crate) fn merge(
    earlier: Option<&Requirements>,
    draft: Draft,
    fallback_title: &str,
    given: u32,
) -> Result<(Requirements, Vec<ReceiptWarning>), Vec<Finding>> {
    let mut changes = read(&draft.body, earlier);
    changes.warnings.splice(0..0, draft.warnings);
    let mut findings = std::mem::take(&mut changes.findings);
    let mut document = match earlier {
        Some(earlier) => {
            if !single_spaced(&earlier.head).contains(&single_spaced(&changes.intro)) {
                findings.extend(stray(&changes.intro, None).map(|line| Fault::LineForm.of(line)));
                changes.warnings.push(warning(
                    "spec_answer_trimmed",
                    "text before the first changed requirement was left out",
                ));
            }
            earlier.clone()
        }
        None => {
            findings.extend(stray(&changes.intro, None).map(|line| Fault::LineForm.of(line)));
            let title = draft.title.as_deref().unwrap_or(fallback_title);
            let gap = if changes.intro.is_empty() { "" } else { "\n\n" };
            let head = format!("# Requirements: {title}{gap}{}", changes.intro);
            Requirements { head, blocks: Vec::new(), retired: BTreeSet::new() }
        }
    };
    let touched = apply(&mut document, earlier, given, changes.blocks, &mut findings, &mut changes.warnings);
    remove(&mut document, &changes.removed, &touched.named, &mut findings);
    if document.blocks.is_empty() {
        findings.push(Fault::NoEntries.of("no requirement"));
    }
    doubles(&document, &touched.changed, &mut findings);
    if !findings.is_empty() {
        return Err(findings);
    }
    let ids = document.ids();
    let dangling = named(&document.render(), 'R')
        .into_iter()
        .filter(|id| !ids.contains(id) && !document.retired.contains(id));
    let dangling = listed(dangling, 'R');
    if !dangling.is_empty() {
        changes.warnings.push(warning(
            "spec_unknown_id",
            format!("the requirements name {dangling}, which none of them is"),
        ));
    }
    Ok((document, changes.warnings))
}

/// Reads the entries of an answer.
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
                changes.findings.push(Fault::LineForm.of(title));
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
    /// Takes a removal over. What is named outside of its list stays, and is told.
    fn remove(&mut self, removal: Removal, line: &str) {
        match removal.end {
            RemovalEnd::Clear => {}
            RemovalEnd::Unclear => {
                self.findings.push(Fault::LineForm.of(line.trim()));
                return;
            }
        }
        if !removal.reason.is_empty() {
            let message = format!(
                "{} removed; {} only named in the reason",
                listed(removal.ids.iter().copied(), 'R'),
                listed(removal.reason, 'R')
            );
            self.warnings.push(warning("spec_removal_reason", message));
        }
        self.removed.extend(removal.ids);
    }

    /// Ends the block, the group or the introduction that these lines belong to.
    fn close(&mut self, open: Option<(Lead, &str, usize)>, lines: &mut Vec<Line<'_>>, group: Option<&str>) {
        let text = tidied(lines.drain(..).map(plain_line).collect::<Vec<_>>().iter().map(Kept::as_line));
        match (open, group) {
            (Some((lead, title, _)), _) => {
                let id = match lead {
                    Lead::Numbered(id) => shown(id, 'R'),
                    Lead::New => format!("R-NEW {title}"),
                };
                // Which of the two ids is meant nobody knows.
                if leading(title, 'R').is_some() || is_odd(title) {
                    self.findings.push(Fault::LineForm.of(&format!("{id}: {title}")));
                }
                for missing in incomplete(title, &text) {
                    self.findings.push(Fault::Incomplete.of(&format!("{id}: no {missing}")));
                }
                self.blocks.push(Proposed { lead, title: single_spaced(title), body: text });
            }
            (None, Some(group)) if text.is_empty() => {
                let message = format!("the heading {:?} was left out", crucible_model::short_line(group, 80));
                self.warnings.push(warning("spec_answer_trimmed", message));
            }
            (None, Some(group)) => self.findings.push(Fault::Section.of(group)),
            (None, None) if self.blocks.is_empty() && self.intro.is_empty() => self.intro = text,
            (None, None) if text.is_empty() => {}
            (None, None) => self.findings.push(Fault::Section.of(text.lines().next().unwrap_or_default())),
        }
    }
}

/// A line of a block as it is written: sub-headings as bold text, every list with `- `.
struct Kept<'a> {
    kind: LineKind<'a>,
    text: std::borrow::Cow<'a, str>,
}

fn plain_line(line: Line<'_>) -> Kept<'_> {
    let text = match line.kind {
        LineKind::Heading { title, .. } => format!("**{title}**").into(),
        LineKind::Text => match list_item(line.text).filter(|_| !line.text.starts_with([' ', '\t'])) {
            Some(item) => format!("- {item}").into(),
            None => line.text.into(),
        },
        LineKind::Fenced | LineKind::Blank | LineKind::Rule => line.text.into(),
    };
    let kind = if matches!(line.kind, LineKind::Heading { .. }) { LineKind::Text } else { line.kind };
    Kept { kind, text }
}

impl Kept<'_> {
    fn as_line(&self) -> Line<'_> {
        Line { text: &self.text, kind: self.kind }
    }
}

/// The parts that a requirement needs and does not have.
fn incomplete(title: &str, body: &str) -> impl Iterator<Item = &'static str> {
    let (lines, _) = scan(body);
    let text = |line: &&Line<'_>| line.kind == LineKind::Text;
    let criterion =
        lines.iter().filter(text).any(|line| list_item(line.text).is_some_and(|item| !is_filler(item)));
    let statement = lines.iter().filter(text).any(|line| {
        list_item(line.text).is_none()
            && !line.text.starts_with(' ')
            && !is_label(line.text)
            && !is_filler(line.text)
    });
    // Small models put the statement into the title.
    let is_titled = !is_filler(title);
    let statement = statement || (is_titled && title.split_whitespace().count() >= WORDS_OF_A_STATEMENT);
    let parts = [(!is_titled, "title"), (!statement, "statement"), (!criterion, "list of checks")];
    parts.into_iter().filter_map(|(missing, part)| missing.then_some(part))
}

/// `**Acceptance criteria:**` and such.
fn is_label(line: &str) -> bool {
    let line = line.trim();
    line.ends_with(':') && line.len() < 40 || (line.starts_with("**") && line.ends_with("**"))
}

/// The ids that an answer speaks of.
#[derive(Debug, Default)]
struct Touched {
    /// All of them.
    named: BTreeSet<u32>,
    /// Those whose requirement is new or another than before.
    changed: BTreeSet<u32>,
}

/// Takes proposed blocks over.
fn apply(
    document: &mut Requirements,
    earlier: Option<&Requirements>,
    given: u32,
    proposed: Vec<Proposed>,
    findings: &mut Vec<Finding>,
    warnings: &mut Vec<ReceiptWarning>,
) -> Touched {
    let places: BTreeMap<u32, usize> =
        document.blocks.iter().enumerate().map(|(place, block)| (block.id, place)).collect();
    let titles: BTreeMap<String, u32> =
        document.blocks.iter().map(|block| (folded(&block.title), block.id)).collect();
    // What stood under which id. Two blocks that were alike belong to either.
    let mut texts: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    let mut said: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for block in &document.blocks {
        texts.entry(normal(&block.text)).or_default().insert(block.id);
        for part in RequirementText::of(behind_heading(&block.text)).parts() {
            said.entry(part).or_default().insert(block.id);
        }
    }
    let mut touched = Touched::default();
    let mut new = Vec::new();
    for block in proposed {
        let known = match block.lead {
            Lead::Numbered(id) if places.contains_key(&id) => Some(id),
            Lead::Numbered(id) => {
                if earlier.is_none() && given == 0 && (1..=HIGHEST_CHOSEN).contains(&id) {
                    if !touched.named.insert(id) {
                        findings.push(Fault::DoubleId.of(&shown(id, 'R')));
                    }
                    touched.changed.insert(id);
                    document.blocks.push(written(id, &block, findings, warnings));
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
            findings.push(Fault::DoubleId.of(&shown(id, 'R')));
            continue;
        }
        let proposed = normal(&whole(id, &block.title, &block.body));
        let moved = [texts.get(&proposed).and_then(|ids| ids.first()), titles.get(&folded(&block.title))];
        let is_own = texts.get(&proposed).is_some_and(|ids| ids.contains(&id));
        if let Some(other) = moved.into_iter().flatten().find(|other| **other != id && !is_own) {
            findings.push(Fault::DoubleId.of(&format!(
                "{} is now what {} was: {}",
                shown(id, 'R'),
                shown(*other, 'R'),
                block.title
            )));
            continue;
        }
        let place = places.get(&id).and_then(|place| document.blocks.get_mut(*place));
        // What there is already is compared with all that was answered, repeats included: it keeps its bytes.
        if let Some(old) = place.filter(|old| normal(&old.text) != proposed) {
            let (was, is) =
                (RequirementText::of(behind_heading(&old.text)), RequirementText::of(&block.body));
            if let Some(other) = is.taken_from(&was, &said).filter(|_| !is_own) {
                findings.push(Fault::DoubleId.of(&format!(
                    "{} says now what {} says: {}",
                    shown(id, 'R'),
                    shown(other, 'R'),
                    block.title
                )));
                continue;
            }
            if !is.shares(&was) {
                let message =
                    format!("{} says something else now than before, in every sentence", shown(id, 'R'));
                warnings.push(warning("spec_id_reused", message));
            }
            *old = written(id, &block, findings, warnings);
            touched.changed.insert(id);
        }
    }
    let mut fresh = document.fresh(given);
    for block in new {
        let Some(next) = fresh.next() else {
            findings.push(Fault::IdsUsedUp.of(&block.title));
            continue;
        };
        if let Lead::Numbered(wanted) = block.lead
            && wanted != next
        {
            let message = format!("{} is {} now: code gives the ids", shown(wanted, 'R'), shown(next, 'R'));
            warnings.push(warning("spec_id_assigned", message));
        }
        touched.named.insert(next);
        touched.changed.insert(next);
        document.blocks.push(written(next, &block, findings, warnings));
    }
    touched
}

/// What a requirement says, each part as its words alone: by this it is known again under another title.
#[derive(Debug, Default)]
struct RequirementText {
    /// All that is neither a check nor a label.
    statement: String,
    checks: BTreeSet<String>,
}

impl RequirementText {
    fn of(body: &str) -> Self {
        let mut said = Self::default();
        for line in scan(body).0 {
            if line.kind != LineKind::Text || is_label(line.text) {
                continue;
            }
            match list_item(line.text) {
                Some(check) => {
                    said.checks.insert(words(check));
                }
                None => {
                    said.statement.push(' ');
                    said.statement.push_str(line.text);
                }
            }
        }
        said.statement = words(&said.statement);
        said.checks.remove("");
        said
    }

    /// The parts that tell it from others: the statement, and all the checks together.
    fn parts(&self) -> impl Iterator<Item = String> {
        let statement = (!self.statement.is_empty()).then(|| format!("s {}", self.statement));
        let checks: Vec<&str> = self.checks.iter().map(String::as_str).collect();
        let checks = (!checks.is_empty()).then(|| format!("c {}", checks.join("\n")));
        statement.into_iter().chain(checks)
    }

    /// The requirement whose statement or checks this now says, where it gave up its own statement.
    fn taken_from(&self, was: &Self, said: &BTreeMap<String, BTreeSet<u32>>) -> Option<u32> {
        if self.statement == was.statement {
            return None;
        }
        let own: BTreeSet<String> = was.parts().collect();
        // Some of its own checks are no other's.
        let keeps_checks = !self.checks.is_disjoint(&was.checks);
        let others =
            self.parts().filter(|part| !own.contains(part) && (!keeps_checks || part.starts_with("s ")));
        others.filter_map(|part| said.get(&part)?.first().copied()).next()
    }

    /// Whether anything of what was said is said still: the statement, a check, or most of the words.
    fn shares(&self, was: &Self) -> bool {
        let words = |said: &Self| -> BTreeSet<String> {
            let checks = said.checks.iter().flat_map(|check| check.split(' '));
            said.statement
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

/// A text as its words, in small letters: marks and spaces make no other sentence of it.
fn words(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// A block without its first line.
fn behind_heading(block: &str) -> &str {
    block.split_once('\n').map_or("", |(_, body)| body)
}

/// Lines that look like a requirement of another id than the one of their block and are none.
fn stray(body: &str, own: Option<u32>) -> impl Iterator<Item = &str> {
    let mut goes_on = false;
    scan(body).0.into_iter().filter_map(move |line| {
        let is_text = line.kind == LineKind::Text;
        let begins = is_text && !goes_on && list_item(line.text).is_none();
        goes_on = is_text;
        let standing = if begins { Standing::Paragraph } else { Standing::Within };
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
            findings.push(Fault::Contradiction.of(&format!("{} is removed and written", shown(*id, 'R'))));
        } else if ids.contains(id) {
            document.retired.insert(*id);
        } else if !document.retired.contains(id) {
            findings.push(Fault::UnknownId.of(&format!("REMOVED: {}", shown(*id, 'R'))));
        }
    }
    document.blocks.retain(|block| !removed.contains(&block.id) || touched.contains(&block.id));
}

/// Two requirements with one title are one: a model that numbers anew would double them all.
fn doubles(document: &Requirements, changed: &BTreeSet<u32>, findings: &mut Vec<Finding>) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for block in &document.blocks {
        if let Some(other) = seen.insert(folded(&block.title), block.id)
            && (changed.contains(&other) || changed.contains(&block.id))
        {
            let ids = listed([other, block.id], 'R');
            findings.push(Fault::DoubleId.of(&format!("{ids} have one title: {}", block.title)));
        }
    }
}

/// A proposed block as it is written. A line of it that looks like another requirement is told: it would be lost in this one. Small models can repeat a check many times; it is written once, and a warning says so.
fn written(
    id: u32,
    block: &Proposed,
    findings: &mut Vec<Finding>,
    warnings: &mut Vec<ReceiptWarning>,
) -> Block {
    let own = match block.lead {
        Lead::Numbered(lead) => lead,
        Lead::New => id,
    };
    findings.extend(stray(&block.body, Some(own)).map(|line| Fault::LineForm.of(line)));
    let (body, repeats) = without_repeats(&block.body);
    if repeats > 0 {
        let message = format!("{}: {} of a check left out", shown(id, 'R'), counted(repeats, "repetition"));
        warnings.push(warning("spec_answer_trimmed", message));
    }
    Block { id, title: block.title.clone(), text: whole(id, &block.title, &body) }
}

fn whole(id: u32, title: &str, body: &str) -> String {
    format!("### {}: {title}\n\n{body}", shown(id, 'R')).trim_end().to_owned()
}

/// A body without entries of its list that stand in it before, word for word; and how many those were. An entry with lines of its own
/// below it stays.
fn without_repeats(body: &str) -> (String, u64) {
    let (lines, _) = scan(body);
    let mut seen = BTreeSet::new();
    let mut repeats = 0;
    let mut kept = Vec::with_capacity(lines.len());
    for (place, line) in lines.iter().enumerate() {
        let goes_on = lines.get(place + 1).is_some_and(|next| {
            next.kind == LineKind::Fenced
                || (next.kind == LineKind::Text && next.text.starts_with([' ', '\t']))
        });
        let is_entry = line.kind == LineKind::Text && !line.text.starts_with([' ', '\t']) && !goes_on;
        if let Some(item) = list_item(line.text).filter(|_| is_entry)
            && !seen.insert(item)
        {
            repeats += 1;
        } else {
            kept.push(*line);
        }
    }
    if repeats == 0 { (body.to_owned(), 0) } else { (tidied(kept), repeats) }
}

/// A block for comparing: its lists with one marker, its heading with one spelling, white space aside.
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

/// `R-001a` in a first document is an id, `1. Functional` is a group.
fn title_has_letter(title: &str) -> bool {
    !title.trim_start().starts_with(|c: char| c.is_ascii_digit())
}

fn folded(title: &str) -> String {
    single_spaced(title).to_lowercase()
}

/// A line `REMOVED: R-002, R-003 (nobody wants them)`.
struct Removal {
    /// What is removed: the list alone.
    ids: BTreeSet<u32>,
    /// Ids behind the list. They say why, and stay.
    reason: BTreeSet<u32>,
    end: RemovalEnd,
}

/// Whether a list of ids is told from what follows it.
enum RemovalEnd {
    Clear,
    /// A word follows a list of several ids without a mark: `R-002, R-003 covers it` may speak of the second one.
    Unclear,
}

/// Words that begin a reason.
const REASONS: [&str; 9] = ["because", "since", "as", "due", "for", "per", "which", "these", "they"];

/// Reads a line as a removal. Ids count while the line is a list of them; what follows is a reason.
fn removal(line: &str) -> Option<Removal> {
    let line = list_item(line).unwrap_or(line).trim_start_matches(['#', '*', ' ', '`']);
    let rest = line
        .get(..8)
        .filter(|word| word.eq_ignore_ascii_case("removed:"))
        .and_then(|word| line.get(word.len()..))?;
    let text = rest.trim_start_matches(['*', '`', ' ']).replace(is_hyphen, "-");
    let (mut ids, mut rest) = (BTreeSet::new(), text.as_str());
    let mut is_parted = true;
    while let Some((range, id)) = mentions(rest, 'R').next().filter(|(range, _)| range.start == 0) {
        ids.insert(id);
        let behind = rest.get(range.end..).unwrap_or_default().trim_start_matches(['*', '`']);
        rest = behind.trim_start_matches([' ', '\t', ',', ';', '&', '+', '/', '*', '`']);
        rest = rest.strip_prefix("and ").map_or(rest, |next| next.trim_start_matches([' ', '*', '`']));
        is_parted = !rest.starts_with(char::is_alphanumeric) || behind.trim_start().starts_with([',', ';']);
    }
    if ids.is_empty() {
        return None;
    }
    let word = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    let is_clear = is_parted || ids.len() == 1 || REASONS.contains(&word.as_str());
    let mut reason = named(rest, 'R');
    reason.retain(|id| !ids.contains(id));
    Some(Removal { ids, reason, end: if is_clear { RemovalEnd::Clear } else { RemovalEnd::Unclear } })
}

#[cfg(test)]
mod tests;
