//! Honest and hostile clients on standard input and output.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::Client;
use crate::support::{Fixture, small};

/// What a request of the newest revision carries.
fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn names(tools: &Value) -> Vec<&str> {
    let tools = tools["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[test]
fn each_revision_lists_the_tools() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let expected = [
        "build_context",
        "check_patch",
        "start_run",
        "submit_proposal",
        "run_status",
        "run_findings",
        "list_runs",
    ];
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut client = Client::silent(&fixture, repo.path());
        let begun = client.begin(revision);
        assert_eq!(begun["protocolVersion"], revision, "{begun:#}");
        assert_eq!(begun["serverInfo"]["name"], "crucible");
        assert_eq!(
            names(&client.request("tools/list", json!({}))["result"]),
            expected
        );
        assert_eq!(client.end(), 0);
    }
    let mut client = Client::silent(&fixture, repo.path());
    let found = client.request("server/discover", json!({ "_meta": meta() }));
    let revisions = json!(["2025-06-18", "2025-11-25", "2026-07-28"]);
    assert_eq!(found["result"]["supportedVersions"], revisions, "{found:#}");
    let listed = client.request("tools/list", json!({ "_meta": meta() }));
    assert_eq!(names(&listed["result"]), expected);
    let called = json!({ "_meta": meta(), "name": "list_runs", "arguments": {} });
    let called = client.request("tools/call", called);
    assert_eq!(called["result"]["resultType"], "complete", "{called:#}");
    assert_eq!(client.end(), 0);
}

#[test]
fn unknown_revision_gets_one_that_is_known() {
    let (repo, fixture) = (small().build(), Fixture::new());
    for revision in ["2024-11-05", "2099-01-01", "", "x"] {
        let mut client = Client::silent(&fixture, repo.path());
        assert_eq!(
            client.begin(revision)["protocolVersion"],
            "2025-11-25",
            "{revision}"
        );
    }
}

#[test]
fn broken_lines_are_answered_and_passed() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let mut client = Client::begun(&fixture, repo.path());
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_call = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}1{}}}"#,
        r#"{"a":"#.repeat(2000),
        "}".repeat(2000)
    );
    let not_json = [
        "{",
        "]",
        "nul",
        "\u{feff}",
        "{\"jsonrpc\":\"2.0\",",
        &deep,
        &deep_call,
    ];
    for line in not_json {
        client.say(line);
        let answer = client.next();
        assert_eq!(answer["error"]["code"], -32700, "{answer}");
    }
    client.bytes(b"\xff\xfe\n");
    assert_eq!(client.next()["error"]["code"], -32700);
    for line in [
        "1",
        "\"x\"",
        "[]",
        "{}",
        "null",
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
    ] {
        client.say(line);
        let answer = client.next();
        assert_eq!(answer["error"]["code"], -32600, "{line}: {answer}");
    }
    // Ids of every type: a text and a number are ids, nothing else is.
    for id in [
        json!("text"),
        json!(0),
        json!(-1),
        json!(9_007_199_254_740_991_u64),
    ] {
        client.say(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string());
        let answer = client.next();
        assert_eq!(
            (&answer["id"], &answer["result"]),
            (&id, &json!({})),
            "{answer}"
        );
    }
    for id in [
        json!(null),
        json!(1.5),
        json!(true),
        json!([]),
        json!({}),
        json!(1e300),
    ] {
        client.say(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string());
        let answer = client.next();
        assert_eq!(answer["error"]["code"], -32600, "{id}: {answer}");
    }
    for method in [
        "",
        "x",
        "tools/",
        "tools/call/x",
        "resources/list",
        "prompts/get",
        "sampling/createMessage",
    ] {
        let answer = client.request(method, json!({}));
        let code = answer["error"]["code"].as_i64().unwrap();
        assert!(
            [-32601, -32600, -32602].contains(&code),
            "{method}: {answer}"
        );
    }
    // Notifications get no answer, whatever they are.
    for line in [
        r#"{"jsonrpc":"2.0","method":"x"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":[]}"#,
        "",
        "\r",
    ] {
        client.say(line);
    }
    client.is_silent();
    client.call("list_runs", json!({}));
    assert_eq!(client.end(), 0);
}

