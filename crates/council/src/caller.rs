//! The one place that asks a model: transport, and nothing of what is said (seed 001 §2.5).
//!
//! What holds: each call is bounded in time and bytes; all of a run share one budget; what a call took is counted, whether it was
//! answered or not; dropping a call's future ends the call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crucible_llm::{
    CallBudget, CallError, ClientOptions, Cost, CostBasis, Finish, Limit, LlmError, LlmInvocation, LlmResult,
    Message, ModelClient, RetryPolicy, StructuredOutput,
};
use crucible_model::Untrusted;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::config::{CouncilLimits, EngineConfig, Observability};
use crate::error::CouncilError;
use crate::result::{CallUsage, Degradation, DegradationKind, Part};
use crate::seat::CouncilRole;

/// What every call of a council is made for.
const SPEC: &str = "council";

/// A question to a model.
pub(crate) struct Ask {
    /// Whose it is.
    pub(crate) part: Part,
    /// Of which loop.
    pub(crate) loop_number: Option<u32>,
    /// The model; empty: the default one.
    pub(crate) model: String,
    /// The conversation.
    pub(crate) messages: Vec<Message>,
    /// The JSON Schema that the answer should follow, with its name, where the backend can be held to one.
    pub(crate) schema: Option<(&'static str, Value)>,
}

/// An answer.
pub(crate) struct Said {
    pub(crate) text: Untrusted,
    /// The model that answered, as the provider names it.
    pub(crate) model: String,
    /// How the answer ended.
    pub(crate) ending: Ending,
    pub(crate) usage: CallUsage,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Whole,
    CutShort,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    /// Nothing further can succeed or may be tried: the budget is used up, a secret is in the question, the record cannot be
    /// kept.
    #[error("{0}")]
    Final(CallError),
    /// This call failed; another may succeed.
    #[error("{0}")]
    Call(CallError),
    /// The answer is longer than what is taken.
    #[error("the answer has {bytes} bytes, at most {limit} are taken")]
    TooLong { bytes: usize, limit: usize },
}

impl NoAnswer {
    /// The same for a part without which the run cannot go on.
    pub(crate) fn fatal(self, part: Part) -> CouncilError {
        match self {
            Self::Final(source) | Self::Call(source) => CouncilError::Call { part, source },
            Self::TooLong { bytes, limit } => CouncilError::AnswerTooLong { part, bytes, limit },
        }
    }
}

impl From<CallError> for NoAnswer {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Secret(_) | CallError::Record(_) | CallError::Llm(LlmError::BudgetExceeded { .. }) => {
                Self::Final(error)
            }
            CallError::Llm(_) => Self::Call(error),
        }
    }
}

/// Asks models on behalf of one run.
pub(crate) struct Caller<'e> {
    config: &'e EngineConfig,
    client: ModelClient,
    budget: Arc<CallBudget>,
    begun: Instant,
    /// Locked for moments only, never while a model is asked.
    tally: Mutex<Tally>,
}

/// What a run noted so far.
#[derive(Default)]
struct Tally {
    whole: CallUsage,
    /// Empty where observability is off.
    by_part: BTreeMap<Part, CallUsage>,
    degradations: Vec<Degradation>,
}

impl<'e> Caller<'e> {
    /// Wraps the backend for one run: the council's retries, and a budget of its own.
    pub(crate) fn new(config: &'e EngineConfig) -> Self {
        let budget = CallBudget::new(config.limits.budget);
        let options = ClientOptions {
            recording: config.recording.clone(),
            retry: RetryPolicy::COUNCIL,
            prices: Arc::clone(&config.prices),
            ..ClientOptions::new(Arc::clone(&budget))
        };
        let client = ModelClient::new(config.backend.clone(), options);
        Self { config, client, budget, begun: Instant::now(), tally: Mutex::default() }
    }

