//! The chair: requests context and drafts the plan.
//!
//! In code: it ranks the tracked files by what they share with the goal and by what the output of failing gates names
//! (`pointers`). It requests from the librarian what the goal names and the best files, excerpts of large ones (`excerpt`).
//! These files become the plan's scope.
//! Tests and manifests are shown, but are not in scope unless the operator or the goal opens them (`crate::scope`).
//!
//! Space is reserved first for the mandatory documents and for what the operator named. The same ranking
//! for a goal alone, explained file by file, is in `explained`.

mod excerpt;
pub(crate) mod explained;
pub(crate) mod lookup;
mod package;
mod pointers;
mod portion;
mod survey;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crucible_model::{
    ByteLimit, Code, Denial, EditFormat, FileLimit, Finding, PathPrefix, RepoPath, counted,
    denied_place, is_source, single_spaced,
};
use crucible_pack::{
    Budget, ContextPack, FileClass, FileRequest, Goal, MAX_NEEDS, Mode, Need, RankLimits, Ranking,
    RequestVersion, Surroundings, is_beside, rank_with,
};
use crucible_patch::FileMode;
use crucible_repo::{TrackedFile, TreeReader};
use crucible_secrets::{Scanner, is_secret_file};
use serde::{Deserialize, Serialize};

use crate::analysis::Analysis;
use crate::contract::{Plan, PlanStatus, RunRecord, StopCondition, required_gates};
use crate::document::versions;
use crate::layout;
use crate::may_drop::removable_definitions;
use crate::role::librarian::mandatory_size;
use crate::scope::{
    GoalScope, Tree, additions, is_protected, is_unambiguous_name, own_words, read_goal,
};

pub(crate) use explained::request_for_goal;
pub use explained::{ContextRanking, ContextRankingVersion, HistoryUse, RankedFile, RankedOutcome};
use package::packages_of;
use pointers::{Pointers, imports_of};
use portion::show_parts;
use survey::{ListedFile, ReadExtent, SECRET, survey};

const OVER_PATCH_LIMIT: Code = Code::new("plan-over-patch-limit");

/// The most files that the chair puts into scope because they rank best.
const MAX_RANKED: usize = 6;

/// The most additional files in scope because the output of failing gates names them.
const MAX_TOLD_OF: usize = 6;

/// The most bytes of a file that are searched for names of the goal.
const SCOPE_READ: ByteLimit = ByteLimit(256 * 1024);

/// The most bytes of all candidates together. Later files are ranked by their path alone.
const RANK_READ_ALL: ByteLimit = ByteLimit(256 * 1024 * 1024);

/// The most files with a secret's name that are requested. They are requested so that the pack records why it
/// omits them.
const MAX_SECRET: usize = 100;

/// The note on a file that the pack shows as an outline.
const OUTLINED: &str = "is shown as an outline";

/// The reason for a file that was not read.
const UNREAD: &str = "was not looked into, because too much came before it";

/// `artifacts/left_out.json`: the tracked files that are not requested, or only as an outline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OmittedFiles {
    /// The schema version of the document.
    pub(crate) schema_version: LeftOutVersion,
    /// The files, best first.
    pub(crate) files: Vec<OmittedFile>,
}

impl OmittedFiles {
    /// Removes the files that a request names.
    #[must_use]
    pub(crate) fn without_file(mut self, request: &FileRequest) -> Self {
        let requested: HashSet<&str> = request
            .needs
            .iter()
            .map(|need| need.path.as_str())
            .collect();
        self.files
            .retain(|file| !requested.contains(file.path.as_str()));
        self
    }
}

/// A file that is not requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OmittedFile {
    /// The path; quoted and escaped if a pack cannot contain it.
    pub(crate) path: String,
    /// The reason, such as `shares nothing with the goal`.
    pub(crate) reason: String,
}

versions! {
    /// The schema id of `artifacts/left_out.json`.
    pub(crate) OmittedFiles, LeftOutVersion = "crucible-left-out-v1"
}

/// Returns the tracked files that can be requested, with sizes, and the others, with reasons. Pure.
pub(crate) fn candidates(tracked: Vec<TrackedFile>) -> (Vec<(RepoPath, u64)>, Vec<OmittedFile>) {
    let (mut plain, mut unfit) = (Vec::new(), Vec::new());
    for file in tracked {
        match fit(&file.path, file.mode) {
            Ok(path) => plain.push((path, file.size)),
            Err(not_asked) => unfit.push(not_asked),
        }
    }
    withhold_secret_names(&mut plain, |(path, _)| path, &mut unfit);
    (plain, unfit)
}

