//! Ranks files for a goal without a run and explains the ranking: `crucible context build --goal`.
//!
//! Every tracked file has a row: its position in the ranking, the parts of its score, and why it was chosen or
//! omitted. The same tree, history, goal and budget give the same bytes.

use std::collections::HashMap;

use crucible_model::RepoPath;
use crucible_pack::{
    Budget, FileClass, FileRequest, Goal, History, PastChange, RequestVersion, ScoreParts,
    Surroundings, rank_with,
};
use crucible_repo::{Git, Oid, RepoError};
use crucible_secrets::Scanner;
use crucible_verify::{FailureEvidence, Normaliser};
use serde::{Deserialize, Serialize};

use super::pointers::{Pointers, imports_of};
use super::portion::show_parts;
use super::survey::{ListedFile, RankedCandidate, ReadExtent, survey};
use super::{
    OmittedFile, RANK_READ_ALL, UNREAD, fit, requested_files, room_beside, withhold_secret_names,
};
use crate::contract::ContextSettings;
use crate::document::versions;
use crate::error::RunError;
use crate::role::librarian::mandatory_size;

/// The number of recent commits that a ranking reads.
const COMMITS: u32 = 500;

/// The reason for a tracked file that does not exist.
const GONE: &str = "is not in the work tree";

/// The ranking of the files of a repository for a goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextRanking {
    /// The schema version of the document.
    pub schema_version: ContextRankingVersion,
    /// The goal.
    pub goal: String,
    /// The words and names of the goal that were searched.
    pub looked_for: Vec<String>,
    /// The number of words, names and paths of the goal that were not searched, because it has too many.
    pub names_not_looked_for: u64,
    /// The limits of the request.
    pub budget: Budget,
    /// The number of mandatory documents, for which space is reserved.
    pub mandatory_files: u64,
    /// The bytes of the mandatory documents.
    pub mandatory_bytes: u64,
    /// The git history that the ranking used.
    pub history: HistoryUse,
    /// All tracked files: the chosen ones by rank, the others by rank, then those that cannot be
    /// requested.
    pub files: Vec<RankedFile>,
}

/// The git history that the ranking used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryUse {
    /// The number of commits that were read: the most recent, without merges and root commits.
    pub commits: u64,
    /// Why no commit was read, if one was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// One file of a ranking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankedFile {
    /// The path; quoted and escaped if a pack cannot contain it.
    pub path: String,
    /// Whether it is requested.
    pub outcome: RankedOutcome,
    /// Its role, what it shares with the goal, and why it is omitted, if it is.
    pub reason: String,
    /// `source`, `test`, `manifest`, `document` or `generated`; absent if the file cannot be requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The score, comparable within this ranking only.
    pub score: u64,
    /// The parts of the score; absent if the file cannot be requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<ScoreParts>,
    /// The size in bytes.
    pub size: u64,
    /// The number of searched bytes; the rest of a large file is not searched.
    pub searched: u64,
}

/// Whether a file is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RankedOutcome {
    /// It is requested.
    Chosen,
    /// It is not requested.
    LeftOut,
    /// It is requested so that the pack records why it is not shown.
    Withheld,
}

versions! {
    /// The schema id of a ranking for a goal.
    pub ContextRanking, ContextRankingVersion = "crucible-context-ranking-v1"
}