    pub(crate) fn limits(&self) -> &'e CouncilLimits {
        &self.config.limits
    }

    pub(crate) fn config(&self) -> &'e EngineConfig {
        self.config
    }

    /// Asks once; retries of the transport aside.
    pub(crate) async fn ask(&self, ask: Ask) -> Result<Said, NoAnswer> {
        let Ask { part, loop_number, model, messages, schema } = ask;
        let phase = phase(part);
        let model = self.model(part, model, phase);
        let timeout = self.limits().call_timeout;
        let inv = LlmInvocation {
            spec_id: SPEC.to_owned(),
            phase_id: phase.to_owned(),
            metadata: self.hints(&model, schema),
            model: model.clone(),
            timeout,
            messages,
        };
        let begun = Instant::now();
        let outcome = self.client.call(inv).await;
        let elapsed = begun.elapsed();
        let answer = match outcome {
            Ok(answer) => answer,
            Err(error) => {
                self.count(part, failed(elapsed));
                return Err(error.into());
            }
        };
        // What a fallback cost is estimated by its own price.
        let answered = &answer.model_used;
        let priced = if self.config.fallback_models.contains(answered) { answered } else { &model };
        let usage = answered_usage(&answer, self.client.receipt(&answer, priced, timeout).cost, elapsed);
        self.count(part, usage);
        let note = |kind, detail| self.note(Degradation { loop_number, part, kind, detail });
        if ignored_fallbacks(&answer) {
            self.note_ignored_fallbacks(part, loop_number);
        }
        let (bytes, limit) = (answer.raw_response.len(), self.limits().answer_bytes);
        if bytes > limit {
            return Err(NoAnswer::TooLong { bytes, limit });
        }
        if let Some(count) = answer.extensions.get(LlmResult::REDACTIONS).and_then(Value::as_u64) {
            let secrets = crucible_model::counted(count, "secret");
            note(DegradationKind::AnswerRedacted, format!("{secrets} taken out of the answer"));
        }
        let ending = match answer.finish() {
            Finish::CutShort => Ending::CutShort,
            Finish::Complete | Finish::Other(_) | Finish::Unknown => Ending::Whole,
        };
        // A triage that was cut off is an error, which says so itself.
        if ending == Ending::CutShort && part != Part::Triage {
            note(DegradationKind::AnswerCutShort, format!("the answer stops after {bytes} bytes"));
        }
        Ok(Said { text: Untrusted::new(answer.raw_response), model: answer.model_used, ending, usage })
    }

    /// Fails where the budget does not carry so many more calls.
    pub(crate) fn check_budget(&self, needed: u64) -> Result<(), CouncilError> {
        let Limit::At(limit) = self.budget.limits().calls else {
            return Ok(());
        };
        // A budget of this process can always be read.
        let used = self.budget.used().unwrap_or_default().calls;
        let left = limit.saturating_sub(used);
        if needed > left {
            return Err(CouncilError::BudgetTooSmall { needed, left, limit });
        }
        Ok(())
    }

    /// Notes something that was worse than asked for.
    pub(crate) fn note(&self, degradation: Degradation) {
        self.tally().degradations.push(degradation);
    }

    /// What was noted, in the order in which it happened.
    pub(crate) fn degradations(&self) -> Vec<Degradation> {
        self.tally().degradations.clone()
    }

    /// What all calls together took so far.
    pub(crate) fn usage(&self) -> CallUsage {
        CallUsage { elapsed_ms: milliseconds(self.begun.elapsed()), ..self.tally().whole }
    }

    /// What each part took so far; nothing is kept of that where observability is off.
    pub(crate) fn usage_by_part(&self) -> Option<BTreeMap<Part, CallUsage>> {
        match self.config.observability {
            Observability::Off => None,
            Observability::On => Some(self.tally().by_part.clone()),
        }
    }

    /// The model that a part asks: the one it names, or the one configured for it, or the backend's own for its phase.
    fn model(&self, part: Part, named: String, phase: &str) -> String {
        let configured = match part {
            Part::Triage if !self.config.triage_model.is_empty() => &self.config.triage_model,
            _ => &self.config.default_model,
        };
        let model = if named.is_empty() { configured.clone() } else { named };
        if model.is_empty() { self.client.model_for(phase).to_owned() } else { model }
    }

    /// The form of the answer, as far as the backend can be held to it, and the models to fall back to.
    fn hints(&self, model: &str, schema: Option<(&'static str, Value)>) -> BTreeMap<String, Value> {
        let form = schema.and_then(|(name, schema)| match self.client.capabilities().structured_output {
            StructuredOutput::JsonSchema => Some(json!({
                "type": "json_schema", "json_schema": {"name": name, "strict": true, "schema": schema},
            })),
            StructuredOutput::JsonMode => Some(json!({"type": "json_object"})),
            StructuredOutput::None => None,
        });
        let others: Vec<&String> =
            self.config.fallback_models.iter().filter(|other| other.as_str() != model).collect();
        let form = form.map(|form| ("response_format".to_owned(), form));
        let others = (!others.is_empty()).then(|| (LlmInvocation::FALLBACK_MODELS.to_owned(), json!(others)));
        form.into_iter().chain(others).collect()
    }

    fn count(&self, part: Part, usage: CallUsage) {
        let mut tally = self.tally();
        tally.whole = sum(tally.whole, usage);
        if self.config.observability == Observability::On {
            let of_part = tally.by_part.entry(part).or_default();
            *of_part = sum(*of_part, usage);
        }
    }

    /// Once in a run: every later call would say the same.
    fn note_ignored_fallbacks(&self, part: Part, loop_number: Option<u32>) {
        let mut tally = self.tally();
        let kind = DegradationKind::FallbackIgnored;
        if tally.degradations.iter().all(|noted| noted.kind != kind) {
            let provider = self.client.provider();
            let detail = format!(
                "{provider} takes no list of fallback models; only the models named first were asked"
            );
            tally.degradations.push(Degradation { loop_number, part, kind, detail });
        }
    }

    /// Each change is whole at every moment, so a panic elsewhere does not spoil it.
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The phase of a part's calls.
fn phase(part: Part) -> &'static str {
    match part {
        Part::Triage => "council-triage",
        Part::DirectAnswer => "council-direct",
        Part::Seat(seat) if seat.role() == CouncilRole::RedTeam => "council-red-team",
        Part::Seat(_) => "council-seat",
        Part::Judge => "council-judge",
        Part::Synthesis => "council-synthesis",
    }
}

