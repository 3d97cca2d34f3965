//! That `crucible doctor` opens no connection: seen by the kernel, around the real program and the real clients.
//!
//! The observer is a filter of system calls that a process puts upon itself before it becomes `crucible`; it holds for
//! all that comes of it. Whoever asks for a socket of the internet's families, or for raw packets, is killed on the spot.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output, Stdio};

use crucible_testkit::{real_client, real_clients_dir};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use serde_json::Value;

use crate::support::{Call, Fixture};

/// What the observed process is to become: the words of its command line, one a line.
const WORDS: &str = "OBSERVED_WORDS";
/// Where its results go; the copy of this test program prints to standard output first.
const RESULT: &str = "OBSERVED_RESULT";

/// The filter: the families of sockets that lead out of the machine.
fn no_way_out() -> BpfProgram {
    let families = [
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_PACKET,
        libc::AF_VSOCK,
    ];
    let rule = |family: libc::c_int| {
        let family = u64::from(family.unsigned_abs());
        let is =
            SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, family).unwrap();
        SeccompRule::new(vec![is]).unwrap()
    };
    let rules = BTreeMap::from([(libc::SYS_socket, families.map(rule).to_vec())]);
    let target_arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::KillProcess,
        target_arch,
    )
    .unwrap();
    filter.try_into().unwrap()
}

/// In the observed copy of this test program: puts the filter upon itself and becomes what it was told. Does not come
/// back from that.
pub(crate) fn become_the_observed() {
    let Some(words) = std::env::var_os(WORDS) else {
        return;
    };
    let words = words.into_string().unwrap();
    let result = std::fs::File::create(std::env::var_os(RESULT).unwrap()).unwrap();
    let mut words = words.lines();
    let mut command = Command::new(words.next().unwrap());
    command
        .args(words)
        .env_remove(WORDS)
        .env_remove(RESULT)
        .stdout(result);
    apply_filter(&no_way_out()).unwrap();
    panic!("{}", command.exec());
}

/// Runs a call of the program under the observer, from within the test `name`, written with its module.
pub(crate) fn observed(fixture: &Fixture, name: &str, call: Call) -> Output {
    let call = call.command();
    let words: Vec<&str> = [call.get_program()]
        .into_iter()
        .chain(call.get_args())
        .map(|word| word.to_str().unwrap())
        .collect();
    let result = fixture.path("observed");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env_clear();
    command.envs(
        call.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command
        .env(WORDS, words.join("\n"))
        .env(RESULT, &result)
        .stdin(Stdio::null());
    let output = command
        .current_dir(call.get_current_dir().unwrap())
        .output()
        .unwrap();
    Output {
        stdout: std::fs::read(result).unwrap(),
        ..output
    }
}

/// A call with every provider configured, each over HTTP at this address.
fn fully_configured(fixture: &Fixture, args: &[&str], server: &TcpListener) -> Call {
    let path = std::env::join_paths(
        std::iter::once(real_clients_dir())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let url = format!("http://{}", server.local_addr().unwrap());
    let mut call = fixture.call(args).env("PATH", path.unwrap());
    for key in [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "OPENROUTER_API_KEY",
        "GEMINI_API_KEY",
    ] {
        call = call.env(key, "a-key-for-tests");
    }
    for provider in [
        "ANTHROPIC",
        "OPENAI",
        "OPENROUTER",
        "GATEWAY",
        "CLAUDE_CLI",
        "GEMINI_CLI",
        "CODEX_CLI",
    ] {
        call = call.env(
            &format!("CRUCIBLE_{provider}_BASE_URL"),
            format!("{url}/v1"),
        );
    }
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../run/demo/cassette.jsonl");
    call.env("CRUCIBLE_LLM_REPLAY_CASSETTE", recording)
        .env("CRUCIBLE_LLM_PROVIDER", "claude-cli")
}

fn listener() -> TcpListener {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    server
}

fn document(output: &Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {:?}\n{stderr}", output.status))
}

/// The client program of a provider, in a document.
fn client<'a>(document: &'a Value, provider: &str) -> &'a Value {
    let providers = document["providers"].as_array().unwrap();
    &providers
        .iter()
        .find(|row| row["provider"] == provider)
        .unwrap()["program"]
}

