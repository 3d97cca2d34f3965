//! `[council]`: the council of `crucible ask` and `crucible chat`.

use crate::declare::section;
use crate::sections::providers::PROVIDERS;

section! {
    /// The council of `crucible ask` and `crucible chat`. Tokens, money and the time of each call are limited under `[llm]`.
    ["council"] CouncilSection {
        /// The provider that answers every call. Empty: `llm.provider`.
        provider: Text = "", one_of(PROVIDERS);
        /// The model that configures the council. Empty: `council.default_model`. With openrouter, and no model set here or in
        /// `llm.openrouter.model`: anthropic/claude-sonnet-4-20250514.
        triage_model: Text = "";
        /// The model of every other call. Empty: the provider's own. A profile of `[phases.council-triage]`, `council-direct`,
        /// `council-seat`, `council-red-team`, `council-judge` or `council-synthesis` comes before it. With openrouter, and no
        /// model set here or in `llm.openrouter.model`: openrouter/auto, and the triage may choose any model for a seat.
        default_model: Text = "", flag("--model");
        /// Models that OpenRouter may ask if the named one cannot answer, in this order.
        fallback_models: List = [], user, flag("--fallback-model");
        /// Models that the triage may choose for a seat; "*" allows any. Any other choice is ignored with a warning.
        hinted_models: List = [], user, flag("--hint-model");
        /// Calls that a question may take, retries included.
        calls: u64 = 64, lower, flag("--max-calls");
        /// What decides whether a loop changed anything: "judge" asks the model, "similarity" compares the words, "never" runs
        /// all loops.
        delta: DeltaRule = "judge";
        /// With "similarity": a position this similar to its earlier one did not change, from 0 (nothing in common) to 1 (the
        /// same words).
        similarity: f64 = 0.9;
        /// The most bytes of a question.
        max_query_bytes: u64 = 200_000, lower;
        /// The most bytes of what `--context` gives the triage.
        max_context_bytes: u64 = 65_536, lower;
        /// The most bytes of an answer. A longer one counts as no answer.
        max_answer_bytes: u64 = 262_144, lower;
        /// Characters of the deliberation that are shown to the call that writes the answer.
        summary_chars: u64 = 60_000, lower;
    }
}