fn ignored_fallbacks(answer: &LlmResult) -> bool {
    let ignored = answer.extensions.get(LlmResult::IGNORED_METADATA).and_then(Value::as_array);
    ignored.is_some_and(|ignored| ignored.iter().any(|name| name == LlmInvocation::FALLBACK_MODELS))
}

/// A call without an answer: nobody says what it took.
fn failed(elapsed: Duration) -> CallUsage {
    CallUsage {
        calls: 1,
        calls_without_tokens: 1,
        calls_without_cost: 1,
        elapsed_ms: milliseconds(elapsed),
        ..CallUsage::default()
    }
}

fn answered_usage(answer: &LlmResult, cost: Option<Cost>, elapsed: Duration) -> CallUsage {
    CallUsage {
        calls: 1,
        tokens_input: answer.tokens_input.unwrap_or_default(),
        tokens_output: answer.tokens_output.unwrap_or_default(),
        calls_without_tokens: u64::from(answer.tokens().is_none()),
        micro_dollars: cost.as_ref().map_or(0, |cost| cost.micro_dollars),
        calls_without_cost: u64::from(cost.is_none()),
        cost_basis: cost.map(|cost| cost.basis),
        elapsed_ms: milliseconds(elapsed),
    }
}

/// Both together; an estimate in one makes the whole an estimate. The times add up.
fn sum(one: CallUsage, other: CallUsage) -> CallUsage {
    let cost_basis = match (one.cost_basis, other.cost_basis) {
        (Some(CostBasis::Estimated), _) | (_, Some(CostBasis::Estimated)) => Some(CostBasis::Estimated),
        (Some(CostBasis::Reported), _) | (_, Some(CostBasis::Reported)) => Some(CostBasis::Reported),
        (None, None) => None,
    };
    CallUsage {
        calls: one.calls.saturating_add(other.calls),
        tokens_input: one.tokens_input.saturating_add(other.tokens_input),
        tokens_output: one.tokens_output.saturating_add(other.tokens_output),
        calls_without_tokens: one.calls_without_tokens.saturating_add(other.calls_without_tokens),
        micro_dollars: one.micro_dollars.saturating_add(other.micro_dollars),
        calls_without_cost: one.calls_without_cost.saturating_add(other.calls_without_cost),
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
        Backend, BackendParts, BudgetLimits, CallWatch, Capabilities, ClientExtra, Context, ListedPrice,
        Origin, Price, PriceTable, ProviderSettings, SecretInRequest, SecretPlace, Speaker, construct,
    };
    use crucible_model::{EditFormat, PromptBuilder, Secret};
    use crucible_testkit::{FakeApi, Reply};

    use super::*;
    use crate::seat::SeatId;

    /// A backend of this provider before a server.
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
        let config = EngineConfig::with_backend(provider("gateway", server));
        EngineConfig { observability: Observability::On, ..config }
    }

    fn says(text: &str) -> Reply {
        Reply::Answer(text.to_owned())
    }

    fn ask(part: Part) -> Ask {
        let messages = vec![Message::user(PromptBuilder::new().ours("Why?").build())];
        Ask { part, loop_number: Some(1), model: String::new(), messages, schema: None }
    }

    fn seat() -> Part {
        Part::Seat(SeatId::of_roles([CouncilRole::Pragmatist])[0])
    }

    /// Looks like a GitHub token; put together here so that no scanner takes this file for a leak.
    fn token() -> String {
        ["ghp", "_", "x7Kq2mWv9ZpL4nRt8sYb", "3cHd6fJg1aQe5uT0"].concat()
    }

    fn noted(caller: &Caller<'_>) -> Vec<DegradationKind> {
        caller.degradations().into_iter().map(|degradation| degradation.kind).collect()
    }

    #[test]
    fn an_ask_can_move_between_threads() {
        fn sendable<T: Send>(_: T) {}
        let server = FakeApi::start([says("fine")]);
        let config = gateway(&server);
        sendable(Caller::new(&config).ask(ask(Part::Judge)));
    }

    #[tokio::test]
    async fn the_model_is_the_asks_or_the_parts_or_the_default_or_the_backends() {
        let server = FakeApi::start([says("fine")]);
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
                assert!(caller.ask(Ask { model: named.to_owned(), ..ask(part) }).await.is_ok());
                assert_eq!(server.requests().last().unwrap().body["model"], model, "{part}");
            }
        }
    }

    /// Notes for which phase each call is made.
    #[derive(Default)]
    struct Phases(Mutex<Vec<String>>);

    impl CallWatch for Phases {
        fn asked(&self, phase_id: &str) {
            self.0.lock().unwrap().push(phase_id.to_owned());
        }

        fn answered(&self, _phase_id: &str) {}
    }

    #[tokio::test]
    async fn each_part_is_a_phase_of_its_own_and_may_have_its_own_model() {
        let server = FakeApi::start([says("fine")]);
        let phases = Arc::new(Phases::default());
        let models = BTreeMap::from([("council-red-team".to_owned(), "red-model".to_owned())]);
        let backend = provider("gateway", &server).with_phase_models(models).watched(phases.clone());
        let config = EngineConfig::with_backend(backend);
        let caller = Caller::new(&config);
        let red_team = Part::Seat(SeatId::of_roles([CouncilRole::RedTeam])[0]);
        for part in [Part::Triage, Part::DirectAnswer, seat(), red_team, Part::Judge, Part::Synthesis] {
            assert!(caller.ask(ask(part)).await.is_ok());
        }
        let expected = ["triage", "direct", "seat", "red-team", "judge", "synthesis"]
            .map(|part| format!("council-{part}"));
        assert_eq!(*phases.0.lock().unwrap(), expected);
        let asked: Vec<Value> =
            server.requests().iter().map(|request| request.body["model"].clone()).collect();
        assert_eq!(asked, ["own-model", "own-model", "own-model", "red-model", "own-model", "own-model"]);
    }

    #[tokio::test]
    async fn the_form_is_asked_for_as_far_as_the_backend_can_be_held_to_it() {
        let schema =
            json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
        for (structured_output, sent) in [
            (
                StructuredOutput::JsonSchema,
                json!({"type": "json_schema", "json_schema": {"name": "triage", "strict": true, "schema": schema}}),
            ),
            (StructuredOutput::JsonMode, json!({"type": "json_object"})),
            (StructuredOutput::None, Value::Null),
        ] {
            let server = FakeApi::start([says("{}")]);
            let inner = provider("gateway", &server);
            let backend = Backend::new(BackendParts {
                provider: "gateway",
                default_model: "own-model".to_owned(),
                max_output_tokens: 1000,
                extra: ClientExtra::NONE,
                capabilities: Capabilities { edit_format: EditFormat::WholeFile, structured_output },
                speaker: Speaker { provider: "gateway".to_owned(), model: "own-model".to_owned() },
                origin: Origin::Live,
                parameters: BTreeMap::new(),
                inner: Box::new(inner),
            });
            let config = EngineConfig::with_backend(backend);
            let caller = Caller::new(&config);
            let asked = Ask { schema: Some(("triage", schema.clone())), ..ask(Part::Triage) };
            assert!(caller.ask(asked).await.is_ok());
            let body = &server.requests()[0].body;
            assert_eq!(body.get("response_format").cloned().unwrap_or_default(), sent);
        }
    }

    #[tokio::test]
    async fn a_backend_without_fallbacks_is_told_once_and_the_asked_model_is_no_fallback_of_itself() {
        let server = FakeApi::start([says("fine")]);
        let fallback_models = vec!["own-model".to_owned(), "second".to_owned()];
        for (name, notes) in [("gateway", vec![DegradationKind::FallbackIgnored]), ("openrouter", Vec::new())]
        {
            let config = EngineConfig {
                fallback_models: fallback_models.clone(),
                ..EngineConfig::with_backend(provider(name, &server))
            };
            let caller = Caller::new(&config);
            for part in [Part::Triage, seat(), Part::Synthesis] {
                assert!(caller.ask(ask(part)).await.is_ok());
            }
            assert_eq!(noted(&caller), notes);
        }
        assert_eq!(server.requests().last().unwrap().body["models"], json!(["second"]));
        let config = EngineConfig {
            fallback_models: vec!["own-model".to_owned()],
            ..EngineConfig::with_backend(provider("gateway", &server))
        };
        let caller = Caller::new(&config);
        assert!(caller.ask(ask(Part::Triage)).await.is_ok());
        assert_eq!(noted(&caller), [], "there was nothing to pass over");
    }

    #[tokio::test]
    async fn a_cut_answer_is_used_and_noted_and_left_to_the_triage_where_it_is_its_own() {
        let server = FakeApi::start([Reply::CutAnswer("half a".to_owned())]);
        let config = gateway(&server);
        let caller = Caller::new(&config);
        for (part, notes) in [(Part::Triage, 0), (seat(), 1), (Part::Synthesis, 2)] {
            let said = caller.ask(ask(part)).await.unwrap();
            assert_eq!((said.ending, said.text.as_str()), (Ending::CutShort, "half a"));
            assert_eq!(noted(&caller), vec![DegradationKind::AnswerCutShort; notes]);
        }
        assert_eq!(caller.degradations()[0].part, seat());
        assert_eq!(caller.degradations()[0].loop_number, Some(1));
    }

    #[tokio::test]
    async fn a_secret_in_an_answer_is_taken_out_and_noted() {
        let key = token();
        let server = FakeApi::start([says(&format!("Use {key} for it."))]);
        let config = gateway(&server);
        let caller = Caller::new(&config);
        let said = caller.ask(ask(seat())).await.unwrap();
        assert!(!said.text.as_str().contains(&key));
        assert_eq!(noted(&caller), [DegradationKind::AnswerRedacted]);
        assert_eq!(caller.degradations()[0].detail, "1 secret taken out of the answer");
    }

    #[tokio::test]
    async fn an_answer_may_have_as_many_bytes_as_configured_and_no_more() {
        let server = FakeApi::start([says("four"), says("fives")]);
        let mut config = gateway(&server);
        config.limits.answer_bytes = 4;
        let caller = Caller::new(&config);
        assert_eq!(caller.ask(ask(seat())).await.unwrap().text.as_str(), "four");
        let error = caller.ask(ask(seat())).await.err().unwrap();
        assert!(matches!(error, NoAnswer::TooLong { bytes: 5, limit: 4 }), "{error}");
        let fatal = error.fatal(Part::Synthesis).to_string();
        assert!(fatal.contains("the answer of the synthesis has 5 bytes"), "{fatal}");
        // It was made and paid for all the same.
        assert_eq!(caller.usage().calls, 2);
        assert!(caller.usage().tokens_output >= 2);
    }

    #[tokio::test]
    async fn an_answer_of_nothing_and_a_refusal_are_failures_of_their_call() {
        for reply in [says(""), says("  \n"), Reply::NullContent, Reply::EmptyChoices, Reply::Status(400)] {
            let server = FakeApi::start([reply.clone()]);
            let config = gateway(&server);
            let caller = Caller::new(&config);
            let error = caller.ask(ask(seat())).await.err().unwrap();
            assert!(matches!(error, NoAnswer::Call(CallError::Llm(_))), "{reply:?}: {error}");
        }
    }

    #[tokio::test]
    async fn the_budget_a_secret_and_the_record_end_a_run() {
        let server = FakeApi::start([says("fine")]);
        let mut config = gateway(&server);
        config.limits.budget = BudgetLimits::calls(1);
        let caller = Caller::new(&config);
        assert!(caller.ask(ask(seat())).await.is_ok());
        let error = caller.ask(ask(seat())).await.err().unwrap();
        assert!(matches!(error, NoAnswer::Final(CallError::Llm(LlmError::BudgetExceeded { .. }))), "{error}");

        let question = PromptBuilder::new().untrusted("question", &Untrusted::new(token())).build();
        let caller = Caller::new(&config);
        let asked = Ask { messages: vec![Message::user(question)], ..ask(seat()) };
        let error = caller.ask(asked).await.err().unwrap();
        assert!(matches!(error, NoAnswer::Final(CallError::Secret(_))), "{error}");
        assert_eq!(server.requests().len(), 1);

        let secret = SecretInRequest { rule: "r".to_owned(), place: SecretPlace::Model, line: 1 };
        assert!(matches!(NoAnswer::from(CallError::from(secret)), NoAnswer::Final(_)));
        let record = CallError::Record(crucible_llm::CassetteError::Interrupted);
        assert!(matches!(NoAnswer::from(record), NoAnswer::Final(_)));
    }

    #[tokio::test]
    async fn what_is_left_of_the_budget_has_to_carry_the_rest_of_the_run() {
        let server = FakeApi::start([says("fine")]);
        let mut config = gateway(&server);
        config.limits.budget = BudgetLimits::calls(10);
        let caller = Caller::new(&config);
        assert!(caller.check_budget(10).is_ok());
        assert!(caller.ask(ask(Part::Triage)).await.is_ok());
        assert!(caller.check_budget(9).is_ok());
        let error = caller.check_budget(10).unwrap_err();
        assert!(matches!(error, CouncilError::BudgetTooSmall { needed: 10, left: 9, limit: 10 }), "{error}");
        config.limits.budget.calls = Limit::Unlimited;
        assert!(Caller::new(&config).check_budget(u64::MAX).is_ok());
    }

    #[tokio::test]
    async fn what_calls_took_is_counted_by_part_and_what_nobody_tells_is_counted_as_that() {
        let told = json!({
            "model": "m", "choices": [{"message": {"content": "fine"}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 4, "cost": 0.000_007},
        });
        let untold = json!({"choices": [{"message": {"content": "fine"}}]});
        let half_told = json!({"choices": [{"message": {"content": "fine"}}], "usage": {"prompt_tokens": 3}});
        let raw = |body: &Value| Reply::Raw(200, body.to_string().into_bytes());
        let server = FakeApi::start([raw(&told), raw(&untold), raw(&half_told), Reply::Status(400)]);
        let config = EngineConfig {
            observability: Observability::On,
            ..EngineConfig::with_backend(provider("openrouter", &server))
        };
        let caller = Caller::new(&config);
        for part in [Part::Triage, seat(), seat(), seat()] {
            let _outcome = caller.ask(ask(part)).await;
        }
        let timeless = |usage: CallUsage| CallUsage { elapsed_ms: 0, ..usage };
        let of_triage = CallUsage {
            calls: 1,
            tokens_input: 10,
            tokens_output: 4,
            micro_dollars: 7,
            cost_basis: Some(CostBasis::Reported),
            ..CallUsage::default()
        };
        let of_seat = CallUsage {
            calls: 3,
            tokens_input: 3,
            calls_without_tokens: 3,
            calls_without_cost: 3,
            ..CallUsage::default()
        };
        let by_part = caller.usage_by_part().unwrap();
        assert_eq!(by_part.keys().copied().collect::<Vec<_>>(), [Part::Triage, seat()]);
        assert_eq!(timeless(by_part[&Part::Triage]), of_triage);
        assert_eq!(timeless(by_part[&seat()]), of_seat);
        assert_eq!(timeless(caller.usage()), timeless(sum(of_triage, of_seat)));

        let off = EngineConfig { observability: Observability::Off, ..config };
        let caller = Caller::new(&off);
        let _outcome = caller.ask(ask(seat())).await;
        assert_eq!(caller.usage_by_part(), None);
        assert!(caller.tally().by_part.is_empty(), "nothing is kept that nobody wants to see");
        assert_eq!(caller.usage().calls, 1);
    }

    #[tokio::test]
    async fn a_fallback_that_answered_is_paid_at_its_own_price() {
        let line = |dollars: u64| ListedPrice {
            price: Price::PerMillionTokens { input: dollars * 1_000_000, output: 0 },
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
        let server = FakeApi::start([answer("own-model"), answer("second")]);
        let prices =
            [("openrouter/own-model".to_owned(), line(1)), ("openrouter/second".to_owned(), line(5))];
        let config = EngineConfig {
            fallback_models: vec!["second".to_owned()],
            prices: Arc::new(PriceTable::new(prices.into())),
            ..EngineConfig::with_backend(provider("openrouter", &server))
        };
        let caller = Caller::new(&config);
        for (model, micro_dollars) in [("own-model", 10), ("second", 50)] {
            let said = caller.ask(ask(seat())).await.unwrap();
            assert_eq!((said.model.as_str(), said.usage.micro_dollars), (model, micro_dollars));
            assert_eq!(said.usage.cost_basis, Some(CostBasis::Estimated));
        }
    }

    #[test]
    fn an_estimate_in_a_sum_makes_all_of_it_one() {
        let of = |cost_basis| CallUsage { cost_basis, ..CallUsage::default() };
        let (none, reported, estimated) = (None, Some(CostBasis::Reported), Some(CostBasis::Estimated));
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
    async fn the_time_of_the_whole_runs_from_its_beginning() {
        let server = FakeApi::start([says("fine")]);
        let config = gateway(&server);
        let caller = Caller::new(&config);
        tokio::time::advance(Duration::from_millis(1234)).await;
        assert_eq!(caller.usage().elapsed_ms, 1234);
    }
}
