//! Tokens and cost in words.

use crate::price::dollars;
use crate::receipt::CostBasis;

/// Tokens sent and received, as far as they are known; empty if neither is.
#[must_use]
pub fn tokens_in_words(input: Option<u64>, output: Option<u64>) -> String {
    let known =
        |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string());
    match (input, output) {
        (None, None) => String::new(),
        (input, output) => format!("{} in, {} out", known(input), known(output)),
    }
}

/// The cost, and whether it is an estimate; empty if it is not known.
#[must_use]
pub fn cost_in_words(micro_dollars: Option<u64>, basis: Option<CostBasis>) -> String {
    let Some(cost) = micro_dollars.map(dollars) else {
        return String::new();
    };
    match basis {
        Some(CostBasis::Estimated) => format!("{cost} (estimate)"),
        Some(CostBasis::Reported) | None => cost,
    }
}
