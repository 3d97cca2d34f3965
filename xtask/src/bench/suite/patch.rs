//! Checking a patch of twenty files, beside `git apply --check`.
//!
//! The check is made of the parts that the patch gate of a run is made of: the contents before, the text against
//! the policy, the tree it makes in a temporary index, and whether the two agree. What a temporary index costs is
//! measured apart, with git alone: `read-tree`, `apply --cached` and `write-tree`. The second case is the whole
//! command, with the start of the program and the opening of the repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crucible_model::{RepoPath, Verdict};
use crucible_patch::{AnswerError, Policy, Proposal, apply, is_test_path, judge, make_diff, parse};
use crucible_repo::{MAX_TOUCHED, RepoError, agrees};

use super::measure::{Case, Goal, median, side_by_side, timed};
use super::snapshot::Opened;
use super::tree::{Repository, SourceTree, read, scratch, succeed};
use super::{Bench, Context, unmeasured};
use crate::error::TaskError;

/// How many files the patch touches.
const FILES: usize = 20;

/// The most times that `git apply --check` takes, beyond the temporary index.
const MOST: f64 = 1.5;

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
        let patch = Patch::write(tree, folder.path())?;
        let opened = Opened::new(&repository)?;
        let mut cases = Vec::new();
        let mut case = |ours: &str, check: &dyn Fn() -> Result<Duration, TaskError>| {
            let mut apart = Vec::new();
            let pair = side_by_side(
                context.rounds,
                || {
                    apart.push(index(&repository, &patch)?);
                    check()
                },
                || git_check(&repository, &patch),
            )?;
            cases.push(Case {
                bench: "patch",
                ours: format!("{ours}: {FILES} files of {}", tree.name),
                beside: "git apply --check".to_owned(),
                pair,
                goal: Goal::TimesAtMostBeyond { times: MOST, apart: median(&apart) },
            });
            Ok::<(), TaskError>(())
        };
        case("check", &|| {
            let (time, verdict) = timed(|| opened.runtime.block_on(check(&opened, &patch)));
            let verdict = verdict.map_err(|error| unmeasured("patch")(error))?;
            passed(&verdict).map(|()| time)
        })?;
        case("crucible patch check", &|| command(&program, &repository, &patch))?;
        Ok(cases)
    }
}

/// A patch in a file, and the policy that lets it through.
struct Patch {
    path: PathBuf,
    bytes: Vec<u8>,
    policy: Policy,
    policy_path: PathBuf,
}

impl Patch {
    /// Adds a line in the middle of as many source files, spread evenly over the tree.
    fn write(tree: &SourceTree, folder: &Path) -> Result<Self, TaskError> {
        let sources: Vec<&RepoPath> =
            tree.files.iter().filter(|path| path.extension() == Some("rs") && !is_test_path(path)).collect();
        let mut before = BTreeMap::new();
        let mut after = BTreeMap::new();
        for path in sources.iter().step_by((sources.len() / FILES).max(1)).take(FILES) {
            let content = read(&tree.folder.join(path))?;
            let line = content.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let mut changed = content.clone();
            changed.splice(line..line, *b"// A line that was not here before.\n");
            before.insert((*path).clone(), content);
            after.insert((*path).clone(), changed);
        }
        let bytes = make_diff(&before, &after).map_err(unmeasured("patch"))?;
        let everywhere = ".".parse().map_err(unmeasured("patch"))?;
        let policy = Policy { max_files: FILES as u64, ..Policy::within(vec![everywhere]) };
        let (path, policy_path) = (folder.join("change.patch"), folder.join("policy.json"));
        fs::write(&path, &bytes).map_err(TaskError::io("write", &path))?;
        fs::write(&policy_path, serde_json::to_vec(&policy)?)
            .map_err(TaskError::io("write", &policy_path))?;
        Ok(Self { path, bytes, policy, policy_path })
    }
}

/// What the patch gate does with a patch.
async fn check(opened: &Opened, patch: &Patch) -> Result<Verdict, CheckError> {
    let git = &opened.git;
    let base = git.opened_at().commit.clone();
    let parsed = parse(&patch.bytes).map_err(|error| CheckError::Refused(error.to_string()))?;
    let paths: Vec<RepoPath> = parsed.paths().into_iter().cloned().collect();
    let before = git.files_at(&base, &paths, MAX_TOUCHED).await?;
    let after = apply(&Proposal::Diff(patch.bytes.clone()), &before)?;
    let mut verdict = judge(&parsed, &patch.policy, &before, &after);
    let tree = git.tree_after_patch(&base, &patch.bytes).await?;
    verdict.merge(agrees(&patch.bytes, &parsed, &before, &tree));
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
    let why = first.map_or_else(String::new, |finding| format!("{} {}", finding.code, finding.subject));
    Err(unmeasured("patch")(format!("the patch is refused: {why}")))
}

fn command(program: &Path, repository: &Repository, patch: &Patch) -> Result<Duration, TaskError> {
    let mut command = Command::new(program);
    command.args(["patch", "check", "--patch"]).arg(&patch.path).arg("--policy").arg(&patch.policy_path);
    command.current_dir(repository.path()).stdin(Stdio::null()).stdout(Stdio::null());
    let (time, checked) = timed(|| succeed(command));
    checked.map(|()| time)
}

fn git_check(repository: &Repository, patch: &Patch) -> Result<Duration, TaskError> {
    let mut command = repository.git(&["apply", "--check"]);
    command.arg(&patch.path);
    let (time, checked) = timed(|| succeed(command));
    checked.map(|()| time)
}

/// What the tree of a patch costs: an index of its own is filled, changed and written.
fn index(repository: &Repository, patch: &Patch) -> Result<Duration, TaskError> {
    let aside = scratch()?;
    let objects = repository.path().join(".git/objects");
    let own_objects = aside.path().join("objects");
    fs::create_dir(&own_objects).map_err(TaskError::io("create", &own_objects))?;
    let own = |words: &[&str]| {
        let mut command = repository.git(words);
        command
            .env("GIT_INDEX_FILE", aside.path().join("index"))
            .env("GIT_OBJECT_DIRECTORY", &own_objects)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &objects);
        command
    };
    let (fill, mut apply, write) =
        (own(&["read-tree", "HEAD"]), own(&["apply", "--cached"]), own(&["write-tree"]));
    apply.arg(&patch.path);
    let (time, made) = timed(|| succeed(fill).and_then(|()| succeed(apply)).and_then(|()| succeed(write)));
    made.map(|()| time)
}
