//! A council whose models are one server on loopback.

use std::time::Duration;

use crucible_council::{Crucible, EngineConfig};
use crucible_llm::{Backend, Context, ProviderSettings, construct};
use crucible_testkit::FakeApi;

/// The backend `gateway` with this server.
pub(crate) fn gateway(server: &FakeApi) -> Backend {
    let settings = ProviderSettings {
        base_url: Some(server.base_url()),
        model: Some("fake-model".to_owned()),
        max_tokens: Some(1000),
        ..ProviderSettings::default()
    };
    construct("gateway", &settings, &Context::http_only([]).unwrap()).unwrap()
}

/// The test configuration with this server: calls time out after ten seconds.
pub(crate) fn config(server: &FakeApi) -> EngineConfig {
    let mut config = EngineConfig::with_backend(gateway(server));
    config.limits.call_timeout = Duration::from_secs(10);
    config
}

/// An engine with this configuration.
pub(crate) fn engine(config: EngineConfig) -> Crucible {
    Crucible::new(config).unwrap()
}
