//! The records of a run: without observability no trace, with it every text, its author and its usage.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use crucible_council::{
    CallUsage, DeltaChoice, DeltaVerdict, EngineConfig, ExecutorResult, Observability, Part,
    TriageContext, TurnKind,
};
use crucible_llm::{LlmInvocation, StructuredOutput};
use crucible_testkit::{CouncilCall, FakeApi, Reply, council_call, simple_triage, triage};
use serde_json::{Value, json};

use crate::debate::{Before, through};
use crate::support::{config, engine};

const GRAMMARS: [&str; 3] = ["parallel", "sequential", "debate"];
const ROLES: [&str; 3] = ["domain_expert", "pragmatist", "creative"];

/// The texts of a server, with the call of each.
type Said = Arc<Mutex<Vec<(CouncilCall, String)>>>;

/// A server whose seats say something different each time, and what it said.
fn talkative(triage: Value) -> (FakeApi, Said) {
    let said = Said::default();
    let kept = Arc::clone(&said);
    let server = FakeApi::answering(move |request| {
        let call = council_call(request);
        let mut kept = kept.lock().unwrap();
        let number = kept.len();
        let answer = match &call {
            CouncilCall::Triage => triage.to_string(),
            CouncilCall::RedTeam => {
                format!("Objection {number}: nobody has counted the costs of this.")
            }
            CouncilCall::Judge => "YES".to_owned(),
            _ => format!("Answer {number}: one program is enough for five people."),
        };
        kept.push((call, answer.clone()));
        Reply::Answer(answer)
    });
    (server, said)
}

async fn run(config: EngineConfig) -> ExecutorResult {
    engine(config)
        .run("Should we split our program?", &TriageContext::none())
        .await
        .unwrap()
}

fn observed(server: &FakeApi) -> EngineConfig {
    EngineConfig {
        observability: Observability::On,
        ..config(server)
    }
}

/// One answer for every call of a kind.
fn plain(triage: Value, position: &'static str, judge: &'static str) -> FakeApi {
    FakeApi::answering(move |request| {
        Reply::Answer(match council_call(request) {
            CouncilCall::Triage => triage.to_string(),
            CouncilCall::RedTeam => {
                "The costs are not counted, and nobody says who pays them.".to_owned()
            }
            CouncilCall::Judge => judge.to_owned(),
            CouncilCall::Synthesis | CouncilCall::Direct => "Keep one program.".to_owned(),
            CouncilCall::Seat(_) | CouncilCall::Defense(_) => position.to_owned(),
        })
    })
}

#[tokio::test]
async fn observability_off_still_counts_parts() {
    for grammar in GRAMMARS {
        let (server, _) = talkative(triage(grammar, &ROLES));
        let result = run(config(&server)).await;
        assert!(
            result.reasoning_trace.is_none() && result.triage.is_none(),
            "{grammar}"
        );
        let by_part: u64 = result.usage_by_part.values().map(|usage| usage.calls).sum();
        assert_eq!(
            by_part, result.usage.calls,
            "{grammar}: what each part took is always told"
        );
        assert_eq!(result.loops_executed, 3, "{grammar}");
        assert_eq!(
            result.usage.calls,
            server.completions().len() as u64,
            "{grammar}"
        );
        let json = serde_json::to_value(&result).unwrap();
        assert_eq!(
            (&json["reasoning_trace"], &json["triage"]),
            (&Value::Null, &Value::Null),
            "{grammar}"
        );
    }
}

