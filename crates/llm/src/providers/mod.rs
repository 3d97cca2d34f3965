//! The providers, one file each. A new one is a file here and a line in the registry.

pub(crate) mod claude_cli;
pub(crate) mod gateway;
pub(crate) mod replay;
