//! Every exit code of a crawl, and what is printed and kept with it.

use crucible_testkit::{FakeRepo, Misbehaviour, Reply, RetryAfter, Times};
use serde_json::json;

use super::support::{CrawlDesk, Models, NOW, TIMEOUT, approval, draft, error_of, local};

/// The second since 1970 at which the crawls of these tests begin, and this many later.
fn seconds_after_now(seconds: i64) -> i64 {
    let now: crucible_model::Timestamp = NOW.parse().unwrap();
    now.unix_millis() / 1000 + seconds
}

#[test]
fn rate_limit_without_results_exits_4_with_document() {
    let fixture = CrawlDesk::with_widget();
    fixture.github.misbehave(
        "/",
        Times::Always,
        Misbehaviour::primary_limit(seconds_after_now(3600)),
    );
    let ran = fixture.run(&["search", "widget", "--json"]).exits(4);
    let document = ran.json();
    assert_eq!(
        (&document["rate_limited"], &document["result_count"]),
        (&json!(true), &json!(0))
    );
    assert_eq!(fixture.last_session()["status"], "failed");
    for args in [
        &["inspect", "acme/widget"][..],
        &["inspect", "--query", "widget", "--auto-select"],
    ] {
        let ran = fixture.run(&[args, &["--json"]].concat()).exits(4);
        assert_eq!(
            (ran.stdout.as_str(), &error_of(&ran)["exit_code"]),
            ("", &json!(4)),
            "{args:?}"
        );
    }
}

#[test]
fn rate_limit_after_partial_results_exits_0() {
    let fixture = CrawlDesk::new(["acme/widget-a", "acme/widget-b"].map(FakeRepo::new));
    // The page came, what is asked of each result did not.
    fixture.github.misbehave(
        "/releases",
        Times::Always,
        Misbehaviour::primary_limit(seconds_after_now(3600)),
    );
    let ran = fixture.run(&["search", "widget", "--json"]).ok();
    let document = ran.json();
    assert_eq!(
        (&document["rate_limited"], &document["result_count"]),
        (&json!(true), &json!(2))
    );
    assert!(ran.stderr.contains("[crawl] Warning: "), "{}", ran.stderr);
    assert_eq!(fixture.last_session()["status"], "completed");
    // What is not whole is not cached.
    fixture.github.behave();
    let document = fixture.run(&["search", "widget"]).ok().json();
    assert_eq!(
        (&document["rate_limited"], &document["cached"]),
        (&json!(false), &json!(false))
    );
}

#[test]
fn short_rate_limit_wait_shows_a_countdown() {
    let fixture = CrawlDesk::with_widget();
    fixture.github.misbehave(
        "/search/repositories",
        Times::Once,
        Misbehaviour::secondary_limit(2),
    );
    let ran = fixture.run(&["search", "widget"]).ok();
    assert_eq!(ran.json()["rate_limited"], false);
    assert!(
        ran.stderr
            .contains("GitHub's rate limit is exhausted: continuing in "),
        "{}",
        ran.stderr
    );
}

#[test]
fn github_failure_is_general_error() {
    let fixture = CrawlDesk::with_widget();
    for how in [
        Misbehaviour::status(500),
        Misbehaviour::status(422),
        Misbehaviour::status(403),
        Misbehaviour::status(401),
        Misbehaviour::BadJson,
        Misbehaviour::Drop,
        Misbehaviour::EndHalfway,
    ] {
        fixture.github.misbehave("/", Times::Always, how.clone());
        for args in [
            &["search", "widget", "--no-cache"][..],
            &["inspect", "acme/widget"],
        ] {
            let ran = fixture.run(&[args, &["--json"]].concat()).exits(1);
            assert_eq!(
                (ran.stdout.as_str(), &error_of(&ran)["exit_code"]),
                ("", &json!(1)),
                "{how:?}"
            );
        }
        fixture.github.behave();
    }
    fixture.run(&["inspect", "acme/nobody"]).exits(1);
    fixture
        .github
        .misbehave("/legacy.tar.gz/", Times::Always, Misbehaviour::EndHalfway);
    fixture.run(&["inspect", "acme/widget"]).exits(1);
    assert_eq!(fixture.last_session()["status"], "failed");
    // Nobody there to ask: no program, no login.
    let ran = fixture
        .finish(fixture.call(["search", "widget"]).env("PATH", "/nowhere"))
        .exits(1);
    assert!(ran.stderr.contains("install"), "{}", ran.stderr);
    let ran = fixture
        .finish(fixture.call(["search", "widget"]).without_env("GH_TOKEN"))
        .exits(1);
    assert!(ran.stderr.contains("gh auth login"), "{}", ran.stderr);
}

