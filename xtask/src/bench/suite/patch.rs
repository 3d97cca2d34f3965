//! Checking a patch of five and of twenty files, beside `git apply --check`.
//!
//! The check is made of the parts that the patch gate is made of: the contents before, the text against
//! the policy, what it changes in a temporary index, and whether the two agree. Beside the twenty files, what a temporary index
//! costs is measured apart, with git alone: `ls-tree`, `update-index`, `apply --cached` and `ls-files`. The second case of each is
//! the whole command, with the start of the program and the opening of the repository. Five files, which is what a policy
//! allows unless it says otherwise, have a time of their own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crucible_model::{RepoPath, Verdict};
use crucible_patch::{AnswerError, Policy, Proposal, apply, is_test_path, judge, make_diff, parse};
use crucible_repo::{MAX_TOUCHED, RepoError, check_changes_agreement};

use super::bench::{Bench, Context, unmeasured};
use super::measure::{Case, Goal, median, side_by_side, timed};
use super::snapshot::Opened;
use super::tree::{Repository, SourceTree, read, scratch, succeed};
use crate::error::TaskError;

/// How many files a patch touches unless its policy allows more.
const USUAL: usize = 5;

/// The longest that a check of those takes.
const USUAL_TIME: Duration = Duration::from_millis(15);

/// How many files the large patch touches.
const FILES: usize = 20;

/// The most times that `git apply --check` takes, beyond the temporary index.
const LIMIT: f64 = 1.5;

/// The bench of the patch check.
pub(super) struct PatchCheck;

impl Bench for PatchCheck {
    fn name(&self) -> &'static str {
        "patch"
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let program = context.program()?;
        let tree = &context.trees()?.branched;
        let repository = tree.repository()?;
        let folder = scratch()?;
        let opened = Opened::new(&repository)?;
        let mut cases = Vec::new();
        for files in [USUAL, FILES] {
            let patch = Patch::write(tree, folder.path(), files)?;
            let mut case = |ours: &str, check: &dyn Fn() -> Result<Duration, TaskError>| {
                let mut durations = Vec::new();
                let pair = side_by_side(
                    context.rounds,
                    || {
                        durations.push(index(&repository, &patch)?);
                        check()
                    },
                    || git_check(&repository, &patch),
                )?;
                let goal = if files == USUAL {
                    Goal::TimeAtMost(USUAL_TIME)
                } else {
                    Goal::TimesAtMostBeyond {
                        times: LIMIT,
                        apart: median(&durations),
                    }
                };
                cases.push(Case {
                    bench: "patch",
                    ours: format!("{ours}: {files} files of {}", tree.name),
                    beside: "git apply --check".to_owned(),
                    pair,
                    goal,
                });
                Ok::<(), TaskError>(())
            };
            case("check", &|| {
                let (time, verdict) = timed(|| opened.runtime.block_on(check(&opened, &patch)));
                let verdict = verdict.map_err(|error| unmeasured("patch")(error))?;
                passed(&verdict).map(|()| time)
            })?;
            case("crucible patch check", &|| {
                command(&program, &repository, &patch)
            })?;
        }
        Ok(cases)
    }
}

/// A patch in a file, and the policy that lets it through.
struct Patch {
    path: PathBuf,
    bytes: Vec<u8>,
    paths: Vec<RepoPath>,
    policy: Policy,
    policy_path: PathBuf,
}

impl Patch {
    /// Adds a line in the middle of as many source files, spread evenly over the tree.
    fn write(tree: &SourceTree, folder: &Path, files: usize) -> Result<Self, TaskError> {
        let sources: Vec<&RepoPath> = tree
            .files
            .iter()
            .filter(|path| path.extension() == Some("rs") && !is_test_path(path))
            .collect();
        let mut before = BTreeMap::new();
        let mut after = BTreeMap::new();
        for path in sources
            .iter()
            .step_by((sources.len() / files).max(1))
            .take(files)
        {
            let content = read(&tree.folder.join(path))?;
            let line = content
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(0, |end| end + 1);
            let mut changed = content.clone();
            changed.splice(line..line, *b"// A line that was not here before.\n");
            before.insert((*path).clone(), content);
            after.insert((*path).clone(), changed);
        }
        let bytes = make_diff(&before, &after).map_err(unmeasured("patch"))?;
        let everywhere = ".".parse().map_err(unmeasured("patch"))?;
        let policy = Policy {
            max_files: files as u64,
            ..Policy::for_roots(vec![everywhere])
        };
        let (path, policy_path) = (folder.join("change.patch"), folder.join("policy.json"));
        fs::write(&path, &bytes).map_err(TaskError::io("write", &path))?;
        fs::write(&policy_path, serde_json::to_vec(&policy)?)
            .map_err(TaskError::io("write", &policy_path))?;
        Ok(Self {
            path,
            bytes,
            paths: before.into_keys().collect(),
            policy,
            policy_path,
        })
    }
}