#[tokio::test]
async fn observability_on_records_every_turn() {
    for grammar in GRAMMARS {
        let (server, said) = talkative(triage(grammar, &ROLES));
        let result = run(observed(&server)).await;
        let trace = result.reasoning_trace.as_ref().unwrap();
        let numbers: Vec<u32> = trace.iter().map(|record| record.loop_number).collect();
        assert_eq!(numbers, [1, 2, 3], "{grammar}");

        let mut messages: Vec<(String, String)> = Vec::new();
        for turn in trace.iter().flat_map(|record| &record.turns) {
            let kind = match turn.kind {
                TurnKind::Position => "position of",
                TurnKind::Critique => "critique of",
                TurnKind::Defense => "defence of",
            };
            messages.push((
                format!("{kind} {}", turn.seat),
                turn.text.as_str().to_owned(),
            ));
            assert_eq!(turn.model, "fake-model", "{grammar}");
            assert_eq!(
                (turn.usage.calls, turn.usage.calls_without_tokens),
                (1, 0),
                "{grammar}"
            );
            assert!(
                turn.usage.tokens_input > 0 && turn.usage.tokens_output > 0,
                "{grammar}"
            );
        }
        let mut heard: Vec<(String, String)> = Vec::new();
        for (call, answer) in said.lock().unwrap().iter() {
            let by = match call {
                CouncilCall::Seat(seat) => format!("position of {seat}"),
                CouncilCall::Defense(seat) => format!("defence of {seat}"),
                CouncilCall::RedTeam => "critique of red_team".to_owned(),
                CouncilCall::Triage
                | CouncilCall::Direct
                | CouncilCall::Judge
                | CouncilCall::Synthesis => {
                    continue;
                }
            };
            heard.push((by, answer.clone()));
        }
        assert!(heard.len() >= 12, "{grammar}: {}", heard.len());
        messages.sort();
        heard.sort();
        assert_eq!(messages, heard, "{grammar}");
    }
}

#[tokio::test]
async fn record_has_last_positions_and_critique() {
    for grammar in GRAMMARS {
        let (server, _) = talkative(triage(grammar, &ROLES));
        for record in run(observed(&server)).await.reasoning_trace.unwrap() {
            assert_eq!(record.council_responses.len(), 3, "{grammar}");
            for (seat, position) in &record.council_responses {
                let last = record
                    .turns
                    .iter()
                    .rfind(|turn| turn.seat == *seat)
                    .unwrap();
                assert_eq!(last.text.as_str(), position.as_str(), "{grammar} {seat}");
            }
            let last = record
                .turns
                .iter()
                .rfind(|turn| turn.kind == TurnKind::Critique)
                .unwrap();
            assert_eq!(
                last.text.as_str(),
                record.red_team_critique.as_str(),
                "{grammar}"
            );
            assert_eq!(
                record.resemblance_to_prior.len(),
                if record.loop_number == 1 { 0 } else { 3 },
                "{grammar}"
            );
            assert_eq!(record.targets.is_empty(), grammar != "debate", "{grammar}");
        }
    }
}

#[tokio::test]
async fn trace_has_triage_configuration() {
    let server = plain(triage("debate", &ROLES), "Keep it.", "YES");
    let json = serde_json::to_value(run(observed(&server)).await.triage.unwrap()).unwrap();
    assert_eq!(json, triage("debate", &ROLES));
}

#[tokio::test]
async fn run_usage_is_sum_of_parts() {
    for grammar in GRAMMARS {
        let mut configured = triage(grammar, &ROLES);
        configured["allow_early_exit"] = true.into();
        let (server, _) = talkative(configured);
        let result = run(observed(&server)).await;
        let parts = result.usage_by_part;
        let names: Vec<String> = parts.keys().map(Part::to_string).collect();
        let expected = [
            "triage",
            "domain_expert",
            "pragmatist",
            "creative",
            "red_team",
            "judge",
            "synthesis",
        ];
        assert_eq!(names, expected, "{grammar}");
        let sum = |of: fn(&CallUsage) -> u64| parts.values().map(of).sum::<u64>();
        let full_call_usage = result.usage;
        assert_eq!(
            full_call_usage.calls,
            server.completions().len() as u64,
            "{grammar}"
        );
        assert_eq!(full_call_usage.calls, sum(|part| part.calls), "{grammar}");
        assert_eq!(
            full_call_usage.tokens_input,
            sum(|part| part.tokens_input),
            "{grammar}"
        );
        assert_eq!(
            full_call_usage.tokens_output,
            sum(|part| part.tokens_output),
            "{grammar}"
        );
        assert_eq!(
            full_call_usage.calls_without_tokens,
            sum(|part| part.calls_without_tokens),
            "{grammar}"
        );
        assert_eq!(
            full_call_usage.micro_dollars,
            sum(|part| part.micro_dollars),
            "{grammar}"
        );
        assert_eq!(
            full_call_usage.calls_without_cost,
            sum(|part| part.calls_without_cost),
            "{grammar}"
        );
        let sent: usize = server
            .completions()
            .iter()
            .map(crucible_testkit::SeenRequest::prompt_tokens)
            .sum();
        assert_eq!(full_call_usage.tokens_input, sent as u64, "{grammar}");
    }
}

