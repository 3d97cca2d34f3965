//! Evaluation: how often a configuration solves a task, judged by hidden tests.
//!
//! [`read_tasks`] reads a directory of tasks. In [`evaluate`], a [`Solver`] solves each task in its own
//! clone, and hidden tests judge a fresh clone of the result. A [`Report`] counts the outcomes with
//! confidence intervals and compares configurations pairwise. The caller provides the solver: `cli` wires up
//! the governed change, and `ask_directly` is the same model without a judge.
//!
//! What always holds: a hidden test and a solution reach neither the clone that is worked on nor a prompt; a
//! repository's hooks never run; setup and check commands run in the sandbox; nothing outside the
//! evaluation's own directory is written.

pub mod configured;
mod direct;
mod engine;
mod error;
mod exit_status;
mod import;
mod outcome;
mod place;
mod report;
mod statistics;
mod task;
mod task_check;

pub use engine::{
    Configuration, Ending, EvalPlan, Job, Observer, Solved, Solver, TrialMode, Validity, evaluate,
};
pub use error::EvalError;
pub use import::{ImportSummary, import_swe_bench};
pub use outcome::{Check, CheckEnd, Spent, TrialDocument, TrialOutcome, TrialVersion};
pub use place::{Machine, TaskClone};
pub use report::{
    Comparison, ConfigurationReport, EvalReportInput, EvalReportVersion, Rate, Report,
};
pub use statistics::Interval;
pub use task::{Task, TaskProblem, TaskSource, read_tasks};
pub use task_check::CheckedTasks;
