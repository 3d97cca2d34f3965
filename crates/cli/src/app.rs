//! What every command shares: the captured environment, the configuration, the places, and the way to its end.

use std::ffi::OsString;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use crucible_host::clock::clock_from;
use crucible_host::config::{Config, ConfigFiles};
use crucible_host::env::Environment;
use crucible_host::fs::create_dir_all;
use crucible_ledger::Ledger;
use crucible_model::{Clock, ExitStatus};
use crucible_sandbox::{Launcher, Sandbox, Strength};

use crate::commands::{Arguments, Command};
use crate::error::CommandError;
use crate::output::Output;

/// The defaults, and the list of every key there is.
const DEFAULTS: &str = include_str!("default-config.toml");

/// The hidden first argument by which the sandbox re-enters this program for its inner stage.
const INNER_STAGE: &str = "__sandbox-exec";

/// What a command works with.
pub(crate) struct App {
    pub(crate) env: Environment,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) output: Output,
}

pub(crate) fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == INNER_STAGE) {
        return crucible_sandbox::inner_main(arguments.get(2..).unwrap_or_default());
    }
    let parsed = match Arguments::try_parse_from(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            let status = if error.use_stderr() { ExitStatus::Usage } else { ExitStatus::Success };
            let _closed_pipe_is_fine = error.print();
            return ExitCode::from(status.code());
        }
    };
    let env = Environment::capture();
    let output = Output::new(&env, parsed.json);
    let result = clock_from(&env).map_err(CommandError::from).and_then(|clock| {
        let app = App { env, clock, output: output.clone() };
        parsed.command.run(&app)
    });
    let status = result.unwrap_or_else(|error| {
        output.error(&error);
        error.status
    });
    ExitCode::from(status.code())
}

impl App {
    /// The configuration for work on the project at `start`, with these flags on top.
    pub(crate) fn config(&self, start: &Path, flags: &[(&str, String)]) -> Result<Config, CommandError> {
        let files = ConfigFiles::discover(&self.env, start);
        let config = Config::load(DEFAULTS, &files, &self.env, flags)?;
        for name in config.unread_variables(&self.env) {
            self.output.remark(&format!("warning: {name} is set and sets nothing; `crucible config show --json` names the variable of each setting"));
        }
        Ok(config)
    }

    /// `$CRUCIBLE_HOME`, where the ledger and the runs lie.
    pub(crate) fn home(&self) -> Result<PathBuf, CommandError> {
        let named = |name: &str| self.env.get_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        if let Some(home) = named("CRUCIBLE_HOME") {
            return Ok(home);
        }
        if self.env.get_os("CRUCIBLE_HOME").is_some_and(|value| !value.is_empty()) {
            return Err(CommandError::usage("CRUCIBLE_HOME is not an absolute path")
                .hint("Set it to a path that begins with `/`."));
        }
        let data = named("XDG_DATA_HOME").or_else(|| Some(self.env.home()?.join(".local/share")));
        data.map(|data| data.join("crucible")).ok_or_else(|| {
            CommandError::usage("neither CRUCIBLE_HOME nor HOME is set")
                .hint("Set CRUCIBLE_HOME to the directory where Crucible keeps its ledger and runs.")
        })
    }

    /// Where run directories lie.
    pub(crate) fn runs_root(&self, config: &Config) -> Result<PathBuf, CommandError> {
        match config.text("paths.runs_root") {
            Some(root) => Ok(self.env.working_directory().join(root)),
            None => Ok(self.home()?.join("runs")),
        }
    }

    /// The ledger, made where there is none.
    pub(crate) fn ledger(&self) -> Result<Ledger, CommandError> {
        let home = self.home()?;
        create_dir_all(&home)?;
        Ok(Ledger::open(&home.join("ledger.db"))?)
    }

    /// The spawner; its inner stage is this very program.
    pub(crate) fn sandbox(&self) -> Sandbox {
        let launcher =
            std::env::current_exe().ok().map(|program| Launcher { program, args: vec![INNER_STAGE.into()] });
        Sandbox::new(launcher, &self.env)
    }

    /// A path from the command line, made absolute.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        self.env.working_directory().join(path).components().collect()
    }

    /// Runs `work` to its end, or until the user interrupts: then it is dropped where it stands, its processes end
    /// with it, and the next command continues.
    pub(crate) fn block_on<T>(
        &self,
        work: impl Future<Output = Result<T, CommandError>>,
    ) -> Result<T, CommandError> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
                CommandError::new(
                    ExitStatus::Refused,
                    format!("the program's event loop cannot start: {error}"),
                )
            })?;
        runtime.block_on(async {
            tokio::select! {
                result = work => result,
                () = interrupted() => Err(CommandError::new(ExitStatus::Interrupted, "interrupted; what was done is saved")
                    .hint("A run goes on with `crucible run advance`.")),
            }
        })
    }
}

/// Reads the configured strength of the sandbox.
pub(crate) fn strength(config: &Config) -> Result<Strength, CommandError> {
    match config.text("sandbox.strength") {
        Some("required") => Ok(Strength::Required),
        Some("best-effort") => Ok(Strength::BestEffort),
        Some("off") => Ok(Strength::Off),
        other => Err(CommandError::usage(format!("sandbox.strength is {:?}", other.unwrap_or_default()))
            .hint("It takes required, best-effort or off.")),
    }
}

/// Ends when the user presses Ctrl-C or the process is asked to end.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => {
            let _no_handler_is_the_default_action = tokio::signal::ctrl_c().await;
        }
    }
}

/// The command, for `commands::mod`.
pub(crate) trait Run {
    /// Runs the command and tells how the process ends.
    fn run(&self, app: &App) -> Result<ExitStatus, CommandError>;
}

impl Run for Command {
    fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        self.dispatch(app)
    }
}