#[tokio::test]
async fn seat_usage_is_sum_of_turns() {
    let (server, _) = talkative(triage("debate", &ROLES));
    let result = run(observed(&server)).await;
    let mut by_seat: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for turn in result
        .reasoning_trace
        .unwrap()
        .iter()
        .flat_map(|record| &record.turns)
    {
        let (calls, tokens) = by_seat.entry(turn.seat.to_string()).or_default();
        *calls += turn.usage.calls;
        *tokens += turn.usage.tokens_input;
    }
    assert_eq!(by_seat.len(), 4);
    for (part, took) in result.usage_by_part {
        if let Part::Seat(seat) = part {
            assert_eq!(
                by_seat[&seat.to_string()],
                (took.calls, took.tokens_input),
                "{seat}"
            );
        }
    }
}

#[tokio::test]
async fn unreported_usage_is_counted_as_unknown() {
    let configured = triage("parallel", &ROLES);
    let server = FakeApi::answering(move |request| {
        let call = council_call(request);
        if let CouncilCall::Seat(_) = call {
            let message = json!({"role": "assistant", "content": "Keep it."});
            let body = json!({"model": "fake-model", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]});
            return Reply::Raw(200, body.to_string().into_bytes());
        }
        Reply::Answer(if call == CouncilCall::Triage {
            configured.to_string()
        } else {
            "Who pays for it, and when?".to_owned()
        })
    });
    let result = run(observed(&server)).await;
    let seats = result
        .usage_by_part
        .into_iter()
        .filter(|(part, _)| part.to_string() == "pragmatist");
    let (_, took) = seats.into_iter().next().unwrap();
    let silent = CallUsage {
        calls: 3,
        attempts: 3,
        calls_without_tokens: 3,
        calls_without_cost: 3,
        elapsed_ms: took.elapsed_ms,
        ..CallUsage::default()
    };
    assert_eq!(took, silent);
    assert_eq!(result.usage.calls_without_tokens, 9);
    assert_eq!(
        result.usage.calls_without_cost, result.usage.calls,
        "nobody names a price"
    );
    assert_eq!(result.usage.cost_basis, None);
}

#[tokio::test]
async fn failed_call_is_counted_and_noted() {
    let configured = triage("parallel", &ROLES);
    let server = FakeApi::answering(move |request| match council_call(request) {
        CouncilCall::Triage => Reply::Answer(configured.to_string()),
        CouncilCall::Seat(seat) if seat == "creative" => Reply::Status(400),
        _ => Reply::Answer("Who pays for it, and when?".to_owned()),
    });
    let result = run(observed(&server)).await;
    let parts = result.usage_by_part;
    let creative = parts
        .iter()
        .find(|(part, _)| part.to_string() == "creative")
        .unwrap()
        .1;
    assert_eq!(
        (
            creative.calls,
            creative.calls_without_tokens,
            creative.tokens_input
        ),
        (3, 3, 0)
    );
    for record in result.reasoning_trace.unwrap() {
        assert!(
            record
                .turns
                .iter()
                .all(|turn| turn.seat.to_string() != "creative")
        );
        assert_eq!(record.council_responses.len(), 2);
    }
    let degradations = serde_json::to_value(&result.degradations).unwrap();
    for (degradation, number) in degradations.as_array().unwrap().iter().zip(1..=3) {
        let detail = degradation["detail"].as_str().unwrap();
        assert!(detail.contains("400"), "{detail}");
        let expected = json!({"loop_number": number, "part": "creative", "kind": "seat_missing", "detail": detail});
        assert_eq!(*degradation, expected);
    }
    assert_eq!(result.degradations.len(), 3);
}

