//! Phoenix, which stores and shows traces, pinned, in `.tools/phoenix`. It is large, so only the whole slow suite installs it.
//!
//! What always holds: the environment has exactly this version; one that says another is made anew.

use super::python::Venv;
use crate::error::TaskError;
use crate::process::Call;
use crate::root::Root;

/// The package with its version.
const PACKAGE: &str = "arize-phoenix";
const VERSION: &str = "20.26.1";

/// Installs it where it is not.
pub(crate) fn phoenix(root: &Root) -> Result<(), TaskError> {
    let venv = Venv::at(root.tools().join("phoenix"));
    if is_ready(root, &venv) {
        return Ok(());
    }
    let _alone = super::alone(root)?;
    if is_ready(root, &venv) {
        return Ok(());
    }
    eprintln!("installing {PACKAGE} into .tools/phoenix (850 MB)");
    venv.make(root)?;
    let package = format!("{PACKAGE}=={VERSION}");
    venv.pip(
        root,
        [
            "install",
            "--quiet",
            "--only-binary",
            ":all:",
            package.as_str(),
        ],
    )?;
    if is_ready(root, &venv) {
        return Ok(());
    }
    Err(TaskError::Missing {
        what: "Phoenix in .tools/phoenix".to_owned(),
        fix: "Remove .tools/phoenix and run this again; pip's output above says what went wrong."
            .to_owned(),
    })
}

/// Whether its environment has this version. The program itself takes half a minute to answer.
fn is_ready(root: &Root, venv: &Venv) -> bool {
    let script = format!("import importlib.metadata as m; print(m.version('{PACKAGE}'))");
    let said = Call::new(root, venv.python())
        .args(["-c", script.as_str()])
        .stdout();
    said.is_some_and(|said| said.trim() == VERSION)
}