/// Ranks all tracked files of the work tree and requests the best that fit `budget` in addition to the
/// mandatory documents. `gate_output` is the output of a failing gate on this tree.
///
/// # Errors
///
/// [`RunError::EmptyGoal`] and [`RunError::SecretInGoal`]. Also fails if git cannot list its files. An unreadable history
/// is not an error; the ranking reports it.
pub(crate) async fn request_for_goal(
    git: &Git,
    words: &str,
    budget: Budget,
    settings: &ContextSettings,
    gate_output: Option<&[u8]>,
) -> Result<(FileRequest, ContextRanking), RunError> {
    if words.trim().is_empty() {
        return Err(RunError::EmptyGoal);
    }
    if let Some(found) = Scanner::builtin().scan(words.as_bytes()).first() {
        return Err(RunError::SecretInGoal {
            rule: found.rule.to_string(),
        });
    }
    let (mut listed, mut unfit) = (Vec::new(), Vec::new());
    for (name, mode) in git.tracked_names().await? {
        match fit(&name, mode) {
            Ok(path) => listed.push(ListedFile { path, size: None }),
            Err(not_asked) => unfit.push(not_asked),
        }
    }
    withhold_secret_names(&mut listed, |file| &file.path, &mut unfit);
    let (history, history_use) = history_of(git, &git.opened_at().commit).await;
    let failed = gate_output
        .map(|output| FailureEvidence::read(&Normaliser::new(git.top()).apply(output)))
        .unwrap_or_default();
    let paths: Vec<&RepoPath> = listed.iter().map(|file| &file.path).collect();
    let pointers = Pointers::new(git.top(), &failed, &paths);
    let goal = Goal::with_hints(words, &pointers.hints);
    let mandatory = mandatory_size(git.top(), settings);
    let limits = room_beside(&budget, mandatory.paths.len(), mandatory.bytes);
    let (mandatory_files, mandatory_bytes) = (mandatory.paths.len() as u64, mandatory.bytes);
    let free = mandatory.paths.into_iter().collect();
    let looks = survey(git.top(), &goal, &listed, RANK_READ_ALL, &free);
    let mut seen: HashMap<RepoPath, (u64, ReadExtent)> = HashMap::with_capacity(looks.len());
    let mut candidates = Vec::with_capacity(looks.len());
    for RankedCandidate {
        candidate,
        size,
        read_extent: how,
    } in looks
    {
        if how == ReadExtent::Gone {
            unfit.push(OmittedFile {
                path: candidate.path().to_string(),
                reason: GONE.to_owned(),
            });
        } else {
            seen.insert(candidate.path().clone(), (size, how));
            candidates.push(candidate);
        }
    }
    let imports = imports_of(git.top(), &paths);
    let around = Surroundings {
        history: &history,
        evidence: &pointers.evidence,
        imports: &imports,
    };
    let mut ranking = rank_with(&goal, candidates, &limits, &around);
    show_parts(git.top(), &goal, &pointers, &mut ranking);
    let needs = requested_files(&ranking);
    let withheld: Vec<&str> = needs
        .iter()
        .skip(ranking.chosen.len())
        .map(|need| need.path.as_str())
        .collect();
    let sizes = |path: &RepoPath| match seen.get(path) {
        Some((size, ReadExtent::Text(searched))) => (*size, *searched),
        Some((size, _)) => (*size, 0),
        None => (0, 0),
    };
    let row =
        |path: String, (size, searched): (u64, u64), class: FileClass, score, parts| RankedFile {
            path,
            outcome: RankedOutcome::Chosen,
            reason: String::new(),
            class: Some(class.as_str().to_owned()),
            score,
            parts: Some(parts),
            size,
            searched,
        };
    let mut files = Vec::with_capacity(seen.len() + unfit.len());
    for choice in &ranking.chosen {
        let place = choice
            .need
            .path
            .parse::<RepoPath>()
            .map(|path| sizes(&path))
            .unwrap_or_default();
        let row = row(
            choice.need.path.clone(),
            place,
            choice.class,
            choice.score,
            choice.parts,
        );
        files.push(RankedFile {
            reason: choice.reason.clone(),
            ..row
        });
    }
    for file in &ranking.left_out {
        let is_unread = matches!(seen.get(&file.path), Some((_, ReadExtent::Unread)));
        let why = if is_unread { UNREAD } else { file.reason };
        let is_withheld = withheld.contains(&file.path.as_str());
        let outcome = if is_withheld {
            RankedOutcome::Withheld
        } else {
            RankedOutcome::LeftOut
        };
        let reason = match file.shares.as_slice() {
            [] => why.to_owned(),
            shares => format!("{why}; {}", shares.join(", ")),
        };
        let row = row(
            file.path.to_string(),
            sizes(&file.path),
            file.class,
            file.score,
            file.parts,
        );
        files.push(RankedFile {
            outcome,
            reason,
            ..row
        });
    }
    unfit.sort_by(|a, b| (&a.path, &a.reason).cmp(&(&b.path, &b.reason)));
    files.extend(unfit.into_iter().map(|file| RankedFile {
        path: file.path,
        outcome: RankedOutcome::LeftOut,
        reason: file.reason,
        class: None,
        score: 0,
        parts: None,
        size: 0,
        searched: 0,
    }));
    let explained = ContextRanking {
        schema_version: ContextRankingVersion::V1,
        goal: words.to_owned(),
        looked_for: goal.looked_for().into_iter().map(str::to_owned).collect(),
        names_not_looked_for: ranking.goal_cut.names,
        budget,
        mandatory_files,
        mandatory_bytes,
        history: history_use,
        files,
    };
    let request = FileRequest {
        schema_version: RequestVersion::V1,
        goal: words.to_owned(),
        needs,
        budget,
        reason: "ranked by the goal".to_owned(),
    };
    Ok((request, explained))
}

/// Returns the history of files in the commits before this one.
pub(crate) async fn history_of(git: &Git, from: &Oid) -> (History, HistoryUse) {
    match git.history(from, COMMITS).await {
        Ok(commits) => {
            let used = HistoryUse {
                commits: commits.len() as u64,
                problem: None,
            };
            let commits = commits
                .into_iter()
                .map(|commit| PastChange {
                    message: commit.message,
                    paths: commit.paths,
                })
                .collect();
            (History { commits }, used)
        }
        Err(error) => {
            // Git's message may contain paths of this machine.
            let problem = match error {
                RepoError::TooLarge { .. } => "there is more of it than is read",
                RepoError::TimedOut { .. } => "reading it takes too long",
                _ => "git cannot read it whole, as in a partial clone",
            };
            (
                History::default(),
                HistoryUse {
                    commits: 0,
                    problem: Some(problem.to_owned()),
                },
            )
        }
    }
}
