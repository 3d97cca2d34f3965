//! `[llm]`, `[llm.budget]` and `[llm.prices.NAME]`: who answers, within which limits, at what price.

use crate::declare::section;
use crate::sections::providers::PROVIDERS;

section! {
    /// Which provider answers, and how long it may take.
    ["llm"] LlmSection {
        /// The provider that answers. There is no default.
        provider: Text = "", one_of(PROVIDERS);
        /// The provider to use if that one is not ready because its program or its key is missing. Empty: none. A provider
        /// that fails while it works is never replaced.
        fallback_provider: Text = "", one_of(PROVIDERS);
        /// "controlled": models propose text, and Crucible does the rest. No other strategy is supported.
        execution_strategy: Text = "controlled", one_of(&["controlled"]), second_variable("CRUCIBLE_EXECUTION_STRATEGY");
        /// Seconds a call may take, with its retries.
        timeout_s: u64 = 300;
        /// The most seconds for any call of a client program.
        max_cli_timeout_s: u64 = 600, lower;
        /// The most seconds for any HTTP request.
        max_http_timeout_s: u64 = 300, lower;
    }
}

section! {
    /// The limits of a run.
    ["llm.budget"] BudgetSection {
        /// Calls a run may make, at least 1. A failed call counts, and so does a person's answer.
        calls: u64 = 20, lower, variable("CRUCIBLE_OPENROUTER_BUDGET"), second_variable("CRUCIBLE_LLM_BUDGET_CALLS");
        /// Tokens a run may use, requests and answers together. 0: no limit.
        tokens: u64 = 0, lower, zero_is_unlimited;
        /// US dollars a run may cost. 0: no limit. With a limit, a model without a price in `[llm.prices]` is refused.
        dollars: f64 = 0.0, lower, zero_is_unlimited;
    }
}

section! {
    /// What models cost, by "provider/model", such as `[llm.prices."openai/gpt-x"]`. A name that ends in `*` stands for all
    /// models whose names begin so. No price is built in, because prices change.
    ["llm.prices.*"] PriceEntry {
        /// US dollars for a million tokens of requests.
        input: f64 = -1.0, user;
        /// US dollars for a million tokens of answers.
        output: f64 = -1.0, user;
        /// The day you looked the price up, as YYYY-MM-DD.
        date: Text = "", user;
        /// Where you looked the price up.
        source: Text = "", user;
    }
}
