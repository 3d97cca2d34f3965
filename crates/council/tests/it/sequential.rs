//! The sequential grammar in requests: one draft from seat to seat, attacked after each.

use crucible_council::{CouncilError, DegradationKind, EngineConfig, Observability, TriageContext};
use crucible_testkit::{CouncilCall, FakeApi, Reply, fenced_blocks};

use crate::parallel::{calls, loops, seat, sent, server};
use crate::support::{config, engine};

/// A server whose seats and red team number their answers.
fn numbered(
    roles: &[&str],
    silent: impl Fn(&CouncilCall, usize) -> bool + Send + 'static,
) -> FakeApi {
    let (mut drafts, mut attacks) = (0, 0);
    server(loops("sequential", roles, 2), move |call| match call {
        CouncilCall::Seat(name) => {
            drafts += 1;
            let is_silent = silent(call, drafts);
            Some(if is_silent {
                Reply::Status(400)
            } else {
                Reply::Answer(format!("Draft {drafts} of {name}."))
            })
        }
        CouncilCall::RedTeam => {
            attacks += 1;
            Some(Reply::Answer(format!("Attack {attacks} fails here.")))
        }
        _ => None,
    })
}

/// A summary of the blocks in this call's user message.
fn read(server: &FakeApi, call: &CouncilCall, time: usize) -> Vec<String> {
    let messages = &sent(server, call)[time];
    let roles: Vec<_> = messages.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["system", "user"]);
    let into_iter = fenced_blocks(&messages[1].1).into_iter();
    into_iter
        .filter(|(name, _)| name != "question" && name != "focus")
        .map(|(name, text)| format!("{name}: {text}"))
        .collect()
}

#[tokio::test]
async fn each_draft_and_whole_loop_are_attacked() {
    let server = numbered(&["pragmatist", "domain_expert", "creative"], |_, _| false);
    engine(config(&server))
        .run("Split it?", &TriageContext::none())
        .await
        .unwrap();
    let red = CouncilCall::RedTeam;
    let a_loop = [
        seat("pragmatist"),
        red.clone(),
        seat("domain_expert"),
        red.clone(),
        seat("creative"),
        red.clone(),
        red,
    ];
    let calls = calls(&server);
    assert_eq!(calls[1..8], a_loop);
    assert_eq!(calls[8..15], a_loop);
    assert_eq!(calls[15..], [CouncilCall::Synthesis]);
}

#[tokio::test]
async fn seat_reads_current_draft_and_attacks() {
    let server = numbered(&["pragmatist", "domain_expert", "creative"], |_, _| false);
    engine(config(&server))
        .run("Split it?", &TriageContext::none())
        .await
        .unwrap();
    assert_eq!(
        read(&server, &seat("pragmatist"), 0),
        [""; 0],
        "the first one has only the question"
    );
    assert_eq!(
        read(&server, &seat("domain_expert"), 0),
        [
            "draft: Draft 1 of pragmatist.",
            "critique: Attack 1 fails here."
        ]
    );
    assert_eq!(
        read(&server, &seat("creative"), 0),
        [
            "draft: Draft 2 of domain_expert.",
            "critique: Attack 1 fails here.",
            "critique: Attack 2 fails here."
        ]
    );
    assert_eq!(
        read(&server, &seat("pragmatist"), 1),
        [
            "draft: Draft 3 of creative.",
            "critique: Attack 4 fails here."
        ],
        "a later loop starts from the last draft and the last attack"
    );
    assert_eq!(
        read(&server, &seat("domain_expert"), 1),
        [
            "draft: Draft 4 of pragmatist.",
            "critique: Attack 5 fails here."
        ]
    );
}

