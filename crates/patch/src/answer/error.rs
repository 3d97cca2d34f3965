//! Why an answer gives no change.

use crucible_model::{Code, Finding, RepoPath, RepoPathError};

use crate::parse::{PatchError, PatchErrorKind};

/// Why an answer gives no change. The texts are written to be handed back to who answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Nothing was said.
    #[error("the answer holds no text; answer in the form that was asked for")]
    Empty,
    /// So much was said that who received it stopped reading.
    #[error(
        "the answer was so long that it was not read to its end; answer with the changed files only"
    )]
    Unread,
    /// More was said than is read.
    #[error(
        "the answer has {bytes} bytes, the limit is {limit}; answer with the changed files only"
    )]
    TooLarge {
        /// The size of the answer.
        bytes: u64,
        /// The largest size that is read.
        limit: u64,
    },
    /// Only prose.
    #[error("the answer holds no edit in the format that was asked for; answer in that format")]
    NoEdit,
    /// A diff was asked for, and no line of the answer begins one.
    #[error(
        "this is not a diff: its first line has to begin with `diff --git`, and it begins with {begins:?}; answer with the \
         output of `git diff` and nothing else"
    )]
    NoDiff {
        /// The first line, shortened.
        begins: String,
    },
    /// A diff without git's own first line.
    #[error(
        "this is a diff without its first line: the first line has to begin with `diff --git`, as in `diff --git a/PATH \
         b/PATH`; write one above each `---`, or answer with the output of `git diff`"
    )]
    NoDiffHeader {
        /// The line of the answer with `---`, counted from 1.
        line: u64,
    },
    /// An edit in another format than the one asked for.
    #[error(
        "line {line}: this looks like {found}, which is not the format that was asked for; answer in that format only"
    )]
    WrongFormat {
        /// The line of the answer, counted from 1.
        line: u64,
        /// What it looks like.
        found: &'static str,
    },
    /// A piece of a file in a form that only takes whole files.
    #[error(
        "the block for {path} has only a part of the file; answer with search/replace blocks or with the whole file"
    )]
    PartOfFile {
        /// The file.
        path: RepoPath,
    },
    /// An edit that does not say which file it is for.
    #[error(
        "line {line}: this edit does not say which file it is for; write `FILE: path` above it"
    )]
    NoPath {
        /// The line of the answer, counted from 1.
        line: u64,
    },
    /// A path that does not lead inside the repository.
    #[error("line {line}: {path:?} is not a path inside the repository: {source}")]
    BadPath {
        /// The line of the answer, counted from 1.
        line: u64,
        /// The path as it was written, shortened.
        path: String,
        /// What is wrong with it.
        source: RepoPathError,
    },
    /// An edit that names two files.
    #[error("line {line}: the edit is named both {first} and {second}")]
    PathsDisagree {
        /// The line of the answer, counted from 1.
        line: u64,
        /// The name above the block.
        first: RepoPath,
        /// The name at the block's opening.
        second: RepoPath,
    },
    /// Two different contents for one file.
    #[error("{path} is given twice with different contents; give each file once")]
    TwoAnswers {
        /// The file.
        path: RepoPath,
    },
    /// More than one diff.
    #[error("the answer holds more than one diff; give one")]
    TwoDiffs,
    /// Something beside the diff.
    #[error(
        "there is text around the diff; answer with the diff alone: its first line begins with `diff --git`, and nothing \
         comes before or after it, no sentence and no code fence"
    )]
    TextAroundDiff {
        /// The line of the answer, counted from 1.
        line: u64,
    },
    /// A block that is never closed: the answer was cut off.
    #[error(
        "line {line}: the code block that begins here is not closed; the answer may have been cut off"
    )]
    UnclosedFence {
        /// The line of the answer, counted from 1.
        line: u64,
    },
    /// A text with code blocks of its own in a fence that is no longer than theirs.
    #[error("{path} holds code blocks itself; put it into a fence of four or more backticks")]
    AmbiguousFence {
        /// The file.
        path: RepoPath,
    },
    /// A search-and-replace block whose markers are not in order.
    #[error("line {line}: {why}")]
    BrokenBlock {
        /// The line of the answer, counted from 1.
        line: u64,
        /// What is not in order.
        why: &'static str,
    },
    /// More edits than are carried out.
    #[error("the answer holds more than {limit} edits; give the files whole")]
    TooManyEdits {
        /// How many are carried out.
        limit: u64,
    },
    /// An edit of a file that is not there.
    #[error(
        "{path} is not there, so nothing in it can be replaced; name a file that is there, as it was shown"
    )]
    UnknownFile {
        /// The file.
        path: RepoPath,
    },
    /// A block that would create a file that is there.
    #[error("{path} already exists; give the lines to replace")]
    EmptySearch {
        /// The file.
        path: RepoPath,
    },
    /// The lines to replace are not there, or in several places.
    #[error(
        "edit {edit}: the lines to replace stand {matches} times in {path} and have to stand there once{}",
        nearest_hint(nearest)
    )]
    NotOneMatch {
        /// The file.
        path: RepoPath,
        /// Which edit of the answer, counted from 1.
        edit: u64,
        /// How often the lines were found.
        matches: u64,
        /// The lines of the file that are most like them, with their numbers; empty when none is.
        nearest: String,
    },
    /// A comment that stands for code left out.
    #[error(
        "{path}, line {line} of the new text: {text:?} stands for code that was left out; write it all"
    )]
    Elided {
        /// The file.
        path: RepoPath,
        /// The line of the new text, counted from 1.
        line: u64,
        /// The comment, shortened.
        text: String,
    },
    /// A file that is not UTF-8 and so cannot be given as text.
    #[error("{path} is not UTF-8, so it cannot be replaced as a whole; use search and replace")]
    NotText {
        /// The file.
        path: RepoPath,
    },
    /// Text that does not follow the grammar of its language.
    #[error(
        "{path}: {place} has a syntax error at line {line}; answer with whole, correct definitions"
    )]
    BrokenSyntax {
        /// The file.
        path: RepoPath,
        /// The line of the text, counted from 1.
        line: u64,
        /// Which text.
        place: &'static str,
    },
    /// A text that is not parsed to its end.
    #[error(
        "{path}: the text is too large to be put in by definitions (limit {limit} bytes); answer with less"
    )]
    TooMuchSyntax {
        /// The file.
        path: RepoPath,
        /// The largest text that is parsed, in bytes.
        limit: u64,
    },
    /// A block without a definition.
    #[error(
        "the block for {path} holds no definition; answer with the functions or types that change"
    )]
    NoDefinition {
        /// The file.
        path: RepoPath,
    },
    /// A definition to delete that is not there.
    #[error(
        "{path} has no definition {name:?} to delete; name one that it has, with its class or `impl` in front"
    )]
    NoSuchDefinition {
        /// The file.
        path: RepoPath,
        /// The name as it was written.
        name: String,
    },
    /// A name that more than one definition has.
    #[error(
        "{name:?} stands in {place} twice ({path}: lines {first} and {second}); write it inside its `impl`, class or \
         module, or change another place"
    )]
    SameName {
        /// The file.
        path: RepoPath,
        /// The name.
        name: String,
        /// The line of one definition, counted from 1.
        first: u64,
        /// The line of another.
        second: u64,
        /// Where both stand.
        place: &'static str,
    },
    /// A method that is not there and does not say where it belongs.
    #[error("{path} has no method {name:?}; write a new method inside its `impl` or class")]
    NoContainer {
        /// The file.
        path: RepoPath,
        /// The name.
        name: String,
    },
    /// A statement that the file does not have.
    #[error(
        "{path}, line {line} of the block: {text:?} is not a definition; answer with definitions and imports only"
    )]
    NotADefinition {
        /// The file.
        path: RepoPath,
        /// The line of the block, counted from 1.
        line: u64,
        /// Its first line, shortened.
        text: String,
    },
    /// A declaration of several names of which only some are given.
    #[error("{path} declares {names} together; give the whole declaration")]
    PartOfDeclaration {
        /// The file.
        path: RepoPath,
        /// The names that it declares.
        names: String,
    },
    /// Definitions that stand inside each other.
    #[error("{path}: the definitions of the answer overlap in the file; give the outer one whole")]
    Tangled {
        /// The file.
        path: RepoPath,
    },
    /// The diff cannot be read.
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// The diff does not fit the file.
    #[error(
        "the change at line {line} of {path} does not fit the file; make the diff from its present content"
    )]
    DoesNotApply {
        /// The file.
        path: RepoPath,
        /// The line of the file, counted from 1; 0 for the file as a whole.
        line: u64,
    },
}

