//! The chair: asks for context and drafts the plan.
//!
//! Served by code: it ranks the tracked files by what they share with the goal and with what the failing gates
//! printed, asks the librarian for the best, and puts the best sources among them into the plan's scope.
//! Tests, manifests and everything else are shown, but are not in scope unless the operator names them.

use std::collections::BTreeMap;

use crucible_host::fs::read_prefix;
use crucible_model::{ByteLimit, FileLimit, PathPrefix, RepoPath, counted};
use crucible_pack::{
    Budget, Candidate, ContextPack, FileClass, FileRequest, Goal, Mode, Need, RankLimits, Ranking,
    RequestVersion, rank,
};
use serde::{Deserialize, Serialize};

use crate::analysis::Analysis;
use crate::contract::{Plan, PlanStatus, REQUIRED_GATES, RunRecord};
use crate::gatekeeper::gate_files;
use crate::layout;

/// The most files that the chair puts into scope by itself; who wants more names them.
const MAX_EDITABLE: usize = 3;

/// How much of a candidate is read to rank it.
const RANK_READ: ByteLimit = ByteLimit(256 * 1024);

/// `artifacts/left_out.json`: the tracked files that the model is not shown because nobody asks for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotAsked {
    /// `crucible-left-out-v1`.
    pub(crate) schema_version: String,
    /// The best of them first.
    pub(crate) files: Vec<NotAskedFile>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotAskedFile {
    /// Where it lies.
    pub(crate) path: RepoPath,
    /// What is said of it, such as `shares nothing with the goal`.
    pub(crate) reason: String,
}

/// What the model is not shown, in one line; nothing where it sees all there is. Pure.
pub(crate) fn told_of(pack: &ContextPack, not_asked: &NotAsked) -> Option<String> {
    let cut = pack.files.iter().filter(|file| file.truncated).count();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for file in &not_asked.files {
        *reasons.entry(file.reason.clone()).or_default() += 1;
    }
    for omitted in &pack.omitted {
        *reasons.entry(omitted.reason.as_str().replace('_', " ")).or_default() += 1;
    }
    if cut > 0 {
        reasons.insert("the rest of a file that is cut".to_owned(), cut);
    }
    if reasons.is_empty() {
        return None;
    }
    let reasons: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} ({reason})")).collect();
    let seen = counted(pack.files.len() as u64, "file");
    Some(format!(
        "  the model sees {seen}; not shown: {}; see {} and {}",
        reasons.join(", "),
        layout::LEFT_OUT,
        layout::CONTEXT_PACK
    ))
}

/// The files to ask for: those the operator named first, then the best ranked.
pub(crate) fn file_request(
    record: &RunRecord,
    analysis: &Analysis,
    tracked: &[(RepoPath, u64)],
) -> (FileRequest, NotAsked) {
    let max_bytes = record.settings.max_total_bytes;
    let ranking = ranking(record, analysis, tracked);
    let mut needs: Vec<Need> = record
        .settings
        .named
        .iter()
        .map(|path| Need { path: path.to_string(), mode: Mode::Full, line_ranges: Vec::new() })
        .collect();
    needs.extend(
        ranking
            .needs()
            .into_iter()
            .filter(|need| !record.settings.named.iter().any(|named| named.as_str() == need.path)),
    );
    let files =
        ranking.left_out.iter().filter(|file| !needs.iter().any(|need| need.path == file.path.as_str()));
    let files = files.map(|file| NotAskedFile { path: file.path.clone(), reason: file.reason.to_owned() });
    let not_asked = NotAsked { schema_version: "crucible-left-out-v1".to_owned(), files: files.collect() };
    let request = FileRequest {
        schema_version: RequestVersion::V1,
        goal: record.goal.clone(),
        needs,
        budget: Budget {
            max_files: FileLimit(record.settings.max_files),
            max_total_bytes: ByteLimit(max_bytes),
        },
        reason: "ranked by the goal and the failing gates".to_owned(),
    };
    (request, not_asked)
}

