//! Chooses the files of a request for a goal, without a model.
//!
//! A [`Goal`] examines one file at a time and records what its path, name and text share with the goal's
//! words. [`rank`] then scores all files together. A rare word counts more than a common one, a definition
//! more than a mention, a source more than its test, and its test more than a document. Generated, locked and
//! binary files come last. Earlier commits add a little (`history`). Equal scores are ordered by class and
//! path.
//!
//! What always holds: whole numbers only, no randomness, one pass over each text; every file that was looked
//! at is either chosen or left out, with a reason; its [`ScoreParts`] make up its score.

mod class;
mod evidence;
mod goal;
mod history;
mod occurrences;
mod package;
mod parts;
mod shares;
mod words;

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use crucible_model::{ByteLimit, Denial, FileLimit, PathRole, PathRoles, RepoPath, denied_place};

pub use class::{FileClass, is_beside, is_filler, tested_name};
pub use evidence::Evidence;
pub use goal::{Candidate, Goal, TextMark, area_of, is_of_area};
pub use history::{History, PastChange};
pub use parts::ScoreParts;
pub use words::{WordStem, is_little_word};

use goal::Standing;

use crate::request::{Mode, Need};

/// How many files, and how many bytes of them, may be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankLimits {
    /// The number of files.
    pub max_files: FileLimit,
    /// The sum of their sizes in bytes.
    pub max_total_bytes: ByteLimit,
    /// Whether part of each limit is reserved for outlines of the sources beside the best one.
    pub outlines: bool,
}

/// Every candidate, chosen or left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranking {
    /// The chosen files, best first.
    pub chosen: Vec<Choice>,
    /// The others, in the same order.
    pub left_out: Vec<OmittedCandidate>,
    /// The part of the goal that was not searched.
    pub goal_cut: GoalCut,
}

/// The part of a goal that is not searched because the goal is too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GoalCut {
    /// Bytes after the part that is read.
    pub bytes: u64,
    /// Words, names and paths beyond the maximum number.
    pub names: u64,
}

/// A chosen file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The file as a request names it.
    pub need: Need,
    /// How many bytes of it may be shown: all of them, or fewer of a large file.
    pub allowance: u64,
    /// Whether only its outline is shown: it is beside the best source.
    pub is_outline: bool,
    /// What it scored; comparable within one ranking only.
    pub score: u64,
    /// What it is: a source, a test, a manifest.
    pub class: FileClass,
    /// What the score is made of.
    pub parts: ScoreParts,
    /// Why it was chosen.
    pub reason: String,
}

/// A file that was not chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmittedCandidate {
    /// Which file.
    pub path: RepoPath,
    /// What it scored.
    pub score: u64,
    /// What the score is made of.
    pub parts: ScoreParts,
    /// What it is.
    pub class: FileClass,
    /// What it shares with the goal, in words.
    pub shares: Vec<String>,
    /// Why it was not chosen.
    pub reason: &'static str,
}

/// A repository up to this many bytes is shown completely if the limits allow.
const MAX_TOTAL: u64 = 24 * 1024;

/// One candidate with what it scored.
struct Scored {
    candidate: Candidate,
    parts: ScoreParts,
    test_of: Option<String>,
    /// What its history and failing gates say, in words.
    reasons: Vec<String>,
}

/// Facts about a repository besides the texts of its files.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Earlier commits.
    pub history: &'a History,
    /// What failing gates say.
    pub evidence: &'a Evidence,
    /// Returns the files that a file imports; called for the best files only.
    pub imports: &'a dyn Fn(&RepoPath) -> BTreeSet<RepoPath>,
}

impl Default for Surroundings<'_> {
    fn default() -> Self {
        static HISTORY: History = History {
            commits: Vec::new(),
        };
        static EVIDENCE: LazyLock<Evidence> = LazyLock::new(Evidence::default);
        Self {
            history: &HISTORY,
            evidence: &EVIDENCE,
            imports: &|_| BTreeSet::new(),
        }
    }
}

/// [`rank_with`], without a history and without evidence.
#[must_use]
pub fn rank(goal: &Goal, candidates: Vec<Candidate>, limits: &RankLimits) -> Ranking {
    rank_with(goal, candidates, limits, &Surroundings::default())
}

