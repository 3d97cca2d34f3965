//! The providers, one file each. Adding one takes a file here and a line in the registry.

pub(crate) mod anthropic;
pub(crate) mod claude_cli;
pub(crate) mod codex_cli;
pub(crate) mod gateway;
pub(crate) mod gemini_cli;
pub(crate) mod ollama;
pub(crate) mod openai;
pub(crate) mod openrouter;
pub(crate) mod replay;
