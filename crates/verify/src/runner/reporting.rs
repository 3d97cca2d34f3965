//! How a command reports test by test, and where.

use super::Call;
use super::spec::Runner;

/// The places of a report, and the repository's manifests.
pub struct ReportContext<'a> {
    /// A file in the private directory that does not exist yet.
    pub file: &'a str,
    /// The private directory.
    pub dir: &'a str,
    /// Reads a manifest in the command's directory.
    pub read: &'a dyn Fn(&str) -> Option<String>,
    /// Every runner.
    pub runners: &'static [&'static dyn Runner],
}

/// How a command reports test by test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reporting {
    /// The runner that parses the report; if a script calls another runner, that one.
    pub runner: &'static str,
    /// The words of the command, changed as needed.
    pub command: Vec<String>,
    /// Option lists that programs read from variables; they are appended to existing values.
    pub options: Vec<(&'static str, String)>,
    /// Files in the private directory that the command needs, by name. They are not reports.
    pub needs: Vec<(&'static str, String)>,
    /// Where the report will be.
    pub place: ReportPlace,
}

/// Where a report is, once the command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportPlace {
    /// In the lines of its output.
    Output,
    /// The whole standard output.
    Stdout,
    /// The files of the private directory.
    Files,
    /// Files `TEST-*.xml` below directories of these names in the work tree.
    Tree(&'static [&'static str]),
}

impl Reporting {
    /// The lines of the output of the command as it is.
    pub(super) fn unchanged(call: &Call<'_>) -> Self {
        Self::lines(call.words.to_vec())
    }

    /// The lines of the output of this command.
    pub(super) fn lines(command: Vec<String>) -> Self {
        Self {
            runner: "",
            command,
            options: Vec::new(),
            needs: Vec::new(),
            place: ReportPlace::Output,
        }
    }

    /// Files in the private directory.
    pub(super) fn files(command: Vec<String>) -> Self {
        Self {
            place: ReportPlace::Files,
            ..Self::lines(command)
        }
    }
}
