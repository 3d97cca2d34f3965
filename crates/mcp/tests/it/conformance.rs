//! `@modelcontextprotocol/conformance` against the adapter, on the transport that `crucible mcp --http` has.

use std::net::SocketAddr;
use std::process::Command;

use crucible_mcp::HttpServer;
use crucible_testkit::real_client;

use crate::adapter::Adapter;
use crate::forward::forward;

/// Serves the adapter until the test ends, and returns its address and token.
fn served() -> (SocketAddr, String) {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let server = HttpServer::open(0).await.unwrap();
            let access = server.access();
            let address = access.url.trim_start_matches("http://");
            let address = address.trim_end_matches("/mcp").parse().unwrap();
            sender
                .send((address, access.token.expose().to_owned()))
                .unwrap();
            server.serve(Adapter).await.unwrap();
        });
    });
    receiver.recv().unwrap()
}

/// Runs the suite with these words; every check passes, and none is expected to fail.
#[track_caller]
fn passes(words: &[&str]) {
    let (address, token) = served();
    let port = forward(address, &token);
    let results = tempfile::tempdir().unwrap();
    let expected = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/it/expected-failures.yml"
    );
    let output = Command::new(real_client("conformance"))
        .args(["server", "--url", &format!("http://127.0.0.1:{port}/mcp")])
        .args(words)
        .args(["--expected-failures", expected, "--output-dir"])
        .arg(results.path())
        .current_dir(results.path())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{stdout}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(stdout.contains("tools-call-simple-text"), "{stdout}");
}

mod slow {
    use super::passes;

    #[test]
    fn revision_2025_06_18_conforms() {
        passes(&["--suite", "active", "--spec-version", "2025-06-18"]);
    }

    #[test]
    fn revision_2025_11_25_conforms() {
        passes(&["--requirements", "2025-11-25"]);
    }

    #[test]
    fn revision_2026_07_28_conforms() {
        passes(&["--requirements", "2026-07-28"]);
    }
}
