//! Who may act on a model's answer.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The error for a configuration with [`ExecutionStrategy::ExternalTool`].
const EXTERNAL_TOOL_REFUSED: &str =
    "ExecutionStrategy::ExternalTool not yet supported in this version";

/// Who may act on a model's answer. Chosen once per process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStrategy {
    /// Models return text; Crucible's own code decides and writes.
    #[default]
    Controlled,
    /// Models act with their own tools. Known by name, but refused at start-up.
    ExternalTool,
}

/// A strategy that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// It is known, but not supported.
    #[error("{EXTERNAL_TOOL_REFUSED}; set execution_strategy to \"controlled\"")]
    NotSupported,
    /// The name is unknown.
    #[error("unknown execution strategy {name:?}; use \"controlled\"")]
    Unknown {
        /// The name, at most 64 characters of it.
        name: String,
    },
}

impl ExecutionStrategy {
    /// Returns the strategy if it is supported. Call this at start-up, before anything runs.
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

    /// Parses the name in the configuration, and refuses an unsupported strategy.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "controlled" => Ok(Self::Controlled),
            // The spelling of the format, and that of other command line values.
            "external_tool" | "external-tool" => Self::ExternalTool.accepted(),
            _ => Err(StrategyError::Unknown {
                name: name.chars().take(64).collect(),
            }),
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
                refused.to_string().starts_with(
                    "ExecutionStrategy::ExternalTool not yet supported in this version"
                )
            );
        }
        assert!(matches!(
            "Controlled".parse::<ExecutionStrategy>(),
            Err(StrategyError::Unknown { .. })
        ));
    }
}
