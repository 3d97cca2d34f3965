//! The result of a judge: a list of findings and whether they allow the change.
//!
//! A verdict is data, not an error. `docs/codes/` has a heading for every code that explains it and what to
//! do.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::exit::ExitStatus;

/// The name of one kind of finding: lowercase words joined by `-`, its family first (`patch-path-denied`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Code(Cow<'static, str>);

impl Code {
    /// Creates a code from a literal. `cargo xtask tidy` finds these literals and requires their heading.
    #[must_use]
    pub const fn new(code: &'static str) -> Self {
        Self(Cow::Borrowed(code))
    }

    /// The code as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth knowing; changes nothing.
    Info,
    /// A person should look at it, but it does not block.
    Warning,
    /// Refuses the matter.
    Error,
}

/// One observation of a judge.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Which kind of observation this is.
    pub code: Code,
    /// How much it weighs.
    pub level: Level,
    /// What the finding is about: a path, a line, a name or a value. The printer escapes it.
    pub subject: String,
    /// What the reader can do about it, one sentence.
    pub hint: String,
}

impl Finding {
    /// A finding that refuses the matter.
    pub fn error(code: Code, subject: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code,
            level: Level::Error,
            subject: subject.into(),
            hint: hint.into(),
        }
    }

    /// Creates a finding that does not block but deserves a look.
    pub fn warning(code: Code, subject: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code,
            level: Level::Warning,
            subject: subject.into(),
            hint: hint.into(),
        }
    }

    /// A finding that only informs.
    pub fn info(code: Code, subject: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code,
            level: Level::Info,
            subject: subject.into(),
            hint: hint.into(),
        }
    }
}

/// The finding on one line: `code subject: hint`. Nothing in it is escaped.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.code, self.subject, self.hint)
    }
}

/// What a judge decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// No finding refuses the matter.
    Pass,
    /// At least one finding does.
    Fail,
}

impl Outcome {
    /// Returns how a command with this verdict ends.
    #[must_use]
    pub const fn exit_status(self) -> ExitStatus {
        match self {
            Self::Pass => ExitStatus::Success,
            Self::Fail => ExitStatus::Refused,
        }
    }
}

/// The findings of one check, in order of creation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    findings: Vec<Finding>,
}

impl Verdict {
    /// A verdict of these findings.
    #[must_use]
    pub fn new(findings: Vec<Finding>) -> Self {
        Self { findings }
    }

    /// Adds one finding.
    pub fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Adds every finding of `other`.
    pub fn merge(&mut self, other: Self) {
        self.findings.extend(other.findings);
    }

    /// Returns the findings in order of creation.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// [`Outcome::Fail`] as soon as one finding is an error.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        if self
            .findings
            .iter()
            .any(|finding| finding.level == Level::Error)
        {
            Outcome::Fail
        } else {
            Outcome::Pass
        }
    }

    /// Whether nothing refuses the matter.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.outcome() == Outcome::Pass
    }

    /// The findings that refuse the matter.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(|finding| finding.level == Level::Error)
    }

    /// The report that every judging command prints with `--json`.
    #[must_use]
    pub fn report(&self, schema_version: &'static str) -> VerdictReport {
        VerdictReport {
            schema_version: schema_version.to_owned(),
            verdict: self.outcome(),
            findings: self.findings.clone(),
        }
    }
}

/// The shape in which every judging command states its verdict as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictReport {
    /// Names the shape and its version.
    pub schema_version: String,
    /// Pass or fail.
    pub verdict: Outcome,
    /// Why.
    pub findings: Vec<Finding>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_is_one_line_of_code_subject_hint() {
        let finding = Finding::warning(
            Code::new("patch-path-denied"),
            "src/a.rs",
            "Leave it alone.",
        );
        assert_eq!(
            finding.to_string(),
            "patch-path-denied src/a.rs: Leave it alone."
        );
    }
}
