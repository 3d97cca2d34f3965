//! The requirements: blocks with stable ids.
//!
//! An artifact is parsed leniently, because a person may have edited it: a block extends from a heading
//! with an id to the next one, and its bytes are kept. The last line `Retired: R-002` lists the removed
//! ids, which are never reused.

use std::collections::BTreeSet;

use super::ids::{HIGHEST, Lead, format_id, format_ids, leading, parse_ids};
use super::lines::{Fences, Line, LineKind, scan};

/// The prefix of the line of removed ids.
const RETIRED: &str = "Retired: ";

/// A document of requirements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Requirements {
    /// The title line and the text before the first requirement.
    pub(crate) head: String,
    /// The requirements, in order.
    pub(crate) blocks: Vec<Block>,
    /// Ids that were removed.
    pub(crate) retired: BTreeSet<u32>,
}

/// A requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// The number of its id.
    pub(crate) id: u32,
    pub(crate) title: String,
    /// Its whole text with the heading, without a final line ending.
    pub(crate) text: String,
}

impl Requirements {
    /// Parses an artifact. Never fails: other text belongs to the block before it, and a repeated id is
    /// replaced by a new one. An unclosed code block is closed, so that it does not swallow added text. A
    /// removed id above the highest possible one is ignored.
    pub(crate) fn of_artifact(text: &str) -> Self {
        let mut text = text.replace("\r\n", "\n");
        if let Fences::Open(end) = scan(&text).1 {
            text = format!("{}\n{end}", text.trim_end_matches('\n'));
        }
        let mut found = Self {
            head: String::new(),
            blocks: Vec::new(),
            retired: BTreeSet::new(),
        };
        let mut begun: Option<(u32, &str)> = None;
        let mut lines: Vec<&str> = Vec::new();
        for line in scan(&text).0 {
            if let Some(ids) = retired(&line) {
                found
                    .retired
                    .extend(parse_ids(ids, 'R').into_iter().filter(|id| *id <= HIGHEST));
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

    /// Formats the document.
    pub(crate) fn render(&self) -> String {
        let mut text = self.head.clone();
        for block in &self.blocks {
            text.push_str("\n\n");
            text.push_str(&block.text);
        }
        if !self.retired.is_empty() {
            text.push_str("\n\n");
            text.push_str(RETIRED);
            text.push_str(&format_ids(self.retired.iter().copied(), 'R'));
        }
        text.push('\n');
        text
    }

    /// Formats the document over an earlier version: unchanged parts keep their bytes, including line
    /// endings, gaps and the position of the line of removed ids. New lines end as those of the earlier
    /// version.
    pub(crate) fn render_over(&self, earlier: &str) -> String {
        let before = Self::of_artifact(earlier);
        let pieces = Pieces::parse(earlier);
        let unchanged_piece = |place: usize, text: &str| {
            let piece = pieces.0.get(place).filter(|piece| piece.text() == text);
            piece.filter(|_| pieces.0.len() == before.blocks.len() + 1)
        };
        let places: std::collections::BTreeMap<u32, usize> = before
            .blocks
            .iter()
            .zip(1..)
            .map(|(block, place)| (block.id, place))
            .collect();
        let mut parts = vec![(self.head.as_str(), Some(0), unchanged_piece(0, &self.head))];
        parts.extend(self.blocks.iter().map(|block| {
            let from = places.get(&block.id).copied();
            (
                block.text.as_str(),
                from,
                from.and_then(|place| unchanged_piece(place, &block.text)),
            )
        }));
        let same_blocks = self
            .blocks
            .iter()
            .map(|block| block.id)
            .eq(before.blocks.iter().map(|block| block.id));
        // The line of removed ids keeps its position if nothing moves around it.
        let named = pieces.0.iter().any(|piece| piece.names_removed);
        let lost = pieces
            .0
            .iter()
            .zip(&parts)
            .any(|(piece, (.., unchanged))| piece.names_removed && unchanged.is_none());
        let in_place = named && same_blocks && !lost && self.retired == before.retired;
        let newline = match earlier.find('\n') {
            Some(at) if earlier.get(..at).is_some_and(|line| line.ends_with('\r')) => "\r\n",
            _ => "\n",
        };
        let mut text = String::new();
        for (place, (wanted, from, unchanged)) in parts.iter().enumerate() {
            let next = parts.get(place + 1);
            let bytes = unchanged.map_or_else(
                || wanted.replace('\n', newline),
                |piece| piece.lines(in_place),
            );
            // The same text follows it, so the gap is kept as well.
            let is_followed = match next {
                Some((_, next, _)) => from.map(|place| place + 1) == *next,
                None => same_blocks && (in_place || self.retired.is_empty()),
            };
            if unchanged.is_some() && is_followed {
                text.push_str(&bytes);
                continue;
            }
            let bytes = bytes.trim_end_matches(['\r', '\n']);
            text.push_str(bytes);
            if !bytes.is_empty() {
                text.push_str(newline);
            }
            if next.is_some() && !text.is_empty() {
                text.push_str(newline);
            }
        }
        if !in_place && !self.retired.is_empty() {
            text.push_str(newline);
            text.push_str(RETIRED);
            text.push_str(&format_ids(self.retired.iter().copied(), 'R'));
            text.push_str(newline);
        }
        text
    }

    /// The requirement with this id.
    #[cfg(test)]
    pub(crate) fn block(&self, id: u32) -> Option<&Block> {
        self.blocks.iter().find(|block| block.id == id)
    }

    /// The existing ids.
    pub(crate) fn ids(&self) -> BTreeSet<u32> {
        self.blocks.iter().map(|block| block.id).collect()
    }

    /// The highest id that was ever assigned.
    pub(crate) fn highest(&self) -> u32 {
        self.blocks
            .iter()
            .map(|block| block.id)
            .chain(self.retired.last().copied())
            .max()
            .unwrap_or_default()
    }

    /// The ids for new requirements in order: above all assigned ones, including `given`, up to the
    /// highest possible one.
    pub(crate) fn fresh(&self, given_count: u32) -> impl Iterator<Item = u32> + use<> {
        self.highest().max(given_count).saturating_add(1)..=HIGHEST
    }

    fn take(&mut self, begun: Option<(u32, &str)>, lines: &[&str]) {
        let text = trimmed(lines).join("\n");
        match begun {
            Some((id, title)) => self.blocks.push(Block {
                id,
                title: title.to_owned(),
                text,
            }),
            None => self.head = text,
        }
    }

    fn give_doubles_new_ids(&mut self) {
        // If the highest possible id is taken, unused lower ids serve as well.
        let given: BTreeSet<u32> = self.ids().union(&self.retired).copied().collect();
        let mut free = self
            .fresh(0)
            .chain((1..self.highest()).filter(|id| !given.contains(id)));
        let mut seen = BTreeSet::new();
        for block in &mut self.blocks {
            if !seen.insert(block.id) {
                let Some(next) = free.next() else { continue };
                block.id = next;
                let body = block.text.split_once('\n').map_or("", |(_, body)| body);
                block.text = format!("### {}: {}\n{body}", format_id(block.id, 'R'), block.title)
                    .trim_end()
                    .to_owned();
                seen.insert(block.id);
            }
        }
    }
}

/// An artifact split at its requirements: the text before the first, then each of them. Every byte
/// belongs to one piece.
struct Pieces<'a>(Vec<Piece<'a>>);

#[derive(Default)]
struct Piece<'a> {
    /// Its lines with line endings, and whether each one is the line of removed ids.
    lines: Vec<(&'a str, bool)>,
    names_removed: bool,
}

impl<'a> Pieces<'a> {
    fn parse(artifact: &'a str) -> Self {
        let mut pieces = vec![Piece::default()];
        for (line, bytes) in scan(artifact).0.iter().zip(artifact.split_inclusive('\n')) {
            if numbered(line).is_some() {
                pieces.push(Piece::default());
            }
            let names_removed = retired(line).is_some();
            if let Some(last) = pieces.last_mut() {
                last.lines.push((bytes, names_removed));
                last.names_removed |= names_removed;
            }
        }
        Self(pieces)
    }
}

impl Piece<'_> {
    /// Its text as in a [`Block`].
    fn text(&self) -> String {
        let lines = self
            .lines
            .iter()
            .filter(|(_, names_removed)| !names_removed);
        let lines = lines.map(|(line, _)| line.trim_end_matches('\n'));
        let lines: Vec<&str> = lines
            .map(|line| line.strip_suffix('\r').unwrap_or(line))
            .collect();
        trimmed(&lines).join("\n")
    }

    /// Its bytes, with or without the line of removed ids.
    fn lines(&self, with_removed: bool) -> String {
        let lines = self
            .lines
            .iter()
            .filter(|(_, names_removed)| with_removed || !names_removed);
        lines.map(|(line, _)| *line).collect()
    }
}

/// The lines without outer blank ones.
fn trimmed<'l, 'a>(lines: &'l [&'a str]) -> &'l [&'a str] {
    let filled = |line: &&str| !line.trim().is_empty();
    let from = lines.iter().position(filled).unwrap_or(lines.len());
    let to = lines.iter().rposition(filled).map_or(from, |last| last + 1);
    lines.get(from..to).unwrap_or_default()
}

