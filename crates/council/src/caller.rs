//! The only place that calls a model: transport, independent of the content.
//!
//! Invariants: each call is bounded in time and bytes. All calls of a run share one budget. Usage is
//! counted for failed calls too. Dropping a call's future ends the call. Retries use only what the run
//! can spare, so that one failing part does not use up the calls of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crucible_llm::{
    AnswerFault, CallBudget, CallError, ClientOptions, Cost, CostBasis, Fault, Finish, Limit,
    LlmError, LlmInvocation, LlmResult, Message, ModelClient, Origin, Price, RetryAllowance,
    RetryPolicy, StructuredOutput,
};
use crucible_model::{Untrusted, says_nothing, short_line};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::config::{CouncilLimits, EngineConfig};
use crate::context::TriageContext;
use crate::degradation::{Degradation, DegradationKind, Part, hint_refused};
use crate::error::CouncilError;
use crate::seat::CouncilRole;
use crate::usage::CallUsage;

/// The spec id under which calls of a council are recorded.
const SPEC: &str = "council";

/// The phase of the triage's call.
pub(crate) const PHASE_OF_TRIAGE: &str = "council-triage";

/// The phases of all calls of a council: triage, direct answer, seat, red team, judge and synthesis.
pub(crate) const PHASES: [&str; 6] = [
    PHASE_OF_TRIAGE,
    "council-direct",
    "council-seat",
    "council-red-team",
    "council-judge",
    "council-synthesis",
];

/// The most characters kept of a provider's finish reason.
const MAX_REASON_LEN: usize = 64;

/// A request to a model.
pub(crate) struct CallRequest {
    /// The part of the run that makes the call.
    pub(crate) part: Part,
    /// The loop, if any.
    pub(crate) loop_number: Option<u32>,
    /// The model; empty selects the default.
    pub(crate) model: String,
    /// The conversation.
    pub(crate) messages: Vec<Message>,
    /// The JSON Schema of the answer, with its name, for backends that support one.
    pub(crate) schema: Option<(&'static str, Value)>,
}

/// A model's answer.
pub(crate) struct CallAnswer {
    pub(crate) text: Untrusted,
    /// The model that answered, as the provider reports it.
    pub(crate) model: String,
    /// How the answer ended.
    pub(crate) ending: Ending,
    pub(crate) usage: CallUsage,
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The model finished its answer, as far as is known.
    Whole,
    /// A token limit or a provider filter cut it off. Says which, with the provider's own reason.
    TruncatedAnswer(String),
    /// Another reason, in the provider's words.
    Other(String),
}

impl Ending {
    fn from_answer(answer: &LlmResult) -> Self {
        let stated = answer
            .extensions
            .get(LlmResult::FINISH_REASON)
            .and_then(Value::as_str);
        let stated = short_line(stated.unwrap_or_default(), MAX_REASON_LEN);
        match answer.finish() {
            Finish::Complete | Finish::Unknown => Self::Whole,
            Finish::Truncated => Self::TruncatedAnswer(format!(
                "by its token limit or a provider filter (`{stated}`)"
            )),
            Finish::Other(_) => Self::Other(format!("the provider's reason is `{stated}`")),
        }
    }
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallFailure {
    /// No further call can succeed: the budget is exhausted, the question contains a secret, or the
    /// record cannot be written.
    #[error("{0}")]
    Final(CallError),
    /// This call failed; another may succeed.
    #[error("{0}")]
    Call(CallError),
    /// The answer exceeds the size limit.
    #[error("the answer has {bytes} bytes; the limit is {limit}")]
    TooLong { bytes: usize, limit: usize },
}

impl CallFailure {
    /// Converts this into the error of a run that cannot continue without this part, in this loop if it
    /// belongs to one.
    pub(crate) fn fatal(self, part: Part, loop_number: Option<u32>) -> CouncilError {
        match self {
            Self::Final(source) | Self::Call(source) => CouncilError::Call {
                part,
                loop_number,
                source,
            },
            Self::TooLong { bytes, limit } => CouncilError::AnswerTooLong {
                part,
                loop_number,
                bytes,
                limit,
            },
        }
    }
}

impl From<CallError> for CallFailure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Secret(_)
            | CallError::Record(_)
            | CallError::Llm(LlmError::BudgetExceeded { .. }) => Self::Final(error),
            CallError::Llm(_) => Self::Call(error),
        }
    }
}

/// Calls models on behalf of one run.
pub(crate) struct Caller<'e> {
    config: &'e EngineConfig,
    client: ModelClient,
    budget: Arc<CallBudget>,
    /// The retries that all calls of the run share.
    retries: RetryAllowance,
    begun: Instant,
    /// Locked only briefly, never during a model call.
    tally: Mutex<Tally>,
}

/// The usage and the degradations of a run so far.
#[derive(Default)]
struct Tally {
    whole: CallUsage,
    by_part: BTreeMap<Part, CallUsage>,
    degradations: Vec<Degradation>,
    /// The parts whose model, named by the triage, is unknown to the provider.
    misnamed: BTreeSet<Part>,
}

