//! What a crawl leaves behind: sessions that end on every way out, nothing of what was fetched, and nothing at all of a
//! dry run.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crucible_testkit::{Misbehaviour, Reply, Times};
use serde_json::json;

use super::support::{CARGO, CrawlDesk, Models, approval, draft, local, wait_for};
use crate::support::{Call, Snapshot};

fn start(call: Call) -> Child {
    let mut command = call.command();
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn end_with(child: Child, signal: &str) -> Output {
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", signal, &id])
            .status()
            .unwrap()
            .success()
    );
    child.wait_with_output().unwrap()
}

/// The processes that work below this directory, or were told of it.
fn at_work_in(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let place = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        if command.contains(directory.to_str().unwrap()) || place.starts_with(directory) {
            found.push(command);
        }
    }
    found
}

#[test]
fn interrupt_during_download_leaves_only_aborted_session() {
    for signal in ["INT", "TERM"] {
        let fixture = CrawlDesk::with_widget();
        fixture
            .github
            .misbehave("/tarball/", Times::Always, Misbehaviour::Hang);
        let child = start(fixture.call(["inspect", "acme/widget"]));
        wait_for("the archive to be asked for", || {
            fixture.github.count("/tarball/") > 0
        });
        assert!(fixture.works(), "the work directory");
        let output = end_with(child, signal);
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        assert!(output.stdout.is_empty());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            stderr.lines().all(|line| line.starts_with("[crawl] ")),
            "{stderr}"
        );
        assert!(stderr.contains("[crawl] error: interrupted"), "{stderr}");
        assert_eq!(fixture.left_in_tmp(), Vec::<String>::new());
        wait_for("gh to be gone", || at_work_in(&fixture.tmp()).is_empty());
        assert_eq!(fixture.last_session()["status"], "aborted");
    }
}

/// The same call by way of `env`, which sets what a signal does to it.
fn start_with(call: Call, signal_option: &str) -> Child {
    let told = call.command();
    let mut command = Command::new("env");
    command
        .arg(signal_option)
        .arg(told.get_program())
        .args(told.get_args())
        .env_clear();
    command.envs(
        told.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn sighup_ends_crawl_unless_ignored() {
    let fixture = CrawlDesk::with_widget();
    fixture
        .github
        .misbehave("/tarball/", Times::Always, Misbehaviour::Hang);
    let child = start_with(
        fixture.call(["inspect", "acme/widget"]),
        "--default-signal=HUP",
    );
    wait_for("the archive to be asked for", || {
        fixture.github.count("/tarball/") > 0
    });
    assert_eq!(end_with(child, "HUP").status.code(), Some(130));
    assert_eq!(fixture.left_in_tmp(), Vec::<String>::new());
    assert_eq!(fixture.last_session()["status"], "aborted");

    let mut child = start_with(
        fixture.call(["inspect", "acme/widget"]),
        "--ignore-signal=HUP",
    );
    wait_for("the archive to be asked for", || {
        fixture.github.count("/tarball/") > 1
    });
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", "HUP", &id])
            .status()
            .unwrap()
            .success()
    );
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none(), "as nohup promises");
    assert_eq!(end_with(child, "INT").status.code(), Some(130));
}

#[test]
fn interrupted_dry_run_mentions_no_session() {
    let fixture = CrawlDesk::with_widget();
    for (args, promised) in [
        (&["inspect", "acme/widget"][..], true),
        (&["inspect", "acme/widget", "--dry-run"], false),
    ] {
        fixture
            .github
            .misbehave("/tarball/", Times::Once, Misbehaviour::Hang);
        let before = fixture.github.count("/tarball/");
        let child = start(fixture.call(args));
        wait_for("the archive to be asked for", || {
            fixture.github.count("/tarball/") > before
        });
        let output = end_with(child, "INT");
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            stderr.contains("`crucible crawl history` shows the session"),
            promised,
            "{stderr}"
        );
        assert!(stderr.contains("Fetched files were removed"), "{stderr}");
    }
}

#[test]
fn interrupt_during_model_call_keeps_earlier_messages() {
    let fixture = CrawlDesk::with_widget();
    let models = Models::replying(
        [Reply::Answer(draft("cargo build").to_string())],
        [Reply::Hang],
    );
    let child = start(models.apply_to(fixture.call(["plan", "acme/widget", "--json"])));
    wait_for("the critic to be asked", || models.asked().1 > 0);
    let output = end_with(child, "INT");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(fixture.left_in_tmp(), Vec::<String>::new());
    let session = fixture.last_session();
    assert_eq!(
        (&session["status"], &session["selected_repo"]),
        (&json!("aborted"), &json!("acme/widget"))
    );
    let log = fixture
        .fixture
        .run(["ledger", "log", "--json"])
        .ok()
        .json()
        .to_string();
    assert!(log.contains("CRAWL_MESSAGE"), "{log}");
    fixture.fixture.run(["ledger", "verify"]).ok();
}

