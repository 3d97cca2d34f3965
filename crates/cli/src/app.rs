//! What every command shares: the captured environment, the configuration, the places and the event loop.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::env::{Environment, HomeError};
use crucible_host::fs::create_dir_all;
use crucible_ledger::Ledger;
use crucible_llm::RecordingFile;
use crucible_model::{Clock, Failure};
use crucible_run::{RunContext, RunDir, find_run, missing_ledger};
use crucible_sandbox::{Cap, Caps, Launcher, Runtime, Sandbox};
use crucible_settings::{ConfigFiles, Settings};
use crucible_terminal::input::{self, InputNotice};
use crucible_terminal::{EventLoop, Output};
use crucible_view::RunView;

/// The ledger's file, in Crucible's own directory.
pub(crate) const LEDGER: &str = "ledger.db";

/// The hidden first argument by which the sandbox re-enters this program for its inner stage.
pub(crate) const INNER_STAGE: &str = "__sandbox-exec";

/// The shared state of a command.
pub(crate) struct App {
    pub(crate) env: Environment,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) output: Output,
    /// Created on first use.
    pub(crate) events: RefCell<Option<EventLoop>>,
    /// Files of settings that the command line names, above the user's own and the environment.
    pub(crate) override_files: Vec<PathBuf>,
    /// Whether variables that set nothing were warned of.
    has_warned: Cell<bool>,
}

impl App {
    pub(crate) fn new(
        env: Environment,
        clock: Box<dyn Clock>,
        output: Output,
        over: Vec<PathBuf>,
    ) -> Self {
        Self {
            env,
            clock,
            output,
            events: RefCell::default(),
            override_files: over,
            has_warned: Cell::new(false),
        }
    }

    /// The configuration for work on the project at `start`, with these flags on top.
    pub(crate) fn config(
        &self,
        start: &Path,
        flags: &[(&str, String)],
    ) -> Result<Settings, Failure> {
        let files = ConfigFiles {
            over: self.override_files.clone(),
            ..ConfigFiles::discover(&self.env, start)
        };
        let config = Settings::load(&files, &self.env, flags)?;
        if !self.has_warned.replace(true) {
            for name in config.unread_variables(&self.env) {
                self.output.remark(&format!("warning: {name} is set and sets nothing; `crucible config show --json` names the variable of each setting"));
            }
        }
        Ok(config)
    }

    /// Warns of variables that set nothing, where the command needed no configuration.
    pub(crate) fn warn_of_variables(&self) {
        let is_ours = |(name, _): (&std::ffi::OsStr, &std::ffi::OsStr)| {
            name.to_str()
                .is_some_and(|name| name.starts_with("CRUCIBLE_") && name != "CRUCIBLE_HOME")
        };
        if !self.has_warned.get() && self.env.pairs().any(is_ours) {
            // Such a command ignores an unreadable configuration.
            let _ = self.config(self.env.working_directory(), &[]);
        }
    }

    /// The configuration that holds for the project in a directory that the command line names.
    pub(crate) fn config_of(&self, named: &Path) -> Result<Settings, Failure> {
        self.config(&self.directory(named)?, &[])
    }

    /// A directory that the command line names, made absolute.
    pub(crate) fn directory(&self, named: &Path) -> Result<PathBuf, Failure> {
        let directory = self.absolute(named);
        match directory.is_dir() {
            true => Ok(directory),
            false => Err(
                Failure::usage(format!("{} is not a directory", directory.display()))
                    .hint("Name a directory of the project."),
            ),
        }
    }

    /// `$CRUCIBLE_HOME`, where the ledger and the runs lie.
    pub(crate) fn home(&self) -> Result<PathBuf, Failure> {
        self.env.usable_home()
    }

    /// Where the ledger lies.
    pub(crate) fn ledger_path(&self) -> Result<PathBuf, Failure> {
        Ok(self.home()?.join(LEDGER))
    }

    /// Where run directories lie.
    pub(crate) fn runs_root(&self, config: &Settings) -> Result<PathBuf, Failure> {
        match &config.paths.runs_root {
            Some(root) => Ok(self.env.working_directory().join(root)),
            None => Ok(self.home()?.join("runs")),
        }
    }

    /// The ledger, created if missing.
    pub(crate) fn ledger(&self) -> Result<Ledger, Failure> {
        let home = self.home()?;
        create_dir_all(&home)
            .map_err(|error| Failure::usage(error.to_string()).hint(HomeError::HINT))?;
        Ok(Ledger::open(&home.join(LEDGER))?)
    }

    /// The ledger, if it exists.
    pub(crate) fn existing_ledger(&self) -> Result<Option<Ledger>, Failure> {
        Ok(Ledger::open_existing(&self.ledger_path()?)?)
    }

    /// The ledger, for a command that is about a run.
    pub(crate) fn required_ledger(&self) -> Result<Ledger, Failure> {
        let missing = || Ok(missing_ledger(&self.ledger_path()?));
        self.existing_ledger()?
            .map_or_else(|| missing().and_then(Err), Ok)
    }

