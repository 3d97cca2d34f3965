//! A council as one of those who serve a run: the chair, and second opinions.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use crucible_testkit::{
    CouncilCall, FakeApi, Reply, SeenRequest, council_call, simple_triage, triage,
};
use serde_json::{Value, json};

use super::council::support::ROLES;
use crate::crawl::support::wait_for;
use crate::see::Site;
use crate::support::{Fixture, good_answer, id_of, small};

const CHAIR: &str = "[dispatch]\nchair = \"council\"\n";
const PLAN: &str = "Scope-Allow: src/area.py\nScope-Deny:\nStop: verified\nBehaviors:\n";
/// What one question of two loops takes: the triage, two seats and the red team in each loop, and the synthesis.
const OF_A_QUESTION: u64 = 8;

/// Which question a role asks.
#[derive(Clone, Copy, PartialEq)]
enum Asks {
    Files,
    Plan,
    Review,
}

fn question(request: &SeenRequest) -> Asks {
    let text = request.conversation();
    if text.contains("Say which files have to be read") {
        Asks::Files
    } else if text.contains("Review the plan of the change") {
        Asks::Review
    } else {
        Asks::Plan
    }
}

fn files() -> String {
    json!({
        "schema_version": "ctcp-file-request-v1", "goal": "x", "reason": "r",
        "needs": [{ "path": "src/area.py", "mode": "full" }],
        "budget": { "max_files": 3, "max_total_bytes": 20_000 },
    })
    .to_string()
}

/// What a request asks of a council; nothing where it is not a call of one.
fn part(request: &SeenRequest) -> Option<CouncilCall> {
    let first = request.body["messages"][0]["content"].as_str().unwrap();
    let beginnings = [
        "You configure a council",
        "You hold one seat",
        "You are the red team",
        "You answer one",
        "You write the one",
    ];
    beginnings
        .iter()
        .any(|beginning| first.starts_with(beginning))
        .then(|| council_call(request))
}

/// A server that plays a council, and whoever writes the change. `special` speaks first where it has something to say.
fn serve(mut special: impl FnMut(&CouncilCall, Asks) -> Option<Reply> + Send + 'static) -> FakeApi {
    let mut usual = triage("parallel", &ROLES);
    usual["loop_count"] = 2.into();
    FakeApi::answering(move |request| {
        let Some(call) = part(request) else {
            return Reply::Answer(good_answer());
        };
        let asks = question(request);
        special(&call, asks).unwrap_or_else(|| {
            Reply::Answer(match call {
                CouncilCall::Triage => usual.to_string(),
                CouncilCall::Synthesis | CouncilCall::Direct => match asks {
                    Asks::Files => files(),
                    Asks::Plan => PLAN.to_owned(),
                    Asks::Review => "Verdict: APPROVE".to_owned(),
                },
                other => format!("{other:?} thinks of src/area.py."),
            })
        })
    })
}

/// How often a part of a council was asked.
fn times(server: &FakeApi, expected_value: &CouncilCall) -> usize {
    server
        .completions()
        .iter()
        .filter(|request| part(request).as_ref() == Some(expected_value))
        .count()
}

fn run_of(fixture: &Fixture) -> PathBuf {
    fixture.runs().pop().unwrap()
}

/// The calls that the ledger counts, which are all that the server saw.
#[track_caller]
fn counts(server: &FakeApi, status: &Value, calls: u64) {
    assert_eq!(status["budgets"]["calls"], calls, "{status:#}");
    assert_eq!(server.completions().len() as u64, calls);
}

