//! The usage of calls.

use crucible_llm::CostBasis;
use serde::Serialize;

/// The usage of calls. Values that the provider does not report are counted as unknown, not as zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CallUsage {
    /// Calls that were sent, failed ones included; retries do not count separately.
    pub calls: u64,
    /// Attempts: calls with their retries, each of which may have been charged. For the whole run they
    /// include attempts that were in flight when another call ended it.
    pub attempts: u64,
    /// Tokens of the prompts, as the providers report them.
    pub tokens_input: u64,
    /// Tokens of the answers, as the providers report them.
    pub tokens_output: u64,
    /// Calls without a token count.
    pub calls_without_tokens: u64,
    /// Cost in millionths of a US dollar.
    pub micro_dollars: u64,
    /// Calls without a known cost.
    pub calls_without_cost: u64,
    /// The basis of the cost: estimated if any part of it is; absent if no cost is known.
    pub cost_basis: Option<CostBasis>,
    /// Milliseconds. For a part: the sum over its calls; for the whole run: from the first call to the
    /// end.
    pub elapsed_ms: u64,
}
