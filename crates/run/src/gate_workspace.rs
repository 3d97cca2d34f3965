//! The environment of a gate: what the repository's own commands find besides the tracked files.
//!
//! A [`Survey`] lists the ignored files and packs the history, once for all trials of a session
//! ([`SurveyCache`]). For each gate, [`GateWorkspace::complete_copy`] completes the copy of the tracked files, and
//! [`GateWorkspace::setting`] says how the command runs: the copy is mounted at the path of the original,
//! packages are shown in it so that the original stays as it is, and a virtual environment of the repository is active. Absolute paths
//! in scripts, editable installs and build caches then lead to the copy, which is what is tested.
//!
//! In every case: in the sandbox nothing of the original can be written, and nothing of it is seen but
//! packages and tools. Where nothing can be mounted the command runs in the copy at its own path, Python
//! looks there first, and the receipt and a note say so.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::WorkDir;
use crucible_host::fs;
use crucible_model::{ByteLimit, PathRole, PathRoles, RepoPath};
use crucible_repo::{
    FileContent, Git, HistoryLimits, IgnoredFiles, IgnoredLimits, IgnoredOptions, Oid, Omission,
    OmitReason, PrivateGit, SplitTrees,
};
use crucible_sandbox::{Identity, Layer, LayerState, Mount, MountContent, Strength};
use crucible_secrets::{Scanner, is_secret_directory, is_secret_file};
use crucible_verify::{GateId, GateSetting, Spelling};
use tokio::sync::Mutex;

use crate::error::RunError;
use crate::hidden::{hidden_paths, tool_paths};
use crate::run_context::RunContext;
use crate::trial::TrialSetup;
use crate::trial::{MAX_LOG, environment};

/// Names of a repository's virtual environment, the most usual first.
pub(crate) const ENVIRONMENTS: [&str; 3] = [".venv", "venv", "env"];
/// Where Python looks for packages first.
pub(crate) const PYTHON_PATH: &str = "PYTHONPATH";
/// The most omissions listed.
const MAX_LEFT_OUT: usize = 200;
/// Bytes searched for NUL to detect binary content, as git does.
const TEXT_HEAD: usize = 8000;

/// The longest `pyvenv.cfg` that is read.
const MAX_SETTINGS: ByteLimit = ByteLimit(64 << 10);

/// The note printed if mounts are not available.
pub(crate) const AT_ITS_OWN_PATH: &str = "  note: mounts are not available, so the gates run in a copy at a different path. Absolute paths in virtual environments and build caches point to the unchanged repository. See `crucible sandbox status`.";

/// Gates that look for Python packages in the copy first, with the directories from the top.
pub(crate) type PythonPaths = BTreeMap<String, Vec<String>>;

/// What every trial of one session shares, of one commit.
#[derive(Default)]
pub(crate) struct SurveyCache(Mutex<Option<Arc<Survey>>>);

impl SurveyCache {
    /// Surveys the current checkout, which is `base.commit` if given.
    async fn survey(
        &self,
        world: &RunContext<'_>,
        git: &Git,
        base: &TrialSetup<'_>,
    ) -> Result<Arc<Survey>, RunError> {
        let commit = match base.commit {
            Some(commit) => commit.clone(),
            None => git.tracked_state().await?.commit,
        };
        let mut cache = self.0.lock().await;
        if let Some(known) = cache.as_ref().filter(|known| known.commit == commit) {
            return Ok(Arc::clone(known));
        }
        let survey = Arc::new(Survey::make(world, git, base.sandbox, commit).await?);
        Ok(Arc::clone(cache.insert(survey)))
    }
}

/// What gates need of the repository besides its tracked files.
struct Survey {
    commit: Oid,
    top: PathBuf,
    is_mounted: bool,
    ignored: IgnoredFiles,
    private_git: Result<PrivateGit, String>,
    env: Vec<(OsString, OsString)>,
    /// The directory of the private git directory, until the session is over.
    _room: WorkDir,
}

