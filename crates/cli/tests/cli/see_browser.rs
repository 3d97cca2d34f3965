//! The local page in a real Chromium: axe, Lighthouse, keyboard, colours, narrow screens, requests and screenshots.

use std::path::{Path, PathBuf};

use crucible_testkit::{BrowserJob, in_browser};
use serde_json::{Value, json};

use crate::see::Site;
use crate::see_project::Filled;
use crate::spec::support::SPEC;
use crate::support::{Fixture, id_of, small};

/// How many of a thousand pixels of a screenshot may differ: fonts are drawn differently by each version of Chromium.
const TOLERANCE: u64 = 30;
/// The most bytes of a screenshot.
const MAX_SHOT: u64 = 150_000;

/// Texts that differ from run to run, and what a screenshot shows instead.
const VARIABLE: [(&str, &str); 6] = [
    (r"/[\w./-]*/fixture\w+/", "/home/you/"),
    (r"/tmp/[\w.-]+", "/home/you/shapes"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "2026-01-31T09:30:00Z"),
    (r"\d{8}t\d{6}z", "20260131t093000z"),
    (r"\b[0-9a-f]{7,64}\b", "0a1b2c3d4e5f"),
    (r"\d+(\.\d)? (ms|s)\b", "1.5 s"),
];

fn images() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images/see")
}

fn shot(name: &str, path: &str, scheme: &str) -> Value {
    let from = if name == "attempt" {
        "table.diff"
    } else {
        "body"
    };
    json!({
        "from": from,
        "name": name, "path": path, "scheme": scheme, "width": 1000, "height": 720, "replace": VARIABLE,
        "file": images().join(format!("{name}.png")), "update": std::env::var_os("UPDATE_DOCS").is_some(),
    })
}

/// Judges every page. Lighthouse loads a page once more, which takes three seconds for each.
fn judge(by_lighthouse: &[&str]) {
    let filled = Filled::new();
    filled.add_runs(300);
    let site = Site::start(filled.call(&["serve", "--allow-landing"]));
    let report = filled.repo.path().join("report.html");
    let written = filled.call(&["report", &filled.run, "--html"]).arg(&report);
    written.run().ok();
    let run = format!("/runs/{}", filled.run);
    let land = format!("/runs/{}/land", filled.verified);
    let addresses = [
        ("runs", "/runs".to_owned()),
        ("run", run.clone()),
        ("attempt", format!("{run}/attempts/1")),
        ("events", format!("{run}/events")),
        ("calls", format!("{run}/calls")),
        ("costs", "/costs".to_owned()),
        ("specs", "/specs".to_owned()),
        ("spec", format!("/specs/{SPEC}")),
        ("evidence", "/specs/area/evidence".to_owned()),
        ("land", land.clone()),
        ("skills", "/skills".to_owned()),
        ("skill", "/skills/count_lines".to_owned()),
        ("crawls", "/crawls".to_owned()),
        ("ranking", "/crawls/1".to_owned()),
        ("plan", "/crawls/2".to_owned()),
        ("ledger", "/ledger".to_owned()),
        ("verified", "/ledger/verify".to_owned()),
        ("missing", "/no-such-page".to_owned()),
        ("report", format!("file://{}", report.display())),
    ];
    let pages: Vec<Value> = addresses
        .iter()
        .map(|(name, path)| json!({ "name": name, "path": path }))
        .collect();
    let values: Vec<&Value> = pages
        .iter()
        .filter(|page| by_lighthouse.contains(&page["name"].as_str().unwrap()))
        .collect();
    assert_eq!(values.len(), by_lighthouse.len());
    let report = in_browser(
        BrowserJob::Judge,
        json!({
            "enter": site.link, "pages": pages, "lighthouse": values, "form": land,
            "shots": [
                shot("runs", "/runs", "light"),
                shot("run", &run, "light"),
                shot("attempt", &format!("{run}/attempts/1"), "dark"),
                shot("costs", "/costs", "light"),
                shot("evidence", "/specs/area/evidence", "light"),
                shot("land", &land, "light"),
                shot("ranking", "/crawls/1", "dark"),
            ],
        }),
    );
    let none = json!([]);
    for page in report["pages"].as_array().unwrap() {
        let status = if page["name"] == "missing" { 404 } else { 200 };
        assert_eq!(page["status"], status, "{page:#}");
        assert_eq!(page["violations"], none, "{page:#}");
        assert_eq!(page["unreached"], none, "{page:#}");
        assert_eq!(page["width"], 360, "{page:#}");
        assert_eq!(page["elsewhere"], none, "{page:#}");
        assert_eq!(page["has_different_colours"], true, "{page:#}");
        assert_ne!(page["title"], "", "{page:#}");
        if status == 200 {
            assert_eq!(page["errors"], none, "{page:#}");
        }
    }
    // Markup that did get in neither runs nor reaches another server.
    assert_eq!(report["policy"], json!({ "executed": 0, "elsewhere": [] }));
    // The form of the page passes every check, and the program answers that the branch has moved.
    assert_eq!(report["form"]["status"], 409, "{:#}", report["form"]);
    assert_eq!(
        report["form"]["heading"], "Not done",
        "{:#}",
        report["form"]
    );
    let lighthouse = report["lighthouse"].as_array().unwrap();
    assert_eq!(lighthouse.len(), by_lighthouse.len());
    for page in lighthouse {
        assert_eq!(page["error"], Value::Null, "{page:#}");
        for score in ["accessibility", "best_practices"] {
            assert!(page[score].as_u64().unwrap() >= 95, "{page:#}");
        }
    }
    for shot in report["shots"].as_array().unwrap() {
        assert!(shot["permille"].as_u64().unwrap() <= TOLERANCE, "{shot:#}");
        assert!(shot["size"].as_u64().unwrap() <= MAX_SHOT, "{shot:#}");
    }
}

mod slow {
    use super::*;

    /// Starts a browser, so it takes about 30 seconds.
    #[test]
    fn pages_satisfy_axe_and_keyboard() {
        judge(&["run"]);
    }
}

mod exhaustive {
    use super::*;

    /// Lighthouse judges the pages that have parts of their own, so it takes about a minute.
    #[test]
    fn pages_satisfy_axe_lighthouse_and_keyboard() {
        judge(&[
            "runs", "run", "attempt", "costs", "specs", "spec", "land", "skills", "skill",
            "crawls", "ranking", "ledger",
        ]);
    }

    /// A browser opens six connections to a host, and each of eight pages of an open run follows it.
    #[test]
    fn eight_tabs_of_an_open_run_are_loaded_and_updated() {
        let (repo, fixture) = (small().build(), Fixture::new());
        let start = || {
            let call = fixture.start_call(repo.path());
            id_of(&call.args(["--mode", "manual_outbox"]).run().json())
        };
        let run = start();
        let site = Site::start(fixture.call(["serve"]));
        let job = json!({ "enter": site.link, "path": format!("/runs/{run}"), "tabs": 8 });
        let report = std::thread::scope(|scope| {
            let browser = scope.spawn(|| in_browser(BrowserJob::Tabs, job));
            // Each event of the ledger changes its head, which the page shows.
            while !browser.is_finished() {
                start();
                std::thread::sleep(std::time::Duration::from_secs(1));
            }
            browser.join().unwrap()
        });
        assert_eq!(report, json!({ "tabs": 8 }));
    }
}