#[tokio::test]
async fn identical_answers_of_one_model_are_visible() {
    let roles = ["synthesizer", "domain_expert", "pragmatist", "creative"];
    let server = plain(
        triage("parallel", &roles),
        "Keep one program and measure it for a quarter.",
        "YES",
    );
    for record in run(observed(&server)).await.reasoning_trace.unwrap() {
        let independence = record.independence;
        assert_eq!(independence.pairwise_similarity.len(), 6);
        assert!(
            independence
                .pairwise_similarity
                .iter()
                .all(|pair| (pair.similarity - 1.0).abs() < 1e-9)
        );
        assert_eq!(
            (independence.mean_similarity, independence.distinct_models),
            (Some(1.0), 1)
        );
        assert_eq!(
            independence.moved_to_majority,
            if record.loop_number == 1 {
                None
            } else {
                Some(0)
            }
        );
    }
}

#[tokio::test]
async fn yielding_seat_counts_as_moved() {
    let roles = ["synthesizer", "domain_expert", "pragmatist", "creative"];
    let configured = triage("parallel", &roles);
    let mut calls_of_creative = 0;
    let server = FakeApi::answering(move |request| {
        Reply::Answer(match council_call(request) {
            CouncilCall::Triage => configured.to_string(),
            CouncilCall::Seat(seat) if seat == "creative" && calls_of_creative == 0 => {
                calls_of_creative += 1;
                "Split the whole thing into services right away.".to_owned()
            }
            _ => "Keep one program and measure it for a quarter.".to_owned(),
        })
    });
    let result = run(observed(&server)).await;
    let trace = result.reasoning_trace.unwrap();
    let moved: Vec<Option<u32>> = trace
        .iter()
        .map(|record| record.independence.moved_to_majority)
        .collect();
    assert_eq!(moved, [None, Some(1), Some(0)]);
    let means: Vec<Option<f64>> = trace
        .iter()
        .map(|record| record.independence.mean_similarity)
        .collect();
    assert_eq!(means, [Some(0.5), Some(1.0), Some(1.0)]);
    let kept: Vec<Vec<f64>> = trace
        .iter()
        .map(|record| record.resemblance_to_prior.values().copied().collect())
        .collect();
    assert_eq!(kept, [vec![], vec![1.0, 1.0, 1.0, 0.0], vec![1.0; 4]]);
}

#[tokio::test]
async fn models_are_counted_by_reported_name() {
    let mut configured = triage("parallel", &ROLES);
    configured["council"][1]["model_hint"] = "other-model".into();
    let server = plain(configured, "Keep it.", "YES");
    let hinted = crucible_council::HintedModels::Only(vec!["other-model".to_owned()]);
    let result = run(EngineConfig {
        hinted_models: hinted,
        ..observed(&server)
    })
    .await;
    for record in result.reasoning_trace.unwrap() {
        assert_eq!(record.independence.distinct_models, 2);
        let by: Vec<&str> = record
            .turns
            .iter()
            .filter(|turn| turn.seat.to_string() == "pragmatist")
            .map(|turn| turn.model.as_str())
            .collect();
        assert_eq!(by, ["other-model"]);
    }
}