#[tokio::test]
async fn red_team_reads_drafts_then_whole_loop() {
    let server = numbered(&["pragmatist", "creative"], |_, _| false);
    engine(config(&server))
        .run("Split it?", &TriageContext::none())
        .await
        .unwrap();
    let red = CouncilCall::RedTeam;
    assert_eq!(read(&server, &red, 0), ["draft: Draft 1 of pragmatist."]);
    assert_eq!(read(&server, &red, 1), ["draft: Draft 2 of creative."]);
    assert_eq!(
        read(&server, &red, 2),
        [
            "earlier draft of pragmatist: Draft 1 of pragmatist.",
            "draft: Draft 2 of creative."
        ]
    );
}

#[tokio::test]
async fn failed_seat_passes_draft_on() {
    let server = numbered(
        &["pragmatist", "domain_expert", "creative"],
        |call, time| *call == seat("domain_expert") && time <= 3,
    );
    let observed = EngineConfig {
        observability: Observability::On,
        ..config(&server)
    };
    let result = engine(observed)
        .run("Split it?", &TriageContext::none())
        .await
        .unwrap();
    let red = CouncilCall::RedTeam;
    assert_eq!(
        calls(&server)[1..7],
        [
            seat("pragmatist"),
            red.clone(),
            seat("domain_expert"),
            seat("creative"),
            red.clone(),
            red
        ],
        "what is not there is not attacked"
    );
    assert_eq!(
        read(&server, &seat("creative"), 0),
        [
            "draft: Draft 1 of pragmatist.",
            "critique: Attack 1 fails here."
        ]
    );
    let missing: Vec<_> = result
        .degradations
        .iter()
        .map(|worse| (worse.loop_number, worse.kind))
        .collect();
    assert_eq!(missing, [(Some(1), DegradationKind::SeatMissing)]);
    let positions: Vec<_> = result
        .reasoning_trace
        .unwrap()
        .iter()
        .map(|record| record.council_responses.len())
        .collect();
    assert_eq!(positions, [2, 3]);
}

#[tokio::test]
async fn second_seat_drafts_after_first_fails() {
    let server = numbered(&["pragmatist", "domain_expert", "creative"], |_, time| {
        time == 1
    });
    engine(config(&server))
        .run("Split it?", &TriageContext::none())
        .await
        .unwrap();
    assert_eq!(
        calls(&server)[1..4],
        [
            seat("pragmatist"),
            seat("domain_expert"),
            CouncilCall::RedTeam
        ]
    );
    assert_eq!(read(&server, &seat("domain_expert"), 0), [""; 0]);
}

#[tokio::test]
async fn next_seat_inherits_failed_seats_input() {
    let server = numbered(&["pragmatist", "domain_expert", "creative"], |_, time| {
        time == 4
    });
    engine(config(&server))
        .run("Split it?", &TriageContext::none())
        .await
        .unwrap();
    assert_eq!(
        read(&server, &seat("domain_expert"), 1),
        [
            "draft: Draft 3 of creative.",
            "critique: Attack 4 fails here."
        ]
    );
}

#[tokio::test]
async fn loop_ends_when_quorum_is_impossible() {
    let server = numbered(&["pragmatist", "creative"], |_, time| time == 1);
    let ended = *engine(config(&server))
        .run("Split it?", &TriageContext::none())
        .await
        .unwrap_err()
        .error;
    assert!(
        matches!(&ended, CouncilError::TooFewSeats { loop_number: 1, left: 0, seats: 2, missing } if missing.len() == 1),
        "{ended}"
    );
    assert_eq!(
        calls(&server)[1..],
        [seat("pragmatist")],
        "nobody else is asked in vain"
    );
}

#[tokio::test]
async fn two_of_three_failed_seats_end_run() {
    let server = numbered(&["pragmatist", "domain_expert", "creative"], |call, _| {
        *call != seat("domain_expert")
    });
    let ended = *engine(config(&server))
        .run("Split it?", &TriageContext::none())
        .await
        .unwrap_err()
        .error;
    let CouncilError::TooFewSeats {
        left: 1,
        seats: 3,
        missing,
        ..
    } = &ended
    else {
        panic!("{ended}")
    };
    let names: Vec<_> = missing.iter().map(|(seat, _)| seat.to_string()).collect();
    assert_eq!(names, ["pragmatist", "creative"]);
}
