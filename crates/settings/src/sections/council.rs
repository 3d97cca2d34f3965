//! `[council]`: the council of `crucible ask` and `crucible chat`.

use crate::declare::section;
use crate::sections::providers::PROVIDERS;

section! {
    /// The council of `crucible ask` and `crucible chat`. Tokens, money and the time for each call are limited under [llm].
    ["council"] CouncilSection {
        /// Who answers every call: a provider as above. Empty: llm.provider.
        provider: Text = "", one_of(PROVIDERS);
        /// The model that configures the council, empty: as for every other call; and the one of every other call, empty: the provider's
        /// own. [phases.council-seat] and the like can name a profile for a part, which comes before default_model there: council-triage,
        /// council-direct, council-seat, council-red-team, council-judge, council-synthesis. Where openrouter answers and no
        /// model is named here or by llm.openrouter.model: anthropic/claude-sonnet-4-20250514 configures the council, openrouter/auto
        /// answers, and the triage may choose any model for a seat.
        triage_model: Text = "";
        default_model: Text = "", flag("--model");
        /// Models that OpenRouter may ask where the one named cannot answer, in this order. (user)
        fallback_models: List = [], user, flag("--fallback-model");
        /// Models that the triage may choose for a seat; "*" allows any. A choice outside of them is not followed, and that is said. (user)
        hinted_models: List = [], user, flag("--hint-model");
        /// Calls that one question may take, retries included.
        calls: u64 = 64, lower, flag("--max-calls");
        /// What decides whether a loop changed anything: "judge" asks the model; "similarity" compares the words; "never" asks nobody, and
        /// all loops run.
        delta: DeltaRule = "judge";
        /// With "similarity": a position that resembles its earlier one this much did not change, from 0 (nothing in common) to 1 (the
        /// same words).
        similarity: f64 = 0.9;
        /// Bytes of a question, of what --context tells the triage, and of one answer; a longer answer counts as none.
        max_query_bytes: u64 = 200_000, lower;
        max_context_bytes: u64 = 65_536, lower;
        max_answer_bytes: u64 = 262_144, lower;
        /// Characters of the deliberation that whoever writes the answer is shown.
        summary_chars: u64 = 60_000, lower;
    }
}
