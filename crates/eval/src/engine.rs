//! Runs the trials of an evaluation: every sample of each task in each configuration.
//!
//! Every task is validated first: its check must fail on the base and pass with its solution, if it has one.
//! Trials then run in parallel, each in its own directory, and write a result document. A trial with a
//! document of the same inputs is not repeated. Clones are removed after a trial; logs stay.
//!
//! Invariants: a document is written atomically, after everything it describes; a trial that was cut off has
//! none and is run again.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use crucible_host::clock::Stopwatch;
use crucible_host::fs;
use crucible_model::{ByteLimit, Digest, to_canonical_json};
use crucible_repo::Oid;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};

use crate::error::EvalError;
use crate::outcome::{Check, CheckEnd, Spent, TrialDocument, TrialOutcome, TrialVersion};
use crate::place::{Judged, Machine, TaskClone, check};
use crate::task::Task;

/// The document of a trial.
const RESULT: &str = "result.json";
/// The largest document that is read.
const MAX_DOCUMENT: ByteLimit = ByteLimit(1 << 20);
/// The most characters of a reason.
const MAX_REASON: usize = 500;

/// How a model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialMode {
    /// By a run of Crucible, with default gates and judges.
    Governed,
    /// Once, for whole files that are committed as they come.
    Direct,
}

/// A configuration to measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// The name, unique within a plan.
    pub name: String,
    /// The provider that is asked.
    pub provider: String,
    /// The model that is asked.
    pub model: String,
    /// How it is asked.
    pub mode: TrialMode,
    /// The digest of every setting that holds.
    pub settings: Digest,
}

/// What is evaluated.
pub struct EvalPlan {
    /// The tasks, each name once.
    pub tasks: Vec<Task>,
    /// The configurations, each name once.
    pub configurations: Vec<Configuration>,
    /// How often each task is solved in each.
    pub samples: u64,
    /// The seed of the first sample; `None` if models get no seed.
    pub seed: Option<u64>,
    /// How many trials run at a time.
    pub jobs: usize,
    /// The evaluation's own directory.
    pub out: PathBuf,
}

/// One trial, for the solver.
pub struct Job<'a> {
    /// The position of its configuration in the plan.
    pub configuration: usize,
    /// The task to solve.
    pub task: &'a Task,
    /// The clone to work on.
    pub workspace: &'a TaskClone,
    /// A directory for whatever is kept.
    pub place: &'a Path,
    /// The model's seed, if any.
    pub seed: Option<u64>,
}

/// How solving ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// With this commit in the clone.
    Landed(Oid),
    /// No commit, after a model was called.
    Nothing,
    /// No commit, before any model was called.
    Declined,
    /// Ended for a reason unrelated to the configuration: an unreachable provider, or a limit of the
    /// evaluation.
    Unfinished,
}

/// What came of solving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Solved {
    /// How it ended.
    pub ending: Ending,
    /// Why, in one line.
    pub reason: String,
    /// The run's id, if there was a run.
    pub run: Option<String>,
    /// What calls of models took.
    pub spent: Spent,
}

/// Solves tasks.
#[async_trait(?Send)]
pub trait Solver {
    /// Solves one trial. Every failure is an outcome.
    async fn solve(&self, job: &Job<'_>) -> Solved;

    /// Returns whether the evaluation's own limits allow no further call.
    fn is_exhausted(&self) -> bool;
}

/// Hears how an evaluation fares.
pub trait Observer {
    /// A task was proved, or found broken.
    fn proved(&self, task: &str, validity: &Validity);

    /// A trial begins.
    fn started(&self, configuration: &str, task: &str, sample: u64);

    /// A trial has ended, or its document was there already. `done` of `total` trials have a document.
    fn finished(&self, document: &TrialDocument, done: usize, total: usize);
}

/// Whether a task proves anything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validity {
    /// The task, as it was proved.
    pub task: Digest,
    /// The check on the base, which must not pass.
    pub base: Option<Check>,
    /// The check with the solution, which must pass; absent without a solution.
    pub solution: Option<Check>,
    /// Why the task is not usable; absent if it is.
    pub problem: Option<String>,
}