/// Removes files whose names contain secrets, and reports them without the name: requests, packs and the ledger would
/// repeat it.
fn withhold_secret_names<T>(
    listed: &mut Vec<T>,
    path: impl Fn(&T) -> &RepoPath,
    unfit: &mut Vec<OmittedFile>,
) {
    let scanner = Scanner::builtin();
    let names = listed.iter().map(|file| path(file).as_str());
    let names: Vec<&str> = names
        .chain(unfit.iter().map(|file| file.path.as_str()))
        .collect();
    // One pass for the usual case: no secret in any name.
    if scanner.scan(names.join("\n").as_bytes()).is_empty() {
        return;
    }
    for file in unfit.iter_mut() {
        file.path = scanner.redact(&file.path).text.into_owned();
    }
    listed.retain(|file| {
        let name = path(file).as_str();
        let redacted = scanner.redact(name).text;
        let is_clean = redacted == name;
        if !is_clean {
            let reason = "has a name that holds a secret".to_owned();
            unfit.push(OmittedFile {
                path: redacted.into_owned(),
                reason,
            });
        }
        is_clean
    });
}

/// Returns the path of a file that can be requested, or why it cannot.
fn fit(name: &Path, mode: FileMode) -> Result<RepoPath, OmittedFile> {
    let path = RepoPath::from_bytes(name.as_os_str().as_bytes());
    let reason = match (mode, path) {
        (FileMode::Regular | FileMode::Executable, Ok(path)) => return Ok(path),
        (FileMode::Regular | FileMode::Executable, Err(_)) => "has a name that a pack cannot hold",
        (FileMode::Symlink, _) => "is a symbolic link",
        (FileMode::Gitlink, _) => "is a repository of its own",
    };
    let path = RepoPath::from_bytes(name.as_os_str().as_bytes());
    let path = path.map_or_else(|_| format!("{name:?}"), |path| path.to_string());
    Err(OmittedFile {
        path,
        reason: reason.to_owned(),
    })
}

/// Returns one line about what the model does not see; `None` if it sees everything. Pure.
pub(crate) fn omission_note(pack: &ContextPack, not_asked: &OmittedFiles) -> Option<String> {
    let cut = pack.files.iter().filter(|file| file.truncated).count();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for file in not_asked
        .files
        .iter()
        .filter(|file| file.reason != OUTLINED)
    {
        *reasons.entry(file.reason.clone()).or_default() += 1;
    }
    let outlines = not_asked
        .files
        .iter()
        .filter(|file| file.reason == OUTLINED)
        .count();
    for omitted in &pack.omitted {
        *reasons
            .entry(omitted.reason.as_str().replace('_', " "))
            .or_default() += 1;
    }
    if cut > 0 {
        reasons.insert("the rest of a file that is cut".to_owned(), cut);
    }
    if reasons.is_empty() && outlines == 0 {
        return None;
    }
    let reasons: Vec<String> = reasons
        .iter()
        .map(|(reason, count)| format!("{count} ({reason})"))
        .collect();
    let mut summary = format!(
        "  the model sees {}",
        counted(pack.files.len() as u64, "file")
    );
    if outlines > 0 {
        summary.push_str(&format!(", {outlines} of them as an outline"));
    }
    if !reasons.is_empty() {
        summary.push_str(&format!("; not shown: {}", reasons.join(", ")));
    }
    Some(format!(
        "{summary}; see {} and {}",
        layout::LEFT_OUT,
        layout::CONTEXT_PACK
    ))
}

