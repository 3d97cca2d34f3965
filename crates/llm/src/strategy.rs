//! Who may act on what a model says (seed 002, *ExecutionStrategy*).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a configuration that asks for [`ExecutionStrategy::ExternalTool`] is told.
const EXTERNAL_TOOL_REFUSED: &str = "ExecutionStrategy::ExternalTool not yet supported in this version";

/// Who may act on what a model says. Chosen once for a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStrategy {
    /// Models return text; Crucible's own code decides and writes.
    #[default]
    Controlled,
    /// Models act through tools of their own. Known by name, refused at start-up.
    ExternalTool,
}

/// A strategy that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// It is known, but not offered.
    #[error("{EXTERNAL_TOOL_REFUSED}; set execution_strategy to \"controlled\"")]
    NotSupported,
    /// There is none of this name.
    #[error("unknown execution strategy {name:?}; use \"controlled\"")]
    Unknown {
        /// What was asked for, at most 64 characters of it.
        name: String,
    },
}

impl ExecutionStrategy {
    /// The strategy, where it may be used. CallTarget at start-up, before anything runs.
    ///
    /// # Errors
    ///
    /// [`StrategyError::NotSupported`] for [`ExecutionStrategy::ExternalTool`].
    pub fn accepted(self) -> Result<Self, StrategyError> {
        match self {
            Self::Controlled => Ok(self),
            Self::ExternalTool => Err(StrategyError::NotSupported),
        }
    }
}

impl FromStr for ExecutionStrategy {
    type Err = StrategyError;

    /// Reads the name as configuration spells it, and refuses what cannot be used.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "controlled" => Ok(Self::Controlled),
            // The name as the format spells it, and as the command line spells its other values.
            "external_tool" | "external-tool" => Self::ExternalTool.accepted(),
            _ => Err(StrategyError::Unknown { name: name.chars().take(64).collect() }),
        }
    }
}

impl fmt::Display for ExecutionStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Controlled => "controlled",
            Self::ExternalTool => "external_tool",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_controlled_strategy_is_accepted() {
        assert_eq!("controlled".parse(), Ok(ExecutionStrategy::Controlled));
        assert_eq!(ExecutionStrategy::default(), ExecutionStrategy::Controlled);
        for spelling in ["external_tool", "external-tool"] {
            let refused = spelling.parse::<ExecutionStrategy>().unwrap_err();
            assert_eq!(refused, StrategyError::NotSupported);
            assert!(
                refused
                    .to_string()
                    .starts_with("ExecutionStrategy::ExternalTool not yet supported in this version")
            );
        }
        assert!(matches!("Controlled".parse::<ExecutionStrategy>(), Err(StrategyError::Unknown { .. })));
    }
}
