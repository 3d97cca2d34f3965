//! Documents and inspections for the tests of this crate.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::{Timestamp, Untrusted};
use crucible_repo::BuildSystem;

use super::*;
use crate::inspect::{BuildFile, Inspection};

/// A fixed time.
pub(crate) fn instant() -> Timestamp {
    "2026-02-28T12:00:00Z".parse().unwrap()
}

/// A step at the top level, without variables.
pub(crate) fn step(name: &str, cmd: &str) -> PlanStep {
    PlanStep {
        name: name.to_owned(),
        cmd: cmd.to_owned(),
        cwd: ".".to_owned(),
        env: BTreeMap::new(),
        note: String::new(),
    }
}

/// The inspection of a repository that this system builds at its top level.
pub(crate) fn inspection(system: &str) -> Inspection {
    let system: BuildSystem = system.parse().unwrap();
    let artifact = InspectV1 {
        build_system: BuildFinding {
            name: system.as_str().to_owned(),
            confidence: system.confidence(),
            detected_files: Vec::new(),
        },
        ..inspect_document()
    };
    Inspection {
        artifact,
        build_files: Vec::new(),
        links: BTreeSet::new(),
        version_constraints: BTreeMap::new(),
        build_dir: ".".to_owned(),
        scripts: BTreeSet::new(),
        declared: BTreeSet::new(),
        reasons: Vec::new(),
        warnings: Vec::new(),
    }
}

/// A build file for [`Inspection::build_files`].
pub(crate) fn build_file(path: &str, content: &str) -> BuildFile {
    BuildFile {
        path: path.to_owned(),
        content: Untrusted::new(content),
    }
}

pub(crate) fn repo_at() -> InspectedRepository {
    InspectedRepository {
        full_name: "owner/tool".to_owned(),
        url: "https://example.org/owner/tool".to_owned(),
        selected_ref: "v1.2.3".to_owned(),
        resolved_commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
        default_branch: "main".to_owned(),
    }
}

pub(crate) fn search_document() -> SearchV1 {
    SearchV1 {
        schema: SearchV1::SCHEMA.to_owned(),
        query: "tool".to_owned(),
        queried_at: instant(),
        result_count: 1,
        rate_limited: false,
        cached: false,
        results: vec![SearchItem {
            rank: 1,
            score: 0.82,
            full_name: "owner/tool".to_owned(),
            name: "tool".to_owned(),
            description: String::new(),
            url: "https://example.org/owner/tool".to_owned(),
            stars: 4200,
            pushed_at: instant(),
            owner_type: OwnerType::Organization,
            has_releases: true,
            archived: false,
            fork: false,
            default_branch: "main".to_owned(),
            score_breakdown: ScoreBreakdown {
                exact_name: 0.4,
                partial_name: 0.0,
                star_score: 0.1449,
                recency: 0.1,
                verified_owner: 0.05,
                has_releases: 0.05,
                build_files: 0.1,
                penalties: 0.0,
            },
        }],
    }
}

pub(crate) fn inspect_document() -> InspectV1 {
    InspectV1 {
        schema: InspectV1::SCHEMA.to_owned(),
        inspected_at: instant(),
        repo: repo_at(),
        fetch_method: FetchMethod::Tarball,
        build_system: BuildFinding {
            name: "cargo".to_owned(),
            confidence: 0.95,
            detected_files: vec!["Cargo.toml".to_owned()],
        },
        monorepo: true,
        sub_projects: vec![SubProject {
            path: "crates/a".to_owned(),
            build_system: "cargo".to_owned(),
        }],
        file_tree_summary: "Cargo.toml\nsrc/main.rs".to_owned(),
        sampled_files: 2,
        sampled_bytes: 99,
        sampling_truncated: false,
        readme_excerpt: String::new(),
        detected_languages: vec![LanguageCount {
            language: "Rust".to_owned(),
            file_count: 1,
        }],
        key_files: vec![KeyFile {
            path: "Cargo.toml".to_owned(),
            role: KeyFileRole::BuildConfig,
            size_bytes: 80,
        }],
    }
}

