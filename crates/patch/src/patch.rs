//! A parsed patch: which files it touches, and how.
//!
//! The values are made by [`crate::parse`] and by nothing else in the product, so that what they say has been
//! checked: counts agree with lines, headers agree with each other, and paths are repository paths.

use std::collections::BTreeMap;

use crucible_model::RepoPath;

/// The contents of files by their paths.
pub(crate) type Files = BTreeMap<RepoPath, Vec<u8>>;

/// A whole patch, its files in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// One entry for each `diff --git` section.
    pub files: Vec<FilePatch>,
}

impl Patch {
    /// How many files it touches: a renamed one is two.
    #[must_use]
    pub fn touched(&self) -> u64 {
        let is_moved = |file: &&FilePatch| matches!(file.change, Change::Rename { .. });
        (self.files.len() + self.files.iter().filter(is_moved).count()) as u64
    }

    /// Every path that the patch writes or removes, and every path that it copies from, each once, sorted.
    #[must_use]
    pub fn paths(&self) -> Vec<&RepoPath> {
        let mut paths: Vec<&RepoPath> = self
            .files
            .iter()
            .flat_map(|file| [Some(&file.path), file.change.from()])
            .flatten()
            .collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// The kind of change.
    pub change: Change,
    /// The file's path afterwards; for a deletion, its path before.
    pub path: RepoPath,
    /// The mode before, where the patch states it.
    pub old_mode: Option<FileMode>,
    /// The mode afterwards, where the patch states it.
    pub new_mode: Option<FileMode>,
    /// The changed places, from top to bottom. Empty for binary content and for changes without text.
    pub hunks: Vec<Hunk>,
    /// Whether the content can be read as lines.
    pub content: Content,
    /// The objects that the section says it starts from and makes, where it names them.
    pub objects: Option<ObjectNames>,
}

/// The names of a file's objects before and after, as an `index` line writes them: whole or shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectNames {
    /// Before; all zeros for a file that is new.
    pub old: String,
    /// Afterwards; all zeros for a file that goes away.
    pub new: String,
}

impl FilePatch {
    /// How many lines the hunks add.
    #[must_use]
    pub fn added(&self) -> u64 {
        self.count(LineKind::Added)
    }

    /// How many lines the hunks remove.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.count(LineKind::Removed)
    }

    /// Whether it changes a submodule, which has a commit instead of content.
    pub(crate) fn is_submodule(&self) -> bool {
        [self.old_mode, self.new_mode].contains(&Some(FileMode::Gitlink))
    }

    /// The path whose content the change starts from; none for a file that is new.
    pub(crate) fn old_path(&self) -> Option<&RepoPath> {
        if self.change == Change::Create {
            None
        } else {
            Some(self.change.from().unwrap_or(&self.path))
        }
    }

    fn count(&self, kind: LineKind) -> u64 {
        self.hunks
            .iter()
            .flat_map(Hunk::lines)
            .filter(|line| line.kind == kind)
            .count() as u64
    }

    /// Applies the hunks to `before`, each exactly where it says it belongs.
    ///
    /// A hunk that neither ends with context nor reaches the end of the file does not apply: `git apply` would
    /// look for another place for it. `Err` holds the first line of the hunk that does not apply.
    pub(crate) fn apply_to(&self, before: &[u8]) -> Result<Vec<u8>, u64> {
        let old: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
        let mut out = Vec::with_capacity(before.len());
        let mut at = 0usize;
        for hunk in &self.hunks {
            let fail = Err(hunk.old_start);
            let start = hunk.old_index();
            let Some(untouched) = old.get(at..start) else {
                return fail;
            };
            untouched
                .iter()
                .for_each(|line| out.extend_from_slice(line));
            at = start;
            let mut last = LineKind::Added;
            for line in hunk.lines() {
                last = line.kind;
                if line.kind != LineKind::Added {
                    if !old.get(at).is_some_and(|have| line.is(have)) {
                        return fail;
                    }
                    at += 1;
                }
                if line.kind != LineKind::Removed {
                    line.write(&mut out);
                }
            }
            if last != LineKind::Context && at != old.len() {
                return fail;
            }
        }
        old.get(at..)
            .unwrap_or_default()
            .iter()
            .for_each(|line| out.extend_from_slice(line));
        Ok(out)
    }
}

