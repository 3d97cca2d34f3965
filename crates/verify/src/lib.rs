//! Verifies a change: gates, the verify report, the failure bundle and failure classes.
//!
//! A gate is either a command of the repository, run in the sandbox on a copy ([`run_gates`]), or a verdict
//! that a pure judge reached elsewhere ([`GateInput`]). Pure functions judge the outcomes: [`judge`] returns
//! findings, [`report()`] the `verify_report.json`, [`classify`] a failure class, [`normalise`]
//! and [`excerpt`] the words that a fixer gets to read, and [`failure_bundle`] everything a colleague needs.
//!
//! What always holds: nothing passes by having nothing to check; a gate that could not run has failed; the
//! output of a gate is redacted before anything here sees it; no report, excerpt or bundle holds a clock, an
//! absolute path of the copy or a process id.

mod broken_change;
mod broken_tests;
mod bundle;
mod canary;
mod candidates;
mod classify;
mod gate;
mod held_out;
mod judge;
mod lone_test;
mod makefile;
mod named_tests;
mod objections;
mod report;
mod results;
mod results_from;
mod run;
mod runner;
mod second_world;
mod sinks;
mod spelling;
mod strength;
mod tally;
mod text;
mod witness;

pub use broken_change::{
    BrokenChange, BrokenChangeStep, BrokenGate, BrokenOutcome, BrokenPolicy, BrokenRuns,
    NOT_NOTICED, Variant, VariantChoices, best_outcome, judge_broken_change, next_step,
    repeated_variant, unaffected,
};
pub use broken_tests::{noticing_added_tests, still_failing};
pub use bundle::{BundleError, failure_bundle};
pub use canary::{CanaryOutcome, can_canary_differ, judge_canary};
pub use candidates::{CandidateChoice, CandidateRow, choose_candidate};
pub use classify::{FailureClass, classify};
pub use gate::{
    BehaviorCatalogCheck, Gate, GateCanary, GateEnd, GateId, GateIdError, GateInput, GateLevel,
    GateOrigin, GateOutcome, GateRun, GateSpec, Lite, NotStarted, PatchCheck, PlanCheck,
    RunnerReport, VariableError, builtin_gates, check_variable,
};
pub use held_out::{
    HeldOutOutcome, HeldOutPlacement, HeldOutReport, HeldOutVersion, compare_held_out,
    judge_held_out,
};
pub use judge::{
    ACCEPTABLE, Baseline, GateBefore, GateTests, JudgedRun, Requirements, TestFilePolicy, TestList,
    changed_tests, failed_by_environment, judge, judge_run, judge_run_after, judge_set,
    may_show_progress,
};
pub use lone_test::lone_test_command;
pub use makefile::{MakeRule, Makefile};
pub use named_tests::NamedTestResult;
pub use objections::{
    Objection, ObjectionOutcome, ObjectionPolicy, ObjectionTest, Objections, Sentence,
    judge_objections,
};
pub use report::{
    CommandRow, Failure, GateIsolation, ReportInput, ReportPaths, ReportVersion, VerifyReport,
    VerifyResult, report,
};
pub use results::{TestResults, TestStatus};
pub use results_from::{
    GateResultsFrom, ResultsFrom, ResultsPolicy, judge_results_from, results_from,
};
pub use run::{GateObserver, GateSetting, Logs, NoopObserver, logs, run_gates};
pub use runner::{
    Call, CommandOutput, DetectError, DetectedGate, NotRunReason, ReportContext, ReportPlace,
    Reporting, Runner, RunnerFiles, Tool, TreeView, cannot_compile, concerns_compiling,
    could_not_run, detect, install_hint, runners,
};
pub use second_world::{
    SecondWorld, WorldGate, WorldOutcome, WorldPolicy, WorldRun, WorldRuns, WorldStep,
    judge_second_world, next_world_run,
};
pub use sinks::{NewSink, SINK_KINDS, judge_sinks};
pub use spelling::Spelling;
pub use strength::{Strength, SurvivingMutant, judge_strength};
pub use tally::{TallyBasis, TestCounts, TestRunner, TestTally};
pub use text::{FailureEvidence, Normaliser, StackFrame, excerpt, normalise};
pub use witness::{SecondAuthor, WitnessFacts, WitnessStep, is_quoted, next_witness_step};
