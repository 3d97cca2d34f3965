//! Where a spec's idea comes from and which files its phases see, as a user says it: the real binary, and the real `gh`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};

use crucible_testkit::{FakeApi, FakeGitHub, FakeRepo, Misbehaviour, Times, made_up_token};
use serde_json::Value;

use super::support::{SPEC, answering, everything, newest, project, receipts, spec_dir, with_idea};
use crate::support::{Call, Fixture, Ran};

fn call<const N: usize>(fixture: &Fixture, server: &FakeApi, options: [&str; N]) -> Call {
    fixture
        .call(["spec", SPEC])
        .args(options)
        .env("CRUCIBLE_GATEWAY_BASE_URL", server.base_url())
}

/// What the model was shown in its first question.
fn shown(server: &FakeApi) -> String {
    server.completions()[0].body["messages"][1]["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn stored_idea(project: &Path) -> String {
    std::fs::read_to_string(spec_dir(project).join("context/idea.md")).unwrap_or_default()
}

fn inputs(project: &Path) -> Vec<String> {
    let receipt = newest(project);
    let inputs = receipt["phases"][0]["inputs"].as_array().unwrap();
    inputs
        .iter()
        .map(|input| input["path"].as_str().unwrap().to_owned())
        .collect()
}

fn put(project: &Path, name: &str, text: &str) {
    let path = project.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn sources_are_joined_in_their_order_and_kept() {
    let (fixture, server) = (Fixture::new(), answering());
    let project = project(&fixture);
    put(&project, "notes/b.md", "Exports are JSON.\n");
    put(&project, "notes/a.md", "Exports are complete.\n");
    put(&project, "wish.md", "Users can export their data.\n");
    let options = ["--source", "wish.md", "--source", "-", "--source", "notes"];
    with_idea(call(&fixture, &server, options), &project, "From a pipe.\n").ok();
    let idea = "# From wish.md\n\nUsers can export their data.\n\n# From standard input\n\nFrom a pipe.\n\n\
        # From notes/a.md\n\nExports are complete.\n\n# From notes/b.md\n\nExports are JSON.\n";
    assert_eq!(stored_idea(&project), idea);
    assert!(shown(&server).contains(idea));
    assert!(
        !shown(&server).contains(fixture.path("").to_str().unwrap()),
        "no absolute path is sent"
    );
}

#[test]
fn an_issue_is_asked_for_through_gh() {
    let (fixture, server) = (Fixture::new(), answering());
    let github = FakeGitHub::start([FakeRepo::new("acme/shop").issue(
        12,
        "Export",
        "Users can export.\r\n",
    )]);
    let project = project(&fixture);
    let run = |issue: &str| {
        let mut call = call(&fixture, &server, ["--issue", issue]).current_dir(&project);
        for (name, value) in github.env() {
            call = call.env(name.to_str().unwrap(), value);
        }
        call.run()
    };
    let missing = run("acme/shop#13").exits(1);
    assert!(
        missing.stderr.contains("acme/shop#13: GitHub has no"),
        "{}",
        missing.stderr
    );
    github.misbehave(
        "/issues/12",
        Times::Once,
        Misbehaviour::primary_limit(4_102_444_800),
    );
    run("acme/shop#12").exits(4);
    assert!(run("acme/shop").exits(2).stderr.contains("OWNER/REPO#123"));
    let elsewhere = run("https://git.example.com/acme/shop/issues/12").exits(2);
    assert!(elsewhere.stderr.contains("GH_HOST"), "{}", elsewhere.stderr);
    assert_eq!(
        (server.completions().len(), receipts(&project).len()),
        (0, 0)
    );
    run("https://github.com/acme/shop/issues/12").ok();
    assert_eq!(stored_idea(&project), "# Export\n\nUsers can export.\n");
}

#[test]
fn without_an_idea_nothing_begins() {
    let (fixture, server) = (Fixture::new(), answering());
    let project = project(&fixture);
    put(&project, "empty.md", " \r\n\t");
    let refused = |ran: Ran, part: &str| {
        let ran = ran.exits(2);
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    };
    let none = "no idea to start from";
    refused(
        call(&fixture, &server, []).current_dir(&project).run(),
        none,
    );
    refused(
        with_idea(call(&fixture, &server, []), &project, "  \n\u{200b}"),
        none,
    );
    refused(
        call(&fixture, &server, ["--source", "empty.md"])
            .current_dir(&project)
            .run(),
        none,
    );
    refused(
        call(&fixture, &server, ["--source", "missing.md"])
            .current_dir(&project)
            .run(),
        "missing.md: No such file",
    );
    refused(
        with_idea(
            call(&fixture, &server, ["--source", "-", "--source", "-"]),
            &project,
            "x",
        ),
        "given twice",
    );
    refused(
        with_idea(call(&fixture, &server, []), &project, "a\0b"),
        "NUL byte",
    );
    assert_eq!(server.completions().len(), 0);
    assert!(!spec_dir(&project).join("receipts").exists() || receipts(&project).is_empty());
}

#[test]
fn waiting_for_an_unnamed_pipe_is_announced() {
    let (fixture, server) = (Fixture::new(), answering());
    let project = project(&fixture);
    let start = |id: &str, options: &[&str]| -> Child {
        let call = fixture
            .call(["spec", id])
            .env("CRUCIBLE_GATEWAY_BASE_URL", server.base_url());
        let call = options
            .iter()
            .fold(call, |call, option| call.arg(option))
            .current_dir(&project);
        call.command()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    // What somebody asked for is waited for in silence.
    let mut named = start("named", &["--source", "-"]);
    let mut open = start("open", &[]);
    let mut said = BufReader::new(open.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(
        line.contains("reading the idea from standard input") && line.contains("< /dev/null"),
        "{line}"
    );
    // It waits on, and takes what then comes.
    for child in [&mut named, &mut open] {
        child
            .stdin
            .take()
            .unwrap()
            .write_all(b"users can export their data\n")
            .unwrap();
    }
    assert!(open.wait().unwrap().success());
    let stored_path = project.join(".crucible/specs/open/context/idea.md");
    assert_eq!(
        std::fs::read_to_string(stored_path).unwrap(),
        "users can export their data\n"
    );
    let named = named.wait_with_output().unwrap();
    assert!(named.status.success());
    let message = String::from_utf8(named.stderr).unwrap();
    assert!(!message.contains("awaited"), "{message}");
}

#[test]
fn stored_idea_is_used_by_default() {
    let (fixture, server) = (Fixture::new(), answering());
    let project = project(&fixture);
    with_idea(
        call(&fixture, &server, []),
        &project,
        "users can export their data\n",
    )
    .ok();
    call(&fixture, &server, ["--through", "design"])
        .current_dir(&project)
        .run()
        .ok();
    assert_eq!(stored_idea(&project), "users can export their data\n");
    assert_eq!(
        server.completions().len(),
        2,
        "the requirements were not asked for again"
    );
}

#[test]
fn files_are_shown_by_selector_and_by_name() {
    let (fixture, server) = (Fixture::new(), answering());
    let project = project(&fixture);
    put(&project, "docs/deep/b.md", "b\r\n");
    put(&project, "docs/a.md", "a\n");
    put(&project, "docs/.env", "A=b\n");
    let options = ["--context", "docs/**/*.md", "--context", "src"];
    with_idea(
        call(&fixture, &server, options),
        &project,
        "users can export their data\n",
    )
    .ok();
    assert_eq!(
        inputs(&project),
        [
            "context/idea.md",
            "project/docs/a.md",
            "project/docs/deep/b.md",
            "project/src/area.py",
            "project/README.md"
        ]
    );
    // From below, a path is one of that directory.
    let below = project.join("docs");
    let dry = with_idea(
        call(
            &fixture,
            &server,
            ["--source", "-", "--context", "a.md", "--dry-run"],
        ),
        &below,
        "another idea\n",
    )
    .ok();
    assert!(
        inputs(&project).contains(&"project/docs/a.md".to_owned()),
        "{}",
        dry.stdout
    );
    let before = receipts(&project).len();
    for (context, code, part) in [
        ("docs/c.md", 2, "docs/ has a.md;"),
        ("../outside", 2, "not in the project"),
        ("/etc/passwd", 2, "not in the project"),
        ("docs/[", 2, "not a valid glob"),
        ("docs/.env", 8, "secret-file"),
        (".git/config", 2, "git's own directory"),
    ] {
        let ran = with_idea(
            call(&fixture, &server, ["--source", "-", "--context", context]),
            &project,
            "another idea\n",
        )
        .exits(code);
        assert!(ran.stderr.contains(part), "{context}: {}", ran.stderr);
    }
    assert_eq!(server.completions().len(), 1);
    let written = receipts(&project).split_off(before);
    let classes: Vec<&str> = written
        .iter()
        .filter_map(|receipt| receipt["phases"][0]["error"]["class"].as_str())
        .collect();
    assert_eq!(
        classes,
        ["secret"],
        "a slip of the command line is no try of a phase"
    );
}

#[test]
fn a_secret_in_the_idea_is_nowhere_afterwards() {
    let (fixture, server) = (Fixture::new(), answering());
    let project = project(&fixture);
    let token = made_up_token();
    let idea = format!("users can export\nwith {token}\n");
    let ran = with_idea(call(&fixture, &server, []), &project, &idea).exits(8);
    assert!(
        ran.stderr.contains("standard input") && ran.stderr.contains("line 2"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains(&token) && !ran.stdout.contains(&token));
    assert!(
        !everything(&project).contains(&token) && !everything(&fixture.data()).contains(&token)
    );
    assert_eq!(server.completions().len(), 0);
}

#[test]
fn oversized_idea_leaves_the_sizes_of_sources() {
    let (fixture, server) = (Fixture::new(), answering());
    let project = project(&fixture);
    put(&project, "large.md", &"y".repeat(70_000));
    put(&project, "small.md", "users can export\n");
    let manifest = || -> Value {
        let id = newest(&project)["receipt_id"].as_str().unwrap().to_owned();
        let manifest = spec_dir(&project).join(format!("context/{id}.packet.json"));
        serde_json::from_slice(&std::fs::read(manifest).unwrap()).unwrap()
    };
    let row = |row: &Value| {
        (
            row["name"].as_str().unwrap().to_owned(),
            row["bytes"].as_u64().unwrap(),
        )
    };
    let ran = with_idea(call(&fixture, &server, []), &project, &"x".repeat(70_000)).exits(7);
    assert!(
        ran.stderr.contains("standard input (70000 bytes, 1 lines)"),
        "{}",
        ran.stderr
    );
    // Too many bytes and lines: both are counted, wherever the idea comes from.
    let long: String = (1..=20_001).map(|number| format!("{number}\n")).collect();
    let ran = with_idea(call(&fixture, &server, []), &project, &long).exits(7);
    assert!(
        ran.stderr
            .contains("the packet has 108900 bytes and 20001 lines"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("standard input (108900 bytes, 20001 lines)"),
        "{}",
        ran.stderr
    );
    for (place, source) in [("long.md", "long.md"), ("several/long.md", "several")] {
        std::fs::create_dir_all(project.join("several")).unwrap();
        put(&project, place, &long);
        let ran = call(&fixture, &server, ["--source", source])
            .current_dir(&project)
            .run()
            .exits(7);
        assert!(
            ran.stderr
                .contains(&format!("{place} (108900 bytes, 20001 lines)")),
            "{}",
            ran.stderr
        );
    }
    let ran = with_idea(
        call(&fixture, &server, ["--context", "long.md"]),
        &project,
        "users can export\n",
    )
    .exits(7);
    assert!(
        ran.stderr.contains("long.md (108900 bytes, 20001 lines)"),
        "{}",
        ran.stderr
    );
    let options = ["--source", "small.md", "--source", "large.md"];
    let ran = call(&fixture, &server, options)
        .current_dir(&project)
        .run()
        .exits(7);
    assert!(
        ran.stderr.contains("large.md (70000 bytes"),
        "{}",
        ran.stderr
    );
    let entries = manifest()["entries"].clone();
    let rows: Vec<_> = entries.as_array().unwrap().iter().map(row).collect();
    assert_eq!(
        rows,
        [("large.md".to_owned(), 70_000), ("small.md".to_owned(), 17)]
    );
    let newest = newest(&project);
    assert_eq!(
        (&newest["exit_code"], &newest["phases"][0]["error"]["class"]),
        (&7.into(), &"packet_over_limit".into())
    );
    assert_eq!(
        (server.completions().len(), stored_idea(&project).as_str()),
        (0, "")
    );
}

#[test]
fn a_packet_over_its_limit_leaves_its_sizes() {
    let (fixture, server) = (Fixture::new(), answering());
    let project = project(&fixture);
    put(&project, "large.txt", &"x".repeat(60 * 1024));
    put(&project, "lines.txt", &"x\n".repeat(1_201));
    for (file, bytes) in [("large.txt", 60 * 1024), ("lines.txt", 2_402)] {
        let idea = "y".repeat(10_000);
        with_idea(
            call(&fixture, &server, ["--context", file]),
            &project,
            &idea,
        )
        .exits(7);
        let id = newest(&project)["receipt_id"].as_str().unwrap().to_owned();
        let manifest = spec_dir(&project).join(format!("context/{id}.packet.json"));
        let manifest: Value = serde_json::from_slice(&std::fs::read(manifest).unwrap()).unwrap();
        assert_eq!(manifest["schema_version"], "crucible-packet-v1");
        assert_eq!(manifest["entries"][0]["bytes"], 10_000);
        assert_eq!(
            (
                &manifest["entries"][1]["name"],
                &manifest["entries"][1]["bytes"]
            ),
            (&file.into(), &bytes.into())
        );
        assert_eq!(manifest["left_out"][0]["name"], "README.md");
    }
    assert_eq!(server.completions().len(), 0);
    assert_eq!(
        stored_idea(&project),
        "",
        "an idea of which there was no packet is not kept"
    );
}