/// What the patch gate does with a patch.
async fn check(opened: &Opened, patch: &Patch) -> Result<Verdict, CheckError> {
    let git = &opened.git;
    let base = git.opened_at().commit.clone();
    let parsed = parse(&patch.bytes).map_err(|error| CheckError::Refused(error.to_string()))?;
    let paths: Vec<RepoPath> = parsed.paths().into_iter().cloned().collect();
    let (before, index) = git.patch_index(&base, &paths, MAX_TOUCHED).await?;
    let after = apply(&Proposal::Diff(patch.bytes.clone()), &before)?;
    let mut verdict = judge(&parsed, &patch.policy, &before, &after);
    let produced = git.changes_after_patch(index, &patch.bytes).await?;
    verdict.merge(check_changes_agreement(
        &patch.bytes,
        &parsed,
        &before,
        &produced,
    ));
    Ok(verdict)
}

#[derive(Debug, thiserror::Error)]
enum CheckError {
    #[error(transparent)]
    Repository(#[from] RepoError),
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error("the patch is refused: {0}")]
    Refused(String),
}

fn passed(verdict: &Verdict) -> Result<(), TaskError> {
    if verdict.passes() {
        return Ok(());
    }
    let first = verdict.findings().first();
    let why = first.map_or_else(String::new, |finding| {
        format!("{} {}", finding.code, finding.subject)
    });
    Err(unmeasured("patch")(format!("the patch is refused: {why}")))
}

fn command(program: &Path, repository: &Repository, patch: &Patch) -> Result<Duration, TaskError> {
    let mut command = Command::new(program);
    command
        .args(["patch", "check", "--patch"])
        .arg(&patch.path)
        .arg("--policy")
        .arg(&patch.policy_path);
    command
        .current_dir(repository.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let (time, checked) = timed(|| succeed(command));
    checked.map(|()| time)
}

fn git_check(repository: &Repository, patch: &Patch) -> Result<Duration, TaskError> {
    let mut command = repository.git(&["apply", "--check"]);
    command.arg(&patch.path);
    let (time, checked) = timed(|| succeed(command));
    checked.map(|()| time)
}

/// What the changes of a patch cost git: an index of its own is filled with the files, changed and listed.
fn index(repository: &Repository, patch: &Patch) -> Result<Duration, TaskError> {
    let temp_dir = scratch()?;
    let objects = repository.path().join(".git/objects");
    let own_objects = temp_dir.path().join("objects");
    fs::create_dir(&own_objects).map_err(TaskError::io("create", &own_objects))?;
    let own = |words: &[&str]| {
        let mut command = repository.git(words);
        command
            .env("GIT_INDEX_FILE", temp_dir.path().join("index"))
            .env("GIT_OBJECT_DIRECTORY", &own_objects)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &objects)
            .stdout(Stdio::null());
        command
    };
    let entries = temp_dir.path().join("entries");
    let (mut list, mut fill, mut apply, show) = (
        own(&["ls-tree", "HEAD", "--"]),
        own(&["update-index", "--index-info"]),
        own(&["apply", "--cached"]),
        own(&["ls-files", "--stage"]),
    );
    let file = |at: &Path| fs::File::create(at).map_err(TaskError::io("write", at));
    list.args(patch.paths.iter().map(RepoPath::as_str))
        .stdout(file(&entries)?);
    apply.arg(&patch.path);
    let (time, made) = timed(|| {
        succeed(list)?;
        fill.stdin(fs::File::open(&entries).map_err(TaskError::io("read", &entries))?);
        succeed(fill)
            .and_then(|()| succeed(apply))
            .and_then(|()| succeed(show))
    });
    made.map(|()| time)
}
