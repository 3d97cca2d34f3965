//! The input of a hook: its variables, and the JSON object on its standard input.

use crucible_model::Outcome;
use serde::Serialize;

use crate::id::SpecId;
use crate::phase_id::PhaseId;
use crate::project::CRUCIBLE;
use crate::receipt::{FileRecord, HookMoment, PhaseStatus};

/// The schema name of a hook's input (`docs/schemas/crucible-hook-v1.schema.json`).
pub(crate) const HOOK_SCHEMA: &str = "crucible-hook-v1";

/// The phase or gate around which a hook runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSubject {
    /// The spec that is worked on.
    pub spec: SpecId,
    /// The phase; for a gate, the phase that it requires.
    pub phase: PhaseId,
    /// How the phase ended; absent before it, and at gates.
    pub status: Option<PhaseStatus>,
    /// The artifact of the phase, by its path in the spec's directory: the draft to be promoted, if there
    /// is one. The hook gets its path in the project.
    pub artifact: Option<FileRecord>,
    /// The receipt of the phase; absent while its id is unknown.
    pub receipt_id: Option<String>,
    /// The gate's verdict; absent before it, and at phases.
    pub verdict: Option<Outcome>,
}

impl HookSubject {
    /// Creates the subject of a phase or gate that has not run yet.
    #[must_use]
    pub fn before(spec: SpecId, phase: PhaseId) -> Self {
        Self {
            spec,
            phase,
            status: None,
            artifact: None,
            receipt_id: None,
            verdict: None,
        }
    }

    /// The object on the standard input of this hook, as one line.
    pub(super) fn document(&self, name: &str, moment: HookMoment) -> Vec<u8> {
        let hook_document = HookDocument {
            schema_version: HOOK_SCHEMA,
            hook: moment,
            name,
            spec_id: &self.spec,
            phase: self.phase,
            status: self.status,
            artifact: self.artifact.as_ref().map(|file| FileRecord {
                path: format!("{CRUCIBLE}/specs/{}/{}", self.spec, file.path),
                ..file.clone()
            }),
            receipt_id: self.receipt_id.as_deref(),
            verdict: self.verdict,
        };
        // It consists of texts and numbers, so serialisation cannot fail.
        let mut line = serde_json::to_vec(&hook_document).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// The variables of a hook, in addition to those that every program needs.
    pub(super) fn variables(&self, name: &str, moment: HookMoment) -> [(&'static str, String); 4] {
        [
            ("CRUCIBLE_SPEC_ID", self.spec.to_string()),
            ("CRUCIBLE_PHASE", self.phase.to_string()),
            ("CRUCIBLE_HOOK", moment.as_str().to_owned()),
            ("CRUCIBLE_HOOK_NAME", name.to_owned()),
        ]
    }
}

#[derive(Serialize)]
struct HookDocument<'a> {
    schema_version: &'static str,
    hook: HookMoment,
    name: &'a str,
    spec_id: &'a SpecId,
    phase: PhaseId,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<PhaseStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<FileRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Outcome>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hook_document_contains_only_known_facts() {
        let mut subject = HookSubject::before("export-data".parse().unwrap(), PhaseId::Design);
        let before = subject.document("lint", HookMoment::PrePhase);
        assert_eq!(
            String::from_utf8(before).unwrap(),
            "{\"schema_version\":\"crucible-hook-v1\",\"hook\":\"pre_phase\",\"name\":\"lint\",\"spec_id\":\"export-data\",\"phase\":\"design\"}\n"
        );
        subject.status = Some(PhaseStatus::Success);
        subject.receipt_id = Some("design-20241201-100000-0002".to_owned());
        let bytes = b"# Design\n";
        subject.artifact = Some(FileRecord {
            path: "context/draft.md".to_owned(),
            sha256: crucible_model::Digest::compute(bytes),
            bytes: bytes.len() as u64,
        });
        let after: serde_json::Value =
            serde_json::from_slice(&subject.document("lint", HookMoment::PostPhase)).unwrap();
        assert_eq!(after["status"], "success");
        assert_eq!(after["artifact"]["bytes"], 9);
        assert_eq!(
            after["artifact"]["path"],
            ".crucible/specs/export-data/context/draft.md"
        );
        subject.verdict = Some(Outcome::Fail);
        let gate: serde_json::Value =
            serde_json::from_slice(&subject.document("lint", HookMoment::PostGate)).unwrap();
        assert_eq!(
            (&gate["verdict"], &gate["hook"]),
            (&"fail".into(), &"post_gate".into())
        );
    }
}
