//! What a crawl does without a network: looking at a large repository, ranking, and judging a command.
//!
//! The repository is one of this workspace's own dependencies many times over. Beside the inspection stand `git ls-files` with
//! the reading of the very files that were sampled, and repomix, the tool that one would otherwise give the same tree to. How much
//! memory an inspection takes is seen on a process of its own.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crucible_crawl::{
    FetchMethod, Fetched, FoundRepo, InspectedRepository, OwnerType, PlanV1, SearchItem, Workspace,
    inspect, rank, validate_plan_safety,
};
use crucible_model::Timestamp;
use crucible_repo::{SampleCaps, sample};

use super::bench::{Bench, Context, unmeasured};
use super::council::peak_of;
use super::measure::{Case, Goal, Pair, side_by_side, timed};
use super::tree::{Repository, SourceTree, read, scratch, succeed};
use crate::error::TaskError;
use crate::tools;

const NAME: &str = "crawl";

/// How many files the repository has at least.
const FILES: usize = 20_000;

/// The most bytes that an inspection has resident.
const MEMORY: u64 = 60_000_000;

/// How many results are ranked.
const RESULTS: u64 = 90;

/// How often a command is judged in one round; the slowest hundredth of these counts.
const JUDGEMENTS: usize = 2_000;

/// How many bytes the judged command has.
const COMMAND: usize = 4_096;

/// A moment for both of them to take.
const MILLISECOND: Goal = Goal::TimeAtMost(Duration::from_millis(1));

/// The bench of the crawl.
pub(super) struct Crawl;

impl Bench for Crawl {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let mut cases = inspections(context)?;
        cases.push(ranking(context.rounds)?);
        tools::packages(context.root)?;
        cases.extend(judging(context.rounds)?);
        Ok(cases)
    }
}

fn inspections(context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
    let (repository, files) = many_times(&context.trees()?.branched)?;
    let top = repository.path();
    let sampled = sample(top, None, &SampleCaps::STANDARD).map_err(unmeasured(NAME))?;
    let sampled: Vec<PathBuf> = sampled
        .files
        .iter()
        .map(|file| top.join(&file.path))
        .collect();
    let own_text = format!("inspect, {files} files");
    let git = side_by_side(
        context.rounds,
        || look(top),
        || list_and_read(&repository, &sampled),
    )?;
    let mut peak = 0;
    for _ in 0..context.rounds.min(3) {
        peak = peak.max(peak_of_inspection(top)?);
    }
    let beside = format!(
        "git ls-files, and reading the {} sampled files",
        sampled.len()
    );
    let repomix = tools::repomix(context.root)?;
    // It takes seconds: more rounds say nothing more.
    let packed = side_by_side(context.rounds.min(3), || look(top), || pack(&repomix, top))?;
    let memory = Goal::MemoryAtMost { peak, most: MEMORY };
    let case = |beside: &str, pair: Pair, goal| Case {
        bench: NAME,
        ours: own_text.clone(),
        beside: beside.to_owned(),
        pair,
        goal,
    };
    Ok(vec![
        case(&beside, git.clone(), Goal::TimesAtMost(2.0)),
        case(&beside, git, memory),
        case(
            "repomix packing the same tree",
            packed,
            Goal::TimesAtMost(1.0),
        ),
    ])
}

/// A repository that holds a tree so often that it has enough files, and how many those are.
pub(super) fn many_times(tree: &SourceTree) -> Result<(Repository, usize), TaskError> {
    let repository = tree.repository()?;
    let contents = tree.contents()?;
    let mut files = tree.files.len();
    while files < FILES {
        let part = repository.path().join(format!("part{files:05}"));
        for (path, content) in tree.files.iter().zip(&contents) {
            let target = part.join(path);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).map_err(TaskError::io("create", parent))?;
            }
            fs::write(&target, content).map_err(TaskError::io("write", &target))?;
        }
        files += contents.len();
    }
    for words in [
        &["add", "--all", "--force"][..],
        &["commit", "--quiet", "--message", "Many times"],
    ] {
        succeed(repository.git(words))?;
    }
    Ok((repository, files))
}

fn look(top: &Path) -> Result<Duration, TaskError> {
    let at: Timestamp = "2026-01-31T09:30:00Z".parse().map_err(unmeasured(NAME))?;
    let repo = InspectedRepository {
        full_name: "./bench".to_owned(),
        url: "file:///bench".to_owned(),
        selected_ref: "main".to_owned(),
        resolved_commit: "0".repeat(40),
        default_branch: "main".to_owned(),
    };
    let fetched = Fetched {
        tree: top.to_owned(),
        repo,
        method: FetchMethod::ShallowClone,
        subpath: None,
    };
    let (time, inspection) = timed(|| inspect(&fetched, None, at));
    let inspection = inspection.map_err(unmeasured(NAME))?;
    if inspection.artifact.sampled_files == 0 {
        return Err(unmeasured(NAME)("the inspection read nothing"));
    }
    Ok(time)
}

fn list_and_read(repository: &Repository, sampled: &[PathBuf]) -> Result<Duration, TaskError> {
    let (time, outcome) = timed(|| {
        let mut list = repository.git(&["ls-files", "-z"]);
        let listed = list
            .stdout(Stdio::piped())
            .output()
            .map_err(TaskError::io("run", "git ls-files"))?;
        let mut bytes = listed.stdout.len();
        for path in sampled {
            bytes += read(path)?.len();
        }
        Ok::<usize, TaskError>(bytes)
    });
    outcome.map(|_| time)
}

