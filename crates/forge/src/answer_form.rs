//! How an agent gives what it made.

/// How an agent gives what it made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    /// It writes both files into its working directory, a copy of the project.
    WritesFiles,
    /// It has no tools, and answers with both files.
    AnswersWithFiles,
    /// Nobody is asked: both files are taken as they stand.
    StandsAlready,
}