#[tokio::test]
async fn delta_verdict_is_in_its_loops_record() {
    let mut configured = triage("parallel", &ROLES);
    configured["allow_early_exit"] = true.into();
    configured["loop_count"] = 4.into();
    let server = plain(configured, "Keep it.", "NO");
    let result = run(observed(&server)).await;
    assert_eq!((result.loops_executed, result.early_exit), (2, true));
    let messages: Vec<(bool, Option<DeltaVerdict>)> = result
        .reasoning_trace
        .unwrap()
        .into_iter()
        .map(|record| (record.delta_detected, record.delta))
        .collect();
    assert_eq!(
        messages,
        [(true, None), (false, Some(DeltaVerdict::Unchanged))]
    );
}

#[tokio::test]
async fn record_has_outcomes_after_attack() {
    const FIRST: &str = "Split the whole thing into services right away.";
    const KEPT: &str = "Keep one program and measure it for a quarter.";
    // `creative` gives up its first answers later; all others keep one position. `pragmatist` gives no
    // defence.
    let outcomes = async |grammar: &str| {
        let configured = triage(grammar, &ROLES);
        let mut calls_of_creative = 0;
        let is_debate = grammar == "debate";
        let server = FakeApi::answering(move |request| match council_call(request) {
            CouncilCall::Triage => Reply::Answer(configured.to_string()),
            CouncilCall::Seat(seat)
                if seat == "creative" && (is_debate || calls_of_creative == 0) =>
            {
                calls_of_creative += 1;
                Reply::Answer(FIRST.to_owned())
            }
            CouncilCall::Defense(seat) if seat == "pragmatist" => Reply::Status(400),
            CouncilCall::RedTeam if is_debate => Reply::Answer(
                r#"{"critique":"Who pays?","targets":["pragmatist","creative"]}"#.to_owned(),
            ),
            _ => Reply::Answer(KEPT.to_owned()),
        });
        let trace = serde_json::to_value(run(observed(&server)).await.reasoning_trace).unwrap();
        trace
            .as_array()
            .unwrap()
            .iter()
            .map(|record| record["after_attack"].clone())
            .collect::<Vec<_>>()
    };
    let told =
        |words: [&str; 3]| json!({ROLES[0]: words[0], ROLES[1]: words[1], ROLES[2]: words[2]});
    let (held, last) = (told(["held"; 3]), told(["not_asked_again"; 3]));
    assert_eq!(
        outcomes("parallel").await,
        [told(["held", "held", "changed"]), held.clone(), last]
    );
    let (replaced, ended) = (
        told(["held", "changed", "changed"]),
        told(["held", "held", "not_asked_again"]),
    );
    assert_eq!(outcomes("sequential").await, [replaced, held, ended]);
    let defended = told(["not_attacked", "no_answer", "changed"]);
    assert_eq!(
        outcomes("debate").await,
        vec![defended; 3],
        "in a debate each loop tells it, the first one too"
    );
}

#[tokio::test]
async fn debate_record_has_no_majority_figure() {
    for (grammar, expected) in [
        ("parallel", Some(0)),
        ("sequential", Some(0)),
        ("debate", None),
    ] {
        let server = plain(
            triage(grammar, &ROLES),
            "Keep one program and measure it for a quarter.",
            "YES",
        );
        let trace = run(observed(&server)).await.reasoning_trace.unwrap();
        let moved: Vec<_> = trace
            .iter()
            .map(|record| record.independence.moved_to_majority)
            .collect();
        assert_eq!(moved, [None, expected, expected], "{grammar}");
    }
}

#[tokio::test]
async fn defence_by_other_model_counts_both() {
    let configured = triage("debate", &ROLES);
    let server = FakeApi::answering(move |request| {
        let (model, text) = match council_call(request) {
            CouncilCall::Triage => ("plain", configured.to_string()),
            CouncilCall::Seat(seat) if seat == "pragmatist" => ("first", "Keep it.".to_owned()),
            CouncilCall::Defense(_) => ("second", "Keep it whole.".to_owned()),
            CouncilCall::RedTeam => (
                "third",
                r#"{"critique":"Who pays?","targets":["pragmatist"]}"#.to_owned(),
            ),
            _ => ("plain", "Keep it.".to_owned()),
        };
        let message = json!({"role": "assistant", "content": text});
        let body = json!({"model": model, "choices": [{"index": 0, "finish_reason": "stop", "message": message}]});
        Reply::Raw(200, body.to_string().into_bytes())
    });
    for record in run(observed(&server)).await.reasoning_trace.unwrap() {
        assert_eq!(
            record.independence.distinct_models, 3,
            "plain, first and second"
        );
    }
}