/// Validates one task in `work_dir`, or reuses the result saved there for the same task.
///
/// # Errors
///
/// Fails where the room cannot be written; a problem of the task is a result, not an error.
pub(crate) async fn validate(
    machine: &Machine<'_>,
    task: &Task,
    work_dir: &Path,
) -> Result<Validity, EvalError> {
    let document = work_dir.join("validity.json");
    if let Some(known) = read::<Validity>(&document)?.filter(|known| known.task == task.digest) {
        return Ok(known);
    }
    fs::remove_dir_all(work_dir)?;
    fs::create_dir_all(work_dir)?;
    let (clone, fresh, log) = (
        work_dir.join("clone"),
        work_dir.join("check"),
        work_dir.join("validity.log"),
    );
    let mut validity = Validity {
        task: task.digest,
        base: None,
        solution: None,
        problem: None,
    };
    match TaskClone::create(machine, task, &clone).await {
        Err(error) => validity.problem = Some(error.to_string()),
        Ok(workspace) => {
            let base = check(machine, task, &workspace, Judged::Base, &fresh, &log).await?;
            validity.problem = match &base.end {
                CheckEnd::Exited(0) => Some("its check passes without a solution".to_owned()),
                CheckEnd::Exited(_) | CheckEnd::Stopped(_) => None,
                CheckEnd::NotPrepared(why) | CheckEnd::NotStarted(why) => Some(why.clone()),
            };
            validity.base = Some(base);
            if let (Some(solution), None) = (&task.solution, &validity.problem) {
                let solved = check(
                    machine,
                    task,
                    &workspace,
                    Judged::Solution(solution),
                    &fresh,
                    &log,
                )
                .await?;
                if !solved.passes() {
                    validity.problem = Some(format!(
                        "its check fails with its solution: {}",
                        in_words(&solved.end)
                    ));
                }
                validity.solution = Some(solved);
            }
        }
    }
    fs::remove_dir_all(&clone)?;
    write(&document, &validity)?;
    Ok(validity)
}

/// Returns what the trials of a plan have spent so far, from their documents.
///
/// # Errors
///
/// Fails where a document cannot be read.
pub(crate) fn spent_before(plan: &EvalPlan) -> Result<Spent, EvalError> {
    let mut spent = Spent {
        micro_dollars: Some(0),
        ..Spent::default()
    };
    for trial in trials(plan) {
        if let Some(document) = read::<TrialDocument>(&trial.place(plan).join(RESULT))? {
            let known = Spent {
                micro_dollars: document.spent.micro_dollars.or(Some(0)),
                ..document.spent
            };
            spent = spent.and(known);
        }
    }
    Ok(spent)
}

/// Runs the trials of a plan that have no document yet, and returns all documents in the plan's order.
/// Dropping the future stops every trial.
///
/// # Errors
///
/// Fails where the evaluation's own directory cannot be written.
pub async fn evaluate(
    machine: &Machine<'_>,
    plan: &EvalPlan,
    solver: &dyn Solver,
    observer: &dyn Observer,
) -> Result<Vec<TrialDocument>, EvalError> {
    let jobs = plan.jobs.max(1);
    let mut proofs = Vec::new();
    for task in &plan.tasks {
        let work_dir = plan.out.join("tasks").join(&task.name);
        proofs.push(async move {
            let validity = validate(machine, task, &work_dir).await?;
            observer.proved(&task.name, &validity);
            Ok::<_, EvalError>((task.name.as_str(), validity.problem))
        });
    }
    let problems: BTreeMap<&str, Option<String>> = stream::iter(proofs)
        .buffer_unordered(jobs)
        .try_collect()
        .await?;
    let trials = trials(plan);
    let (total, done) = (trials.len(), Cell::new(0));
    let mut running = Vec::new();
    for (position, trial) in trials.into_iter().enumerate() {
        let problem = problems.get(trial.task.name.as_str()).cloned().flatten();
        let done = &done;
        running.push(async move {
            let document = trial
                .document(machine, plan, solver, observer, problem)
                .await?;
            done.set(done.get() + 1);
            observer.finished(&document, done.get(), total);
            Ok::<_, EvalError>((position, document))
        });
    }
    let documents: BTreeMap<usize, TrialDocument> = stream::iter(running)
        .buffer_unordered(jobs)
        .try_collect()
        .await?;
    Ok(documents.into_values().collect())
}

/// One trial of a plan.
struct Trial<'a> {
    index: usize,
    configuration: &'a Configuration,
    task: &'a Task,
    sample: u64,
}

/// Every trial: those of one task side by side, so that pairs are complete early.
fn trials(plan: &EvalPlan) -> Vec<Trial<'_>> {
    let mut trials = Vec::new();
    for task in &plan.tasks {
        for sample in 1..=plan.samples {
            for (index, configuration) in plan.configurations.iter().enumerate() {
                trials.push(Trial {
                    index,
                    configuration,
                    task,
                    sample,
                });
            }
        }
    }
    trials
}