    /// The ledger, if it exists, for a command that does not need it. Creates none.
    pub(crate) fn optional_ledger(&self) -> Result<Option<Ledger>, Failure> {
        match self.env.crucible_home() {
            Err(HomeError::NotSet) => Ok(None),
            Ok(_) | Err(HomeError::Relative { .. }) => self.existing_ledger(),
        }
    }

    /// The outside world for a use case, with a spawner of its own.
    pub(crate) fn runtime(&self) -> Runtime<'_> {
        Runtime {
            env: &self.env,
            clock: self.clock.as_ref(),
            sandbox: Arc::new(self.sandbox()),
            notices: &self.output,
        }
    }

    /// The world of a run under this configuration.
    pub(crate) fn world(
        &self,
        sandbox: &Arc<Sandbox>,
        config: &Settings,
    ) -> Result<RunContext<'_>, Failure> {
        let runs_root = self.runs_root(config)?;
        let tmp = self.home()?.join("tmp");
        Ok(RunContext {
            env: &self.env,
            clock: self.clock.as_ref(),
            sandbox: Arc::clone(sandbox),
            runs_root,
            tmp,
        })
    }

    /// The world of a run under the configuration of the working directory.
    pub(crate) fn world_here(&self) -> Result<RunContext<'_>, Failure> {
        let config = self.config(self.env.working_directory(), &[])?;
        self.world(&self.runtime().sandbox, &config)
    }

    /// The new file that a command records its calls in, if one is named.
    pub(crate) fn recording(&self, named: Option<&Path>) -> Result<Option<RecordingFile>, Failure> {
        named
            .map(|path| RecordingFile::new(self.absolute(path)))
            .transpose()
    }

    /// The ledger and the run of this id or prefix; without a name, the newest run of the repository around the working
    /// directory, and outside of any the newest of all.
    pub(crate) fn find_run(
        &self,
        world: &RunContext<'_>,
        named: Option<&str>,
    ) -> Result<(Ledger, RunDir), Failure> {
        let file = self.ledger_path()?;
        let ledger = Ledger::open_existing(&file)?;
        let current_dir = self.repository_of(self.env.working_directory());
        find_run(world, ledger, &file, named, current_dir.as_deref())
    }

    /// Everything that the ledger and the run directory have about a run, found as [`App::find_run`] does.
    pub(crate) fn run_view(&self, named: Option<&str>) -> Result<RunView, Failure> {
        let world = self.world_here()?;
        let (ledger, dir) = self.find_run(&world, named)?;
        RunView::read(&dir, &ledger)?.ok_or_else(|| {
            let message = "the ledger has no row for this run; it belongs to another ledger";
            Failure::usage(message).hint("`crucible run list` shows the runs of this one.")
        })
    }

    /// The spawner; its inner stage is this very program.
    pub(crate) fn sandbox(&self) -> Sandbox {
        let settings = self.settings_here();
        let launcher = std::env::current_exe().ok().map(|program| Launcher {
            program,
            args: vec![INNER_STAGE.into()],
        });
        let key = settings
            .as_ref()
            .and_then(|settings| settings.attest.key.as_deref());
        let key = key.map(|key| self.absolute(Path::new(key)));
        // Where the public half is named, the private one may be beside it.
        let private = key
            .as_ref()
            .filter(|key| key.extension().is_some_and(|end| end == "pub"))
            .map(|key| key.with_extension(""));
        let keys: Vec<PathBuf> = key.into_iter().chain(private).collect();
        Sandbox::new(launcher, &self.env)
            .with_caps(settings.as_ref().map_or(Caps::DEFAULT, caps))
            .with_hidden(&keys)
    }

    /// The settings of the working directory. A configuration that cannot be read is the command's to report.
    fn settings_here(&self) -> Option<Settings> {
        let files = ConfigFiles {
            over: self.override_files.clone(),
            ..ConfigFiles::discover(&self.env, self.env.working_directory())
        };
        Settings::load(&files, &self.env, &[]).ok()
    }

    /// The top of the git repository around a directory. Like git, it stops at `GIT_CEILING_DIRECTORIES`.
    pub(crate) fn repository_of(&self, start: &Path) -> Option<PathBuf> {
        let found = crucible_spec::repository_of(start)?;
        let ceilings = self
            .env
            .get_os("GIT_CEILING_DIRECTORIES")
            .unwrap_or_default();
        let stops = |ceiling: &PathBuf| {
            start != ceiling && start.starts_with(ceiling) && ceiling.starts_with(found)
        };
        (!std::env::split_paths(&ceilings).any(|ceiling| stops(&ceiling))).then(|| found.to_owned())
    }

    /// A path from the command line, made absolute.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        self.env
            .working_directory()
            .join(path)
            .components()
            .collect()
    }

    /// Reads standard input to its end, but at most `most` bytes and one more. The inner error is that of the
    /// input.
    pub(crate) fn read_input(
        &self,
        most: usize,
        awaited: InputNotice,
    ) -> Result<io::Result<Vec<u8>>, Failure> {
        self.block_on(async { Ok(input::read_all(most, awaited, &self.output).await) })
    }

    /// Runs `work` as [`App::block_on`] does.
    pub(crate) fn drive<T, E>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, Failure>
    where
        Failure: From<E>,
    {
        self.block_on(async { Ok(work.await?) })
    }

    /// Runs `work` to its end, or until the user interrupts: then it is cancelled, its processes end
    /// with it, and the next command continues.
    pub(crate) fn block_on<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut slot = self.events.borrow_mut();
        let events = match slot.take() {
            Some(events) => events,
            None => EventLoop::new()?,
        };
        slot.insert(events).run(work)
    }
}