pub(crate) fn plan_document() -> PlanV1 {
    let env = BTreeMap::from([("CARGO_TERM_COLOR".to_owned(), "never".to_owned())]);
    let steps = vec![PlanStep {
        env,
        note: "Builds it.".to_owned(),
        ..step("build", "cargo build --release")
    }];
    PlanV1 {
        schema: PlanV1::SCHEMA.to_owned(),
        created_at: instant(),
        plan_hash: PlanV1::hash_of(&steps),
        prompt_hash: ShortHash::compute(b"prompts"),
        repo: PlanRepository::from(&repo_at()),
        detected: Detected {
            build_system: "cargo".to_owned(),
            confidence: 0.95,
        },
        dependencies: Dependencies {
            tools: vec!["cargo".to_owned()],
            notes: String::new(),
        },
        steps,
        warnings: vec!["Takes long.".to_owned()],
        debate_rounds: 1,
        accepted_suggestions: vec!["one".to_owned()],
        rejected_suggestions: vec!["two".to_owned()],
        safety_validated: true,
        safety_violations: vec!["none, in truth".to_owned()],
    }
}

pub(crate) fn recipe_document() -> RecipeV1 {
    RecipeV1 {
        schema: RecipeV1::SCHEMA.to_owned(),
        created_at: instant(),
        source_plan_hash: ShortHash::compute(b"steps"),
        repo: PlanRepository::from(&repo_at()),
        build_system: "cargo".to_owned(),
        toolchain: Toolchain {
            required: vec!["cargo".to_owned()],
            optional: vec!["cc".to_owned()],
            version_constraints: BTreeMap::from([("rustc".to_owned(), ">=1.70".to_owned())]),
        },
        environment: BTreeMap::from([("CI".to_owned(), "1".to_owned())]),
        workspace_layout: WorkspaceLayout {
            source_dir: ".".to_owned(),
            build_dir: "target".to_owned(),
            install_dir: "target/release".to_owned(),
        },
        normalized_commands: vec![NormalizedCommand {
            phase: CommandPhase::Build,
            cmd: "cargo build".to_owned(),
            cwd: ".".to_owned(),
        }],
        notes: String::new(),
    }
}

pub(crate) fn manifest_document() -> ManifestV1 {
    ManifestV1 {
        schema: ManifestV1::SCHEMA.to_owned(),
        crucible_version: "0.1.0".to_owned(),
        created_at: instant(),
        crawl_session_id: 42,
        repo: "owner/tool".to_owned(),
        reference: "v1.2.3".to_owned(),
        artifacts: vec![ManifestArtifact {
            kind: "plan".to_owned(),
            filename: "plan.json".to_owned(),
            schema: PlanV1::SCHEMA.to_owned(),
            content_hash: ShortHash::compute(b"plan"),
        }],
        plan_hash: ShortHash::compute(b"steps"),
        prompt_hash: ShortHash::compute(b"prompts"),
        reproducibility: Reproducibility {
            gpt_model: "one".to_owned(),
            claude_model: "two".to_owned(),
            debate_rounds: 2,
            token_budgets: TokenBudgets {
                draft: 2000,
                critique: 2000,
                synthesis: 4000,
            },
        },
    }
}

/// One document of each kind, as JSON.
pub(crate) fn documents() -> [(ArtifactType, serde_json::Value); 5] {
    [
        (
            ArtifactType::Search,
            serde_json::to_value(search_document()).unwrap(),
        ),
        (
            ArtifactType::Inspect,
            serde_json::to_value(inspect_document()).unwrap(),
        ),
        (
            ArtifactType::Plan,
            serde_json::to_value(plan_document()).unwrap(),
        ),
        (
            ArtifactType::Recipe,
            serde_json::to_value(recipe_document()).unwrap(),
        ),
        (
            ArtifactType::Manifest,
            serde_json::to_value(manifest_document()).unwrap(),
        ),
    ]
}
