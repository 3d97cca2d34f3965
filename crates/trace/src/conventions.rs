//! The names of attributes, pinned to one version of the semantic conventions.
//!
//! `gen_ai.*` is in development and changes between versions: 1.42 is the version whose names are used here. That version
//! moves `gen_ai.*` to conventions of their own without a schema address yet, so the address is that of 1.42. A test compares
//! the names with the registry of that version. Names that the conventions do not have begin with `crucible.`.

/// The schema that the names belong to.
pub(crate) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.42.0";

/// The name of the instrumentation scope, and the default of `service.name`.
pub(crate) const SCOPE: &str = "crucible";

pub(crate) const SERVICE_NAME: &str = "service.name";
pub(crate) const SERVICE_VERSION: &str = "service.version";
pub(crate) const ERROR_TYPE: &str = "error.type";

pub(crate) const OPERATION_NAME: &str = "gen_ai.operation.name";
pub(crate) const PROVIDER_NAME: &str = "gen_ai.provider.name";
pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const CONVERSATION_ID: &str = "gen_ai.conversation.id";
pub(crate) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(crate) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";

/// The values of [`OPERATION_NAME`].
pub(crate) const CHAT: &str = "chat";
pub(crate) const INVOKE_AGENT: &str = "invoke_agent";

/// The run.
pub(crate) const RUN_ID: &str = "crucible.run.id";
pub(crate) const RUN_STATE: &str = "crucible.run.state";
pub(crate) const RUN_OUTCOME: &str = "crucible.run.outcome";
pub(crate) const RUN_BASE_COMMIT: &str = "crucible.run.base_commit";
pub(crate) const RUN_COMMIT: &str = "crucible.run.commit";
pub(crate) const RUN_CALLS: &str = "crucible.run.calls";
pub(crate) const RUN_TOKENS: &str = "crucible.run.tokens";
/// What the run counts against its budget, in millionths of a US dollar: the costs and the reservations of all calls.
pub(crate) const RUN_COST: &str = "crucible.run.cost.micro_usd";
pub(crate) const RUN_GOAL: &str = "crucible.run.goal";
pub(crate) const RUN_REPOSITORY: &str = "crucible.run.repository";

/// What the ledger says about the record.
pub(crate) const CHAIN_IS_INTACT: &str = "crucible.ledger.is_intact";
pub(crate) const CHAIN_FIRST: &str = "crucible.ledger.first_event_hash";
pub(crate) const CHAIN_LAST: &str = "crucible.ledger.last_event_hash";

/// Whether a part has not ended.
pub(crate) const IS_OPEN: &str = "crucible.is_open";
/// Whether the times of a span are those of the part around it, because the ledger has none of its own.
pub(crate) const HAS_OUTER_TIMES: &str = "crucible.has_outer_times";

pub(crate) const STAGE: &str = "crucible.stage";
pub(crate) const PLAN: &str = "crucible.plan";

pub(crate) const ATTEMPT: &str = "crucible.attempt.number";
pub(crate) const ATTEMPT_ROUND: &str = "crucible.attempt.round";
pub(crate) const ATTEMPT_END: &str = "crucible.attempt.end";
pub(crate) const ATTEMPT_ADDED: &str = "crucible.attempt.lines_added";
pub(crate) const ATTEMPT_REMOVED: &str = "crucible.attempt.lines_removed";
pub(crate) const ATTEMPT_FILES: &str = "crucible.attempt.files";
pub(crate) const ATTEMPT_OUTPUT: &str = "crucible.attempt.output";

pub(crate) const FINDING: &str = "crucible.finding";
pub(crate) const FINDING_CODE: &str = "crucible.finding.code";
pub(crate) const FINDING_LEVEL: &str = "crucible.finding.level";
pub(crate) const FINDING_SUBJECT: &str = "crucible.finding.subject";
pub(crate) const FINDING_HINT: &str = "crucible.finding.hint";

pub(crate) const ROLE: &str = "crucible.role";
pub(crate) const CALL: &str = "crucible.call.number";
pub(crate) const CALL_ATTEMPT: &str = "crucible.call.attempt";
pub(crate) const CALL_REQUEST: &str = "crucible.call.request_digest";
/// The cost of a call in millionths of a US dollar, if known.
pub(crate) const CALL_COST: &str = "crucible.call.cost.micro_usd";
/// The reserved cost of a call whose cost is not known, in millionths of a US dollar.
pub(crate) const CALL_RESERVED: &str = "crucible.call.reserved.micro_usd";

pub(crate) const GATE: &str = "crucible.gate";
pub(crate) const GATE_IS_PASSED: &str = "crucible.gate.is_passed";
pub(crate) const GATE_ISOLATION: &str = "crucible.gate.isolation";
pub(crate) const GATE_FAILURES: &str = "crucible.gate.failures";
pub(crate) const GATE_SET_ASIDE: &str = "crucible.gate.is_set_aside";
pub(crate) const GATE_COMMAND: &str = "crucible.gate.command";
/// The number of tests of a gate by result; the result, with `_` for each space, is the end of the name.
pub(crate) const GATE_TESTS: &str = "crucible.gate.tests.";

/// What a gate said to a changed source that was broken on purpose.
pub(crate) const VARIANT: &str = "crucible.variant";
pub(crate) const VARIANT_OUTCOME: &str = "crucible.variant.outcome";
pub(crate) const VARIANT_FUNCTIONS: &str = "crucible.variant.functions";
pub(crate) const VARIANT_CONSTANTS: &str = "crucible.variant.constants";
pub(crate) const VARIANT_TRIED: &str = "crucible.variant.tried";
pub(crate) const VARIANT_NOTICED: &str = "crucible.variant.noticed";

#[cfg(test)]
mod tests {
    use opentelemetry_semantic_conventions as semconv;

    use super::*;

    #[test]
    #[expect(
        deprecated,
        reason = "1.42 marks gen_ai as moved to conventions of their own"
    )]
    fn names_are_those_of_the_pinned_version() {
        use semconv::attribute as names;
        assert_eq!(SCHEMA_URL, semconv::SCHEMA_URL);
        for (ours, other_text) in [
            (SERVICE_NAME, names::SERVICE_NAME),
            (SERVICE_VERSION, names::SERVICE_VERSION),
            (ERROR_TYPE, names::ERROR_TYPE),
            (OPERATION_NAME, names::GEN_AI_OPERATION_NAME),
            (PROVIDER_NAME, names::GEN_AI_PROVIDER_NAME),
            (REQUEST_MODEL, names::GEN_AI_REQUEST_MODEL),
            (RESPONSE_MODEL, names::GEN_AI_RESPONSE_MODEL),
            (INPUT_TOKENS, names::GEN_AI_USAGE_INPUT_TOKENS),
            (OUTPUT_TOKENS, names::GEN_AI_USAGE_OUTPUT_TOKENS),
            (CONVERSATION_ID, names::GEN_AI_CONVERSATION_ID),
            (AGENT_NAME, names::GEN_AI_AGENT_NAME),
            (OUTPUT_MESSAGES, names::GEN_AI_OUTPUT_MESSAGES),
        ] {
            assert_eq!(ours, other_text);
        }
    }
}