/// How long repomix takes to pack a tree.
pub(super) fn pack(repomix: &tools::Repomix, top: &Path) -> Result<Duration, TaskError> {
    let folder = scratch()?;
    let mut command = Command::new(&repomix.node);
    command
        .arg(&repomix.script)
        .args(["--quiet", "--no-security-check", "--output"])
        .arg(folder.path().join("packed.xml"))
        .arg(top)
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let (time, outcome) = timed(|| succeed(command));
    outcome.map(|()| time)
}

fn peak_of_inspection(top: &Path) -> Result<u64, TaskError> {
    let program = std::env::current_exe().map_err(TaskError::io("find", "this program"))?;
    let mut command = Command::new(program);
    command.args(["bench", "--inspect-once"]).arg(top);
    Ok(peak_of(command)?.1)
}

/// The process of one inspection: looks, says so, and waits for the end of its input.
pub(super) fn inspect_once(top: &Path) -> Result<(), TaskError> {
    look(top)?;
    let mut out = io::stdout();
    writeln!(out, "done")
        .and_then(|()| out.flush())
        .map_err(TaskError::io("write", "standard output"))?;
    io::copy(&mut io::stdin(), &mut io::sink()).map_err(TaskError::io("read", "standard input"))?;
    Ok(())
}

fn ranking(rounds: u32) -> Result<Case, TaskError> {
    let now: Timestamp = "2026-01-31T09:30:00Z".parse().map_err(unmeasured(NAME))?;
    let candidates: Vec<FoundRepo> = (0..RESULTS).map(|number| candidate(number, now)).collect();
    let json = serde_json::to_string(&rank(&candidates, "grep", now))?;
    let pair = side_by_side(
        rounds,
        || Ok(timed(|| rank(&candidates, "grep", now)).0),
        || {
            let (time, items) = timed(|| serde_json::from_str::<Vec<SearchItem>>(&json));
            items?;
            Ok(time)
        },
    )?;
    Ok(Case {
        bench: NAME,
        ours: format!("rank {RESULTS} results"),
        beside: "reading as many from JSON".to_owned(),
        pair,
        goal: MILLISECOND,
    })
}

fn candidate(number: u64, now: Timestamp) -> FoundRepo {
    FoundRepo {
        full_name: format!("owner{}/grep-{number}", number % 7),
        name: format!("grep-{number}"),
        description: "searches directories for lines that match, built with cargo".repeat(4),
        url: format!("https://github.com/owner{}/grep-{number}", number % 7),
        stars: number * 997 % 40_000,
        pushed_at: now,
        owner_type: OwnerType::User,
        archived: number.is_multiple_of(11),
        fork: number.is_multiple_of(13),
        default_branch: "main".to_owned(),
        language: Some("Rust".to_owned()),
        topics: vec!["search".to_owned(), "cli".to_owned()],
        has_releases: Some(number.is_multiple_of(2)),
    }
}

/// The slowest hundredth of many judgements, once of a command that passes and once of one that is refused at its end.
fn judging(rounds: u32) -> Result<Vec<Case>, TaskError> {
    let long = |end: &str| {
        let mut command = "cargo build".to_owned();
        while command.len() + " --package abcdef".len() + end.len() <= COMMAND {
            command.push_str(" --package abcdef");
        }
        command + end
    };
    let mut cases = Vec::new();
    for (what, command, valid) in [
        ("allowed", long(" --locked"), true),
        ("refused", long(" --locked;x"), false),
    ] {
        let plan = plan(&command)?;
        let workspace = Workspace {
            root: "/workspace".into(),
            ..Default::default()
        };
        let slowest = || {
            let mut times = Vec::with_capacity(JUDGEMENTS);
            for _ in 0..JUDGEMENTS {
                let (time, safety) = timed(|| validate_plan_safety(&plan, &workspace));
                if safety.is_valid() != valid {
                    return Err(unmeasured(NAME)(format!("{:?}", safety.violations())));
                }
                times.push(time);
            }
            times.sort_unstable();
            Ok(times
                .get(JUDGEMENTS * 99 / 100)
                .copied()
                .unwrap_or_default())
        };
        let dash = || {
            let mut command_line = Command::new("dash");
            command_line
                .args(["-n", "-c", &command])
                .stdin(Stdio::null())
                .stderr(Stdio::null());
            let (time, status) = timed(|| command_line.status());
            status.map_err(TaskError::io("run", "dash"))?;
            Ok(time)
        };
        cases.push(Case {
            bench: NAME,
            ours: format!(
                "judge {} bytes, {what}, the slowest of a hundred",
                command.len()
            ),
            beside: "dash -n".to_owned(),
            pair: side_by_side(rounds, slowest, dash)?,
            goal: MILLISECOND,
        });
    }
    Ok(cases)
}

fn plan(command: &str) -> Result<PlanV1, TaskError> {
    Ok(serde_json::from_value(serde_json::json!({
        "schema": PlanV1::SCHEMA, "created_at": "2026-01-31T09:30:00Z",
        "plan_hash": "000000000000", "prompt_hash": "000000000000",
        "repo": { "full_name": "o/r", "url": "https://github.com/o/r", "selected_ref": "main", "resolved_commit": "0".repeat(40) },
        "detected": { "build_system": "cargo", "confidence": 0.95 },
        "dependencies": { "tools": ["cargo"], "notes": "" },
        "steps": [{ "name": "build", "cmd": command, "cwd": "." }],
        "warnings": [], "debate_rounds": 0, "accepted_suggestions": [], "rejected_suggestions": [],
        "safety_validated": false, "safety_violations": [],
    }))?)
}