impl Survey {
    /// Looks at it, with the private git directory among the session's temporary files.
    async fn make(
        world: &RunContext<'_>,
        git: &Git,
        sandbox: Strength,
        commit: Oid,
    ) -> Result<Self, RunError> {
        let is_mounted = is_mounted(world, sandbox);
        let options = IgnoredOptions {
            secret: Arc::new(by_path),
            content: Arc::new(by_content),
            limits: IgnoredLimits::STANDARD,
            split: if is_mounted {
                SplitTrees::Never
            } else {
                SplitTrees::Always
            },
        };
        let temp_dir = WorkDir::create(git.scratch(), "private-git-", "")?;
        let template = temp_dir.path().join("git");
        let secret = Arc::clone(&options.secret);
        let packed = git.private_git(&commit, &template, &secret, HistoryLimits::STANDARD);
        let (ignored, packed) = tokio::join!(git.ignored_files(&options), packed);
        let top = git.top().to_owned();
        let ignored = ignored?;
        let env = activated(&top, &ignored, environment(world));
        let private_git = packed.map_err(|error| error.to_string());
        Ok(Self {
            commit,
            top,
            is_mounted,
            ignored,
            private_git,
            env,
            _room: temp_dir,
        })
    }
}

/// What every gate of one trial is given.
pub(crate) struct GateWorkspace<'w> {
    world: &'w RunContext<'w>,
    base: TrialSetup<'w>,
    survey: Arc<Survey>,
}

impl<'w> GateWorkspace<'w> {
    /// Surveys what the gates need, unless an earlier trial of the session did.
    pub(crate) async fn survey(
        world: &'w RunContext<'w>,
        git: &Git,
        base: TrialSetup<'w>,
    ) -> Result<Self, RunError> {
        let survey = base.surveys.survey(world, git, &base).await?;
        Ok(Self {
            world,
            base,
            survey,
        })
    }

    /// Returns whether the copy is mounted at the original's path.
    pub(crate) fn is_mounted(&self) -> bool {
        self.survey.is_mounted
    }

    /// Completes a copy of the tracked files before any change is written to it. Returns what was left out.
    pub(crate) async fn complete_copy(
        &self,
        git: &Git,
        copy: &Path,
    ) -> Result<Vec<String>, RunError> {
        let mut omitted = self.survey.ignored.omitted.clone();
        omitted.extend(self.survey.ignored.copy_to(copy).await?);
        omitted.sort();
        let mut left_out = omission_lines(&omitted);
        match &self.survey.private_git {
            Ok(private) => private.install_into(git, copy).await?,
            Err(why) => left_out.push(format!("\".git\": {}", why.escape_debug())),
        }
        if !self.survey.is_mounted {
            self.survey.ignored.link_trees(copy)?;
        }
        Ok(left_out)
    }

    /// Completes a copy for a program that changes it: the same, but for the git directory.
    pub(crate) async fn complete_copy_without_git(&self, copy: &Path) -> Result<(), RunError> {
        let _omitted = self.survey.ignored.copy_to(copy).await?;
        if !self.survey.is_mounted {
            self.survey.ignored.link_trees(copy)?;
        }
        Ok(())
    }

    /// How a program that is no gate runs in `copy`, whose git directory it may use.
    pub(crate) fn program_setting(&self, copy: &Path) -> Result<GateSetting, RunError> {
        let mut place = self.setting_of(None, copy, None)?;
        let own = if self.survey.is_mounted {
            self.survey.top.join(".git/")
        } else {
            copy.join(".git/")
        };
        place.masked.retain(|masked| *masked != own);
        Ok(place)
    }

    /// How `gate` runs in `copy`.
    pub(crate) fn setting(
        &self,
        gate: &GateId,
        copy: &Path,
        reports: &Path,
    ) -> Result<GateSetting, RunError> {
        self.setting_of(Some(gate), copy, Some(reports))
    }

