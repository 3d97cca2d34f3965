//! The tools, a file each.

mod build_context;
mod check_patch;
mod land_run;
mod list_runs;
mod run_findings;
mod run_status;
mod start_run;
mod submit_proposal;

pub(crate) use build_context::BuildContext;
pub(crate) use check_patch::CheckPatch;
pub(crate) use land_run::LandRun;
pub(crate) use list_runs::ListRuns;
pub(crate) use run_findings::RunFindings;
pub(crate) use run_status::RunStatus;
pub(crate) use start_run::StartRun;
pub(crate) use submit_proposal::SubmitProposal;
