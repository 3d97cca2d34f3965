//! Checks one program: its location and its version.

use std::path::Path;

use crucible_host::env::ProgramError;
use crucible_sandbox::IsolationLevel;
use serde::Serialize;

use crate::context::Context;

/// A program that Crucible itself uses.
pub(super) struct OwnProgram {
    name: &'static str,
    needed_by: NeededBy,
    purpose: &'static str,
    install: &'static str,
}

/// All of them.
pub(super) const OWN: [OwnProgram; 6] = [
    OwnProgram {
        name: GIT,
        needed_by: NeededBy::EveryRun,
        purpose: "every run",
        install: "apt-get install git",
    },
    OwnProgram {
        name: "bwrap",
        needed_by: NeededBy::Sandbox,
        purpose: "the sandbox",
        install: "apt-get install bubblewrap",
    },
    OwnProgram {
        name: "gh",
        needed_by: NeededBy::SomeCommands,
        purpose: "repositories on GitHub",
        install: "apt-get install gh",
    },
    OwnProgram {
        name: "ruff",
        needed_by: NeededBy::SomeCommands,
        purpose: "checks of Python code",
        install: "pip install ruff",
    },
    OwnProgram {
        name: "mypy",
        needed_by: NeededBy::SomeCommands,
        purpose: "checks of Python code",
        install: "pip install mypy",
    },
    OwnProgram {
        name: "pytest",
        needed_by: NeededBy::SomeCommands,
        purpose: "tests of Python code",
        install: "pip install pytest",
    },
];

/// The program that every run needs, and its first supported version.
pub(super) const GIT: &str = "git";
/// As major and minor number.
pub(super) const GIT_AT_LEAST: (u64, u64) = (2, 31);

/// Who needs a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NeededBy {
    /// Every run.
    EveryRun,
    /// The sandbox, which is weaker without it.
    Sandbox,
    /// Its provider.
    Provider,
    /// Only the commands that use it.
    SomeCommands,
}

/// Whether a program is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramState {
    /// It is.
    Found,
    /// A file has its name, but is a directory or not executable.
    Unusable,
    /// It is not.
    Missing,
}

/// The result of checking a program.
#[derive(Debug, Serialize)]
pub struct ProgramCheck {
    /// Its name or path, as configured.
    pub name: String,
    /// Who needs it.
    pub needed_by: NeededBy,
    /// Its purpose.
    pub purpose: String,
    /// Whether it is installed.
    pub state: ProgramState,
    /// Its path, if it was found.
    pub path: Option<String>,
    /// The searched places; empty if it was found.
    pub searched: Vec<String>,
    /// Its version number, if it stated one.
    pub version: Option<String>,
    /// The first line of its output, cleaned and cut.
    pub says: Option<String>,
    /// The sandbox layers of the check; absent without an answer.
    pub isolation: Option<IsolationLevel>,
    /// What is wrong with it, if anything.
    pub problem: Option<String>,
    /// How to install it.
    pub install: String,
}

/// The program to check.
pub(super) struct AskedProgram<'a> {
    pub(super) program: &'a Path,
    pub(super) needed_by: NeededBy,
    pub(super) purpose: &'a str,
    pub(super) install: &'a str,
}

impl OwnProgram {
    pub(super) fn program(&self) -> AskedProgram<'_> {
        AskedProgram {
            program: Path::new(self.name),
            needed_by: self.needed_by,
            purpose: self.purpose,
            install: self.install,
        }
    }
}

/// Finds a program and runs it for its version.
pub(super) async fn check(program_check: AskedProgram<'_>, context: &Context) -> ProgramCheck {
    let AskedProgram {
        program,
        needed_by,
        purpose,
        install,
    } = program_check;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut check = ProgramCheck {
        name: text(program),
        needed_by,
        purpose: purpose.to_owned(),
        state: ProgramState::Found,
        path: None,
        searched: Vec::new(),
        version: None,
        says: None,
        isolation: None,
        problem: None,
        install: install.to_owned(),
    };
    let found = match context.env.find_program(program) {
        Ok(found) => found,
        Err(error) => {
            check.problem = Some(error.to_string());
            match error {
                ProgramError::NotFound { searched } => {
                    check.state = ProgramState::Missing;
                    check.searched = searched.iter().map(|path| text(path)).collect();
                }
                ProgramError::IsDirectory { file } | ProgramError::NotExecutable { file } => {
                    check.state = ProgramState::Unusable;
                    check.path = Some(text(&file));
                }
            }
            return check;
        }
    };
    check.path = Some(text(&found));
    match context.sandbox.version_of(&found).await {
        Ok(version) => {
            check.version = version.number;
            check.says = Some(version.line);
            check.isolation = Some(version.isolation);
        }
        Err(error) => check.problem = Some(error.to_string()),
    }
    check
}

impl ProgramCheck {
    /// Whether its version is known to be older than this; an unknown version is accepted.
    pub(super) fn is_older_than(&self, (major, minor): (u64, u64)) -> bool {
        let mut numbers = self.version.iter().flat_map(|version| version.split('.'));
        let mut next = || numbers.next().and_then(|part| part.parse::<u64>().ok());
        matches!((next(), next()), (Some(own), Some(own_minor)) if (own, own_minor) < (major, minor))
    }
}
