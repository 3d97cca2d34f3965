//! Documents, clocks and directories for these tests, and a way to rerun a test as a separate process.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start themselves again as other processes"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crucible_crawl::{
    ArtifactType, CheckedArtifact, ConfigSnapshot, CrawlSession, ManifestV1, PlanStep, PlanV1,
    manifest_entry,
};
use crucible_host::clock::PinnedClock;
use crucible_ledger::Ledger;
use crucible_model::Timestamp;
use serde_json::{Value, json};

pub(crate) fn now() -> Timestamp {
    "2026-02-28T12:00:00Z".parse().unwrap()
}

/// A directory of Crucible's own, deleted on drop.
pub(crate) struct Home {
    pub(crate) dir: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub(crate) fn ledger(&self) -> Ledger {
        ledger_in(self.dir.path())
    }

    pub(crate) fn session(&self) -> CrawlSession {
        begin(self.dir.path())
    }
}

pub(crate) fn ledger_in(home: &Path) -> Ledger {
    Ledger::open_waiting(&home.join("ledger.db"), Duration::from_secs(120)).unwrap()
}

pub(crate) fn begin(home: &Path) -> CrawlSession {
    let config = ConfigSnapshot::new([("llm.provider", "gateway")]).unwrap();
    let clock = Box::new(PinnedClock(now()));
    CrawlSession::begin(
        ledger_in(home),
        &home.join("tmp"),
        clock,
        Some("ripgrep"),
        &config,
    )
    .unwrap()
}

fn repo() -> Value {
    json!({
        "full_name": "owner/tool", "url": "https://github.com/owner/tool", "selected_ref": "v1.2.3",
        "resolved_commit": "0123456789abcdef0123456789abcdef01234567"
    })
}

pub(crate) fn search_document() -> Value {
    json!({
        "schema": "viv-git-search.v1", "query": "tool", "queried_at": "2026-02-28T12:00:00.000Z", "result_count": 0,
        "rate_limited": false, "cached": false, "results": []
    })
}

pub(crate) fn inspect_document() -> Value {
    let mut repo = repo();
    repo["default_branch"] = json!("main");
    json!({
        "schema": "viv-git-inspect.v1", "inspected_at": "2026-02-28T12:00:00.000Z", "repo": repo,
        "fetch_method": "tarball",
        "build_system": { "name": "cargo", "confidence": 0.95, "detected_files": ["Cargo.toml"] },
        "monorepo": false, "sub_projects": [], "file_tree_summary": "Cargo.toml", "sampled_files": 1, "sampled_bytes": 9,
        "sampling_truncated": false, "readme_excerpt": "größer", "detected_languages": [], "key_files": []
    })
}

pub(crate) fn plan_document() -> Value {
    let steps = json!([{ "name": "build", "cmd": "cargo build --release", "cwd": ".", "env": {}, "note": "" }]);
    let typed: Vec<PlanStep> = serde_json::from_value(steps.clone()).unwrap();
    json!({
        "schema": "viv-git-plan.v1", "created_at": "2026-02-28T12:00:00.000Z",
        "plan_hash": PlanV1::hash_of(&typed).as_str(), "prompt_hash": "fedcba987654", "repo": repo(),
        "detected": { "build_system": "cargo", "confidence": 0.95 }, "dependencies": { "tools": ["cargo"], "notes": "" },
        "steps": steps, "warnings": [], "debate_rounds": 2, "accepted_suggestions": [], "rejected_suggestions": [],
        "safety_validated": true, "safety_violations": []
    })
}

pub(crate) fn recipe_document() -> Value {
    json!({
        "schema": "viv-git-recipe.v1", "created_at": "2026-02-28T12:00:00.000Z",
        "source_plan_hash": plan_document()["plan_hash"], "repo": repo(), "build_system": "cargo",
        "toolchain": { "required": ["cargo"], "optional": [], "version_constraints": {} }, "environment": {},
        "workspace_layout": { "source_dir": ".", "build_dir": "target", "install_dir": "target/release" },
        "normalized_commands": [{ "phase": "build", "cmd": "cargo build --release", "cwd": "." }], "notes": ""
    })
}

pub(crate) fn checked(kind: ArtifactType, document: &Value) -> CheckedArtifact {
    CheckedArtifact::new(kind, document).unwrap()
}

/// The smallest valid files in `meta/`.
pub(crate) const TRANSCRIPT: &str =
    "{\"messages\":[],\"schema_version\":\"crucible-crawl-transcript-v1\",\"summary\":\"\"}";
pub(crate) const CONFIG: &str = "{\"schema_version\":\"crucible-crawl-config-v1\",\"values\":{}}";

/// The four documents and a manifest that lists them.
pub(crate) fn documents(search: &Value, plan: &Value) -> Vec<CheckedArtifact> {
    let mut documents = vec![
        checked(ArtifactType::Search, search),
        checked(ArtifactType::Inspect, &inspect_document()),
        checked(ArtifactType::Plan, plan),
        checked(ArtifactType::Recipe, &recipe_document()),
    ];
    let manifest = json!({
        "schema": ManifestV1::SCHEMA, "crucible_version": "1.1.0", "created_at": "2026-02-28T12:00:00.000Z",
        "crawl_session_id": 42, "repo": "owner/tool", "ref": "v1.2.3",
        "artifacts": documents.iter().map(manifest_entry).collect::<Vec<_>>(),
        "plan_hash": plan["plan_hash"], "prompt_hash": plan["prompt_hash"],
        "reproducibility": {
            "gpt_model": "small", "claude_model": "small", "debate_rounds": 2,
            "token_budgets": { "draft": 2000, "critique": 2000, "synthesis": 4000 }
        }
    });
    documents.push(checked(ArtifactType::Manifest, &manifest));
    documents
}

/// The variable that marks a test as a child process.
pub(crate) const CHILD: &str = "CRUCIBLE_TEST_RECORDS";

/// The test of this name as a separate process, with `home` in [`CHILD`].
pub(crate) fn as_process(test: &str, home: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, home);
    command
}

/// Everything below a directory: each path with its content, none for a directory.
pub(crate) fn tree(root: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
                found.push((entry.path(), None));
            } else {
                let content = std::fs::read(entry.path()).unwrap_or_default();
                found.push((entry.path(), Some(content)));
            }
        }
    }
    found.sort();
    found
}
