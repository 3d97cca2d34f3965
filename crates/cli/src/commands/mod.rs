//! One command, one file: the arguments with their help, and what they do.

/// Runs the command that a variant of `Self` holds.
macro_rules! dispatch {
    ($command:expr, $app:expr, [$($variant:ident),+ $(,)?]) => {
        match $command { $(Self::$variant(command) => command.run($app),)+ }
    };
}

mod agents;
mod approve;
mod attest;
mod behaviors;
mod completions;
mod config;
mod context;
mod council;
mod crawl;
mod demo;
mod doctor;
mod eval;
mod explain;
mod gate;
mod gates;
mod init;
mod ledger;
mod man;
mod mcp;
mod models;
mod patch;
mod plan;
mod project;
mod report;
mod run;
mod sandbox;
mod secrets;
mod serve;
mod skill;
mod spec;
mod stats;
mod template;
mod trace;
mod tui;
mod verify;

use clap::{Parser, Subcommand};
use crucible_model::{ExitStatus, Failure};
use crucible_terminal::{Format, OutputMode};

use crate::app::App;

/// Models propose. Crucible decides what lands.
///
/// Crucible asks a model for a change, judges the answer with code that has no opinion, tries it in a sandbox, keeps
/// the evidence, and only then lets it through. `crucible demo` shows the whole way without a key.
#[derive(Parser)]
#[command(
    name = "crucible",
    version,
    max_term_width = 110,
    after_help = "Exit codes: 0 done, 1 refused, 2 usage or configuration (under `crawl` 1, and 2 a plan rejected by safety), 3 schema, 4 rate limit, 7 over a limit, 8 secret found, 9 locked, 10 timed out, 70 model provider, 130 interrupted."
)]
pub(crate) struct Arguments {
    /// Print the result as one JSON document
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Init(init::Init),
    Demo(demo::Demo),
    Doctor(doctor::Doctor),
    Explain(explain::Explain),
    Models(models::Models),
    Agents(agents::Agents),
    Mcp(mcp::Mcp),
    #[command(subcommand)]
    Run(run::Run),
    Approve(approve::Approve),
    Report(report::Report),
    Serve(serve::Serve),
    Tui(tui::Tui),
    #[command(subcommand)]
    Trace(trace::Trace),
    Stats(stats::Stats),
    Gates(gates::Gates),
    Eval(eval::Eval),
    Crawl(crawl::Crawl),
    Ask(council::ask::Ask),
    Chat(council::chat::Chat),
    Spec(spec::start::Spec),
    Resume(spec::resume::Resume),
    Status(spec::status::SpecStatus),
    Gate(gate::Gate),
    Project(project::Project),
    Template(template::TemplateCommand),
    #[command(subcommand)]
    Skill(skill::Skill),
    #[command(subcommand)]
    Context(context::ContextCommand),
    #[command(subcommand)]
    Patch(patch::Patch),
    #[command(subcommand)]
    Plan(plan::PlanCommand),
    #[command(subcommand)]
    Behaviors(behaviors::BehaviorsCommand),
    Verify(verify::Verify),
    #[command(subcommand)]
    Sandbox(sandbox::SandboxCommand),
    #[command(subcommand)]
    Attest(attest::Attest),
    #[command(subcommand)]
    Ledger(ledger::LedgerCommand),
    #[command(subcommand)]
    Secrets(secrets::Secrets),
    #[command(subcommand)]
    Config(config::ConfigCommand),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Arguments {
    /// How the command speaks.
    pub(crate) fn mode(&self) -> OutputMode {
        match &self.command {
            Command::Crawl(crawl) => crawl.mode(self.json),
            Command::Attest(attest) => attest.mode(self.json),
            Command::Gate(gate) => gate.mode(self.json),
            _ => OutputMode::plain(if self.json {
                Format::Json
            } else {
                Format::Human
            }),
        }
    }
}

impl Command {
    pub(crate) fn dispatch(&self, app: &App) -> Result<ExitStatus, Failure> {
        dispatch!(
            self,
            app,
            [
                Init,
                Demo,
                Doctor,
                Explain,
                Models,
                Agents,
                Mcp,
                Run,
                Approve,
                Report,
                Serve,
                Tui,
                Trace,
                Stats,
                Gates,
                Eval,
                Crawl,
                Ask,
                Chat,
                Spec,
                Resume,
                Status,
                Gate,
                Project,
                Template,
                Skill,
                Context,
                Patch,
                Plan,
                Behaviors,
                Verify,
                Sandbox,
                Attest,
                Ledger,
                Secrets,
                Config,
                Completions,
                Man
            ]
        )
    }
}
