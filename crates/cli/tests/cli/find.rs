//! What a run finds before it asks anybody: the workflow that fits its goal, and what a user may set about it.

use crucible_testkit::FakeOpenAi;
use serde_json::{Value, json};

use crate::support::{Fixture, answering, good_answer, id_of, small};

/// A project's own workflow, which fits the goal of most tests.
const OWN: &str = "\
id = \"shapes\"
version = \"3\"
title = \"Mend a shape\"
[fits]
words = [\"area\", \"width\", \"height\"]
";

/// The find result of the run with this status.
fn found(fixture: &Fixture, status: &Value) -> Value {
    let run = fixture.data().join("runs").join(id_of(status));
    serde_json::from_slice(&std::fs::read(run.join("artifacts/find_result.json")).unwrap()).unwrap()
}

#[test]
fn find_settings_are_listed_and_closed_by_default() {
    let config = Fixture::new().run(["config", "show", "--json"]).ok().json();
    let settings = config["settings"].as_array().unwrap();
    for (key, value, variable) in [
        (
            "find.find_mode",
            json!("resolver_only"),
            "CRUCIBLE_FIND_FIND_MODE",
        ),
        (
            "find.allow_domains",
            json!([]),
            "CRUCIBLE_FIND_ALLOW_DOMAINS",
        ),
        ("find.max_queries", json!(5), "CRUCIBLE_FIND_MAX_QUERIES"),
        ("find.max_pages", json!(10), "CRUCIBLE_FIND_MAX_PAGES"),
    ] {
        let row = settings.iter().find(|row| row["key"] == key).unwrap();
        assert_eq!(
            (&row["value"], &row["variable"]),
            (&value, &json!(variable)),
            "{key}"
        );
    }
}

#[test]
fn chosen_workflow_is_recorded_and_replays_equal() {
    let repo = small().file(".crucible/workflows/shapes.toml", OWN).build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let first = fixture.start(repo.path()).ok().json();
    let result = found(&fixture, &first);
    let form = include_str!("../../../../docs/schemas/ctcp-find-result-v1.schema.json");
    assert!(
        jsonschema::is_valid(&serde_json::from_str(form).unwrap(), &result),
        "{result:#}"
    );
    assert_eq!(result["selected_workflow_id"], "shapes");
    assert_eq!(result["candidates"][0]["score"], 36);

    // The second run learns from the first, and its replay, which has another ledger, still finds the same.
    let server = answering(good_answer());
    let second_output = fixture
        .start_call(repo.path())
        .env("CRUCIBLE_GATEWAY_BASE_URL", server.base_url())
        .run();
    let second_json = second_output.ok().json();
    let result = found(&fixture, &second_json);
    assert_eq!(result["candidates"][0]["score"], 36 + 20);
    let why = result["candidates"][0]["why"].as_str().unwrap();
    assert!(why.contains("1 verified run here"), "{why}");
    for status in [first, second_json] {
        let replayed = fixture
            .run(["run", "replay", &id_of(&status), "--json"])
            .ok()
            .json();
        assert!(
            replayed["same"]
                .to_string()
                .contains("artifacts/find_result.json"),
            "{replayed:#}"
        );
    }
}

#[test]
fn refused_workflow_stops_run_and_names_file() {
    for (text, report) in [
        (OWN.replace("title", "titel"), "titel"),
        ("#".repeat(20_000), "16384 bytes"),
    ] {
        let repo = small().file(".crucible/workflows/bad.toml", &text).build();
        let ran = Fixture::new().start(repo.path());
        assert_ne!(ran.code, Some(0));
        let message = ran.message();
        assert!(
            message.contains(".crucible/workflows/bad.toml") && message.contains(report),
            "{message}"
        );
    }
}

/// Pages as a researcher brings them, from this host.
fn pages(host: &str) -> String {
    pages_of(host, "2026-01-01T00:00:00Z")
}

/// The same, fetched at this instant.
fn pages_of(host: &str, fetched_at: &str) -> String {
    let document = json!({
        "schema_version": "ctcp-find-web-v1",
        "constraints": { "allow_domains": ["docs.example"], "max_queries": 1, "max_pages": 1 },
        "results": [{
            "url": format!("https://{host}/area"),
            "locator": { "type": "heading", "value": "Area" },
            "fetched_at": fetched_at,
            "excerpt": "The area is the product of both sides.",
            "why_relevant": "It says what area means.",
            "risk_flags": [],
        }],
    });
    document.to_string()
}

/// A user whose runs with the web wait for pages from a person.
fn researching(server: &FakeOpenAi) -> Fixture {
    let fixture = Fixture::with(server);
    fixture.user_config(
        "[find]\nfind_mode = \"resolver_plus_web\"\nallow_domains = [\"docs.example\"]\n\
         [dispatch]\nresearcher = \"manual_outbox\"\n",
    );
    fixture
}

#[test]
fn replay_judges_pages_by_their_recorded_time() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = researching(&server);
    let id = id_of(&fixture.start(repo.path()).exits(1).json());
    let target = fixture
        .data()
        .join("runs")
        .join(&id)
        .join("artifacts/find_web.json");
    let advance = || fixture.run(["run", "advance", &id, "--json"]);
    // Nobody can have fetched it by now.
    std::fs::write(&target, pages_of("docs.example", "2190-01-01T00:00:00Z")).unwrap();
    assert_eq!(advance().exits(1).json()["state"], "blocked");
    std::fs::write(&target, pages("docs.example")).unwrap();
    assert_eq!(advance().ok().json()["state"], "verified");
    for clock in ["2200-01-01T00:00:00Z", "2001-01-01T00:00:00Z"] {
        let replay = fixture
            .call(["run", "replay", &id, "--json"])
            .env("CRUCIBLE_CLOCK", clock);
        let replayed = replay.run().ok().json();
        assert_eq!(
            (&replayed["state"], &replayed["different"]),
            (&json!("verified"), &json!([])),
            "{clock}"
        );
    }
    // The run itself says the same when the clock of the machine is wrong, and signs nothing anew.
    let second_call = fixture
        .call(["run", "advance", &id, "--json"])
        .env("CRUCIBLE_CLOCK", "2001-01-01T00:00:00Z");
    assert_eq!(second_call.run().ok().json()["state"], "verified");
}

