//! The thirteen names of build systems.

use std::fmt;
use std::str::FromStr;

/// What builds a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BuildSystem {
    /// Rust, with cargo.
    Cargo,
    /// Go, with modules.
    Go,
    /// Node, with npm's lock file.
    NodeNpm,
    /// Node, with yarn's lock file.
    NodeYarn,
    /// Node, with pnpm's lock file.
    NodePnpm,
    /// Python, with a list of requirements or a `setup.py`.
    PythonPip,
    /// Python, with poetry's lock file.
    PythonPoetry,
    /// Python, with setuptools as its build backend.
    PythonSetuptools,
    /// CMake.
    Cmake,
    /// Meson.
    Meson,
    /// GNU autotools.
    Autotools,
    /// A plain Makefile.
    Make,
    /// None of the others.
    Unknown,
}

/// The text names no build system.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown build system {name:?}; use one of: {}", BuildSystem::ALL.map(BuildSystem::as_str).join(", "))]
pub struct BuildSystemError {
    /// What was written.
    pub name: String,
}

impl BuildSystem {
    /// All of them, in the order of the seed's table; of two that are equally likely, the earlier one is it.
    pub const ALL: [Self; 13] = [
        Self::Cargo,
        Self::Go,
        Self::NodeNpm,
        Self::NodeYarn,
        Self::NodePnpm,
        Self::PythonPip,
        Self::PythonPoetry,
        Self::PythonSetuptools,
        Self::Cmake,
        Self::Meson,
        Self::Autotools,
        Self::Make,
        Self::Unknown,
    ];

    /// Its name in artifacts.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Go => "go",
            Self::NodeNpm => "node-npm",
            Self::NodeYarn => "node-yarn",
            Self::NodePnpm => "node-pnpm",
            Self::PythonPip => "python-pip",
            Self::PythonPoetry => "python-poetry",
            Self::PythonSetuptools => "python-setuptools",
            Self::Cmake => "cmake",
            Self::Meson => "meson",
            Self::Autotools => "autotools",
            Self::Make => "make",
            Self::Unknown => "unknown",
        }
    }

    /// How sure its detection is, from 0 to 1: fixed, not computed.
    #[must_use]
    pub const fn confidence(self) -> f64 {
        match self {
            Self::Cargo | Self::Go | Self::NodeNpm | Self::NodeYarn | Self::NodePnpm => 0.95,
            Self::PythonPoetry | Self::Cmake | Self::Meson => 0.90,
            Self::PythonSetuptools | Self::Autotools => 0.85,
            Self::PythonPip => 0.80,
            Self::Make => 0.70,
            Self::Unknown => 0.0,
        }
    }
}

impl fmt::Display for BuildSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for BuildSystem {
    type Err = BuildSystemError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|system| system.as_str() == name);
        found.ok_or_else(|| BuildSystemError {
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_name_error_lists_valid_names() {
        for system in BuildSystem::ALL {
            assert_eq!(system.as_str().parse(), Ok(system));
        }
        let error = "Cargo".parse::<BuildSystem>().unwrap_err().to_string();
        assert!(
            error.contains("\"Cargo\"") && error.contains("cargo, go, node-npm"),
            "{error}"
        );
    }

    #[test]
    fn confidences_are_those_of_the_table() {
        let of = |name: &str| name.parse::<BuildSystem>().unwrap().confidence();
        let table = [
            ("cargo", 0.95),
            ("go", 0.95),
            ("node-npm", 0.95),
            ("node-yarn", 0.95),
            ("node-pnpm", 0.95),
            ("python-pip", 0.80),
            ("python-poetry", 0.90),
            ("python-setuptools", 0.85),
            ("cmake", 0.90),
            ("meson", 0.90),
            ("autotools", 0.85),
            ("make", 0.70),
            ("unknown", 0.0),
        ];
        assert_eq!(table.len(), BuildSystem::ALL.len());
        for (name, confidence) in table {
            assert_eq!(of(name), confidence, "{name}");
        }
    }
}
