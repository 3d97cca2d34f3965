//! Every setting of Crucible, declared once, and the values in force.
//!
//! `sections/` declares each setting: its key, type, default, description, environment variable, and who may set it.
//! From that come the typed fields of [`Settings`], the checks of every source, and the reference of all settings.
//!
//! What always holds: every value in force knows its source; a project's own file, which may come with a cloned
//! repository, can neither weaken the sandbox nor send a key or a prompt to another machine, nor raise a limit.

mod declare;
mod edit;
mod error;
mod exit_status;
mod files;
mod known;
mod layers;
mod reference;
mod sections;
mod settings;
mod spec;
mod words;

pub use edit::{Edit, EditError, EditedFile};
pub use error::ConfigError;
pub use files::ConfigFiles;
pub use known::variable_of;
pub use layers::{Setting, SettingSource};
pub use reference::settings_schema;
pub use sections::agents::AgentEntry;
pub use sections::attest::AttestSection;
pub use sections::council::CouncilSection;
pub use sections::crawl::CrawlSection;
pub use sections::dispatch::DispatchSection;
pub use sections::find::FindSection;
pub use sections::forge::ForgeSection;
pub use sections::gates::GateEntry;
pub use sections::llm::{BudgetSection, LlmSection, PriceEntry};
pub use sections::mcp::McpSection;
pub use sections::paths::PathsSection;
pub use sections::phases::PhaseEntry;
pub use sections::providers::{PROVIDERS, ProviderSection};
pub use sections::run::{ContextSection, PatchSection, RunSection};
pub use sections::sandbox::SandboxSection;
pub use sections::spec::{HookEntry, SpecSection};
pub use settings::Settings;
pub use words::{
    DeltaRule, ExamplesNeed, FindScope, GateReach, GateTier, HookPoint, OnHookFailure, OneOf,
    SkillAuthor, Switch, Words,
};
