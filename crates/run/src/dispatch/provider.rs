//! A model provider that serves a role.

use std::collections::BTreeMap;

use serde_json::Value;

use super::service::{CallHints, RoleService};
use crate::contract::RunSettings;
use crate::recording::SEED;

/// A model provider. The run's own provider gets the run's parameters; any other one, as for a second
/// opinion, its own defaults.
pub(super) struct ProviderService;

impl RoleService for ProviderService {
    fn metadata(&self, settings: &RunSettings, call: &CallHints<'_>) -> BTreeMap<String, Value> {
        if call.name == settings.provider {
            parameters(&settings.parameters, call.number, call.refusals)
        } else {
            call.seed()
        }
    }
}

/// Returns the parameters of try `number`. Each try has its own seed, counted from the run's seed if any.
/// Each of the `refusals` raises the temperature a little, so that a refused model does not repeat its
/// answer. Pure, so that a replay sends the same request.
fn parameters(
    base: &BTreeMap<String, Value>,
    number: u64,
    refusals: u64,
) -> BTreeMap<String, Value> {
    let mut parameters = base.clone();
    let first = base.get(SEED).and_then(Value::as_u64).unwrap_or_default();
    parameters.insert(SEED.to_owned(), first.saturating_add(number).into());
    if let Some(temperature) = base.get("temperature").and_then(Value::as_f64) {
        let warmer = (temperature * 100.0).round() as u64 + 25 * refusals;
        let warmest = ((temperature * 100.0).round() as u64).max(100);
        parameters.insert(
            "temperature".to_owned(),
            (warmer.min(warmest) as f64 / 100.0).into(),
        );
    }
    parameters
}
