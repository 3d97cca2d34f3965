//! A council of models that serves a role.

use std::collections::BTreeMap;

use crucible_llm::LlmResult;
use serde_json::Value;

use super::service::{CallHints, RoleService, ServiceReport};
use crate::contract::{COUNCIL, RunSettings};

/// A council: called like a model, and reports the cost and failures of its deliberation.
pub(super) struct CouncilService;

impl RoleService for CouncilService {
    fn metadata(&self, _: &RunSettings, call: &CallHints<'_>) -> BTreeMap<String, Value> {
        call.seed()
    }

    fn report(&self, result: &LlmResult) -> Option<ServiceReport> {
        let report = result.extensions.get(COUNCIL)?.clone();
        let warnings = report.get("warnings").and_then(Value::as_array);
        let warnings = warnings.into_iter().flatten().filter_map(Value::as_str);
        let mut notes: Vec<String> = warnings
            .map(|warning| format!("  warning: council: {warning}"))
            .collect();
        if let Some(summary) = report.get("summary").and_then(Value::as_str) {
            notes.push(format!("  the council used {summary}"));
        }
        Some(ServiceReport {
            field: (COUNCIL, report),
            notes,
        })
    }
}