/// The kind of change to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The file did not exist.
    Create,
    /// The file existed and stays where it is.
    Modify,
    /// The file goes away.
    Delete,
    /// The file moves here and may change on the way.
    Rename {
        /// Where it was.
        from: RepoPath,
    },
    /// The file is a copy, which may differ from what it was copied from.
    Copy {
        /// What it was copied from.
        from: RepoPath,
    },
}

impl Change {
    /// The other path that the change reads: the source of a rename or a copy.
    #[must_use]
    pub fn from(&self) -> Option<&RepoPath> {
        match self {
            Self::Rename { from } | Self::Copy { from } => Some(from),
            Self::Create | Self::Modify | Self::Delete => None,
        }
    }
}

/// The modes that git gives to entries of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileMode {
    /// 100644: a plain file.
    Regular,
    /// 100755: a file that may be executed.
    Executable,
    /// 120000: a symbolic link; its content is where it points.
    Symlink,
    /// 160000: a commit of another repository.
    Gitlink,
}

impl FileMode {
    /// Reads the six octal digits that git writes. No other mode is a mode of git's trees.
    #[must_use]
    pub fn parse(digits: &[u8]) -> Option<Self> {
        match digits {
            b"100644" => Some(Self::Regular),
            b"100755" => Some(Self::Executable),
            b"120000" => Some(Self::Symlink),
            b"160000" => Some(Self::Gitlink),
            _ => None,
        }
    }

    /// The mode as git writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Regular => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Gitlink => "160000",
        }
    }
}

/// Whether a file's content can be read as lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Content {
    /// Lines.
    Text,
    /// Bytes that the patch holds and does not show as lines.
    Binary,
    /// Bytes that the patch only says to differ.
    Omitted,
}

/// One changed place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The first line before, counted from 1; with no lines, the line after which it stands.
    pub old_start: u64,
    /// How many lines it covers before.
    pub old_lines: u64,
    /// The first line afterwards, counted as `old_start` is.
    pub new_start: u64,
    /// How many lines it covers afterwards.
    pub new_lines: u64,
    /// The lines with their markers, as git writes them. Held as one piece, so that a patch of many short lines
    /// costs no more memory than its own size.
    pub(crate) body: Vec<u8>,
}

/// Where git says "the file ends here, without a newline".
pub(crate) const NO_NEWLINE: &[u8] = b"\\ No newline at end of file";

impl Hunk {
    /// The lines from top to bottom.
    pub fn lines(&self) -> impl Iterator<Item = HunkLine<'_>> {
        let mut rest = self.body.as_slice();
        std::iter::from_fn(move || {
            let (line, mut after) = split_line(rest)?;
            let (marker, text) = line.split_first()?;
            let kind = match marker {
                b'+' => LineKind::Added,
                b'-' => LineKind::Removed,
                _ => LineKind::Context,
            };
            let mut end = LineEnd::Newline;
            if let Some((NO_NEWLINE, past)) = split_line(after) {
                end = LineEnd::EndOfFile;
                after = past;
            }
            rest = after;
            Some(HunkLine { kind, text, end })
        })
    }

    /// How many lines of the old file stand before this hunk.
    pub(crate) fn old_index(&self) -> usize {
        index(self.old_start, self.old_lines)
    }

    /// How many lines of the new file stand before this hunk.
    pub(crate) fn new_index(&self) -> usize {
        index(self.new_start, self.new_lines)
    }
}

fn index(start: u64, lines: u64) -> usize {
    let index = if lines == 0 {
        start
    } else {
        start.saturating_sub(1)
    };
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// Splits off the first line; `None` if no newline is left.
pub(crate) fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

/// One line of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HunkLine<'a> {
    /// Which side it stands on.
    pub kind: LineKind,
    /// Its bytes, without marker and newline. A carriage return is part of the text.
    pub text: &'a [u8],
    /// What follows it in the file.
    pub end: LineEnd,
}

impl HunkLine<'_> {
    fn is(&self, line: &[u8]) -> bool {
        match self.end {
            LineEnd::Newline => line.strip_suffix(b"\n") == Some(self.text),
            LineEnd::EndOfFile => line == self.text,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.text);
        if self.end == LineEnd::Newline {
            out.push(b'\n');
        }
    }
}

/// Which side of a change a line stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineKind {
    /// On both sides.
    Context,
    /// Only before.
    Removed,
    /// Only afterwards.
    Added,
}

/// What follows a line in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineEnd {
    /// A newline.
    Newline,
    /// Nothing: the file ends there, without a newline.
    EndOfFile,
}