/// Returns the files to request: those that the operator names, those that the goal names, then the best ranked. Only `crucible context build
/// --goal` uses git's history ([`request_for_goal`]): a replay has the base commit without its ancestors and must rank alike.
pub(crate) fn file_request(
    record: &RunRecord,
    analysis: &Analysis,
    tracked: &[(RepoPath, u64)],
) -> (FileRequest, OmittedFiles) {
    let max_bytes = record.settings.max_total_bytes;
    let first = shown_first(record, tracked);
    let (ranking, unread) = ranking(record, analysis, tracked, &first, RANK_READ_ALL);
    let mut needs: Vec<Need> = first.iter().map(full).collect();
    let named: HashSet<&str> = first.iter().map(RepoPath::as_str).collect();
    needs.extend(
        requested_files(&ranking)
            .into_iter()
            .filter(|need| !named.contains(need.path.as_str())),
    );
    let is_asked: HashSet<&str> = needs.iter().map(|need| need.path.as_str()).collect();
    let files = ranking
        .left_out
        .iter()
        .filter(|file| !is_asked.contains(file.path.as_str()));
    let files = files.map(|file| {
        let reason = if unread.contains(&file.path) {
            UNREAD
        } else {
            file.reason
        };
        OmittedFile {
            path: file.path.to_string(),
            reason: reason.to_owned(),
        }
    });
    let outlines = ranking.chosen.iter().filter(|choice| choice.is_outline);
    let outlines = outlines.map(|choice| OmittedFile {
        path: choice.need.path.clone(),
        reason: OUTLINED.to_owned(),
    });
    let not_asked = OmittedFiles {
        schema_version: LeftOutVersion::V1,
        files: outlines.chain(files).collect(),
    };
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

/// Returns the scope that the goal of a run opens in these files.
pub(crate) fn goal_scope(record: &RunRecord, tracked: &[(RepoPath, u64)]) -> GoalScope {
    with_tree(record, tracked, |tree| read_goal(&record.goal, tree))
}

fn with_tree<T>(
    record: &RunRecord,
    tracked: &[(RepoPath, u64)],
    act: impl FnOnce(&Tree<'_>) -> T,
) -> T {
    let reader = TreeReader::open(&record.repo).ok();
    let text = |path: &RepoPath| {
        let mut bytes = Vec::new();
        if !is_secret_file(path.as_str())
            && let Some(Err(_)) | None = reader
                .as_ref()
                .map(|reader| reader.read_prefix(path, SCOPE_READ, &mut bytes))
        {
            bytes.clear();
        }
        bytes
    };
    act(&Tree::new(tracked.iter().map(|(path, _)| path), &text))
}

/// Returns the files that are requested before any ranking: all that the operator names, and those that the goal names
/// up to half of the budget.
fn shown_first(record: &RunRecord, tracked: &[(RepoPath, u64)]) -> Vec<RepoPath> {
    let mut first = record.settings.named.clone();
    let scope = goal_scope(record, tracked);
    let (mut files, mut bytes) = (
        record.settings.max_files / 2,
        record.settings.max_total_bytes / 2,
    );
    let sizes: BTreeMap<&RepoPath, u64> =
        tracked.iter().map(|(path, size)| (path, *size)).collect();
    let directories: Vec<&PathPrefix> = record
        .settings
        .directories
        .iter()
        .chain(&scope.directories)
        .collect();
    let is_inside = |path: &RepoPath| directories.iter().any(|place| place.contains(path));
    let inside = tracked.iter().map(|(path, _)| path);
    let inside =
        inside.filter(|path| is_inside(path) && FileClass::from_path(path) == FileClass::Source);
    for path in scope.priority_files().chain(inside) {
        let Some(size) = sizes.get(path) else {
            continue;
        };
        let is_shown = !first.contains(path)
            && is_unambiguous_name(path)
            && !is_secret_file(path.as_str())
            && denied_place(path, Denial::Shown).is_none();
        if is_shown && files > 0 && *size <= bytes {
            files -= 1;
            bytes -= size;
            first.push(path.clone());
        }
    }
    first
}

/// Drafts the plan for a pack. The scope is what the operator names, or else what the goal names and the best ranked files
/// in the pack.
pub(crate) fn draft(
    record: &RunRecord,
    analysis: &Analysis,
    pack: &ContextPack,
    ranked: &FileRequest,
    not_asked: &OmittedFiles,
    tracked: &[(RepoPath, u64)],
) -> Plan {
    with_tree(record, tracked, |tree| {
        draft_on(tree, record, analysis, pack, ranked, not_asked, tracked)
    })
}

fn draft_on(
    tree: &Tree<'_>,
    record: &RunRecord,
    analysis: &Analysis,
    pack: &ContextPack,
    ranked: &FileRequest,
    not_asked: &OmittedFiles,
    tracked: &[(RepoPath, u64)],
) -> Plan {
    let settings = &record.settings;
    let goal = read_goal(&record.goal, tree);
    let shown = |path: &RepoPath| pack.files.iter().find(|file| file.path == path.as_str());
    // Who writes a diff can look into any file; of others, parts are asked for where not all of them is shown.
    let may_change = |path: &RepoPath| match settings.edit_format {
        EditFormat::WholeFile | EditFormat::SearchReplace | EditFormat::Definitions => {
            shown(path).is_some()
        }
        EditFormat::UnifiedDiff => true,
    };
    let current_paths: HashSet<&RepoPath> = tracked.iter().map(|(path, _)| path).collect();
    let is_there = |path: &RepoPath| current_paths.contains(path);
    let is_unseen = |path: &RepoPath| {
        pack.omitted.iter().any(|row| row.path == path.as_str())
            || shown(path).is_some_and(|file| file.truncated)
    };
    let outlines = not_asked
        .files
        .iter()
        .filter(|file| file.reason == OUTLINED);
    let outlines: HashSet<&str> = outlines.map(|file| file.path.as_str()).collect();
    let is_open = |path: &RepoPath| {
        FileClass::from_path(path) == FileClass::Source
            && !is_protected(path)
            && !analysis.gate_files.contains(path)
            && is_unambiguous_name(path)
            && !is_hidden(path)
            && !goal.denies(path)
            && shown(path).is_some()
    };
    let is_named_by_rank = |path: &&RepoPath| !outlines.contains(path.as_str()) && may_change(path);
    let mut scope: Vec<PathPrefix> = settings
        .named
        .iter()
        .cloned()
        .map(PathPrefix::from)
        .collect();
    scope.extend(settings.directories.iter().cloned());
    let mut names = settings.named.clone();
    let mut sources = Vec::new();
    if !settings.has_named_paths() {
        let lifted = goal
            .names
            .iter()
            .filter(|path| is_unambiguous_name(path) && !is_unseen(path));
        names.extend(lifted.cloned());
        let is_named = |path: &&RepoPath| {
            let is_judge = is_protected(path) || analysis.gate_files.contains(*path);
            is_unambiguous_name(path)
                && (names.contains(*path) || (!is_judge && is_there(path) && may_change(path)))
        };
        scope.extend(
            goal.files
                .iter()
                .filter(is_named)
                .cloned()
                .map(PathPrefix::from),
        );
        let plain = |place: &&PathPrefix| {
            place
                .to_string()
                .parse()
                .is_ok_and(|path| is_unambiguous_name(&path))
        };
        scope.extend(goal.directories.iter().filter(plain).cloned());
        let holds =
            |scope: &[PathPrefix], path: &RepoPath| scope.iter().any(|place| place.contains(path));
        let shown_sources: Vec<RepoPath> = ranked
            .needs
            .iter()
            .filter_map(|need| need.path.parse().ok())
            .filter(is_open)
            .collect();
        let named_by_gates = files_named_by_gates(analysis, tracked);
        let (mut of_rank, mut of_gates) = (0, 0);
        for path in shown_sources.iter().filter(is_named_by_rank) {
            if holds(&scope, path) {
                continue;
            }
            if of_rank < MAX_RANKED {
                of_rank += 1;
            } else if of_gates < MAX_TOLD_OF && named_by_gates.contains(path) {
                of_gates += 1;
            } else {
                continue;
            }
            scope.push(path.clone().into());
        }
        if !goal.is_certain {
            let is_new = |path: &RepoPath| {
                !holds(&scope, path) && !goal.denies(path) && !analysis.gate_files.contains(path)
            };
            let next = not_asked.files.iter();
            let next = next.filter_map(|file| file.path.parse::<RepoPath>().ok());
            // Without any match, the ranking is in the order of the paths.
            let first = next
                .filter(|path| is_source(path) && !is_beside(path))
                .take(1);
            let best: Vec<RepoPath> = match shown_sources.iter().any(is_source) {
                true => shown_sources,
                false => first.collect(),
            };
            let mut red: Vec<RepoPath> = named_by_gates.iter().cloned().collect();
            red.sort();
            sources = packages_of(&record.goal, &best, &red, tree, is_new);
        }
    }
    let may_add = additions(&scope, &goal.tests, tree);
    let plain = |place: &PathPrefix| {
        place
            .to_string()
            .parse()
            .is_ok_and(|path| is_unambiguous_name(&path))
    };
    let may_add = may_add.into_iter().filter(plain).collect();
    Plan {
        status: PlanStatus::Draft,
        goal: single_spaced(&record.goal),
        scope_allow: scope,
        scope_sources: sources,
        scope_deny: goal.denied.clone(),
        gates: required_gates().map(str::to_owned).collect(),
        stop: StopCondition::every(),
        budgets: format!(
            "max_iterations={} max_files={} max_total_bytes={} max_calls={}",
            record.settings.max_iterations,
            record.settings.max_files,
            record.settings.max_total_bytes,
            record.settings.max_calls
        ),
        behaviors: Vec::new(),
        results: vec!["R001".to_owned()],
        names,
        may_drop: may_drop(record),
        may_add,
        renames: goal.renames,
        accepts: Vec::new(),
    }
}

/// Returns the problems of a goal that names more than a plan or a patch may contain.
pub(crate) fn goal_problems(record: &RunRecord, tracked: &[(RepoPath, u64)]) -> Vec<Finding> {
    let scope = goal_scope(record, tracked);
    let (most, files) = (
        record.settings.patch.max_files,
        scope.files.len() + scope.tests.len(),
    );
    let mut problems = scope.problems;
    if let Some((old, _)) = scope.renames.first().filter(|_| files as u64 > most) {
        let hint = format!(
            "The new name of `{old}` changes {files} files, and a patch may touch {most}: raise [patch] max_files to {files}."
        );
        problems.push(Finding::error(
            OVER_PATCH_LIMIT,
            format!("{files} files"),
            hint,
        ));
    }
    problems
}

/// Returns the tracked files whose paths are in the output of failing gates, such as frames of a traceback.
fn files_named_by_gates(analysis: &Analysis, tracked: &[(RepoPath, u64)]) -> HashSet<RepoPath> {
    let printed = analysis
        .baseline
        .iter()
        .filter(|gate| !gate.passed)
        .map(|gate| gate.excerpt.as_str());
    let words = printed.flat_map(|text| {
        text.split(|c: char| c.is_whitespace() || "\"'`:,()[]<>".contains(c))
            .filter(|word| word.contains('.'))
    });
    let words: HashSet<&str> = words.collect();
    let ends_with = |path: &&RepoPath| {
        let is_end = |word: &&str| {
            word.strip_suffix(path.as_str())
                .is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        words.iter().any(is_end)
    };
    tracked
        .iter()
        .map(|(path, _)| path)
        .filter(ends_with)
        .cloned()
        .collect()
}

/// Returns the definitions that may be removed: those that the operator names and those that the goal removes.
fn may_drop(record: &RunRecord) -> Vec<String> {
    let mut names = record.settings.may_drop.clone();
    names.extend(removable_definitions(own_words(&record.goal)));
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// `artifacts/REASONS.md`.
pub(crate) fn render_reasons(goal: &str) -> String {
    format!("# Reasons\n\n- R001: {}\n", single_spaced(goal))
}

/// `artifacts/EXPECTED_RESULTS.md`.
pub(crate) fn expected_results() -> &'static str {
    "# Expected results\n\n## R001\n\nAcceptance: every gate of the repository passes on the patched tree\n\
     Evidence: artifacts/verify_report.json\nRelated-Gates: lite\n"
}

/// Returns the request of a ranking: the chosen files, then those with a secret's name.
fn requested_files(ranking: &Ranking) -> Vec<Need> {
    let mut needs = ranking.needs();
    let secret = ranking
        .left_out
        .iter()
        .filter(|file| file.reason == SECRET)
        .take(MAX_SECRET);
    needs.extend(secret.map(|file| full(&file.path)));
    needs
}

fn full(path: &RepoPath) -> Need {
    Need {
        path: path.to_string(),
        mode: Mode::Full,
        line_ranges: Vec::new(),
    }
}

/// Returns the remaining limits of a ranking if `files` of `bytes` are already in the pack. A request with more entries
/// than can be parsed again is useless.
fn room_beside(budget: &Budget, files: usize, bytes: u64) -> RankLimits {
    let files = files as u64;
    let most = MAX_NEEDS.saturating_sub(files + MAX_SECRET as u64);
    RankLimits {
        max_files: FileLimit(budget.max_files.0.saturating_sub(files).min(most)),
        max_total_bytes: ByteLimit(budget.max_total_bytes.0.saturating_sub(bytes)),
        outlines: true,
    }
}

/// Returns the ranking, and the files that were not read because the limit `most` was reached. A generated or denied
/// file is ranked by its path alone.
fn ranking(
    record: &RunRecord,
    analysis: &Analysis,
    tracked: &[(RepoPath, u64)],
    first: &[RepoPath],
    most: ByteLimit,
) -> (Ranking, HashSet<RepoPath>) {
    let failed = analysis.failures();
    let paths: Vec<&RepoPath> = tracked.iter().map(|(path, _)| path).collect();
    let pointers = Pointers::new(&record.repo, &failed, &paths);
    let goal = Goal::with_hints(&record.goal, &pointers.hints);
    let settings = &record.settings;
    let mut mandatory = mandatory_size(&record.repo, &settings.context);
    let mut free: HashSet<RepoPath> = mandatory.paths.into_iter().collect();
    for (path, size) in tracked {
        if first.contains(path) && free.insert(path.clone()) {
            mandatory.bytes = mandatory.bytes.saturating_add(*size);
        }
    }
    let budget = Budget {
        max_files: FileLimit(settings.max_files),
        max_total_bytes: ByteLimit(settings.max_total_bytes),
    };
    let limits = RankLimits {
        // Who names the files wants to see these.
        outlines: !settings.has_named_paths(),
        ..room_beside(&budget, free.len(), mandatory.bytes)
    };
    let listed: Vec<ListedFile> = tracked
        .iter()
        .map(|(path, size)| ListedFile {
            path: path.clone(),
            size: Some(*size),
        })
        .collect();
    let (mut unread, mut candidates) = (HashSet::new(), Vec::with_capacity(tracked.len()));
    for look in survey(&record.repo, &goal, &listed, most, &free) {
        if look.read_extent == ReadExtent::Unread {
            unread.insert(look.candidate.path().clone());
        }
        candidates.push(look.candidate);
    }
    let mut ranking = {
        let imports = imports_of(&record.repo, &paths);
        let around = Surroundings {
            evidence: &pointers.evidence,
            imports: &imports,
            ..Surroundings::default()
        };
        rank_with(&goal, candidates, &limits, &around)
    };
    show_parts(&record.repo, &goal, &pointers, &mut ranking);
    (ranking, unread)
}

/// Returns whether a path is hidden or in a hidden directory. Settings of tools, Crucible's included, are not sources.
fn is_hidden(path: &RepoPath) -> bool {
    path.as_str().split('/').any(|name| name.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use crucible_host::fs::{create_dir_all, write_atomic};

    use super::*;
    use crate::analysis::{AnalysisVersion, BehaviorCatalogue};
    use crate::gatekeeper::tests::record;
    use crate::role::librarian::pack_context;

    fn analysis() -> Analysis {
        Analysis {
            schema_version: AnalysisVersion::V1,
            base_commit: "0".repeat(40).parse().unwrap(),
            tracked_files: 0,
            tracked_bytes: 0,
            left_out: Vec::new(),
            gate_files: Vec::new(),
            gate_files_of: BTreeMap::new(),
            behaviors: BehaviorCatalogue::Absent,
            gates: Vec::new(),
            canary: None,
            python_paths: BTreeMap::new(),
            baseline: Vec::new(),
        }
    }

    /// Lays files of the same text into a repository.
    fn lay(root: &Path, paths: &[&str], text: &str) -> Vec<(RepoPath, u64)> {
        let lay = |path: &&str| {
            let at = root.join(path);
            create_dir_all(at.parent().unwrap()).unwrap();
            write_atomic(&at, text.as_bytes()).unwrap();
            (path.parse().unwrap(), text.len() as u64)
        };
        paths.iter().map(lay).collect()
    }

    #[test]
    fn definitions_named_by_operator_or_goal_may_go() {
        let repo = tempfile::tempdir().unwrap();
        let mut record = record(repo.path(), &[]);
        record.goal = "Rename helper to clamp".to_owned();
        record.settings.may_drop = vec!["Old".to_owned(), "helper".to_owned()];
        assert_eq!(may_drop(&record), ["Old", "helper"]);
        record.settings.may_drop.clear();
        assert_eq!(may_drop(&record), ["helper"]);
        record.goal = "fix helper".to_owned();
        assert!(may_drop(&record).is_empty());
    }

    #[test]
    fn generated_and_denied_files_are_not_read() {
        let temp_dir = tempfile::tempdir().unwrap();
        let mut record = record(temp_dir.path(), &[]);
        record.goal = "mend the parser".to_owned();
        let paths = [
            "Cargo.lock",
            "dist/a.js",
            "src/a.rs",
            "src/b.rs",
            "src/c.rs",
            "src/parser.rs",
        ];
        let tracked = lay(temp_dir.path(), &paths, "fn parser() {}\n");
        let looked_into = |most: u64| {
            let (ranking, unread) = ranking(&record, &analysis(), &tracked, &[], ByteLimit(most));
            let mut unread: Vec<String> = unread.iter().map(RepoPath::to_string).collect();
            unread.sort();
            (ranking, unread)
        };
        let (all, unread) = looked_into(1 << 20);
        assert!(unread.is_empty());
        let score = |path: &str| {
            let left_out = all.left_out.iter().find(|file| file.path.as_str() == path);
            left_out.map(|file| file.score)
        };
        assert_eq!(
            (score("Cargo.lock"), score("dist/a.js")),
            (Some(0), Some(0))
        );
        assert!(score("src/a.rs").is_some_and(|score| score > 0), "{all:?}");
        // Two files of fifteen bytes fit; the others are ranked by their paths.
        assert_eq!(looked_into(30).1, ["src/c.rs", "src/parser.rs"]);
    }

    #[test]
    fn uncertain_goal_opens_package_of_best_source() {
        let temp_dir = tempfile::tempdir().unwrap();
        let mut paths: Vec<String> = (0..9).map(|at| format!("src/p/part_{at}.rs")).collect();
        paths.extend([
            "src/p/parser.rs".to_owned(),
            "src/p/words.txt".to_owned(),
            "far/a.rs".to_owned(),
        ]);
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let tracked = lay(temp_dir.path(), &paths, &"fn unrelated() {}\n".repeat(300));
        let mut record = record(temp_dir.path(), &[]);
        (record.settings.max_files, record.settings.max_total_bytes) = (20, 60_000);
        let planned = |record: &RunRecord, analysis: &Analysis| {
            let (request, not_asked) = file_request(record, analysis, &tracked);
            let pack =
                pack_context(temp_dir.path(), "r", &record.settings.context, &request).unwrap();
            let plan = draft(record, analysis, &pack, &request, &not_asked, &tracked);
            (pack, plan, not_asked)
        };
        let scope = |record: &RunRecord, analysis: &Analysis| {
            let plan = planned(record, analysis).1;
            let allowed: Vec<String> = plan.scope_allow.iter().map(ToString::to_string).collect();
            let sources: Vec<String> = plan.scope_sources.iter().map(ToString::to_string).collect();
            format!("{} {}", allowed.join(","), sources.join(","))
        };
        record.goal = "the parser is slow".to_owned();
        assert_eq!(scope(&record, &analysis()), "src/p/parser.rs src/p/**");
        let (pack, plan, not_asked) = planned(&record, &analysis());
        let part = pack
            .files
            .iter()
            .find(|file| file.path == "src/p/part_8.rs")
            .unwrap();
        assert!(
            !part.ranges.is_empty() && part.content.len() < 1024,
            "{part:?}"
        );
        assert!(!pack.files.iter().any(|file| file.path == "far/a.rs"));
        assert!(
            omission_note(&pack, &not_asked)
                .unwrap()
                .contains(", 9 of them as an outline")
        );
        let again = planned(&record, &analysis());
        assert_eq!(
            (again.0.to_bytes().unwrap(), again.1.render()),
            (pack.to_bytes().unwrap(), plan.render())
        );

        let gate_files = tracked.iter().map(|(path, _)| path.clone());
        let gate_files = gate_files
            .filter(|path| path.as_str().contains("part"))
            .collect();
        assert_eq!(
            scope(
                &record,
                &Analysis {
                    gate_files,
                    ..analysis()
                }
            ),
            "src/p/parser.rs "
        );
        record.goal = "src/p/parser.rs is slow".to_owned();
        assert_eq!(scope(&record, &analysis()), "src/p/parser.rs ");
        record.settings.named = vec!["far/a.rs".parse().unwrap()];
        record.goal = "the parser is slow".to_owned();
        assert_eq!(scope(&record, &analysis()), "far/a.rs ");
        assert!(
            planned(&record, &analysis())
                .2
                .files
                .iter()
                .all(|file| file.reason != OUTLINED)
        );
    }

    #[test]
    fn file_request_stays_within_readable_limit() {
        let temp_dir = tempfile::tempdir().unwrap();
        let mut record = record(temp_dir.path(), &[]);
        record.settings.max_files = 1 << 32;
        record.settings.max_total_bytes = 1 << 32;
        record.settings.named = vec!["f/0.rs".parse().unwrap()];
        let tracked: Vec<(RepoPath, u64)> = (0..MAX_NEEDS + 5)
            .map(|number| (format!("f/{number}.rs").parse().unwrap(), 1))
            .collect();
        let (request, not_asked) = file_request(&record, &analysis(), &tracked);
        let bytes = crucible_model::to_canonical_json(&request).unwrap();
        assert!(FileRequest::parse(&bytes).is_ok_and(|read| read == request));
        assert!(request.needs.len() as u64 <= MAX_NEEDS && !not_asked.files.is_empty());
    }

    #[test]
    fn mandatory_documents_and_named_files_get_budget_first() {
        let temp_dir = tempfile::tempdir().unwrap();
        let mut record = record(temp_dir.path(), &[]);
        let tracked = lay(
            temp_dir.path(),
            &["AGENTS.md", "named.rs", "src/a.rs", "src/b.rs"],
            "0123456789",
        );
        record.goal = "mend a and b".to_owned();
        record.settings.named = vec!["named.rs".parse().unwrap()];
        let request_for = |record: &RunRecord| {
            let (request, not_asked) = file_request(record, &analysis(), &tracked);
            let needs: Vec<String> = request.needs.into_iter().map(|need| need.path).collect();
            (
                needs,
                not_asked
                    .files
                    .into_iter()
                    .map(|file| file.path)
                    .collect::<Vec<_>>(),
            )
        };
        record.settings.max_files = 9;
        for (bytes, count) in [(40, 4), (39, 3), (30, 3), (29, 2), (5, 2)] {
            record.settings.max_total_bytes = bytes;
            let (needs, not_asked) = request_for(&record);
            assert_eq!(
                (needs.len(), not_asked.len()),
                (count, 4 - count),
                "{bytes}: {needs:?}"
            );
            assert!(
                needs[0] == "named.rs" && needs.contains(&"AGENTS.md".to_owned()),
                "{needs:?}"
            );
        }
        (record.settings.max_files, record.settings.max_total_bytes) = (3, 100);
        assert_eq!(request_for(&record).0.len(), 3);
    }

    #[test]
    fn secret_file_name_is_requested_last_and_unread() {
        let temp_dir = tempfile::tempdir().unwrap();
        let mut record = record(temp_dir.path(), &[]);
        let tracked = lay(temp_dir.path(), &[".env", "src/a.rs"], "parser");
        record.goal = "mend the parser".to_owned();
        (record.settings.max_files, record.settings.max_total_bytes) = (9, 900);
        let (request, not_asked) = file_request(&record, &analysis(), &tracked);
        let needs: Vec<&str> = request
            .needs
            .iter()
            .map(|need| need.path.as_str())
            .collect();
        assert_eq!(
            (needs, not_asked.files),
            (vec!["src/a.rs", ".env"], Vec::new())
        );
    }

    #[test]
    fn unrequestable_files_are_listed_with_reason() {
        use std::os::unix::ffi::OsStringExt;
        let file = |name: &[u8], mode| TrackedFile {
            path: std::ffi::OsString::from_vec(name.to_vec()).into(),
            mode,
            oid: "0".repeat(40).parse().unwrap(),
            size: 3,
        };
        let (plain, unfit) = candidates(vec![
            file(b"a.rs", FileMode::Executable),
            file(b"b\xff.rs", FileMode::Regular),
            file(b"link", FileMode::Symlink),
            file(b"module", FileMode::Gitlink),
        ]);
        assert_eq!(plain, [("a.rs".parse().unwrap(), 3)]);
        let reasons: Vec<(&str, &str)> = unfit
            .iter()
            .map(|file| (file.path.as_str(), file.reason.as_str()))
            .collect();
        assert_eq!(
            reasons,
            [
                ("\"b\\xFF.rs\"", "has a name that a pack cannot hold"),
                ("link", "is a symbolic link"),
                ("module", "is a repository of its own"),
            ]
        );
    }

    #[test]
    fn file_name_with_secret_is_written_nowhere() {
        let token = crucible_testkit::made_up_token();
        let file = |path: String, mode| TrackedFile {
            path: path.into(),
            mode,
            oid: serde_json::from_value("7".repeat(40).into()).unwrap(),
            size: 1,
        };
        let (plain, unfit) = candidates(vec![
            file("src/a.rs".to_owned(), FileMode::Regular),
            file(format!("notes/{token}.txt"), FileMode::Regular),
            file(format!("links/{token}"), FileMode::Symlink),
        ]);
        assert_eq!(plain, [("src/a.rs".parse().unwrap(), 1)]);
        assert_eq!(unfit.len(), 2);
        let debug = format!("{unfit:?}");
        assert!(
            debug.contains("has a name that holds a secret") && !debug.contains(&token),
            "{debug}"
        );
    }
}