#[test]
fn run_chaired_by_council_verifies_and_replays_offline() {
    let (repo, server) = (small().build(), serve(|_, _| None));
    let fixture = Fixture::with(&server);
    fixture.user_config(CHAIR);
    let ran = fixture.start_call(repo.path()).run().ok();
    let started = ran.json();
    assert_eq!(started["state"], "verified");
    // The questions of the chair cost the calls that were made for them, and nothing besides.
    counts(&server, &started, 2 * OF_A_QUESTION + 1);
    // Every part of the council works on the files and the form themselves, not on what the triage makes of them.
    for request in server
        .completions()
        .iter()
        .filter(|request| part(request).is_some())
    {
        let text = request.conversation();
        let all_lines = match question(request) {
            Asks::Files => ["src/area.py", "ctcp-file-request-v1"],
            Asks::Plan | Asks::Review => ["return width + height", "Scope-Allow:"],
        };
        assert!(all_lines.iter().all(|words| text.contains(words)), "{text}");
        let rewritten = "Should this team of five split its one program into services?";
        assert!(!text.contains(rewritten), "{text}");
    }
    // The recording holds what the roles asked, and nothing of what the council asked for it.
    let recorded = fs::read_to_string(run_of(&fixture).join("cassette.jsonl")).unwrap();
    assert_eq!(
        recorded.lines().count(),
        1 + 3,
        "a header, two answers of the chair, the change"
    );
    assert!(!recorded.contains("You hold one seat"));
    let receipt: Value =
        serde_json::from_slice(&fs::read(run_of(&fixture).join("receipt.json")).unwrap()).unwrap();
    assert_eq!(receipt["phases"][0]["llm"]["provider"], "council");
    assert!(
        receipt["phases"][0]["llm"]["tokens_input"]
            .as_u64()
            .unwrap()
            > 100,
        "{receipt:#}"
    );
    // The event of the answer tells what it took.
    let events = fixture.run(["ledger", "log", "--json"]).ok().stdout;
    assert!(events.contains("\"loops_executed\""), "{events}");
    let before = server.completions().len();
    let id = id_of(&started);
    let replayed = fixture.run(["run", "replay", &id, "--json"]).ok().json();
    assert_eq!(
        (&replayed["state"], &replayed["different"]),
        (&json!("verified"), &json!([]))
    );
    fixture.run(["run", "verify-record", &id]).ok();
    assert_eq!(server.completions().len(), before);
}

#[test]
fn council_respects_run_budget_and_continues_with_more() {
    let (repo, server) = (small().build(), serve(|_, _| None));
    let fixture = Fixture::with(&server);
    fixture.user_config(CHAIR);
    // One call too few for the second question: its council is not begun beyond the triage.
    let least = 2 * OF_A_QUESTION - 1;
    let call = fixture
        .start_call(repo.path())
        .env("CRUCIBLE_LLM_BUDGET_CALLS", least.to_string());
    let error = call.run().exits(70).error();
    assert_eq!(error["budget_exhausted"], true, "{error:#}");
    assert!(
        error["error"]
            .as_str()
            .unwrap()
            .contains(&format!("to {} calls", least + 1)),
        "{error:#}"
    );
    assert!(error["hints"].to_string().contains("(calls)"), "{error:#}");
    counts(&server, &fixture.status(), OF_A_QUESTION + 1);
    // What was answered is not asked again; the triage that led to nothing stays counted.
    let all = 2 * OF_A_QUESTION + 2;
    let advance = |calls: u64| {
        fixture
            .call(["run", "advance", "--json"])
            .env("CRUCIBLE_LLM_BUDGET_CALLS", calls.to_string())
            .run()
    };
    advance(all - 1).exits(70);
    counts(&server, &fixture.status(), all - 1);
    let verified = advance(all).ok().json();
    assert_eq!(verified["state"], "verified");
    counts(&server, &verified, all);
    assert_eq!(times(&server, &CouncilCall::Synthesis), 2);
}