impl<'e> Caller<'e> {
    /// Wraps the backend for one run, with the council's retries and its own budget.
    pub(crate) fn new(config: &'e EngineConfig) -> Self {
        let budget = CallBudget::new(config.limits.budget);
        let retries = RetryAllowance::unlimited();
        // Before the triage, the cost of the rest is unknown; at least one call follows.
        retries.set(slack(config.limits.budget.calls, 2));
        let options = ClientOptions {
            retries: retries.clone(),
            recording: config.recording.clone(),
            retry: RetryPolicy::COUNCIL,
            prices: Arc::clone(&config.prices),
            ..ClientOptions::new(Arc::clone(&budget))
        };
        let client = ModelClient::new(config.backend.clone(), options);
        Self {
            config,
            client,
            budget,
            retries,
            begun: Instant::now(),
            tally: Mutex::default(),
        }
    }

    pub(crate) fn limits(&self) -> &'e CouncilLimits {
        &self.config.limits
    }

    pub(crate) fn config(&self) -> &'e EngineConfig {
        self.config
    }

    /// Makes one call, plus transport retries. If the provider does not know the model that the triage
    /// named, this part uses the default model from then on.
    pub(crate) async fn ask(&self, ask: CallRequest) -> Result<CallAnswer, CallFailure> {
        if ask.model.is_empty() || self.tally().misnamed.contains(&ask.part) {
            return self
                .ask_one(CallRequest {
                    model: String::new(),
                    ..ask
                })
                .await;
        }
        let CallRequest {
            part,
            loop_number,
            ref model,
            ref messages,
            ref schema,
        } = ask;
        let (named, messages, schema) = (model.clone(), messages.clone(), schema.clone());
        match self.ask_one(ask).await {
            Err(CallFailure::Call(CallError::Llm(error)))
                if is_misnamed(&error) && self.retries.take() =>
            {
                self.tally().misnamed.insert(part);
                self.note(hint_refused(
                    part,
                    &named,
                    "which the provider does not know",
                ));
                self.ask_one(CallRequest {
                    part,
                    loop_number,
                    model: String::new(),
                    messages,
                    schema,
                })
                .await
            }
            outcome => outcome,
        }
    }

    /// Calls one model once, plus transport retries.
    async fn ask_one(&self, ask: CallRequest) -> Result<CallAnswer, CallFailure> {
        let CallRequest {
            part,
            loop_number,
            model,
            messages,
            schema,
        } = ask;
        let is_read_as_json = schema.is_some();
        let phase = phase(part);
        let model = self.model(part, model, phase);
        let timeout = self.limits().call_timeout;
        let inv = LlmInvocation {
            spec_id: SPEC.to_owned(),
            phase_id: phase.to_owned(),
            metadata: self.hints(&model, schema),
            model,
            timeout,
            messages,
        };
        let models = self.client.may_answer(&inv);
        let begun = Instant::now();
        let (outcome, attempts) = self.client.call_counted(inv).await;
        let elapsed = begun.elapsed();
        let mut answer = match outcome {
            Ok(answer) => answer,
            Err(error) => {
                if attempts > 0 {
                    self.count(part, failed(attempts, elapsed));
                }
                return Err(error.into());
            }
        };
        let cost = self.client.receipt(&answer, &models, timeout).cost;
        let usage = answered_usage(&answer, attempts, cost, elapsed);
        self.count(part, usage);
        let note = |kind, detail| {
            self.note(Degradation {
                loop_number,
                part,
                kind,
                detail,
            })
        };
        if ignored_fallbacks(&answer) {
            self.note_ignored_fallbacks(part, loop_number);
        }
        let (bytes, limit) = (answer.raw_response.len(), self.limits().answer_bytes);
        if bytes > limit {
            return Err(CallFailure::TooLong { bytes, limit });
        }
        if says_nothing(&answer.raw_response) {
            return Err(CallFailure::Call(wordless(answer).into()));
        }
        let mut count = answer
            .extensions
            .get(LlmResult::REDACTIONS)
            .and_then(Value::as_u64)
            .unwrap_or_default();
        if is_read_as_json {
            let (clean, hidden) = self.client.redact_json(&answer.raw_response);
            answer.raw_response = clean.into_owned();
            count = count.saturating_add(hidden);
        }
        if count > 0 {
            let secrets = crucible_model::counted(count, "secret");
            note(
                DegradationKind::AnswerRedacted,
                format!("{secrets} removed from the answer"),
            );
        }
        let ending = Ending::from_answer(&answer);
        match &ending {
            Ending::Whole => {}
            // A cut-off triage is an error of its own.
            Ending::TruncatedAnswer(_) if part == Part::Triage => {}
            Ending::TruncatedAnswer(why) => {
                note(
                    DegradationKind::AnswerCutShort,
                    format!("the answer was cut off after {bytes} bytes {why}"),
                );
            }
            Ending::Other(why) => {
                note(
                    DegradationKind::AnswerCutShort,
                    format!("the answer ends after {bytes} bytes; {why}"),
                );
            }
        }
        Ok(CallAnswer {
            text: Untrusted::new(answer.raw_response),
            model: answer.model_used,
            ending,
            usage,
        })
    }

    /// Fails if the question or its context contains a secret. Each text is scanned in its original form,
    /// so that the line numbers match; some texts are sent in another form.
    pub(crate) fn refuse_secrets(
        &self,
        query: &str,
        context: &TriageContext,
    ) -> Result<(), CouncilError> {
        let scanned = self.client.refuse_secrets(&Value::from(query));
        scanned.map_err(|found| CouncilError::SecretInQuery {
            rule: found.rule,
            line: found.line,
        })?;
        context.entries().try_for_each(|(key, value)| {
            let scanned = self.client.refuse_secrets(&Value::from(key));
            let scanned = scanned.and_then(|()| self.client.refuse_secrets(value));
            scanned.map_err(|found| CouncilError::SecretInContext {
                rule: found.rule,
                line: found.line,
            })
        })
    }

    /// Fails if the budget does not cover `needed` more calls, the worst case of the rest of the run. The
    /// surplus is for retries.
    pub(crate) fn check_budget(&self, needed: u64) -> Result<(), CouncilError> {
        let Limit::At(limit) = self.budget.limits().calls else {
            return Ok(());
        };
        // A budget of this process can always be read.
        let used = self.budget.used().unwrap_or_default().calls;
        let left = limit.saturating_sub(used);
        if needed > left {
            return Err(CouncilError::BudgetTooSmall {
                needed,
                remaining_calls: left,
                limit,
            });
        }
        self.retries.set(slack(Limit::At(left), needed));
        Ok(())
    }

    /// Whether a call of this model can be paid. Under a cost limit, a model without a price is never
    /// called.
    pub(crate) fn has_price(&self, model: &str) -> bool {
        self.budget.limits().micro_dollars == Limit::Unlimited
            || self.client.origin() == Origin::Recording
            || self.config.prices.price(self.client.provider(), model) != Price::Unknown
    }

    /// Records a degradation.
    pub(crate) fn note(&self, degradation: Degradation) {
        self.tally().degradations.push(degradation);
    }

    /// The degradations in a deterministic order, independent of which call finished first.
    pub(crate) fn degradations(&self) -> Vec<Degradation> {
        let mut noted = self.tally().degradations.clone();
        Degradation::sort(&mut noted);
        noted
    }

    /// The usage of all calls so far.
    pub(crate) fn usage(&self) -> CallUsage {
        let full_call_usage = self.tally().whole;
        // An attempt that was in flight when another call ended the run is counted for no part.
        let attempts = self.budget.used().map_or(full_call_usage.attempts, |used| {
            used.calls.max(full_call_usage.attempts)
        });
        CallUsage {
            attempts,
            elapsed_ms: milliseconds(self.begun.elapsed()),
            ..full_call_usage
        }
    }

    /// The usage of each part so far.
    pub(crate) fn usage_by_part(&self) -> BTreeMap<Part, CallUsage> {
        self.tally().by_part.clone()
    }

    /// The model of a part: the named one, the configured one, or the backend's own for the phase.
    fn model(&self, part: Part, named: String, phase: &str) -> String {
        let configured = match part {
            Part::Triage if !self.config.triage_model.is_empty() => &self.config.triage_model,
            _ => &self.config.default_model,
        };
        let model = if named.is_empty() {
            configured.clone()
        } else {
            named
        };
        if model.is_empty() {
            self.client.model_for(phase).to_owned()
        } else {
            model
        }
    }

    /// The answer schema, if the backend supports it, and the fallback models.
    fn hints(&self, model: &str, schema: Option<(&'static str, Value)>) -> BTreeMap<String, Value> {
        let form = schema.and_then(|(name, schema)| match self.client.capabilities().structured_output {
            StructuredOutput::JsonSchema => Some(json!({
                "type": "json_schema", "json_schema": {"name": name, "strict": true, "schema": schema},
            })),
            StructuredOutput::JsonMode => Some(json!({"type": "json_object"})),
            StructuredOutput::None => None,
        });
        let others: Vec<&String> = self
            .config
            .fallback_models
            .iter()
            .filter(|other| other.as_str() != model)
            .collect();
        let form = form.map(|form| ("response_format".to_owned(), form));
        let others = (!others.is_empty())
            .then(|| (LlmInvocation::FALLBACK_MODELS.to_owned(), json!(others)));
        form.into_iter().chain(others).collect()
    }

    fn count(&self, part: Part, usage: CallUsage) {
        let mut tally = self.tally();
        tally.whole = sum(tally.whole, usage);
        let of_part = tally.by_part.entry(part).or_default();
        *of_part = sum(*of_part, usage);
    }

    /// Noted once per run: every later call would repeat it.
    fn note_ignored_fallbacks(&self, part: Part, loop_number: Option<u32>) {
        let mut tally = self.tally();
        let kind = DegradationKind::FallbackIgnored;
        if tally
            .degradations
            .iter()
            .all(|degradation| degradation.kind != kind)
        {
            let provider = self.client.provider();
            let detail = format!(
                "{provider} does not support fallback models; only the first model of each list was used"
            );
            tally.degradations.push(Degradation {
                loop_number,
                part,
                kind,
                detail,
            });
        }
    }

    /// Every change leaves the tally consistent, so a panic elsewhere does not corrupt it.
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The phase under which a part's calls are made.
fn phase(part: Part) -> &'static str {
    let [triage, direct, a_seat, red_team, judge, synthesis] = PHASES;
    match part {
        Part::Triage => triage,
        Part::DirectAnswer => direct,
        Part::Seat(seat) if seat.role() == CouncilRole::RedTeam => red_team,
        Part::Seat(_) => a_seat,
        Part::Judge => judge,
        Part::Synthesis => synthesis,
    }
}

