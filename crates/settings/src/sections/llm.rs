//! `[llm]`, `[llm.budget]` and `[llm.prices.NAME]`: who answers, within which limits, at what price.

use crate::declare::section;
use crate::sections::providers::PROVIDERS;

section! {
    ["llm"] LlmSection {
        /// Which provider answers: claude-cli, gemini-cli, codex-cli, anthropic, openai, openrouter, gateway or replay. There is no
        /// default: say whom you ask.
        provider: Text = "", one_of(PROVIDERS);
        /// The provider to use where that one cannot be made ready: its program or its key is missing. Empty: none. A provider that
        /// fails while it works is never replaced.
        fallback_provider: Text = "", one_of(PROVIDERS);
        /// "controlled": models propose text, Crucible does the rest. Nothing else is supported.
        execution_strategy: Text = "controlled", second_variable("CRUCIBLE_EXECUTION_STRATEGY"), one_of(&["controlled"]);
        /// Seconds one call may take, its retries included.
        timeout_s: u64 = 300;
        /// Seconds that any call of a client program, and any request over HTTP, gets at the most.
        max_cli_timeout_s: u64 = 600, lower;
        max_http_timeout_s: u64 = 300, lower;
    }
}

section! {
    ["llm.budget"] BudgetSection {
        /// Calls one run may make; a failed call counts. Variable: CRUCIBLE_OPENROUTER_BUDGET.
        calls: u64 = 20, lower, variable("CRUCIBLE_OPENROUTER_BUDGET"), second_variable("CRUCIBLE_LLM_BUDGET_CALLS");
        /// Tokens one run may use, requests and answers together; 0: no limit.
        tokens: u64 = 0, lower, zero_is_unlimited;
        /// US dollars one run may cost; 0: no limit. With a limit, a model without a price in the table below is refused.
        dollars: f64 = 0.0, lower, zero_is_unlimited;
    }
}

section! {
    /// What models cost, by "provider/model", for example [llm.prices."openai/gpt-x"]; a name that ends in * stands for all that
    /// begin so. No price is built in, for they change: say what you pay, where it stands and when you looked. (user)
    ["llm.prices.*"] PriceEntry {
        /// US dollars for a million tokens of requests, and of answers.
        input: f64 = -1.0, user;
        output: f64 = -1.0, user;
        /// The day you looked, as YYYY-MM-DD, and where.
        date: Text = "", user;
        source: Text = "", user;
    }
}