/// Chooses among `candidates`, all of which `goal` looked at.
///
/// Where everything that people wrote is small and fits the limits, all of it is chosen. Otherwise only files that share
/// enough with the goal or that failing gates point at are, and the manifests at the root; if no file shares anything,
/// sources in the order of their paths. A file gets a share of the bytes by its score: what is larger is shown in part. A
/// file that does not fit at all is passed over and the next one is tried. Where the limits say so, of the other sources beside
/// the best one outlines are chosen. Tests come after everything else that is chosen,
/// unless the goal names them.
#[must_use]
pub fn rank_with(
    goal: &Goal,
    candidates: Vec<Candidate>,
    limits: &RankLimits,
    around: &Surroundings<'_>,
) -> Ranking {
    let everything = everything_fits(&candidates, limits);
    let mut scored = score(goal, candidates, around.history, around.evidence);
    scored.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
    if !everything && shares::raise_imported(around.imports, &mut scored) {
        scored.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
    }
    let nothing_shared = scored.iter().all(|file| file.parts.relevance() == 0);
    let mut budget = shares::Room::new(limits, &scored);
    let mut package = package::Package::new(&scored, limits, limits.outlines && !everything);
    let mut left = Vec::new();
    let mut ranking = Ranking {
        chosen: Vec::new(),
        left_out: Vec::new(),
        goal_cut: goal.cut(),
    };
    for file in scored {
        let relevance = file.parts.relevance();
        let is_named = file.parts.mentioned > 0;
        let is_free = file.candidate.standing == Standing::AlreadyIn;
        let (kept_files, kept_bytes) = package.reserved_size(&file.candidate.path);
        let refusal = if denied_place(&file.candidate.path, Denial::Shown).is_some() {
            Some("lies in a directory that is never shown")
        } else if let Standing::Withheld(why) = file.candidate.standing {
            Some(why)
        } else if is_free {
            None
        } else if file.candidate.class == FileClass::Generated && !is_named {
            Some("is generated, locked or binary")
        } else if is_filler(&file.candidate.path) && !is_named {
            Some("says nothing about the code")
        } else if !(everything
            || nothing_shared
            || relevance > 0
            || is_root_manifest(&file.candidate))
        {
            Some("shares nothing with the goal")
        } else if !everything && budget.is_too_weak(goal, &file) {
            Some("shares much less with the goal than the best files")
        } else if budget.files <= kept_files {
            Some("comes after as many files as are allowed")
        } else {
            None
        };
        let allowance = if is_free {
            Some(file.candidate.size)
        } else {
            budget.allowance(&file, kept_bytes)
        };
        match (refusal, allowance) {
            (None, Some(allowance)) => {
                if !is_free {
                    budget.take(&file, allowance);
                }
                package.chosen(&file.candidate.path);
                ranking.chosen.push(choose(goal, file, allowance, false));
            }
            (None, None) => left.push((file, "is larger than what is left of the budget")),
            (Some(reason), _) => left.push((file, reason)),
        }
    }
    let waiting = left
        .iter()
        .map(|(file, _)| (&file.candidate.path, file.candidate.size));
    let outlined = package.outlines(waiting, &mut budget);
    for (at, (file, reason)) in left.into_iter().enumerate() {
        if outlined.contains(&at) {
            let allowance = file.candidate.size.min(package::OUTLINE);
            ranking.chosen.push(choose(goal, file, allowance, true));
        } else {
            ranking.left_out.push(leave(goal, file, reason));
        }
    }
    // The sort is stable: within both parts the best stay first.
    ranking
        .chosen
        .sort_by_key(|choice| choice.class == FileClass::Test && choice.parts.mentioned == 0);
    ranking
}

impl Ranking {
    /// The chosen files as the needs of a request.
    #[must_use]
    pub fn needs(&self) -> Vec<Need> {
        self.chosen
            .iter()
            .map(|choice| choice.need.clone())
            .collect()
    }
}

/// Best first: generated files after all others, then by score, class and path.
fn key(file: &Scored) -> (bool, std::cmp::Reverse<u64>, FileClass, &RepoPath) {
    let candidate = &file.candidate;
    let score = std::cmp::Reverse(file.parts.score());
    (
        candidate.class == FileClass::Generated,
        score,
        candidate.class,
        &candidate.path,
    )
}

