//! `crucible crawl plan`: a build plan that models draft and review, and code judges.

use clap::Args;
use crucible_crawl::{LookupMode, PlannedCrawl};
use crucible_model::{ExitStatus, Failure, counted};

use super::flags::{Debating, OutputArgs, Trace, Which};
use super::host::CommandHost;
use super::show;
use super::wanted::selection;
use crate::app::App;

/// Derive a build plan with two models; check its safety
///
/// GPT drafts, revises and finishes the plan; Claude reviews it. Both are role names: you choose the
/// provider and the model of each. The safety rules decide, not the models. A rejected plan is printed
/// with its violations, and the exit code is 2. For example:
/// `crucible crawl plan BurntSushi/ripgrep --gpt-provider openai --claude-provider anthropic`, or
/// without a model: `crucible crawl plan ./my-project --offline`
#[derive(Args, Default)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) debating: Debating,
    #[command(flatten)]
    pub(crate) output_args: OutputArgs,
    #[command(flatten)]
    pub(crate) trace: Trace,
}

impl Plan {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let requested = selection(app, &self.which, &self.output_args)?;
        let config = app.config(app.env.working_directory(), &self.debating.settings())?;
        let minds = self.debating.backends(app, &config, self.trace)?;
        let intent = requested.intent(self.trace.dry_run).with(minds.options());
        CommandHost::run(app, &config, &intent, |context| {
            let minds = context.open_planner(minds)?;
            let (inspected, _) = context.inspect(&requested, LookupMode::No)?;
            let planned = context.plan(&inspected, &minds)?;
            if app.output.is_json() {
                app.output.json_text(planned.artifact.json());
            } else {
                show::plan(&app.output, &planned);
            }
            Ok(report_verdict(app, &planned))
        })
    }
}

/// The exit status of a command that printed this plan.
fn report_verdict(app: &App, planned: &PlannedCrawl) -> ExitStatus {
    if planned.planned.plan.safety_validated {
        return ExitStatus::Success;
    }
    let violations = counted(
        planned.planned.plan.safety_violations.len() as u64,
        "violation",
    );
    app.output.remark(&format!(
        "the safety rules reject this plan ({violations}); do not run any of it"
    ));
    app.output.remark(if planned.outcome.rounds > 0 {
        "  hint: try again with more rounds (--max-debate-rounds) or other models; or use the standard steps \
        of the build system with --offline"
    } else {
        "  hint: the standard steps do not fit this repository: have models plan (--gpt-provider, --claude-provider), \
         or choose a part of it with --ref REF:PATH"
    });
    ExitStatus::PlanRejected
}