impl AnswerError {
    /// The code of the finding that this error makes.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Empty => Code::new("answer-empty"),
            Self::TooLarge { .. } | Self::Unread => Code::new("answer-too-large"),
            Self::NoEdit | Self::NoDiff { .. } | Self::NoDiffHeader { .. } => {
                Code::new("answer-no-edit")
            }
            Self::WrongFormat { .. } | Self::PartOfFile { .. } => Code::new("answer-wrong-format"),
            Self::NoPath { .. } => Code::new("answer-no-path"),
            Self::BadPath { .. } => Code::new("answer-bad-path"),
            Self::PathsDisagree { .. } => Code::new("answer-paths-disagree"),
            Self::TwoAnswers { .. } => Code::new("answer-two-answers"),
            Self::TwoDiffs => Code::new("answer-two-diffs"),
            Self::TextAroundDiff { .. } => Code::new("answer-text-around-diff"),
            Self::UnclosedFence { .. } => Code::new("answer-unclosed-fence"),
            Self::AmbiguousFence { .. } => Code::new("answer-ambiguous-fence"),
            Self::BrokenBlock { .. } => Code::new("answer-broken-block"),
            Self::TooManyEdits { .. } => Code::new("answer-too-many-edits"),
            Self::UnknownFile { .. } => Code::new("answer-unknown-file"),
            Self::EmptySearch { .. } => Code::new("answer-empty-search"),
            Self::NotOneMatch { .. } => Code::new("answer-not-one-match"),
            Self::Elided { .. } => Code::new("answer-elided"),
            Self::NotText { .. } => Code::new("answer-not-text"),
            Self::BrokenSyntax { .. } => Code::new("answer-broken-syntax"),
            Self::TooMuchSyntax { .. } => Code::new("answer-too-much-syntax"),
            Self::NoDefinition { .. } => Code::new("answer-no-definition"),
            Self::NoSuchDefinition { .. } => Code::new("answer-no-such-definition"),
            Self::SameName { .. } => Code::new("answer-same-name"),
            Self::NoContainer { .. } => Code::new("answer-no-container"),
            Self::NotADefinition { .. } => Code::new("answer-not-a-definition"),
            Self::PartOfDeclaration { .. } | Self::Tangled { .. } => {
                Code::new("answer-part-of-declaration")
            }
            Self::Patch(error) => error.code(),
            Self::DoesNotApply { .. } => Code::new("answer-does-not-apply"),
        }
    }

    /// Whether only the form of the answer is at fault: it proposes no change that could be judged. A path outside of the
    /// repository is more than that.
    #[must_use]
    pub fn is_of_form(&self) -> bool {
        !matches!(
            self,
            Self::BadPath { .. }
                | Self::Patch(PatchError {
                    kind: PatchErrorKind::BadPath { .. },
                    ..
                })
        )
    }

    /// The finding for a report.
    #[must_use]
    pub fn finding(&self) -> Finding {
        let subject = match self {
            Self::Patch(error) => return error.finding(),
            Self::PathsDisagree { first: path, .. }
            | Self::TwoAnswers { path }
            | Self::AmbiguousFence { path }
            | Self::PartOfFile { path }
            | Self::UnknownFile { path }
            | Self::EmptySearch { path }
            | Self::NotOneMatch { path, .. }
            | Self::Elided { path, .. }
            | Self::NotText { path }
            | Self::BrokenSyntax { path, .. }
            | Self::TooMuchSyntax { path, .. }
            | Self::NoDefinition { path }
            | Self::SameName { path, .. }
            | Self::NoSuchDefinition { path, .. }
            | Self::NoContainer { path, .. }
            | Self::NotADefinition { path, .. }
            | Self::PartOfDeclaration { path, .. }
            | Self::Tangled { path }
            | Self::DoesNotApply { path, .. } => path.to_string(),
            Self::BadPath { path, .. } => path.clone(),
            Self::WrongFormat { line, .. }
            | Self::NoPath { line }
            | Self::NoDiffHeader { line }
            | Self::TextAroundDiff { line }
            | Self::UnclosedFence { line }
            | Self::BrokenBlock { line, .. } => format!("line {line}"),
            Self::Empty
            | Self::TooLarge { .. }
            | Self::Unread
            | Self::TooManyEdits { .. }
            | Self::NoEdit
            | Self::NoDiff { .. }
            | Self::TwoDiffs => "answer".to_owned(),
        };
        Finding::error(self.code(), subject, self.to_string())
    }
}

fn nearest_hint(nearest: &str) -> String {
    if nearest.is_empty() {
        "; none of these lines is in the file".to_owned()
    } else {
        format!("; the most similar lines are:\n{nearest}")
    }
}
