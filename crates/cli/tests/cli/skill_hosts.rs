//! Which hosts a trusted skill reaches: those that it was granted, at the ports of the web, and nothing beside them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::skill_trust::{Outcome, Skills, outcome_of};

/// The port of the web that a granted host is reached at.
const PORT: u16 = 80;
/// Set in a copy of the test program that has a network of its own.
const PART: &str = "CRUCIBLE_TEST_OWN_NETWORK";
/// What that copy says at its end.
const DONE: &str = "all of it, in a network of its own";

/// A server that answers each request with its address, and counts whom it met.
struct Web {
    address: Ipv4Addr,
    port: u16,
    met: Arc<AtomicUsize>,
}

impl Web {
    /// At an address of the machine's own loopback.
    fn at(address: Ipv4Addr, port: u16) -> Self {
        let listener = TcpListener::bind((address, port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let met = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&met);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.read(&mut [0; 4096]);
                let text = address.to_string();
                let answer = format!(
                    "HTTP/1.0 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                    text.len()
                );
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { address, port, met }
    }

    fn met(&self) -> usize {
        self.met.load(Ordering::SeqCst)
    }

    fn url(&self) -> String {
        format!("http://{}:{}/", self.address, self.port)
    }
}

/// Asks for the page that its input names.
const BODY: &str = "\
import urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
with opener.open(inputs['text'], timeout=20) as answer:
    return {'said': answer.read().decode()}";

fn asks(skills: &Skills, name: &str, url: &str) -> Outcome {
    let input = json!({ "text": url }).to_string();
    let call = skills.call(["skill", "run", name, "--input", &input, "--json"]);
    outcome_of(call.env("PAY_KEY", "correct-horse-battery"))
}

fn granted_hosts_are_reached() {
    // Addresses that other tests, which run at the same time, do not use.
    let [.., a, b] = std::process::id().to_be_bytes();
    let own = |last: u8| Ipv4Addr::new(127, a.max(1), b, last);
    let (granted, other) = (Web::at(own(5), PORT), Web::at(own(6), PORT));
    let beside = Web::at(granted.address, 0);
    let skills = Skills::new();
    let host = granted.address.to_string();
    for (number, (name, class)) in [
        ("connects", "NETWORK"),
        ("pays", "MONEY"),
        ("tells", "MESSAGING"),
    ]
    .into_iter()
    .enumerate()
    {
        skills.trusted(name, class, ["--allow-host", &host], BODY);
        let ran = asks(&skills, name, &granted.url()).is(0, "SUCCEEDED", "");
        assert_eq!(ran.document["result"], json!({ "said": host }), "{class}");
        assert_eq!(granted.met(), number + 1, "{class}");
        let hosts = &ran.document["isolation"]["network"]["hosts"];
        assert_eq!(
            *hosts,
            json!([{ "host": host, "ports": [443, 80] }]),
            "{class}"
        );
        // Another host at the same port, and the same host at another port.
        for elsewhere in [&other, &beside] {
            asks(&skills, name, &elsewhere.url()).is(1, "DENIED", "forge-run-denied");
            assert_eq!(elsewhere.met(), 0, "{class}");
        }
    }
    // One who answers nobody at a granted port is no other host's way in: the skill is told that nobody is there.
    asks(&skills, "connects", &format!("https://{host}/")).is(1, "FAILED", "forge-run-raised");
    skills.trusted("reads", "READ_ONLY", [], BODY);
    asks(&skills, "reads", &granted.url()).is(1, "DENIED", "forge-run-denied");
    assert_eq!((granted.met(), other.met(), beside.met()), (3, 0, 0));
}

#[test]
fn network_skill_reaches_only_granted_host_and_port() {
    let allowed = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT));
    let denied = allowed.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
    if !denied {
        granted_hosts_are_reached();
        println!("{DONE}");
        return;
    }
    assert!(
        std::env::var_os(PART).is_none(),
        "the superuser of a network of its own has no port {PORT}"
    );
    // The ports of the web are the superuser's. Everybody is that in a namespace of their own.
    let mut command = Command::new("unshare");
    command.args([
        "--user",
        "--map-root-user",
        "--net",
        "sh",
        "-c",
        "ip link set lo up && exec \"$0\" \"$@\"",
    ]);
    command
        .arg(std::env::current_exe().unwrap())
        .args(["--nocapture", "--exact"]);
    command
        .arg("skill_hosts::network_skill_reaches_only_granted_host_and_port")
        .env(PART, "1");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains(DONE), "{text}");
}
