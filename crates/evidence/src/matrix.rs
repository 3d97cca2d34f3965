//! The matrix: each requirement with its tests, and the run and commit that proved them.

use crucible_model::RunId;
use serde::{Deserialize, Serialize};

use crate::task::SpecFormat;

/// The requirements of a spec with their evidence. The schema is `docs/schemas/crucible-evidence-v1.schema.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceMatrix {
    /// The schema of this document.
    pub schema_version: MatrixVersion,
    /// The spec: its id, or the path of its folder in the repository.
    pub spec: String,
    /// The format of the spec.
    pub format: SpecFormat,
    /// The commit whose history and files were compared.
    pub commit: String,
    /// How many requirements there are of each state.
    pub counts: EvidenceCounts,
    /// The requirements, in the order of the spec.
    pub requirements: Vec<RequirementEvidence>,
}

/// The schema id of a matrix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MatrixVersion {
    /// The only version.
    #[default]
    #[serde(rename = "crucible-evidence-v1")]
    V1,
}

/// How many requirements there are of each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceCounts {
    /// Every test is proven.
    pub proven: u64,
    /// Some tests are proven.
    pub partial: u64,
    /// No test is proven, or none is named.
    pub none: u64,
}

/// A requirement with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequirementEvidence {
    /// The id of the requirement.
    pub id: String,
    /// Its title on one line.
    pub title: String,
    /// What its tests prove together.
    pub state: EvidenceState,
    /// The tests that it names.
    pub tests: Vec<TestEvidence>,
}

/// What the tests of a requirement prove together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceState {
    /// Every test is proven.
    Proven,
    /// Some are.
    Partial,
    /// None is, or none is named.
    None,
}

impl EvidenceState {
    /// Returns the words for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Partial => "partial",
            Self::None => "no evidence",
        }
    }
}

/// A test with the newest landed run that reported it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestEvidence {
    /// The name that its runner reports.
    pub name: String,
    /// The file that defines it.
    pub file: String,
    /// What is known of it.
    pub state: TestState,
    /// The run; absent if no landed run reported the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The commit that the run landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether the run's own change added the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<TestOrigin>,
}

/// Who brought a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestOrigin {
    /// It ran before the change, too.
    Existing,
    /// The change added it: its author wrote the code and the test.
    Added,
}

/// What is known of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestState {
    /// It passed in the run.
    Proven,
    /// It failed, was skipped or was flaky in the run.
    Failed,
    /// It passed in the run, also with the changed code broken on purpose.
    Unaffected,
    /// The requirement's text changed after the run.
    Outdated,
    /// The file at the commit does not define it.
    Gone,
    /// No landed run reported it.
    NotRun,
}

impl TestState {
    /// Returns the words for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Proven => "passed",
            Self::Failed => "did not pass",
            Self::Unaffected => "passes with broken code, too",
            Self::Outdated => "passed before the requirement changed",
            Self::Gone => "is not at this commit",
            Self::NotRun => "did not run",
        }
    }
}