#[test]
fn huge_message_is_refused_without_being_kept() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let mut client = Client::begun(&fixture, repo.path());
    let chunk = vec![b'a'; 1 << 20];
    for _ in 0..40 {
        client.bytes(&chunk);
    }
    client.say("");
    let answer = client.next();
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("longer than"),
        "{answer}"
    );
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.child.id())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 120 * 1024, "{kib} KiB");
    client.call("list_runs", json!({}));
}

#[test]
fn wrong_arguments_are_errors_of_the_tool() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let mut client = Client::begun(&fixture, repo.path());
    for (tool, arguments, says) in [
        ("list_runs", json!({ "all": true }), "unknown field `all`"),
        ("build_context", json!({}), "missing field `goal`"),
        ("build_context", json!({ "goal": 1 }), "invalid type"),
        (
            "build_context",
            json!({ "goal": "x", "max_files": -1 }),
            "invalid value",
        ),
        (
            "build_context",
            json!({ "goal": "x", "repo": "/etc" }),
            "does not reach",
        ),
        (
            "build_context",
            json!({ "goal": "x", "repo": "../../../.." }),
            "does not reach",
        ),
        (
            "build_context",
            json!({ "goal": "x", "repo": "a\u{0}b" }),
            "NUL",
        ),
        (
            "build_context",
            json!({ "goal": "x", "repo": "missing" }),
            "no such directory",
        ),
        (
            "build_context",
            json!({ "goal": "x".repeat(17 << 10) }),
            "the limit is",
        ),
        (
            "check_patch",
            json!({ "patch": "" }),
            "either `policy` or `run`",
        ),
        (
            "check_patch",
            json!({ "patch": "", "policy": {}, "run": "r" }),
            "either `policy` or `run`",
        ),
        (
            "check_patch",
            json!({ "patch": "", "policy": { "allow": [] } }),
            "not a valid policy",
        ),
        (
            "check_patch",
            json!({ "patch": "x".repeat(5 << 20), "policy": {} }),
            "the limit is",
        ),
        (
            "start_run",
            json!({ "goal": "x", "tests": ["true"] }),
            "unknown field `tests`",
        ),
        (
            "start_run",
            json!({ "goal": "x", "proposer": "me" }),
            "unknown variant",
        ),
        ("start_run", json!({ "goal": "" }), "goal"),
        ("run_status", json!({ "run": "" }), "no run"),
        ("run_status", json!({ "run": "../../etc" }), "no run"),
        (
            "submit_proposal",
            json!({ "run": "20260101", "patch": "x" }),
            "no run",
        ),
        (
            "land_run",
            json!({ "run": "x" }),
            "do not allow clients to land",
        ),
    ] {
        let refused = client.refused(tool, arguments.clone());
        assert!(refused.contains(says), "{tool} {arguments}: {refused}");
        assert!(refused.starts_with("error: "), "{refused}");
    }
    let unknown = client.request("tools/call", json!({ "name": "rm", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert_eq!(fixture.runs().len(), 0);
}

#[test]
fn end_of_input_and_interrupt_stop_server() {
    let (repo, fixture) = (small().build(), Fixture::new());
    assert_eq!(Client::silent(&fixture, repo.path()).end(), 0);
    let mut client = Client::begun(&fixture, repo.path());
    client.call("list_runs", json!({}));
    let instant = Instant::now();
    let pid = nix::unistd::Pid::from_raw(i32::try_from(client.child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    assert_eq!(client.child.wait().unwrap().code(), Some(130));
    assert!(instant.elapsed() < Duration::from_secs(10));
}

#[test]
fn first_line_that_is_no_request_is_passed() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let mut client = Client::silent(&fixture, repo.path());
    client.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.say(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    client.say("{");
    assert_eq!(client.next()["error"]["code"], -32700);
    assert_eq!(client.begin("2025-06-18")["protocolVersion"], "2025-06-18");
}
