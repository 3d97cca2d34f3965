//! What a patchmaker answered, read as edits or as a diff.
//!
//! [`read_answer`] reads the format that was asked for and no other; [`read_any_answer`] takes any format
//! that the answer shows by its own shape, and repairs faults of form that can be repaired in one way only. Prose around
//! edits is ignored, everything that could be meant in two ways is an error with a code of its own, so that the same
//! answer always gives the same edits. [`apply`] then makes file contents of them.

mod apply;
mod deletion;
mod diff;
mod error;
mod fence;
mod hunks;
mod lost;
mod name;
mod place;
mod replace;
mod shape;
mod splice;
mod whole;

use crucible_model::{EditFormat, RepoPath, Untrusted};

pub use apply::{apply, can_splice, consists_of_definitions};
pub use error::AnswerError;
pub use fence::{AnswerBlock, answer_blocks};
pub use hunks::{LooseHunk, as_line_edits};
pub use lost::{RestoredDefinitions, restore_lost_definitions};
pub use shape::{ParsedAnswer, read_any_answer};

/// The largest answer that is read, in bytes: 2 MiB.
pub const MAX_ANSWER_BYTES: u64 = 2 << 20;

/// What some editors put in front of a text. It says nothing, and is passed over.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// What an answer proposes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// Edits in the order in which they were given.
    Edits(Vec<Edit>),
    /// The bytes of a diff, which nobody has parsed yet.
    Diff(Vec<u8>),
}

/// One edit of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The file.
    pub path: RepoPath,
    /// What happens to it.
    pub kind: EditKind,
}

/// What an edit does. Texts have LF line ends; the file's own are put back when the edit is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditKind {
    /// The file gets this content, or comes into being with it.
    WholeFile {
        /// All lines, each with its line feed.
        content: String,
    },
    /// Definitions take the place of those in the file, or are added to it; everything else stays.
    Definitions {
        /// All lines, each with its line feed.
        content: String,
    },
    /// A block of code that came where another form was asked for: definitions, or the whole file.
    Block {
        /// All lines, each with its line feed.
        content: String,
    },
    /// The changed places of a diff, each found by its lines.
    Hunks {
        /// From top to bottom, as they were written.
        hunks: Vec<LooseHunk>,
    },
    /// A definition goes.
    Delete {
        /// Its name, with its container in front where the answer says it.
        name: String,
    },
    /// Some lines give way to others.
    Replace {
        /// The lines that have to be there exactly once. None means that the file is new.
        search: String,
        /// The lines that take their place.
        replace: String,
    },
}

/// Reads an answer in `format`. `expected` are the files that the model was asked to edit: a path among them may be
/// written more loosely, and where it is only one, a single unnamed edit is taken for it. What a model thought aloud before its answer
/// (`<think>…</think>` at its very beginning) is not a part of it: drafts stand there.
///
/// # Errors
///
/// Fails when the answer is empty, too large, holds no edit, or can be read in more than one way.
pub fn read_answer(
    format: EditFormat,
    answer: &Untrusted,
    expected: &[RepoPath],
) -> Result<Proposal, AnswerError> {
    let text = checked(answer)?;
    match format {
        EditFormat::WholeFile => whole::read(&text.replace("\r\n", "\n"), expected, |content| {
            EditKind::WholeFile { content }
        })
        .map(Proposal::Edits),
        EditFormat::Definitions => {
            let text = text.replace("\r\n", "\n");
            let (rest, deleted) = deletion::deletions(&text, expected)?;
            let kind = |content| EditKind::Definitions { content };
            let mut edits = match whole::read(&rest, expected, kind) {
                Err(AnswerError::NoEdit) if !deleted.is_empty() => Vec::new(),
                read => read?,
            };
            edits.extend(deleted.into_iter().map(|(path, name)| Edit {
                path,
                kind: EditKind::Delete { name },
            }));
            Ok(Proposal::Edits(edits))
        }
        EditFormat::SearchReplace => {
            replace::read(&text.replace("\r\n", "\n"), expected).map(Proposal::Edits)
        }
        EditFormat::UnifiedDiff => diff::read(text).map(Proposal::Diff),
    }
}

/// The answer without thoughts, where it is neither too large nor empty.
fn checked(answer: &Untrusted) -> Result<&str, AnswerError> {
    let text = answer.as_str();
    if text.len() as u64 > MAX_ANSWER_BYTES {
        return Err(AnswerError::TooLarge {
            bytes: text.len() as u64,
            limit: MAX_ANSWER_BYTES,
        });
    }
    let text = strip_reasoning(text);
    if text.trim().is_empty() {
        Err(AnswerError::Empty)
    } else {
        Ok(text)
    }
}

/// What of an answer follows the model's thoughts (`<think>…</think>` at its very beginning); nothing where they have no end.
#[must_use]
pub fn strip_reasoning(text: &str) -> &str {
    match text.trim_start().strip_prefix("<think>") {
        Some(thoughts) => thoughts
            .split_once("</think>")
            .map_or("", |(_, answer)| answer),
        None => text,
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_any;
#[cfg(test)]
mod tests_deletion;