    /// What differs from the usual world.
    pub(crate) fn differences(&self) -> Vec<&'static str> {
        let Some(other) = self.base.other else {
            return Vec::new();
        };
        let mut differences = other.apply(&mut self.survey.env.clone());
        if other.differs_completely() && self.survey.is_mounted {
            differences.extend(["user", "host name"]);
            let mut gates = self.base.gates.iter();
            if gates.all(|gate| self.can_move(Some(&gate.id))) {
                differences.push("path");
            }
        }
        differences
    }

    /// Returns whether the gate can run at another path: nothing beside the tracked files knows the path of the original.
    fn can_move(&self, gate: Option<&GateId>) -> bool {
        let top = &self.survey.top;
        let is_below =
            |value: &OsString| std::env::split_paths(value).any(|path| path.starts_with(top));
        let has_paths = gate.is_some_and(|gate| self.base.python_paths.contains_key(gate.as_str()));
        self.survey.is_mounted
            && !has_paths
            && self.survey.ignored.is_empty()
            && !self.survey.env.iter().any(|(_, value)| is_below(value))
            && tool_paths(top, &self.survey.env, self.base.gates).is_empty()
    }

    fn setting_of(
        &self,
        gate: Option<&GateId>,
        copy: &Path,
        reports: Option<&Path>,
    ) -> Result<GateSetting, RunError> {
        let trees = || self.survey.ignored.trees.iter();
        let elsewhere = self.base.other.filter(|other| other.differs_completely());
        let top = elsewhere.filter(|_| self.can_move(gate)).map_or_else(
            || self.survey.top.clone(),
            |other| other.place(&self.survey.top),
        );
        let mut mounts = vec![mount(&top, MountContent::Writable(copy.to_owned()))];
        let mut masked = Vec::new();
        if self.survey.is_mounted {
            masked.extend(hidden_paths(
                self.world,
                self.base.repo,
                self.base.gates,
                &self.survey.env,
                Some(&top),
                &[],
            ));
            let shown = trees().map(|tree| {
                let place = self.survey.top.join(&tree.path);
                let content = if tree.is_written() {
                    MountContent::Overlay(place.clone())
                } else {
                    MountContent::ReadOnly(place.clone())
                };
                mount(&place, content)
            });
            let shown: Vec<Mount> = shown.collect();
            let places: Vec<PathBuf> = shown.iter().map(|shown| shown.target.clone()).collect();
            let tools = self.missing_tools(copy, &places)?;
            mounts.extend(shown);
            mounts.extend(
                tools
                    .iter()
                    .map(|place| mount(place, MountContent::ReadOnly(place.clone()))),
            );
        } else {
            let paths: Vec<PathBuf> = trees()
                .map(|tree| self.survey.top.join(&tree.path))
                .collect();
            masked.extend(hidden_paths(
                self.world,
                self.base.repo,
                self.base.gates,
                &self.survey.env,
                None,
                &paths,
            ));
        }
        let withheld = self.base.withheld.iter();
        masked.extend(withheld.filter(|place| place.exists()).cloned());
        masked.extend(
            trees()
                .flat_map(|tree| &tree.masked)
                .map(|path| self.survey.top.join(path)),
        );
        if self.survey.private_git.is_err() {
            masked.push(if self.survey.is_mounted {
                top.join(".git/")
            } else {
                copy.join(".git/")
            });
        }
        let env = &self.survey.env;
        let env = match gate.and_then(|gate| self.base.python_paths.get(gate.as_str())) {
            _ if !self.survey.is_mounted => {
                looking_in(["src", "."].map(|place| copy.join(place)), env)
            }
            Some(places) => looking_in(places.iter().map(|place| self.survey.top.join(place)), env),
            None => env.clone(),
        };
        let env = match gate {
            Some(gate) => self.with_packages_of(gate, env),
            None => env,
        };
        let mut env = env;
        if let Some(other) = self.base.other {
            other.apply(&mut env);
        }
        Ok(GateSetting {
            copy: copy.to_owned(),
            writable: Vec::new(),
            masked,
            reports: reports.map(Path::to_owned),
            mounts,
            env,
            identity: elsewhere.map_or_else(Identity::default, |other| other.identity.clone()),
            spelling: elsewhere.map_or(Spelling::AsGiven, |_| Spelling::Other),
            strength: self.base.sandbox,
            log_limit: MAX_LOG,
        })
    }

    /// Returns the variables with the programs that are installed for the gate's directory on `PATH`.
    fn with_packages_of(
        &self,
        gate: &GateId,
        mut env: Vec<(OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        let spec = self.base.gates.iter().find(|spec| spec.id == *gate);
        let directory = spec.and_then(|spec| spec.cwd.as_ref());
        let programs = directory
            .map(|directory| {
                self.survey
                    .top
                    .join(directory.as_str())
                    .join("node_modules/.bin")
            })
            .filter(|programs| programs.is_dir());
        if let Some(programs) = programs
            && let Some((_, path)) = env.iter_mut().find(|(name, _)| name == "PATH")
            && let Ok(joined) = std::env::join_paths(std::env::split_paths(path).chain([programs]))
        {
            *path = joined;
        }
        env
    }

    /// Returns installed tools that the gates' variables name and that neither a tree nor the copy has;
    /// creates an empty directory in the copy for each.
    fn missing_tools(&self, copy: &Path, trees: &[PathBuf]) -> Result<Vec<PathBuf>, RunError> {
        let mut missing: Vec<PathBuf> = Vec::new();
        for place in tool_paths(&self.survey.top, &self.survey.env, self.base.gates) {
            let known = trees
                .iter()
                .chain(&missing)
                .any(|tree| place.starts_with(tree) || tree.starts_with(&place));
            let Ok(below) = place.strip_prefix(&self.survey.top) else {
                continue;
            };
            let is_plain = place.canonicalize().is_ok_and(|real| real == place) && place.is_dir();
            if known || !is_plain || copy.join(below).symlink_metadata().is_ok() {
                continue;
            }
            fs::create_dir_all(&copy.join(below))?;
            missing.push(place);
        }
        Ok(missing)
    }
}