/// Delays the seats' calls, each by its index in this list.
struct Late([&'static str; 4]);

#[async_trait]
impl Before for Late {
    async fn wait(&self, inv: &LlmInvocation) {
        let system = inv.messages[0].content.as_str();
        let place = self
            .0
            .iter()
            .position(|seat| system.contains(&format!("SEAT-MARKER {seat} ")));
        tokio::time::sleep(Duration::from_millis(60 * place.unwrap_or_default() as u64)).await;
    }
}

#[tokio::test]
async fn degradation_order_is_deterministic() {
    let roles = ["synthesizer", "domain_expert", "pragmatist", "creative"];
    let mut backwards = roles;
    backwards.reverse();
    for arriving in [roles, backwards] {
        let mut configured = triage("parallel", &roles);
        configured["loop_count"] = 2.into();
        configured["council"][3]["model_hint"] = "not-allowed".into();
        let server = FakeApi::answering(move |request| match council_call(request) {
            CouncilCall::Triage => Reply::Answer(configured.to_string()),
            CouncilCall::Seat(_) | CouncilCall::Synthesis => {
                Reply::CutAnswer("Keep it, for".to_owned())
            }
            _ => Reply::Answer("Who pays for it, and when?".to_owned()),
        });
        let backend = through(&server, StructuredOutput::JsonSchema, Late(arriving));
        let result = run(EngineConfig {
            backend,
            ..config(&server)
        })
        .await;
        let messages: Vec<String> = result
            .degradations
            .iter()
            .map(|worse| format!("{:?} {} {:?}", worse.loop_number, worse.part, worse.kind))
            .collect();
        let cut = |number: u32| roles.map(|role| format!("Some({number}) {role} AnswerCutShort"));
        let hint = ["None creative HintRefused".to_owned()].into_iter();
        let last = ["None synthesis AnswerCutShort".to_owned()];
        let expected: Vec<String> = hint.chain(cut(1)).chain(cut(2)).chain(last).collect();
        assert_eq!(messages, expected, "arriving as {arriving:?}");
    }
}

#[tokio::test]
async fn bypassed_council_has_empty_trace() {
    let server = plain(simple_triage(), "", "");
    let result = run(observed(&server)).await;
    assert_eq!(result.reasoning_trace.map(|trace| trace.len()), Some(0));
    assert!(result.triage.is_some());
    let parts: Vec<String> = result.usage_by_part.keys().map(Part::to_string).collect();
    assert_eq!(parts, ["triage", "direct_answer"]);
}

#[tokio::test]
async fn seats_of_same_role_have_distinct_names() {
    let server = plain(
        triage("parallel", &["creative", "pragmatist", "creative"]),
        "Keep it.",
        "YES",
    );
    let result = serde_json::to_value(run(observed(&server)).await).unwrap();
    let names = |of: &Value| of.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for record in result["reasoning_trace"].as_array().unwrap() {
        assert_eq!(
            names(&record["council_responses"]),
            ["creative", "creative#2", "pragmatist"]
        );
    }
    let parts = [
        "creative",
        "creative#2",
        "pragmatist",
        "red_team",
        "synthesis",
        "triage",
    ];
    assert_eq!(names(&result["usage_by_part"]), parts);
}

/// The JSON in lines, with placeholders for times and for numbers that depend on the prompt texts.
fn steadied(json: &str) -> String {
    let mut steady = json.to_owned();
    for name in ["\"elapsed_ms\":", "\"tokens_input\":"] {
        let pieces = steady
            .split(name)
            .map(|piece| piece.trim_start_matches(|c: char| c.is_ascii_digit()));
        steady = pieces.collect::<Vec<_>>().join(&format!("{name}[number]"));
    }
    let lines = [
        "\"reasoning_trace\"",
        "{\"loop_number\"",
        "\"turns\"",
        "{\"seat\"",
        "\"usage",
        "\"targets\"",
        "\"triage\":{",
        "{\"role\"",
    ];
    for beginning in lines {
        steady = steady.replace(beginning, &format!("\n{beginning}"));
    }
    steady
}

#[tokio::test]
async fn json_result_with_trace_is_complete() {
    let mut configured = triage("debate", &ROLES[..2]);
    configured["loop_count"] = 2.into();
    let server = FakeApi::answering(move |request| {
        Reply::Answer(match council_call(request) {
            CouncilCall::Triage => configured.to_string(),
            CouncilCall::RedTeam => "TARGETS: pragmatist\nNobody has counted the costs.".to_owned(),
            CouncilCall::Defense(_) => "One program costs less to run than two.".to_owned(),
            CouncilCall::Seat(seat) if seat == "pragmatist" => "One program costs less.".to_owned(),
            CouncilCall::Seat(_) => "One program costs less for five.".to_owned(),
            _ => "Keep one program.".to_owned(),
        })
    });
    let result = run(EngineConfig {
        delta_strategy: DeltaChoice::Never,
        ..observed(&server)
    })
    .await;
    insta::assert_snapshot!(steadied(&serde_json::to_string(&result).unwrap()), @r#"
    {"final_response":"Keep one program.","loops_executed":2,"early_exit":false,
    "reasoning_trace":[
    {"loop_number":1,"council_responses":{"domain_expert":"One program costs less for five.","pragmatist":"One program costs less to run than two."},"red_team_critique":"Nobody has counted the costs.","delta_detected":true,"delta":null,
    "turns":[
    {"seat":"domain_expert","kind":"position","text":"One program costs less for five.","model":"fake-model",
    "usage":{"calls":1,"attempts":1,"tokens_input":[number],"tokens_output":8,"calls_without_tokens":0,"micro_dollars":0,"calls_without_cost":1,"cost_basis":null,"elapsed_ms":[number]}},
    {"seat":"pragmatist","kind":"position","text":"One program costs less.","model":"fake-model",
    "usage":{"calls":1,"attempts":1,"tokens_input":[number],"tokens_output":6,"calls_without_tokens":0,"micro_dollars":0,"calls_without_cost":1,"cost_basis":null,"elapsed_ms":[number]}},
    {"seat":"red_team","kind":"critique","text":"Nobody has counted the costs.","model":"fake-model",
    "usage":{"calls":1,"attempts":1,"tokens_input":[number],"tokens_output":13,"calls_without_tokens":0,"micro_dollars":0,"calls_without_cost":1,"cost_basis":null,"elapsed_ms":[number]}},
    {"seat":"pragmatist","kind":"defense","text":"One program costs less to run than two.","model":"fake-model",
    "usage":{"calls":1,"attempts":1,"tokens_input":[number],"tokens_output":10,"calls_without_tokens":0,"micro_dollars":0,"calls_without_cost":1,"cost_basis":null,"elapsed_ms":[number]}}],
    "targets":["pragmatist"],"after_attack":{"domain_expert":"not_attacked","pragmatist":"changed"},"resemblance_to_prior":{},"independence":{"pairwise_similarity":[{"first":"domain_expert","second":"pragmatist","similarity":0.3333}],"mean_similarity":0.3333,"moved_to_majority":null,"distinct_models":1}},
    {"loop_number":2,"council_responses":{"domain_expert":"One program costs less for five.","pragmatist":"One program costs less to run than two."},"red_team_critique":"Nobody has counted the costs.","delta_detected":true,"delta":null,
    "turns":[
    {"seat":"domain_expert","kind":"position","text":"One program costs less for five.","model":"fake-model",
    "usage":{"calls":1,"attempts":1,"tokens_input":[number],"tokens_output":8,"calls_without_tokens":0,"micro_dollars":0,"calls_without_cost":1,"cost_basis":null,"elapsed_ms":[number]}},
    {"seat":"pragmatist","kind":"position","text":"One program costs less.","model":"fake-model",
    "usage":{"calls":1,"attempts":1,"tokens_input":[number],"tokens_output":6,"calls_without_tokens":0,"micro_dollars":0,"calls_without_cost":1,"cost_basis":null,"elapsed_ms":[number]}},
    {"seat":"red_team","kind":"critique","text":"Nobody has counted the costs.","model":"fake-model",
    "usage":{"calls":1,"attempts":1,"tokens_input":[number],"tokens_output":13,"calls_without_tokens":0,"micro_dollars":0,"calls_without_cost":1,"cost_basis":null,"elapsed_ms":[number]}},
    {"seat":"pragmatist","kind":"defense","text":"One program costs less to run than two.","model":"fake-model",
    "usage":{"calls":1,"attempts":1,"tokens_input":[number],"tokens_output":10,"calls_without_tokens":0,"micro_dollars":0,"calls_without_cost":1,"cost_basis":null,"elapsed_ms":[number]}}],
    "targets":["pragmatist"],"after_attack":{"domain_expert":"not_attacked","pragmatist":"changed"},"resemblance_to_prior":{"domain_expert":1.0,"pragmatist":1.0},"independence":{"pairwise_similarity":[{"first":"domain_expert","second":"pragmatist","similarity":0.3333}],"mean_similarity":0.3333,"moved_to_majority":null,"distinct_models":1}}],
    "triage":{"reconstructed_query":"Should this team of five split its one program into services?","complexity":"complex","short_circuit_allowed":false,"council":[
    {"role":"domain_expert","system_prompt":"SEAT-MARKER domain_expert speaks for what domain_expert stands for.","model_hint":null},
    {"role":"pragmatist","system_prompt":"SEAT-MARKER pragmatist speaks for what pragmatist stands for.","model_hint":null},
    {"role":"red_team","system_prompt":"Look at the costs.","model_hint":null}],"loop_grammar":"debate","loop_count":2,"red_team_flavor":"feasibility","allow_early_exit":false,"synthesis_instruction":"Two paragraphs, the recommendation first."},"degradations":[],
    "usage":{"calls":10,"attempts":10,"tokens_input":[number],"tokens_output":239,"calls_without_tokens":0,"micro_dollars":0,"calls_without_cost":10,"cost_basis":null,"elapsed_ms":[number]},
    "usage_by_part":{
    "triage":{"calls":1,"attempts":1,"tokens_input":[number],"tokens_output":160,"calls_without_tokens":0,"micro_dollars":0,"calls_without_cost":1,"cost_basis":null,"elapsed_ms":[number]},"domain_expert":{"calls":2,"attempts":2,"tokens_input":[number],"tokens_output":16,"calls_without_tokens":0,"micro_dollars":0,"calls_without_cost":2,"cost_basis":null,"elapsed_ms":[number]},"pragmatist":{"calls":4,"attempts":4,"tokens_input":[number],"tokens_output":32,"calls_without_tokens":0,"micro_dollars":0,"calls_without_cost":4,"cost_basis":null,"elapsed_ms":[number]},"red_team":{"calls":2,"attempts":2,"tokens_input":[number],"tokens_output":26,"calls_without_tokens":0,"micro_dollars":0,"calls_without_cost":2,"cost_basis":null,"elapsed_ms":[number]},"synthesis":{"calls":1,"attempts":1,"tokens_input":[number],"tokens_output":5,"calls_without_tokens":0,"micro_dollars":0,"calls_without_cost":1,"cost_basis":null,"elapsed_ms":[number]}}}
    "#);
}
