//! Every flag with its default and its cap, what goes together and what does not, and what is asked of whom.

use serde_json::json;

use super::support::{
    CARGO, CrawlDesk, Models, draft, error_of, local, objection, synthesis, widget,
};
use crucible_testkit::{FakeRepo, Reply};

/// Forty repositories that all match `widget`.
fn crowd() -> CrawlDesk {
    CrawlDesk::new(
        (0..40).map(|number| FakeRepo::new(&format!("acme/widget-{number:02}")).stars(number)),
    )
}

#[test]
fn every_command_has_its_help_with_examples() {
    let fixture = CrawlDesk::new([]);
    for (command, examples) in [
        (
            &[][..],
            &[
                "crucible crawl search ripgrep",
                "[crawl]",
                "Exit codes: 0 done, 1 refused",
            ][..],
        ),
        (
            &["search"],
            &[
                "--query",
                "--max-results",
                "30 at most",
                "[default: 10]",
                "--no-cache",
                "--ndjson",
                "--dry-run",
            ],
        ),
        (
            &["inspect"],
            &[
                "--ref",
                "--query",
                "--auto-select",
                "--non-interactive",
                "--format",
                "./my-project",
            ],
        ),
        (
            &["plan"],
            &[
                "--max-debate-rounds",
                "4 at most",
                "[default: 2]",
                "--offline",
                "--gpt-provider",
                "--claude-provider",
            ],
        ),
        (
            &["export"],
            &["--output-dir", "exports/SESSION", "--dry-run"],
        ),
        (&["history"], &["last 20 sessions"]),
        (&["validate"], &["PLAN.json", "viv-git-plan.v1"]),
    ] {
        let ran = fixture.run(&[command, &["--help"]].concat()).ok();
        assert_eq!(ran.stderr, "");
        let help = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for example in examples {
            assert!(
                help.contains(example),
                "{command:?} has no {example:?}:\n{}",
                ran.stdout
            );
        }
    }
}

#[test]
fn search_shows_ten_results_thirty_at_most() {
    let fixture = crowd();
    let count = |args: &[&str]| {
        let ran = fixture.run(&[&["search", "widget"], args].concat()).ok();
        (ran.json()["results"].as_array().unwrap().len(), ran.stderr)
    };
    assert_eq!(count(&[]).0, 10);
    assert_eq!(count(&["--max-results", "3"]).0, 3);
    assert_eq!(count(&["--max-results", "30"]).0, 30);
    let (shown, message) = count(&["--max-results", "31"]);
    assert_eq!(shown, 30);
    assert!(
        message.contains("[crawl] Warning: --max-results 31 is over the cap; 30 is used"),
        "{message}"
    );
    for wrong in ["0", "-1", "x", "4294967296"] {
        fixture
            .run(&["search", "widget", "--max-results", wrong])
            .exits(1);
    }
}

#[test]
fn debate_has_two_rounds_four_at_most() {
    let rounds = |args: &[&str]| {
        // The last word is an answer of the gateway like any other: it comes after as many drafts as there were rounds.
        let request_count = args
            .last()
            .and_then(|number| number.parse::<usize>().ok())
            .unwrap_or(2)
            .min(4);
        let mut gpt = vec![draft("cargo build"); request_count];
        gpt.push(synthesis("cargo build"));
        let models = Models::replying(
            gpt.iter().map(|value| Reply::Answer(value.to_string())),
            [Reply::Answer(objection("not enough").to_string())],
        );
        let repo = local(&CARGO);
        let fixture = CrawlDesk::new([]);
        let path = repo.path().display().to_string();
        let ran = fixture
            .ask(&[&["plan", &path], args].concat(), &models)
            .ok();
        (
            ran.json()["debate_rounds"].as_u64().unwrap(),
            models.asked(),
            ran.stderr,
        )
    };
    let (taken, asked, _) = rounds(&[]);
    assert_eq!((taken, asked), (2, (3, 2)));
    let (taken, asked, _) = rounds(&["--max-debate-rounds", "1"]);
    assert_eq!((taken, asked), (1, (2, 1)));
    let (taken, asked, message) = rounds(&["--max-debate-rounds", "9"]);
    assert_eq!((taken, asked), (4, (5, 4)));
    assert!(
        message.contains("[crawl] Warning: --max-debate-rounds 9 is over the cap; 4 is used"),
        "{message}"
    );
    let fixture = CrawlDesk::new([]);
    fixture
        .run(&["plan", "./x", "--max-debate-rounds", "0"])
        .exits(1);
}