#[test]
fn council_call_limit_applies_in_run() {
    let (repo, server) = (small().build(), serve(|_, _| None));
    let fixture = Fixture::with(&server);
    fixture.user_config(&format!(
        "{CHAIR}[council]\ncalls = {}\n",
        OF_A_QUESTION - 1
    ));
    let error = fixture.start(repo.path()).exits(70).error();
    assert!(
        error["error"].as_str().unwrap().contains("council.calls"),
        "{error:#}"
    );
    counts(&server, &fixture.status(), 1);
    fixture.user_config(&format!("{CHAIR}[council]\ncalls = {OF_A_QUESTION}\n"));
    assert_eq!(
        fixture.run(["run", "advance", "--json"]).ok().json()["state"],
        "verified"
    );
}

#[test]
fn malformed_council_answer_is_corrected_or_ends_run() {
    let mut tries = 0;
    let server = serve(move |call, asks| {
        tries += u64::from((call, asks == Asks::Files) == (&CouncilCall::Direct, true));
        match call {
            CouncilCall::Triage => Some(Reply::Answer(simple_triage().to_string())),
            CouncilCall::Direct if asks == Asks::Files && tries == 1 => {
                Some(Reply::Answer("We would read src/area.py.".to_owned()))
            }
            _ => None,
        }
    });
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    fixture.user_config(CHAIR);
    let started = fixture.start(repo.path()).ok().json();
    assert_eq!(started["state"], "verified");
    // Without loops a question takes two calls.
    counts(&server, &started, 3 * 2 + 1);
    let second = &server.completions()[3];
    assert_eq!(part(second), Some(CouncilCall::Direct));
    assert!(
        second.conversation().contains("run-request-unclear"),
        "{}",
        second.conversation()
    );

    let server = serve(|call, _| match call {
        CouncilCall::Triage => Some(Reply::Answer(simple_triage().to_string())),
        _ => Some(Reply::Answer("It depends.".to_owned())),
    });
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    fixture.user_config(CHAIR);
    let failed = fixture.start(repo.path()).exits(1).json();
    assert_eq!(
        (&failed["state"], &failed["failure"]["code"]),
        (&json!("failed"), &json!("run-answer-unusable"))
    );
    counts(&server, &failed, 3 * 2);
}

#[test]
fn unconfigurable_council_stops_run_until_fixed() {
    let mut triages = 0;
    let server = serve(move |call, _| {
        triages += u64::from(*call == CouncilCall::Triage);
        (*call == CouncilCall::Triage && triages == 1)
            .then(|| Reply::Answer("A council? Why?".to_owned()))
    });
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    fixture.user_config(CHAIR);
    let error = fixture.start(repo.path()).exits(70).error();
    assert!(
        error["error"].as_str().unwrap().contains("the triage of"),
        "{error:#}"
    );
    counts(&server, &fixture.status(), 1);
    let verified = fixture.run(["run", "advance", "--json"]).ok().json();
    assert_eq!(verified["state"], "verified");
    counts(&server, &verified, 1 + 2 * OF_A_QUESTION + 1);
}

#[test]
fn killed_council_is_repeated_and_its_cost_counted() {
    let server = serve({
        let mut attacks = 0;
        move |call, _| {
            attacks += u64::from(*call == CouncilCall::RedTeam);
            (*call == CouncilCall::RedTeam && attacks == 1).then_some(Reply::Hang)
        }
    });
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    fixture.user_config(CHAIR);
    let mut command = fixture.start_call(repo.path()).command();
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the red team", || {
        times(&server, &CouncilCall::RedTeam) == 1
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let spent = server.completions().len() as u64;
    assert_eq!(spent, 4, "the triage, two seats, the red team");
    let verified = fixture
        .call(["run", "advance", "--json"])
        .env("CRUCIBLE_LLM_BUDGET_CALLS", "30")
        .run()
        .ok()
        .json();
    assert_eq!(verified["state"], "verified");
    counts(&server, &verified, spent + 2 * OF_A_QUESTION + 1);
}

