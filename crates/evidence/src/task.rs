//! The task of a spec that a run works on, with the requirements that it serves.

use std::fmt;

use crucible_model::Digest;
use serde::{Deserialize, Serialize};

use crate::named_test::NamedTest;

/// A task, as a run keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecTask {
    /// The spec: its id, or the path of its folder in the repository.
    pub spec: String,
    /// The format of the spec.
    pub format: SpecFormat,
    /// The id of the task.
    pub task: String,
    /// The requirements that the task serves; empty if it names none.
    pub requirements: Vec<RequirementTests>,
}

/// A requirement with the tests that it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequirementTests {
    /// Its id, unique in the spec.
    pub id: String,
    /// Its title on one line.
    pub title: String,
    /// The digest of its text without the lines that name tests.
    pub text: Digest,
    /// The tests that it names.
    pub tests: Vec<NamedTest>,
}

/// The format of a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpecFormat {
    /// `.crucible/specs/ID`.
    Crucible,
    /// `specs/NNN-name` of GitHub Spec Kit.
    SpecKit,
    /// `openspec/changes/NAME` or `openspec/specs/NAME`.
    OpenSpec,
    /// `.kiro/specs/NAME`.
    Kiro,
}

impl SpecFormat {
    /// Returns the name in documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Crucible => "crucible",
            Self::SpecKit => "spec-kit",
            Self::OpenSpec => "open-spec",
            Self::Kiro => "kiro",
        }
    }
}

impl fmt::Display for SpecFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