impl Trial<'_> {
    fn logs(&self) -> String {
        format!(
            "trials/{}/{}/{}",
            self.configuration.name, self.task.name, self.sample
        )
    }

    fn place(&self, plan: &EvalPlan) -> PathBuf {
        plan.out.join(self.logs())
    }

    fn seed(&self, plan: &EvalPlan) -> Option<u64> {
        plan.seed.map(|seed| seed.wrapping_add(self.sample - 1))
    }

    /// The digest of everything that decides the outcome.
    fn inputs(&self, plan: &EvalPlan) -> Result<Digest, EvalError> {
        let Configuration {
            provider,
            model,
            mode,
            settings,
            name: _,
        } = self.configuration;
        let inputs = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"), "task": self.task.digest, "sample": self.sample,
            "seed": self.seed(plan).map(|seed| seed.to_string()), "provider": provider, "model": model,
            "mode": mode, "settings": settings,
        });
        Ok(Digest::of_canonical(&inputs)?)
    }

    async fn document(
        &self,
        machine: &Machine<'_>,
        plan: &EvalPlan,
        solver: &dyn Solver,
        observer: &dyn Observer,
        broken: Option<String>,
    ) -> Result<TrialDocument, EvalError> {
        let (place, inputs) = (self.place(plan), self.inputs(plan)?);
        let result = place.join(RESULT);
        let known = read::<TrialDocument>(&result)?;
        if let Some(known) = known.filter(|known| known.inputs == inputs)
            && known.outcome != TrialOutcome::Unfinished
        {
            return Ok(known);
        }
        let mut document = TrialDocument {
            schema_version: TrialVersion::V1,
            inputs,
            configuration: self.configuration.name.clone(),
            task: self.task.name.clone(),
            sample: self.sample,
            seed: self.seed(plan),
            outcome: TrialOutcome::Broken,
            reason: String::new(),
            commit: None,
            run: None,
            check: None,
            spent: Spent {
                micro_dollars: Some(0),
                ..Spent::default()
            },
            seconds: 0.0,
            logs: self.logs(),
        };
        let ended = |document: &mut TrialDocument, outcome, reason: &str| {
            document.outcome = outcome;
            document.reason = reason
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            if let Some((end, _)) = document.reason.char_indices().nth(MAX_REASON) {
                document.reason.truncate(end);
            }
        };
        if solver.is_exhausted() && broken.is_none() {
            // Nothing was started, so an earlier document stays valid.
            ended(
                &mut document,
                TrialOutcome::Unfinished,
                "a limit of the evaluation was reached first",
            );
            return Ok(document);
        }
        fs::remove_dir_all(&place)?;
        fs::create_dir_all(&place)?;
        if let Some(problem) = broken {
            ended(&mut document, TrialOutcome::Broken, &problem);
            write(&result, &document)?;
            return Ok(document);
        }
        observer.started(&self.configuration.name, &self.task.name, self.sample);
        let (clone, check_dir) = (place.join("clone"), place.join("check"));
        let ready = match TaskClone::create(machine, self.task, &clone).await {
            Ok(workspace) => {
                let set_up = machine
                    .set_up(self.task, &clone, &place.join("setup.log"))
                    .await;
                set_up.map(|()| workspace)
            }
            Err(error) => Err(error),
        };
        match ready {
            Err(error) => ended(&mut document, TrialOutcome::Broken, &error.to_string()),
            Ok(workspace) => {
                let (seed, watch) = (self.seed(plan), Stopwatch::start());
                let job = Job {
                    configuration: self.index,
                    task: self.task,
                    workspace: &workspace,
                    place: &place,
                    seed,
                };
                let solved = solver.solve(&job).await;
                document.seconds = watch.elapsed().as_secs_f64();
                document.run = solved.run;
                document.spent = solved.spent;
                let mut outcome = (
                    match solved.ending {
                        Ending::Landed(_) => TrialOutcome::Right,
                        Ending::Nothing => TrialOutcome::NothingLanded,
                        Ending::Declined => TrialOutcome::Declined,
                        Ending::Unfinished => TrialOutcome::Unfinished,
                    },
                    solved.reason,
                );
                if let Ending::Landed(commit) = solved.ending {
                    let log = place.join("check.log");
                    let judged = Judged::Commit(&commit);
                    let checked =
                        check(machine, self.task, &workspace, judged, &check_dir, &log).await?;
                    if !checked.passes() {
                        let unknown = matches!(checked.end, CheckEnd::NotStarted(_));
                        let failed = if unknown {
                            TrialOutcome::Unfinished
                        } else {
                            TrialOutcome::WrongLanded
                        };
                        outcome = (failed, format!("the check {}", in_words(&checked.end)));
                    }
                    document.commit = Some(commit);
                    document.check = Some(checked);
                }
                ended(&mut document, outcome.0, &outcome.1);
            }
        }
        fs::remove_dir_all(&clone)?;
        fs::remove_dir_all(&check_dir)?;
        write(&result, &document)?;
        Ok(document)
    }
}

/// How a check ended, after "the check".
fn in_words(end: &CheckEnd) -> String {
    match end {
        CheckEnd::Exited(code) => format!("ended with {code}"),
        CheckEnd::Stopped(why) => why.clone(),
        CheckEnd::NotPrepared(why) => format!("cannot be prepared: {why}"),
        CheckEnd::NotStarted(why) => format!("cannot be started: {why}"),
    }
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, EvalError> {
    let bytes = match fs::read_regular_up_to(path, MAX_DOCUMENT) {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let document = serde_json::from_slice(&bytes);
    document.map(Some).map_err(|error| EvalError::Document {
        path: path.to_owned(),
        problem: error.to_string(),
    })
}

fn write<T: Serialize>(path: &Path, document: &T) -> Result<(), EvalError> {
    let mut bytes = to_canonical_json(document)?;
    bytes.push(b'\n');
    Ok(fs::write_atomic(path, &bytes)?)
}