#[test]
fn council_second_opinions_report_degradations() {
    let block = "Verdict: BLOCK\nBlocking Reasons:\n- the scope is too wide\nRequired Fix/Artifacts:\n- less\n";
    let server = serve(move |call, asks| match call {
        CouncilCall::Synthesis if asks == Asks::Review => Some(Reply::Answer(block.to_owned())),
        CouncilCall::Seat(name) if name == "pragmatist" => {
            Some(Reply::CutAnswer("Half of it".to_owned()))
        }
        _ => None,
    });
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    fixture.user_config(
        "[dispatch]\ncontract_guardian = \"council\"\ncost_controller = \"council\"\n",
    );
    let blocked = fixture.start(repo.path()).exits(1);
    assert!(
        blocked
            .stderr
            .contains("warning: council: loop 1: pragmatist was cut off"),
        "{}",
        blocked.stderr
    );
    let blocked = blocked.json();
    assert_eq!(blocked["state"], "blocked");
    let second =
        fs::read_to_string(run_of(&fixture).join("reviews/review_contract_second.md")).unwrap();
    assert!(
        second.contains("Verdict: BLOCK") && second.contains("too wide"),
        "{second}"
    );
    let receipt = fs::read_to_string(run_of(&fixture).join("receipt.json")).unwrap();
    assert!(receipt.contains("council_degraded"), "{receipt}");
}

#[test]
fn council_without_run_provider_uses_its_own() {
    let (repo, server) = (small().build(), serve(|_, _| None));
    let fixture = Fixture::with(&server);
    let roles = "mode = \"manual_outbox\"\n[council]\nprovider = \"gateway\"\n";
    fixture.user_config(&format!("{CHAIR}{roles}"));
    let call = || {
        fixture
            .start_call(repo.path())
            .without_env("CRUCIBLE_LLM_PROVIDER")
    };
    let waits = call().run().exits(1).json();
    assert_eq!(
        (&waits["state"], &waits["owed"]["role"]),
        (&json!("blocked"), &json!("patchmaker"))
    );
    counts(&server, &waits, 2 * OF_A_QUESTION);
    // Where there is none at all, no run begins.
    fixture.user_config(&format!("{CHAIR}mode = \"manual_outbox\"\n"));
    let message = call().run().exits(2).message();
    assert!(message.contains("a council serves this run"), "{message}");
    assert_eq!(fixture.runs().len(), 1);
}

/// The last answer of a council that the ledger knows.
fn council_document(fixture: &Fixture) -> Value {
    let events = fixture.run(["ledger", "log", "--json"]).ok().json();
    let events = events["events"].as_array().unwrap();
    events
        .iter()
        .filter_map(|event| event["body"].get("council"))
        .next_back()
        .unwrap()
        .clone()
}

#[test]
fn council_record_names_seats_and_replaced_models() {
    let (repo, server) = (small().build(), serve(|_, _| None));
    let fixture = Fixture::with(&server);
    fixture.user_config(CHAIR);
    fixture.start(repo.path()).ok();
    let own = council_document(&fixture);
    assert_eq!(
        (&own["provider"], &own["fallback"]),
        (&json!("gateway"), &Value::Null),
        "{own:#}"
    );
    let models = own["models"].as_array().unwrap();
    assert!(
        !models.is_empty() && models.iter().all(Value::is_string),
        "{own:#}"
    );

    let (repo, fixture) = (small().build(), Fixture::with(&server));
    fixture.user_config(&format!(
        "{CHAIR}[llm]\nfallback_provider = \"gateway\"\n[council]\nprovider = \"openrouter\"\n"
    ));
    fixture.start(repo.path()).ok();
    let other = council_document(&fixture);
    assert_eq!(
        (&other["provider"], &other["models"]),
        (&own["provider"], &own["models"])
    );
    let why = other["fallback"].as_str().unwrap();
    assert!(
        why.contains("'openrouter' failed") && why.contains("fallback 'gateway'"),
        "{why}"
    );
}

