//! The debate grammar with a test server: attacks, defences, and the positions at the end of a loop.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use crucible_council::{
    AfterAttack, CouncilError, DegradationKind, DeltaChoice, DeltaVerdict, EngineConfig,
    ExecutorResult, Observability, TriageContext, TurnKind,
};
use crucible_llm::{
    Backend, BackendParts, Capabilities, ClientExtra, LlmBackend, LlmError, LlmInvocation,
    LlmResult, Origin, Speaker, StructuredOutput,
};
use crucible_model::EditFormat;
use crucible_testkit::{
    CouncilCall, FakeApi, Reply, SeenRequest, council_call, made_up_token, triage,
};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::support;

const SEATS: [&str; 3] = ["domain_expert", "pragmatist", "creative"];

/// A two-loop council of these seats, whose red team gives this answer; all other answers name their
/// speaker and kind.
fn debating(roles: &'static [&'static str], attack: &'static str) -> FakeApi {
    failing(roles, attack, |_| None)
}

/// The same, except for calls with another reply.
fn failing(
    roles: &'static [&'static str],
    attack: &'static str,
    mut other: impl FnMut(&CouncilCall) -> Option<Reply> + Send + 'static,
) -> FakeApi {
    FakeApi::answering(move |request| {
        let call = council_call(request);
        other(&call).unwrap_or_else(|| Reply::Answer(reply_for(&call, roles, attack)))
    })
}

fn reply_for(call: &CouncilCall, roles: &[&str], attack: &str) -> String {
    match call {
        CouncilCall::Triage => {
            let mut triage = triage("debate", roles);
            triage["loop_count"] = 2.into();
            triage.to_string()
        }
        CouncilCall::Seat(seat) => format!("{seat} holds this."),
        CouncilCall::Defense(seat) => format!("{seat} defends this."),
        CouncilCall::RedTeam => attack.to_owned(),
        CouncilCall::Judge => "YES".to_owned(),
        CouncilCall::Synthesis | CouncilCall::Direct => "Do not split it yet.".to_owned(),
    }
}

fn watched(server: &FakeApi) -> EngineConfig {
    EngineConfig {
        observability: Observability::On,
        ..support::config(server)
    }
}

async fn run(config: EngineConfig) -> Result<ExecutorResult, CouncilError> {
    let ended = support::engine(config)
        .run("Should we split it?", &TriageContext::none())
        .await;
    ended.map_err(|failure| *failure.error)
}

/// The seats that got requests of this kind, sorted within each run of the same kind.
fn of_kind(server: &FakeApi, kind: impl Fn(&CouncilCall) -> bool) -> Vec<SeenRequest> {
    server
        .completions()
        .into_iter()
        .filter(|request| kind(&council_call(request)))
        .collect()
}

fn defended(server: &FakeApi) -> Vec<String> {
    let mut names: Vec<String> = of_kind(server, |call| matches!(call, CouncilCall::Defense(_)))
        .iter()
        .map(|request| match council_call(request) {
            CouncilCall::Defense(seat) => seat,
            other => panic!("{other:?}"),
        })
        .collect();
    names.sort();
    names
}

fn attacks(server: &FakeApi) -> Vec<SeenRequest> {
    of_kind(server, |call| *call == CouncilCall::RedTeam)
}

