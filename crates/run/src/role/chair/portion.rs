//! Turns the choices of a ranking that may be shown in part only into needs for lines.

use std::path::Path;

use crucible_model::{ByteLimit, RepoPath};
use crucible_pack::{Choice, FileClass, Goal, Mode, Ranking};
use crucible_repo::TreeReader;

use super::excerpt::{ExcerptReasons, lines_to_show, signatures};
use super::pointers::Pointers;

/// How much of a file is read to choose lines of it.
pub(super) const READ: ByteLimit = ByteLimit(1024 * 1024);

/// The most places of one file that are weighed.
pub(super) const MAX_MARKS: usize = 5000;

/// Reads the chosen files that are larger than their allowance, and asks for lines of them. If no line fits, the
/// request is unchanged and the pack truncates the file.
pub(super) fn show_parts(top: &Path, goal: &Goal, pointers: &Pointers, ranking: &mut Ranking) {
    let Ok(reader) = TreeReader::open(top) else {
        return;
    };
    let mut bytes = Vec::new();
    for choice in &mut ranking.chosen {
        let Ok(path) = choice.need.path.parse::<RepoPath>() else {
            continue;
        };
        let Ok(size) = reader.read_prefix(&path, READ, &mut bytes) else {
            continue;
        };
        if size > choice.allowance {
            let text = String::from_utf8_lossy(&bytes);
            show_part(goal, pointers, &path, &text, choice);
        }
    }
}

fn show_part(goal: &Goal, pointers: &Pointers, path: &RepoPath, text: &str, choice: &mut Choice) {
    let is_test = FileClass::from_path(path) == FileClass::Test;
    let requested = ExcerptReasons {
        marks: goal.marks(text.as_bytes(), MAX_MARKS),
        frames: pointers.lines.get(path),
        tests: is_test.then_some(&pointers.tests),
    };
    let outlined = if choice.is_outline {
        signatures(path, text, choice.allowance)
    } else {
        Vec::new()
    };
    let ranges = match outlined.is_empty() {
        true => lines_to_show(path, text, &requested, choice.allowance),
        false => outlined,
    };
    if !ranges.is_empty() {
        choice.need.mode = Mode::Snippets;
        choice.need.line_ranges = ranges;
    }
}