fn ignored_fallbacks(answer: &LlmResult) -> bool {
    let ignored = answer
        .extensions
        .get(LlmResult::IGNORED_METADATA)
        .and_then(Value::as_array);
    ignored.is_some_and(|ignored| {
        ignored
            .iter()
            .any(|name| name == LlmInvocation::FALLBACK_MODELS)
    })
}

/// The error for an answer without readable text.
fn wordless(answer: LlmResult) -> LlmError {
    let (what, next) = (
        "the answer contains no text",
        "try again or choose another model",
    );
    let fault = Fault::new(answer.provider, answer.model_used, what, next);
    LlmError::ProviderOutage(Box::new(Fault {
        answer: Some(AnswerFault::Empty),
        ..*fault
    }))
}

/// Whether an error says that the model does not exist.
fn is_misnamed(error: &LlmError) -> bool {
    matches!(error, LlmError::Misconfiguration(fault) if fault.status == Some(404))
}

/// The calls that a budget can spare when `needed` are required.
fn slack(limit: Limit, needed: u64) -> Limit {
    match limit {
        Limit::Unlimited => Limit::Unlimited,
        Limit::At(limit) => Limit::At(limit.saturating_sub(needed)),
    }
}

/// The usage of a failed call, whose tokens and cost are unknown.
fn failed(attempts: u64, elapsed: Duration) -> CallUsage {
    CallUsage {
        calls: 1,
        attempts,
        calls_without_tokens: 1,
        calls_without_cost: 1,
        elapsed_ms: milliseconds(elapsed),
        ..CallUsage::default()
    }
}

