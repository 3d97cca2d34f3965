//! The receipt of model calls.
//!
//! Unknown fields are omitted. A reader treats a missing field as unknown and ignores fields that it does
//! not know. No field can contain a request, an answer or a key.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::budget::REPORTED_COST;
use crate::error::LlmError;
use crate::invocation::LlmResult;
use crate::price::ListedPrice;
use crate::select::FellBack;
use crate::strategy::ExecutionStrategy;

/// The `llm` block of a phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LlmReceipt {
    /// The provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model that answered, as the provider reports it; for a failed call, the requested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_used: Option<String>,
    /// Input tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_input: Option<u64>,
    /// Output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_output: Option<u64>,
    /// Whether the call timed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
    /// The time limit in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Whether the budget refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_exhausted: Option<bool>,
    /// The cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The error class of a failed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The cost of a call, and its basis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Millionths of a US dollar.
    pub micro_dollars: u64,
    /// The basis.
    pub basis: CostBasis,
    /// The date of the price that an estimate uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_date: Option<String>,
}

/// The basis of a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostBasis {
    /// The provider reported it.
    Reported,
    /// Estimated from a configured price and the tokens.
    Estimated,
}

/// A warning in a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptWarning {
    /// The kind of warning, such as `llm_fallback` or `llm_budget_exhausted`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The warning.
    pub message: String,
}

/// How the work was done; in every receipt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineReceipt {
    /// Who may act on a model's answer.
    pub execution_strategy: ExecutionStrategy,
}

impl LlmReceipt {
    /// Creates the receipt of an answered call.
    #[must_use]
    pub fn of_answer(result: &LlmResult, allowed: Duration, price: Option<&ListedPrice>) -> Self {
        Self {
            provider: Some(result.provider.clone()),
            model_used: Some(result.model_used.clone()),
            tokens_input: result.tokens_input,
            tokens_output: result.tokens_output,
            timed_out: result.timed_out,
            timeout_seconds: Some(allowed.as_secs()),
            budget_exhausted: Some(false),
            cost: cost(result, price),
            error: None,
        }
    }

    /// Creates the receipt of a failed call to this provider and model.
    #[must_use]
    pub fn of_failure(provider: &str, model: &str, error: &LlmError, allowed: Duration) -> Self {
        Self {
            provider: Some(provider.to_owned()),
            model_used: Some(model.to_owned()),
            timed_out: Some(matches!(error, LlmError::Timeout { .. })),
            timeout_seconds: Some(allowed.as_secs()),
            budget_exhausted: Some(matches!(error, LlmError::BudgetExceeded { .. })),
            error: Some(error.class().to_owned()),
            ..Self::default()
        }
    }
}

impl ReceiptWarning {
    /// The warning that a fallback is used.
    #[must_use]
    pub fn fallback(fell_back: &FellBack) -> Self {
        Self {
            kind: "llm_fallback".to_owned(),
            message: fell_back.warning(),
        }
    }

    /// The warning that the budget ended these calls, if it did.
    #[must_use]
    pub fn exhausted_budget(calls: &LlmReceipt) -> Option<Self> {
        (calls.budget_exhausted == Some(true)).then(|| Self {
            kind: "llm_budget_exhausted".to_owned(),
            message: "the budget is exhausted; `[llm.budget]` sets the limits".to_owned(),
        })
    }
}

fn cost(result: &LlmResult, price: Option<&ListedPrice>) -> Option<Cost> {
    if let Some(reported) = result
        .extensions
        .get(REPORTED_COST)
        .and_then(serde_json::Value::as_u64)
    {
        return Some(Cost {
            micro_dollars: reported,
            basis: CostBasis::Reported,
            price_date: None,
        });
    }
    let (listed, (input, output)) = price.zip(result.tokens())?;
    let micro_dollars = listed.price.cost(input, output)?;
    Some(Cost {
        micro_dollars,
        basis: CostBasis::Estimated,
        price_date: Some(listed.date.clone()),
    })
}
