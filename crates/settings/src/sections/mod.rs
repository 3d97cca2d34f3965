//! The declarations, in the order of the reference.

pub(crate) mod agents;
pub(crate) mod attest;
pub(crate) mod council;
pub(crate) mod crawl;
pub(crate) mod dispatch;
pub(crate) mod find;
pub(crate) mod forge;
pub(crate) mod gates;
pub(crate) mod llm;
pub(crate) mod mcp;
pub(crate) mod paths;
pub(crate) mod phases;
pub(crate) mod providers;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod spec;

use crate::spec::Section;

/// Every section, in the order of the reference.
pub(crate) static SECTIONS: &[&Section] = &[
    &paths::PathsSection::SECTION,
    &llm::LlmSection::SECTION,
    &llm::BudgetSection::SECTION,
    &llm::PriceEntry::SECTION,
    &providers::GATEWAY,
    &providers::OLLAMA,
    &providers::ANTHROPIC,
    &providers::OPENAI,
    &providers::OPENROUTER,
    &providers::CLAUDE_CLI,
    &providers::GEMINI_CLI,
    &providers::CODEX_CLI,
    &providers::REPLAY,
    &providers::ANTHROPIC_PROFILES,
    &providers::CLAUDE_CLI_PROFILES,
    &providers::CODEX_CLI_PROFILES,
    &providers::GATEWAY_PROFILES,
    &providers::GEMINI_CLI_PROFILES,
    &providers::OLLAMA_PROFILES,
    &providers::OPENAI_PROFILES,
    &providers::OPENROUTER_PROFILES,
    &phases::PhaseEntry::SECTION,
    &crawl::CrawlSection::SECTION,
    &council::CouncilSection::SECTION,
    &run::RunSection::SECTION,
    &dispatch::DispatchSection::SECTION,
    &agents::AgentEntry::SECTION,
    &run::PatchSection::SECTION,
    &spec::SpecSection::SECTION,
    &spec::HookEntry::SECTION,
    &forge::ForgeSection::SECTION,
    &run::ContextSection::SECTION,
    &sandbox::SandboxSection::SECTION,
    &gates::GateEntry::SECTION,
    &find::FindSection::SECTION,
    &attest::AttestSection::SECTION,
    &mcp::McpSection::SECTION,
];
