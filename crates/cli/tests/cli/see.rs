//! `report`, `serve` and the lists: one read model, so equal numbers, and nothing of a run becomes markup.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use crucible_testkit::{FakeOpenAi, Reply, TestRepo};
use serde_json::Value;

use crate::support::{Call, Fixture, GOAL, answering, good_answer, id_of, small};
use crate::traces::PRICES;

/// A page server that ends with the test.
pub(crate) struct Site {
    process: Child,
    pub(crate) host: String,
    pub(crate) cookie: String,
    /// The address that begins the session.
    pub(crate) link: String,
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _waited = self.process.wait();
    }
}

impl Site {
    fn open(fixture: &Fixture) -> Self {
        Self::enter(fixture.call(["serve"]))
    }

    /// Starts a server and begins its session.
    pub(crate) fn enter(call: Call) -> Self {
        let mut site = Self::start(call);
        let path = site
            .link
            .trim_start_matches("http://")
            .split_once('/')
            .unwrap()
            .1;
        let entered = site.get(&format!("/{path}"));
        let cookie = entered
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "))
            .unwrap();
        site.cookie = cookie.split(';').next().unwrap().to_owned();
        site
    }

    /// Starts a server without entering it.
    pub(crate) fn start(call: Call) -> Self {
        let mut command = call.command();
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let output = process.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let link = line.trim().strip_prefix("Open ").unwrap();
        let host = link.trim_start_matches("http://").split('/').next();
        Self {
            process,
            host: host.unwrap().to_owned(),
            cookie: String::new(),
            link: link.to_owned(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\nConnection: close\r\n\r\n",
            self.host, self.cookie
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

#[test]
fn list_status_report_and_page_numbers_are_equal() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    fixture.user_config(PRICES);
    let started = fixture.start(repo.path()).ok().json();
    let id = id_of(&started);
    fixture.run(["run", "land", &id]).ok();

    let status = fixture.status();
    let list = fixture.run(["run", "list", "--json"]).ok().json();
    let report = fixture.run(["report", &id, "--json"]).ok().json();
    let row = &list["runs"][0];
    assert_eq!(list["total"], 1);
    for name in ["calls", "tokens", "micro_dollars"] {
        let number = &status["budgets"][name];
        assert!(number.is_u64(), "{status:#}");
        assert_eq!(&row[name], number, "{name}");
        assert_eq!(&report[name], number, "{name}");
        assert_eq!(&report["budgets"][name], number, "{name}");
    }
    let sum = |name: &str| {
        let calls = report["model_calls"].as_array().unwrap().iter();
        calls.map(|call| call[name].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(row["tokens"], sum("tokens"));
    assert_eq!(row["micro_dollars"], sum("micro_dollars"));
    for name in ["run_id", "state", "outcome", "goal", "model", "elapsed_ms"] {
        assert_eq!(row[name], report[name], "{name}");
    }
    assert_eq!(row["outcome"], "landed");
    let attempts = status["attempts"].as_array().unwrap().len();
    assert_eq!(report["attempts"].as_array().unwrap().len(), attempts);
    assert_eq!(report["attempts"][0]["diff"]["added"], 1);
    assert_eq!(report["attempts"][0]["verification"]["is_passed"], true);
    let document = &report["attempts"][0]["verification"]["shown"];
    assert_eq!(*document, status["shown"]);
    assert!(document.as_array().unwrap().len() > 2, "{document}");
    assert_eq!(report["plan"]["is_approved"], true);
    assert!(!report["context"]["files"].as_array().unwrap().is_empty());
    let events = fixture
        .run(["ledger", "log", "--run", &id, "--json"])
        .ok()
        .json();
    let logged = events["events"].as_array().unwrap();
    assert_eq!(report["events"].as_array().unwrap().len(), logged.len());
    assert_eq!(report["chain"]["altered_events"], Value::Array(Vec::new()));

    let site = Site::open(&fixture);
    let page = site.get(&format!("/runs/{id}"));
    let calls = &status["budgets"]["calls"];
    let text = format!(
        "{} tokens, {calls} of {} calls",
        status["budgets"]["tokens"], status["budgets"]["max_calls"]
    );
    assert!(page.contains(&text), "{text}: {page}");
    assert!(page.len() < 100_000, "{}", page.len());
    assert!(page.contains("the events, rows and files of this run match their records"));
    let attempt = site.get(&format!("/runs/{id}/attempts/1"));
    assert!(attempt.contains("return width * height"), "{attempt}");
    let runs = site.get("/runs?q=multiply");
    assert!(runs.contains(&id) && runs.contains("1 run,"), "{runs}");
    assert!(site.get("/runs?q=nothing-like-it").contains("0 runs,"));
    let number = |value: &Value| value.as_u64().unwrap();
    let money = |value: &Value| crucible_llm::dollars(number(value));
    assert!(number(&row["micro_dollars"]) > 0, "{row:#}");
    let cells = |values: &[String]| {
        let cells = values
            .iter()
            .map(|value| format!("<td class=\"number\">{value}</td>"));
        cells.collect::<String>()
    };
    let of_run = [
        row["calls"].to_string(),
        row["tokens"].to_string(),
        money(&row["micro_dollars"]),
        crucible_view::duration(number(&row["elapsed_ms"])),
    ];
    assert!(runs.contains(&cells(&of_run)), "{of_run:?}: {runs}");
    let calls = site.get(&format!("/runs/{id}/calls"));
    for call in report["model_calls"].as_array().unwrap() {
        let of_call = [
            call["tokens_in"].to_string(),
            call["tokens_out"].to_string(),
            call["tokens"].to_string(),
            money(&call["micro_dollars"]),
        ];
        assert!(calls.contains(&cells(&of_call)), "{of_call:?}: {calls}");
    }
    let stats = fixture.run(["stats", "--json"]).ok().json();
    let all = &stats["all"];
    let totals = format!(
        "{} calls, {} open, {} tokens, {}.",
        all["calls"],
        all["open_calls"],
        all["tokens"],
        money(&all["micro_dollars"])
    );
    let costs = site.get("/costs");
    assert!(costs.contains(&totals), "{totals}: {costs}");
    assert!(costs.contains("1 landed"), "{costs}");
    let head = format!("<dt>Head</dt><dd>{} <code>", report["chain"]["head"]);
    let ledger = site.get("/ledger");
    assert!(ledger.contains(&head), "{head}: {ledger}");
    assert!(ledger.contains(&format!("<dt>Runs</dt><dd>{}</dd>", list["total"])));
    let events = site.get(&format!("/runs/{id}/events"));
    for event in logged {
        assert!(events.contains(&event["seq"].to_string()), "{event}");
    }
    assert!(site.get("/ledger/verify").contains("Verified now"));
}

/// Runs of one repository in many states, one of each.
fn runs_in_many_states(fixture: &Fixture, repo: &TestRepo, server: &FakeOpenAi) {
    let start = |args: &[&str], code: i32| {
        let mut call = fixture.start_call(repo.path());
        for arg in args {
            call = call.arg(arg);
        }
        id_of(&call.run().exits(code).json())
    };
    let landed = start(&[], 0);
    start(&["--max-iterations", "1"], 1);
    start(&["--max-iterations", "2"], 0);
    start(&[], 1);
    start(&[], 0);
    start(&["--mode", "manual_outbox"], 1);
    let new = fixture
        .call(["run", "new", GOAL, "--repo"])
        .arg(repo.path());
    new.run().ok();
    let asked = server.requests().len();
    let mut abandoned = fixture.start_call(repo.path()).command().spawn().unwrap();
    while server.requests().len() == asked {
        assert!(abandoned.try_wait().unwrap().is_none(), "it asked nothing");
        std::thread::sleep(Duration::from_millis(10));
    }
    // Still at work: the list is as far as the run.
    let list = fixture.run(["run", "list", "--json"]).ok().json();
    assert_eq!(list["runs"][0]["state"], "signed", "{list:#}");
    assert_surfaces_agree(fixture);
    abandoned.kill().unwrap();
    abandoned.wait().unwrap();
    fixture.run(["run", "land", &landed]).ok();
    repo.git(["reset", "--quiet", "--hard", "HEAD~1"]);
}

/// Every surface shows the same state, outcome, cost and time of each run, and the sums are the sums of these.
fn assert_surfaces_agree(fixture: &Fixture) {
    let site = Site::open(fixture);
    let list = fixture.run(["run", "list", "--json"]).ok().json();
    let rows = list["runs"].as_array().unwrap();
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
    let page_of_list = site.get("/runs");
    for row in rows {
        let id = row["run_id"].as_str().unwrap();
        let state = row["state"].as_str().unwrap();
        let money = crucible_llm::dollars(number(row, "micro_dollars"));
        let time = crucible_view::duration(number(row, "elapsed_ms"));
        let (calls, tokens) = (number(row, "calls"), number(row, "tokens"));
        let status = fixture.run(["run", "status", id, "--json"]).ok().json();
        let report = fixture.run(["report", id, "--json"]).ok().json();
        let compared = fixture
            .run(["run", "compare", id, id, "--json"])
            .ok()
            .json();
        assert_eq!(status["state"], row["state"], "{id}");
        assert_eq!(report["derived_state"], row["state"], "{id}");
        for name in row.as_object().unwrap().keys() {
            assert_eq!(report[name], row[name], "{id}: {name}");
        }
        for name in ["calls", "tokens", "micro_dollars"] {
            assert_eq!(status["budgets"][name], row[name], "{id}: {name}");
            assert_eq!(report["budgets"][name], row[name], "{id}: {name}");
        }
        for name in ["outcome", "calls", "tokens", "micro_dollars", "elapsed_ms"] {
            assert_eq!(compared["a"][name], row[name], "{id}: {name}");
        }
        let model_calls = report["model_calls"].as_array().unwrap();
        for name in ["tokens", "micro_dollars"] {
            let sum: u64 = model_calls.iter().map(|call| number(call, name)).sum();
            assert_eq!(sum, number(row, name), "{id}: {name}");
        }
        let span = fixture.run(["trace", "export", id]).ok().stdout;
        for text in [
            format!("\"crucible.run.state\",\"value\":{{\"stringValue\":\"{state}\"}}"),
            format!("\"crucible.run.tokens\",\"value\":{{\"intValue\":\"{tokens}\"}}"),
            format!(
                "\"crucible.run.cost.micro_usd\",\"value\":{{\"intValue\":\"{}\"}}",
                number(row, "micro_dollars")
            ),
        ] {
            assert!(span.contains(&text), "{id}: {text}: {span}");
        }
        let markdown = fixture.run(["report", id]).ok().stdout;
        for text in [
            format!("## Crucible run: {state}\n"),
            format!("| Cost | {money}, {tokens} tokens, {calls} calls |"),
            format!("| Time | {time} |"),
        ] {
            assert!(markdown.contains(&text), "{id}: {text}: {markdown}");
        }
        let cells = format!(
            "<td class=\"number\">{calls}</td><td class=\"number\">{tokens}</td>\
             <td class=\"number\">{money}</td><td class=\"number\">{time}</td>"
        );
        let row_of_page = page_of_list.split("<tr>").find(|part| part.contains(id));
        let row_of_page = row_of_page.unwrap();
        assert!(row_of_page.contains(&cells), "{id}: {cells}: {row_of_page}");
        assert!(
            row_of_page.contains(&format!("\">{state}</td>")),
            "{row_of_page}"
        );
        let page = site.get(&format!("/runs/{id}"));
        for text in [
            format!("\">{state}</span>"),
            format!("<dt>Cost</dt><dd>{money}, {tokens} tokens, {calls} of"),
            format!(": {time}</dd>"),
        ] {
            assert!(page.contains(&text), "{id}: {text}: {page}");
        }
    }
    let all = fixture.run(["stats", "--json"]).ok().json()["all"].clone();
    for name in [
        "calls",
        "open_calls",
        "tokens",
        "micro_dollars",
        "elapsed_ms",
    ] {
        let sum: u64 = rows.iter().map(|row| number(row, name)).sum();
        assert_eq!(number(&all, name), sum, "{name}");
    }
    let costs = site.get("/costs");
    let totals = format!(
        "{} calls, {} open, {} tokens, {}.",
        all["calls"],
        all["open_calls"],
        all["tokens"],
        crucible_llm::dollars(number(&all, "micro_dollars"))
    );
    assert!(costs.contains(&totals), "{totals}: {costs}");
    for (outcome, runs) in all["outcomes"].as_object().unwrap() {
        assert!(
            costs.contains(&format!("{runs} {outcome}")),
            "{outcome}: {costs}"
        );
    }
}

#[test]
fn surfaces_agree_about_runs_in_each_state() {
    // More tokens than a number of JavaScript has digits for.
    let tokens = (1_u64 << 53) - 1;
    let huge = serde_json::json!({
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": good_answer() }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": tokens, "completion_tokens": tokens },
    });
    let refused = || Reply::Answer("no change".to_owned());
    let server = FakeOpenAi::start([
        Reply::Answer(good_answer()),
        // An answer that cannot be read is asked for once more.
        refused(),
        refused(),
        Reply::Answer(good_answer().replace("height", "width")),
        Reply::Answer(good_answer()),
        Reply::Answer("CANNOT: area is wrong\nCONFLICT: tests/area_test.sh\n".to_owned()),
        Reply::Raw(200, huge.to_string().into_bytes()),
        Reply::Hang,
    ]);
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    runs_in_many_states(&fixture, &repo, &server);
    let states = |list: &Value| -> BTreeSet<String> {
        let rows = list["runs"].as_array().unwrap().iter();
        rows.map(|row| row["state"].as_str().unwrap().to_owned())
            .collect()
    };
    let expected = [
        "blocked", "declined", "failed", "landed", "new", "signed", "verified",
    ];
    let list = fixture.run(["run", "list", "--json"]).ok().json();
    assert_eq!(states(&list), expected.map(str::to_owned).into());
    assert_surfaces_agree(&fixture);
    // Files that were edited, added or removed move nothing.
    for directory in fixture.runs() {
        for name in [
            "artifacts/PLAN.md",
            "artifacts/failure.json",
            "receipt.json",
        ] {
            let file = directory.join(name);
            let _it_may_be_missing = std::fs::remove_file(file);
        }
        let _planted = std::fs::write(directory.join("artifacts/context_pack.json"), "{}");
    }
    let edited = fixture.run(["run", "list", "--json"]).ok().json();
    assert_eq!(edited, list);
    assert_surfaces_agree(&fixture);
}

#[test]
fn report_is_one_file_without_secrets() {
    let token = format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6");
    let answer = format!(
        "The key is {token} <script>alert(1)</script>\n{}",
        good_answer()
    );
    let (repo, server) = (small().build(), answering(answer));
    let fixture = Fixture::with(&server);
    let id = id_of(&fixture.start(repo.path()).ok().json());
    let file = fixture.path("run.html");
    fixture
        .call(["report", &id, "--html"])
        .arg(&file)
        .run()
        .ok();
    let html = std::fs::read_to_string(&file).unwrap();
    assert!(html.contains("multiply width and height"));
    assert!(
        !html.contains(&token) && !html.contains("<script"),
        "{html}"
    );
    assert!(
        html.contains("style-src &#39;sha256-") && !html.contains("href=\"/"),
        "{html}"
    );

    let markdown = fixture.run(["report", &id]).ok().stdout;
    assert!(
        markdown.starts_with("## Crucible run: verified\n"),
        "{markdown}"
    );
    assert!(markdown.contains("`src/area.py` +1 −1"), "{markdown}");
    let file = fixture.path("run.md");
    fixture
        .call(["report", &id, "--markdown"])
        .arg(&file)
        .run()
        .ok();
    assert_eq!(
        std::fs::read_to_string(&file).unwrap().trim_end(),
        markdown.trim_end()
    );
    let both = fixture.run(["report", &id, "--html", "a", "--markdown", "b"]);
    assert_eq!(both.code, Some(2));
}

#[test]
fn edited_run_is_shown_as_changed() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let id = id_of(&fixture.start(repo.path()).ok().json());
    let plan = fixture.runs()[0].join("artifacts/PLAN.md");
    let text = std::fs::read_to_string(&plan).unwrap();
    std::fs::write(&plan, text.replace("Goal:", "Goal: <b>another</b>")).unwrap();
    let report = fixture.run(["report", &id, "--json"]).ok().json();
    assert_eq!(report["chain"]["edited_files"][0], "artifacts/PLAN.md");
    assert_eq!(report["plan"]["is_approved"], false);
    let page = Site::open(&fixture).get(&format!("/runs/{id}"));
    assert!(
        page.contains("this run was changed after it was recorded"),
        "{page}"
    );
    assert!(!page.contains("<b>another"), "{page}");
}

#[test]
fn edited_change_is_not_shown_as_the_recorded_one() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let run = id_of(&fixture.start(repo.path()).ok().json());
    let path = fixture.runs()[0].join("attempts/001/diff.patch");
    let change = std::fs::read_to_string(&path).unwrap();
    let report = || fixture.run(["report", &run, "--json"]).ok().json();
    let page = |path: &str| Site::enter(fixture.call(["serve", "--allow-landing"])).get(path);
    let (land, attempt) = (
        format!("/runs/{run}/land"),
        format!("/runs/{run}/attempts/1"),
    );
    let recorded = report();
    assert_eq!(recorded["attempts"][0]["is_edited"], false);
    assert!(recorded["attempts"][0]["diff"].is_object());
    assert!(!recorded["plan"]["approvals"].as_array().unwrap().is_empty());
    assert!(
        !recorded["attempts"][0]["logs"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    let form = page(&land);
    assert!(
        form.contains("Land the change") && !form.contains("class=\"bad\""),
        "{form}"
    );
    std::fs::write(&path, format!("{change}+forged = 1\n")).unwrap();
    let edited = &report()["attempts"][0];
    assert_eq!(
        (&edited["is_edited"], &edited["diff"]),
        (&true.into(), &Value::Null)
    );
    for page in [page(&land), page(&attempt)] {
        assert!(
            page.contains("This run was changed after it was recorded"),
            "{page}"
        );
        assert!(
            !page.contains("forged") && !page.contains("name=\"token\""),
            "{page}"
        );
    }
}
