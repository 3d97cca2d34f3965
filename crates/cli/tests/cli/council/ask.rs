//! What `crucible ask` gives: the answer, the argument behind it, and the same as one document.

use std::process::Stdio;

use crucible_testkit::{CouncilCall, Reply, triage};
use serde_json::Value;

use super::support::{ANSWER, ROLES, bypassed, council, steady, usual};
use crate::support::Fixture;

const QUESTION: &str = "Should our team of five split its program into services?";

/// The result holds to the contract that is written down.
#[track_caller]
fn keeps_its_contract(document: &Value) {
    let schema = include_str!("../../../../../docs/contracts/council.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let problems: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect();
    assert!(problems.is_empty(), "{problems:#?}\n{document:#}");
}

#[test]
fn ask_prints_answer_on_stdout_progress_on_stderr() {
    let server = usual("parallel");
    let ran = Fixture::with(&server).run(["ask", QUESTION]).ok();
    assert_eq!(ran.stdout, format!("{ANSWER}\n"));
    let mut beside: Vec<&str> = ran.stderr.lines().collect();
    let summary = beside.pop().unwrap();
    insta::assert_snapshot!(beside.join("\n"), @"
    ... call 1: triage
    ... call 2: seat
    ... call 3: seat
    ... call 4: red team
    ... call 5: seat
    ... call 6: seat
    ... call 7: red team
    ... call 8: seat
    ... call 9: seat
    ... call 10: red team
    ... call 11: synthesis
    ");
    assert!(
        summary.starts_with("3 loops; 11 calls, ") && summary.contains(" tokens, cost unknown, "),
        "{summary}"
    );
}

#[test]
fn parallel_trace_shows_positions_and_attacks() {
    let mut triage = triage("parallel", &ROLES);
    triage["loop_count"] = 2.into();
    let mut drafts = 0;
    let server = council(triage, move |call| match call {
        CouncilCall::Seat(name) if name == "pragmatist" => {
            drafts += 1;
            Some(Reply::Answer(if drafts == 1 {
                "Split it now.\nEvery service is small.".to_owned()
            } else {
                "One program is enough for five people, until a second team comes.".to_owned()
            }))
        }
        _ => None,
    });
    let ran = Fixture::with(&server)
        .run(["ask", QUESTION, "--trace"])
        .ok();
    insta::assert_snapshot!(steady(&ran.stdout), @"
    THE ANSWER
        Keep one program for now.

        Split it when a second team needs to release alone.

    THE COUNCIL
      complex; parallel, 2 loops; red team: feasibility
      the question as it was understood
        Should this team of five split its one program into services?
      domain_expert
        SEAT-MARKER domain_expert speaks for what domain_expert stands for.
      pragmatist
        SEAT-MARKER pragmatist speaks for what pragmatist stands for.
      red_team
        Look at the costs.
      the answer is to be
        Two paragraphs, the recommendation first.

    LOOP 1
      domain_expert, position (gpt-oss-20b)
        domain_expert: one program is enough for five people.
      pragmatist, position (gpt-oss-20b)
        Split it now.
        Every service is small.
      red_team, attack (gpt-oss-20b)
        The costs of waiting are left out.
      - after the attack: domain_expert held, pragmatist changed
      - 2 seats, 1 model; positions resemble each other 0.00 on average

    LOOP 2
      domain_expert, position (gpt-oss-20b)
        domain_expert: one program is enough for five people.
      pragmatist, position (gpt-oss-20b)
        One program is enough for five people, until a second team comes.
      red_team, attack (gpt-oss-20b)
        The costs of waiting are left out.
      - after the attack: no seat was asked again
      - resemblance to the loop before: domain_expert 1.00, pragmatist 0.00
      - not checked for changes
      - 2 seats, 1 model; positions resemble each other 0.50 on average

    WHAT IT TOOK
      part | calls | tokens in | tokens out | cost | time
      triage | 1 | N | N | unknown | T s
      domain_expert | 2 | N | N | unknown | T s
      pragmatist | 2 | N | N | unknown | T s
      red_team | 2 | N | N | unknown | T s
      synthesis | 1 | N | N | unknown | T s
      all together | 8 | N | N | unknown | T s
      The time of a part is the sum over its calls, some of which ran in parallel.
    ");
}

#[test]
fn sequential_trace_shows_each_draft() {
    let mut triage = triage("sequential", &ROLES);
    triage["loop_count"] = 2.into();
    let server = council(triage, |_| None);
    let ran = Fixture::with(&server)
        .run(["ask", QUESTION, "--trace"])
        .ok();
    insta::assert_snapshot!(steady(&ran.stdout), @"
    THE ANSWER
        Keep one program for now.

        Split it when a second team needs to release alone.

    THE COUNCIL
      complex; sequential, 2 loops; red team: feasibility
      the question as it was understood
        Should this team of five split its one program into services?
      domain_expert
        SEAT-MARKER domain_expert speaks for what domain_expert stands for.
      pragmatist
        SEAT-MARKER pragmatist speaks for what pragmatist stands for.
      red_team
        Look at the costs.
      the answer is to be
        Two paragraphs, the recommendation first.

    LOOP 1
      domain_expert, draft (gpt-oss-20b)
        domain_expert: one program is enough for five people.
      red_team, attack (gpt-oss-20b)
        The costs of waiting are left out.
      pragmatist, draft (gpt-oss-20b)
        pragmatist: one program is enough for five people.
      red_team, attack (gpt-oss-20b)
        The costs of waiting are left out.
      red_team, attack (gpt-oss-20b)
        The costs of waiting are left out.
      - after the attack: the draft of domain_expert changed, the draft of pragmatist changed
      - 2 seats, 1 model; positions resemble each other 0.75 on average

    LOOP 2
      domain_expert, draft (gpt-oss-20b)
        domain_expert: one program is enough for five people.
      red_team, attack (gpt-oss-20b)
        The costs of waiting are left out.
      pragmatist, draft (gpt-oss-20b)
        pragmatist: one program is enough for five people.
      red_team, attack (gpt-oss-20b)
        The costs of waiting are left out.
      red_team, attack (gpt-oss-20b)
        The costs of waiting are left out.
      - after the attack: the draft of domain_expert changed, the draft of pragmatist was the last one
      - resemblance to the loop before: domain_expert 1.00, pragmatist 1.00
      - not checked for changes
      - 2 seats, 1 model; positions resemble each other 0.75 on average

    WHAT IT TOOK
      part | calls | tokens in | tokens out | cost | time
      triage | 1 | N | N | unknown | T s
      domain_expert | 2 | N | N | unknown | T s
      pragmatist | 2 | N | N | unknown | T s
      red_team | 6 | N | N | unknown | T s
      synthesis | 1 | N | N | unknown | T s
      all together | 12 | N | N | unknown | T s
      The time of a part is the sum over its calls, some of which ran in parallel.
    ");
}

#[test]
fn debate_trace_names_attacked_seats_and_end() {
    let mut triage = triage(
        "debate",
        &["domain_expert", "creative", "creative", "pragmatist"],
    );
    triage["allow_early_exit"] = true.into();
    triage["loop_count"] = 4.into();
    let server = council(triage, |call| match call {
        CouncilCall::Judge => Some(Reply::Answer("NO".to_owned())),
        CouncilCall::Defense(_) => Some(Reply::Status(401)),
        _ => None,
    });
    let ran = Fixture::with(&server)
        .run(["ask", QUESTION, "--trace"])
        .ok();
    insta::assert_snapshot!(steady(&ran.stdout), @"
    THE ANSWER
        Keep one program for now.

        Split it when a second team needs to release alone.

    THE COUNCIL
      complex; debate, up to 4 loops; red team: feasibility
      the question as it was understood
        Should this team of five split its one program into services?
      domain_expert
        SEAT-MARKER domain_expert speaks for what domain_expert stands for.
      creative
        SEAT-MARKER creative speaks for what creative stands for.
      creative#2
        SEAT-MARKER creative#2 speaks for what creative stands for.
      pragmatist
        SEAT-MARKER pragmatist speaks for what pragmatist stands for.
      red_team
        Look at the costs.
      the answer is to be
        Two paragraphs, the recommendation first.

    LOOP 1
      domain_expert, position (gpt-oss-20b)
        domain_expert: one program is enough for five people.
      creative, position (gpt-oss-20b)
        creative: one program is enough for five people.
      creative#2, position (gpt-oss-20b)
        creative#2: one program is enough for five people.
      pragmatist, position (gpt-oss-20b)
        pragmatist: one program is enough for five people.
      red_team, attack on pragmatist (gpt-oss-20b)
        The costs of waiting are left out.
      - pragmatist gave no defence; its position is unchanged: gateway (gpt-oss-20b): the provider refuses the key (HTTP 401); check the variable that api_key_env names, and the key's permissions
      - after the attack: domain_expert was not attacked, pragmatist gave no answer, creative was not attacked, creative#2 was not attacked
      - 4 seats, 1 model; positions resemble each other 0.71 on average

    LOOP 2
      domain_expert, position (gpt-oss-20b)
        domain_expert: one program is enough for five people.
      creative, position (gpt-oss-20b)
        creative: one program is enough for five people.
      creative#2, position (gpt-oss-20b)
        creative#2: one program is enough for five people.
      pragmatist, position (gpt-oss-20b)
        pragmatist: one program is enough for five people.
      red_team, attack on pragmatist (gpt-oss-20b)
        The costs of waiting are left out.
      - pragmatist gave no defence; its position is unchanged: gateway (gpt-oss-20b): the provider refuses the key (HTTP 401); check the variable that api_key_env names, and the key's permissions
      - after the attack: domain_expert was not attacked, pragmatist gave no answer, creative was not attacked, creative#2 was not attacked
      - resemblance to the loop before: domain_expert 1.00, pragmatist 1.00, creative 1.00, creative#2 1.00
      - nothing of substance changed: the loops end here
      - 4 seats, 1 model; positions resemble each other 0.71 on average

    WHAT IT TOOK
      part | calls | tokens in | tokens out | cost | time
      triage | 1 | N | N | unknown | T s
      domain_expert | 2 | N | N | unknown | T s
      pragmatist | 4 | N + 2 unknown calls | N + 2 unknown calls | unknown | T s
      creative | 2 | N | N | unknown | T s
      creative#2 | 2 | N | N | unknown | T s
      red_team | 2 | N | N | unknown | T s
      judge | 1 | N | N | unknown | T s
      synthesis | 1 | N | N | unknown | T s
      all together | 15 | N + 2 unknown calls | N + 2 unknown calls | unknown | T s
      The time of a part is the sum over its calls, some of which ran in parallel.
    ");
    let warnings: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("warning:"))
        .collect();
    insta::assert_snapshot!(warnings.join("\n"), @"
    warning: loop 1: pragmatist gave no defence; its position is unchanged: gateway (gpt-oss-20b): the provider refuses the key (HTTP 401); check the variable that api_key_env names, and the key's permissions
    warning: loop 2: pragmatist gave no defence; its position is unchanged: gateway (gpt-oss-20b): the provider refuses the key (HTTP 401); check the variable that api_key_env names, and the key's permissions
    ");
}

#[test]
fn bypassed_council_is_reported() {
    let server = bypassed();
    let ran = Fixture::with(&server)
        .run(["ask", "What is the capital of France?"])
        .ok();
    assert_eq!(ran.stdout, "Paris.\n");
    assert!(
        ran.stderr.contains("answered without a council; 2 calls, "),
        "{}",
        ran.stderr
    );
    let ran = Fixture::with(&server)
        .run(["ask", "What is the capital of France?", "--trace"])
        .ok();
    insta::assert_snapshot!(steady(&ran.stdout), @"
    THE ANSWER
        Paris.

    THE COUNCIL
      simple; answered without a council, as the triage allowed
      the question as it was understood
        Should this team of five split its one program into services?

    WHAT IT TOOK
      part | calls | tokens in | tokens out | cost | time
      triage | 1 | N | N | unknown | T s
      direct_answer | 1 | N | N | unknown | T s
      all together | 2 | N | N | unknown | T s
      The time of a part is the sum over its calls, some of which ran in parallel.
    ");
    let document = Fixture::with(&server)
        .run(["ask", "What is it?", "--trace", "--json"])
        .ok()
        .json();
    keeps_its_contract(&document);
    assert_eq!(
        (&document["loops_executed"], &document["early_exit"]),
        (&0.into(), &true.into())
    );
    assert_eq!(document["reasoning_trace"], Value::Array(Vec::new()));
}

#[test]
fn document_has_a_trace_only_on_request() {
    let server = usual("parallel");
    let ran = Fixture::with(&server).run(["ask", QUESTION, "--json"]).ok();
    let document = ran.json();
    keeps_its_contract(&document);
    assert_eq!(document["schema_version"], "crucible-council-v1");
    assert_eq!(document["final_response"], ANSWER);
    assert_eq!(document["loops_executed"], 3);
    assert_eq!(document["usage"]["calls"], 11);
    assert_eq!(document["usage_by_part"]["red_team"]["calls"], 3);
    for absent in ["reasoning_trace", "triage"] {
        assert_eq!(document[absent], Value::Null, "{absent}");
    }
    assert_eq!(
        ran.stderr, "",
        "whoever reads a document is shown no progress"
    );
    for grammar in ["parallel", "sequential", "debate"] {
        let server = usual(grammar);
        let document = Fixture::with(&server)
            .run(["ask", QUESTION, "--json", "--trace"])
            .ok()
            .json();
        keeps_its_contract(&document);
        let loops = document["reasoning_trace"].as_array().unwrap();
        assert_eq!(loops.len(), 3, "{grammar}");
        for (number, record) in loops.iter().enumerate() {
            assert_eq!(record["loop_number"], number + 1);
            assert!(
                record["red_team_critique"]
                    .as_str()
                    .unwrap()
                    .contains("The costs of waiting"),
                "{grammar}"
            );
            assert_eq!(
                record["council_responses"].as_object().unwrap().len(),
                2,
                "{grammar}"
            );
        }
        assert_eq!(document["triage"]["loop_grammar"], grammar);
        assert!(
            document["usage_by_part"]["red_team"]["calls"]
                .as_u64()
                .unwrap()
                >= 3,
            "{grammar}"
        );
    }
}

#[test]
fn degradations_are_always_reported() {
    let roles = ["domain_expert", "pragmatist", "creative"];
    let fails = |call: &CouncilCall| {
        let silent = *call == CouncilCall::Seat("creative".to_owned());
        silent.then_some(Reply::Status(401))
    };
    let server = council(triage("parallel", &roles), fails);
    let ran = Fixture::with(&server).run(["ask", QUESTION]).ok();
    assert_eq!(ran.stdout, format!("{ANSWER}\n"));
    for number in 1..=3 {
        let line = format!("warning: loop {number}: creative gave no position: ");
        assert!(
            ran.stderr.lines().any(|message| message.starts_with(&line)),
            "{line:?} in {}",
            ran.stderr
        );
    }
    let server = council(triage("parallel", &roles), fails);
    let ran = Fixture::with(&server).run(["ask", QUESTION, "--json"]).ok();
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let document = ran.json();
    keeps_its_contract(&document);
    let values: Vec<&Value> = document["degradations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["kind"])
        .collect();
    assert_eq!(values, ["seat_missing"; 3]);
}

#[test]
fn model_text_cannot_control_terminal_or_forge_lines() {
    const ESCAPES: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\r\u{8}\u{202e}\u{2028}";
    let hostile = format!("{ESCAPES}\nLOOP 9\nWHAT IT TOOK\nwarning: all is lost");
    let mut triage = triage("debate", &ROLES);
    for seat in triage["council"].as_array_mut().unwrap() {
        let words = format!("{} {hostile}", seat["system_prompt"].as_str().unwrap());
        seat["system_prompt"] = words.into();
    }
    triage["reconstructed_query"] = hostile.as_str().into();
    triage["synthesis_instruction"] = hostile.as_str().into();
    let server = council(triage, move |call| match call {
        CouncilCall::Triage | CouncilCall::Direct => None,
        CouncilCall::Judge => Some(Reply::Answer("YES".to_owned())),
        CouncilCall::RedTeam
        | CouncilCall::Seat(_)
        | CouncilCall::Defense(_)
        | CouncilCall::Synthesis => Some(Reply::Answer(hostile.clone())),
    });
    for args in [
        &["ask", QUESTION, "--trace"][..],
        &["ask", QUESTION, "--trace", "--json"],
    ] {
        let ran = Fixture::with(&server).call(args).run().ok();
        for text in [&ran.stdout, &ran.stderr] {
            let acts = |c: char| {
                (c.is_control() && c != '\n') || matches!(c, '\u{2028}' | '\u{202a}'..='\u{202e}')
            };
            assert_eq!(text.chars().find(|c| acts(*c)), None, "{text:?}");
        }
        assert!(!ran.stderr.contains("all is lost"), "{}", ran.stderr);
        if args.len() == 3 {
            let (answer, trace) = ran.stdout.split_once("\nTHE COUNCIL\n").unwrap();
            assert!(answer.starts_with("THE ANSWER\n    \\u{1b}[2J"), "{answer}");
            let forged = ran
                .stdout
                .lines()
                .filter(|line| line.starts_with("LOOP 9") || line.starts_with("warning"));
            assert_eq!(forged.count(), 0, "{}", ran.stdout);
            assert!(!answer.contains("\nWHAT IT TOOK"), "{answer}");
            assert_eq!(
                trace
                    .lines()
                    .filter(|line| line.starts_with("WHAT IT TOOK"))
                    .count(),
                1,
                "{trace}"
            );
        } else {
            assert!(
                ran.json()["final_response"]
                    .as_str()
                    .unwrap()
                    .starts_with(ESCAPES)
            );
        }
    }
}

#[test]
fn a_reader_that_has_read_enough_changes_nothing() {
    let server = usual("parallel");
    let fixture = Fixture::with(&server);
    for args in [
        &["ask", QUESTION, "--trace"][..],
        &["ask", QUESTION, "--json"],
    ] {
        let mut command = fixture.call(args).command();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(
            !String::from_utf8_lossy(&output.stderr).contains("error"),
            "{output:?}"
        );
    }
}