#[test]
fn rejected_plan_exits_2_and_is_not_exported() {
    let fixture = CrawlDesk::with_widget();
    let evil = "cargo build && sudo make install";
    let ran = fixture
        .ask(
            &["plan", "acme/widget", "--json"],
            &Models::agreeing_on(evil),
        )
        .exits(2);
    let plan = ran.json();
    assert_eq!(
        (&plan["schema"], &plan["safety_validated"]),
        (&json!("viv-git-plan.v1"), &json!(false))
    );
    assert!(
        plan["safety_violations"].to_string().contains("sudo"),
        "{plan}"
    );
    assert_eq!(fixture.last_session()["status"], "failed");
    let command_output = fixture
        .ask(
            &["plan", "acme/widget", "--format", "pretty"],
            &Models::agreeing_on(evil),
        )
        .exits(2);
    assert!(
        command_output
            .stdout
            .contains("rejected; do not run any of it"),
        "{}",
        command_output.stdout
    );
    for next in ["--max-debate-rounds", "--offline"] {
        assert!(
            command_output.stderr.contains(next),
            "what to do next: {}",
            command_output.stderr
        );
    }

    let ran = fixture
        .ask(
            &["export", "acme/widget", "--json"],
            &Models::agreeing_on(evil),
        )
        .exits(2);
    assert_eq!(
        (ran.stdout.as_str(), &error_of(&ran)["exit_code"]),
        ("", &json!(2))
    );
    assert!(fixture.exports().is_empty());
    let to = fixture.fixture.path("out").display().to_string();
    fixture
        .ask(
            &["export", "acme/widget", "--output-dir", &to],
            &Models::agreeing_on(evil),
        )
        .exits(2);
    assert!(!fixture.fixture.path("out").exists());
}

#[test]
fn wrong_shape_exits_3_and_invalid_json_70() {
    let fixture = CrawlDesk::with_widget();
    let plan = &["plan", "acme/widget", "--json"][..];
    let mut stepless = draft("cargo build");
    stepless["steps"] = json!([]);
    for wrong in [json!({}), json!({ "steps": "all of them" }), stepless] {
        let ran = fixture
            .ask(plan, &Models::saying([wrong], [approval()]))
            .exits(3);
        assert_eq!(
            (ran.stdout.as_str(), &error_of(&ran)["exit_code"]),
            ("", &json!(3))
        );
    }
    let said = |text: &str| Reply::Answer(text.to_owned());
    for reply in [
        said("I cannot do that."),
        said(&format!("```json\n{}\n```", draft("cargo build"))),
        Reply::CutAnswer(draft("cargo build").to_string()),
        Reply::Status(401),
        Reply::Status(503),
        Reply::EmptyChoices,
        Reply::RateLimited(RetryAfter::Absent),
        Reply::Html,
    ] {
        let models = Models::replying([reply.clone()], [said("no")]);
        let ran = fixture.ask(plan, &models).exits(70);
        assert_eq!(
            (ran.stdout.as_str(), &error_of(&ran)["exit_code"]),
            ("", &json!(70)),
            "{reply:?}"
        );
    }
    // The critic may fail as well, and nothing is exported then.
    let models = Models::replying(
        [said(&draft("cargo build").to_string())],
        [Reply::Status(401)],
    );
    fixture.ask(&["export", "acme/widget"], &models).exits(70);
    assert!(fixture.exports().is_empty());
    assert_eq!(fixture.last_session()["status"], "failed");
}

#[test]
fn model_timeout_and_exhausted_budget_exit_70() {
    let fixture = CrawlDesk::with_widget();
    let models = Models::replying([Reply::Hang], [Reply::Hang]);
    let call = models
        .apply_to(fixture.call(["plan", "acme/widget", "--json"]))
        .env("CRUCIBLE_LLM_TIMEOUT_S", "1");
    let ran = fixture.finish(call).exits(70);
    assert_eq!(error_of(&ran)["exit_code"], 70);
    // Two calls are allowed, the third is refused: one budget for both owners.
    let models = Models::agreeing_on("cargo build");
    let call = models
        .apply_to(fixture.call(["plan", "acme/widget", "--json"]))
        .env("CRUCIBLE_OPENROUTER_BUDGET", "2");
    let ran = fixture.finish(call).exits(70);
    let error = error_of(&ran);
    assert_eq!(
        (&error["exit_code"], &error["budget_exhausted"]),
        (&json!(70), &json!(true))
    );
    assert!(
        error["hints"]
            .to_string()
            .contains("CRUCIBLE_OPENROUTER_BUDGET"),
        "{error}"
    );
    assert_eq!(models.asked(), (1, 1));
}

#[test]
fn a_secret_ends_with_eight() {
    let fixture = CrawlDesk::with_widget();
    let key = format!("AKIA{}", "Z7QWERTYUIOPASDF");
    let ran = fixture.run(&["search", &key, "--json"]).exits(8);
    assert_eq!(
        (ran.stdout.as_str(), &error_of(&ran)["exit_code"]),
        ("", &json!(8))
    );
    assert!(!ran.stderr.contains(&key), "{}", ran.stderr);
    assert_eq!(fixture.github.count("/search"), 0);
    let mut telling = draft("cargo build");
    telling["dependencies"]["notes"] = json!(format!("use {key}"));
    let ran = fixture
        .ask(
            &["plan", "acme/widget", "--json"],
            &Models::saying([telling], [approval()]),
        )
        .exits(8);
    assert!(!ran.stderr.contains(&key), "{}", ran.stderr);
}