/// The id and the title of a heading that begins a requirement.
fn numbered<'a>(line: &Line<'a>) -> Option<(u32, &'a str)> {
    let LineKind::Heading { title, .. } = line.kind else {
        return None;
    };
    match leading(title, 'R') {
        Some((Lead::Numbered(id), title)) => Some((id, title)),
        _ => None,
    }
}

/// The text after `Retired:` on a line outside of code blocks that names ids.
pub(crate) fn retired<'a>(line: &Line<'a>) -> Option<&'a str> {
    let ids = line
        .text
        .strip_prefix(RETIRED.trim_end())
        .filter(|_| line.kind == LineKind::Text)?;
    ids.trim_start().starts_with("R-").then_some(ids)
}

#[cfg(test)]
mod tests {
    use super::super::ids::RequirementId;
    use super::*;

    const TEXT: &str = "# Requirements: Export\n\nIntro.\n\n### R-001: A\n\nText  \n\n\n- a\n\n```\n### R-009: no\n```\n\n\n\
                        ## R-4: B\ntext\n## Notes\nmine\n\nRetired: R-002, R-003\n";

    #[test]
    fn an_artifact_edited_by_hand_is_read_whole() {
        let read = Requirements::of_artifact(TEXT);
        assert_eq!(read.head, "# Requirements: Export\n\nIntro.");
        assert_eq!(read.ids(), BTreeSet::from([1, 4]));
        assert_eq!(
            read.block(4).unwrap().text,
            "## R-4: B\ntext\n## Notes\nmine"
        );
        assert_eq!(
            read.block(1).unwrap().text,
            "### R-001: A\n\nText  \n\n\n- a\n\n```\n### R-009: no\n```"
        );
        assert_eq!((read.highest(), read.retired.len()), (4, 2));
        assert_eq!(Requirements::of_artifact(&read.render()), read);
        assert_eq!(Requirements::of_artifact(&TEXT.replace('\n', "\r\n")), read);
    }