#[test]
fn receipt_council_costs_match_the_ledger() {
    let (repo, server) = (small().build(), serve(|_, _| None));
    let fixture = Fixture::with(&server);
    fixture.user_config(&format!(
        "{CHAIR}[llm.prices.\"gateway/*\"]\ninput = 1.0\noutput = 10.0\ndate = \"2026-01-31\"\nsource = \"a price list\"\n"
    ));
    let started = fixture.start(repo.path()).ok().json();
    let receipt: Value =
        serde_json::from_slice(&fs::read(run_of(&fixture).join("receipt.json")).unwrap()).unwrap();
    let phases = receipt["phases"].as_array().unwrap();
    let costs: Vec<u64> = phases
        .iter()
        .map(|phase| phase["llm"]["cost"]["micro_dollars"].as_u64().unwrap())
        .collect();
    assert!(
        costs.len() == 3 && costs.iter().all(|cost| *cost > 0),
        "{receipt:#}"
    );
    assert_eq!(phases[0]["llm"]["cost"]["basis"], "estimated");
    assert_eq!(
        started["budgets"]["micro_dollars"],
        costs.iter().sum::<u64>(),
        "{started:#}"
    );
}

#[test]
fn council_is_refused_for_unsuitable_roles() {
    let (repo, fixture) = (small().build(), Fixture::new());
    for (role, hint) in [
        ("librarian", "local and deterministic"),
        ("researcher", "no pages to cite"),
        ("patchmaker", "writes no changes"),
        ("fixer", "writes no changes"),
    ] {
        let file = fixture.path("dispatch.json");
        let text = json!({
            "schema_version": "ctcp-dispatch-config-v1", "mode": "local_exec",
            "role_providers": { "patchmaker": "gateway", "fixer": "gateway", (role): "council" },
            "budgets": { "max_outbox_prompts": 3 },
        });
        fs::write(&file, text.to_string()).unwrap();
        let message = fixture
            .start_call(repo.path())
            .arg("--dispatch")
            .arg(&file)
            .run()
            .exits(2)
            .message();
        assert!(
            message.contains("dispatch-service-unfit") && message.contains(hint),
            "{message}"
        );
    }
    assert_eq!(fixture.runs(), Vec::<PathBuf>::new());
}

#[test]
fn council_of_a_run_is_recorded_with_its_moves() {
    let (repo, server) = (small().build(), serve(|_, _| None));
    let fixture = Fixture::with(&server);
    fixture.user_config(CHAIR);
    let id = id_of(&fixture.start(repo.path()).ok().json());
    let report = fixture.run(["report", &id, "--json"]).ok().json();
    let councils = report["councils"].as_array().unwrap();
    assert_eq!(councils.len(), 2, "{councils:#?}");
    for council in councils {
        let deliberation = &council["deliberation"];
        assert_eq!(deliberation["grammar"], "parallel", "{council:#}");
        let loops = deliberation["loops"].as_array().unwrap();
        assert_eq!(loops.len(), 2);
        for (at, round) in loops.iter().enumerate() {
            assert_eq!(
                (&round["critiques"], &round["distinct_models"]),
                (&json!(1), &json!(1))
            );
            let seats = round["seats"].as_array().unwrap();
            assert_eq!(seats.len(), 2);
            // The same words again.
            let (after, resemblance) =
                [("held", Value::Null), ("not_asked_again", json!(100))][at].clone();
            assert_eq!(
                (&seats[0]["after_attack"], &seats[0]["resemblance_percent"]),
                (&json!(after), &resemblance)
            );
        }
        // What the seats said is not recorded.
        assert!(!council.to_string().contains("thinks of"), "{council:#}");
    }
    let page = Site::enter(fixture.call(["serve"])).get(&format!("/runs/{id}"));
    for text in [
        "Loop 2: 1 attacks; ",
        "2 of 2 loops ran",
        "<td>not asked again</td>",
        "100 %",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
}
