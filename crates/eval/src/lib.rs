//! Evaluation: how often a way of working reaches the goal of a task, told by tests that it never sees.
//!
//! A folder of tasks is read ([`read_tasks`]); each is solved by a [`Solver`] in a clone of its own and judged by hidden tests on a fresh
//! clone of what landed ([`evaluate`]); a [`Report`] counts the outcomes with confidence intervals and compares configurations in pairs.
//! Who solves is handed in: the governed change is wired up by `cli`, [`ask_directly`] is the same model without a judge.
//!
//! What always holds: a hidden test and a solution reach neither the clone that is worked on nor a prompt; a repository's hooks never
//! run; setup and check commands run in the sandbox; nothing outside the evaluation's own directory is written.

mod direct;
mod engine;
mod error;
mod import;
mod outcome;
mod place;
mod report;
mod statistics;
mod task;

pub use direct::{DirectRequest, ask_directly};
pub use engine::{
    Configuration, Ending, EvalPlan, Job, Observer, Solved, Solver, TrialMode, Validity, evaluate,
    spent_before, validate,
};
pub use error::EvalError;
pub use import::{ImportSummary, import_swe_bench};
pub use outcome::{Check, CheckEnd, Spent, TrialDocument, TrialOutcome, TrialVersion};
pub use place::{Machine, TaskClone};
pub use report::{Comparison, ConfigurationReport, EvalReportInput, EvalReportVersion, Rate, Report};
pub use statistics::{Interval, exact_mcnemar, wilson};
pub use task::{Task, TaskProblem, TaskSource, TaskVersion, read_tasks};