fn answered_usage(
    answer: &LlmResult,
    attempts: u64,
    cost: Option<Cost>,
    elapsed: Duration,
) -> CallUsage {
    CallUsage {
        calls: 1,
        attempts,
        tokens_input: answer.tokens_input.unwrap_or_default(),
        tokens_output: answer.tokens_output.unwrap_or_default(),
        calls_without_tokens: u64::from(answer.tokens().is_none()),
        micro_dollars: cost.as_ref().map_or(0, |cost| cost.micro_dollars),
        calls_without_cost: u64::from(cost.is_none()),
        cost_basis: cost.map(|cost| cost.basis),
        elapsed_ms: milliseconds(elapsed),
    }
}

/// Adds two usages. If either is an estimate, so is the sum. Times are added.
fn sum(one: CallUsage, other: CallUsage) -> CallUsage {
    let cost_basis = match (one.cost_basis, other.cost_basis) {
        (Some(CostBasis::Estimated), _) | (_, Some(CostBasis::Estimated)) => {
            Some(CostBasis::Estimated)
        }
        (Some(CostBasis::Reported), _) | (_, Some(CostBasis::Reported)) => {
            Some(CostBasis::Reported)
        }
        (None, None) => None,
    };
    CallUsage {
        calls: one.calls.saturating_add(other.calls),
        attempts: one.attempts.saturating_add(other.attempts),
        tokens_input: one.tokens_input.saturating_add(other.tokens_input),
        tokens_output: one.tokens_output.saturating_add(other.tokens_output),
        calls_without_tokens: one
            .calls_without_tokens
            .saturating_add(other.calls_without_tokens),
        micro_dollars: one.micro_dollars.saturating_add(other.micro_dollars),
        calls_without_cost: one
            .calls_without_cost
            .saturating_add(other.calls_without_cost),
        cost_basis,
        elapsed_ms: one.elapsed_ms.saturating_add(other.elapsed_ms),
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use crucible_llm::{
        Backend, BackendParts, BudgetLimits, CallObserver, Capabilities, ClientExtra, Context,
        ListedPrice, Origin, Price, PriceTable, ProviderSettings, SecretInRequest, SecretPlace,
        Speaker, construct,
    };
    use crucible_model::{EditFormat, PromptBuilder, Secret};
    use crucible_testkit::{FakeApi, Reply};

    use super::*;
    use crate::seat::SeatId;

    /// A backend of this provider that talks to a test server.
    fn provider(name: &str, server: &FakeApi) -> Backend {
        let text = |text: &str| Some(text.to_owned());
        let settings = ProviderSettings {
            base_url: Some(server.base_url()),
            api_key_env: text("KEY"),
            model: text("own-model"),
            max_tokens: Some(1000),
            referer: text("https://program.invalid/"),
            title: text("program"),
            ..ProviderSettings::default()
        };
        let key = ("KEY".to_owned(), Secret::new("k".to_owned()));
        construct(name, &settings, &Context::http_only([key]).unwrap()).unwrap()
    }

    fn gateway(server: &FakeApi) -> EngineConfig {
        EngineConfig::with_backend(provider("gateway", server))
    }

    fn reply(text: &str) -> Reply {
        Reply::Answer(text.to_owned())
    }

    fn ask(part: Part) -> CallRequest {
        let messages = vec![Message::user(
            PromptBuilder::new().fixed_text("Why?").build(),
        )];
        CallRequest {
            part,
            loop_number: Some(1),
            model: String::new(),
            messages,
            schema: None,
        }
    }

    fn seat() -> Part {
        Part::Seat(SeatId::of_roles([CouncilRole::Pragmatist])[0])
    }

    /// A text that looks like a GitHub token, assembled here so that scanners do not report this file.
    fn token() -> String {
        ["ghp", "_", "x7Kq2mWv9ZpL4nRt8sYb", "3cHd6fJg1aQe5uT0"].concat()
    }

    fn degradations(caller: &Caller<'_>) -> Vec<DegradationKind> {
        caller
            .degradations()
            .into_iter()
            .map(|degradation| degradation.kind)
            .collect()
    }

    #[test]
    fn ask_is_send() {
        fn sendable<T: Send>(_: T) {}
        let server = FakeApi::start([reply("fine")]);
        let config = gateway(&server);
        sendable(Caller::new(&config).ask(ask(Part::Judge)));
    }

    #[tokio::test]
    async fn model_falls_back_in_order() {
        let server = FakeApi::start([reply("fine")]);
        let cases = [
            (("hinted", "triage", "default"), "hinted", "hinted"),
            (("", "triage", "default"), "triage", "default"),
            (("", "", "default"), "default", "default"),
            (("", "triage", ""), "triage", "own-model"),
            (("", "", ""), "own-model", "own-model"),
        ];
        for ((named, triage, default), of_triage, of_others) in cases {
            let config = EngineConfig {
                triage_model: triage.to_owned(),
                default_model: default.to_owned(),
                ..gateway(&server)
            };
            let caller = Caller::new(&config);
            for (part, model) in [
                (Part::Triage, of_triage),
                (Part::DirectAnswer, of_others),
                (seat(), of_others),
                (Part::Judge, of_others),
                (Part::Synthesis, of_others),
            ] {
                assert!(
                    caller
                        .ask(CallRequest {
                            model: named.to_owned(),
                            ..ask(part)
                        })
                        .await
                        .is_ok()
                );
                assert_eq!(
                    server.requests().last().unwrap().body["model"],
                    model,
                    "{part}"
                );
            }
        }
    }

    /// Records the phase of each call.
    #[derive(Default)]
    struct Phases(Mutex<Vec<String>>);

    impl CallObserver for Phases {
        fn call_started(&self, phase_id: &str) {
            self.0.lock().unwrap().push(phase_id.to_owned());
        }

        fn call_ended(&self, _phase_id: &str) {}
    }

    #[tokio::test]
    async fn each_part_has_its_phase_and_model() {
        let server = FakeApi::start([reply("fine")]);
        let phases = Arc::new(Phases::default());
        let models = BTreeMap::from([("council-red-team".to_owned(), "red-model".to_owned())]);
        let backend = provider("gateway", &server)
            .with_phase_models(models)
            .watched(phases.clone());
        let config = EngineConfig::with_backend(backend);
        let caller = Caller::new(&config);
        let red_team = Part::Seat(SeatId::of_roles([CouncilRole::RedTeam])[0]);
        for part in [
            Part::Triage,
            Part::DirectAnswer,
            seat(),
            red_team,
            Part::Judge,
            Part::Synthesis,
        ] {
            assert!(caller.ask(ask(part)).await.is_ok());
        }
        let expected = ["triage", "direct", "seat", "red-team", "judge", "synthesis"]
            .map(|part| format!("council-{part}"));
        assert_eq!(*phases.0.lock().unwrap(), expected);
        let requests: Vec<Value> = server
            .requests()
            .iter()
            .map(|request| request.body["model"].clone())
            .collect();
        assert_eq!(
            requests,
            [
                "own-model",
                "own-model",
                "own-model",
                "red-model",
                "own-model",
                "own-model"
            ]
        );
    }

    #[tokio::test]
    async fn schema_is_sent_only_if_supported() {
        let schema = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
        for (structured_output, sent) in [
            (
                StructuredOutput::JsonSchema,
                json!({"type": "json_schema", "json_schema": {"name": "triage", "strict": true, "schema": schema}}),
            ),
            (StructuredOutput::JsonMode, json!({"type": "json_object"})),
            (StructuredOutput::None, Value::Null),
        ] {
            let server = FakeApi::start([reply("{}")]);
            let inner = provider("gateway", &server);
            let backend = Backend::new(BackendParts {
                provider: "gateway",
                default_model: "own-model".to_owned(),
                max_output_tokens: 1000,
                extra: ClientExtra::NONE,
                capabilities: Capabilities {
                    edit_format: EditFormat::WholeFile,
                    structured_output,
                },
                speaker: Speaker {
                    provider: "gateway".to_owned(),
                    model: "own-model".to_owned(),
                },
                origin: Origin::Live,
                parameters: BTreeMap::new(),
                inner: Box::new(inner),
            });
            let config = EngineConfig::with_backend(backend);
            let caller = Caller::new(&config);
            let call_request = CallRequest {
                schema: Some(("triage", schema.clone())),
                ..ask(Part::Triage)
            };
            assert!(caller.ask(call_request).await.is_ok());
            let body = &server.requests()[0].body;
            assert_eq!(
                body.get("response_format").cloned().unwrap_or_default(),
                sent
            );
        }
    }

    #[tokio::test]
    async fn ignored_fallbacks_are_noted_once() {
        let server = FakeApi::start([reply("fine")]);
        let fallback_models = vec!["own-model".to_owned(), "second".to_owned()];
        for (name, notes) in [
            ("gateway", vec![DegradationKind::FallbackIgnored]),
            ("openrouter", Vec::new()),
        ] {
            let config = EngineConfig {
                fallback_models: fallback_models.clone(),
                ..EngineConfig::with_backend(provider(name, &server))
            };
            let caller = Caller::new(&config);
            for part in [Part::Triage, seat(), Part::Synthesis] {
                assert!(caller.ask(ask(part)).await.is_ok());
            }
            assert_eq!(degradations(&caller), notes);
        }
        assert_eq!(
            server.requests().last().unwrap().body["models"],
            json!(["second"])
        );
        let config = EngineConfig {
            fallback_models: vec!["own-model".to_owned()],
            ..EngineConfig::with_backend(provider("gateway", &server))
        };
        let caller = Caller::new(&config);
        assert!(caller.ask(ask(Part::Triage)).await.is_ok());
        assert_eq!(degradations(&caller), [], "there was nothing to pass over");
    }

    #[tokio::test]
    async fn cut_answer_is_noted_except_in_triage() {
        let server = FakeApi::start([Reply::CutAnswer("half a".to_owned())]);
        let config = gateway(&server);
        let caller = Caller::new(&config);
        for (part, notes) in [(Part::Triage, 0), (seat(), 1), (Part::Synthesis, 2)] {
            let answer = caller.ask(ask(part)).await.unwrap();
            assert_eq!(answer.text.as_str(), "half a");
            let Ending::TruncatedAnswer(why) = answer.ending else {
                panic!("{:?}", answer.ending)
            };
            assert_eq!(why, "by its token limit or a provider filter (`length`)");
            assert_eq!(
                degradations(&caller),
                vec![DegradationKind::AnswerCutShort; notes]
            );
        }
        assert_eq!(caller.degradations()[0].part, seat());
        assert_eq!(caller.degradations()[0].loop_number, Some(1));
    }

    /// A server reply with this finish reason.
    fn ended(reason: &str) -> Reply {
        let choice = json!({"message": {"content": "half a"}, "finish_reason": reason});
        Reply::Raw(200, json!({"choices": [choice]}).to_string().into_bytes())
    }

    #[tokio::test]
    async fn cut_answer_note_names_provider_reason() {
        for (reason, expected) in [
            (
                "length",
                "the answer was cut off after 6 bytes by its token limit or a provider filter (`length`)",
            ),
            (
                "content_filter",
                "by its token limit or a provider filter (`content_filter`)",
            ),
            (
                "tool_calls",
                "the answer ends after 6 bytes; the provider's reason is `tool_calls`",
            ),
        ] {
            let server = FakeApi::start([ended(reason)]);
            let config = gateway(&server);
            let caller = Caller::new(&config);
            assert!(caller.ask(ask(seat())).await.is_ok());
            assert_eq!(
                degradations(&caller),
                [DegradationKind::AnswerCutShort],
                "{reason}"
            );
            let detail = &caller.degradations()[0].detail;
            assert!(detail.contains(expected), "{detail}");
        }
        for reason in ["tool_calls", "content_filter"] {
            let server = FakeApi::start([ended(reason)]);
            let config = gateway(&server);
            let caller = Caller::new(&config);
            let answer = caller.ask(ask(Part::Triage)).await.unwrap();
            assert_ne!(answer.ending, Ending::Whole);
            assert_eq!(
                degradations(&caller).is_empty(),
                reason == "content_filter",
                "a cut triage is an error instead"
            );
        }
        let server = FakeApi::start([ended("stop")]);
        let config = gateway(&server);
        let caller = Caller::new(&config);
        assert_eq!(caller.ask(ask(seat())).await.unwrap().ending, Ending::Whole);
        assert_eq!(degradations(&caller), []);
    }

    #[tokio::test]
    async fn secret_in_answer_is_redacted_and_noted() {
        let key = token();
        let server = FakeApi::start([reply(&format!("Use {key} for it."))]);
        let config = gateway(&server);
        let caller = Caller::new(&config);
        let answer = caller.ask(ask(seat())).await.unwrap();
        assert!(!answer.text.as_str().contains(&key));
        assert_eq!(degradations(&caller), [DegradationKind::AnswerRedacted]);
        assert_eq!(
            caller.degradations()[0].detail,
            "1 secret removed from the answer"
        );
    }

    #[tokio::test]
    async fn answer_over_byte_limit_is_refused() {
        let server = FakeApi::start([reply("four"), reply("fives")]);
        let mut config = gateway(&server);
        config.limits.answer_bytes = 4;
        let caller = Caller::new(&config);
        assert_eq!(caller.ask(ask(seat())).await.unwrap().text.as_str(), "four");
        let error = caller.ask(ask(seat())).await.err().unwrap();
        assert!(
            matches!(error, CallFailure::TooLong { bytes: 5, limit: 4 }),
            "{error}"
        );
        let fatal = error.fatal(Part::Judge, Some(3)).to_string();
        assert!(
            fatal.starts_with("the answer of the judge in loop 3 has 5 bytes"),
            "{fatal}"
        );
        // The call was made and paid for nevertheless.
        assert_eq!(caller.usage().calls, 2);
        assert!(caller.usage().tokens_output >= 2);
    }

    #[tokio::test]
    async fn empty_answer_and_refusal_fail_the_call() {
        let unseen = reply("\u{200b}\u{200d} \u{feff}");
        for reply in [
            reply(""),
            reply("  \n"),
            unseen,
            Reply::NullContent,
            Reply::EmptyChoices,
            Reply::Status(400),
        ] {
            let server = FakeApi::start([reply.clone()]);
            let config = gateway(&server);
            let caller = Caller::new(&config);
            let error = caller.ask(ask(seat())).await.err().unwrap();
            assert!(
                matches!(error, CallFailure::Call(CallError::Llm(_))),
                "{reply:?}: {error}"
            );
        }
    }

    #[tokio::test]
    async fn invisible_answer_is_empty_and_counted() {
        let server = FakeApi::start([reply("\u{200b}\u{200d} \u{feff}")]);
        let config = gateway(&server);
        let caller = Caller::new(&config);
        let error = caller.ask(ask(seat())).await.err().unwrap();
        assert!(
            error.to_string().contains("the answer contains no text"),
            "{error}"
        );
        let CallFailure::Call(CallError::Llm(error)) = error else {
            panic!("{error}")
        };
        assert_eq!(error.answer_fault(), Some(AnswerFault::Empty));
        assert_eq!(
            (caller.usage().calls, caller.usage().calls_without_tokens),
            (1, 0)
        );
    }

    #[tokio::test]
    async fn budget_secret_or_record_error_ends_run() {
        let server = FakeApi::start([reply("fine")]);
        let mut config = gateway(&server);
        config.limits.budget = BudgetLimits::calls(1);
        let caller = Caller::new(&config);
        assert!(caller.ask(ask(seat())).await.is_ok());
        let error = caller.ask(ask(seat())).await.err().unwrap();
        assert!(
            matches!(
                error,
                CallFailure::Final(CallError::Llm(LlmError::BudgetExceeded { .. }))
            ),
            "{error}"
        );
        assert_eq!(
            (caller.usage().calls, caller.usage().attempts),
            (1, 1),
            "the refused one was not made"
        );

        let question = PromptBuilder::new()
            .untrusted("question", &Untrusted::new(token()))
            .build();
        let caller = Caller::new(&config);
        let call_request = CallRequest {
            messages: vec![Message::user(question)],
            ..ask(seat())
        };
        let error = caller.ask(call_request).await.err().unwrap();
        assert!(
            matches!(error, CallFailure::Final(CallError::Secret(_))),
            "{error}"
        );
        assert_eq!(server.requests().len(), 1);
        assert_eq!(caller.usage().calls, 0, "nothing was sent");

        // A call that a budget or a setting refuses was not made.
        config.limits.budget.micro_dollars = Limit::At(1);
        let caller = Caller::new(&config);
        assert!(caller.ask(ask(seat())).await.is_err(), "there is no price");
        assert_eq!((caller.usage().calls, caller.usage().attempts), (0, 0));
        assert_eq!(caller.usage_by_part(), BTreeMap::new());

        let secret = SecretInRequest {
            rule: "r".to_owned(),
            place: SecretPlace::Model,
            line: 1,
        };
        assert!(matches!(
            CallFailure::from(CallError::from(secret)),
            CallFailure::Final(_)
        ));
        let record = CallError::Record(crucible_llm::CassetteError::Interrupted);
        assert!(matches!(CallFailure::from(record), CallFailure::Final(_)));
    }

    #[tokio::test]
    async fn remaining_budget_must_cover_worst_case() {
        let server = FakeApi::start([reply("fine")]);
        let mut config = gateway(&server);
        config.limits.budget = BudgetLimits::calls(10);
        let caller = Caller::new(&config);
        assert!(caller.check_budget(10).is_ok());
        assert!(caller.ask(ask(Part::Triage)).await.is_ok());
        assert!(caller.check_budget(9).is_ok());
        let error = caller.check_budget(10).unwrap_err();
        assert!(
            matches!(
                error,
                CouncilError::BudgetTooSmall {
                    needed: 10,
                    remaining_calls: 9,
                    limit: 10
                }
            ),
            "{error}"
        );
        config.limits.budget.calls = Limit::Unlimited;
        assert!(Caller::new(&config).check_budget(u64::MAX).is_ok());
    }

    #[tokio::test]
    async fn usage_by_part_counts_unknown_values() {
        let response = json!({
            "model": "m", "choices": [{"message": {"content": "fine"}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 4, "cost": 0.000_007},
        });
        let untold = json!({"choices": [{"message": {"content": "fine"}}]});
        let half_told =
            json!({"choices": [{"message": {"content": "fine"}}], "usage": {"prompt_tokens": 3}});
        let raw = |body: &Value| Reply::Raw(200, body.to_string().into_bytes());
        let server = FakeApi::start([
            raw(&response),
            raw(&untold),
            raw(&half_told),
            Reply::Status(400),
        ]);
        let config = EngineConfig::with_backend(provider("openrouter", &server));
        let caller = Caller::new(&config);
        for part in [Part::Triage, seat(), seat(), seat()] {
            let _outcome = caller.ask(ask(part)).await;
        }
        let timeless = |usage: CallUsage| CallUsage {
            elapsed_ms: 0,
            ..usage
        };
        let of_triage = CallUsage {
            calls: 1,
            attempts: 1,
            tokens_input: 10,
            tokens_output: 4,
            micro_dollars: 7,
            cost_basis: Some(CostBasis::Reported),
            ..CallUsage::default()
        };
        let of_seat = CallUsage {
            calls: 3,
            attempts: 3,
            tokens_input: 3,
            calls_without_tokens: 3,
            calls_without_cost: 3,
            ..CallUsage::default()
        };
        let by_part = caller.usage_by_part();
        assert_eq!(
            by_part.keys().copied().collect::<Vec<_>>(),
            [Part::Triage, seat()]
        );
        assert_eq!(timeless(by_part[&Part::Triage]), of_triage);
        assert_eq!(timeless(by_part[&seat()]), of_seat);
        assert_eq!(timeless(caller.usage()), timeless(sum(of_triage, of_seat)));
    }

    #[tokio::test]
    async fn fallback_cost_uses_answering_models_price() {
        let line = |dollars: u64| ListedPrice {
            price: Price::PerMillionTokens {
                input: dollars * 1_000_000,
                output: 0,
            },
            date: "2026-01-01".to_owned(),
            source: "a test".to_owned(),
        };
        let answer = |model: &str| {
            let body = json!({
                "model": model, "choices": [{"message": {"content": "fine"}}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 4},
            });
            Reply::Raw(200, body.to_string().into_bytes())
        };
        let answered = [
            ("own-model", 10),
            ("second", 50),
            ("own-model-2026-05-01", 50),
            ("second-2026-05-01", 50),
        ];
        let server = FakeApi::start(answered.map(|(model, _)| answer(model)));
        let prices = [
            ("openrouter/own-model".to_owned(), line(1)),
            ("openrouter/second".to_owned(), line(5)),
        ];
        let config = EngineConfig {
            fallback_models: vec!["second".to_owned()],
            prices: Arc::new(PriceTable::new(prices.into())),
            ..EngineConfig::with_backend(provider("openrouter", &server))
        };
        let caller = Caller::new(&config);
        for (model, micro_dollars) in answered {
            let reply = caller.ask(ask(seat())).await.unwrap();
            assert_eq!(
                (reply.model.as_str(), reply.usage.micro_dollars),
                (model, micro_dollars)
            );
            assert_eq!(reply.usage.cost_basis, Some(CostBasis::Estimated));
        }
    }

    #[test]
    fn sum_with_an_estimate_is_estimated() {
        let of = |cost_basis| CallUsage {
            cost_basis,
            ..CallUsage::default()
        };
        let (none, reported, estimated) =
            (None, Some(CostBasis::Reported), Some(CostBasis::Estimated));
        for (one, other, both) in [
            (none, none, none),
            (none, reported, reported),
            (reported, reported, reported),
            (reported, estimated, estimated),
            (none, estimated, estimated),
        ] {
            assert_eq!(sum(of(one), of(other)).cost_basis, both);
            assert_eq!(sum(of(other), of(one)).cost_basis, both);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn total_time_runs_from_first_call() {
        let server = FakeApi::start([reply("fine")]);
        let config = gateway(&server);
        let caller = Caller::new(&config);
        tokio::time::advance(Duration::from_millis(1234)).await;
        assert_eq!(caller.usage().elapsed_ms, 1234);
    }
}
