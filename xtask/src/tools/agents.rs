//! The coding agent that is a Python package, pinned, in `.tools/agents`. The others are among the client programs.

use super::python::install;
use crate::error::TaskError;
use crate::root::Root;

/// Installs it where it is not.
pub(crate) fn agents(root: &Root) -> Result<(), TaskError> {
    install(root, "agents", &[("mini-swe-agent", "2.4.0")])
}
