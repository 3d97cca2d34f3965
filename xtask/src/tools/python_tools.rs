//! The programs that judge Python: ruff, mypy and pytest, pinned, in `.tools/python`.
//!
//! What always holds: what is installed has exactly these versions; an environment with another one is rebuilt.

use super::python::Venv;
use crate::error::TaskError;
use crate::process::Call;
use crate::root::Root;

/// The packages with their versions.
const PACKAGES: [(&str, &str); 3] = [("ruff", "0.17.6"), ("mypy", "2.4.1"), ("pytest", "9.2.0")];

/// Installs them where they are not.
pub(crate) fn python_tools(root: &Root) -> Result<(), TaskError> {
    let venv = Venv::at(root.tools().join("python"));
    if is_ready(root, &venv) {
        return Ok(());
    }
    let _alone = super::folder::alone(root)?;
    // Another run may have installed them while this one waited.
    if is_ready(root, &venv) {
        return Ok(());
    }
    eprintln!("installing ruff, mypy and pytest into .tools/python");
    venv.make(root)?;
    let pinned: Vec<String> = PACKAGES
        .iter()
        .map(|(package, version)| format!("{package}=={version}"))
        .collect();
    let words = ["install", "--quiet", "--only-binary", ":all:"]
        .into_iter()
        .map(str::to_owned);
    venv.pip(root, words.chain(pinned))?;
    if is_ready(root, &venv) {
        return Ok(());
    }
    Err(TaskError::Missing {
        what: "ruff, mypy and pytest in .tools/python".to_owned(),
        fix: "Remove .tools/python and run this again; pip's output above says what went wrong."
            .to_owned(),
    })
}

/// Whether each answers with its version.
fn is_ready(root: &Root, venv: &Venv) -> bool {
    PACKAGES.iter().all(|(package, version)| {
        let output = Call::new(root, venv.program(package))
            .args(["--version"])
            .stdout();
        output.is_some_and(|output| output.split_whitespace().any(|word| word == *version))
    })
}
