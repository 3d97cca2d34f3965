//! The tokens and the cost of a phase, in words.

use crucible_llm::{CostBasis, dollars};

/// Tokens sent and received, as far as they are known; empty if neither is.
pub(crate) fn tokens(input: Option<u64>, output: Option<u64>) -> String {
    let told =
        |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string());
    match (input, output) {
        (None, None) => String::new(),
        (input, output) => format!("{} in, {} out", told(input), told(output)),
    }
}

/// The cost, and whether it is an estimate; empty if it is not known.
pub(crate) fn cost(micro_dollars: Option<u64>, basis: Option<CostBasis>) -> String {
    let Some(cost) = micro_dollars.map(dollars) else {
        return String::new();
    };
    match basis {
        Some(CostBasis::Estimated) => format!("{cost} (estimate)"),
        Some(CostBasis::Reported) | None => cost,
    }
}