/// Takes ten seconds: as long as the program waits for a ledger that is held.
#[test]
fn ledger_locked_by_another_process_exits_9() {
    let fixture = CrawlDesk::with_widget();
    fixture.run(&["search", "widget"]).ok();
    let script = "import sqlite3, sys\n\
                  db = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                  db.execute('BEGIN EXCLUSIVE')\n\
                  print('held', flush=True)\n\
                  sys.stdin.read()\n";
    let mut holder = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(fixture.fixture.data().join("ledger.db"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(holder.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    assert_eq!(line, "held\n");
    let ran = fixture.run(&["search", "widget", "--json"]).exits(9);
    assert_eq!(
        (ran.stdout.as_str(), &error_of(&ran)["exit_code"]),
        ("", &json!(9))
    );
    drop(holder.stdin.take());
    holder.wait().unwrap();
    fixture.run(&["search", "widget"]).ok();
}

#[test]
fn unwritable_directory_is_refused_before_fetching() {
    let fixture = CrawlDesk::with_widget();
    let export = |dir: &str| {
        fixture.run(&[
            "export",
            "acme/widget",
            "--offline",
            "--output-dir",
            dir,
            "--json",
        ])
    };
    std::fs::create_dir(fixture.fixture.path("taken")).unwrap();
    std::fs::write(fixture.fixture.path("taken/mine.txt"), "mine").unwrap();
    std::os::unix::fs::symlink("/etc", fixture.fixture.path("link")).unwrap();
    let text = fixture.fixture.path("taken").display().to_string();
    let link = fixture.fixture.path("link/crucible").display().to_string();
    for dir in ["/usr/x", "/etc", "/proc/x", link.as_str(), text.as_str()] {
        let ran = export(dir).exits(1);
        assert_eq!(
            (ran.stdout.as_str(), &error_of(&ran)["exit_code"]),
            ("", &json!(1)),
            "{dir}"
        );
    }
    assert_eq!(fixture.github.count("/"), 0);
    assert_eq!(
        std::fs::read_dir(fixture.fixture.path("taken"))
            .unwrap()
            .count(),
        1
    );
}

#[test]
fn monorepo_without_top_project_requires_a_choice() {
    let files = [
        ("a/Cargo.toml", super::support::CARGO_TOML),
        ("b/go.mod", "module b\n"),
        ("README.md", "# Both\n"),
    ];
    let (fixture, repo) = (CrawlDesk::new([]), local(&files));
    let path = repo.path().to_str().unwrap();
    let ran = fixture.run(&["inspect", path, "--json"]).exits(1);
    assert!(
        error_of(&ran)["error"].as_str().unwrap().contains("--ref"),
        "{}",
        ran.stderr
    );
    fixture.run(&["inspect", path, "--ref", ":a/../b"]).exits(1);
    fixture.run(&["inspect", path, "--ref", ":c"]).exits(1);
    let chosen = fixture.run(&["inspect", path, "--ref", ":b"]).ok().json();
    assert_eq!(chosen["build_system"]["name"], "go");
    assert_eq!(chosen["repo"]["selected_ref"], "main:b");
}

#[test]
fn unknown_build_system_has_no_offline_plan() {
    let (fixture, repo) = (
        CrawlDesk::new([]),
        local(&[("notes.txt", "nothing to build\n")]),
    );
    let path = repo.path().to_str().unwrap();
    let inspected = fixture.run(&["inspect", path]).ok().json();
    assert_eq!(inspected["build_system"]["name"], "unknown");
    let ran = fixture.run(&["plan", path, "--offline", "--json"]).exits(1);
    assert!(
        error_of(&ran)["error"]
            .as_str()
            .unwrap()
            .contains("no build system"),
        "{}",
        ran.stderr
    );
}

#[test]
fn hanging_github_exits_1_on_timeout_or_interrupt() {
    // The deadlines of `gh` are minutes; that it can be interrupted is what a user sees of them.
    let fixture = CrawlDesk::with_widget();
    fixture
        .github
        .misbehave("/search/repositories", Times::Always, Misbehaviour::Hang);
    let mut command = fixture.call(["search", "widget"]).command();
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    super::support::wait_for("the question", || {
        fixture.github.count("/search/repositories") > 0
    });
    let begun = std::time::Instant::now();
    assert!(
        std::process::Command::new("kill")
            .args(["-s", "INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    assert!(begun.elapsed() < TIMEOUT);
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(fixture.last_session()["status"], "aborted");
}