fn text(request: &SeenRequest, message: usize) -> String {
    request.body["messages"][message]["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Each seat's position at the end of a loop.
fn positions(result: &ExecutorResult, loop_number: usize) -> Vec<(String, String)> {
    let record = &result.reasoning_trace.as_ref().unwrap()[loop_number - 1];
    let said = record.council_responses.iter();
    said.map(|(seat, position)| (seat.to_string(), position.as_str().to_owned()))
        .collect()
}

fn pair(seat: &str, position: &str) -> (String, String) {
    (seat.to_owned(), position.to_owned())
}

#[tokio::test]
async fn attacked_seats_defend_and_replace_positions() {
    let server = debating(
        &SEATS,
        r#"{"critique":"It costs far too much money.","targets":["pragmatist"]}"#,
    );
    let result = run(watched(&server)).await.unwrap();
    assert_eq!(
        defended(&server),
        ["pragmatist", "pragmatist"],
        "once in each loop"
    );
    for number in [1, 2] {
        let expected = [
            pair("domain_expert", "domain_expert holds this."),
            pair("pragmatist", "pragmatist defends this."),
            pair("creative", "creative holds this."),
        ];
        let mut found = positions(&result, number);
        found.sort();
        let mut expected = expected.to_vec();
        expected.sort();
        assert_eq!(found, expected);
        let record = &result.reasoning_trace.as_ref().unwrap()[number - 1];
        assert_eq!(
            record.red_team_critique.as_str(),
            "It costs far too much money."
        );
        assert_eq!(
            record
                .targets
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
            ["pragmatist"]
        );
        let turns: Vec<(String, TurnKind)> = record
            .turns
            .iter()
            .map(|turn| (turn.seat.to_string(), turn.kind))
            .collect();
        let turn = |seat: &str, kind| (seat.to_owned(), kind);
        assert_eq!(
            turns,
            [
                turn("domain_expert", TurnKind::Position),
                turn("pragmatist", TurnKind::Position),
                turn("creative", TurnKind::Position),
                turn("red_team", TurnKind::Critique),
                turn("pragmatist", TurnKind::Defense),
            ]
        );
    }
    // The triage, two loops of three positions, one attack and one defence, and the synthesis.
    assert_eq!(server.completions().len(), 1 + 2 * 5 + 1);
    assert!(result.degradations.is_empty(), "{:?}", result.degradations);
}

#[tokio::test]
async fn unknown_target_makes_every_seat_defend() {
    for attack in [
        r#"{"critique":"No, the costs are wrong.","targets":["economist"]}"#,
        r#"{"critique":"No, the costs are wrong.","targets":[]}"#,
        "It fails.",
    ] {
        let server = debating(&SEATS, attack);
        run(watched(&server)).await.unwrap();
        let twice = [
            "creative",
            "creative",
            "domain_expert",
            "domain_expert",
            "pragmatist",
            "pragmatist",
        ];
        assert_eq!(defended(&server), twice, "{attack}");
    }
}

#[tokio::test]
async fn seats_of_same_role_are_attacked_separately() {
    let server = debating(
        &["creative", "creative"],
        r#"{"critique":"No, the costs are wrong.","targets":["creative#2"]}"#,
    );
    let result = run(watched(&server)).await.unwrap();
    assert_eq!(defended(&server), ["creative#2", "creative#2"]);
    let expected = [
        pair("creative", "creative holds this."),
        pair("creative#2", "creative#2 defends this."),
    ];
    assert_eq!(positions(&result, 2), expected);
}

#[tokio::test]
async fn defence_prompt_hides_other_seats() {
    let server = debating(
        &SEATS,
        r#"{"critique":"It costs far too much money.","targets":["pragmatist"]}"#,
    );
    run(support::config(&server)).await.unwrap();
    for request in of_kind(&server, |call| matches!(call, CouncilCall::Defense(_))) {
        assert_eq!(request.body["messages"].as_array().unwrap().len(), 2);
        assert!(text(&request, 0).contains("SEAT-MARKER pragmatist"));
        let prompt = text(&request, 1);
        for content in [
            "Should this team of five split its one program",
            "<<<DATA \"your position\"",
            "pragmatist holds this.",
            "<<<DATA \"critique\"",
            "It costs far too much money.",
            "Defend your position",
        ] {
            assert!(prompt.contains(content), "{content}");
        }
        assert!(
            !prompt.contains("domain_expert") && !prompt.contains("creative"),
            "{prompt}"
        );
    }
}

/// The position prompt equals that of the first loop, literally, in every loop.
#[tokio::test]
async fn later_debate_loop_starts_afresh() {
    let server = debating(
        &SEATS,
        r#"{"critique":"It costs far too much money.","targets":["pragmatist"]}"#,
    );
    run(support::config(&server)).await.unwrap();
    for name in SEATS {
        let seen_requests = of_kind(&server, |call| *call == CouncilCall::Seat(name.to_owned()));
        let [first, second] = seen_requests.as_slice() else {
            panic!("{name} is asked once in each loop")
        };
        assert_eq!(first.body["messages"], second.body["messages"], "{name}");
        assert_eq!(first.body["messages"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn failed_defence_keeps_position() {
    let server = failing(
        &SEATS,
        r#"{"critique":"No, the costs are wrong.","targets":["pragmatist","creative"]}"#,
        |call| {
            (*call == CouncilCall::Defense("pragmatist".to_owned())).then_some(Reply::Status(400))
        },
    );
    let result = run(watched(&server)).await.unwrap();
    let mut found = positions(&result, 1);
    found.sort();
    let expected = [
        pair("creative", "creative defends this."),
        pair("domain_expert", "domain_expert holds this."),
        pair("pragmatist", "pragmatist holds this."),
    ];
    assert_eq!(found, expected);
    let noted: Vec<_> = (result.degradations.iter())
        .map(|degradation| {
            (
                degradation.kind,
                degradation.loop_number,
                degradation.part.to_string(),
            )
        })
        .collect();
    let missing = |number| {
        (
            DegradationKind::DefenseMissing,
            Some(number),
            "pragmatist".to_owned(),
        )
    };
    assert_eq!(noted, [missing(1), missing(2)]);
    assert!(
        !result.degradations[0].detail.is_empty(),
        "the reason is told"
    );
}

#[tokio::test]
async fn debate_without_defences_continues() {
    let server = failing(&SEATS, "All of it fails in winter.", |call| {
        matches!(call, CouncilCall::Defense(_)).then_some(Reply::Status(400))
    });
    let result = run(watched(&server)).await.unwrap();
    assert_eq!(result.loops_executed, 2);
    assert_eq!(result.degradations.len(), 6);
    assert!(
        positions(&result, 2)
            .iter()
            .all(|(_, position)| position.ends_with("holds this."))
    );
}

#[tokio::test]
async fn seat_without_position_is_not_attacked() {
    let mut failures = 1;
    let server = failing(
        &SEATS,
        r#"{"critique":"No, the costs are wrong.","targets":["creative"]}"#,
        move |call| {
            let fails = *call == CouncilCall::Seat("creative".to_owned()) && failures > 0;
            fails.then(|| {
                failures -= 1;
                Reply::Status(400)
            })
        },
    );
    let result = run(watched(&server)).await.unwrap();
    let [first, second] = attacks(&server).try_into().unwrap();
    let names = |request: &SeenRequest| {
        request.body["response_format"]["json_schema"]["schema"]["properties"]["targets"]["items"]["enum"]
            .clone()
    };
    assert_eq!(names(&first), json!(["domain_expert", "pragmatist"]));
    assert_eq!(names(&second), json!(SEATS));
    assert!(
        !text(&first, 1).contains("creative"),
        "it is not even named"
    );
    // In the first loop its name was not shown, so all seats defend; in the second loop it defends.
    assert_eq!(
        defended(&server),
        ["creative", "domain_expert", "pragmatist"]
    );
    assert_eq!(positions(&result, 1).len(), 2);
    assert_eq!(result.degradations.len(), 1);
    assert_eq!(result.degradations[0].kind, DegradationKind::SeatMissing);
}

#[tokio::test]
async fn debate_with_one_position_fails() {
    let server = failing(&SEATS, "It fails.", |call| match call {
        CouncilCall::Seat(seat) if seat != "creative" => Some(Reply::Status(400)),
        _ => None,
    });
    match run(watched(&server)).await.unwrap_err() {
        CouncilError::TooFewSeats {
            loop_number: 1,
            left: 1,
            seats: 3,
            missing,
        } => {
            assert_eq!(missing.len(), 2)
        }
        other => panic!("{other}"),
    }
    assert!(attacks(&server).is_empty(), "nobody is left to be attacked");
}

#[tokio::test]
async fn structured_output_request_lists_seat_names() {
    let server = debating(
        &SEATS,
        r#"{"critique":"No, the costs are wrong.","targets":["creative"]}"#,
    );
    run(support::config(&server)).await.unwrap();
    for request in attacks(&server) {
        let format = &request.body["response_format"];
        assert_eq!(format["type"], "json_schema");
        assert_eq!(format["json_schema"]["name"], "attack");
        assert_eq!(format["json_schema"]["strict"], true);
        let schema = &format["json_schema"]["schema"];
        assert_eq!(
            schema["properties"]["targets"]["items"]["enum"],
            json!(SEATS)
        );
        assert!(text(&request, 1).contains("one JSON object"));
        assert!(!text(&request, 1).contains("TARGETS:"));
    }
    for request in of_kind(&server, |call| {
        matches!(call, CouncilCall::Seat(_) | CouncilCall::Defense(_))
    }) {
        assert_eq!(request.body["response_format"], Value::Null);
    }
}

/// A backend with these capabilities that passes each call on after `before`.
struct Through<B> {
    inner: Backend,
    before: B,
}

#[async_trait]
pub(crate) trait Before: Send + Sync {
    async fn wait(&self, inv: &LlmInvocation);
}

#[async_trait]
impl<B: Before> LlmBackend for Through<B> {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        self.before.wait(&inv).await;
        self.inner.invoke(inv).await
    }
}

pub(crate) fn through(
    server: &FakeApi,
    structured_output: StructuredOutput,
    before: impl Before + 'static,
) -> Backend {
    let inner = support::gateway(server);
    Backend::new(BackendParts {
        provider: inner.provider(),
        default_model: inner.default_model().to_owned(),
        max_output_tokens: inner.max_output_tokens(),
        extra: ClientExtra::NONE,
        capabilities: Capabilities {
            edit_format: EditFormat::WholeFile,
            structured_output,
        },
        speaker: Speaker {
            provider: inner.provider().to_owned(),
            model: inner.default_model().to_owned(),
        },
        origin: Origin::Live,
        parameters: Default::default(),
        inner: Box::new(Through { inner, before }),
    })
}

struct AtOnce;

#[async_trait]
impl Before for AtOnce {
    async fn wait(&self, _inv: &LlmInvocation) {}
}

#[tokio::test]
async fn schemaless_backend_uses_first_line() {
    let server = debating(
        &SEATS,
        "**Targets:** `Pragmatist` and creative\n\nIt costs far too much money.",
    );
    let backend = through(&server, StructuredOutput::None, AtOnce);
    let config = EngineConfig {
        backend,
        ..watched(&server)
    };
    let result = run(config).await.unwrap();
    for request in attacks(&server) {
        assert_eq!(request.body["response_format"], Value::Null);
        assert!(text(&request, 1).contains("TARGETS: name, name"));
        assert!(!text(&request, 1).contains("JSON"));
    }
    assert_eq!(
        defended(&server),
        ["creative", "creative", "pragmatist", "pragmatist"]
    );
    let critique = &result.reasoning_trace.as_ref().unwrap()[0].red_team_critique;
    assert_eq!(critique.as_str().trim(), "It costs far too much money.");
}

#[tokio::test]
async fn json_mode_backend_gets_shape_in_prompt() {
    let server = debating(
        &SEATS,
        r#"{"critique":"No, the costs are wrong.","targets":["creative"]}"#,
    );
    let backend = through(&server, StructuredOutput::JsonMode, AtOnce);
    run(EngineConfig {
        backend,
        ..watched(&server)
    })
    .await
    .unwrap();
    for request in attacks(&server) {
        assert_eq!(
            request.body["response_format"],
            json!({"type": "json_object"})
        );
        assert!(text(&request, 1).contains("\"targets\""));
    }
    assert_eq!(defended(&server), ["creative", "creative"]);
}

/// Releases the calls of seats only when all seats have called: sequential calls would never finish.
struct Together(Barrier);

#[async_trait]
impl Before for Together {
    async fn wait(&self, inv: &LlmInvocation) {
        if inv.phase_id == "council-seat" {
            self.0.wait().await;
        }
    }
}

#[tokio::test]
async fn positions_and_defences_run_concurrently() {
    let server = debating(&SEATS, "All of it fails in winter.");
    let backend = through(
        &server,
        StructuredOutput::None,
        Together(Barrier::new(SEATS.len())),
    );
    let mut config = EngineConfig {
        backend,
        ..watched(&server)
    };
    config.limits.call_timeout = Duration::from_secs(60);
    let result = tokio::time::timeout(Duration::from_secs(60), run(config))
        .await
        .unwrap()
        .unwrap();
    assert!(result.degradations.is_empty(), "{:?}", result.degradations);
    assert_eq!(defended(&server).len(), 2 * SEATS.len());
}

#[tokio::test]
async fn debate_without_attack_fails() {
    let server = failing(&SEATS, "", |call| {
        (*call == CouncilCall::RedTeam).then_some(Reply::Status(400))
    });
    match run(watched(&server)).await.unwrap_err() {
        CouncilError::Call { part, .. } => assert_eq!(part.to_string(), "red_team"),
        other => panic!("{other}"),
    }
    assert!(defended(&server).is_empty());
}

#[tokio::test]
async fn cut_attack_targets_every_seat() {
    let server = failing(&SEATS, "", |call| {
        let half = r#"{"targets":["creative"],"critique":"It costs"#;
        (*call == CouncilCall::RedTeam).then(|| Reply::CutAnswer(half.to_owned()))
    });
    let result = run(watched(&server)).await.unwrap();
    assert_eq!(defended(&server).len(), 2 * SEATS.len());
    let kinds: Vec<DegradationKind> = result
        .degradations
        .iter()
        .map(|degradation| degradation.kind)
        .collect();
    assert_eq!(kinds, [DegradationKind::AnswerCutShort; 2]);
    let critique = &result.reasoning_trace.as_ref().unwrap()[0].red_team_critique;
    assert!(critique.as_str().ends_with("It costs"), "as far as it goes");
}

#[tokio::test]
async fn synthesis_sees_position_before_defence() {
    let server = debating(
        &SEATS,
        r#"{"critique":"No, the costs are wrong.","targets":["pragmatist"]}"#,
    );
    run(support::config(&server)).await.unwrap();
    let [synthesis] = of_kind(&server, |call| *call == CouncilCall::Synthesis)
        .try_into()
        .unwrap();
    let text = synthesis.conversation();
    assert_eq!(
        text.matches("pragmatist holds this.").count(),
        2,
        "once for each loop"
    );
    assert_eq!(text.matches("pragmatist defends this.").count(), 2);
    assert_eq!(text.matches("creative holds this.").count(), 2);
}

/// A debate of three loops that may end early, in which every seat repeats its position and another seat
/// is attacked in each loop; `stated` may change a position, given how often the seat was asked.
fn settled(stated: impl Fn(&str, usize) -> Option<String> + Send + 'static) -> FakeApi {
    let mut attacks = 0;
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    FakeApi::answering(move |request| {
        Reply::Answer(match council_call(request) {
            CouncilCall::Triage => {
                let mut triage = triage("debate", &SEATS);
                triage["allow_early_exit"] = true.into();
                triage.to_string()
            }
            CouncilCall::RedTeam => {
                attacks += 1;
                format!(
                    "TARGETS: {}\nNobody counted the costs.",
                    SEATS[attacks % SEATS.len()]
                )
            }
            CouncilCall::Defense(seat) => {
                format!(
                    "Under attack the {seat} now holds something entirely different, namely this."
                )
            }
            CouncilCall::Seat(seat) => {
                let times = asked.entry(seat.clone()).or_default();
                *times += 1;
                stated(&seat, *times).unwrap_or_else(|| {
                    format!("{seat} holds on to one program with clear borders.")
                })
            }
            CouncilCall::Judge => "YES".to_owned(),
            _ => "Do not split it yet.".to_owned(),
        })
    })
}

#[tokio::test]
async fn repeated_positions_are_unchanged_despite_attacks() {
    let similarity = || DeltaChoice::TextSimilarity { threshold: 0.9 };
    let server = settled(|_, _| None);
    let result = run(EngineConfig {
        delta_strategy: similarity(),
        ..watched(&server)
    })
    .await
    .unwrap();
    assert_eq!((result.loops_executed, result.early_exit), (2, true));
    let records = result.reasoning_trace.unwrap();
    assert_eq!(records[1].delta, Some(DeltaVerdict::Unchanged));
    assert_ne!(
        records[0].targets, records[1].targets,
        "the attack moved on"
    );
    let resemblance: Vec<f64> = records[1].resemblance_to_prior.values().copied().collect();
    assert_eq!(resemblance, [1.0; 3]);
    let changed = records[1]
        .after_attack
        .values()
        .filter(|became| **became == AfterAttack::Changed)
        .count();
    assert_eq!(changed, 1, "what the attack did is told there");

    // A different position is a change, attacked or not.
    for seat in SEATS {
        let server = settled(move |who, times| {
            (who == seat && times == 2)
                .then(|| "Split it into services at once, whatever that costs.".to_owned())
        });
        let result = run(EngineConfig {
            delta_strategy: similarity(),
            ..watched(&server)
        })
        .await
        .unwrap();
        let records = result.reasoning_trace.unwrap();
        assert_eq!(
            (records.len(), records[1].delta.clone()),
            (3, Some(DeltaVerdict::Changed)),
            "{seat}"
        );
        assert!(
            records[1]
                .resemblance_to_prior
                .iter()
                .any(|(who, same)| who.to_string() == seat && *same < 0.2)
        );
    }
}

#[tokio::test]
async fn judge_sees_positions_without_defences() {
    let server = settled(|_, _| None);
    run(watched(&server)).await.unwrap();
    let judged = of_kind(&server, |call| *call == CouncilCall::Judge);
    assert_eq!(judged.len(), 1);
    let content = text(&judged[0], 1);
    assert_eq!(
        content.matches("holds on to one program").count(),
        2 * SEATS.len(),
        "{content}"
    );
    assert!(!content.contains("Under attack"), "{content}");
}

#[tokio::test]
async fn escaped_secret_in_attack_is_redacted() {
    let key = made_up_token();
    let hidden: String = key
        .chars()
        .map(|c| format!("\\u{:04x}", u32::from(c)))
        .collect();
    let attack = format!(r#"{{"targets": ["creative"], "critique": "The key {hidden} leaks."}}"#);
    for attack in [attack.clone(), format!("```json\n{attack}\n```")] {
        let attack: &'static str = attack.leak();
        let server = debating(&SEATS, attack);
        let result = run(watched(&server)).await.unwrap();
        assert_eq!(
            defended(&server),
            ["creative", "creative"],
            "it is read all the same"
        );
        let text = serde_json::to_string(&result).unwrap();
        assert!(
            !text.contains(&key) && text.contains("The key [secret:"),
            "{text}"
        );
        assert!(
            server
                .requests()
                .iter()
                .all(|request| !request.body.to_string().contains(&key))
        );
        let worse: Vec<_> = result
            .degradations
            .iter()
            .map(|worse| (worse.kind, worse.loop_number))
            .collect();
        assert_eq!(
            worse,
            [1, 2].map(|number| (DegradationKind::AnswerRedacted, Some(number)))
        );
    }
}
