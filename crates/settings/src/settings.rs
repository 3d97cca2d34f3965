//! The settings in force, with a typed field for each section.

use std::collections::BTreeMap;

use crucible_host::env::Environment;
use toml::Value;

use crate::declare::FromLayers;
use crate::error::ConfigError;
use crate::files::ConfigFiles;
use crate::layers::{Layers, Setting, SettingSource};
use crate::sections::agents::AgentEntry;
use crate::sections::attest::AttestSection;
use crate::sections::council::CouncilSection;
use crate::sections::crawl::CrawlSection;
use crate::sections::dispatch::DispatchSection;
use crate::sections::find::FindSection;
use crate::sections::forge::ForgeSection;
use crate::sections::gates::GateEntry;
use crate::sections::llm::{BudgetSection, LlmSection, PriceEntry};
use crate::sections::mcp::McpSection;
use crate::sections::paths::PathsSection;
use crate::sections::phases::PhaseEntry;
use crate::sections::providers::{PROVIDERS, ProviderSection};
use crate::sections::run::{ContextSection, PatchSection, RunSection};
use crate::sections::sandbox::SandboxSection;
use crate::sections::spec::{HookEntry, SpecSection};

/// The settings in force for one command, and where each comes from.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `[paths]`
    pub paths: PathsSection,
    /// `[llm]`
    pub llm: LlmSection,
    /// `[llm.budget]`
    pub budget: BudgetSection,
    /// `[llm.prices]`, by provider and model.
    pub prices: BTreeMap<String, PriceEntry>,
    /// `[phases]`, by the phase's name.
    pub phases: BTreeMap<String, PhaseEntry>,
    /// `[crawl]`
    pub crawl: CrawlSection,
    /// `[council]`
    pub council: CouncilSection,
    /// `[run]`
    pub run: RunSection,
    /// `[dispatch]`
    pub dispatch: DispatchSection,
    /// `[agents]`, by name.
    pub agents: BTreeMap<String, AgentEntry>,
    /// `[patch]`
    pub patch: PatchSection,
    /// `[spec]`
    pub spec: SpecSection,
    /// `[hooks]`, by name.
    pub hooks: BTreeMap<String, HookEntry>,
    /// `[attest]`
    pub attest: AttestSection,
    /// `[forge]`
    pub forge: ForgeSection,
    /// `[context]`
    pub context: ContextSection,
    /// `[sandbox]`
    pub sandbox: SandboxSection,
    /// `[gates]`, by name.
    pub gates: BTreeMap<String, GateEntry>,
    /// `[find]`
    pub find: FindSection,
    /// `[mcp]`
    pub mcp: McpSection,
    providers: BTreeMap<&'static str, ProviderSection>,
    layers: Layers,
}

impl Settings {
    /// Reads every source and checks every key.
    ///
    /// `flags` are pairs of a key and its value as given on the command line.
    ///
    /// # Errors
    ///
    /// Fails on the first file that cannot be read or value that is not allowed, and names its source.
    pub fn load(
        files: &ConfigFiles,
        env: &Environment,
        flags: &[(&str, String)],
    ) -> Result<Self, ConfigError> {
        Ok(Self::from_layers(Layers::load(files, env, flags)?))
    }

    fn from_layers(layers: Layers) -> Self {
        let providers = PROVIDERS
            .iter()
            .map(|name| (*name, provider(&layers, name)));
        Self {
            paths: section(&layers, "paths"),
            llm: section(&layers, "llm"),
            budget: section(&layers, "llm.budget"),
            prices: entries(&layers, "llm.prices"),
            phases: entries(&layers, "phases"),
            crawl: section(&layers, "crawl"),
            council: section(&layers, "council"),
            run: section(&layers, "run"),
            dispatch: section(&layers, "dispatch"),
            agents: entries(&layers, "agents"),
            patch: section(&layers, "patch"),
            spec: section(&layers, "spec"),
            hooks: entries(&layers, "hooks"),
            attest: section(&layers, "attest"),
            forge: section(&layers, "forge"),
            context: section(&layers, "context"),
            sandbox: section(&layers, "sandbox"),
            gates: entries(&layers, "gates"),
            find: section(&layers, "find"),
            mcp: section(&layers, "mcp"),
            providers: providers.collect(),
            layers,
        }
    }

    /// `[llm.NAME]` of a provider; a section without values where the name is not a provider's.
    #[must_use]
    pub fn provider(&self, name: &str) -> ProviderSection {
        self.providers.get(name).cloned().unwrap_or_default()
    }

    /// Where a value comes from.
    #[must_use]
    pub fn source(&self, key: &str) -> Option<&SettingSource> {
        self.layers.source(key)
    }

    /// Whether any source besides the defaults sets a value.
    #[must_use]
    pub fn is_set(&self, key: &str) -> bool {
        self.source(key)
            .is_some_and(|source| *source != SettingSource::Default)
    }

    /// Whether the value in force comes from the project's file, which someone else may have written.
    #[must_use]
    pub fn is_of_project(&self, key: &str) -> bool {
        self.layers.is_of_project(key)
    }

    /// The variables that begin with `CRUCIBLE_` and set nothing, such as a misspelled limit.
    #[must_use]
    pub fn unread_variables(&self, env: &Environment) -> Vec<String> {
        self.layers.unread_variables(env)
    }

    /// Every value in force, by key.
    pub fn effective(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.layers.effective()
    }
}

/// The section of a provider.
fn provider(layers: &Layers, name: &str) -> ProviderSection {
    let value: &dyn Fn(&str) -> Option<Value> =
        &|field| layers.value(&format!("llm.{name}.{field}")).cloned();
    ProviderSection::read(value, entries(layers, &format!("llm.{name}.profiles")))
}

/// A section of its own table.
fn section<T: FromLayers>(layers: &Layers, table: &str) -> T {
    T::read(&|field| layers.value(&format!("{table}.{field}")).cloned())
}

/// The tables that users named below `table`, by name.
fn entries<T: FromLayers>(layers: &Layers, table: &str) -> BTreeMap<String, T> {
    let entry = |name: String| {
        let value: &dyn Fn(&str) -> Option<Value> =
            &|field| layers.value(&format!("{table}.{name}.{field}")).cloned();
        let entry = T::read(value);
        (name, entry)
    };
    layers.names_below(table).into_iter().map(entry).collect()
}