    #[test]
    fn unchanged_text_keeps_bytes_and_endings() {
        let windows = TEXT.replace('\n', "\r\n");
        let ugly = "# x\r\n\r\n\r\n### R-001: A \r\na\n \n\n\nRetired: R-002 \n### R-003: B\nb\r\n\r\n\r\n";
        let bare = "### R-001: A\na\n### R-002: B\nb";
        let open = "# x\n\n### R-001: A\n````\nopen\n````";
        for text in [TEXT, windows.as_str(), ugly, bare, open] {
            assert_eq!(
                Requirements::of_artifact(text).render_over(text),
                text,
                "{text:?}"
            );
        }

        let mut more = Requirements::of_artifact(&windows);
        more.blocks.push(Block {
            id: 5,
            title: "C".to_owned(),
            text: "### R-005: C\n\nc".to_owned(),
        });
        let (stored_text, _) = windows.split_once("Retired").unwrap();
        let expected =
            format!("{stored_text}### R-005: C\r\n\r\nc\r\n\r\nRetired: R-002, R-003\r\n");
        assert_eq!(more.render_over(&windows), expected);

        let mut other = Requirements::of_artifact(&windows);
        other.blocks[0].text = "### R-001: A\n\nnew".to_owned();
        let (_, behind) = windows.split_once("## R-4").unwrap();
        let expected_value = format!(
            "# Requirements: Export\r\n\r\nIntro.\r\n\r\n### R-001: A\r\n\r\nnew\r\n\r\n## R-4{behind}"
        );
        assert_eq!(other.render_over(&windows), expected_value);

        let mut fewer = Requirements::of_artifact(bare);
        fewer.blocks.remove(1);
        fewer.retired.insert(2);
        assert_eq!(
            fewer.render_over(bare),
            "### R-001: A\na\n\nRetired: R-002\n"
        );
        fewer = Requirements::of_artifact(bare);
        fewer.blocks.remove(0);
        fewer.retired.insert(1);
        assert_eq!(
            fewer.render_over(bare),
            "### R-002: B\nb\n\nRetired: R-001\n"
        );
    }