#[test]
fn doctor_with_real_clients_opens_no_socket() {
    become_the_observed();
    let (fixture, server) = (Fixture::new(), listener());
    let name = "doctor_observed::doctor_with_real_clients_opens_no_socket";
    let look = || {
        observed(
            &fixture,
            name,
            fully_configured(&fixture, &["doctor", "--json"], &server),
        )
    };
    let mut output = look();
    // A machine that is busy with something else may not start three big programs in the time that they have.
    for _ in 0..4 {
        if !document(&output)
            .to_string()
            .contains("did not print its version within")
        {
            break;
        }
        output = look();
    }
    let seen = document(&output);
    assert_eq!(output.status.code(), Some(0), "{seen:#}");
    assert_eq!(seen["choice"]["answers"], "claude-cli");
    for row in seen["providers"].as_array().unwrap() {
        let readiness = if row["reach"] == "http" {
            "unprobed"
        } else {
            "ready"
        };
        assert_eq!(row["readiness"], readiness, "{row:#}");
    }
    for (provider, program) in [
        ("claude-cli", "claude"),
        ("gemini-cli", "gemini"),
        ("codex-cli", "codex"),
    ] {
        let client = client(&seen, provider);
        assert!(client["version"].is_string(), "{client:#}");
        assert_eq!(client["path"], real_client(program).to_str().unwrap());
        assert_eq!(client["isolation"], "full");
    }
    assert!(server.accept().is_err(), "somebody connected");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("a-key-for-tests"));
    assert!(
        !fixture.data().exists(),
        "nothing is left of an examination"
    );
}

#[test]
fn the_observer_catches_whoever_asks_for_a_socket() {
    become_the_observed();
    let name = "doctor_observed::the_observer_catches_whoever_asks_for_a_socket";
    let (fixture, server) = (Fixture::new(), listener());
    // The program itself, where it is told to ask a server.
    let online = || {
        fully_configured(
            &fixture,
            &["models", "--online", "--provider", "gateway"],
            &server,
        )
    };
    let output = observed(
        &fixture,
        name,
        online().env("CRUCIBLE_LLM_MAX_HTTP_TIMEOUT_S", "1"),
    );
    assert_eq!(output.status.signal(), Some(libc::SIGSYS), "{output:?}");
    assert!(server.accept().is_err());

    // A client program that does so when it is asked for its version.
    let client_path = fixture.path("calls-home");
    let port = server.local_addr().unwrap().port();
    let script = format!("#!/bin/bash\n: 3<>/dev/tcp/127.0.0.1/{port}\necho 1.2.3\n");
    std::fs::write(&client_path, script).unwrap();
    std::fs::set_permissions(&client_path, PermissionsExt::from_mode(0o755)).unwrap();
    let doctor = || {
        let call = fixture
            .call(["doctor", "--json"])
            .env("CRUCIBLE_LLM_PROVIDER", "claude-cli");
        call.env("CRUCIBLE_LLM_CLAUDE_CLI_BINARY", &client_path)
    };
    let caught = document(&observed(&fixture, name, doctor()));
    let caught = client(&caught, "claude-cli");
    assert_eq!(caught["version"], Value::Null, "{caught:#}");
    let problem = caught["problem"].as_str().unwrap();
    // Inside namespaces it shows as 128 and the number of the signal.
    assert!(
        problem.contains("exit code 159") || problem.contains("signal 31"),
        "{problem}"
    );
    // Unobserved it gets as far as its own loopback, where nobody listens.
    let unobserved = doctor().run().ok().json();
    assert_eq!(client(&unobserved, "claude-cli")["version"], "1.2.3");
    assert!(server.accept().is_err(), "the sandbox lets nobody out");
}