/// What confined programs may use, as configured.
fn caps(config: &Settings) -> Caps {
    let cap = |number: u64| {
        if number == 0 {
            Cap::Unlimited
        } else {
            Cap::At(number)
        }
    };
    Caps {
        memory: cap(config.sandbox.memory_mib.saturating_mul(1 << 20)),
        processes: cap(config.sandbox.processes),
    }
}

#[cfg(test)]
mod tests {
    use crucible_host::fs::write_unflushed;
    use crucible_settings::{SettingSource, variable_of};

    use super::*;

    /// A value of the default's type that tells its layer; the higher the layer, the smaller the number.
    fn value_of(default: &toml::Value, layer: u32) -> (toml::Value, String) {
        let text = format!("layer{layer}");
        match default {
            toml::Value::Integer(_) => (toml::Value::Integer(layer.into()), layer.to_string()),
            toml::Value::Float(_) => (toml::Value::Float(layer.into()), layer.to_string()),
            toml::Value::Boolean(_) => (
                toml::Value::Boolean(layer.is_multiple_of(20)),
                (layer.is_multiple_of(20)).to_string(),
            ),
            toml::Value::Array(_) => (toml::Value::Array(vec![text.clone().into()]), text),
            _ => (text.clone().into(), text),
        }
    }

    /// Every setting there is, not some of them: flag before environment before the project's file before the user's
    /// before the default.
    #[test]
    fn settings_follow_flag_environment_project_user_default_order() {
        let temp_dir = tempfile::tempdir().unwrap();
        let (user, project) = (
            temp_dir.path().join("user.toml"),
            temp_dir.path().join("project.toml"),
        );
        let files = |has_user: bool, has_project: bool| ConfigFiles {
            project: has_project.then(|| project.clone()),
            user: if has_user {
                user.clone()
            } else {
                PathBuf::new()
            },
            over: Vec::new(),
        };
        let nothing = Environment::from_pairs([("", ""); 0], "/");
        let defaults = Settings::load(&files(false, false), &nothing, &[]).unwrap();
        let (mut seen, mut of_projects) = (0, 0);
        for (key, setting) in defaults.effective().filter(|(key, _)| !key.contains('*')) {
            if matches!(setting.value, toml::Value::Table(_)) {
                continue;
            }
            seen += 1;
            assert_eq!(setting.source, SettingSource::Default, "{key}");
            let write = |file: &Path, layer: u32| {
                let value =
                    key.rsplit('.')
                        .fold(value_of(&setting.value, layer).0, |value, name| {
                            toml::Value::Table([(name.to_owned(), value)].into_iter().collect())
                        });
                write_unflushed(file, toml::to_string(&value).unwrap().as_bytes(), 0o600).unwrap();
            };
            write(&user, 40);
            write(&project, 30);
            let variable = variable_of(key);
            let env =
                Environment::from_pairs([(variable.as_str(), value_of(&setting.value, 20).1)], "/");
            let flags = [(key, value_of(&setting.value, 10).1)];
            let is = |config: &Settings, layer: u32| {
                let (_, now) = config.effective().find(|(known, _)| *known == key).unwrap();
                assert_eq!(now.value, value_of(&setting.value, layer).0, "{key}");
                now.source.clone()
            };
            let load = |files: &ConfigFiles, env: &Environment, flags: &[(&str, String)]| {
                Settings::load(files, env, flags).unwrap_or_else(|error| panic!("{key}: {error}"))
            };
            assert_eq!(
                is(&load(&files(true, false), &nothing, &[]), 40),
                SettingSource::File(user.clone()),
                "{key}"
            );
            // Settings that a project must not set are refused; another test covers that.
            let has_project = Settings::load(&files(true, true), &nothing, &[]).is_ok();
            let both = files(true, has_project);
            if has_project {
                of_projects += 1;
                assert_eq!(
                    is(&load(&both, &nothing, &[]), 30),
                    SettingSource::File(project.clone()),
                    "{key}"
                );
            }
            assert_eq!(
                is(&load(&both, &env, &[]), 20).to_string(),
                format!("environment {variable}"),
                "{key}"
            );
            assert!(
                is(&load(&both, &env, &flags), 10)
                    .to_string()
                    .starts_with("flag "),
                "{key}"
            );
        }
        assert!(
            seen > 100 && of_projects > 50,
            "{seen} settings, {of_projects} of them for projects"
        );
    }
}