/// The settings of a tool say little about the project; only what names its parts is shown unasked.
fn is_root_manifest(candidate: &Candidate) -> bool {
    candidate.class == FileClass::Manifest
        && !candidate.path.as_str().contains('/')
        && PathRoles::from_path(&candidate.path).has(PathRole::Project)
}

fn everything_fits(candidates: &[Candidate], limits: &RankLimits) -> bool {
    let written = candidates.iter().filter(|file| {
        file.class != FileClass::Generated
            && file.standing == Standing::Asked
            && denied_place(&file.path, Denial::Shown).is_none()
    });
    let (files, bytes) = written.fold((0u64, 0u64), |(files, bytes), file| {
        (files + 1, bytes.saturating_add(file.size))
    });
    files <= limits.max_files.0 && bytes <= limits.max_total_bytes.0.min(MAX_TOTAL)
}

fn score(
    goal: &Goal,
    candidates: Vec<Candidate>,
    history: &History,
    evidence: &Evidence,
) -> Vec<Scored> {
    let total = candidates.len() as u64;
    let mut holders = vec![0u64; goal.pattern_count()];
    for hit in candidates.iter().flat_map(|candidate| &candidate.text_hits) {
        holders[hit.pattern] += 1;
    }
    let rarity: Vec<u64> = holders
        .iter()
        .map(|holder_count| 1 + u64::from((total / (*holder_count).max(1)).max(1).ilog2()))
        .collect();
    let mut scored: Vec<Scored> = candidates
        .into_iter()
        .map(|candidate| {
            let parts = goal.shared(&candidate, &rarity);
            Scored {
                parts,
                candidate,
                test_of: None,
                reasons: Vec::new(),
            }
        })
        .collect();
    history::weigh(goal, history, &mut scored);
    let tested = evidence.tested_names();
    for file in &mut scored {
        let (points, reasons) = evidence.weigh(&file.candidate.path, file.candidate.class, &tested);
        file.parts.evidence = points;
        file.reasons.extend(reasons);
    }
    let mut best_source: HashMap<String, u64> = HashMap::new();
    for file in &scored {
        let relevance = file.parts.relevance();
        if file.candidate.class == FileClass::Source && relevance > 0 {
            let best = best_source
                .entry(tested_name(&file.candidate.path))
                .or_default();
            *best = relevance.max(*best);
        }
    }
    for file in &mut scored {
        if file.candidate.class == FileClass::Test {
            let name = tested_name(&file.candidate.path);
            if let Some(best) = best_source.get(&name) {
                // A test is read after what it tests, unless the goal names the test itself.
                let own = file.parts.relevance() - file.parts.mentioned - file.parts.evidence;
                let earned = (own + best / 2).min(best.saturating_sub(1));
                file.parts.tested = earned.cast_signed().saturating_sub(own.cast_signed());
                file.test_of = Some(name);
            }
        } else if is_root_manifest(&file.candidate) {
            file.parts.manifest = 20;
        }
    }
    scored
}

/// What a file shares with the goal, in words.
fn shared_words(goal: &Goal, file: &Scored) -> Vec<String> {
    let mut shares = goal.explain(&file.candidate);
    shares.extend(file.reasons.iter().cloned());
    if let Some(name) = &file.test_of {
        shares.push(format!("tests `{name}`"));
    }
    shares
}

fn choose(goal: &Goal, file: Scored, allowance: u64, is_outline: bool) -> Choice {
    let mut reasons = shared_words(goal, &file);
    if is_outline {
        reasons.push("lies beside the best source".to_owned());
    }
    if reasons.is_empty() {
        reasons.push(match file.candidate.standing {
            Standing::AlreadyIn => "is in the pack anyway".to_owned(),
            Standing::Asked | Standing::Withheld(_) => "fits the budget".to_owned(),
        });
    }
    let class = file.candidate.class;
    let path = file.candidate.path.as_str().to_owned();
    Choice {
        need: Need {
            path,
            mode: Mode::Full,
            line_ranges: Vec::new(),
        },
        allowance,
        is_outline,
        score: file.parts.score(),
        class,
        parts: file.parts,
        reason: format!("{}: {}", class.as_str(), reasons.join(", ")),
    }
}