#[test]
fn files_of_killed_crawl_are_removed_at_start() {
    let fixture = CrawlDesk::with_widget();
    fixture
        .github
        .misbehave("/tarball/", Times::Once, Misbehaviour::Hang);
    let child = start(fixture.call(["inspect", "acme/widget"]));
    wait_for("the archive to be asked for", || {
        fixture.github.count("/tarball/") > 0
    });
    let output = end_with(child, "KILL");
    assert_eq!(output.status.code(), None);
    assert!(fixture.works(), "nobody could clean up");
    // gh may outlive its starter for a moment; a directory that somebody works in is nobody's to take.
    wait_for("gh to be gone", || at_work_in(&fixture.tmp()).is_empty());
    fixture.call(["search", "widget"]).run().ok();
    assert_eq!(fixture.left_in_tmp(), Vec::<String>::new());
    let sessions = fixture.run(&["history", "--json"]).ok().json();
    let statuses: Vec<&str> = sessions["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["completed", "aborted"]);
}

#[test]
fn running_crawl_is_untouched_by_another() {
    let fixture = CrawlDesk::with_widget();
    fixture
        .github
        .misbehave("/tarball/", Times::Once, Misbehaviour::Hang);
    let child = start(fixture.call(["inspect", "acme/widget"]));
    wait_for("the archive to be asked for", || {
        fixture.github.count("/tarball/") > 0
    });
    fixture.call(["search", "widget"]).run().ok();
    let sessions = fixture.call(["history", "--json"]).run().ok().json();
    assert_eq!(
        (
            &sessions["sessions"][0]["status"],
            &sessions["sessions"][1]["status"]
        ),
        (&json!("completed"), &json!("active"))
    );
    assert!(fixture.works(), "its work directory stays");
    end_with(child, "INT");
    assert_eq!(fixture.left_in_tmp(), Vec::<String>::new());
}

#[test]
fn dry_run_leaves_no_files_in_home() {
    let repo = local(&CARGO);
    let path = repo.path().to_str().unwrap();
    let calls: [&[&str]; 6] = [
        &["search", "widget", "--dry-run"],
        &["inspect", "acme/widget", "--dry-run"],
        &["inspect", path, "--dry-run"],
        &["plan", "acme/widget", "--dry-run"],
        &["export", "acme/widget", "--dry-run"],
        &["export", path, "--offline", "--dry-run"],
    ];
    // Once where there is no home, once where there is one with a session, a cached search and an export.
    let fixture = CrawlDesk::with_widget();
    for round in 0..2 {
        if round == 1 {
            fixture.run(&["search", "widget"]).ok();
            fixture.run(&["export", "acme/widget", "--offline"]).ok();
        }
        let look = || {
            let mut roots = vec![fixture.fixture.home(), repo.path().to_owned()];
            roots.extend(Some(fixture.fixture.data()).filter(|data| data.exists()));
            roots
                .iter()
                .map(|root| Snapshot::take([root]))
                .collect::<Vec<_>>()
        };
        let before = look();
        for args in calls {
            let ran = fixture.ask(args, &Models::agreeing_on("cargo build")).ok();
            assert!(ran.json()["schema"].is_string());
            if args[0] == "search" {
                assert_eq!(ran.json()["cached"], false, "the cache is not read either");
            }
            if args[0] == "export" {
                assert!(
                    ran.stderr.contains("would write 7 files to"),
                    "{}",
                    ran.stderr
                );
            }
        }
        let after = look();
        assert_eq!(before.len(), after.len(), "the home was made");
        for (before, after) in before.iter().zip(&after) {
            before.is_still(after);
        }
    }
    assert!(fixture.left_in_tmp().is_empty());
    let to = fixture.fixture.path("out").display().to_string();
    fixture
        .run(&[
            "export",
            "acme/widget",
            "--offline",
            "--dry-run",
            "--output-dir",
            &to,
        ])
        .ok();
    assert!(!fixture.fixture.path("out").exists());
}

#[test]
fn the_record_of_a_crawl_can_be_verified() {
    let fixture = CrawlDesk::with_widget();
    fixture
        .ask(
            &["export", "acme/widget"],
            &Models::agreeing_on("cargo build"),
        )
        .ok();
    fixture
        .ask(
            &["plan", "acme/widget"],
            &Models::saying([draft("cargo build")], [approval()]),
        )
        .exits(3);
    fixture.fixture.run(["ledger", "verify"]).ok();
    let log = fixture
        .fixture
        .run(["ledger", "log", "--json"])
        .ok()
        .json()
        .to_string();
    for event in ["CRAWL_STARTED", "CRAWL_MESSAGE", "CRAWL_ENDED"] {
        assert!(log.contains(event), "no {event}: {log}");
    }
    fixture.fixture.run(["run", "list"]).ok();
}
