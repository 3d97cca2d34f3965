//! The whole way through the binary, with the real `gh` and git.

use std::collections::BTreeMap;
use std::process::Command;

use crucible_testkit::FakeRepo;
use serde_json::{Value, json};

use super::support::{
    CARGO, CrawlDesk, Models, NOW, approval, draft, local, objection, synthesis, widget,
};

#[test]
fn search_results_come_ranked_in_the_expected_order() {
    let fixture = CrawlDesk::new([
        FakeRepo::new("one/widget")
            .stars(10)
            .pushed_at("2026-02-20T00:00:00Z"),
        FakeRepo::new("two/widget-tools")
            .stars(90_000)
            .of_organization()
            .pushed_at("2026-02-20T00:00:00Z"),
        FakeRepo::new("three/old")
            .description("an old widget")
            .stars(3)
            .pushed_at("2020-01-01T00:00:00Z"),
        widget(),
    ]);
    let document = fixture.run(&["search", "widget"]).ok().json();
    let items = document["results"].as_array().unwrap();
    let names: Vec<&str> = items
        .iter()
        .map(|item| item["full_name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["acme/widget", "two/widget-tools", "one/widget", "three/old"]
    );
    assert_eq!(
        items
            .iter()
            .map(|item| item["rank"].as_u64().unwrap())
            .collect::<Vec<_>>(),
        [1, 2, 3, 4]
    );
    assert_eq!(
        (&document["query"], &document["queried_at"]),
        (&json!("widget"), &json!(NOW))
    );
    let breakdown = items[0]["score_breakdown"].as_object().unwrap();
    let sum: f64 = breakdown.values().map(|part| part.as_f64().unwrap()).sum();
    assert!(
        (sum.clamp(0.0, 1.0) - items[0]["score"].as_f64().unwrap()).abs() < 0.00006,
        "{breakdown:?}"
    );
    // The same set in another order, one of them twice.
    fixture.github.search_finds(&[
        "three/old",
        "acme/widget",
        "two/widget-tools",
        "one/widget",
        "acme/widget",
    ]);
    let second_json = fixture.run(&["search", "widget", "--no-cache"]).ok().json();
    assert_eq!(second_json["results"], document["results"]);
}

#[test]
fn repeated_search_is_served_from_cache() {
    let fixture = CrawlDesk::with_widget();
    let first = fixture.run(&["search", "widget"]).ok().json();
    let request_count = fixture.github.count("/");
    assert!(request_count > 0 && first["cached"] == false);
    let second = fixture.run(&["search", "widget"]).ok().json();
    assert_eq!(
        (fixture.github.count("/"), &second["cached"]),
        (request_count, &json!(true))
    );
    assert_eq!(second["results"], first["results"]);
    let passed_by = fixture.run(&["search", "widget", "--no-cache"]).ok().json();
    assert!(fixture.github.count("/") > request_count && passed_by["cached"] == false);
    let request_count = fixture.github.count("/");
    assert_eq!(
        fixture
            .run(&["search", "widget", "--max-results", "11"])
            .ok()
            .json()["cached"],
        false
    );
    assert!(fixture.github.count("/") > request_count);
}

#[test]
fn a_search_after_its_time_asks_again() {
    let fixture = CrawlDesk::with_widget();
    fixture.run(&["search", "widget"]).ok();
    let request_count = fixture.github.count("/");
    let at = |clock: &str| {
        fixture
            .finish(
                fixture
                    .call(["search", "widget"])
                    .env("CRUCIBLE_CLOCK", clock),
            )
            .ok()
            .json()["cached"]
            .clone()
    };
    assert_eq!(at("2026-03-01T12:14:59Z"), true);
    assert_eq!(fixture.github.count("/"), request_count);
    assert_eq!(at("2026-03-01T12:15:01Z"), false);
    assert!(fixture.github.count("/") > request_count);
}

#[test]
fn an_inspection_is_a_document_of_its_schema() {
    let fixture = CrawlDesk::with_widget();
    let document = fixture.run(&["inspect", "acme/widget"]).ok().json();
    assert_eq!(document["schema"], "viv-git-inspect.v1");
    assert_eq!(document["inspected_at"], NOW);
    assert_eq!(document["fetch_method"], "tarball");
    assert_eq!(
        document["repo"]["resolved_commit"],
        crucible_testkit::fake_sha("acme/widget", "v1.0")
    );
    assert_eq!(
        document["build_system"],
        json!({ "name": "cargo", "confidence": 0.95, "detected_files": ["Cargo.toml"] })
    );
    assert_eq!(document["sampling_truncated"], false);
    assert!(
        document["readme_excerpt"]
            .as_str()
            .unwrap()
            .contains("Makes widgets")
    );
}

#[test]
fn reached_caps_use_the_specified_warnings() {
    let mut files: Vec<(String, String)> = (0..230)
        .map(|number| (format!("src/file{number:03}.rs"), "fn f() {}\n".to_owned()))
        .collect();
    files.push((
        "Cargo.toml".to_owned(),
        super::support::CARGO_TOML.to_owned(),
    ));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let (fixture, repo) = (CrawlDesk::new([]), local(&files));
    let path = repo.path().to_str().unwrap();
    let ran = fixture.run(&["inspect", path]).ok();
    assert_eq!(ran.json()["sampling_truncated"], true);
    let (files, bytes) = (
        ran.json()["sampled_files"].to_string(),
        ran.json()["sampled_bytes"].to_string(),
    );
    let line = format!(
        "[crawl] Warning: sampling caps reached — {files}/{bytes} — results may be incomplete"
    );
    assert!(
        ran.stderr.lines().any(|message| message == line),
        "{line}\n{}",
        ran.stderr
    );
    let plan = fixture.run(&["plan", path, "--offline"]).ok().json();
    let report = "Inspection data was truncated due to sampling caps. Plan may be incomplete.";
    assert!(
        plan["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .any(|warning| warning == report),
        "{plan}"
    );
}

#[test]
fn a_debate_gives_a_plan_of_its_schema() {
    let fixture = CrawlDesk::with_widget();
    let models = Models::saying(
        [
            draft("cargo build"),
            draft("cargo build --release"),
            synthesis("cargo build --release"),
        ],
        [objection("builds without optimisation"), approval()],
    );
    let plan = fixture.ask(&["plan", "acme/widget"], &models).ok().json();
    assert_eq!(plan["schema"], "viv-git-plan.v1");
    assert_eq!(
        (&plan["debate_rounds"], &plan["safety_validated"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(plan["steps"][0]["cmd"], "cargo build --release");
    assert_eq!(
        plan["accepted_suggestions"][0],
        "modify step \"build\": use --release — source: Claude"
    );
    assert_eq!(plan["created_at"], NOW);
    assert_eq!(models.asked(), (3, 2));
    // Each question carries its budget, whatever it says.
    let budgets = |server: &crucible_testkit::FakeOpenAi| -> Vec<Value> {
        let limit = |body: &Value| {
            body.get("max_tokens")
                .or(body.get("max_completion_tokens"))
                .cloned()
        };
        server
            .completions()
            .iter()
            .map(|seen| limit(&seen.body).unwrap_or_default())
            .collect()
    };
    assert_eq!(budgets(&models.gpt), [2000, 2000, 4000].map(Value::from));
    assert_eq!(budgets(&models.claude), [2000, 2000].map(Value::from));
    let session = fixture.last_session();
    assert_eq!(
        (&session["debate_rounds"], &session["plan_hash"]),
        (&json!(2), &plan["plan_hash"])
    );
}

#[test]
fn export_writes_all_files_with_correct_hashes() {
    let fixture = CrawlDesk::with_widget();
    let ran = fixture
        .ask(
            &["export", "acme/widget"],
            &Models::agreeing_on("cargo build --release"),
        )
        .ok();
    let manifest = ran.json();
    let [dir] = fixture.exports().try_into().unwrap();
    assert_eq!(
        dir.file_name().unwrap().to_str().unwrap(),
        manifest["crawl_session_id"].to_string()
    );
    let mut files = BTreeMap::new();
    let mut open = vec![dir.clone()];
    while let Some(place) = open.pop() {
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path
                    .strip_prefix(&dir)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                files.insert(name, std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "inspect.json",
            "manifest.json",
            "meta/config-snapshot.json",
            "meta/debate-transcript.json",
            "plan.json",
            "recipe.json",
            "search.json"
        ]
    );
    let read = |name: &str| -> Value { serde_json::from_str(&files[name]).unwrap() };
    assert_eq!(read("manifest.json"), manifest);
    for artifact in manifest["artifacts"].as_array().unwrap() {
        let name = artifact["filename"].as_str().unwrap();
        let sum = Command::new("sha256sum")
            .arg(dir.join(name))
            .output()
            .unwrap();
        let sum = String::from_utf8(sum.stdout).unwrap();
        assert_eq!(
            artifact["content_hash"].as_str().unwrap(),
            &sum[..12],
            "{name}"
        );
        assert_eq!(artifact["schema"], read(name)["schema"]);
    }
    assert_eq!(manifest["plan_hash"], read("plan.json")["plan_hash"]);
    assert_eq!(
        manifest["plan_hash"],
        read("recipe.json")["source_plan_hash"]
    );
    assert_eq!(
        (&manifest["repo"], &manifest["ref"]),
        (&json!("acme/widget"), &json!("v1.0"))
    );
    assert_eq!(manifest["reproducibility"]["debate_rounds"], 1);
    assert_eq!(
        manifest["reproducibility"]["token_budgets"],
        json!({ "draft": 2000, "critique": 2000, "synthesis": 4000 })
    );
    assert_eq!(
        read("search.json")["results"][0]["full_name"],
        "acme/widget"
    );
    // The name is what the score was computed for, so it is what was searched for.
    assert_eq!(read("search.json")["query"], "widget");
    assert_eq!(
        read("search.json")["results"][0]["score_breakdown"]["exact_name"],
        0.4
    );
    let transcript = read("meta/debate-transcript.json");
    let phases: Vec<&str> = transcript["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["phase"].as_str().unwrap())
        .collect();
    assert_eq!(phases, ["draft", "critique", "synthesis"]);
    assert!(!files["meta/config-snapshot.json"].contains("a-key-for-tests"));
    let settings = read("meta/config-snapshot.json")["values"].clone();
    assert_eq!(settings["crawl.gpt_provider"], "gateway");
    assert_eq!(
        (&settings["--offline"], &settings["--max-debate-rounds"]),
        (&json!("false"), &json!("2"))
    );
    assert_eq!(
        settings["clock"], "pinned",
        "the instants are not real, and that is said"
    );
    let session = fixture.last_session();
    assert_eq!(
        (&session["status"], &session["export_path"]),
        (&json!("completed"), &json!(dir.to_str().unwrap()))
    );
    // Any plan of ours passes the judge on its own.
    fixture
        .run(&["validate", dir.join("plan.json").to_str().unwrap()])
        .ok();
}

#[test]
fn export_to_named_directory_can_be_repeated() {
    let (fixture, repo) = (CrawlDesk::new([]), local(&CARGO));
    let to = fixture.fixture.path("out/here").display().to_string();
    for _ in 0..2 {
        let args = [
            "export",
            repo.path().to_str().unwrap(),
            "--offline",
            "--output-dir",
            &to,
        ];
        let manifest = fixture.run(&args).ok().json();
        let written =
            std::fs::read_to_string(fixture.fixture.path("out/here/manifest.json")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), manifest);
        assert_eq!(manifest["reproducibility"]["debate_rounds"], 0);
    }
    let search = std::fs::read_to_string(fixture.fixture.path("out/here/search.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&search).unwrap()["result_count"],
        0,
        "nothing was searched for"
    );
    // A relative directory is one below the place of the command.
    let call = fixture.call([
        "export",
        repo.path().to_str().unwrap(),
        "--offline",
        "--output-dir",
        "mine",
    ]);
    fixture
        .finish(call.current_dir(fixture.fixture.path("out")))
        .ok();
    assert!(fixture.fixture.path("out/mine/manifest.json").is_file());
}

#[test]
fn local_repository_needs_no_gh_and_stays_unchanged() {
    let (fixture, repo) = (CrawlDesk::new([]), local(&CARGO));
    let before = crate::support::Snapshot::take([repo.path()]);
    let call = || fixture.call(["inspect", "."]).current_dir(repo.path());
    let document = fixture.finish(call()).ok().json();
    assert_eq!(document["fetch_method"], "shallow_clone");
    assert_eq!(document["repo"]["resolved_commit"], repo.head());
    before.is_still(&crate::support::Snapshot::take([repo.path()]));
    assert_eq!(fixture.github.count("/"), 0);
    assert_eq!(fixture.last_session()["build_system"], "cargo");
    fixture.run(&["inspect", "./nothing-here"]).exits(1);
}

#[test]
fn without_a_release_the_default_branch_is_cloned() {
    let fixture = CrawlDesk::new([FakeRepo::new("acme/gadget")]);
    let head = fixture.clonable("acme/gadget", &CARGO);
    let document = fixture.run(&["inspect", "acme/gadget"]).ok().json();
    assert_eq!(document["fetch_method"], "shallow_clone");
    assert_eq!(
        (
            &document["repo"]["resolved_commit"],
            &document["repo"]["selected_ref"]
        ),
        (&json!(head), &json!("main"))
    );
    assert_eq!(fixture.github.count("/tarball/"), 0);
}

#[test]
fn one_provider_may_speak_for_both_owners() {
    let fixture = CrawlDesk::with_widget();
    let answers = [draft("cargo build"), approval(), synthesis("cargo build")];
    let models = Models::saying(answers, [approval()]);
    let call = fixture
        .call(["plan", "acme/widget"])
        .env("CRUCIBLE_LLM_PROVIDER", "gateway");
    let call = call.env("CRUCIBLE_GATEWAY_BASE_URL", models.gpt.base_url());
    assert_eq!(fixture.finish(call).ok().json()["debate_rounds"], 1);
    assert_eq!(models.asked(), (3, 0));
}

#[test]
fn fallback_for_both_owners_is_reported_once() {
    let fixture = CrawlDesk::with_widget();
    let answers = [draft("cargo build"), approval(), synthesis("cargo build")];
    let models = Models::saying(answers, [approval()]);
    let call = fixture
        .call(["plan", "acme/widget"])
        .env("CRUCIBLE_LLM_PROVIDER", "openai");
    let call = call
        .without_env("OPENAI_API_KEY")
        .env("CRUCIBLE_LLM_FALLBACK_PROVIDER", "gateway");
    let ran = fixture
        .finish(call.env("CRUCIBLE_GATEWAY_BASE_URL", models.gpt.base_url()))
        .ok();
    assert_eq!(models.asked(), (3, 0));
    let told = ran
        .stderr
        .lines()
        .filter(|line| line.contains("warning: ") && line.contains("gateway"));
    assert_eq!(told.count(), 1, "{}", ran.stderr);
}

#[test]
fn record_has_search_options_and_pinned_clock() {
    let fixture = CrawlDesk::with_widget();
    let to = fixture.fixture.path("out").display().to_string();
    let args = [
        "export",
        "--query",
        "widget",
        "--auto-select",
        "--max-results",
        "7",
        "--offline",
    ];
    fixture
        .run(&[&args[..], &["--output-dir", &to]].concat())
        .ok();
    let snapshot =
        std::fs::read_to_string(fixture.fixture.path("out/meta/config-snapshot.json")).unwrap();
    let settings = serde_json::from_str::<Value>(&snapshot).unwrap()["values"].clone();
    assert_eq!(
        (&settings["--max-results"], &settings["--offline"]),
        (&json!("7"), &json!("true"))
    );
    let log = fixture
        .fixture
        .run(["ledger", "log", "--json", "--run", "crawl-1"])
        .ok()
        .json();
    let events = log["events"].as_array().unwrap();
    assert!(
        events
            .iter()
            .all(|event| event["body"]["clock"] == "pinned"),
        "{log}"
    );
    // A real clock is nothing to tell of.
    fixture
        .finish(
            fixture
                .call(["search", "widget"])
                .without_env("CRUCIBLE_CLOCK"),
        )
        .ok();
    let log = fixture
        .fixture
        .run(["ledger", "log", "--json", "--run", "crawl-2"])
        .ok()
        .json();
    let events = log["events"].as_array().unwrap();
    assert!(
        !events.is_empty() && events.iter().all(|event| event["body"]["clock"].is_null()),
        "{log}"
    );
}

#[test]
fn model_calls_are_booked_under_the_session() {
    let fixture = CrawlDesk::with_widget();
    fixture
        .ask(
            &["plan", "acme/widget"],
            &Models::agreeing_on("cargo build"),
        )
        .ok();
    let session = fixture.last_session()["session_id"].clone();
    let log = fixture
        .fixture
        .run([
            "ledger",
            "log",
            "--json",
            "--run",
            &format!("crawl-{session}"),
        ])
        .ok()
        .json();
    assert!(!log["events"].as_array().unwrap().is_empty(), "{log}");
}
