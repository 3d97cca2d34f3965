//! The repositories that tools reach.

use std::path::{Path, PathBuf};

use crucible_ledger::{Ledger, RunRow};
use crucible_model::{Failure, one_line};
use crucible_run::{RunContext, RunDir, find_run};

use crate::host::ToolHost;

/// The longest path in an argument, in bytes.
const MAX_PATH: usize = 4096;

/// The directories whose repositories tools reach.
///
/// They are looked up at each call: a repository may be made after the server was started.
#[derive(Debug, Clone)]
pub struct Reach {
    directories: Vec<PathBuf>,
}

/// A run, its directory and the ledger that has it.
pub(crate) struct ReachedRun {
    pub(crate) ledger: Ledger,
    pub(crate) dir: RunDir,
    /// The top of its repository.
    pub(crate) repository: PathBuf,
}

impl Reach {
    /// Reaches the repositories around these absolute directories; the first is the default.
    #[must_use]
    pub fn new(directories: Vec<PathBuf>) -> Self {
        Self { directories }
    }

    /// The tops of the repositories, without links.
    fn tops(&self, host: &dyn ToolHost) -> Vec<PathBuf> {
        let top = |directory: &PathBuf| host.repository_of(directory)?.canonicalize().ok();
        self.directories.iter().filter_map(top).collect()
    }

    /// Returns the directory that an argument names, in one of the repositories; by default the first one's top.
    pub(crate) fn directory(
        &self,
        host: &dyn ToolHost,
        named: Option<&str>,
    ) -> Result<PathBuf, Failure> {
        let tops = self.tops(host);
        let Some(first) = tops.first() else {
            let shown = self.directories.iter();
            let lines: Vec<_> = shown.map(|one| one.display().to_string()).collect();
            return Err(Failure::usage(format!(
                "no git repository at {}",
                one_line(&lines.join(", "))
            ))
            .hint("Start the server in a repository, or name one: `crucible mcp --repo DIR`."));
        };
        let Some(named) = named else {
            return Ok(first.clone());
        };
        let refuse = |why: &str| {
            Err(
                Failure::usage(format!("repo {:?}: {why}", short(named))).hint(
                    "Leave `repo` out for the server's own repository; the user adds others with `crucible mcp --repo DIR`.",
                ),
            )
        };
        if named.len() > MAX_PATH {
            return refuse("the path is too long");
        }
        if named.contains('\0') {
            return refuse("the path has a NUL byte");
        }
        let Ok(directory) = first.join(named).canonicalize() else {
            return refuse("there is no such directory");
        };
        let top = host
            .repository_of(&directory)
            .and_then(|top| top.canonicalize().ok());
        match top {
            Some(top) if directory.is_dir() && tops.contains(&top) => Ok(directory),
            _ => refuse("this server does not reach it"),
        }
    }

    /// Returns the run of this id or of the only id that begins with it.
    pub(crate) fn run(
        &self,
        host: &dyn ToolHost,
        world: &RunContext<'_>,
        named: &str,
    ) -> Result<ReachedRun, Failure> {
        let unknown = || {
            Failure::usage(format!("no run {:?} of this repository", short(named)))
                .hint("`list_runs` shows the runs.")
        };
        let ledger = host.existing_ledger()?.ok_or_else(unknown)?;
        let runs = self.runs(host, &ledger)?;
        let is_meant = |run: &&RunRow| !named.is_empty() && run.id.as_str().starts_with(named);
        let mut matching = runs.iter().filter(is_meant);
        let run = matching.next().ok_or_else(unknown)?;
        if matching.next().is_some() {
            return Err(
                Failure::usage(format!("several runs begin with {:?}", short(named)))
                    .hint("Give the complete id; `list_runs` shows it."),
            );
        }
        let (id, repository) = (run.id.to_string(), PathBuf::from(&run.repo));
        let (ledger, dir) = find_run(world, Some(ledger), &host.ledger_file()?, Some(&id), None)?;
        Ok(ReachedRun {
            ledger,
            dir,
            repository,
        })
    }

    /// Returns the runs of the repositories, newest first.
    pub(crate) fn runs(
        &self,
        host: &dyn ToolHost,
        ledger: &Ledger,
    ) -> Result<Vec<RunRow>, Failure> {
        let tops = self.tops(host);
        let is_reached = |run: &RunRow| tops.iter().any(|top| top == Path::new(&run.repo));
        let mut runs = ledger.runs()?;
        runs.retain(is_reached);
        Ok(runs)
    }
}

/// The beginning of a text that an error quotes.
fn short(text: &str) -> String {
    text.chars().take(200).collect()
}
