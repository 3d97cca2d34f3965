//! The programs that judge Python: where they are, and which versions.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crucible_host::env::find_program;
use crucible_sandbox::NoVersion;

use crate::context::ForgeContext;

/// What they are called.
const NAMES: [&str; 3] = ["ruff", "mypy", "pytest"];

/// A program that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillTool {
    /// What it is called.
    pub name: &'static str,
    /// Where it is.
    pub path: PathBuf,
    /// Which version it says it is.
    pub version: String,
}

/// The programs of the gates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillTools {
    /// The linter.
    pub ruff: SkillTool,
    /// The type checker.
    pub mypy: SkillTool,
    /// The runner of tests.
    pub pytest: SkillTool,
    /// The `PATH` that they were found on, and that they are given.
    path: OsString,
}

/// Programs are missing.
#[derive(Debug, thiserror::Error)]
pub enum ToolsMissing {
    /// The named directory is not an absolute path of a directory.
    #[error("forge.tools is {}, which is not an absolute path to a directory", path.display())]
    NoDirectory {
        /// What it names.
        path: PathBuf,
    },
    /// One is not there.
    #[error(
        "{name} is not there: {why}; install it beside the others (`python3 -m pip install ruff mypy pytest`), or name the directory that holds all three: [forge] tools in your own configuration, or CRUCIBLE_FORGE_TOOLS"
    )]
    NotFound {
        /// Which.
        name: &'static str,
        /// What was found instead.
        why: String,
    },
    /// One does not run.
    #[error("{} does not print its version: {source}; reinstall it, or name another directory of tools: [forge] tools in your own configuration", path.display())]
    Silent {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: NoVersion,
    },
}

impl SkillTools {
    /// Finds the programs in `directory`, else on the `PATH`, and asks each for its version.
    ///
    /// # Errors
    ///
    /// [`ToolsMissing`] names the first that is not there or does not run.
    pub async fn find(
        world: &ForgeContext<'_>,
        directory: Option<&Path>,
    ) -> Result<Self, ToolsMissing> {
        if let Some(path) = directory
            && !(path.is_absolute() && path.is_dir())
        {
            return Err(ToolsMissing::NoDirectory {
                path: path.to_owned(),
            });
        }
        let places = directory
            .map(Path::to_owned)
            .into_iter()
            .chain(world.env.path_dirs());
        let not_found = |name, why: String| ToolsMissing::NotFound { name, why };
        let path =
            std::env::join_paths(places).map_err(|error| not_found(NAMES[0], error.to_string()))?;
        let tool = async |name: &'static str| {
            let found = find_program(Path::new(name), Path::new("/"), &path)
                .map_err(|error| not_found(name, error.to_string()))?;
            match world.sandbox.version_of(&found).await {
                Ok(version) => Ok(SkillTool {
                    name,
                    path: found,
                    version: version.number.unwrap_or(version.line),
                }),
                Err(source) => Err(ToolsMissing::Silent {
                    path: found,
                    source,
                }),
            }
        };
        let [ruff, mypy, pytest] = NAMES;
        let (ruff, mypy, pytest) = tokio::try_join!(tool(ruff), tool(mypy), tool(pytest))?;
        Ok(Self {
            ruff,
            mypy,
            pytest,
            path,
        })
    }

    /// Every one.
    #[must_use]
    pub const fn all(&self) -> [&SkillTool; 3] {
        [&self.ruff, &self.mypy, &self.pytest]
    }

    /// The `PATH` of the programs.
    pub(super) const fn search_path(&self) -> &OsString {
        &self.path
    }
}