#[test]
fn researcher_may_cite_allowed_hosts_only() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = researching(&server);
    let waiting = fixture.start(repo.path()).exits(1).json();
    let id = id_of(&waiting);
    let run = fixture.data().join("runs").join(&id);
    let guardrails = std::fs::read_to_string(run.join("artifacts/guardrails.md")).unwrap();
    assert!(
        guardrails.contains("allow_domains: docs.example"),
        "{guardrails}"
    );
    let target = run.join("artifacts/find_web.json");
    assert!(server.requests().is_empty(), "nobody is asked before");

    std::fs::write(&target, pages("evil.example")).unwrap();
    fixture.run(["run", "advance", &id, "--json"]).exits(1);
    let message: String = std::fs::read_dir(run.join("outbox"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert!(message.contains("find-web-domain"), "{message}");

    std::fs::write(&target, pages("api.docs.example")).unwrap();
    let done = fixture.run(["run", "advance", &id, "--json"]).ok().json();
    assert_eq!(done["state"], "verified");
    assert_eq!(
        std::fs::read_to_string(&target).unwrap(),
        pages("api.docs.example")
    );
    let replayed = fixture.run(["run", "replay", &id, "--json"]).ok().json();
    assert!(
        replayed["same"]
            .to_string()
            .contains("artifacts/find_web.json"),
        "{replayed:#}"
    );
}

#[test]
fn a_projects_file_cannot_open_the_web() {
    for line in [
        "find_mode = \"resolver_plus_web\"",
        "allow_domains = [\"evil.example\"]",
        "max_pages = 11",
    ] {
        let repo = small()
            .file(".crucible/config.toml", format!("[find]\n{line}\n"))
            .build();
        let message = Fixture::new().start(repo.path()).exits(2).message();
        assert!(message.contains("find."), "{message}");
    }
}