    #[test]
    fn document_ids_are_listed_in_order() {
        let ids = |text: &str| {
            let blocks = Requirements::of_artifact(text).blocks;
            let ids = blocks
                .iter()
                .map(|block| RequirementId(block.id).to_string());
            ids.collect::<Vec<_>>()
        };
        assert_eq!(ids(TEXT), ["R-001", "R-004"]);
        assert_eq!(ids(""), [""; 0]);
    }

    #[test]
    fn a_code_block_without_its_end_gets_one() {
        let read = Requirements::of_artifact("# x\n\n### R-001: A\n````\nopen\n### R-002: no\n\n");
        assert_eq!(
            read.render(),
            "# x\n\n### R-001: A\n````\nopen\n### R-002: no\n````\n"
        );
    }

    #[test]
    fn duplicate_id_is_replaced_by_a_new_one() {
        let read = Requirements::of_artifact(
            "# x\n### R-001: A\na\n### R-001: B\nb\n### R-002: C\n\nRetired: R-002, R-007\n",
        );
        assert_eq!(
            read.blocks.iter().map(|b| b.id).collect::<Vec<_>>(),
            [1, 8, 2]
        );
        assert_eq!(read.blocks[1].text, "### R-008: B\nb");
        assert_eq!(read.retired, BTreeSet::from([7]));
    }

    #[test]
    fn out_of_range_id_is_not_counted_removed() {
        let text =
            "# x\n### R-002: A\na\n\nRetired: R-007, R-1000000, R-4294967295, R-99999999999\n";
        let read = Requirements::of_artifact(text);
        assert_eq!((read.highest(), read.fresh(0).next()), (7, Some(8)));
        assert_eq!(read.render(), "# x\n\n### R-002: A\na\n\nRetired: R-007\n");
        let full =
            "# x\n### R-001: A\na\n### R-1: B\nb\n### R-001: C\nc\n\nRetired: R-003, R-999999\n";
        let read = Requirements::of_artifact(full);
        assert_eq!(read.fresh(0).next(), None);
        assert_eq!(
            read.blocks.iter().map(|block| block.id).collect::<Vec<_>>(),
            [1, 2, 4]
        );
        assert_eq!(Requirements::of_artifact(&read.render()), read);
    }
}