/// Returns whether the copy is mounted at the original's path.
pub(crate) fn is_mounted(world: &RunContext<'_>, sandbox: Strength) -> bool {
    match sandbox {
        Strength::Off => false,
        // Without it nothing runs.
        Strength::Required => true,
        Strength::BestEffort => {
            world.sandbox.layers().state(Layer::Namespaces) == LayerState::Available
        }
    }
}

fn mount(target: &Path, content: MountContent) -> Mount {
    Mount {
        target: target.to_owned(),
        content,
    }
}

/// The omissions as printed lines, cut at the limit.
fn omission_lines(omitted: &[Omission]) -> Vec<String> {
    let line = |omission: &Omission| format!("{:?}: {}", omission.path, omission.reason);
    let mut lines: Vec<String> = omitted.iter().take(MAX_LEFT_OUT).map(line).collect();
    if omitted.len() > MAX_LEFT_OUT {
        lines.push(format!("and {} more", omitted.len() - MAX_LEFT_OUT));
    }
    lines
}

/// Returns the variables of gates, with the repository's virtual environment if no other is active. Cargo is
/// offline, and programs of `node_modules` are found last.
fn activated(
    top: &Path,
    ignored: &IgnoredFiles,
    mut env: Vec<(OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    env.push(("CARGO_NET_OFFLINE".into(), "true".into()));
    let is_active = env.iter().any(|(name, _)| name == "VIRTUAL_ENV");
    // One that is tracked could name any place of the machine as that of its interpreter.
    let is_shown = |name: &&&str| {
        ignored
            .trees
            .iter()
            .any(|tree| tree.path == Path::new(name))
    };
    let usual = ENVIRONMENTS
        .iter()
        .filter(is_shown)
        .map(|name| top.join(name));
    let mut places = usual.chain(made_for_tests(top, ignored));
    let own = places.find(|place| place.join("bin/python").exists() && !is_active);
    let mut last: Vec<PathBuf> = own.iter().filter_map(|place| interpreter(place)).collect();
    last.extend(Some(top.join("node_modules/.bin")).filter(|programs| programs.is_dir()));
    if let Some((_, path)) = env.iter_mut().find(|(name, _)| name == "PATH") {
        let mut places: Vec<PathBuf> = own.iter().map(|place| place.join("bin")).collect();
        places.extend(std::env::split_paths(path));
        last.retain(|place| !places.contains(place));
        // A path with a separator in it cannot be expressed.
        if let Ok(joined) = std::env::join_paths(places.into_iter().chain(last)) {
            *path = joined;
        }
    }
    env.extend(own.map(|place| (OsString::from("VIRTUAL_ENV"), place.into_os_string())));
    env
}

/// The interpreter of a virtual environment of the repository at `top`, from the top.
pub(crate) fn venv_python(top: &Path, environment: &str) -> Option<PathBuf> {
    let python = Path::new(environment).join("bin/python");
    top.join(&python).exists().then_some(python)
}

/// Writes a remedy for the Python that gates start: that of the repository's virtual environment, if it is the one.
pub(crate) fn remedy_for_venv(world: &RunContext<'_>, top: &Path, remedy: &str) -> String {
    let is_active = world.env.get_os("VIRTUAL_ENV").is_some();
    let own = ENVIRONMENTS.iter().find_map(|name| venv_python(top, name));
    match own.filter(|_| !is_active) {
        Some(python) => with_python(remedy, &python),
        None => remedy.to_owned(),
    }
}

fn with_python(remedy: &str, python: &Path) -> String {
    remedy
        .replace("python3 -m pip", &format!("{} -m pip", python.display()))
        .replace(" with the Python that the gate starts", "")
}

/// Returns the environments that tox or nox made for tests: those with pytest first, then the newest Python.
fn made_for_tests(top: &Path, ignored: &IgnoredFiles) -> impl Iterator<Item = PathBuf> {
    let mut found: Vec<(bool, &str, PathBuf)> = Vec::new();
    for tree in &ignored.trees {
        let mut parts = tree.path.iter().filter_map(|part| part.to_str());
        let (Some(".tox" | ".nox"), Some(name), None) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let is_for_tests = name.contains("test") || name.starts_with("py");
        let place = top.join(&tree.path);
        if is_for_tests {
            found.push((place.join("bin/pytest").exists(), name, place));
        }
    }
    // `py39` is older than `py310`.
    found.sort_by_key(|(has_pytest, name, _)| {
        std::cmp::Reverse((*has_pytest, name.starts_with("py3"), name.len(), *name))
    });
    found.into_iter().map(|(.., place)| place)
}

/// Returns the directory where the interpreter of a virtual environment is installed; the sandbox shows what
/// is on `PATH`.
fn interpreter(place: &Path) -> Option<PathBuf> {
    let settings = fs::read_up_to(&place.join("pyvenv.cfg"), MAX_SETTINGS).ok()?;
    let settings = String::from_utf8_lossy(&settings).into_owned();
    let mut pairs = settings.lines().filter_map(|line| line.split_once('='));
    let home = pairs
        .find(|(key, _)| key.trim() == "home")
        .map(|(_, value)| PathBuf::from(value.trim()))?;
    let is_one = home.is_absolute() && home.ends_with("bin") && home.join("python3").exists();
    is_one.then_some(home)
}

/// Returns the variables that make Python find packages in these places before installed ones, and write
/// nothing beside the latter.
fn looking_in(
    places: impl IntoIterator<Item = PathBuf>,
    env: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let places = places.into_iter().filter(|place| place.is_dir());
    // Printed without the last dot, as other tools do.
    let places = places.map(|place| place.components().collect::<PathBuf>());
    let path = std::env::join_paths(places)
        .ok()
        .map(|path| (OsString::from(PYTHON_PATH), path));
    let written = (
        OsString::from("PYTHONDONTWRITEBYTECODE"),
        OsString::from("1"),
    );
    env.iter().cloned().chain(path).chain([written]).collect()
}

/// The same for a tracked path. Keys and certificates among tests are made for tests, which fail without
/// them.
pub(crate) fn by_tracked_path(path: &Path) -> Option<String> {
    let text = path.to_string_lossy();
    let is_fixture = |path: RepoPath| {
        const KEYS: [&str; 8] = [
            ".pem", ".key", ".crt", ".cer", ".der", ".p12", ".pfx", ".jks",
        ];
        PathRoles::from_path(&path).has(PathRole::Test)
            && KEYS.iter().any(|end| path.file_name().ends_with(end))
    };
    by_path(path).filter(|_| !text.parse().is_ok_and(is_fixture))
}

/// Returns why a path must not reach a gate; a directory's path ends with `/`.
pub(crate) fn by_path(path: &Path) -> Option<String> {
    let text = path.to_string_lossy();
    let why = if text.ends_with('/') {
        is_secret_directory(&text).then_some("programs keep secrets at this path")
    } else {
        is_secret_file(&text).then_some("its name says that it holds secrets")
    };
    why.map(str::to_owned)
}

/// Returns why an ignored file must not reach a gate: the scanner finds a secret in its text. Binary files
/// and texts over a megabyte are build output.
fn by_content(content: FileContent<'_>) -> io::Result<Option<OmitReason>> {
    let FileContent::Whole(bytes) = content else {
        return Ok(None);
    };
    if bytes.iter().take(TEXT_HEAD).any(|byte| *byte == 0) {
        return Ok(None);
    }
    let rule = Scanner::builtin().first_in_file(bytes);
    Ok(rule.map(|rule| OmitReason::Secret(format!("it holds what looks like one ({rule})"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedy_names_the_python_of_the_repository() {
        let python = Path::new(".venv/bin/python");
        let remedy = "run `python3 -m pip install pytest-cov` with the Python that the gate starts";
        assert_eq!(
            with_python(remedy, python),
            "run `.venv/bin/python -m pip install pytest-cov`"
        );
        assert_eq!(with_python("run `npm ci`", python), "run `npm ci`");
    }

    #[test]
    fn only_test_keys_reach_a_gate() {
        let is_kept_out = |path: &str| by_tracked_path(Path::new(path)).is_some();
        for fixture in [
            "test/fixtures/key.pem",
            "tests/certs/server.key",
            "src/__tests__/ca.pem",
        ] {
            assert!(!is_kept_out(fixture), "{fixture}");
            assert!(
                by_path(Path::new(fixture)).is_some(),
                "{fixture}: an ignored file stays away"
            );
        }
        for secret in [
            "key.pem",
            "config/server.key",
            "tests/.env",
            "test/fixtures/.npmrc",
            "tests/id_rsa",
        ] {
            assert!(is_kept_out(secret), "{secret}");
        }
    }
}