#[test]
fn wrong_crawl_arguments_exit_1_with_crawl_prefix() {
    let fixture = CrawlDesk::with_widget();
    for args in [
        &["nonsense"][..],
        &["search", "a", "--query", "b"],
        &["search"],
        &["search", " "],
        &["search", "x", "--ref", "v1"],
        &["search", "x", "--json", "--format", "pretty"],
        &["search", "x", "--format", "xml"],
        &["search", "x", "--ndjson", "--format", "pretty"],
        &["inspect"],
        &["inspect", "acme/widget", "--query", "x"],
        &["inspect", "--query", "widget"],
        &["inspect", "--query", ""],
        &["inspect", "not a repository"],
        &["inspect", ""],
        &["inspect", "acme/widget", "--ref", "--upload-pack=x"],
        &["inspect", "acme/widget", "--ref", "a..b"],
        &["inspect", "acme/widget", "--ref", "v1:../x"],
        &["inspect", "acme/widget", "--offline"],
        &[
            "plan",
            "acme/widget",
            "--offline",
            "--gpt-provider",
            "gateway",
        ],
        &["plan", "acme/widget", "--gpt-provider", "nobody"],
        &["plan", "acme/widget", "--output-dir", "/tmp/x"],
        &[
            "export",
            "acme/widget",
            "--offline",
            "--output-dir",
            "/etc/crucible",
        ],
        &["history", "--query", "x"],
        &["--dry-run", "search", "x"],
    ] {
        let ran = fixture.run(args).exits(1);
        assert_eq!(ran.stdout, "", "{args:?}");
        let begins = if args.contains(&"--json") {
            "{"
        } else {
            "[crawl] error: "
        };
        assert!(ran.stderr.starts_with(begins), "{args:?}: {}", ran.stderr);
        if !args.contains(&"--json") && !args.contains(&"--format") && !args.contains(&"--ndjson") {
            for json in [&["--json"][..], &["--format", "json"], &["--format=json"]] {
                let ran = fixture.run(&[args, json].concat()).exits(1);
                assert_eq!(
                    (ran.stdout.as_str(), ran.stderr.lines().count()),
                    ("", 1),
                    "{args:?}: {}",
                    ran.stderr
                );
                assert_eq!(error_of(&ran)["exit_code"], 1);
            }
        }
    }
    assert_eq!(fixture.github.count("/"), 0, "nobody was asked");
    assert!(
        !fixture.fixture.data().join("ledger.db").exists(),
        "and no session began"
    );
}

#[test]
fn missing_arguments_without_terminal_name_the_flags() {
    let fixture = CrawlDesk::with_widget();
    let ran = fixture.run(&["inspect", "--query", "widget"]).exits(1);
    assert!(ran.stderr.contains("--auto-select"), "{}", ran.stderr);
    let ran = fixture.run(&["inspect"]).exits(1);
    assert!(
        ran.stderr.contains("owner/repo") && ran.stderr.contains("--query"),
        "{}",
        ran.stderr
    );
    let ran = fixture.run(&["search"]).exits(1);
    assert!(ran.stderr.contains("QUERY"), "{}", ran.stderr);
    let ran = fixture.run(&[]).exits(1);
    assert_eq!(ran.stdout, "");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(
        lines[0].starts_with("[crawl] error: the menu needs a terminal"),
        "{}",
        ran.stderr
    );
    assert!(
        lines.len() == 2 && lines[1].contains("crucible crawl --help"),
        "{}",
        ran.stderr
    );
    let ran = fixture.run(&["--json"]).exits(1);
    assert_eq!(
        (
            ran.stderr.lines().count(),
            error_of(&ran)["exit_code"].as_i64()
        ),
        (1, Some(1))
    );
}

#[test]
fn flag_selects_best_result_without_prompt() {
    let fixture = CrawlDesk::new([
        widget(),
        FakeRepo::new("acme/widget-clone").fork().archived(),
    ]);
    for flag in ["--auto-select", "--non-interactive"] {
        let ran = fixture.run(&["inspect", "--query", "widget", flag]).ok();
        assert_eq!(ran.json()["repo"]["full_name"], "acme/widget");
        assert!(
            ran.stderr.contains("took the best result: acme/widget"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn search_with_auto_select_warns_and_lists() {
    let fixture = CrawlDesk::with_widget();
    let ran = fixture.run(&["search", "widget", "--auto-select"]).ok();
    assert!(
        ran.stderr.contains("Warning: --auto-select"),
        "{}",
        ran.stderr
    );
    assert!(
        !fixture
            .run(&["search", "widget"])
            .ok()
            .stderr
            .contains("--auto-select")
    );
}

#[test]
fn a_ref_chooses_what_is_looked_at() {
    let fixture = CrawlDesk::with_widget();
    let head = fixture.clonable(
        "acme/widget",
        &[("go.mod", "module widget\n"), ("main.go", "package main\n")],
    );
    let by_release = fixture.run(&["inspect", "acme/widget"]).ok().json();
    assert_eq!(
        (
            &by_release["fetch_method"],
            &by_release["repo"]["selected_ref"]
        ),
        (&json!("tarball"), &json!("v1.0"))
    );
    let by_ref = fixture
        .run(&["inspect", "acme/widget", "--ref", "v0.9"])
        .ok()
        .json();
    assert_eq!(by_ref["fetch_method"], "shallow_clone");
    assert_eq!(
        (
            &by_ref["repo"]["selected_ref"],
            &by_ref["repo"]["resolved_commit"]
        ),
        (&json!("v0.9"), &json!(head))
    );
    assert_eq!(by_ref["build_system"]["name"], "go");
    fixture
        .run(&["inspect", "acme/widget", "--ref", "v7"])
        .exits(1);
}

#[test]
fn plan_without_model_suggests_providers_and_offline() {
    let fixture = CrawlDesk::with_widget();
    let ran = fixture.run(&["plan", "acme/widget"]).exits(1);
    let stderr = &ran.stderr;
    assert!(
        stderr.contains("--gpt-provider") && stderr.contains("--offline"),
        "{stderr}"
    );
    for (only, missing) in [
        ("--gpt-provider", "--claude-provider"),
        ("--claude-provider", "--gpt-provider"),
    ] {
        let ran = fixture
            .run(&["plan", "acme/widget", only, "gateway"])
            .exits(1);
        let stderr = &ran.stderr;
        assert!(
            stderr.contains("no provider is set") && stderr.contains(missing),
            "{stderr}"
        );
    }
    let call = fixture
        .call(["plan", "acme/widget"])
        .env("CRUCIBLE_LLM_PROVIDER", "gateway");
    let ran = fixture
        .finish(call.env("CRUCIBLE_LLM_TIMEOUT_S", "0"))
        .exits(1);
    assert!(ran.stderr.contains("llm.timeout_s"), "{}", ran.stderr);
    assert_eq!(
        fixture.github.count("/"),
        0,
        "said before anything is fetched"
    );
}
