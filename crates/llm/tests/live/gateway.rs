//! `gateway` against a real server with a real model.

use std::sync::Arc;

use crucible_llm::{
    BudgetLimits, CallBudget, CassetteHeader, CassetteWriter, Finish, Limit, LlmBackend, Message,
    ProviderSettings, Recording, Reuse, construct,
};
use crucible_model::{PromptBuilder, Untrusted};
use serde_json::{Value, json};

use crate::support::{MAX_TOKENS, NO_LIMITS, Summary, ask, client, context, gateway};

#[tokio::test]
async fn plain_question_gets_whole_answer() {
    let mut summary = Summary::new("plain answer", "the capital of France");
    let result = gateway()
        .invoke(ask("What is the capital of France?"))
        .await
        .unwrap();
    summary.answered(&result);
    assert!(
        result.complete_answer().unwrap().as_str().contains("Paris"),
        "{}",
        result.raw_response
    );
    assert_eq!(result.finish(), Finish::Complete);
    assert_eq!(result.provider, "gateway");
    let (input, output) = (result.tokens_input.unwrap(), result.tokens_output.unwrap());
    assert!(
        input >= 10 && (1..=MAX_TOKENS).contains(&output),
        "{input} {output}"
    );
    summary.passed("whole, names Paris, tokens reported");
}

#[tokio::test]
async fn a_schema_holds_the_answer_to_its_form() {
    let mut summary = Summary::new(
        "held to a schema",
        "two facts as an object of a JSON Schema",
    );
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 20},
            "population_in_millions": {"type": "integer"},
            "continent": {"enum": ["Africa", "Asia", "Europe"]},
        },
        "required": ["city", "population_in_millions", "continent"],
        "additionalProperties": false,
    });
    let mut inv = ask("Tell me about Paris.");
    let format = json!({"type": "json_schema", "json_schema": {"name": "city", "strict": true, "schema": schema}});
    inv.metadata.insert("response_format".to_owned(), format);
    let result = gateway().invoke(inv).await.unwrap();
    summary.answered(&result);
    let answer: Value = serde_json::from_str(result.complete_answer().unwrap().as_str()).unwrap();
    let fields = answer.as_object().unwrap();
    assert_eq!(fields.len(), 3, "{answer}");
    assert!(
        fields["city"].is_string() && fields["population_in_millions"].is_i64(),
        "{answer}"
    );
    assert!(
        ["Africa", "Asia", "Europe"].contains(&fields["continent"].as_str().unwrap()),
        "{answer}"
    );
    summary.passed("parses, has the three fields and no other");
}

/// The one prompt longer than 256 tokens: the server refuses it before the model sees it.
#[tokio::test]
async fn a_prompt_beyond_the_context_is_unsupported() {
    let summary = Summary::new(
        "too long a prompt",
        "20,000 words, refused before the model sees one",
    );
    let mut inv = ask("Sum this up.");
    let text = Untrusted::new("word ".repeat(20_000));
    inv.messages.push(Message::user(
        PromptBuilder::new().untrusted("text", &text).build(),
    ));
    let error = gateway().invoke(inv).await.unwrap_err();
    assert_eq!(error.class(), "unsupported", "{error}");
    let message = error.to_string();
    assert!(
        message.contains("context") && !message.contains("word word"),
        "{message}"
    );
    summary.passed("refused as unsupported");
}

#[tokio::test]
async fn live_answer_at_limit_is_cut_off() {
    let mut summary = Summary::new("cut at its limit", "to count to fifty in six tokens");
    let mut inv = ask("Count from 1 to 50, separated by commas.");
    inv.metadata.insert("max_tokens".to_owned(), json!(6));
    let result = gateway().invoke(inv).await.unwrap();
    summary.answered(&result);
    assert_eq!(result.tokens_output, Some(6));
    assert_eq!(result.finish(), Finish::Truncated);
    assert!(result.complete_answer().is_err());
    summary.passed("said to be cut short");
}

#[tokio::test]
async fn the_budget_settles_with_what_the_server_counted() {
    let mut summary = Summary::new("budget", "two words, then once more over the budget");
    let budget = CallBudget::new(BudgetLimits {
        tokens: Limit::At(400),
        ..NO_LIMITS
    });
    let client = client(gateway(), Recording::Off, &budget);
    let result = client.call(ask("Say hello.")).await.unwrap();
    summary.answered(&result);
    let counted = result.tokens_input.unwrap() + result.tokens_output.unwrap();
    let used = budget.used().unwrap();
    assert_eq!((used.calls, used.tokens), (1, counted));

    // The worst case of the call exceeds the rest of the budget, so it is not sent.
    let mut greedy = ask("Say hello.");
    greedy
        .metadata
        .insert("max_tokens".to_owned(), json!(400 - counted));
    let error = client.call(greedy).await.unwrap_err();
    assert!(
        error.to_string().starts_with("LLM budget exhausted"),
        "{error}"
    );
    assert_eq!(budget.used().unwrap(), used);
    summary.passed("settled to the counted tokens; the next call refused unsent");
}

#[tokio::test]
async fn recorded_calls_replay_equal_from_file_alone() {
    let mut summary = Summary::new("record and replay", "a colour and an animal");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cassette.jsonl");
    let live = gateway();
    let header = CassetteHeader::new("gateway", live.default_model(), live.capabilities());
    let writer = Arc::new(CassetteWriter::open(&path, &header, Reuse::Nothing).unwrap());
    let live = client(live, Recording::To(writer), &CallBudget::new(NO_LIMITS));
    let questions = ["Name a colour.", "Name an animal."];
    let mut llm_results = Vec::new();
    for question in questions {
        let result = live.call(ask(question)).await.unwrap();
        summary.answered(&result);
        llm_results.push(result);
    }
    assert_ne!(llm_results[0].raw_response, llm_results[1].raw_response);

    let settings = ProviderSettings {
        cassette: Some(path.into()),
        ..ProviderSettings::default()
    };
    let replay = construct("replay", &settings, &context(("UNUSED", ""))).unwrap();
    let replay = client(replay, Recording::Off, &CallBudget::new(NO_LIMITS));
    // In reverse order, so that the question determines the answer.
    for (question, llm_result) in questions.into_iter().zip(llm_results).rev() {
        assert_eq!(replay.call(ask(question)).await.unwrap(), llm_result);
    }
    assert!(
        replay.call(ask(questions[0])).await.is_err(),
        "it was asked once only"
    );
    summary.passed("both answers replay equal; asking once more is refused");
}
