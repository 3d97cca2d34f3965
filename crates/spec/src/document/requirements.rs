//! The requirements: blocks with ids that stay what they are.
//!
//! An artifact is read leniently, because a person may have edited it: a block runs from a heading with an id to the next
//! one, and its bytes are kept. The last line `Retired: R-002` remembers the ids that were removed; they never come back.

use std::collections::BTreeSet;

use super::ids::{HIGHEST, Lead, RequirementId, leading, listed, named, shown};
use super::lines::{Fences, Line, LineKind, scan};
use crucible_model::Untrusted;

/// What the line of removed ids begins with.
const RETIRED: &str = "Retired: ";

/// A document of requirements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Requirements {
    /// The title line and what stands between it and the first requirement.
    pub(crate) head: String,
    /// The requirements, in their order.
    pub(crate) blocks: Vec<Block>,
    /// Ids that were removed.
    pub(crate) retired: BTreeSet<u32>,
}

/// A requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// The number of its id.
    pub(crate) id: u32,
    /// Its title.
    pub(crate) title: String,
    /// All of it, its heading included, without an end of line at the end.
    pub(crate) text: String,
}

/// The ids of the requirements of a document, in their order.
#[must_use]
pub fn requirement_ids(requirements: &Untrusted) -> Vec<RequirementId> {
    let document = Requirements::of_artifact(requirements.as_str());
    document.blocks.iter().map(|block| RequirementId(block.id)).collect()
}

impl Requirements {
    /// Reads an artifact. Never fails: what is no requirement belongs to the block before it, and an id that stands there a
    /// second time is given up for a new one. A code block without its end gets one, lest it swallow what is added. A removed id
    /// beyond all that can be given is none.
    pub(crate) fn of_artifact(text: &str) -> Self {
        let mut text = text.replace("\r\n", "\n");
        if let Fences::Open(end) = scan(&text).1 {
            text = format!("{}\n{end}", text.trim_end_matches('\n'));
        }
        let mut found = Self { head: String::new(), blocks: Vec::new(), retired: BTreeSet::new() };
        let mut begun: Option<(u32, &str)> = None;
        let mut lines: Vec<&str> = Vec::new();
        for line in scan(&text).0 {
            if let Some(ids) = retired(&line) {
                found.retired.extend(named(ids, 'R').into_iter().filter(|id| *id <= HIGHEST));
                continue;
            }
            if let Some(next) = numbered(&line) {
                found.take(begun.replace(next), &lines);
                lines.clear();
            }
            lines.push(line.text);
        }
        found.take(begun, &lines);
        found.give_doubles_new_ids();
        let live: BTreeSet<u32> = found.blocks.iter().map(|block| block.id).collect();
        found.retired.retain(|id| !live.contains(id));
        found
    }

    /// The document as it is written.
    pub(crate) fn render(&self) -> String {
        let mut text = self.head.clone();
        for block in &self.blocks {
            text.push_str("\n\n");
            text.push_str(&block.text);
        }
        if !self.retired.is_empty() {
            text.push_str("\n\n");
            text.push_str(RETIRED);
            text.push_str(&listed(self.retired.iter().copied(), 'R'));
        }
        text.push('\n');
        text
    }

    /// The requirement with this id.
    #[cfg(test)]
    pub(crate) fn block(&self, id: u32) -> Option<&Block> {
        self.blocks.iter().find(|block| block.id == id)
    }

    /// The ids that there are.
    pub(crate) fn ids(&self) -> BTreeSet<u32> {
        self.blocks.iter().map(|block| block.id).collect()
    }

    /// The highest id that was ever given.
    pub(crate) fn highest(&self) -> u32 {
        self.blocks.iter().map(|block| block.id).chain(self.retired.last().copied()).max().unwrap_or_default()
    }

    /// The ids for new requirements, in order: above all that were ever given, `given` among them, up to the highest that there can be.
    pub(crate) fn fresh(&self, given: u32) -> impl Iterator<Item = u32> + use<> {
        self.highest().max(given).saturating_add(1)..=HIGHEST
    }

    fn take(&mut self, begun: Option<(u32, &str)>, lines: &[&str]) {
        let filled = |line: &&str| !line.trim().is_empty();
        let from = lines.iter().position(filled).unwrap_or(lines.len());
        let to = lines.iter().rposition(filled).map_or(from, |last| last + 1);
        let text = lines.get(from..to).unwrap_or_default().join("\n");
        match begun {
            Some((id, title)) => self.blocks.push(Block { id, title: title.to_owned(), text }),
            None => self.head = text,
        }
    }