fn leave(goal: &Goal, file: Scored, reason: &'static str) -> OmittedCandidate {
    OmittedCandidate {
        score: file.parts.score(),
        class: file.candidate.class,
        shares: shared_words(goal, &file),
        parts: file.parts,
        path: file.candidate.path,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROOMY: RankLimits = RankLimits {
        max_files: FileLimit(1000),
        max_total_bytes: ByteLimit(10_000_000),
        outlines: false,
    };

    fn ranked(goal: &str, files: &[(&str, &str)], limits: &RankLimits) -> Ranking {
        let goal = Goal::new(goal);
        let look = |(path, text): &(&str, &str)| {
            let path: RepoPath = path.parse().unwrap();
            let class = FileClass::from_path(&path);
            goal.look_at(path, class, text.len() as u64, Some(text.as_bytes()))
        };
        let candidates = files.iter().map(look).collect();
        rank(&goal, candidates, limits)
    }

    fn paths(ranking: &Ranking) -> Vec<&str> {
        ranking
            .chosen
            .iter()
            .map(|choice| choice.need.path.as_str())
            .collect()
    }

    const PROJECT: [(&str, &str); 7] = [
        ("src/lib.rs", "pub mod lexer;\npub mod parser;\n"),
        ("src/parser.rs", "pub fn parse_header(text: &str) {}\n"),
        ("src/lexer.rs", "pub fn lex(text: &str) {}\n"),
        ("tests/parser.rs", "fn t() { parse_header(\"\") }\n"),
        ("Cargo.toml", "[package]\nname = \"p\"\n"),
        ("Cargo.lock", "parser parser parser parse_header\n"),
        ("README.md", "A parser.\n"),
    ];

    #[test]
    fn sources_near_the_goal_rank_first() {
        let text = "fn trailing_name() {}\nfn file_name() { handled }\n".repeat(400);
        let files = [
            ("tool/bench.rs", text.as_str()),
            ("crates/globset/src/pathutil.rs", "fn file_name() {}\n"),
        ];
        for (goal, first) in [
            (
                "globset: a trailing file name is handled",
                "crates/globset/src/pathutil.rs",
            ),
            (
                "fix(globset): a trailing file name is handled",
                "crates/globset/src/pathutil.rs",
            ),
            ("a trailing file name is handled", "tool/bench.rs"),
        ] {
            assert_eq!(paths(&ranked(goal, &files, &ROOMY))[0], first, "{goal}");
        }
    }

    #[test]
    fn named_source_comes_first_and_its_test_last() {
        let ranking = ranked("fix the failing test in parser", &PROJECT, &ROOMY);
        assert_eq!(
            (paths(&ranking)[0], paths(&ranking)[5]),
            ("src/parser.rs", "tests/parser.rs")
        );
        let of = |path: &str| {
            ranking
                .chosen
                .iter()
                .find(|choice| choice.need.path == path)
                .unwrap()
                .score
        };
        assert!(of("tests/parser.rs") > of("src/lib.rs"));
        assert!(
            ranking.chosen[0].reason.contains("`parser`"),
            "{}",
            ranking.chosen[0].reason
        );
    }

    #[test]
    fn small_repository_is_shown_whole() {
        let ranking = ranked("add a flag", &PROJECT, &ROOMY);
        assert_eq!(ranking.chosen.len(), 6);
        assert_eq!(ranking.left_out[0].path.as_str(), "Cargo.lock");
    }

    #[test]
    fn an_identifier_finds_its_definition() {
        let ranking = ranked("parse_header must accept CRLF", &PROJECT, &ROOMY);
        assert_eq!(paths(&ranking)[0], "src/parser.rs");
        assert!(
            ranking.chosen[0].reason.contains("defines `parse_header`"),
            "{}",
            ranking.chosen[0].reason
        );
    }

    #[test]
    fn a_path_in_the_goal_wins_over_everything() {
        let ranking = ranked("make README.md mention the parser", &PROJECT, &ROOMY);
        assert_eq!(paths(&ranking)[0], "README.md");
        let ranking = ranked(
            "parser: error at <copy>/src/lexer.rs:12:5: parser",
            &PROJECT,
            &ROOMY,
        );
        assert_eq!(paths(&ranking)[0], "src/lexer.rs");
        let ranking = ranked("change src/lexer.rs, not the parser", &PROJECT, &ROOMY);
        assert_eq!(paths(&ranking)[0], "src/lexer.rs");
    }

    #[test]
    fn oversized_file_is_skipped_and_reported() {
        let limits = RankLimits {
            max_files: FileLimit(2),
            max_total_bytes: ByteLimit(80),
            outlines: false,
        };
        let ranking = ranked("parser", &PROJECT, &limits);
        assert_eq!(ranking.chosen.len(), 2);
        assert_eq!(ranking.chosen.len() + ranking.left_out.len(), PROJECT.len());
    }

    #[test]
    fn large_repository_shows_only_related_files() {
        let mut files = PROJECT.to_vec();
        files.push(("src/unrelated.rs", "mod nothing;\n"));
        let limits = RankLimits {
            max_files: FileLimit(6),
            max_total_bytes: ByteLimit(1000),
            outlines: false,
        };
        let ranking = ranked("parser", &files, &limits);
        assert!(!paths(&ranking).contains(&"src/unrelated.rs"));
        assert!(paths(&ranking).contains(&"Cargo.toml"));
    }

    #[test]
    fn package_outlines_stay_within_their_share() {
        let text = "fn unrelated() {}\n".repeat(200);
        let names: Vec<String> = (0..12).map(|at| format!("src/core/part_{at}.rs")).collect();
        let mut files: Vec<(&str, &str)> = names
            .iter()
            .map(|name| (name.as_str(), text.as_str()))
            .collect();
        files.extend([
            ("src/core/parser.rs", "pub fn parse() {}\n"),
            ("src/core/tests.rs", "fn t() {}\n"),
            ("src/core/words.csv", "a\n"),
            ("other/a.rs", text.as_str()),
        ]);
        let limits = |files, bytes, outlines| RankLimits {
            max_files: FileLimit(files),
            max_total_bytes: ByteLimit(bytes),
            outlines,
        };
        let outlined = |limits: &RankLimits| -> Vec<String> {
            let ranking = ranked("parser", &files, limits);
            assert!(
                ranking
                    .chosen
                    .iter()
                    .filter(|choice| choice.is_outline)
                    .all(|choice| choice.allowance < 1024)
            );
            assert_eq!(ranking.chosen.len() + ranking.left_out.len(), files.len());
            assert_eq!(ranking.chosen[0].need.path, "src/core/parser.rs");
            let outlines = ranking
                .chosen
                .into_iter()
                .filter(|choice| choice.is_outline);
            outlines.map(|choice| choice.need.path).collect()
        };
        let mut all = names.clone();
        all.sort();
        assert_eq!(outlined(&limits(40, 60_000, true)), all);
        // Nobody else wants the files.
        assert_eq!(outlined(&limits(10, 60_000, true)), all[..9]);
        assert_eq!(
            outlined(&limits(40, 6 * package::OUTLINE * 3, true)),
            all[..3]
        );
        assert!(outlined(&limits(40, 60_000, false)).is_empty());
    }

    #[test]
    fn outline_share_is_reserved() {
        let text = "fn parser() {}\n".repeat(100);
        let far: Vec<String> = (0..9).map(|at| format!("far/{at}/parser.rs")).collect();
        let mut files: Vec<(&str, &str)> = far
            .iter()
            .map(|name| (name.as_str(), text.as_str()))
            .collect();
        let best = text.clone() + "fn scan() {}\n";
        files.extend([
            ("src/scan.rs", best.as_str()),
            ("src/a.rs", "mod x;\n"),
            ("src/b.rs", "mod y;\n"),
        ]);
        let limits = RankLimits {
            max_files: FileLimit(6),
            max_total_bytes: ByteLimit(60_000),
            outlines: true,
        };
        let ranking = ranked("scan must call parser in src/scan.rs", &files, &limits);
        let chosen = paths(&ranking);
        assert_eq!(chosen.len(), 6);
        assert!(
            chosen[0] == "src/scan.rs"
                && chosen.contains(&"src/a.rs")
                && chosen.contains(&"src/b.rs"),
            "{chosen:?}"
        );
    }

    #[test]
    fn unsearched_part_of_long_goal_is_reported() {
        let names: Vec<String> = (0..70)
            .map(|n| {
                format!("word{}", char::from(b'a' + n / 26)) + &"x".repeat(usize::from(n % 26))
            })
            .collect();
        let short = ranked(&names[..64].join(" "), &PROJECT, &ROOMY);
        assert_eq!(short.goal_cut, GoalCut::default());
        let twice = format!("{} {}", names.join(" "), names.join(" "));
        assert_eq!(
            ranked(&twice, &PROJECT, &ROOMY).goal_cut,
            GoalCut { bytes: 0, names: 6 }
        );
        let paths: Vec<String> = (0..70).map(|n| format!("{n}.c")).collect();
        assert_eq!(ranked(&paths.join(" "), &PROJECT, &ROOMY).goal_cut.names, 6);
        let long = " ".repeat(16 * 1024) + "parser";
        assert_eq!(
            ranked(&long, &PROJECT, &ROOMY).goal_cut,
            GoalCut { bytes: 6, names: 0 }
        );
    }

    #[test]
    fn only_project_manifests_are_shown_unasked() {
        let mut files = PROJECT.to_vec();
        files.push((".npmrc", "a=b\n"));
        files.push(("big.rs", "mod nothing_of_this;\n"));
        let limits = RankLimits {
            max_files: FileLimit(7),
            max_total_bytes: ByteLimit(1000),
            outlines: false,
        };
        let ranking = ranked("parser", &files, &limits);
        assert!(paths(&ranking).contains(&"Cargo.toml") && !paths(&ranking).contains(&".npmrc"));
    }

    #[test]
    fn denied_places_are_never_chosen() {
        let ranking = ranked(
            "parser",
            &[("build/parser.rs", "parser"), ("a.rs", "")],
            &ROOMY,
        );
        assert_eq!(paths(&ranking), ["a.rs"]);
    }

    #[test]
    fn goal_of_stop_words_still_ranks() {
        for goal in [
            "",
            "the a of",
            "!!! \u{0} ???",
            &"x".repeat(100_000),
            "日本語",
        ] {
            assert_eq!(ranked(goal, &PROJECT, &ROOMY).chosen.len(), 6, "{goal:.20}");
        }
    }

    fn past(message: &str, paths: &[&str]) -> PastChange {
        let paths = paths.iter().map(|path| path.parse().unwrap()).collect();
        PastChange {
            message: message.to_owned(),
            paths,
        }
    }

    fn ranked_with(goal: &str, files: &[(&str, &str)], commits: Vec<PastChange>) -> Ranking {
        let goal = Goal::new(goal);
        let look = |(path, text): &(&str, &str)| {
            let path: RepoPath = path.parse().unwrap();
            let class = FileClass::from_path(&path);
            goal.look_at(path, class, text.len() as u64, Some(text.as_bytes()))
        };
        let limits = RankLimits {
            max_files: FileLimit(7),
            max_total_bytes: ByteLimit(1000),
            outlines: false,
        };
        let history = History { commits };
        let around = Surroundings {
            history: &history,
            ..Surroundings::default()
        };
        rank_with(&goal, files.iter().map(look).collect(), &limits, &around)
    }

    #[test]
    fn history_finds_files_without_shared_text() {
        let mut files = PROJECT.to_vec();
        files.extend([
            ("src/a.rs", "mod x;\n"),
            ("src/table.rs", "mod y;\n"),
            ("src/wire.rs", "mod z;\n"),
        ]);
        let without = ranked_with("parser", &files, Vec::new());
        assert!(!paths(&without).contains(&"src/table.rs"));
        let together = ranked_with(
            "parser",
            &files,
            vec![past("tidy", &["src/parser.rs", "src/table.rs"])],
        );
        assert_eq!(paths(&together)[0], "src/parser.rs");
        let table = together
            .chosen
            .iter()
            .find(|choice| choice.need.path == "src/table.rs")
            .unwrap();
        assert!(
            table
                .reason
                .contains("changed together with `src/parser.rs` once"),
            "{}",
            table.reason
        );
        assert_eq!(table.score, table.parts.history);
        let spoken_of = ranked_with(
            "parser",
            &files,
            vec![past("mend the parser's wire", &["src/wire.rs"])],
        );
        assert!(paths(&spoken_of).contains(&"src/wire.rs"), "{spoken_of:?}");
    }

    #[test]
    fn history_is_minor_and_skips_large_commits() {
        let files = [
            ("src/parser.rs", ""),
            ("src/other.rs", ""),
            ("Cargo.lock", ""),
        ];
        let often: Vec<PastChange> = (0..500)
            .map(|_| past("parser parser", &["src/other.rs", "Cargo.lock"]))
            .collect();
        let ranking = ranked_with("parser", &files, often);
        assert_eq!(paths(&ranking), ["src/parser.rs", "src/other.rs"]);
        assert_eq!(ranking.chosen[1].parts.history, history::LIMIT);
        assert_eq!(ranking.left_out[0].parts.history, 0);
        let many: Vec<String> = (0..51).map(|number| format!("src/{number}.rs")).collect();
        let mut all: Vec<&str> = many.iter().map(String::as_str).collect();
        all.extend(["src/parser.rs", "src/other.rs"]);
        let ranking = ranked_with("parser", &files, vec![past("parser", &all)]);
        assert!(
            ranking
                .chosen
                .iter()
                .all(|choice| choice.parts.history == 0)
        );
    }

    #[test]
    fn score_is_sum_and_test_follows_source() {
        let commits = vec![past("the parser", &["src/parser.rs", "tests/parser.rs"])];
        let ranking = ranked_with(
            "fix src/lexer.rs and parse_header in parser",
            &PROJECT,
            commits,
        );
        let rows = ranking
            .chosen
            .iter()
            .map(|choice| (choice.score, choice.parts));
        for (score, parts) in
            rows.chain(ranking.left_out.iter().map(|file| (file.score, file.parts)))
        {
            let shared = parts.names
                + parts.paths
                + parts.symbols
                + parts.text
                + parts.history
                + parts.imports;
            let sum = (parts.mentioned + parts.evidence + shared * parts.class_percent / 100)
                .cast_signed()
                + parts.tested;
            assert_eq!(sum.cast_unsigned() + parts.manifest, score, "{parts:?}");
        }
        let of = |path: &str| {
            ranking
                .chosen
                .iter()
                .find(|choice| choice.need.path == path)
                .unwrap()
        };
        assert!(of("src/parser.rs").parts.symbols > 0 && of("tests/parser.rs").parts.tested != 0);
        assert!(of("tests/parser.rs").score < of("src/parser.rs").score);
        assert!(of("src/lexer.rs").parts.mentioned > 0);
    }

    #[test]
    fn withheld_and_included_files_cost_nothing() {
        let goal = Goal::new("parser");
        let look = |path: &str| {
            let path: RepoPath = path.parse().unwrap();
            let class = FileClass::from_path(&path);
            goal.look_at(path, class, 40, None)
        };
        let limits = RankLimits {
            max_files: FileLimit(1),
            max_total_bytes: ByteLimit(40),
            outlines: false,
        };
        let candidates = vec![
            look("parser.env").withheld("holds a secret"),
            look("docs/parser.md").already_in(),
            look("src/parser.rs"),
        ];
        let ranking = rank(&goal, candidates, &limits);
        assert_eq!(paths(&ranking), ["src/parser.rs", "docs/parser.md"]);
        assert_eq!(ranking.left_out[0].reason, "holds a secret");
        assert!(ranking.left_out[0].score > 0);
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn the_order_of_candidates_does_not_matter(
                goal in "[a-d ]{0,12}",
                files in prop::collection::btree_map("[a-d]{1,3}(/[a-d]{1,3})?\\.(rs|md|lock)", "[a-d ]{0,20}", 0..8),
                seed in any::<prop::sample::Index>(),
                max_files in 0u64..6,
            ) {
                let limits = RankLimits { max_files: FileLimit(max_files), max_total_bytes: ByteLimit(60), outlines: false };
                let mut list: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
                let one = ranked(&goal, &list, &limits);
                if !list.is_empty() {
                    let by = seed.index(list.len());
                    list.rotate_left(by);
                }
                prop_assert_eq!(&one, &ranked(&goal, &list, &limits));
                prop_assert_eq!(one.chosen.len() + one.left_out.len(), list.len());
                prop_assert!(one.chosen.len() as u64 <= max_files);
            }
        }
    }
}
