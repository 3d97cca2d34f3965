//! Checks that an export is complete: five consistent documents with a safe plan, and no secret.

use super::meta::check_meta;
use super::{CONFIG_SNAPSHOT, DEBATE_TRANSCRIPT, Export, ExportError};
use crate::artifact::{
    ArtifactType, CheckedArtifact, ManifestArtifact, ManifestV1, PlanV1, ShortHash,
};
use crate::session::secrets_in;

/// The documents of an export in writing order.
const KINDS: [ArtifactType; 5] = [
    ArtifactType::Search,
    ArtifactType::Inspect,
    ArtifactType::Plan,
    ArtifactType::Recipe,
    ArtifactType::Manifest,
];

/// The file name of an artifact.
#[must_use]
pub fn export_filename(kind: ArtifactType) -> &'static str {
    match kind {
        ArtifactType::Search => "search.json",
        ArtifactType::Inspect => "inspect.json",
        ArtifactType::Plan => "plan.json",
        ArtifactType::Recipe => "recipe.json",
        ArtifactType::Manifest => super::MANIFEST,
    }
}

/// The manifest entry of an artifact's file.
#[must_use]
pub fn manifest_entry(artifact: &CheckedArtifact) -> ManifestArtifact {
    ManifestArtifact {
        kind: artifact.kind().as_str().to_owned(),
        filename: export_filename(artifact.kind()).to_owned(),
        schema: artifact.kind().schema_id().to_owned(),
        content_hash: artifact.content_hash().clone(),
    }
}

/// Checks an export, and lists its files in writing order: the manifest is last.
pub(crate) fn check<'a>(export: &Export<'a>) -> Result<Vec<(&'static str, &'a str)>, ExportError> {
    let wrong = |why: String| ExportError::Contents { why };
    if export.artifacts.len() != KINDS.len() {
        return Err(wrong(format!(
            "it has {} documents instead of {}",
            export.artifacts.len(),
            KINDS.len()
        )));
    }
    let find = |kind: ArtifactType| {
        let found = export
            .artifacts
            .iter()
            .find(|artifact| artifact.kind() == kind);
        found.ok_or_else(|| wrong(format!("it has no {} document", kind.as_str())))
    };
    let artifacts = KINDS.into_iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let [search, inspect, plan, recipe, manifest] = artifacts.as_slice() else {
        return Err(wrong("a document is missing".to_owned()));
    };
    judge_plan(plan)?;
    judge_manifest(manifest, &[*search, *inspect, *plan, *recipe])?;

    let mut files: Vec<(&'static str, &'a str)> = [search, inspect, plan, recipe]
        .map(|artifact| (export_filename(artifact.kind()), artifact.json()))
        .to_vec();
    for (name, json) in [
        (DEBATE_TRANSCRIPT, export.debate_transcript),
        (CONFIG_SNAPSHOT, export.config_snapshot),
    ] {
        files.push((name, json));
    }
    files.push((super::MANIFEST, manifest.json()));
    for (name, json) in &files {
        let rules = secrets_in(json);
        if !rules.is_empty() {
            return Err(ExportError::Secret { file: name, rules });
        }
    }
    check_meta(DEBATE_TRANSCRIPT, export.debate_transcript).map_err(wrong)?;
    check_meta(CONFIG_SNAPSHOT, export.config_snapshot).map_err(wrong)?;
    Ok(files)
}

fn judge_plan(artifact: &CheckedArtifact) -> Result<(), ExportError> {
    let wrong = |why: &str| ExportError::Contents {
        why: why.to_owned(),
    };
    let plan: PlanV1 = serde_json::from_str(artifact.json())
        .map_err(|_| wrong("its plan document is not a plan"))?;
    if !plan.safety_validated || !plan.safety_violations.is_empty() {
        return Err(ExportError::UnsafePlan {
            violations: plan.safety_violations,
        });
    }
    if PlanV1::hash_of(&plan.steps) != plan.plan_hash {
        return Err(wrong("the plan's hash is not the hash of its steps"));
    }
    Ok(())
}

fn judge_manifest(
    artifact: &CheckedArtifact,
    others: &[&CheckedArtifact],
) -> Result<(), ExportError> {
    let wrong = |why: &str| ExportError::Contents {
        why: why.to_owned(),
    };
    let manifest: ManifestV1 =
        serde_json::from_str(artifact.json()).map_err(|_| wrong("its manifest is invalid"))?;
    let is_hashed = |artifact: &&CheckedArtifact| {
        ShortHash::compute(artifact.json().as_bytes()) == *artifact.content_hash()
    };
    let listed: Vec<ManifestArtifact> = others
        .iter()
        .map(|artifact| manifest_entry(artifact))
        .collect();
    if manifest.artifacts == listed && others.iter().all(is_hashed) {
        Ok(())
    } else {
        Err(wrong(
            "the manifest does not match the order or the hashes of the documents",
        ))
    }
}