    fn give_doubles_new_ids(&mut self) {
        // Where somebody wrote the highest id there can be, one that was never given serves as well.
        let given: BTreeSet<u32> = self.ids().union(&self.retired).copied().collect();
        let mut free = self.fresh(0).chain((1..self.highest()).filter(|id| !given.contains(id)));
        let mut seen = BTreeSet::new();
        for block in &mut self.blocks {
            if !seen.insert(block.id) {
                let Some(next) = free.next() else { continue };
                block.id = next;
                let body = block.text.split_once('\n').map_or("", |(_, body)| body);
                block.text =
                    format!("### {}: {}\n{body}", shown(block.id, 'R'), block.title).trim_end().to_owned();
                seen.insert(block.id);
            }
        }
    }
}

/// The id and the title of a heading that begins a requirement.
fn numbered<'a>(line: &Line<'a>) -> Option<(u32, &'a str)> {
    let LineKind::Heading { title, .. } = line.kind else { return None };
    match leading(title, 'R') {
        Some((Lead::Numbered(id), title)) => Some((id, title)),
        _ => None,
    }
}

/// What follows `Retired:` on a line that is no part of a code block and names ids.
pub(crate) fn retired<'a>(line: &Line<'a>) -> Option<&'a str> {
    let ids = line.text.strip_prefix(RETIRED.trim_end()).filter(|_| line.kind == LineKind::Text)?;
    ids.trim_start().starts_with("R-").then_some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Requirements: Export\n\nIntro.\n\n### R-001: A\n\nText  \n\n\n- a\n\n```\n### R-009: no\n```\n\n\n\
                        ## R-4: B\ntext\n## Notes\nmine\n\nRetired: R-002, R-003\n";

    #[test]
    fn an_artifact_edited_by_hand_is_read_whole() {
        let read = Requirements::of_artifact(TEXT);
        assert_eq!(read.head, "# Requirements: Export\n\nIntro.");
        assert_eq!(read.ids(), BTreeSet::from([1, 4]));
        assert_eq!(read.block(4).unwrap().text, "## R-4: B\ntext\n## Notes\nmine");
        assert_eq!(read.block(1).unwrap().text, "### R-001: A\n\nText  \n\n\n- a\n\n```\n### R-009: no\n```");
        assert_eq!((read.highest(), read.retired.len()), (4, 2));
        assert_eq!(Requirements::of_artifact(&read.render()), read);
        assert_eq!(Requirements::of_artifact(&TEXT.replace('\n', "\r\n")), read);
    }

    #[test]
    fn the_ids_of_a_document_are_told_in_order() {
        let ids: Vec<_> = requirement_ids(&Untrusted::new(TEXT)).iter().map(ToString::to_string).collect();
        assert_eq!(ids, ["R-001", "R-004"]);
        assert_eq!(requirement_ids(&Untrusted::new("")), []);
    }

    #[test]
    fn a_code_block_without_its_end_gets_one() {
        let read = Requirements::of_artifact("# x\n\n### R-001: A\n````\nopen\n### R-002: no\n\n");
        assert_eq!(read.render(), "# x\n\n### R-001: A\n````\nopen\n### R-002: no\n````\n");
    }

    #[test]
    fn an_id_that_stands_twice_is_given_up_for_a_new_one() {
        let read = Requirements::of_artifact(
            "# x\n### R-001: A\na\n### R-001: B\nb\n### R-002: C\n\nRetired: R-002, R-007\n",
        );
        assert_eq!(read.blocks.iter().map(|b| b.id).collect::<Vec<_>>(), [1, 8, 2]);
        assert_eq!(read.blocks[1].text, "### R-008: B\nb");
        assert_eq!(read.retired, BTreeSet::from([7]));
    }

    #[test]
    fn an_id_beyond_all_of_ours_is_no_removed_one() {
        let text = "# x\n### R-002: A\na\n\nRetired: R-007, R-1000000, R-4294967295, R-99999999999\n";
        let read = Requirements::of_artifact(text);
        assert_eq!((read.highest(), read.fresh(0).next()), (7, Some(8)));
        assert_eq!(read.render(), "# x\n\n### R-002: A\na\n\nRetired: R-007\n");
        let full = "# x\n### R-001: A\na\n### R-1: B\nb\n### R-001: C\nc\n\nRetired: R-003, R-999999\n";
        let read = Requirements::of_artifact(full);
        assert_eq!(read.fresh(0).next(), None);
        assert_eq!(read.blocks.iter().map(|block| block.id).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(Requirements::of_artifact(&read.render()), read);
    }
}
