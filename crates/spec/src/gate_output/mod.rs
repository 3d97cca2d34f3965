//! The judgement of a spec, and its forms for other programs: SARIF for code scanning, and annotations of a pull request.

pub mod github;
mod judge;
pub mod sarif;

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use crucible_model::RepoPath;

use crate::gate::{GateFinding, GatePolicy, GateReport, OnPendingFixups, limit_words};
use crate::id::SpecId;
use crate::project::{SpecProject, repository_of};

pub use judge::SpecGate;

/// The most findings that are printed one by one. The JSON document has its own, smaller limit.
const MAX_SHOWN: usize = 5_000;

/// The findings as the text, SARIF and GitHub formats print them.
pub struct GateView<'a> {
    /// The judgement.
    pub report: &'a GateReport,
    /// The policy that it followed.
    pub policy: &'a GatePolicy,
    /// The first findings, each complete.
    pub findings: &'a [GateFinding],
    /// The number of findings left out.
    pub left_out: usize,
    places: Places,
}

/// Maps the file of a finding to a path in the repository.
pub struct Places {
    /// The spec's directory relative to the repository's root, with `/` between names.
    spec: String,
}

impl<'a> GateView<'a> {
    /// Creates the view of a judgement with these findings.
    #[must_use]
    pub fn new(
        report: &'a GateReport,
        policy: &'a GatePolicy,
        findings: &'a [GateFinding],
        places: Places,
    ) -> Self {
        Self {
            report,
            policy,
            findings: &findings[..findings.len().min(MAX_SHOWN)],
            left_out: findings.len().saturating_sub(MAX_SHOWN),
            places,
        }
    }
}

impl Places {
    /// Returns the places of a spec.
    #[must_use]
    pub fn new(project: &SpecProject, spec: &SpecId) -> Self {
        let root = project.root();
        let dir = project.spec(spec);
        let repository = repository_of(root).unwrap_or(root);
        let below: &Path = dir.strip_prefix(repository).unwrap_or(&dir);
        let names = below
            .components()
            .map(|name| name.as_os_str().to_string_lossy().into_owned());
        Self {
            spec: names.collect::<Vec<_>>().join("/"),
        }
    }

    /// The file of a finding relative to the repository's root. If a receipt names no possible file of
    /// the spec, it is the spec's directory.
    fn file(&self, finding: &GateFinding) -> String {
        match finding.file.parse::<RepoPath>() {
            Ok(path) => format!("{}/{path}", self.spec),
            Err(_) => self.spec.clone(),
        }
    }
}

/// Describes the requirements of a policy.
impl Display for GatePolicy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            min_phase,
            pending_fixups,
            max_phase_age,
        } = self;
        let before = if min_phase.predecessor().is_some() {
            " and every phase before it"
        } else {
            ""
        };
        let age = max_phase_age.map_or_else(
            || "of any age".to_owned(),
            |age| format!("at most {} old", limit_words(age)),
        );
        let fixups = match pending_fixups {
            OnPendingFixups::Allow => "with or without pending fixups",
            OnPendingFixups::Refuse => "without pending fixups",
        };
        write!(f, "{min_phase}{before}, {age}, {fixups}")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::phase_id::PhaseId;

    #[test]
    fn each_part_of_a_policy_has_its_words() {
        let day = Duration::from_secs(86_400);
        let strict = GatePolicy {
            min_phase: PhaseId::Final,
            max_phase_age: Some(7 * day),
            pending_fixups: OnPendingFixups::Refuse,
        };
        assert_eq!(
            strict.to_string(),
            "final and every phase before it, at most 7d old, without pending fixups"
        );
        let first = GatePolicy {
            min_phase: PhaseId::Requirements,
            ..GatePolicy::default()
        };
        assert_eq!(
            first.to_string(),
            "requirements, of any age, with or without pending fixups"
        );
    }
}
