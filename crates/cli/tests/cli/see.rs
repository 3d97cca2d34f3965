//! `report`, `serve` and the lists: one read model, so equal numbers, and nothing of a run becomes markup.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::{Call, Fixture, answering, good_answer, id_of, small};
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