/// The plan for a pack. Only files that the model saw whole are in scope.
pub(crate) fn draft(record: &RunRecord, pack: &ContextPack, ranked: &FileRequest) -> Plan {
    let gates = gate_files(record);
    let seen_whole = |path: &str| pack.files.iter().any(|file| file.path == path && !file.truncated);
    let editable: Vec<RepoPath> = if record.settings.named.is_empty() {
        let sources = ranked.needs.iter().filter_map(|need| need.path.parse::<RepoPath>().ok());
        sources
            .filter(|path| {
                FileClass::of(path) == FileClass::Source
                    && !is_protected(path)
                    && !gates.contains(path)
                    && is_plain(path)
                    && !is_hidden(path)
                    && seen_whole(path.as_str())
            })
            .take(MAX_EDITABLE)
            .collect()
    } else {
        record.settings.named.clone()
    };
    Plan {
        status: PlanStatus::Draft,
        goal: one_line(&record.goal),
        scope_allow: editable.iter().cloned().map(PathPrefix::from).collect(),
        scope_deny: Vec::new(),
        gates: REQUIRED_GATES.map(str::to_owned).to_vec(),
        stop: format!(
            "verified, or {} attempts, or the same refused patch twice",
            record.settings.max_iterations
        ),
        budgets: format!(
            "max_iterations={} max_files={} max_total_bytes={} max_calls={}",
            record.settings.max_iterations,
            record.settings.max_files,
            record.settings.max_total_bytes,
            record.settings.max_calls
        ),
        behaviors: Vec::new(),
        results: vec!["R001".to_owned()],
        names: record.settings.named.clone(),
    }
}

/// `artifacts/REASONS.md` (seed 003 F.1).
pub(crate) fn reasons(goal: &str) -> String {
    format!("# Reasons\n\n- R001: {}\n", one_line(goal))
}

/// `artifacts/EXPECTED_RESULTS.md` (seed 003 F.2).
pub(crate) fn expected_results() -> &'static str {
    "# Expected results\n\n## R001\n\nAcceptance: every gate of the repository passes on the patched tree\n\
     Evidence: artifacts/verify_report.json\nRelated-Gates: lite\n"
}

/// A goal as a line of a plan has it.
fn one_line(goal: &str) -> String {
    goal.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn ranking(record: &RunRecord, analysis: &Analysis, tracked: &[(RepoPath, u64)]) -> Ranking {
    let words =
        analysis.baseline.iter().fold(record.goal.clone(), |words, gate| words + "\n" + &gate.excerpt);
    let goal = Goal::new(&words);
    let candidates: Vec<Candidate> = tracked
        .iter()
        .map(|(path, size)| {
            let text = read_prefix(&record.repo.join(path), RANK_READ).map(|prefix| prefix.bytes);
            goal.look_at(path.clone(), *size, text.ok().as_deref())
        })
        .collect();
    let limits = RankLimits {
        max_files: FileLimit(record.settings.max_files),
        max_total_bytes: ByteLimit(record.settings.max_total_bytes),
    };
    rank(&goal, candidates, &limits)
}

/// Whether a name can stand in a plan's line and in a question without being taken for something else. Other files may
/// change when the operator names them.
fn is_plain(path: &RepoPath) -> bool {
    path.as_str().chars().all(|c| c.is_alphanumeric() || "/._-+@~".contains(c))
}

/// Whether a path lies in a hidden place or names one: settings of tools, Crucible's own among them, are no sources.
fn is_hidden(path: &RepoPath) -> bool {
    path.as_str().split('/').any(|name| name.starts_with('.'))
}

fn is_protected(path: &RepoPath) -> bool {
    use crucible_patch::{is_ci, is_git_setting, is_lockfile, is_manifest, is_test_path};
    is_test_path(path) || is_manifest(path) || is_ci(path) || is_lockfile(path) || is_git_setting(path)
}
