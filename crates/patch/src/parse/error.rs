//! Why a text is not a patch.

use crucible_model::{Code, Finding, RepoPathError};

use crate::entry::TYPE_CHANGE;

/// Why a text is not a patch, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {kind}")]
pub struct PatchError {
    /// The line of the patch, counted from 1.
    pub line: u64,
    /// What is wrong there.
    pub kind: PatchErrorKind,
}

/// What is wrong with a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchErrorKind {
    /// More bytes than are read.
    #[error("the patch has {bytes} bytes, the limit is {limit}; split the change")]
    TooLarge {
        /// The size of the patch.
        bytes: u64,
        /// The largest size that is read.
        limit: u64,
    },
    /// There is nothing in it.
    #[error("the patch is empty; answer with a diff that begins with `diff --git`")]
    Empty,
    /// The first line is not a section header.
    #[error("a patch starts with `diff --git`; remove the text before it")]
    NotGitDiff,
    /// The last line has no newline, so something may be missing.
    #[error("the last line has no newline; the patch was cut off")]
    Truncated,
    /// A header ends with a carriage return.
    #[error("a header ends with a carriage return; write patches with LF line ends")]
    CarriageReturn,
    /// A line that belongs to no section.
    #[error("this line belongs to no file section; a patch holds nothing but sections")]
    Junk,
    /// A file section that does not begin with its own `diff --git`.
    #[error(
        "a file section begins without its own `diff --git` line; write `diff --git a/path b/path` above it"
    )]
    SectionWithoutHeader,
    /// A header line that git does not write.
    #[error("unknown header; remove the line")]
    UnknownHeader,
    /// The same header twice in a section.
    #[error("duplicate header; remove one")]
    RepeatedHeader,
    /// Two headers of a section contradict each other, or one is missing.
    #[error(
        "the headers of this section disagree: {why}; name the same file and the same change in all of them"
    )]
    HeadersDisagree {
        /// Which ones.
        why: &'static str,
    },
    /// A name with bytes that have to be quoted, or a quoted name with an escape that git does not write.
    #[error(
        "the name is not quoted the way git quotes names; write plain names bare and odd ones as `git diff` prints them"
    )]
    BadQuoting,
    /// A name that is not a path inside the repository.
    #[error("{name:?} is not a path inside the repository: {source}")]
    BadPath {
        /// The name, shortened and decoded as far as it can be.
        name: String,
        /// What is wrong with it.
        source: RepoPathError,
    },
    /// A mode that git's trees do not have.
    #[error(
        "the mode must be 100644, 100755, 120000 or 160000; leave mode lines out, or write 100644"
    )]
    BadMode,
    /// A section that changes nothing.
    #[error("this section changes nothing; leave it out")]
    NothingChanged,
    /// A second section for a path.
    #[error("{path:?} is changed by two sections; join them")]
    PathTwice {
        /// The path.
        path: String,
    },
    /// A path is removed and created again as another kind of entry.
    #[error(
        "{path:?} becomes another kind of entry: a file, a link or a submodule; do that by hand"
    )]
    TypeChange {
        /// The path.
        path: String,
    },
    /// A hunk header that cannot be read, or whose numbers are out of range.
    #[error("invalid hunk header; write `@@ -line,count +line,count @@`")]
    BadHunkHeader,
    /// The hunk has fewer or more lines than its header says, or a line without marker.
    #[error(
        "the hunk's lines do not agree with the counts in its header; begin each line with a blank, `-` or `+`, and count them again"
    )]
    HunkCounts,
    /// A hunk that only shows context.
    #[error("the hunk changes nothing; leave it out")]
    EmptyHunk,
    /// Hunks overlap, stand in the wrong order, or state positions that do not fit together.
    #[error(
        "the hunk overlaps the one before it, or its two positions do not fit together; order the hunks by line, join \
         those that overlap, and number them from the present file"
    )]
    HunkOrder,
    /// "No newline at end of file" where the file cannot end.
    #[error(
        "`\\ No newline at end of file` stands where the file does not end; write it only below a file's last line"
    )]
    MisplacedMarker,
    /// The body of a binary patch cannot be read.
    #[error("the binary patch cannot be read; make it with `git diff --binary`")]
    BadBinary,
}

impl PatchError {
    /// The code of the finding that this error makes.
    #[must_use]
    pub fn code(&self) -> Code {
        match &self.kind {
            PatchErrorKind::TooLarge { .. } => Code::new("patch-too-large"),
            PatchErrorKind::Empty | PatchErrorKind::NothingChanged | PatchErrorKind::EmptyHunk => {
                Code::new("patch-empty")
            }
            PatchErrorKind::NotGitDiff => Code::new("patch-not-git-diff"),
            PatchErrorKind::Truncated => Code::new("patch-truncated"),
            PatchErrorKind::CarriageReturn => Code::new("patch-crlf-header"),
            PatchErrorKind::Junk => Code::new("patch-junk"),
            PatchErrorKind::SectionWithoutHeader => Code::new("patch-section-without-header"),
            PatchErrorKind::UnknownHeader => Code::new("patch-unknown-header"),
            PatchErrorKind::RepeatedHeader => Code::new("patch-repeated-header"),
            PatchErrorKind::HeadersDisagree { .. } => Code::new("patch-headers-disagree"),
            PatchErrorKind::BadQuoting => Code::new("patch-bad-quoting"),
            PatchErrorKind::BadPath {
                source: RepoPathError::NotUtf8,
                ..
            } => Code::new("patch-path-not-utf8"),
            PatchErrorKind::BadPath { .. } => Code::new("patch-bad-path"),
            PatchErrorKind::TypeChange { .. } => TYPE_CHANGE,
            PatchErrorKind::BadMode => Code::new("patch-bad-mode"),
            PatchErrorKind::PathTwice { .. } => Code::new("patch-path-twice"),
            PatchErrorKind::BadHunkHeader => Code::new("patch-bad-hunk-header"),
            PatchErrorKind::HunkCounts => Code::new("patch-hunk-counts"),
            PatchErrorKind::HunkOrder => Code::new("patch-hunk-order"),
            PatchErrorKind::MisplacedMarker => Code::new("patch-misplaced-marker"),
            PatchErrorKind::BadBinary => Code::new("patch-bad-binary"),
        }
    }

    /// The finding for a report.
    #[must_use]
    pub fn finding(&self) -> Finding {
        Finding::error(
            self.code(),
            format!("line {}", self.line),
            self.kind.to_string(),
        )
    }
}
